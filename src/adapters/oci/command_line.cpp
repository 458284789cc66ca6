#include "adapters/oci/command_line.h"

#include <array>
#include <string_view>

#include "adapters/oci/option.h"

namespace hf::oci {
namespace {

// Options that take the next argument as their value where they have no "=". All others are flags.
constexpr std::array<std::string_view, 32> kWithValue = {"bundle",
                                                         "b",
                                                         "config",
                                                         "f",
                                                         "console-socket",
                                                         "pid-file",
                                                         "preserve-fds",
                                                         "image-path",
                                                         "work-path",
                                                         "parent-path",
                                                         "manage-cgroups-mode",
                                                         "empty-ns",
                                                         "lsm-profile",
                                                         "lsm-mount-context",
                                                         "network-lock",
                                                         "resources",
                                                         "r",
                                                         "blkio-weight",
                                                         "cpu-period",
                                                         "cpu-quota",
                                                         "cpu-burst",
                                                         "cpu-share",
                                                         "cpu-rt-period",
                                                         "cpu-rt-runtime",
                                                         "cpuset-cpus",
                                                         "cpuset-mems",
                                                         "memory",
                                                         "memory-reservation",
                                                         "memory-swap",
                                                         "pids-limit",
                                                         "l3-cache-schema",
                                                         "mem-bw-schema"};

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  CommandLine read() {
    read_globals();
    if (at_ == arguments_.size()) {
      return line_;
    }
    line_.verb = verb_of(arguments_[at_++]);
    line_.ends_with_runtime = line_.verb == Verb::run || line_.verb == Verb::restore;
    if (line_.verb != Verb::other) {
      read_rest();
    }
    return line_;
  }

 private:
  void read_globals() {
    for (; at_ < arguments_.size(); ++at_) {
      const std::optional<Option> option = parse_option(arguments_[at_]);
      if (!option) {
        return;
      }
      const std::string value = value_of(*option, takes_next_argument(option->name));
      if (option->name == "log") {
        line_.log = value;
      } else if (option->name == "log-format") {
        line_.log_format = value;
      }
    }
  }

  // crun accepts options after the container's name, runc does not: the last name counts for both.
  void read_rest() {
    bool only_names = false;
    for (; at_ < arguments_.size(); ++at_) {
      const std::size_t index = at_;
      if (arguments_[at_] == "--") {
        only_names = true;
        continue;
      }
      const std::optional<Option> option = only_names ? std::nullopt : parse_option(arguments_[at_]);
      if (!option) {
        line_.container = arguments_[at_];
        continue;
      }
      apply(*option, index);
    }
  }

  void apply(const Option& option, std::size_t index) {
    // "delete -f" and "delete -r" are flags.
    const bool has_value = line_.verb != Verb::remove && is_among(option.name, kWithValue);
    const std::string value = value_of(option, has_value);
    if (option.name == "bundle" || option.name == "b") {
      line_.bundle = value;
    } else if (line_.verb != Verb::remove && (option.name == "config" || option.name == "f")) {
      line_.config = value;
    } else if (line_.verb == Verb::update && (option.name == "resources" || option.name == "r")) {
      line_.resources = value;
      line_.resources_at = index;
    } else if (option.name == "help" || option.name == "h" || option.name == "?" || option.name == "usage") {
      line_.asks_for_help = true;
    } else if ((option.name == "detach" || option.name == "d" || option.name == "keep") && option.value != "false") {
      line_.ends_with_runtime = false;
    }
  }

  std::string value_of(const Option& option, bool takes_next) {
    if (option.value) {
      return std::string(*option.value);
    }
    return takes_next && at_ + 1 < arguments_.size() ? arguments_[++at_] : std::string();
  }

  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) { return Reader(arguments).read(); }

std::vector<std::string> with_resources(std::vector<std::string> arguments, const CommandLine& line,
                                        const std::string& file) {
  std::string& argument = arguments.at(line.resources_at);
  const std::size_t equals = argument.find('=');
  if (has_path_attached(argument)) {
    argument = argument.substr(0, 2) + file;
  } else if (equals != std::string::npos) {
    argument = argument.substr(0, equals + 1) + file;
  } else {
    arguments.at(line.resources_at + 1) = file;
  }
  return arguments;
}

}  // namespace hf::oci
