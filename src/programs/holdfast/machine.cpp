#include "machine.h"

#include <array>
#include <chrono>
#include <string_view>

#include "adapters/config/config.h"
#include "node/census.h"
#include "node/target.h"

namespace hf::programs {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

OpenMachine::OpenMachine(kernel::Host host)
    : host_(std::move(host)),
      bpf_(kernel::open_kernel_bpf()),
      filters_(host_, *bpf_),
      seats_(kernel::open_kernel_seats(host_)),
      machine_{host_, filters_, *seats_, now()} {}

Result<std::unique_ptr<OpenMachine>> OpenMachine::open() {
  kernel::Host host = TRY(kernel::open_host());
  return std::unique_ptr<OpenMachine>(new OpenMachine(std::move(host)));
}

Result<rules::NamedTarget> target_of(const std::string& word) {
  constexpr std::array<std::string_view, 4> kForms = {"pid:", "cgroup:", "program:", "file:"};
  for (const std::string_view form : kForms) {
    if (word.starts_with(form)) {
      return rules::NamedTarget{word, TRY(rules::parse_target(word))};
    }
  }
  constexpr std::string_view kForced = "container:";
  const std::string name = word.starts_with(kForced) ? word.substr(kForced.size()) : word;
  const kernel::Host host = TRY(kernel::open_host());
  const node::Census census = TRY(node::take_census(host, TRY(config::read_config(host))));
  const std::vector<const node::Resident*> found = TRY(node::find_residents(host, census, {name}));
  const container::Container& it = found.front()->container;
  return rules::NamedTarget{"pid:" + std::to_string(it.init.value), it};
}

}  // namespace hf::programs
