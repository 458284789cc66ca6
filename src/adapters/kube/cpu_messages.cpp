#include "adapters/kube/cpu_messages.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/text.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using document::Json;
using Fault = std::unexpected<CheckpointFault>;

// Go matches field names case-insensitively.
const Json* find_field(const Json& object, std::string_view name) {
  const auto is_same_name = [&](const std::string& key) {
    return std::ranges::equal(key, name, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
  };
  const Json* found = nullptr;
  for (const auto& [key, value] : object.items()) {
    if (is_same_name(key) && (found == nullptr || key == name)) {
      found = &value;
    }
  }
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string go_type(const Json& value) {
  return value.is_string()    ? "string"
         : value.is_boolean() ? "bool"
         : value.is_number()  ? "number"
         : value.is_array()   ? "array"
                              : "object";
}

Fault wrong_type(const Json& value, const std::string& field, const std::string& wanted) {
  return fault("its field " + field + " is of a kind that does not belong there",
               "json: cannot unmarshal " + go_type(value) + " into Go struct field CPUManagerCheckpointV1." + field +
                   " of type " + wanted);
}

std::expected<std::string, CheckpointFault> text_field(const Json& object, const std::string& name) {
  const Json* value = find_field(object, name);
  if (value != nullptr && !value->is_string()) {
    return wrong_type(*value, name, "string");
  }
  return value == nullptr ? std::string() : value->get<std::string>();
}

std::expected<void, CheckpointFault> read_entries(const Json& entries, CpuFields& fields) {
  if (!entries.is_object()) {
    return wrong_type(entries, "entries", "map[string]string");
  }
  for (const auto& [pod, value] : entries.items()) {
    if (value.is_string()) {
      fields.entries_by_id[pod] = value.get<std::string>();
      continue;
    }
    if (!value.is_object()) {
      return wrong_type(value, "entries", "string");
    }
    std::map<std::string, std::string>& containers = fields.entries[pod];
    for (const auto& [container, cpus] : value.items()) {
      if (!cpus.is_string()) {
        return wrong_type(cpus, "entries", "string");
      }
      containers[container] = cpus.get<std::string>();
    }
  }
  return {};
}

std::expected<void, CheckpointFault> read_pods(const Json& pods, CpuFields& fields) {
  if (!pods.is_object()) {
    return wrong_type(pods, "podEntries", "state.PodCPUAssignments");
  }
  for (const auto& [pod, value] : pods.items()) {
    const Json* cpus = value.is_object() ? find_field(value, "cpuSet") : &value;
    if (cpus == nullptr || !cpus->is_string()) {
      return wrong_type(value, "podEntries", "string");
    }
    fields.pods[pod] = cpus->get<std::string>();
  }
  return {};
}

std::expected<CpuFields, CheckpointFault> read_object(const Json& object) {
  if (!object.is_object()) {
    return fault("it is no JSON object",
                 "json: cannot unmarshal " + go_type(object) + " into Go value of type state.CPUManagerCheckpointV1");
  }
  CpuFields fields;
  const auto policy = text_field(object, "policyName");
  const auto shared = text_field(object, "defaultCpuSet");
  if (!policy || !shared) {
    return Fault(policy ? shared.error() : policy.error());
  }
  fields.policy = *policy;
  fields.shared = *shared;
  if (const Json* entries = find_field(object, "entries")) {
    if (const auto read = read_entries(*entries, fields); !read) {
      return Fault(read.error());
    }
  }
  if (const Json* pods = find_field(object, "podEntries")) {
    if (const auto read = read_pods(*pods, fields); !read) {
      return Fault(read.error());
    }
  }
  if (const Json* checksum = find_field(object, "checksum")) {
    if (!checksum->is_number_unsigned()) {
      const std::string number = checksum->is_number() ? " " + checksum->dump() : "";  // Go prints it
      return fault("its checksum is none",
                   "json: cannot unmarshal " + go_type(*checksum) + number +
                       " into Go struct field CPUManagerCheckpointV1.checksum of type checksum.Checksum");
    }
    fields.checksum = checksum->get<std::uint64_t>();
  }
  if (const Json* data = find_field(object, "data"); data != nullptr && data->is_string()) {
    fields.data = data->get<std::string>();
  }
  if (const Json* sum = find_field(object, "dataChecksum"); sum != nullptr && sum->is_number_unsigned()) {
    fields.data_checksum = sum->get<std::uint64_t>();
  }
  return fields;
}

std::string pods_text(const std::map<std::string, std::string>& pods) {
  std::string text;
  for (const auto& [pod, cpus] : pods) {
    text += text.empty() ? "" : " ";
    text += pod;
    text += ":{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[";
    std::string elements;
    for (const std::uint32_t cpu : parse_as_go(cpus).value_or(cpu::CpuSet())) {
      elements += elements.empty() ? "" : " ";
      elements += std::to_string(cpu);
      elements += ":{}";
    }
    text += elements;
    text += "]}}";
  }
  return text;
}

std::string map_text(const std::map<std::string, std::string>& entries) {
  std::string text = "map[";
  for (const auto& [name, value] : entries) {
    text += text.ends_with("[") ? "" : " ";
    text += name;
    text += ":";
    text += value;
  }
  text += "]";
  return text;
}

std::string go_character(char character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(character);
  if (byte >= 0x20 && byte < 0x7f) {
    return {character};
  }
  return std::string("\\x") + kDigits[byte >> 4U] + kDigits[byte & 0xfU];
}

// Go's error for the place where the parser stopped: the end, or a character.
std::string go_syntax_error(std::string_view text) {
  const document::JsonFault fault = document::find_json_fault(text).value_or(document::JsonFault());
  if (fault.kind == document::JsonFault::Kind::number_out_of_range) {
    return "json: cannot unmarshal number into Go value of type state.CPUManagerCheckpointV1";
  }
  return fault.offset < text.size()
             ? "invalid character '" + go_character(text[fault.offset]) + "' looking for beginning of value"
             : "unexpected end of JSON input";
}

// strconv.Atoi accepts a sign, digits, 63 bits.
std::expected<std::uint64_t, std::string> parse_go_number(std::string_view text) {
  constexpr std::uint64_t kMost = 0x7fff'ffff'ffff'ffff;
  const std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
  const std::string about = "strconv.Atoi: parsing \"" + std::string(text) + "\": ";
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::unexpected(about + "invalid syntax");
  }
  const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(digits);
  if (!number || *number > kMost) {
    return std::unexpected(about + "value out of range");
  }
  return *number;
}

}  // namespace

std::unexpected<CheckpointFault> fault(std::string what, std::string kubelet_says) {
  return Fault(CheckpointFault{std::move(what), std::move(kubelet_says)});
}

std::expected<CpuFields, CheckpointFault> read_cpu_fields(std::string_view json) {
  if (json.starts_with(document::kByteOrderMark)) {
    return fault("it begins with a byte order mark", "invalid character 'ï' looking for beginning of value");
  }
  Result<Json> object = document::parse_json(json);
  if (!object) {
    return fault(object.error().message, go_syntax_error(json));
  }
  if (object->is_null()) {
    *object = Json::object();  // Go reads null as an empty object
  }
  return read_object(*object);
}

std::string hashed_text(CpuFormat format, const CpuFields& fields) {
  std::string text = "(*state.CPUManagerCheckpoint){PolicyName:(string)" + fields.policy + " DefaultCPUSet:(string)" +
                     fields.shared + " Entries:";
  if (format == CpuFormat::v1) {
    text += "(map[string]string)" + map_text(fields.entries_by_id);
  } else {
    text += "(map[string]map[string]string)map[";
    for (const auto& [pod, containers] : fields.entries) {
      text += text.ends_with("map[") ? "" : " ";
      text += pod;
      text += ":";
      text += map_text(containers);
    }
    text += "]";
  }
  if (format == CpuFormat::v3) {
    text += " PodEntries:(state.PodCPUAssignments)map[" + pods_text(fields.pods) + "]";
  }
  return text + " Checksum:(checksum.Checksum)0}";
}

std::expected<cpu::CpuSet, InvalidCpuList> parse_as_go(const std::string& text) {
  cpu::CpuSet set;
  if (text.empty()) {
    return set;
  }
  for (const std::string_view part : split(std::string_view(text), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_go_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_go_number(part.substr(dash + 1));
    if (!first || !last) {
      return std::unexpected(InvalidCpuList{CpuListFault::no_list, first ? last.error() : first.error()});
    }
    if (*first > *last) {
      return std::unexpected(InvalidCpuList{CpuListFault::no_list, "invalid range \"" + std::string(part) + "\" (" +
                                                                       std::to_string(*first) + " > " +
                                                                       std::to_string(*last) + ")"});
    }
    if (*last > cpu::kLastCpu) {
      // It parses, and then does not match the host's CPUs.
      return std::unexpected(
          InvalidCpuList{CpuListFault::no_such_cpu,
                         "current set of available CPUs \"…\" doesn't match with CPUs in state \"" + text + "\""});
    }
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) {
      set.add(std::uint32_t(cpu));
    }
  }
  return set;
}

}  // namespace hf::kube
