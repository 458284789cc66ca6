// Docker's config file: a registration that was added can be found and removed again, adding it twice is the same as
// once, and nothing else changes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/engine/docker_config.h"
#include "check.h"

namespace {

using namespace hf;

void check_with(std::string_view text, const engine::Registration& registration) {
  const Result<engine::Edited> edited = engine::add_to_docker(text, registration);
  if (!edited) {
    check(!edited.error().message.empty(), "an error has a message");
    return;
  }
  const Result<engine::Edited> again = engine::add_to_docker(edited->text, registration);
  check(again && again->text == edited->text, "adding twice is the same as once");
  const auto found = engine::find_in_docker(edited->text);
  check(found && *found && (*found)->program == registration.program, "a registration is found");
  const Result<std::string> removed = engine::remove_from_docker(edited->text, text);
  check(removed.has_value(), "a registration can be removed");
  check(!*engine::find_in_docker(*removed), "a removed registration is gone");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_with(text, {"/usr/bin/holdfast-runtime", engine::RuntimeRole::offered});
  check_with(text, {"/usr/bin/holdfast-runtime", engine::RuntimeRole::by_default});
  const Result<std::string> removed = engine::remove_from_docker(text, std::nullopt);
  check(removed || !removed.error().message.empty(), "an error has a message");
  return 0;
}
