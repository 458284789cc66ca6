// A guard on a fake kernel and with a fake clock, and one container that is owed a GPU.
#pragma once

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "services/guard/guard.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::guard {

using container::Event;
using container::EventKind;
using device::Table;
using report::Action;

inline constexpr std::uint64_t kMillisecond = 1'000'000;
inline constexpr const char* kStat = " (app) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n";

inline bpf::Code code_for(std::initializer_list<const char*> lines) {
  device::RuleSet rules;
  for (const char* line : lines) {
    rules.push_back(*device::parse_rule(line));
  }
  return *bpf::generate(Table::of_rules(rules));
}

class GuardTest : public testing::Test {
 protected:
  GuardTest() { open_guard(); }

  // Opens what a new daemon opens, on the same kernel.
  void open_guard() {
    guard_.reset();
    filters_.emplace(host_, bpf_);
    Result<kernel::Shield> shield = kernel::Shield::open(host_, *filters_);
    shielding_.emplace(shield ? std::optional(*std::move(shield)) : std::nullopt, shield ? "" : shield.error().message);
    Guard::Callbacks callbacks;
    callbacks.report_visit = [this](VisitResult result) { results_.push_back(std::move(result)); };
    callbacks.report_shield = [this](const ShieldReport& report) { shield_ = report.state; };
    callbacks.watch = [](const auto&, const auto&) { return std::nullopt; };
    callbacks.unwatch = [](const auto&) {};
    callbacks.clock = [this] { return now_; };
    guard_.emplace(*filters_, *shielding_, std::move(callbacks));
  }

  static container::OwedNode owed_node(const char* path, device::Device device) {
    container::OwedNode node;
    node.path = path;
    node.device = device;
    node.device_class = "nvidia";
    node.access = device::Access::read | device::Access::write;
    return node;
  }

  GuardedContainerPtr guarded(std::vector<container::OwedNode> nodes, std::int32_t pid = 100,
                              const char* cgroup = "/pod/c") {
    auto guarded = std::make_shared<GuardedContainer>();
    guarded->container.id.value = cgroup;
    guarded->container.init = {pid};
    guarded->container.started_ticks = 5000;
    guarded->container.cgroup = cgroup;
    guarded->container.v2 = cgroup;
    container::Entitlement owed;
    owed.nodes = std::move(nodes);
    guarded->owed = owed;
    guarded->healed = guarded->owed;
    guarded->handle =
        std::make_shared<const kernel::ContainerHandle>(*kernel::ContainerHandle::open(host_, guarded->container));
    return guarded;
  }
  GuardedContainerPtr gpu() { return guarded({owed_node("/dev/nvidia0", {device::Kind::character, 195, 0})}); }

  GuardedContainerPtr gpu_with_helper() {
    container::OwedNode helper = owed_node("/dev/nvidia-uvm", {device::Kind::character, 511, 0});
    helper.is_completion = true;
    return guarded({owed_node("/dev/nvidia0", {device::Kind::character, 195, 0}), helper});
  }

  bool can_open(const char* question, const char* cgroup = "/pod/c") {
    const kernel::CgroupsOfProcess own = *kernel::open_cgroups_at(host_, cgroup);
    const kernel::Cgroup parent = *kernel::open_parent(*own.v2);
    const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
    return bpf_.allows({&*own.v2, &parent, &root}, *device::parse_request(question));
  }

  void attach(const kernel::CgroupsOfProcess& cgroups, std::initializer_list<const char*> lines) {
    bpf_.add(*cgroups.v2, code_for(lines), "", 0);
  }
  void send_event(const kernel::CgroupsOfProcess& cgroups, EventKind kind = EventKind::attach) {
    Event event;
    event.kind = kind;
    event.cgroup = cgroups.v2->id;
    event.at = now_;
    event.writer.pid = {7};
    event.writer.name = "runc";
    now_ += kMillisecond;
    guard_->act_on(event);
  }

  test::FakeHost machine_{test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"},
                                      {"cg/pod/c/cgroup.procs", "100\n"},
                                      {"cg/pod/c/nested/", ""},
                                      {"cg/pod/sibling/", ""},
                                      {"cg/alone/cgroup.procs", "101\n"},
                                      {"proc/100/stat", std::string("100") + kStat},
                                      {"proc/100/cgroup", "0::/pod/c\n"},
                                      {"proc/101/stat", std::string("101") + kStat},
                                      {"proc/101/cgroup", "0::/alone\n"}}};
  kernel::Host host_ = machine_.open();
  test::FakeBpf bpf_;
  kernel::CgroupsOfProcess own_ = *kernel::open_cgroups_at(host_, "/pod/c");
  kernel::CgroupsOfProcess pod_ = *kernel::open_cgroups_at(host_, "/pod");
  std::optional<kernel::Filters> filters_;
  std::optional<Shielding> shielding_;
  std::optional<Guard> guard_;
  std::vector<VisitResult> results_;
  ShieldState shield_;
  std::uint64_t now_ = 1'000 * kMillisecond;
};

}  // namespace hf::guard
