#include "adapters/kube/cpu_checkpoint.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/kube/cpu_messages.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using document::Json;
using Fault = std::unexpected<CheckpointFault>;

bool fits(CpuFormat format, const CpuFields& fields) {
  if (format == CpuFormat::v1 ? !fields.entries.empty() : !fields.entries_by_id.empty()) {
    return false;
  }
  if (fields.checksum == 0 && format != CpuFormat::v3) {
    return true;
  }
  return fnv1a(hashed_text(format, fields)) == fields.checksum;
}

std::optional<CpuFormat> format_of(const CpuFields& fields, cpu::PodBudgets budgets) {
  std::vector<CpuFormat> formats = {CpuFormat::v2, CpuFormat::v1};
  if (budgets == cpu::PodBudgets::honoured) {
    formats.insert(formats.begin(), CpuFormat::v3);
  }
  const auto found = std::ranges::find_if(formats, [&](CpuFormat format) { return fits(format, fields); });
  return found == formats.end() ? std::nullopt : std::optional(*found);
}

Fault corrupted(const CpuFields& fields) {
  const std::uint32_t expected = fnv1a(hashed_text(fields.pods.empty() ? CpuFormat::v2 : CpuFormat::v3, fields));
  std::string what = "its checksum is " + std::to_string(fields.checksum) + ", that of its contents " +
                     std::to_string(expected) + ": it was changed by hand, or damaged";
  if (!fields.pods.empty() && fields.checksum == expected) {
    what = "it has budgets of pods, which only a kubelet with the gate PodLevelResourceManagers reads";
  }
  // Kubelet tries the oldest format last, and logs the error of that attempt.
  return fault(
      std::move(what),
      fields.entries.empty()
          ? "checkpoint is corrupted"
          : "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string");
}

Fault invalid_list(const std::string& text, const std::string& whose, const InvalidCpuList& invalid) {
  if (invalid.fault == CpuListFault::no_such_cpu) {
    return fault("the CPU set " + quote(text) + " of " + whose + " has CPUs that no machine has", invalid.kubelet_says);
  }
  return fault("the CPU set " + quote(text) + " of " + whose + " is no list of CPUs",
               "could not parse cpuset \"" + text + "\" for " + whose + ": " + invalid.kubelet_says);
}

std::string go_name(const std::string& kind, const std::string& name) { return kind + " \"" + name + "\""; }

// Parses the CPU lists of the fields into a checkpoint; each fault names the owner of the list.
class FieldParser {
 public:
  FieldParser(const CpuFields& fields, const CpuReader& reader) : fields_(fields), reader_(reader) {}

  std::expected<void, CheckpointFault> read(CpuCheckpoint& checkpoint) const {
    const auto shared = parse_as_go(fields_.shared);
    if (!shared && shared.error().fault == CpuListFault::no_such_cpu) {
      return invalid_list(fields_.shared, "the shared pool", shared.error());
    }
    if (!shared) {
      return fault("its default CPU set " + quote(fields_.shared) + " is no list of CPUs",
                   "could not parse default cpu set \"" + fields_.shared + "\": " + shared.error().kubelet_says);
    }
    checkpoint.state.shared = *shared;
    for (const auto& [pod, containers] : fields_.entries) {
      for (const auto& [container, text] : containers) {
        const std::string whose = go_name("container", container) + go_name(" in pod", pod);
        if (const auto put = put_list(text, whose, checkpoint.state.entries[{pod, container}]); !put) {
          return put;
        }
      }
    }
    for (const auto& [pod, text] : fields_.pods) {
      if (const auto put = put_list(text, go_name("pod", pod), checkpoint.state.pods[pod]); !put) {
        return put;
      }
    }
    return read_by_id(checkpoint);
  }

 private:
  std::expected<void, CheckpointFault> read_by_id(CpuCheckpoint& checkpoint) const {
    for (const auto& [id, text] : fields_.entries_by_id) {
      const auto known = reader_.containers.find(id);
      cpu::CpuSet& cpus =
          known == reader_.containers.end() ? checkpoint.by_id[id] : checkpoint.state.entries[known->second];
      if (const auto put = put_list(text, go_name("container", id), cpus); !put) {
        return put;
      }
    }
    return {};
  }

  static std::expected<void, CheckpointFault> put_list(const std::string& text, const std::string& whose,
                                                       cpu::CpuSet& cpus) {
    const auto parsed = parse_as_go(text);
    if (!parsed) {
      return invalid_list(text, whose, parsed.error());
    }
    cpus = *parsed;
    return {};
  }

  const CpuFields& fields_;
  const CpuReader& reader_;
};

std::expected<CpuCheckpoint, CheckpointFault> parse_fields(CpuFormat format, const CpuFields& fields,
                                                           const CpuReader& reader) {
  if (!reader.policy.empty() && reader.policy != fields.policy) {
    return fault(
        "it was written for the policy " + quote(fields.policy) + ", and this kubelet runs " + quote(reader.policy),
        "configured policy \"" + reader.policy + "\" differs from state checkpoint policy \"" + fields.policy + "\"");
  }
  if (fields.policy != "none" && fields.policy != "static") {
    return fault("its policy " + quote(fields.policy) + " is neither none nor static",
                 R"(configured policy "static" differs from state checkpoint policy ")" + fields.policy + "\"");
  }
  CpuCheckpoint checkpoint{.format = format, .policy = fields.policy, .state = {}, .by_id = {}};
  checkpoint.is_checked = fields.checksum != 0;
  if (const auto read = FieldParser(fields, reader).read(checkpoint); !read) {
    return Fault(read.error());
  }
  return checkpoint;
}

CpuFields fields_of(const std::string& policy, const cpu::State& state) {
  CpuFields fields;
  fields.policy = policy;
  fields.shared = to_string(state.shared);
  for (const auto& [owner, cpus] : state.entries) {
    fields.entries[owner.pod][owner.container] = to_string(cpus);
  }
  for (const auto& [pod, cpus] : state.pods) {
    fields.pods[pod] = to_string(cpus);
  }
  return fields;
}

// Kubelet 1.36 reads the fields of v2 and ignores the data.
std::string difference_for_older_kubelets(const CpuFields& outer, const CpuCheckpoint& newest,
                                          const CpuReader& reader) {
  if (!fits(CpuFormat::v2, outer)) {
    return "the checksum of its older fields is wrong: kubelet 1.36 and before refuse it";
  }
  const auto older = parse_fields(CpuFormat::v2, outer, reader);
  if (!older) {
    return "in its older fields " + older.error().what + ": kubelet 1.36 and before refuse it";
  }
  const bool is_same = older->state.shared == newest.state.shared && older->state.entries == newest.state.entries;
  return is_same ? "" : "its older fields, which kubelet 1.36 and before read, say something else";
}

// Kubelet does not fall back to the older fields.
std::expected<CpuCheckpoint, CheckpointFault> parse_data(const CpuFields& outer, const CpuReader& reader) {
  const std::uint32_t expected = fnv1a("(string)" + *outer.data);
  if (outer.data_checksum != expected) {
    return fault("the checksum of its data is not " + std::to_string(expected) +
                     ": it was changed by hand, or damaged; kubelet 1.37 does not fall back to the older fields",
                 "checkpoint is corrupted");
  }
  const auto fields = read_cpu_fields(*outer.data);
  if (!fields) {
    return fault("in its data: " + fields.error().what, fields.error().kubelet_says);
  }
  auto checkpoint = parse_fields(CpuFormat::v4, *fields, reader);
  if (checkpoint) {
    checkpoint->is_checked = true;
    checkpoint->older_kubelets = difference_for_older_kubelets(outer, *checkpoint, reader);
  }
  return checkpoint;
}

// Go's encoder escapes the characters that are special in HTML.
std::string to_go_json(const Json& json) {
  std::string text;
  for (const char character : document::render_json(json)) {
    switch (character) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += character;
    }
  }
  return text;
}

}  // namespace

std::string to_string(CpuFormat format) { return "v" + std::to_string(int(format) + 1); }

std::expected<CpuCheckpoint, CheckpointFault> parse_cpu_checkpoint(std::string_view text, const CpuReader& reader) {
  const auto fields = read_cpu_fields(text);
  if (!fields) {
    return Fault(fields.error());
  }
  if (fields->data) {
    return parse_data(*fields, reader);
  }
  const std::optional<CpuFormat> format = format_of(*fields, reader.budgets);
  return format ? parse_fields(*format, *fields, reader) : corrupted(*fields);
}

std::string render_cpu_checkpoint(const std::string& policy, const cpu::State& state) {
  const CpuFields fields = fields_of(policy, state);
  std::string text = "{\"policyName\":" + to_go_json(policy) + ",\"defaultCpuSet\":" + to_go_json(fields.shared);
  if (!fields.entries.empty()) {
    text += ",\"entries\":" + to_go_json(fields.entries);
  }
  return text + ",\"checksum\":" + std::to_string(fnv1a(hashed_text(CpuFormat::v2, fields))) + "}";
}

std::string restart_error(const std::string& kubelet_says, const std::string& file) {
  return "could not restore state from checkpoint: " + kubelet_says +
         ", please drain this node and delete the CPU manager checkpoint file \"" + file +
         "\" before restarting Kubelet";
}

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char character : text) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
  }
  return hash;
}

}  // namespace hf::kube
