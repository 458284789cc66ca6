// The fixture of the tests of rules: a process in a cgroup of v2, whose filters are in memory.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "services/rules/inspect.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::rules {

class NoProber final : public kernel::NodeProber {
 public:
  Result<std::vector<container::NodeView>> probe(const kernel::ProbeRequest& /*request*/) override {
    return fail(std::errc::not_supported, "probe");
  }
  Result<std::vector<container::NodeView>> look_up(const kernel::ProbeRequest& request) override {
    return probe(request);
  }
};

class RulesTest : public testing::Test {
 protected:
  void attach(const char* path, std::initializer_list<const char*> lines) {
    device::RuleSet rules;
    for (const char* line : lines) {
      rules.push_back(*device::parse_rule(line));
    }
    const kernel::CgroupsOfProcess cgroups = *kernel::open_cgroups_at(host_, path);
    bpf_.add(*cgroups.v2, *bpf::generate(device::Table::of_rules(rules)), "", 0);
  }

  Result<Inspection> inspect(const std::string& target) {
    return Inspection::open(opener_, {target, *parse_target(target)});
  }

  container::Answer ask(const char* question, const std::string& target = "pid:100") {
    Result<Inspection> inspection = inspect(target);
    EXPECT_TRUE(inspection) << inspection.error().message;
    return inspection ? inspection->ask(*device::parse_request(question)) : container::Answer();
  }

  test::FakeHost files_{
      test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"},
                  {"cg/pod/c/cgroup.procs", "100\n"},
                  {"proc/100/stat", "100 (app) S 1 100 100 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1\n"},
                  {"proc/100/cgroup", "0::/pod/c\n"}}};
  kernel::Host host_ = files_.open();
  test::FakeBpf bpf_;
  kernel::Filters filters_{host_, bpf_};
  NoProber prober_;
  host::HostOpener opener_{host::OpenHost{host_, filters_, prober_}};
};

}  // namespace hf::rules
