#include "services/doctor/checks.h"

#include <set>

#include <gtest/gtest.h>

#include "render/finding.h"
#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using container::AccessFailure;
using container::State;
using doctor::Findings;
using report::Finding;

std::vector<ContainerCase> container_cases() {
  return concatenate({denied_cases(), node_cases(), filter_cases(), evidence_cases(), risk_cases()});
}

std::vector<HostCase> host_cases() { return concatenate({driver_cases(), host_file_cases()}); }

std::vector<std::string> codes_of(const Findings& findings) {
  std::vector<std::string> codes;
  for (const Finding& finding : findings) {
    codes.push_back(finding.code);
  }
  return codes;
}

std::optional<Found> nodes_with_code(const Findings& findings, const std::string& code) {
  std::optional<Found> nodes;
  for (const Finding& finding : findings) {
    if (finding.code == code) {
      nodes = nodes.value_or(Found());
      nodes->insert(nodes->end(), finding.nodes.begin(), finding.nodes.end());
    }
  }
  return nodes;
}

TEST(Checks, FindNothingWhereAllIsWell) {
  const ContainerScene scene;
  const doctor::ContainerDiagnosis diagnosis = doctor::check_container(scene.host, scene.facts);
  EXPECT_EQ(codes_of(diagnosis.findings), std::vector<std::string>());
  EXPECT_EQ(diagnosis.state, State::ok);
  EXPECT_EQ(codes_of(doctor::check_host(scene.host, {})), std::vector<std::string>());
}

TEST(Checks, FindInAContainerWhatIsWrongWithIt) {
  for (const ContainerCase& one : container_cases()) {
    ContainerScene scene;
    one.arrange(scene);
    const Findings findings = doctor::check_container(scene.host, scene.facts).findings;
    EXPECT_EQ(nodes_with_code(findings, one.code), one.found)
        << one.code << " " << one.name << report::render_text(findings);
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.subject, title_of(scene.container())) << one.name;
      EXPECT_EQ(finding.container, "0123456789abcdef") << one.name;
    }
  }
}

TEST(Checks, FindOnTheHostWhatIsWrongWithIt) {
  for (const HostCase& one : host_cases()) {
    HostScene scene;
    one.arrange(scene);
    const Findings findings = doctor::check_host(scene.host, scene.census);
    EXPECT_EQ(nodes_with_code(findings, one.code), one.found)
        << one.code << " " << one.name << report::render_text(findings);
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.subject, "host") << one.name;
      EXPECT_EQ(finding.container, "") << one.name;
    }
  }
}

TEST(Checks, HaveForEveryDocumentedCodeACaseThatFindsItAndOneThatDoesNot) {
  std::set<std::string> found;
  std::set<std::string> not_found;
  for (const ContainerCase& one : container_cases()) {
    (one.found ? found : not_found).insert(one.code);
  }
  for (const HostCase& one : host_cases()) {
    (one.found ? found : not_found).insert(one.code);
  }
  const std::vector<std::string> codes = report::codes_with_pages();
  EXPECT_EQ(found, std::set(codes.begin(), codes.end()));
  EXPECT_EQ(not_found, found);
}

TEST(Checks, AContainerWhoseAllocatedDeviceIsGoneHasLostIt) {
  ContainerScene scene;
  scene.put_in_pod();
  scene.facts.nodes.clear();
  scene.facts.entitlement.nodes.clear();
  EXPECT_EQ(doctor::check_container(scene.host, scene.facts).state, State::not_owed);
  scene.host.sources.checkpoint->allocations = {{"uid-1", "main", "nvidia.com/gpu", {"GPU-gone"}, {}, {}, {}}};
  EXPECT_EQ(doctor::check_container(scene.host, scene.facts).state, State::lost);
}

TEST(Checks, AContainerThatWillLoseADeviceIsAtRiskUnlessAShieldHoldsItOpen) {
  ContainerScene scene;
  scene.put_in_unit(table({"c 195:255 rw"}));
  EXPECT_EQ(doctor::check_container(scene.host, scene.facts).state, State::at_risk);
  container::Gate shield = program_gate(11, "/docker", device::Table::everything());
  shield.is_own = false;
  shield.shield.emplace();
  for (const container::OwedNode& owed : scene.facts.entitlement.nodes) {
    shield.shield->entries.push_back({*owed.device, owed.access, 0, 0});
  }
  scene.facts.observed.gates.push_back(shield);
  const doctor::ContainerDiagnosis diagnosis = doctor::check_container(scene.host, scene.facts);
  EXPECT_TRUE(diagnosis.shield.is_on) << diagnosis.shield.why;
  EXPECT_EQ(diagnosis.state, State::ok);
  EXPECT_EQ(codes_of(diagnosis.findings), std::vector<std::string>{"HF-201"});
}

TEST(Checks, ListCodesInAFixedOrder) {
  ContainerScene scene;
  scene.facts.ledger_problem = "damaged";
  scene.facts.entitlement.refused = {{container::Source::environment, "env", {}, {}, {}, false, "no hook"},
                                     {container::Source::cdi, "annotation", {}, {}, {}, false, "no proof"}};
  scene.fail("/dev/nvidia0", AccessFailure::busy);
  EXPECT_EQ(codes_of(doctor::check_container(scene.host, scene.facts).findings),
            (std::vector<std::string>{"HF-114", "HF-129", "HF-125", "HF-126"}));
}

}  // namespace
}  // namespace hf::test
