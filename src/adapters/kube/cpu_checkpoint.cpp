#include "adapters/kube/cpu_checkpoint.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/kube/cpu_words.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using Json = nlohmann::json;
using Fault = std::unexpected<CheckpointFault>;

bool fits(CpuFormat format, const CpuWords& words) {
  if (format == CpuFormat::v1 ? !words.entries.empty() : !words.entries_by_id.empty()) {
    return false;
  }
  if (words.checksum == 0 && format != CpuFormat::v3) {
    return true;
  }
  return fnv1a(hashed_text(format, words)) == words.checksum;
}

std::optional<CpuFormat> format_of(const CpuWords& words, cpu::PodBudgets budgets) {
  std::vector<CpuFormat> formats = {CpuFormat::v2, CpuFormat::v1};
  if (budgets == cpu::PodBudgets::honoured) {
    formats.insert(formats.begin(), CpuFormat::v3);
  }
  const auto found = std::ranges::find_if(formats, [&](CpuFormat format) { return fits(format, words); });
  return found == formats.end() ? std::nullopt : std::optional(*found);
}

Fault corrupted(const CpuWords& words) {
  const std::uint32_t expected = fnv1a(hashed_text(words.pods.empty() ? CpuFormat::v2 : CpuFormat::v3, words));
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

Fault no_list(const std::string& text, const std::string& whose, const std::string& error) {
  if (error.starts_with(kNoSuchCpu)) {
    return fault("the CPU set " + quote(text) + " of " + whose + " has CPUs that no machine has", error);
  }
  return fault("the CPU set " + quote(text) + " of " + whose + " is no list of CPUs",
               "could not parse cpuset \"" + text + "\" for " + whose + ": " + error);
}

std::string in_go(const std::string& kind, const std::string& name) { return kind + " \"" + name + "\""; }

// All lists of the words, put where they belong; each fault names whose list it is.
class Meaning {
 public:
  Meaning(const CpuWords& words, const CpuReader& reader) : words_(words), reader_(reader) {}

  std::expected<void, CheckpointFault> read(CpuCheckpoint& checkpoint) const {
    const auto shared = parse_as_go(words_.shared);
    if (!shared && shared.error().starts_with(kNoSuchCpu)) {
      return no_list(words_.shared, "the shared pool", shared.error());
    }
    if (!shared) {
      return fault("its default CPU set " + quote(words_.shared) + " is no list of CPUs",
                   "could not parse default cpu set \"" + words_.shared + "\": " + shared.error());
    }
    checkpoint.state.shared = *shared;
    for (const auto& [pod, containers] : words_.entries) {
      for (const auto& [container, text] : containers) {
        const std::string whose = in_go("container", container) + in_go(" in pod", pod);
        if (const auto put = put_list(text, whose, checkpoint.state.entries[{pod, container}]); !put) {
          return put;
        }
      }
    }
    for (const auto& [pod, text] : words_.pods) {
      if (const auto put = put_list(text, in_go("pod", pod), checkpoint.state.pods[pod]); !put) {
        return put;
      }
    }
    return read_by_id(checkpoint);
  }

 private:
  std::expected<void, CheckpointFault> read_by_id(CpuCheckpoint& checkpoint) const {
    for (const auto& [id, text] : words_.entries_by_id) {
      const auto known = reader_.containers.find(id);
      cpu::CpuSet& cpus =
          known == reader_.containers.end() ? checkpoint.by_id[id] : checkpoint.state.entries[known->second];
      if (const auto put = put_list(text, in_go("container", id), cpus); !put) {
        return put;
      }
    }
    return {};
  }

  static std::expected<void, CheckpointFault> put_list(const std::string& text, const std::string& whose,
                                                       cpu::CpuSet& cpus) {
    const auto parsed = parse_as_go(text);
    if (!parsed) {
      return no_list(text, whose, parsed.error());
    }
    cpus = *parsed;
    return {};
  }

  const CpuWords& words_;
  const CpuReader& reader_;
};

std::expected<CpuCheckpoint, CheckpointFault> mean(CpuFormat format, const CpuWords& words, const CpuReader& reader) {
  if (!reader.policy.empty() && reader.policy != words.policy) {
    return fault(
        "it was written for the policy " + quote(words.policy) + ", and this kubelet runs " + quote(reader.policy),
        "configured policy \"" + reader.policy + "\" differs from state checkpoint policy \"" + words.policy + "\"");
  }
  if (words.policy != "none" && words.policy != "static") {
    return fault("its policy " + quote(words.policy) + " is neither none nor static",
                 R"(configured policy "static" differs from state checkpoint policy ")" + words.policy + "\"");
  }
  CpuCheckpoint checkpoint{.format = format, .policy = words.policy, .state = {}, .by_id = {}};
  checkpoint.is_checked = words.checksum != 0;
  if (const auto read = Meaning(words, reader).read(checkpoint); !read) {
    return Fault(read.error());
  }
  return checkpoint;
}

CpuWords words_of(const std::string& policy, const cpu::State& state) {
  CpuWords words;
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

// Kubelet 1.36 reads the fields of v2 beside the data, and knows nothing of it.
std::string older_reading_of(const CpuWords& outer, const CpuCheckpoint& newest, const CpuReader& reader) {
  if (!fits(CpuFormat::v2, outer)) {
    return "the checksum of its older fields is wrong: kubelet 1.36 and before refuse it";
  }
  const auto older = mean(CpuFormat::v2, outer, reader);
  if (!older) {
    return "in its older fields " + older.error().what + ": kubelet 1.36 and before refuse it";
  }
  const bool is_same = older->state.shared == newest.state.shared && older->state.entries == newest.state.entries;
  return is_same ? "" : "its older fields, which kubelet 1.36 and before read, say something else";
}

// Nothing falls back to the older fields beside it.
std::expected<CpuCheckpoint, CheckpointFault> parse_data(const CpuWords& outer, const CpuReader& reader) {
  const std::uint32_t expected = fnv1a("(string)" + *outer.data);
  if (outer.data_checksum != expected) {
    return fault("the checksum of its data is not " + std::to_string(expected) +
                     ": it was changed by hand, or damaged; kubelet 1.37 does not fall back to the older fields",
                 "checkpoint is corrupted");
  }
  const auto words = read_cpu_words(*outer.data);
  if (!words) {
    return fault("in its data: " + words.error().what, words.error().kubelet_says);
  }
  auto checkpoint = mean(CpuFormat::v4, *words, reader);
  if (checkpoint) {
    checkpoint->is_checked = true;
    checkpoint->older_kubelets = older_reading_of(outer, *checkpoint, reader);
  }
  return checkpoint;
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
  const auto words = read_cpu_words(text);
  if (!words) {
    return Fault(words.error());
  }
  if (words->data) {
    return parse_data(*words, reader);
  }
  const std::optional<CpuFormat> format = format_of(*words, reader.budgets);
  return format ? mean(*format, *words, reader) : corrupted(*words);
}

std::string render_cpu_checkpoint(const std::string& policy, const cpu::State& state) {
  const CpuWords words = words_of(policy, state);
  std::string text = "{\"policyName\":" + as_go_writes(policy) + ",\"defaultCpuSet\":" + as_go_writes(words.shared);
  if (!words.entries.empty()) {
    text += ",\"entries\":" + as_go_writes(words.entries);
  }
  return text + ",\"checksum\":" + std::to_string(fnv1a(hashed_text(CpuFormat::v2, words))) + "}";
}

std::string restart_error(const std::string& kubelet_says, const std::string& file) {
  return "could not restore state from checkpoint: " + kubelet_says +
         ", please drain this node and delete the CPU manager checkpoint file \"" + file +
         "\" before restarting Kubelet";
}

std::string hashed_text(CpuFormat format, const std::string& policy, const cpu::State& state) {
  return hashed_text(format, words_of(policy, state));
}

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  return hash;
}

}  // namespace hf::kube
