#include "core/container/container.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/container/cgroup_name.h"

namespace hf::container {
namespace {

constexpr std::size_t kShortId = 12;

bool is_hex_id(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_called(const Container& container, const std::string& name) {
  if (container.id.value == name || container.name == name) {
    return true;
  }
  const std::optional<Pod>& pod = container.pod;
  return pod &&
         (pod->container == name || pod->name + "/" + pod->container == name ||
          pod->name_space + "/" + pod->name + "/" + pod->container == name || pod->uid + "/" + pod->container == name);
}

bool has_id_prefix_or_pod(const Container& container, const std::string& name) {
  if (name.empty() || container.id.value.starts_with(name)) {
    return !name.empty();
  }
  const std::optional<Pod>& pod = container.pod;
  return pod && !container.is_sandbox && (pod->name == name || pod->name_space + "/" + pod->name == name);
}

}  // namespace

std::string to_string(CgroupDriver driver) { return driver == CgroupDriver::systemd ? "systemd" : "cgroupfs"; }

std::string short_id(const ContainerId& id) {
  return is_hex_id(id.value) ? id.value.substr(0, kShortId) : printable(id.value);
}

bool is_run_by(const Container& container, std::string_view runtime) {
  return container.runtime && container.runtime->name == runtime;
}

std::string title_of(const Runtime& runtime) {
  return runtime.version ? runtime.name + " " + *runtime.version : runtime.name;
}

std::string name_space_of(const Container& container) {
  return container.pod && !container.pod->name_space.empty() ? container.pod->name_space
                                                             : container.name_space.value_or("");
}

std::string shown_name_space(std::string_view engine, const std::string& name_space) {
  return engine == "docker" && name_space == "moby" ? "docker" : name_space;
}

std::string title_of(const Container& container) {
  if (container.pod && !container.pod->name.empty()) {
    return container.pod->name + "/" + container.pod->container;
  }
  return container.name.value_or(short_id(container.id));
}

std::string unambiguous_name_of(const Container& container) {
  return container.shares_title ? "container:" + printable(container.id.value) : title_of(container);
}

std::optional<std::string> own_cgroup_in(const Container& container, const std::string& path) {
  if (container.shares_cgroup) {
    return std::nullopt;
  }
  const bool is_known = !container.cgroup.empty() && !CgroupPath{container.cgroup}.is_root();
  if (is_known && (path == container.cgroup || path.starts_with(container.cgroup + "/"))) {
    return container.cgroup;
  }
  const std::optional<ParsedCgroupName> name = parse_cgroup_name(path);
  return name && !name->id.empty() && name->id == container.id.value ? std::optional(name->cgroup) : std::nullopt;
}

std::vector<const Container*> matches_of(const std::vector<Container>& containers, const std::string& name) {
  const auto select = [&](const auto& fits) {
    std::vector<const Container*> found;
    for (const Container& container : containers) {
      if (fits(container)) {
        found.push_back(&container);
      }
    }
    return found;
  };
  const auto is_named_by_root = [](const Container& container) {
    return !container.inside && !container.is_owned_by_user;
  };
  const auto has_id = [&name](const Container& container) { return container.id.value == name; };
  const auto may_be = [&name](const Container& container) {  // one container's name must not hide another's id prefix
    return is_called(container, name) || has_id_prefix_or_pod(container, name);
  };
  std::vector<const Container*> found =
      select([&](const Container& container) { return is_named_by_root(container) && has_id(container); });
  if (found.empty()) {
    found = select([&](const Container& container) { return is_named_by_root(container) && may_be(container); });
  }
  return found.empty() ? select(may_be) : found;
}

}  // namespace hf::container
