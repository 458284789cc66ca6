// KernelTest: what every test on the real kernel begins with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/device/rule.h"
#include "core/device/table.h"
#include "kernel/bpf_api.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "support/sandbox.h"

namespace hf::test {

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::optional<std::string> why = why_no_kernel_tests()) {
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

  std::optional<kernel::Host> host_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::optional<kernel::Filters> filters_;
};

}  // namespace hf::test
