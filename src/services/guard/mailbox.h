// Mailbox: work handed from one thread to another, in order. Whoever waits can wait for a descriptor.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "kernel/fd.h"

namespace hf::guard {

class Mailbox {
 public:
  using Letter = std::function<void()>;

  Mailbox();

  void post(Letter letter);  // never waits for the reader
  std::vector<Letter> take();
  [[nodiscard]] int descriptor() const { return bell_.get(); }  // readable when there is something

 private:
  kernel::Fd bell_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
};

}  // namespace hf::guard
