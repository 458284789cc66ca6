// The client with a server of our own: tests/support/api_server.py, which plays failures.
#include "adapters/apiserver/client.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::apiserver {
namespace {

using Json = nlohmann::json;
using kernel::Clock;

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// One server for all tests of this file: its certificates take a moment.
class Server {
 public:
  Server() : directory_(std::filesystem::temp_directory_path() / ("hf-api-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(directory_);
    const std::string command =
        std::string("python3 ") + HOLDFAST_API_SERVER + " " + directory_.string() + " >" + path("ports");
    process_ = ::popen(command.c_str(), "w");
    for (int i = 0; i < 3000 && read_file(path("ports")).find('\n') == std::string::npos; ++i) {
      ::usleep(10'000);
    }
    std::istringstream(read_file(path("ports"))) >> secure_ >> plain_;
  }
  ~Server() {
    if (process_ != nullptr) {
      ::pclose(process_);
    }
    std::filesystem::remove_all(directory_);
  }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  bool is_there() const { return !plain_.empty(); }

  Access access() const {
    Access access;
    access.host = "127.0.0.1";
    access.port = secure_;
    access.authority = read_file(path("ca.crt"));
    access.token = "secret";
    return access;
  }
  Json control(const Json& fields = Json::object()) const {
    Access access;
    access.host = "127.0.0.1";
    access.port = plain_;
    access.is_plain = true;
    Client client(access);
    const Result<Response> response =
        client.send({"POST", "/control", fields.dump()}, Clock::now() + std::chrono::seconds(20));
    return response ? Json::parse(response->body) : Json();
  }

 private:
  std::filesystem::path directory_;
  std::FILE* process_ = nullptr;
  std::string secure_;
  std::string plain_;
};

class ClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<Server>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    ASSERT_TRUE(server_->is_there()) << "needs python3 and openssl";
    server_->control(
        {{"failures", Json::array()}, {"token", ""}, {"events", Json::object()}, {"requests", Json::array()}});
  }

  static Result<Response> get(Client& client, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    return client.send({"GET", "/api/v1/nodes/node-1"}, Clock::now() + limit);
  }
  static void fail_next(const Json& failure) { server_->control({{"failures", Json::array({failure})}}); }

  static std::unique_ptr<Server> server_;
};
std::unique_ptr<Server> ClientTest::server_;

TEST_F(ClientTest, SendsOverOneKeptConnection) {
  Client client(server_->access());
  for (int i = 0; i < 3; ++i) {
    const Result<Response> response = get(client);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200U);
    EXPECT_EQ(Json::parse(response->body)["kind"], "Node");
  }
  const Json requests = server_->control()["requests"];
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0]["authorization"], "Bearer secret");
  EXPECT_EQ(requests[0]["connection"], requests[2]["connection"]);
}

TEST_F(ClientTest, SendsBodiesWithTheirType) {
  Client client(server_->access());
  const Request request{"PATCH", "/api/v1/nodes/node-1/status", R"({"status": {"x": "y"}})", kStrategicMerge};
  const Result<Response> response = client.send(request, Clock::now() + std::chrono::seconds(20));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200U);
  const Json sent = server_->control()["requests"][0];
  EXPECT_EQ(sent["content_type"], kStrategicMerge);
  EXPECT_EQ(sent["body"]["status"]["x"], "y");
}

TEST_F(ClientTest, RefusesAServerThatAnotherAuthorityHasSigned) {
  Access access = server_->access();
  access.authority = read_file(server_->path("client.crt"));
  Client client(access);
  const Result<Response> response = get(client);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::permission_denied) << response.error().message;
  EXPECT_NE(response.error().message.find("TLS"), std::string::npos) << response.error().message;
  EXPECT_EQ(server_->control()["requests"].size(), 0U) << "the token was not sent";
}

TEST_F(ClientTest, RefusesAServerWithAnotherName) {
  Access access = server_->access();
  access.server_name = "other.test";
  Client other(access);
  EXPECT_FALSE(get(other));
  access.server_name = "api.test";
  Client same(access);
  EXPECT_TRUE(get(same));
  access = server_->access();
  access.host = "localhost";  // an address of the server, but not in its certificate
  Client unnamed(access);
  EXPECT_FALSE(get(unnamed));
}

TEST_F(ClientTest, ShowsItsCertificate) {
  Access access = server_->access();
  access.certificate = read_file(server_->path("client.crt"));
  access.key = read_file(server_->path("client.key"));
  Client client(access);
  const Result<Response> response = get(client);
  ASSERT_TRUE(response) << response.error().message;
  access.key = read_file(server_->path("ca.key"));  // of another certificate
  Client wrong(access);
  ASSERT_FALSE(get(wrong));
}

TEST_F(ClientTest, OpensABrokenConnectionAgain) {
  Client client(server_->access());
  ASSERT_TRUE(get(client));
  fail_next({{"close", true}});
  const Result<Response> response = get(client);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200U);
}

TEST_F(ClientTest, SaysWhetherTheServerHadTheWholeRequest) {
  Client client(server_->access());
  server_->control({{"failures", Json::array({{{"close", true}}, {{"close", true}}})}});
  const Result<Response> response = get(client);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::connection_aborted) << response.error().message;
  EXPECT_TRUE(is_unanswered(response.error()));
}

// The option of each socket of this process that is connected to this port.
std::vector<int> options_to(const std::string& port, int level, int option) {
  std::vector<int> values;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    int value = 0;
    socklen_t length = sizeof(value);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.sin_family == AF_INET &&
        std::to_string(ntohs(peer.sin_port)) == port && ::getsockopt(fd, level, option, &value, &length) == 0) {
      values.push_back(value);
    }
  }
  return values;
}

TEST_F(ClientTest, AConnectionThatWasDroppedSilentlyIsNoticed) {
  Client client(server_->access());
  ASSERT_TRUE(get(client));
  const std::string port = server_->access().port;
  EXPECT_EQ(options_to(port, SOL_SOCKET, SO_KEEPALIVE), std::vector<int>{1});
  EXPECT_EQ(options_to(port, IPPROTO_TCP, TCP_KEEPIDLE), std::vector<int>{30});
  EXPECT_EQ(options_to(port, IPPROTO_TCP, TCP_KEEPINTVL), std::vector<int>{5});
  EXPECT_EQ(options_to(port, IPPROTO_TCP, TCP_USER_TIMEOUT), std::vector<int>{5000});
}

TEST_F(ClientTest, EndsAtItsDeadline) {
  Client client(server_->access());
  ASSERT_TRUE(get(client));
  fail_next({{"hang", 30}});
  const Clock::time_point began = Clock::now();
  const Result<Response> response = get(client, std::chrono::milliseconds(300));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
  EXPECT_TRUE(is_unanswered(response.error()));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
  const Result<Response> next = get(client);
  ASSERT_TRUE(next) << "the next request has a connection of its own";
  EXPECT_EQ(next->status, 200U);
}

TEST_F(ClientTest, EndsWhenItIsCancelled) {
  Client client(server_->access());
  fail_next({{"hang", 30}});
  std::thread canceller([&client] {
    ::usleep(200'000);
    client.cancel();
  });
  const Result<Response> response = get(client);
  canceller.join();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::operation_canceled);
  EXPECT_FALSE(get(client));
}

TEST_F(ClientTest, ReadsRetryAfter) {
  Client client(server_->access());
  fail_next({{"status", 429}, {"retry_after", 7}});
  const Result<Response> response = get(client);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 429U);
  EXPECT_EQ(response->retry_after, std::chrono::seconds(7));
}

TEST_F(ClientTest, SurvivesAnswersThatAreNoneOrTooLong) {
  for (const char* kind : {"garbage", "huge", "head"}) {
    Client client(server_->access());
    ASSERT_TRUE(get(client));
    server_->control({{"failures", Json::array({{{kind, true}}, {{kind, true}}})}});
    const Result<Response> response = get(client);
    ASSERT_FALSE(response) << kind;
    EXPECT_EQ(response.error().message.find('\n'), std::string::npos) << response.error().message;
    EXPECT_TRUE(is_unanswered(response.error())) << kind;
    EXPECT_TRUE(get(client)) << kind;
  }
}

TEST_F(ClientTest, ReadsItsTokenAgainAfter401) {
  const std::string file = server_->path("token");
  Access access = server_->access();
  access.token = "";
  access.token_file = file;
  std::ofstream(file) << "first\n";
  server_->control({{"token", "first"}});
  Client client(access);
  EXPECT_EQ(get(client)->status, 200U);
  std::ofstream(file) << "second\n";
  server_->control({{"token", "second"}});
  EXPECT_EQ(get(client)->status, 401U);
  EXPECT_EQ(get(client)->status, 200U);
  std::filesystem::remove(file);
  EXPECT_EQ(get(client)->status, 200U) << "the one it has is still good";
  Client without(access);
  EXPECT_FALSE(get(without));
  std::ofstream(file) << "two\nlines\n";
  EXPECT_FALSE(get(without)) << "would be another header";
}

TEST_F(ClientTest, SaysWhoIsNotThere) {
  Access access = server_->access();
  access.port = "1";
  Client client(access);
  const Result<Response> response = get(client);
  ASSERT_FALSE(response);
  EXPECT_TRUE(response.error().message.starts_with("API server 127.0.0.1:1: connect: ")) << response.error().message;
  EXPECT_FALSE(is_unanswered(response.error()));
}

TEST_F(ClientTest, RefusesAnAuthorityThatIsNoCertificate) {
  Access access = server_->access();
  access.authority = "nonsense";
  Client client(access);
  EXPECT_FALSE(get(client));
}

}  // namespace
}  // namespace hf::apiserver
