#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using device::Device;
using report::Severity;

constexpr const char* kControl = "/dev/nvidiactl";
constexpr const char* kUvm = "/dev/nvidia-uvm";

void run_container_by(HostScene& scene, const char* version, container::CgroupDriver driver) {
  host::DiscoveredContainer discovered;
  discovered.container.runtime = container::Runtime{"runc", "/usr/bin/runc", version};
  discovered.container.driver = driver;
  scene.census.discovered_containers.push_back(discovered);
}

cdi::Spec spec_with(const std::string& file, const std::string& path, std::uint32_t major) {
  cdi::Spec spec;
  spec.file = file;
  spec.kind = "nvidia.com/gpu";
  container::NodeEdit node;
  node.path = path;
  node.device = Device{device::Kind::character, major, 0};
  spec.devices["0"].nodes = {node};
  return spec;
}

void allocate(HostScene& scene, std::vector<const char*> paths) {
  kube::Allocation allocation{"uid-1", "main", "nvidia.com/gpu", {"GPU-0"}, {}, {}, {}};
  for (const char* path : paths) {
    allocation.devices.push_back({path, path, "rw"});
  }
  scene.host.sources.checkpoint.emplace();
  scene.host.sources.checkpoint->allocations = {allocation};
  scene.host.sources.checkpoint->registered["nvidia.com/gpu"] = {"GPU-0", "GPU-1"};
}

std::vector<HostCase> host_node_cases() {
  return {
      {"HF-302", "a node is missing", Found{kControl}, [](HostScene& scene) { scene.node(kControl).live.reset(); }},
      {"HF-302", "a node is missing whose driver is not loaded", kNotFound,
       [](HostScene& scene) {
         scene.node(kControl).live.reset();
         scene.node(kControl).expected.reset();
       }},
      {"HF-302", "a node is missing that few containers need", kNotFound,
       [](HostScene& scene) {
         scene.node(kControl).live.reset();
         scene.node(kControl).part = device::Part::extra;
       }},

      {"HF-303", "a node has another number than its driver", Found{kUvm},
       [](HostScene& scene) { scene.node(kUvm).expected->major = 511; }},
      {"HF-303", "a node is missing", kNotFound,
       [](HostScene& scene) {
         scene.node(kUvm).expected->major = 511;
         scene.node(kUvm).live.reset();
       }},
  };
}

std::vector<HostCase> link_cases() {
  return {
      {"HF-304", "runc 1.1.3 with systemd, and no link", Found{kUvm},
       [](HostScene& scene) {
         run_container_by(scene, "1.1.3", container::CgroupDriver::systemd);
         scene.host.linked.erase(*scene.node(kUvm).live);
       }},
      {"HF-304", "runc 1.1.3 with systemd, and all links", kNotFound,
       [](HostScene& scene) { run_container_by(scene, "1.1.3", container::CgroupDriver::systemd); }},
      {"HF-304", "runc 1.1.3 without systemd, and no link", kNotFound,
       [](HostScene& scene) {
         run_container_by(scene, "1.1.3", container::CgroupDriver::cgroupfs);
         scene.host.linked.erase(*scene.node(kUvm).live);
       }},
      {"HF-304", "runc 1.1.2 with systemd, and no link", kNotFound,
       [](HostScene& scene) {
         run_container_by(scene, "1.1.2", container::CgroupDriver::systemd);
         scene.host.linked.erase(*scene.node(kUvm).live);
       }},

      {"HF-316", "a major that no driver has", Found{},
       [](HostScene& scene) { scene.host.lxc_rules = {{"/var/lib/lxc/a/config", "c 511:* rwm", 511}}; }},
      {"HF-316", "a major that a driver has", kNotFound,
       [](HostScene& scene) { scene.host.lxc_rules = {{"/var/lib/lxc/a/config", "c 195:* rwm", 195}}; }},
  };
}

std::vector<HostCase> cdi_cases() {
  return {
      {"HF-308", "a spec with an old number", Found{kUvm},
       [](HostScene& scene) { scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 511)}; }},
      {"HF-308", "a spec with the current number", kNotFound,
       [](HostScene& scene) { scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 238)}; }},
      {"HF-308", "a spec with an old number that another spec hides", kNotFound,
       [](HostScene& scene) {
         scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 511),
                                         spec_with("/var/run/cdi/a.yaml", kUvm, 238)};
       }},
      {"HF-308", "a node that the host does not have", kNotFound,
       [](HostScene& scene) { scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", "/dev/other", 511)}; }},

      {"HF-309", "two specs with the same device", Found{},
       [](HostScene& scene) {
         scene.host.sources.cdi.shadows = {{"nvidia.com/gpu=0", "/etc/cdi/a.yaml", "/etc/cdi/b.yaml", true}};
       }},
      {"HF-309", "two specs with different devices", kNotFound,
       [](HostScene& scene) { scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 238)}; }},

      {"HF-310", "a spec that cannot be parsed", Found{},
       [](HostScene& scene) { scene.host.sources.cdi.broken = {{"/etc/cdi/a.yaml", "no kind"}}; }},
      {"HF-310", "a file that is not there", Found{},
       [](HostScene& scene) { scene.host.missing_cdi_files = {{"/usr/lib64/libcuda.so.1", "/etc/cdi/a.yaml"}}; }},
      {"HF-310", "a spec that can be used", kNotFound,
       [](HostScene& scene) { scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 238)}; }},
  };
}

std::vector<HostCase> kubelet_cases() {
  return {
      {"HF-311", "a plugin that started before nvidia-uvm", Found{kUvm},
       [](HostScene& scene) { allocate(scene, {"/dev/nvidia0", kControl}); }},
      {"HF-311", "a plugin that hands out everything", kNotFound,
       [](HostScene& scene) { allocate(scene, {"/dev/nvidia0", kControl, kUvm}); }},
      {"HF-311", "a plugin that leaves nodes to the runtime", kNotFound, [](HostScene& scene) { allocate(scene, {}); }},
      {"HF-311", "a host without nvidia-uvm", kNotFound,
       [](HostScene& scene) {
         allocate(scene, {"/dev/nvidia0", kControl});
         scene.host.inventory.drivers.character.erase("nvidia-uvm");
       }},

      {"HF-317", "no plugin registers the resource", Found{},
       [](HostScene& scene) {
         allocate(scene, {});
         scene.host.sources.checkpoint->registered.clear();
       }},
      {"HF-317", "the plugin does not register the device", Found{},
       [](HostScene& scene) {
         allocate(scene, {});
         scene.host.sources.checkpoint->registered["nvidia.com/gpu"] = {"GPU-1"};
       }},
      {"HF-317", "the plugin registers the device", kNotFound, [](HostScene& scene) { allocate(scene, {}); }},

      {"HF-318", "a damaged checkpoint", Found{},
       [](HostScene& scene) { scene.host.sources.checkpoint_problem = "not JSON"; }},
      {"HF-318", "no kubelet", kNotFound, [](HostScene& scene) { scene.host.sources.checkpoint.reset(); }},

      {"HF-319", "NRI is wanted, and no engine has it", Found{},
       [](HostScene& scene) { scene.host.config.nri.is_enabled = true; }},
      {"HF-319", "the engine has it", kNotFound,
       [](HostScene& scene) {
         scene.host.config.nri.is_enabled = true;
         scene.host.has_nri = true;
       }},
      {"HF-319", "NRI is not wanted", kNotFound, [](HostScene&) {}},
      {"HF-319", "CPUs are managed without NRI, which the engine has", Found{},
       [](HostScene& scene) {
         scene.host.config.cpus.manages = true;
         scene.host.has_nri = true;
       }},
  };
}

}  // namespace

std::vector<HostCase> host_file_cases() {
  return concatenate({host_node_cases(), link_cases(), cdi_cases(), kubelet_cases()});
}

namespace {

TEST(HostNodeChecks, CureByTheDriversToolOrByMknod) {
  HostScene scene;
  scene.node(kControl).live.reset();
  scene.node("/dev/nvidia1").live.reset();
  const doctor::Findings missing = doctor::find_missing_host_nodes(scene.host, {});
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_EQ(missing[0].cure.front(), "mknod -m 666 /dev/nvidia1 c 195 1");
  EXPECT_EQ(missing[1].cure.front(), "nvidia-modprobe -u -c 0");
  scene.node(kUvm).expected->major = 511;
  EXPECT_EQ(doctor::find_stale_host_nodes(scene.host, {}).front().cure.front(),
            "rm /dev/nvidia-uvm && mknod -m 666 /dev/nvidia-uvm c 511 0");
}

TEST(HostNodeChecks, LinkEveryNodeThatLacksOne) {
  HostScene scene;
  run_container_by(scene, "1.1.5", container::CgroupDriver::systemd);
  run_container_by(scene, "1.1.5", container::CgroupDriver::systemd);
  scene.host.linked.erase(*scene.node(kControl).live);
  scene.host.linked.erase(*scene.node(kUvm).live);
  const report::Finding finding = doctor::find_missing_links(scene.host, scene.census).front();
  EXPECT_EQ(sentence_of(finding), "links under /dev/char are missing, and runc 1.1.5 needs them");
  EXPECT_EQ(finding.cure.front(), "ln -s /dev/nvidiactl /dev/char/195:255 && ln -s /dev/nvidia-uvm /dev/char/238:0");
}

TEST(CdiChecks, ShowEightMissingFilesAtMost) {
  HostScene scene;
  for (int i = 0; i < 10; ++i) {
    scene.host.missing_cdi_files.insert({"/lib/" + std::to_string(i), "/etc/cdi/a.yaml"});
  }
  scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 238)};
  const report::Finding finding = doctor::find_unusable_cdi_specs(scene.host, {}).front();
  ASSERT_EQ(finding.evidence.size(), 9U);
  EXPECT_EQ(finding.evidence.back(), "and 2 more");
  EXPECT_EQ(finding.cure, std::vector<std::string>{"holdfast cdi generate --file /etc/cdi/a.yaml"});
}

TEST(CdiChecks, NeedACureForEverySpecThatMountsMissingFiles) {
  HostScene scene;
  scene.host.missing_cdi_files = {{"/lib/a", "/etc/cdi/a.yaml"}, {"/lib/b", "/etc/cdi/b.yaml"}};
  scene.host.sources.cdi.specs = {spec_with("/etc/cdi/a.yaml", kUvm, 238), spec_with("/etc/cdi/b.yaml", kUvm, 238)};
  const report::Finding finding = doctor::find_unusable_cdi_specs(scene.host, {}).front();
  EXPECT_EQ(finding.cure.size(), 2U);
  EXPECT_TRUE(finding.needs_all_cures);
}

TEST(CdiChecks, TellAConflictFromASpecThatIsOnlyHidden) {
  HostScene scene;
  scene.host.sources.cdi.shadows = {{"nvidia.com/gpu=0", "/var/run/cdi/a.yaml", "/etc/cdi/a.yaml", false}};
  EXPECT_EQ(doctor::find_shadowed_cdi_specs(scene.host, {}).front().severity, Severity::note);
  scene.host.sources.cdi.shadows.front().is_conflict = true;
  EXPECT_EQ(doctor::find_shadowed_cdi_specs(scene.host, {}).front().severity, Severity::warning);
}

}  // namespace
}  // namespace hf::test
