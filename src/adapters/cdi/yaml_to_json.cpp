#include "adapters/cdi/yaml_to_json.h"

#include "adapters/document/text.h"
#include "adapters/document/yaml.h"

namespace hf::cdi {
namespace {

using document::Yaml;

// Aliases let a small file expand to a huge document, so the expanded entries are counted.
constexpr std::size_t kMostEntries = 200'000;
constexpr std::size_t kMostBytes = std::size_t(64) * 1024 * 1024;
constexpr int kDeepest = 32;

class Writer {
 public:
  Result<void> write(Yaml node, int depth) {
    if (++entries_ > kMostEntries || json_.size() > kMostBytes) {
      return fail(std::errc::value_too_large, "more than " + std::to_string(kMostEntries) + " entries");
    }
    if (depth > kDeepest) {
      return fail(std::errc::value_too_large, "lists within lists, too deep");
    }
    if (node.is_map()) {
      return write_map(node, depth);
    }
    if (node.is_list()) {
      return write_list(node, depth);
    }
    if (node.is_scalar()) {
      json_ += document::in_quotes(node.scalar());
    } else {
      json_ += "null";
    }
    return {};
  }

  [[nodiscard]] std::string& json() { return json_; }

 private:
  Result<void> write_map(Yaml node, int depth) {
    json_ += '{';
    bool is_first = true;
    for (const auto& [name, value] : node.members()) {
      if (!name.is_scalar()) {
        return fail(std::errc::invalid_argument, "a field whose name is not a scalar");
      }
      json_ += is_first ? "" : ",";
      is_first = false;
      json_ += document::in_quotes(name.scalar());
      json_ += ':';
      TRY(write(value, depth + 1));
    }
    json_ += '}';
    return {};
  }

  Result<void> write_list(Yaml node, int depth) {
    json_ += '[';
    bool is_first = true;
    for (const Yaml entry : node.elements()) {
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
  const document::YamlDocument document = TRY(document::YamlDocument::parse(text));
  Writer writer;
  TRY(writer.write(document.root(), 0));
  return std::move(writer.json());
}

}  // namespace hf::cdi
