// Journal: blame records on disk: appended, bounded, readable while the daemon is down.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/fd.h"
#include "kernel/host.h"

namespace hf::journal {

// Two files: when the newer one has half of the size it becomes the older one. A line that was cut short by a crash is
// passed over by readers.
class Journal {
 public:
  static Result<Journal> open(const kernel::Host& host, const std::string& folder, std::uint64_t size);

  // Gives the record its number. One write(2) for each: a crash cuts off the last line at most.
  Result<void> append(report::BlameRecord& record);

 private:
  Journal(kernel::Fd folder, std::uint64_t size) : folder_(std::move(folder)), size_(size) {}

  Result<void> open_file();
  Result<void> turn_over();

  kernel::Fd folder_;
  kernel::Fd file_;
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t next_ = 1;
};

// All that is kept, the oldest first; absent folders have none.
struct Kept {
  std::vector<report::BlameRecord> records;
  std::size_t damaged = 0;  // lines that could not be read
};
Result<Kept> read_journal(const kernel::Host& host, const std::string& folder);

// New records as they are written, from now on.
class Tail {
 public:
  static Result<Tail> open(const kernel::Host& host, const std::string& folder);

  // Waits up to the limit for something new; none where nothing came.
  std::vector<report::BlameRecord> wait(std::chrono::milliseconds limit);

 private:
  Tail(kernel::Fd folder, kernel::Fd news) : folder_(std::move(folder)), news_(std::move(news)) {}

  void open_file(bool at_end);

  kernel::Fd folder_;
  kernel::Fd news_;  // inotify
  kernel::Fd file_;
  std::uint64_t inode_ = 0;
  std::string rest_;  // of a line that is not whole yet
};

}  // namespace hf::journal
