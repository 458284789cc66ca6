#include "adapters/kube/cpu_checkpoint.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace hf::kube {
namespace {

using Json = nlohmann::json;
using Fault = std::unexpected<CheckpointFault>;

// The fields as texts: what is hashed is what stands in the file, not what it means.
struct Words {
  std::string policy;
  std::string shared;
  std::map<std::string, std::map<std::string, std::string>> entries;
  std::map<std::string, std::string> entries_by_id;  // of v1
  std::map<std::string, std::string> pods;
  std::uint64_t checksum = 0;
};

Fault fault(std::string what, std::string kubelet_says) {
  return Fault(CheckpointFault{std::move(what), std::move(kubelet_says)});
}

// Go takes a field's name in any case.
const Json* find_field(const Json& object, std::string_view name) {
  const auto is_it = [&](const std::string& key) {
    return std::ranges::equal(key, name, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
  };
  const Json* found = nullptr;
  for (const auto& [key, value] : object.items()) {
    if (is_it(key) && (found == nullptr || key == name)) {
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

std::expected<void, CheckpointFault> read_entries(const Json& entries, Words& words) {
  if (!entries.is_object()) {
    return wrong_type(entries, "entries", "map[string]string");
  }
  for (const auto& [pod, value] : entries.items()) {
    if (value.is_string()) {
      words.entries_by_id[pod] = value.get<std::string>();
      continue;
    }
    if (!value.is_object()) {
      return wrong_type(value, "entries", "string");
    }
    std::map<std::string, std::string>& containers = words.entries[pod];
    for (const auto& [container, cpus] : value.items()) {
      if (!cpus.is_string()) {
        return wrong_type(cpus, "entries", "string");
      }
      containers[container] = cpus.get<std::string>();
    }
  }
  return {};
}

std::expected<void, CheckpointFault> read_pods(const Json& pods, Words& words) {
  if (!pods.is_object()) {
    return wrong_type(pods, "podEntries", "state.PodCPUAssignments");
  }
  for (const auto& [pod, value] : pods.items()) {
    const Json* cpus = value.is_object() ? find_field(value, "cpuSet") : &value;
    if (cpus == nullptr || !cpus->is_string()) {
      return wrong_type(value, "podEntries", "string");
    }
    words.pods[pod] = cpus->get<std::string>();
  }
  return {};
}

std::expected<Words, CheckpointFault> read_words(const Json& object) {
  if (!object.is_object()) {
    return fault("it is no JSON object",
                 "json: cannot unmarshal " + go_type(object) + " into Go value of type state.CPUManagerCheckpointV1");
  }
  Words words;
  const auto policy = text_field(object, "policyName");
  const auto shared = text_field(object, "defaultCpuSet");
  if (!policy || !shared) {
    return Fault(policy ? shared.error() : policy.error());
  }
  words.policy = *policy;
  words.shared = *shared;
  if (const Json* entries = find_field(object, "entries")) {
    if (const auto read = read_entries(*entries, words); !read) {
      return Fault(read.error());
    }
  }
  if (const Json* pods = find_field(object, "podEntries")) {
    if (const auto read = read_pods(*pods, words); !read) {
      return Fault(read.error());
    }
  }
  if (const Json* checksum = find_field(object, "checksum")) {
    if (!checksum->is_number_unsigned()) {
      return wrong_type(*checksum, "checksum", "checksum.Checksum");
    }
    words.checksum = checksum->get<std::uint64_t>();
  }
  return words;
}

// strconv.Atoi's words, or the range's.
std::expected<cpu::CpuSet, std::string> parse_as_go(const std::string& text) {
  if (const Result<cpu::CpuSet> set = cpu::parse_cpu_set(text); set && text == trim(text)) {
    return *set;
  }
  for (const std::string_view part : split(std::string_view(text), ',')) {
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
    for (const std::string_view number : {first, last}) {
      if (!parse_number<std::uint64_t>(number)) {
        return std::unexpected("strconv.Atoi: parsing \"" + std::string(number) + "\": invalid syntax");
      }
    }
    if (*parse_number<std::uint64_t>(first) > *parse_number<std::uint64_t>(last)) {
      return std::unexpected("invalid range \"" + std::string(part) + "\" (" + std::string(first) + " > " +
                             std::string(last) + ")");
    }
  }
  return std::unexpected("strconv.Atoi: parsing \"" + text + "\": value out of range");
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

std::string hashed(CpuFormat format, const Words& words) {
  std::string text = "(*state.CPUManagerCheckpoint){PolicyName:(string)" + words.policy + " DefaultCPUSet:(string)" +
                     words.shared + " Entries:";
  if (format == CpuFormat::v1) {
    text += "(map[string]string)" + map_text(words.entries_by_id);
  } else {
    text += "(map[string]map[string]string)map[";
    for (const auto& [pod, containers] : words.entries) {
      text += text.ends_with("map[") ? "" : " ";
      text += pod;
      text += ":";
      text += map_text(containers);
    }
    text += "]";
  }
  if (format == CpuFormat::v3) {
    text += " PodEntries:(state.PodCPUAssignments)map[" + pods_text(words.pods) + "]";
  }
  return text + " Checksum:(checksum.Checksum)0}";
}

bool fits(CpuFormat format, const Words& words) {
  if (format == CpuFormat::v1 ? !words.entries.empty() : !words.entries_by_id.empty()) {
    return false;
  }
  if (words.checksum == 0 && format != CpuFormat::v3) {
    return true;
  }
  return fnv1a(hashed(format, words)) == words.checksum;
}

std::optional<CpuFormat> format_of(const Words& words, cpu::PodBudgets budgets) {
  std::vector<CpuFormat> formats = {CpuFormat::v2, CpuFormat::v1};
  if (budgets == cpu::PodBudgets::honoured) {
    formats.insert(formats.begin(), CpuFormat::v3);
  }
  const auto found = std::ranges::find_if(formats, [&](CpuFormat format) { return fits(format, words); });
  return found == formats.end() ? std::nullopt : std::optional(*found);
}

Fault corrupted(const Words& words) {
  const std::uint32_t expected = fnv1a(hashed(words.pods.empty() ? CpuFormat::v2 : CpuFormat::v3, words));
  std::string what = "its checksum is " + std::to_string(words.checksum) + ", that of its contents " +
                     std::to_string(expected) + ": it was changed by hand, or damaged";
  if (!words.pods.empty() && words.checksum == expected) {
    what = "it has budgets of pods, which only a kubelet with the gate PodLevelResourceManagers reads";
  }
  // Kubelet tries the oldest format last, and it is that one's complaint which is logged.
  return fault(
      std::move(what),
      words.entries.empty()
          ? "checkpoint is corrupted"
          : "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string");
}

std::expected<CpuCheckpoint, CheckpointFault> mean(CpuFormat format, const Words& words, const CpuReader& reader) {
  CpuCheckpoint checkpoint{.format = format, .policy = words.policy, .state = {}, .by_id = {}};
  checkpoint.is_checked = words.checksum != 0;
  if (!reader.policy.empty() && reader.policy != words.policy) {
    return fault(
        "it was written for the policy " + quote(words.policy) + ", and this kubelet runs " + quote(reader.policy),
        "configured policy \"" + reader.policy + "\" differs from state checkpoint policy \"" + words.policy + "\"");
  }
  const auto shared = parse_as_go(words.shared);
  if (!shared) {
    return fault("its default CPU set " + quote(words.shared) + " is no list of CPUs",
                 "could not parse default cpu set \"" + words.shared + "\": " + shared.error());
  }
  checkpoint.state.shared = *shared;
  for (const auto& [pod, containers] : words.entries) {
    for (const auto& [container, text] : containers) {
      const auto cpus = parse_as_go(text);
      if (!cpus) {
        return fault("the CPU set " + quote(text) + " of container " + quote(container) + " is no list of CPUs",
                     "could not parse cpuset \"" + text + "\" for container \"" + container + "\" in pod \"" + pod +
                         "\": " + cpus.error());
      }
      checkpoint.state.entries[{pod, container}] = *cpus;
    }
  }
  for (const auto& [id, text] : words.entries_by_id) {
    const auto cpus = parse_as_go(text);
    if (!cpus) {
      return fault("the CPU set " + quote(text) + " of container " + quote(id) + " is no list of CPUs",
                   "could not parse cpuset \"" + text + "\" for container \"" + id + "\": " + cpus.error());
    }
    const auto known = reader.containers.find(id);
    if (known == reader.containers.end()) {
      checkpoint.by_id[id] = *cpus;
    } else {
      checkpoint.state.entries[known->second] = *cpus;
    }
  }
  for (const auto& [pod, text] : words.pods) {
    const auto cpus = parse_as_go(text);
    if (!cpus) {
      return fault("the CPU set " + quote(text) + " of pod " + quote(pod) + " is no list of CPUs",
                   "could not parse cpuset \"" + text + "\" for pod \"" + pod + "\": " + cpus.error());
    }
    checkpoint.state.pods[pod] = *cpus;
  }
  return checkpoint;
}

Words words_of(const std::string& policy, const cpu::State& state) {
  Words words;
  words.policy = policy;
  words.shared = to_string(state.shared);
  for (const auto& [owner, cpus] : state.entries) {
    words.entries[owner.pod][owner.container] = to_string(cpus);
  }
  for (const auto& [pod, cpus] : state.pods) {
    words.pods[pod] = to_string(cpus);
  }
  return words;
}

// v4 keeps its truth in a text of its own beside the fields of v2.
std::expected<CpuCheckpoint, CheckpointFault> parse_data(const Json& object, const std::string& data,
                                                         const CpuReader& reader) {
  const Json* checksum = find_field(object, "dataChecksum");
  const std::uint32_t expected = fnv1a("(string)" + data);
  if (checksum == nullptr || !checksum->is_number_unsigned() || checksum->get<std::uint64_t>() != expected) {
    return fault("the checksum of its data is not " + std::to_string(expected) +
                     ": it was changed by hand, or damaged; kubelet 1.37 does not fall back to the older fields",
                 "checkpoint is corrupted");
  }
  const Json inner = Json::parse(data, nullptr, false);
  if (inner.is_discarded()) {
    return fault("its data is no JSON", "unexpected end of JSON input");
  }
  auto words = read_words(inner);
  if (!words) {
    return Fault(words.error());
  }
  auto checkpoint = mean(CpuFormat::v4, *words, reader);
  if (checkpoint) {
    checkpoint->is_checked = true;
  }
  return checkpoint;
}

// Where the parser stopped: at the end, or at a letter.
std::string go_syntax_error(std::string_view text) {
  try {
    [[maybe_unused]] const Json parsed = Json::parse(text);
  } catch (const Json::parse_error& error) {
    if (error.byte >= 1 && error.byte <= text.size()) {
      return std::string("invalid character '") + text[error.byte - 1] + "' looking for beginning of value";
    }
  } catch (const Json::exception&) {
    return "json: cannot unmarshal number into Go value of type state.CPUManagerCheckpointV1";  // beyond all numbers
  }
  return "unexpected end of JSON input";
}

// Go's encoder escapes what could end a script in a page.
std::string as_go_writes(const Json& json) {
  std::string text;
  for (const char letter : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    switch (letter) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += letter;
    }
  }
  return text;
}

}  // namespace

std::string to_string(CpuFormat format) { return "v" + std::to_string(int(format) + 1); }

std::expected<CpuCheckpoint, CheckpointFault> parse_cpu_checkpoint(std::string_view text, const CpuReader& reader) {
  const Json object = Json::parse(text, nullptr, false);
  if (object.is_discarded()) {
    return fault("it is no JSON", go_syntax_error(text));
  }
  const auto words = read_words(object);
  if (!words) {
    return Fault(words.error());
  }
  if (const Json* data = find_field(object, "data"); data != nullptr && data->is_string()) {
    return parse_data(object, data->get<std::string>(), reader);
  }
  const std::optional<CpuFormat> format = format_of(*words, reader.budgets);
  return format ? mean(*format, *words, reader) : corrupted(*words);
}

std::string render_cpu_checkpoint(const std::string& policy, const cpu::State& state) {
  const Words words = words_of(policy, state);
  std::string text = "{\"policyName\":" + as_go_writes(policy) + ",\"defaultCpuSet\":" + as_go_writes(words.shared);
  if (!words.entries.empty()) {
    text += ",\"entries\":" + as_go_writes(words.entries);
  }
  return text + ",\"checksum\":" + std::to_string(fnv1a(hashed(CpuFormat::v2, words))) + "}";
}

std::string restart_error(const std::string& kubelet_says, const std::string& file) {
  return "could not restore state from checkpoint: " + kubelet_says +
         ", please drain this node and delete the CPU manager checkpoint file \"" + file +
         "\" before restarting Kubelet";
}

std::string hashed_text(CpuFormat format, const std::string& policy, const cpu::State& state) {
  return hashed(format, words_of(policy, state));
}

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  return hash;
}

}  // namespace hf::kube
