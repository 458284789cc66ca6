// ExchangeNote: what is to be done should we be killed while a cgroup is frozen and has no filter.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate.h"
#include "kernel/cgroup.h"
#include "kernel/filters.h"
#include "kernel/host.h"

namespace hf::kernel {

// There as long as the exchange lasts; it goes away with the object, unless it is told to stay.
class ExchangeNote {
 public:
  // Before the cgroup is frozen: this program is to be attached in this way.
  static Result<ExchangeNote> write(const Host& host, const Cgroup& cgroup, container::Attachment wanted,
                                    const bpf::Code& code);

  ExchangeNote(ExchangeNote&& other) noexcept;
  ExchangeNote& operator=(ExchangeNote&&) = delete;
  ExchangeNote(const ExchangeNote&) = delete;
  ExchangeNote& operator=(const ExchangeNote&) = delete;
  ~ExchangeNote();

  // The cgroup stays frozen, and nobody is at work on it any more: the next `finish_exchanges` ends it, ours included.
  void stay();

 private:
  ExchangeNote(const Host& host, std::string path, std::string unattended)
      : host_(&host), path_(std::move(path)), unattended_(std::move(unattended)) {}

  const Host* host_;
  std::string path_;
  std::string unattended_;  // the same note, without a writer
};

// Ends what those who were killed began: the program is attached where there is none, and the cgroup runs on. One line
// for each.
std::vector<std::string> finish_exchanges(const Host& host, Filters& filters);

}  // namespace hf::kernel
