#include "services/demo/guard_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"
#include "render/blame.h"

namespace hf::demo {
namespace {

using std::chrono::milliseconds;

constexpr const char* kName = "holdfastd";
constexpr milliseconds kReadyLimit{30'000};
constexpr milliseconds kEndLimit{5'000};

Result<kernel::Fd> listen_at(const std::string& path) {
  kernel::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(std::errc::filename_too_long, "listen at " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  // The sockets API takes every family by this type.
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) {  // NOLINT
    return fail_errno(errno, "listen at " + path);
  }
  return socket;
}

}  // namespace

std::string find_daemon() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path directory = self.parent_path();
  for (const std::filesystem::path& place :
       {directory / kName, directory.parent_path() / kName / kName, directory.parent_path() / "sbin" / kName}) {
    if (std::filesystem::is_regular_file(place, error) && ::access(place.c_str(), X_OK) == 0) {
      return place;
    }
  }
  return kernel::find_program(kName);
}

std::string guard_config(const std::vector<std::string>& containers) {
  std::string text = "guard:\n  mode: observe\n  rules:\n";
  for (const std::string& container : containers) {
    text += "    - {container: \"" + container + "\", mode: heal}\n";
  }
  return text + "journal: {megabytes: 256}\nweb: {listen: none, socket: none}\n";
}

Result<GuardProcess> GuardProcess::start(const std::string& program, const std::string& directory,
                                         const std::vector<std::string>& containers) {
  const std::string config = directory + "/config.yaml";
  const std::string journal = directory + "/journal";
  if (::mkdir(journal.c_str(), 0700) < 0) {
    return fail_errno(errno, "make " + journal);
  }
  std::ofstream(config) << guard_config(containers);
  kernel::Fd readiness = TRY(listen_at(directory + "/ready"));
  kernel::Command command;
  command.arguments = {program, "--config", config, "--journal", journal};
  command.environment = {"NOTIFY_SOCKET=" + directory + "/ready"};
  return GuardProcess(TRY(kernel::Running::start(command)), std::move(readiness), journal);
}

Result<void> GuardProcess::wait_until_ready(Interrupts& interrupts) {
  constexpr milliseconds kStep{5};
  const auto deadline = std::chrono::steady_clock::now() + kReadyLimit;
  std::array<char, 4096> message{};
  while (interrupts.pause(kStep)) {
    const ssize_t count = ::recv(readiness_.get(), message.data(), message.size(), 0);
    if (count > 0 && std::string_view(message.data(), std::size_t(count)).find("READY=1") != std::string_view::npos) {
      return {};
    }
    if (!is_alive() || std::chrono::steady_clock::now() > deadline) {
      return fail(std::errc::timed_out, "the guard does not come up: " + last_output_line());
    }
  }
  return fail(std::errc::interrupted, "interrupted");
}

std::vector<report::BlameRecord> GuardProcess::take_records() {
  std::vector<report::BlameRecord> records;
  if (!file_) {
    file_ = kernel::Fd(::open((journal_ + "/blame.jsonl").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  }
  std::array<char, 65536> buffer{};
  for (ssize_t count = 1; file_ && count > 0;) {
    count = ::read(file_.get(), buffer.data(), buffer.size());
    rest_.append(buffer.data(), count > 0 ? std::size_t(count) : 0);
  }
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
    Result<report::BlameRecord> record = report::parse_blame_record(std::string_view(rest_).substr(0, end));
    if (record) {
      records.push_back(*std::move(record));
    }
    rest_.erase(0, end + 1);
  }
  return records;
}

std::string GuardProcess::watching() const {
  constexpr std::string_view kPrefix = " watching ";
  const std::string output = running_.output();
  const std::size_t start = output.find(kPrefix);
  return start == std::string::npos
             ? ""
             : output.substr(start + kPrefix.size(), output.find('\n', start) - start - kPrefix.size());
}

std::string GuardProcess::last_output_line() const {
  const std::string output = running_.output();
  const std::string_view trimmed = trim(output);
  return std::string(trimmed.substr(trimmed.rfind('\n') + 1));
}

void GuardProcess::end() {
  running_.signal(SIGTERM);
  if (!running_.ends_within(kEndLimit)) {
    running_.signal(SIGKILL);
    running_.ends_within(kEndLimit);
  }
  // Its status file stays behind where it was killed: removed unless another guard has written it since.
  const Result<std::string> text = kernel::read_regular_file(journal::kStatusFile);
  const Result<journal::Status> status =
      text ? journal::parse_status(*text) : Result<journal::Status>(std::unexpected(text.error()));
  if (status && status->program.pid == running_.pid()) {
    ::unlink(journal::kStatusFile);
  }
}

}  // namespace hf::demo
