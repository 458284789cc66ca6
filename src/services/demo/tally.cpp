#include "services/demo/tally.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"

namespace hf::demo {
namespace {

constexpr timespec kPause{0, 100'000};

Result<Counts*> map(const std::string& path, int flags) {
  const kernel::Fd file(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file || ((flags & O_CREAT) != 0 && ::ftruncate(file.get(), sizeof(Counts)) < 0)) {
    return fail_errno(errno, "open " + path);
  }
  void* memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    return fail_errno(errno, "map " + path);
  }
  return static_cast<Counts*>(memory);
}

// Did the cgroup let it through, whatever the driver answered?
bool is_let_through(int error) {
  return error == 0 || error == ENXIO || error == ENODEV || error == EBUSY || error == EIO || error == EAGAIN;
}

class Opener {
 public:
  Opener(Counts& counts, const std::string& node) : counts_(counts), node_(node) {}

  void open_once() {
    const std::uint64_t started = kernel::monotonic_now();
    kernel::Fd file(::open(node_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    const int error = file ? 0 : errno;
    if (file && !first_) {
      first_ = std::move(file);  // as a job does: a GPU that no process holds open is initialised by every open
    }
    counts_.opens.fetch_add(1);
    if (is_let_through(error)) {
      end_outage();
      counts_.last_good_at.store(started);
      return;
    }
    outage_since_ = outage_since_ == 0 ? started : outage_since_;
    counts_.refused.fetch_add(1);
    counts_.error.store(error);
    counts_.last_refused_at.store(started);
  }

 private:
  void end_outage() {
    if (outage_since_ == 0) {
      return;
    }
    const std::uint64_t length = kernel::monotonic_now() - outage_since_;
    outage_since_ = 0;
    counts_.outages.fetch_add(1);
    if (length > counts_.longest_ns.load()) {
      counts_.longest_ns.store(length);
    }
  }

  Counts& counts_;
  const std::string& node_;
  kernel::Fd first_;
  std::uint64_t outage_since_ = 0;
};

}  // namespace

Result<Tally> Tally::create(const std::string& path) { return Tally(TRY(map(path, O_CREAT | O_EXCL))); }

Result<Tally> Tally::open(const std::string& path) { return Tally(TRY(map(path, 0))); }

Tally::Tally(Tally&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)) {}

Tally::~Tally() {
  if (counts_ != nullptr) {
    ::munmap(counts_, sizeof(Counts));
  }
}

report::Opens Tally::read() const {
  return {counts_->opens.load(), counts_->refused.load(), counts_->outages.load(), counts_->longest_ns.load()};
}

void Tally::reset() const {
  counts_->opens.store(0);
  counts_->refused.store(0);
  counts_->outages.store(0);
  counts_->longest_ns.store(0);
}

int open_again_and_again(const std::string& tally, const std::string& node) {
  const Result<Tally> opened = Tally::open(tally);
  if (!opened) {
    return 2;
  }
  ::prctl(PR_SET_NAME, "gpu-job");
  ::prctl(PR_SET_TIMERSLACK, 1);
  Opener opener(opened->counts(), node);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (::ppoll(&input, 1, &kPause, nullptr) == 0) {
    opener.open_once();
  }
  return 0;
}

}  // namespace hf::demo
