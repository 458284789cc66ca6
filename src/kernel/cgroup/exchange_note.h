// ExchangeNote: a record of what must be done if this process is killed while a cgroup is frozen and has no filter.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// The file exists as long as the exchange lasts. It is removed with this object, unless stay() was called.
class ExchangeNote {
 public:
  // Must be called before the cgroup is frozen. Records which program is to be attached, and in which way.
  static Result<ExchangeNote> write(const Host& host, const Cgroup& cgroup, container::Attachment wanted,
                                    const bpf::Code& code);

  ExchangeNote(ExchangeNote&& other) noexcept;
  ExchangeNote& operator=(ExchangeNote&&) = delete;
  ExchangeNote(const ExchangeNote&) = delete;
  ExchangeNote& operator=(const ExchangeNote&) = delete;
  ~ExchangeNote();

  // Keeps the file, without a writer: the cgroup stays frozen until the next `finish_exchanges`, of any process.
  void stay();

 private:
  ExchangeNote(const Host& host, std::string path, std::string unattended)
      : host_(&host), path_(std::move(path)), unattended_(std::move(unattended)) {}

  const Host* host_;
  std::string path_;
  std::string unattended_;  // the same note, without a writer
};

// Completes the exchanges of processes that were killed: attaches the program where there is none and thaws the cgroup.
// Returns one line for each.
std::vector<std::string> finish_exchanges(const Host& host, Filters& filters);

}  // namespace hf::kernel
