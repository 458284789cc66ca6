#include "adapters/config/cpu_options.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/text.h"

namespace hf::config {
namespace {

// `chosen` or `leave`.
Result<void> read_choice(Yaml map, const char* key, const std::string& chosen, bool& into) {
  if (!map[key]) {
    return {};
  }
  const std::string where = std::string("cpus.") + key;
  const std::string text = TRY(scalar_of(map[key], where));
  if (text != chosen && text != "leave") {
    return malformed(where + ": " + quote(text) + " is neither " + chosen + " nor leave");
  }
  into = text == chosen;
  return {};
}

// [full-pcpus-only, …], or {full-pcpus-only: true, …} as in kubelet's config.
Result<cpu::Options> options_of(Yaml node) {
  std::map<std::string, std::string> values;
  if (!node.is_list() && !node.is_map()) {
    return malformed("cpus.options wants a list of options, or a map of them");
  }
  if (node.is_map()) {
    TRY(check_once(node, "cpus.options"));
  }
  for (const Yaml entry : node.elements()) {
    values[TRY(scalar_of(entry, "cpus.options"))] = "true";
  }
  for (const auto& [name, value] : node.members()) {
    values[TRY(scalar_of(name, "cpus.options"))] = TRY(scalar_of(value, "cpus.options"));
  }
  for (const auto& [name, value] : values) {
    const Result<void> known = cpu::check_option_name(name);
    if (!known) {
      return malformed("cpus.options: " + known.error().message);
    }
  }
  const Result<cpu::Options> options = cpu::parse_options(values);
  return options ? options : malformed("cpus.options: " + options.error().message);
}

Result<std::uint32_t> count_of(Yaml node, const std::string& where) {
  const std::string text = TRY(scalar_of(node, where));
  const std::uint32_t count = parse_number<std::uint32_t>(text).value_or(0);
  return count > 0 ? Result<std::uint32_t>(count)
                   : malformed(where + ": " + quote(text) + " is no number of CPUs, at least 1");
}

Result<void> read_counts(Yaml node, CpuSettings& cpus) {
  if (node["reserved"]) {
    const std::string text = TRY(scalar_of(node["reserved"], "cpus.reserved"));
    const Result<cpu::CpuSet> set = cpu::parse_cpu_set(text);
    if (!set || set->empty()) {
      return malformed("cpus.reserved: " + quote(text) + " is no set of CPUs such as 0,64");
    }
    cpus.reserved = *set;
  }
  if (node["reserved_count"]) {
    cpus.reserved_count = TRY(count_of(node["reserved_count"], "cpus.reserved_count"));
  }
  if (node["most"]) {
    cpus.most = TRY(count_of(node["most"], "cpus.most"));
  }
  return {};
}

}  // namespace

Result<void> parse_cpus(Yaml node, CpuSettings& cpus) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "cpus", {"manager", "reserved", "reserved_count", "most", "options", "memory", "irq"}));
  TRY(read_switch(node, "cpus", "manager", cpus.manages));
  TRY(read_counts(node, cpus));
  if (node["options"]) {
    cpus.options = TRY(options_of(node["options"]));
  }
  TRY(read_choice(node, "memory", "follow", cpus.moves_memory));
  return read_choice(node, "irq", "move", cpus.moves_irqs);
}

Result<void> parse_nri(Yaml node, NriSettings& nri) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "nri", {"enabled", "socket", "index"}));
  TRY(read_switch(node, "nri", "enabled", nri.is_enabled));
  if (node["socket"]) {
    nri.socket = TRY(scalar_of(node["socket"], "nri.socket"));
    if (!nri.socket.starts_with('/')) {
      return malformed("nri.socket wants an absolute path");
    }
  }
  if (node["index"]) {
    nri.index = TRY(scalar_of(node["index"], "nri.index"));
    const bool is_index = nri.index.size() == 2 && std::ranges::all_of(nri.index, [](unsigned char character) {
                            return std::isdigit(character) != 0;
                          });
    if (!is_index) {
      return malformed("nri.index: " + quote(nri.index) + " is no number of two digits such as 10");
    }
  }
  return {};
}

}  // namespace hf::config
