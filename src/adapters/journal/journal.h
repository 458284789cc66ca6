// Journal: blame records on disk: appended, bounded, readable while the daemon is down.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::journal {

// Two files: when the newer one has half of the size it becomes the older one. Readers skip a line that a crash
// cut short.
// Held while a daemon runs: two would write the same records. Fails with the pid of the one that has it.
Result<kernel::Fd> lock_journal(const kernel::Host& host, const std::string& directory);

class Journal {
 public:
  static Result<Journal> open(const kernel::Host& host, const std::string& directory, std::uint64_t size);

  // The records that were on disk when it was opened, the oldest first. They are handed out once.
  std::vector<report::BlameRecord> take_history() { return std::exchange(history_, {}); }

  // Gives the record its number. One write(2) for each: a crash cuts off the last line at most.
  Result<void> append(report::BlameRecord& record);

 private:
  Journal(kernel::Fd directory, std::uint64_t size) : directory_(std::move(directory)), size_(size) {}

  Result<void> open_file();
  Result<void> rotate();

  kernel::Fd directory_;
  kernel::Fd file_;
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t next_ = 1;
  std::vector<report::BlameRecord> history_;
};

// All records on disk, the oldest first; none if the directory does not exist.
struct Kept {
  std::vector<report::BlameRecord> records;
  std::size_t damaged = 0;     // lines that could not be read
  bool has_directory = false;  // no guard has run where there is none
};
Result<Kept> read_journal(const kernel::Host& host, const std::string& directory);

// New records as they are written, from now on.
class Tail {
 public:
  static Result<Tail> open(const kernel::Host& host, const std::string& directory);

  // Waits up to the limit for something new; none if nothing came.
  std::vector<report::BlameRecord> wait(std::chrono::milliseconds limit);

 private:
  Tail(kernel::Fd directory, kernel::Fd inotify) : directory_(std::move(directory)), inotify_(std::move(inotify)) {}

  void open_file(bool at_end);

  kernel::Fd directory_;
  kernel::Fd inotify_;
  kernel::Fd file_;
  std::uint64_t inode_ = 0;
  std::string rest_;  // an incomplete last line
};

}  // namespace hf::journal
