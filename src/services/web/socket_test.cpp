#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "kernel/net/socket.h"
#include "services/web/server_test.h"

namespace hf::web {
namespace {

class SocketTest : public ServerTest {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "hf-web-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    path_ = directory_ / "s";
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::filesystem::path directory_;
  std::filesystem::path path_;
};

TEST_F(SocketTest, ServesAUnixSocketForItsGroup) {
  start({"", path_});
  struct stat status{};
  ASSERT_EQ(::lstat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0660U);
  Client client(*kernel::connect_unix(path_));
  client.send("GET /healthz HTTP/1.1\r\nHost: any.name\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has_status(client.receive(""), 200));
  EXPECT_EQ(server_->address(), "");
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SocketTest, ReplacesAStaleSocket) {
  start({"", path_});
  const Result<std::unique_ptr<Server>> second = Server::start({"", path_}, board_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("listens there already"), std::string::npos);
  std::filesystem::rename(path_, directory_ / "kept");
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(directory_ / "kept"));
  std::filesystem::rename(directory_ / "kept", path_);
  start({"", path_});
  EXPECT_TRUE(kernel::connect_unix(path_));
}

TEST_F(SocketTest, ReplacesNothingButASocket) {
  std::ofstream(directory_ / "file") << "precious";
  for (const char* kind : {"file", "link", "dangling"}) {
    std::filesystem::remove(path_);
    if (std::string(kind) == "file") {
      std::filesystem::copy(directory_ / "file", path_);
    } else {
      std::filesystem::create_symlink(directory_ / (std::string(kind) == "link" ? "file" : "nowhere"), path_);
    }
    EXPECT_FALSE(Server::start({"", path_}, board_)) << kind;
    EXPECT_TRUE(std::filesystem::is_symlink(path_) || std::filesystem::exists(path_)) << kind;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "nowhere"));
  EXPECT_FALSE(Server::start({"", directory_ / std::string(200, 'x')}, board_));
}

TEST_F(SocketTest, DoesNotRemoveAFileThatReplacedItsSocket) {
  start({"", path_});
  std::filesystem::remove(path_);
  std::ofstream(path_) << "another's";
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketTest, ClientsOfTcpTakeNoPlaceFromThoseOfTheSocket) {
  start({"127.0.0.1:0", path_});
  Client client(*kernel::connect_unix(path_));
  std::vector<Client> others;
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < 700ms) {  // longer than any client is spared
    others.push_back(connect_client());
    if (others.size() > 300) {
      others.erase(others.begin());
    }
  }
  client.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has_status(client.receive(""), 200));
}

}  // namespace
}  // namespace hf::web
