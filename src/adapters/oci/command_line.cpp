#include "adapters/oci/command_line.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hf::oci {
namespace {

// Options that take the next word where they have no "=". All others stand alone.
constexpr std::array<std::string_view, 7> kGlobalWithValue = {"log",      "log-format", "log-level",     "root",
                                                              "rootless", "criu",       "cgroup-manager"};
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

struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

// "-b/path": crun takes a short option and its value in one word. Where it is no path it may be runc's "-bundle".
bool has_path_attached(std::string_view word) {
  constexpr std::string_view kLetters = "bfr";
  return word.size() > 2 && word[0] == '-' && kLetters.find(word[1]) != std::string_view::npos &&
         (word[2] == '/' || word[2] == '.' || word == "-r-");
}

// "--name", "-name", "--name=value"; absent for a word that is no option. "-" alone is a file.
std::optional<Option> option_of(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') {
    return std::nullopt;
  }
  if (has_path_attached(word)) {
    return Option{word.substr(1, 1), word.substr(2)};
  }
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    return Option{word, std::nullopt};
  }
  return Option{word.substr(0, equals), word.substr(equals + 1)};
}

bool is_among(std::string_view name, const auto& names) { return std::ranges::find(names, name) != names.end(); }

Verb verb_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Verb>, 5> kVerbs = {{{"create", Verb::create},
                                                                        {"run", Verb::run},
                                                                        {"restore", Verb::restore},
                                                                        {"update", Verb::update},
                                                                        {"delete", Verb::remove}}};
  const auto* const found = std::ranges::find(kVerbs, word, &std::pair<std::string_view, Verb>::first);
  return found == kVerbs.end() ? Verb::other : found->second;
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  CommandLine read() {
    read_globals();
    if (at_ == words_.size()) {
      return line_;
    }
    line_.verb = verb_of(words_[at_++]);
    line_.ends_with_runtime = line_.verb == Verb::run || line_.verb == Verb::restore;
    if (line_.verb != Verb::other) {
      read_rest();
    }
    return line_;
  }

 private:
  void read_globals() {
    for (; at_ < words_.size(); ++at_) {
      const std::optional<Option> option = option_of(words_[at_]);
      if (!option) {
        return;
      }
      const std::string value = value_of(*option, is_among(option->name, kGlobalWithValue));
      if (option->name == "log") {
        line_.log = value;
      } else if (option->name == "log-format") {
        line_.log_format = value;
      }
    }
  }

  // crun takes options after the container's name as well, runc does not: the last name counts for both.
  void read_rest() {
    bool only_names = false;
    for (; at_ < words_.size(); ++at_) {
      const std::size_t here = at_;
      if (words_[at_] == "--") {
        only_names = true;
        continue;
      }
      const std::optional<Option> option = only_names ? std::nullopt : option_of(words_[at_]);
      if (!option) {
        line_.container = words_[at_];
        continue;
      }
      take(*option, here);
    }
  }

  void take(const Option& option, std::size_t here) {
    // "delete -f" and "delete -r" stand alone.
    const bool has_value = line_.verb != Verb::remove && is_among(option.name, kWithValue);
    const std::string value = value_of(option, has_value);
    if (option.name == "bundle" || option.name == "b") {
      line_.bundle = value;
    } else if (line_.verb != Verb::remove && (option.name == "config" || option.name == "f")) {
      line_.config = value;
    } else if (line_.verb == Verb::update && (option.name == "resources" || option.name == "r")) {
      line_.resources = value;
      line_.resources_at = here;
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
    return takes_next && at_ + 1 < words_.size() ? words_[++at_] : std::string();
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words) { return Reader(words).read(); }

bool is_passed_on(std::span<const char* const> words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::optional<Option> option = option_of(words[at]);
    if (!option) {
      constexpr std::string_view kOurs = "hook";
      return verb_of(words[at]) == Verb::other && words[at] != kOurs;
    }
    at += !option->value && is_among(option->name, kGlobalWithValue) ? 1 : 0;
  }
  return true;
}

std::vector<std::string> with_resources(std::vector<std::string> words, const CommandLine& line,
                                        const std::string& file) {
  std::string& word = words.at(line.resources_at);
  const std::size_t equals = word.find('=');
  if (has_path_attached(word)) {
    word = word.substr(0, 2) + file;
  } else if (equals != std::string::npos) {
    word = word.substr(0, equals + 1) + file;
  } else {
    words.at(line.resources_at + 1) = file;
  }
  return words;
}

}  // namespace hf::oci
