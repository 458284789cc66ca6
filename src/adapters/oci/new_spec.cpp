#include "adapters/oci/new_spec.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::oci {
namespace {

using Json = document::OrderedJson;

Json mount_of(const NewMount& mount) {
  return {{"destination", mount.destination},
          {"type", "bind"},
          {"source", mount.source},
          {"options", {"bind", mount.is_writable ? "rw" : "ro"}}};
}

}  // namespace

std::string render_spec(const NewSpec& spec) {
  Json mounts = Json::array();
  mounts.push_back({{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}});
  mounts.push_back({{"destination", "/dev"},
                    {"type", "tmpfs"},
                    {"source", "tmpfs"},
                    {"options", {"nosuid", "strictatime", "mode=755"}}});
  for (const NewMount& mount : spec.mounts) {
    mounts.push_back(mount_of(mount));
  }
  Json namespaces = Json::array();
  for (const char* kind : {"mount", "pid", "ipc", "uts"}) {
    namespaces.push_back({{"type", kind}});
  }
  Json deny_all = Json::array();
  deny_all.push_back({{"allow", false}, {"access", "rwm"}});
  const Json process = {{"terminal", false},
                        {"user", {{"uid", 0}, {"gid", 0}}},
                        {"args", spec.arguments},
                        {"env", {"PATH=/bin"}},
                        {"cwd", "/"}};
  const Json container = {
      {"cgroupsPath", spec.cgroups_path}, {"namespaces", namespaces}, {"resources", {{"devices", deny_all}}}};
  const Json file = {{"ociVersion", "1.0.2"},
                     {"process", process},
                     {"root", {{"path", "rootfs"}}},
                     {"mounts", mounts},
                     {"linux", container}};
  return document::render_json(file, 2) + "\n";
}

}  // namespace hf::oci
