#include "adapters/cdi/yaml.h"

#include <yaml-cpp/yaml.h>

namespace hf::cdi {
namespace {

// Aliases let a small file expand to a huge document, so the expanded entries are counted.
constexpr std::size_t kMostEntries = 200'000;
constexpr std::size_t kMostBytes = std::size_t(64) * 1024 * 1024;
constexpr int kDeepest = 32;

void append_text(std::string& json, const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  json += '"';
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      json += '\\';
      json += character;
    } else if (code < 0x20) {
      json += "\\u00";
      json += kDigits[code >> 4U];
      json += kDigits[code & 0xfU];
    } else {
      json += character;
    }
  }
  json += '"';
}

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
      append_text(json_, node.Scalar());
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
      append_text(json_, entry.first.Scalar());
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
