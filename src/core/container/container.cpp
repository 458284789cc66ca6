#include "core/container/container.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/container/cgroup_words.h"

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

std::string short_id(const ContainerId& id) {
  return is_hex_id(id.value) ? id.value.substr(0, kShortId) : printable(id.value);
}

std::string title_of(const Container& container) {
  if (container.pod && !container.pod->name.empty()) {
    return container.pod->name + "/" + container.pod->container;
  }
  return container.name.empty() ? short_id(container.id) : container.name;
}

std::string word_for(const Container& container) {
  return container.shares_title ? "container:" + printable(container.id.value) : title_of(container);
}

std::optional<std::string> own_cgroup_in(const Container& container, const std::string& path) {
  if (container.is_guest) {
    return std::nullopt;
  }
  const bool is_known = !container.cgroup.empty() && !CgroupPath{container.cgroup}.is_root();
  if (is_known && (path == container.cgroup || path.starts_with(container.cgroup + "/"))) {
    return container.cgroup;
  }
  const std::optional<CgroupWords> words = read_cgroup_words(path);
  return words && !words->id.empty() && words->id == container.id.value ? std::optional(words->cgroup) : std::nullopt;
}

std::vector<const Container*> matches_of(const std::vector<Container>& containers, const std::string& word) {
  const auto select = [&](const auto& fits) {
    std::vector<const Container*> found;
    for (const Container& container : containers) {
      if (fits(container)) {
        found.push_back(&container);
      }
    }
    return found;
  };
  const auto is_named_by_root = [](const Container& container) { return !container.inside && !container.is_users; };
  const auto has_id = [&word](const Container& container) { return container.id.value == word; };
  const auto may_be = [&word](const Container& container) {  // one name must not hide the beginning of another's id
    return is_called(container, word) || begins_so(container, word);
  };
  std::vector<const Container*> found =
      select([&](const Container& container) { return is_named_by_root(container) && has_id(container); });
  if (found.empty()) {
    found = select([&](const Container& container) { return is_named_by_root(container) && may_be(container); });
  }
  return found.empty() ? select(may_be) : found;
}

}  // namespace hf::container
