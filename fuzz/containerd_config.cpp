// Containerd's config file, and those of CRI-O and podman: a registration that was added can be found and removed
// again, adding it twice is the same as once, and nothing else changes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/engine/containerd_config.h"
#include "adapters/engine/crio_config.h"
#include "adapters/engine/podman_config.h"
#include "check.h"

namespace {

using namespace hf;

struct Editor {
  Result<engine::Edited> (*add)(std::string_view, const engine::Registration&);
  Result<std::string> (*remove)(std::string_view, engine::Before);
  Result<std::optional<engine::Registered>> (*find)(std::string_view);
};

Result<engine::Edited> add_to_crio(std::string_view text, const engine::Registration& registration) {
  return engine::add_to_crio(text, registration, {});
}

void check_with(const Editor& editor, std::string_view text, engine::RuntimeRole role) {
  const engine::Registration registration{"/usr/bin/holdfast-runtime", role};
  const Result<engine::Edited> edited = editor.add(text, registration);
  if (!edited) {
    check(!edited.error().message.empty(), "an error has a message");
    return;
  }
  const Result<engine::Edited> again = editor.add(edited->text, registration);
  check(again && again->text == edited->text, "adding twice is the same as once");
  const auto found = editor.find(edited->text);
  check(found && *found && (*found)->program == registration.program, "a registration is found");
  const Result<std::string> removed = editor.remove(edited->text, text);
  check(removed || !removed.error().message.empty(), "an error has a message");
  check(!removed || !*editor.find(*removed), "a removed registration is gone");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Editor editors[] = {
      {engine::add_to_containerd, engine::remove_from_containerd, engine::find_in_containerd},
      {add_to_crio, engine::remove_from_crio, engine::find_in_crio},
      {engine::add_to_podman, engine::remove_from_podman, engine::find_in_podman},
  };
  for (const Editor& editor : editors) {
    check_with(editor, text, engine::RuntimeRole::offered);
    check_with(editor, text, engine::RuntimeRole::by_default);
  }
  return 0;
}
