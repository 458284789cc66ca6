#include "services/demo/runtime.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>

#include "adapters/engine/monitor.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"

namespace hf::demo {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kVersionLimit{3000};
constexpr const char* kSuite = "bullseye";

std::optional<Runtime> runtime_at(const std::string& name, const std::string& program) {
  const Result<std::string> output = kernel::run({{program, "--version"}, {}, {}, -1, {}}, kVersionLimit);
  const std::optional<engine::ParsedVersion> parsed = output ? engine::parse_version(*output) : std::nullopt;
  return parsed ? std::optional(Runtime{name, program, parsed->version}) : std::nullopt;
}

std::optional<std::string> find_mirror() {
  std::error_code error;
  std::vector<std::string> files = {"/etc/apt/sources.list"};
  for (const auto& entry : std::filesystem::directory_iterator("/etc/apt/sources.list.d", error)) {
    const std::string path = entry.path();
    if (path.ends_with(".list") || path.ends_with(".sources")) {  // apt ignores all others
      files.push_back(path);
    }
  }
  for (const std::string& file : files) {
    const std::string text = kernel::read_regular_file(file).value_or("");
    const std::optional<std::string> mirror =
        file.ends_with(".sources") ? mirror_in_stanzas(text) : mirror_in_list(text);
    if (mirror) {
      return mirror;
    }
  }
  return std::nullopt;
}

// apt with its own lists and cache: those of the machine stay untouched.
class Apt {
 public:
  Apt(std::string directory, milliseconds limit)
      : directory_(std::move(directory)), deadline_(std::chrono::steady_clock::now() + limit) {}

  [[nodiscard]] Result<void> prepare(const std::string& mirror) const {
    std::error_code error;
    for (const char* name : {"/lists/partial", "/cache/archives/partial"}) {
      std::filesystem::create_directories(directory_ + name, error);
    }
    std::ofstream(directory_ + "/sources") << mirror << " " << kSuite << " main\n";
    std::ofstream(directory_ + "/status").flush();
    return error ? fail(std::errc(error.value()), "make " + directory_) : Result<void>();
  }

  [[nodiscard]] Result<std::string> call(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {kernel::find_program(arguments.front())};
    if (all.front().empty()) {
      return fail(std::errc::no_such_file_or_directory, "there is no " + arguments.front());
    }
    if (arguments.front() == "apt-get") {
      const std::vector<std::string> options = {"APT::Sandbox::User=root",
                                                "Acquire::Languages=none",
                                                "Acquire::Retries=0",
                                                "Dir::Etc::sourcelist=" + directory_ + "/sources",
                                                "Dir::Etc::sourceparts=none",
                                                "Dir::State::lists=" + directory_ + "/lists",
                                                "Dir::State::status=" + directory_ + "/status",
                                                "Dir::Cache=" + directory_ + "/cache"};
      all.emplace_back("-qq");
      for (const std::string& option : options) {
        all.insert(all.end(), {"-o", option});
      }
    }
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    return kernel::run({all, {}, directory_, -1, {}}, std::max(left, milliseconds(0)));
  }

  [[nodiscard]] std::string downloaded() const {
    for (const std::string& name : kernel::list_names(AT_FDCWD, directory_)) {
      if (name.ends_with(".deb")) {
        return directory_ + "/" + name;
      }
    }
    return {};
  }

 private:
  std::string directory_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

bool loses_devices_at_update(const Runtime& runtime) {
  const std::string& version = runtime.version;
  const bool is_candidate = version.starts_with("1.0.0-rc") || version.starts_with("1.0.0~rc");
  return runtime.name == "runc" && (is_candidate || version.starts_with("0."));
}

std::vector<Runtime> find_runtimes() {
  std::vector<Runtime> runtimes;
  for (const char* name : {"runc", "crun"}) {
    const std::string program = kernel::find_program(name);
    const std::optional<Runtime> runtime = program.empty() ? std::nullopt : runtime_at(name, program);
    if (runtime) {
      runtimes.push_back(*runtime);
    }
  }
  return runtimes;
}

Result<Runtime> fetch_old_runc(const std::string& directory, milliseconds limit) {
  const std::optional<std::string> mirror = find_mirror();
  if (!mirror) {
    return fail(std::errc::no_such_file_or_directory, "this machine's package sources name no Debian mirror");
  }
  const Apt apt(directory, limit);
  TRY(apt.prepare(*mirror));
  TRY(apt.call({"apt-get", "update"}));
  TRY(apt.call({"apt-get", "download", "runc"}));
  TRY(apt.call({"dpkg", "-x", apt.downloaded(), directory + "/unpacked"}));
  const std::optional<Runtime> runtime = runtime_at("runc", directory + "/unpacked/usr/sbin/runc");
  if (!runtime || !loses_devices_at_update(*runtime)) {
    return fail(std::errc::no_such_file_or_directory, "Debian 11's runc does not run here");
  }
  return *runtime;
}

std::optional<std::string> mirror_in_list(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    if (fields.empty() || fields.front() != "deb") {
      continue;
    }
    const std::size_t close = line.find(']');
    const bool has_options = fields.size() > 1 && fields[1].starts_with('[') && close != std::string_view::npos;
    const std::string options =
        has_options ? " " + std::string(line.substr(line.find('['), close - line.find('[') + 1)) : "";
    const std::vector<std::string_view> rest =
        split_fields(has_options ? line.substr(close + 1) : line.substr(line.find("deb") + 3));
    const bool fits = rest.size() > 2 && rest[1].find("security") == std::string_view::npos &&
                      std::ranges::find(rest, "main") != rest.end();
    if (fits) {
      return "deb" + options + " " + std::string(rest[0]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> mirror_in_stanzas(std::string_view text) {
  std::map<std::string, std::string> fields;
  const auto mirror = [&fields]() -> std::optional<std::string> {
    const std::string& uris = fields["URIs"];
    const bool fits = fields["Types"].find("deb") != std::string::npos && !uris.empty() && !fields["Suites"].empty() &&
                      fields["Suites"].find("security") == std::string::npos &&
                      fields["Components"].find("main") != std::string::npos;
    if (!fits) {
      return std::nullopt;
    }
    const std::string& key = fields["Signed-By"];
    const std::string options = key.starts_with('/') ? " [signed-by=" + key + "]" : "";
    return "deb" + options + " " + std::string(split_fields(std::string_view(uris)).front());
  };
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (trim(line).empty()) {
      if (std::optional<std::string> found = mirror()) {
        return found;
      }
      fields.clear();
    } else if (colon != std::string_view::npos && !line.starts_with(' ') && !line.starts_with('#')) {
      fields[std::string(line.substr(0, colon))] = trim(line.substr(colon + 1));
    }
  }
  return mirror();
}

}  // namespace hf::demo
