#include <cerrno>

#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using container::Claim;
using container::Source;

Claim refused(Source source) {
  Claim claim;
  claim.source = source;
  claim.where = "somewhere";
  claim.nodes = {{"/dev/nvidia1", std::nullopt}};
  claim.refused = "nothing confirms it";
  return claim;
}

void see_second_gpu(ContainerScene& scene, std::optional<int> access_error) {
  container::NodeView seen;
  seen.path = "/dev/nvidia1";
  seen.access = access_error;
  scene.facts.not_owed = {seen};
}

void allocate(ContainerScene& scene, const char* resource, const char* id) {
  scene.put_in_pod();
  scene.host.sources.checkpoint->allocations = {{"uid-1", "main", resource, {id}, {}, {}, {}}};
}

std::vector<ContainerCase> request_cases() {
  return {
      {"HF-125", "an annotation that names a CDI device", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) { scene.facts.entitlement.refused = {refused(Source::cdi)}; }},
      {"HF-125", "the environment of an image in a pod", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) {
         scene.put_in_pod();
         scene.facts.entitlement.refused = {refused(Source::environment)};
       }},
      {"HF-125", "a node in the bundle without a rule", kNotFound,
       [](ContainerScene& scene) { scene.facts.entitlement.refused = {refused(Source::oci)}; }},
      {"HF-125", "a node in the bundle of a container within a container", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) {
         scene.container().inside = container::ContainerId{"outer"};
         scene.facts.entitlement.refused = {refused(Source::oci)};
       }},

      {"HF-126", "an environment without a hook", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) { scene.facts.entitlement.refused = {refused(Source::environment)}; }},
      {"HF-126", "an environment in a pod, which HF-125 reports", kNotFound,
       [](ContainerScene& scene) {
         scene.put_in_pod();
         scene.facts.entitlement.refused = {refused(Source::environment)};
       }},

      {"HF-127", "a node of another GPU that it cannot open", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) { see_second_gpu(scene, EPERM); }},
      {"HF-127", "a node of another GPU that it can open", kNotFound,
       [](ContainerScene& scene) { see_second_gpu(scene, 0); }},
      {"HF-127", "a node of another GPU that was not probed", kNotFound,
       [](ContainerScene& scene) { see_second_gpu(scene, std::nullopt); }},
  };
}

std::vector<ContainerCase> record_cases() {
  return {
      {"HF-128", "a GPU that was taken out", Found{},
       [](ContainerScene& scene) { allocate(scene, "nvidia.com/gpu", "GPU-gone"); }},
      {"HF-128", "a GPU that is there", kNotFound,
       [](ContainerScene& scene) { allocate(scene, "nvidia.com/gpu", "GPU-1"); }},
      {"HF-128", "a device of another vendor", kNotFound,
       [](ContainerScene& scene) { allocate(scene, "amd.com/gpu", "gone"); }},
      {"HF-128", "a GPU that was allocated to another container", kNotFound,
       [](ContainerScene& scene) {
         allocate(scene, "nvidia.com/gpu", "GPU-gone");
         scene.host.sources.checkpoint->allocations.front().container = "sidecar";
       }},
      {"HF-128", "a MIG device, and the library was not asked", kNotFound,
       [](ContainerScene& scene) { allocate(scene, "nvidia.com/mig-1g.5gb", "MIG-gone"); }},
      {"HF-128", "a MIG device that the library does not know", Found{},
       [](ContainerScene& scene) {
         allocate(scene, "nvidia.com/mig-1g.5gb", "MIG-gone");
         scene.host.inventory.states.front().library_version = "550.54.15";
       }},

      {"HF-129", "a bundle that others can write", Found{},
       [](ContainerScene& scene) {
         scene.discovered.spec.reset();
         scene.discovered.spec_problem = "others can write to it";
       }},
      {"HF-129", "no bundle", kNotFound,
       [](ContainerScene& scene) {
         scene.discovered.spec.reset();
         scene.discovered.spec_problem = "no monitor process";
         scene.container().bundle.reset();
       }},
      {"HF-129", "an entry of the ledger that others can write", Found{},
       [](ContainerScene& scene) { scene.facts.ledger_problem = "others can write to it"; }},
  };
}

}  // namespace

std::vector<ContainerCase> evidence_cases() { return concatenate({request_cases(), record_cases()}); }

}  // namespace hf::test
