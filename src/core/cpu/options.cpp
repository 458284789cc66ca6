#include "core/cpu/options.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::cpu {
namespace {

struct NamedOption {
  const char* name;
  bool Options::* field;
};

constexpr std::array kOptions = {
    NamedOption{"full-pcpus-only", &Options::full_cores},
    NamedOption{"distribute-cpus-across-numa", &Options::across_numa},
    NamedOption{"align-by-socket", &Options::by_socket},
    NamedOption{"distribute-cpus-across-cores", &Options::across_cores},
    NamedOption{"strict-cpu-reservation", &Options::strict_reservation},
    NamedOption{"prefer-align-cpus-by-uncorecache", &Options::by_cache},
    NamedOption{"prefer-device-numa", &Options::near_devices},
};

constexpr std::array kRefusedPairs = {
    std::pair{kOptions[0], kOptions[3]},
    std::pair{kOptions[1], kOptions[3]},
    std::pair{kOptions[5], kOptions[3]},
    std::pair{kOptions[5], kOptions[1]},
};

std::unexpected<Error> refuse(std::string why) { return fail(std::errc::invalid_argument, std::move(why)); }

std::string about_unknown(std::string_view name) {
  return "unknown CPU Manager Policy option: \"" + std::string(name) + "\"";
}

}  // namespace

Result<bool> parse_bool(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) {
    return true;
  }
  if (std::ranges::find(kFalse, text) != kFalse.end()) {
    return false;
  }
  return refuse("strconv.ParseBool: parsing \"" + std::string(text) + "\": invalid syntax");
}

Result<Options> parse_options(const std::map<std::string, std::string>& values) {
  Options options;
  for (const auto& [name, value] : values) {
    const auto* const found = std::ranges::find(kOptions, std::string_view(name), &NamedOption::name);
    if (found == kOptions.end()) {
      return refuse(about_unknown(name));
    }
    const Result<bool> truth = parse_bool(value);
    if (!truth) {
      return refuse("bad value for option \"" + name + "\": " + truth.error().message);
    }
    options.*(found->field) = *truth;
  }
  for (const auto& [one, other] : kRefusedPairs) {
    if (options.*one.field && options.*other.field) {
      return refuse("static policy options " + std::string(one.name) + " and " + other.name +
                    " can not be used at the same time");
    }
  }
  return options;
}

Result<void> check_option_name(std::string_view name) {
  if (std::ranges::find(kOptions, name, &NamedOption::name) != kOptions.end()) {
    return {};
  }
  std::vector<std::string> names;
  std::ranges::transform(kOptions, std::back_inserter(names), &NamedOption::name);
  std::ranges::sort(names);
  return refuse(about_unknown(printable(name)) + suggest(name, names));
}

Result<void> check_options(const Options& options, const Topology& topology) {
  if (options.by_socket && topology.counters.sockets > topology.counters.numa_nodes) {
    return refuse(
        "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA");
  }
  return {};
}

std::map<std::string, bool> option_values(const Options& options) {
  std::map<std::string, bool> values;
  for (const NamedOption& option : kOptions) {
    values[option.name] = options.*option.field;
  }
  return values;
}

}  // namespace hf::cpu
