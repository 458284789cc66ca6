// Docker's config file: what is put in can be found and taken out again, twice is once, and nothing else changes.
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
    check(!edited.error().message.empty(), "an error has words");
    return;
  }
  const Result<engine::Edited> again = engine::add_to_docker(edited->text, registration);
  check(again && again->text == edited->text, "twice is once");
  const auto found = engine::find_in_docker(edited->text);
  check(found && *found && (*found)->program == registration.program, "what was put in is found");
  const Result<std::string> removed = engine::remove_from_docker(edited->text, text);
  check(removed.has_value(), "what was put in can be taken out");
  check(!*engine::find_in_docker(*removed), "and is gone then");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_with(text, {"/usr/bin/holdfast-runtime", engine::Standing::offered});
  check_with(text, {"/usr/bin/holdfast-runtime", engine::Standing::by_default});
  const Result<std::string> removed = engine::remove_from_docker(text, std::nullopt);
  check(removed || !removed.error().message.empty(), "an error has words");
  return 0;
}
