#include "adapters/journal/journal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/journal/run_file.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "render/blame.h"

namespace hf::journal {
namespace {

constexpr const char* kNewer = "blame.jsonl";
constexpr const char* kOlder = "blame.1.jsonl";
constexpr std::uint64_t kMostRead = std::uint64_t(4) << 30U;

Result<std::string> read_whole(int directory, const char* name) {
  const kernel::Fd file(::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!file && errno == ENOENT) {
    return std::string();
  }
  if (!file || ::fstat(file.get(), &status) < 0) {
    return fail_errno(errno, std::string("open ") + name);
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & 022U) != 0 ||
      std::uint64_t(status.st_size) > kMostRead) {
    return fail(std::errc::permission_denied, std::string(name) + ": not a regular file that only root may write");
  }
  std::string text(std::size_t(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::pread(file.get(), text.data() + done, text.size() - done, off_t(done));
    if (count <= 0) {
      break;
    }
    done += std::size_t(count);
  }
  text.resize(done);
  return text;
}

void parse_lines(const std::string& text, Kept& kept) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) {
      continue;
    }
    Result<report::BlameRecord> record = report::parse_blame_record(line);
    if (record) {
      kept.records.push_back(*std::move(record));
    } else {
      ++kept.damaged;
    }
  }
}

Result<Kept> read_directory(int directory) {
  Kept kept;
  kept.has_directory = true;
  parse_lines(TRY(read_whole(directory, kOlder)), kept);
  parse_lines(TRY(read_whole(directory, kNewer)), kept);
  return kept;
}

}  // namespace

namespace {

// Creates it where it does not exist.
Result<kernel::Fd> open_journal_directory(const kernel::Host& host, const std::string& directory) {
  const std::string path = kernel::below_root(directory);
  std::string created;
  for (const std::string_view part : split(path, '/')) {
    created += (created.empty() ? "" : "/") + std::string(part);
    if (::mkdirat(host.root.get(), created.c_str(), created == path ? 0700 : 0755) < 0 && errno != EEXIST) {
      return fail_errno(errno, "make " + directory);
    }
  }
  kernel::Fd opened = TRY(kernel::open_plain_directory(host.root.get(), path));
  if (!kernel::is_trusted_directory(opened.get())) {
    return fail(std::errc::permission_denied, directory + ": others than root may write there");
  }
  return opened;
}

}  // namespace

Result<kernel::Fd> lock_journal(const kernel::Host& host, const std::string& directory) {
  const kernel::Fd opened = TRY(open_journal_directory(host, directory));
  Result<kernel::Fd> file = lock_file(opened.get(), "lock", "holdfastd");
  return file ? std::move(file) : fail(file.error().code, file.error().message + " with the journal " + directory);
}

Result<Journal> Journal::open(const kernel::Host& host, const std::string& directory, std::uint64_t size) {
  Journal journal(TRY(open_journal_directory(host, directory)), size);
  Kept kept = TRY(read_directory(journal.directory_.get()));
  for (const report::BlameRecord& record : kept.records) {
    journal.next_ = std::max(journal.next_, record.number + 1);
  }
  journal.history_ = std::move(kept.records);
  TRY(journal.open_file());
  return journal;
}

Result<void> Journal::open_file() {
  file_ = kernel::Fd(::openat(directory_.get(), kNewer, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat status{};
  if (!file_ || ::fstat(file_.get(), &status) < 0) {
    return fail_errno(errno, std::string("open ") + kNewer);
  }
  written_ = std::uint64_t(status.st_size);
  char last = '\n';
  if (written_ > 0) {  // a line that a crash cut short must not swallow the next one
    const kernel::Fd reader(::openat(directory_.get(), kNewer, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const bool is_cut = ::pread(reader.get(), &last, 1, off_t(written_ - 1)) == 1 && last != '\n';
    (void)(is_cut && ::write(file_.get(), "\n", 1) == 1);  // a full disk is noticed with the next record
  }
  return {};
}

Result<void> Journal::rotate() {
  if (::renameat(directory_.get(), kNewer, directory_.get(), kOlder) < 0) {
    return fail_errno(errno, std::string("rename ") + kNewer);
  }
  return open_file();
}

Result<void> Journal::append(report::BlameRecord& record) {
  if (written_ > size_ / 2) {
    TRY(rotate());
  }
  record.number = next_++;
  const std::string line = render_line(record) + "\n";
  const ssize_t count = ::write(file_.get(), line.data(), line.size());
  written_ += count > 0 ? std::uint64_t(count) : 0;
  if (count != ssize_t(line.size())) {
    return fail_errno(count < 0 ? errno : ENOSPC, std::string("write ") + kNewer);
  }
  return {};
}

Result<Kept> read_journal(const kernel::Host& host, const std::string& directory) {
  const Result<kernel::Fd> opened = kernel::open_plain_directory(host.root.get(), kernel::below_root(directory));
  if (!opened) {
    return opened.error().code == std::errc::no_such_file_or_directory ? Result<Kept>(Kept())
                                                                       : std::unexpected(opened.error());
  }
  return read_directory(opened->get());
}

Result<Tail> Tail::open(const kernel::Host& host, const std::string& directory) {
  Result<kernel::Fd> opened = kernel::open_plain_directory(host.root.get(), kernel::below_root(directory));
  if (!opened) {
    return fail(opened.error().code, opened.error().message + " (did holdfastd ever run here?)");
  }
  kernel::Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string through = "/proc/self/fd/" + std::to_string(opened->get());
  if (!inotify || ::inotify_add_watch(inotify.get(), through.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
    return fail_errno(errno, "watch " + directory);
  }
  Tail tail(*std::move(opened), std::move(inotify));
  tail.open_file(true);
  return tail;
}

void Tail::open_file(bool at_end) {
  file_ = kernel::Fd(::openat(directory_.get(), kNewer, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  inode_ = file_ && ::fstat(file_.get(), &status) == 0 ? status.st_ino : 0;
  if (file_ && at_end) {
    (void)::lseek(file_.get(), 0, SEEK_END);
  }
}

std::vector<report::BlameRecord> Tail::wait(std::chrono::milliseconds limit) {
  pollfd waiting{inotify_.get(), POLLIN, 0};
  (void)::poll(&waiting, 1, int(limit.count()));
  std::array<char, 65536> buffer{};
  while (::read(inotify_.get(), buffer.data(), buffer.size()) > 0) {
  }
  Kept kept;
  for (int turn = 0; turn < 2; ++turn) {  // the rest of the old file, then its successor
    for (ssize_t count = 0; file_ && (count = ::read(file_.get(), buffer.data(), buffer.size())) > 0;) {
      rest_.append(buffer.data(), std::size_t(count));
    }
    struct stat status{};
    if (::fstatat(directory_.get(), kNewer, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_ino == inode_) {
      break;
    }
    open_file(false);
  }
  const std::size_t end = rest_.rfind('\n');
  if (end != std::string::npos) {
    parse_lines(rest_.substr(0, end), kept);
    rest_.erase(0, end + 1);
  }
  return std::move(kept.records);
}

}  // namespace hf::journal
