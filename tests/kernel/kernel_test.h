// KernelTest: the base class of tests on the real kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/device/rule.h"
#include "core/device/table.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"
#include "support/sandbox.h"

namespace hf::test {

class KernelTest : public testing::Test {
 protected:
  explicit KernelTest(Needs needs = Needs::both) : needs_(needs) {}

  void SetUp() override {
    if (const std::optional<std::string> why = why_no_kernel_tests(needs_)) {
      GTEST_SKIP() << *why;
    }
    host_ = *kernel::open_host();
    bpf_ = kernel::open_kernel_bpf();
    filters_.emplace(*host_, *bpf_);
  }

  static device::RuleSet rules(std::initializer_list<const char*> lines) {
    device::RuleSet set;
    for (const char* line : lines) {
      set.push_back(*device::parse_rule(line));
    }
    return set;
  }
  static device::Table table(std::initializer_list<const char*> lines) { return device::Table::of_rules(rules(lines)); }

  const Needs needs_;
  std::optional<kernel::Host> host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::optional<kernel::Filters> filters_;
};

}  // namespace hf::test
