#include "adapters/cdi/yaml.h"

#include <yaml-cpp/yaml.h>

#include "adapters/document/text.h"

namespace hf::cdi {
namespace {

// Aliases let a small file expand to a huge document, so the expanded entries are counted.
constexpr std::size_t kMostEntries = 200'000;
constexpr std::size_t kMostBytes = std::size_t(64) * 1024 * 1024;
constexpr int kDeepest = 32;

class Writer {
 public:
  Result<void> write(const YAML::Node& node, int depth) {
    if (++entries_ > kMostEntries || json_.size() > kMostBytes) {
      return fail(std::errc::value_too_large, "more than " + std::to_string(kMostEntries) + " entries");
    }
    if (depth > kDeepest) {
      return fail(std::errc::value_too_large, "lists within lists, too deep");
    }
    if (node.IsMap()) {
      return write_map(node, depth);
    }
    if (node.IsSequence()) {
      return write_list(node, depth);
    }
    if (node.IsScalar()) {
      json_ += document::in_quotes(node.Scalar());
    } else {
      json_ += "null";
    }
    return {};
  }

  [[nodiscard]] std::string& json() { return json_; }

 private:
  Result<void> write_map(const YAML::Node& node, int depth) {
    json_ += '{';
    bool is_first = true;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        return fail(std::errc::invalid_argument, "a field whose name is not a scalar");
      }
      json_ += is_first ? "" : ",";
      is_first = false;
      json_ += document::in_quotes(entry.first.Scalar());
      json_ += ':';
      TRY(write(entry.second, depth + 1));
    }
    json_ += '}';
    return {};
  }

  Result<void> write_list(const YAML::Node& node, int depth) {
    json_ += '[';
    bool is_first = true;
    for (const auto& entry : node) {
      json_ += is_first ? "" : ",";
      is_first = false;
      TRY(write(entry, depth + 1));
    }
    json_ += ']';
    return {};
  }

  std::string json_;
  std::size_t entries_ = 0;
};

}  // namespace

Result<std::string> yaml_to_json(std::string_view text) {
  try {
    Writer writer;
    TRY(writer.write(YAML::Load(std::string(text)), 0));
    return std::move(writer.json());
  } catch (const YAML::Exception& error) {
    return fail(std::errc::invalid_argument, error.what());
  }
}

}  // namespace hf::cdi
