#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using container::AccessFailure;
using container::Gate;
using container::Mount;
using device::Access;
using report::Severity;

constexpr const char* kGpu = "/dev/nvidia0";

void attach_programs(ContainerScene& scene, const std::string& cgroup, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    scene.facts.observed.gates.push_back(program_gate(100 + i, cgroup, scene.facts.spec_table));
  }
}

// A filter that denies writing alone, and thereby lets O_RDWR through.
device::Table with_slip() {
  const device::Box reads{device::Kind::character, {195, 195}, {0, 0}, device::AccessSet::exactly(Access::read)};
  const device::Box both{
      device::Kind::character, {195, 195}, {0, 0}, device::AccessSet::exactly(Access::read | Access::write)};
  return device::Table::of_boxes(std::vector{reads, both});
}

void allow_by_crun(ContainerScene& scene, const char* entry) {
  scene.put_in_unit(scene.facts.spec_table);
  scene.container().runtime->name = "crun";
  scene.facts.unit->allow = {entry};
}

void pin_program(ContainerScene& scene) {
  scene.put_in_unit(scene.facts.spec_table);
  scene.facts.unit->pinned = {"/sys/fs/bpf/crun/web"};
}

void mount(ContainerScene& scene, const char* point, const char* root) {
  scene.facts.mounts.push_back(Mount{point, root, "ext4", "/dev/sda1"});
}

std::vector<ContainerCase> place_cases() {
  return {
      {"HF-117", "systemd moved it to the slice above", Found{},
       [](ContainerScene& scene) { scene.container().v1["devices"] = "/docker"; }},
      {"HF-117", "systemd moved it to the slice above, which denies the GPU", Found{kGpu},
       [](ContainerScene& scene) {
         scene.container().v1["devices"] = "/docker";
         scene.fail(kGpu, AccessFailure::cgroup_denies);
       }},
      {"HF-117", "it moved itself to a cgroup below its own", kNotFound,
       [](ContainerScene& scene) { scene.container().v1["devices"] = "/docker/web/init"; }},
      {"HF-117", "a hierarchy without cgroups", kNotFound,
       [](ContainerScene& scene) { scene.container().v1["devices"] = "/"; }},

      {"HF-118", "sixty programs", Found{}, [](ContainerScene& scene) { attach_programs(scene, "/docker/web", 59); }},
      {"HF-118", "59 programs", kNotFound, [](ContainerScene& scene) { attach_programs(scene, "/docker/web", 58); }},
      {"HF-118", "sixty programs on two cgroups", kNotFound,
       [](ContainerScene& scene) {
         attach_programs(scene, "/docker/web", 30);
         attach_programs(scene, "/docker", 29);
       }},
      {"HF-118", "programs on two cgroups whose names look alike when printed", kNotFound,
       [](ContainerScene& scene) {
         attach_programs(scene, "/docker/web", 30);
         attach_programs(scene, "/docker", 29);
         for (Gate& gate : scene.facts.observed.gates) {
           gate.where = "/sys/fs/cgroup/?";
         }
       }},

      {"HF-119", "writing alone is denied", Found{}, [](ContainerScene& scene) { scene.gate().meaning = with_slip(); }},
      {"HF-119", "writing alone is denied above the container", kNotFound,
       [](ContainerScene& scene) {
         scene.gate().meaning = with_slip();
         scene.gate().is_own = false;
       }},
  };
}

std::vector<ContainerCase> unit_cases() {
  return {
      {"HF-120", "crun wrote 195:0 as every minor", Found{},
       [](ContainerScene& scene) { allow_by_crun(scene, "char-195 rw"); }},
      {"HF-120", "the bundle has every minor", kNotFound,
       [](ContainerScene& scene) {
         scene.facts.spec_table = table({"c 195:* rw"});
         allow_by_crun(scene, "char-195 rw");
       }},
      {"HF-120", "a driver's name", kNotFound, [](ContainerScene& scene) { allow_by_crun(scene, "char-nvidia rw"); }},
      {"HF-120", "runc wrote it", kNotFound,
       [](ContainerScene& scene) {
         allow_by_crun(scene, "char-195 rw");
         scene.container().runtime->name = "runc";
       }},

      {"HF-121", "no program is on the scope", Found{}, pin_program},
      {"HF-121", "the program is on the scope", kNotFound,
       [](ContainerScene& scene) {
         pin_program(scene);
         scene.gate().cgroup = container::CgroupPath{"/system.slice/docker-web.scope"};
       }},
      {"HF-121", "a program on another scope whose directory ends alike", Found{},
       [](ContainerScene& scene) {
         pin_program(scene);
         scene.gate().cgroup = container::CgroupPath{"/system.slice"};
         scene.gate().where = "/sys/fs/cgroup/system.slice/docker-web.scope";
       }},
      {"HF-121", "the rules cannot be read", kNotFound,
       [](ContainerScene& scene) {
         pin_program(scene);
         scene.facts.observed_problem = "permission denied";
       }},
  };
}

std::vector<ContainerCase> library_cases() {
  return {
      {"HF-122", "libraries of another version", Found{},
       [](ContainerScene& scene) { mount(scene, "/usr/lib64/libnvidia-ml.so.535.54.03", "/lib"); }},
      {"HF-122", "libraries of the driver's version", kNotFound,
       [](ContainerScene& scene) { mount(scene, "/usr/lib64/libnvidia-ml.so.550.54.15", "/lib"); }},
      {"HF-122", "a symlink without a version", kNotFound,
       [](ContainerScene& scene) { mount(scene, "/usr/lib64/libnvidia-ml.so.1", "/lib"); }},
      {"HF-122", "no driver is loaded", kNotFound,
       [](ContainerScene& scene) {
         mount(scene, "/usr/lib64/libnvidia-ml.so.535.54.03", "/lib");
         scene.host.inventory.states.front().version.clear();
       }},

      {"HF-123", "a library of a driver that was removed", Found{},
       [](ContainerScene& scene) { mount(scene, "/usr/lib64/libcuda.so.1", "/run/nvidia/libcuda.so.1//deleted"); }},
      {"HF-123", "a node of a driver that was removed", Found{kGpu},
       [](ContainerScene& scene) { mount(scene, kGpu, "/nvidia0//deleted"); }},
      {"HF-123", "a file that is no driver's", kNotFound,
       [](ContainerScene& scene) { mount(scene, "/etc/hosts", "/containers/hosts//deleted"); }},
      {"HF-123", "a library of a driver that is there", kNotFound,
       [](ContainerScene& scene) { mount(scene, "/usr/lib64/libcuda.so.1", "/run/nvidia/libcuda.so.1"); }},

      {"HF-124", "rules for every GPU", Found{"/dev/nvidia1"},
       [](ContainerScene& scene) { scene.gate().meaning = table({"c 195:* rw"}); }},
      {"HF-124", "rules for everything", kNotFound,
       [](ContainerScene& scene) { scene.gate().meaning = device::Table::everything(); }},
      {"HF-124", "a bundle that allows everything", kNotFound,
       [](ContainerScene& scene) {
         scene.gate().meaning = table({"c 195:* rw"});
         scene.facts.spec_allows_all = true;
       }},
  };
}

}  // namespace

std::vector<ContainerCase> filter_cases() { return concatenate({place_cases(), unit_cases(), library_cases()}); }

namespace {

TEST(FilterChecks, AMovedContainerIsCriticalOnlyWhereItLostSomething) {
  ContainerScene scene;
  scene.container().v1["devices"] = "/docker";
  EXPECT_EQ(doctor::find_moved_container(scene.host, scene.facts).front().severity, Severity::warning);
  scene.fail(kGpu, AccessFailure::cgroup_denies);
  EXPECT_EQ(doctor::find_moved_container(scene.host, scene.facts).front().severity, Severity::critical);
}

}  // namespace
}  // namespace hf::test
