#include "core/container/container.h"

#include <algorithm>

namespace hf::container {
namespace {

constexpr std::size_t kShortId = 12;

bool is_hex_id(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_called(const Container& container, const std::string& word) {
  if (container.id.value == word || (!container.name.empty() && container.name == word)) {
    return true;
  }
  const std::optional<Pod>& pod = container.pod;
  return pod &&
         (pod->container == word || pod->name + "/" + pod->container == word ||
          pod->name_space + "/" + pod->name + "/" + pod->container == word || pod->uid + "/" + pod->container == word);
}

// By the beginning of its id, or by its pod alone.
bool begins_so(const Container& container, const std::string& word) {
  if (word.empty() || container.id.value.starts_with(word)) {
    return !word.empty();
  }
  const std::optional<Pod>& pod = container.pod;
  return pod && !container.is_sandbox && (pod->name == word || pod->name_space + "/" + pod->name == word);
}

}  // namespace

std::string to_string(CgroupDriver driver) { return driver == CgroupDriver::systemd ? "systemd" : "cgroupfs"; }

std::string short_id(const ContainerId& id) { return is_hex_id(id.value) ? id.value.substr(0, kShortId) : id.value; }

std::string title_of(const Container& container) {
  if (container.pod && !container.pod->name.empty()) {
    return container.pod->name + "/" + container.pod->container;
  }
  return container.name.empty() ? short_id(container.id) : container.name;
}

std::string word_for(const Container& container) {
  return container.shares_title ? "container:" + container.id.value : title_of(container);
}

std::vector<const Container*> matches_of(const std::vector<Container>& containers, const std::string& word) {
  std::vector<const Container*> exact;
  std::vector<const Container*> begins;
  for (const Container& container : containers) {
    if (is_called(container, word)) {
      exact.push_back(&container);
    } else if (begins_so(container, word)) {
      begins.push_back(&container);
    }
  }
  exact.insert(exact.end(), begins.begin(), begins.end());  // one name must not hide another's id
  return exact;
}

}  // namespace hf::container
