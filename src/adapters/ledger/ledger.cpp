#include "adapters/ledger/ledger.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "kernel/files/file.h"

namespace hf::ledger {
namespace {

using document::Json;
using document::OrderedJson;
using document::string_at;

constexpr unsigned kVersion = 1;

std::unexpected<Error> malformed(const std::string& why) {
  return fail(std::errc::invalid_argument, "parse ledger entry: " + why);
}

bool can_name_file(const container::ContainerId& id) {
  return !id.value.empty() && id.value.find('/') == std::string::npos && !id.value.starts_with('.');
}

std::string file_of(const container::ContainerId& id) { return std::string(kDirectory) + "/" + id.value + ".json"; }

Result<container::WantedNode> parse_node(const Json& json) {
  container::WantedNode node;
  node.path = string_at(json, "path").value_or("");
  const std::string type = string_at(json, "type").value_or("");
  const std::optional<std::uint64_t> major = document::uint_at(json, "major", device::kLastMajor);
  const std::optional<std::uint64_t> minor = document::uint_at(json, "minor", device::kLastMinor);
  const Result<device::Access> access = device::parse_access(string_at(json, "access").value_or(""));
  if (!node.path.starts_with('/') || (type != "c" && type != "b") || !major || !minor || !access ||
      *access == device::Access::none) {
    return malformed("a node wants path, type, major, minor and access");
  }
  node.claimed = device::Device{type == "b" ? device::Kind::block : device::Kind::character, std::uint32_t(*major),
                                std::uint32_t(*minor)};
  node.access = *access;
  return node;
}

}  // namespace

Result<Entry> parse_entry(std::string_view text) {
  const Json file = TRY(document::parse_object(text, "ledger entry"));
  if (document::uint_at(file, "version") != kVersion) {
    return malformed("not of version " + std::to_string(kVersion));
  }
  std::optional<std::string> container = string_at(file, "container");
  const Json* nodes = document::value_at(file, "nodes");
  if (!container || nodes == nullptr || !nodes->is_array()) {
    return malformed("no container, or no list of nodes");
  }
  Entry entry;
  entry.container.value = *std::move(container);
  if (entry.container.value.empty()) {
    return malformed("the container has no id");
  }
  entry.bundle = string_at(file, "bundle").value_or("");
  entry.cgroup = string_at(file, "cgroup").value_or("");
  if (entry.bundle.empty() && entry.cgroup.empty()) {
    return malformed("neither a bundle nor a cgroup");
  }
  for (const Json& node : *nodes) {
    entry.nodes.push_back(TRY(parse_node(node)));
  }
  return entry;
}

std::string render_entry(const Entry& entry) {
  OrderedJson nodes = OrderedJson::array();
  for (const container::WantedNode& node : entry.nodes) {
    if (!node.claimed || node.access == device::Access::none) {
      continue;  // nothing that could be restored
    }
    const device::Device device = *node.claimed;
    nodes.push_back({{"path", node.path},
                     {"type", std::string(1, device::kind_character(device.kind))},
                     {"major", device.major},
                     {"minor", device.minor},
                     {"access", to_string(node.access)}});
  }
  const OrderedJson file = {{"version", kVersion},
                            {"container", entry.container.value},
                            {"bundle", entry.bundle},
                            {"cgroup", entry.cgroup},
                            {"nodes", nodes}};
  return document::render_json(file, 2) + "\n";
}

Result<std::optional<Entry>> read_entry(const kernel::Host& host, const container::ContainerId& id) {
  if (!can_name_file(id)) {
    return std::nullopt;
  }
  const std::string file = file_of(id);
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(file));
  if (!text) {
    return text.error().code == std::errc::no_such_file_or_directory ? Result<std::optional<Entry>>(std::nullopt)
                                                                     : std::unexpected(text.error());
  }
  Result<Entry> entry = parse_entry(*text);
  if (!entry) {
    return fail(entry.error().code, file + ": " + entry.error().message);
  }
  if (entry->container != id) {
    return fail(std::errc::invalid_argument, file + ": is about another container");
  }
  return *std::move(entry);
}

Result<void> save_entry(const kernel::Host& host, const Entry& entry) {
  if (!can_name_file(entry.container)) {
    return fail(std::errc::invalid_argument, "no file can be called after container '" + entry.container.value + "'");
  }
  const std::string text = render_entry(entry);
  const std::string file = kernel::below_root(file_of(entry.container));
  TRY(make_directory(host));
  const Result<void> saved = kernel::replace_file(host.root.get(), file, {text, 0600});
  if (saved || saved.error().code != std::errc::no_such_file_or_directory) {
    return saved;
  }
  TRY(make_directory(host));  // a daemon that stopped has removed the empty directory
  return kernel::replace_file(host.root.get(), file, {text, 0600});
}

void remove_entry(const kernel::Host& host, const container::ContainerId& id) {
  if (can_name_file(id)) {
    (void)::unlinkat(host.root.get(), kernel::below_root(file_of(id)).c_str(), 0);
  }
}

void remove_orphans(const kernel::Host& host) {
  constexpr std::string_view kEnding = ".json";
  for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(kDirectory))) {
    const container::ContainerId id{name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size()) : ""};
    const Result<std::optional<Entry>> entry = read_entry(host, id);
    const bool has_bundle = entry && *entry && !(*entry)->bundle.empty();
    if (has_bundle && !kernel::exists(host.root.get(), kernel::below_root((*entry)->bundle))) {
      remove_entry(host, id);
    }
  }
}

void remove_empty_directory(const kernel::Host& host) {
  for (const char* path : {"run/holdfast/ledger", "run/holdfast"}) {
    (void)::unlinkat(host.root.get(), path, AT_REMOVEDIR);
  }
}

Result<void> make_directory(const kernel::Host& host) {
  for (const auto& [path, mode] : {std::pair("run/holdfast", 0755), std::pair("run/holdfast/ledger", 0700)}) {
    if (::mkdirat(host.root.get(), path, mode_t(mode)) < 0 && errno != EEXIST) {
      return fail_errno(errno, std::string("make /") + path);
    }
  }
  return {};
}

}  // namespace hf::ledger
