#include "adapters/nvidia/hook_options.h"

#include "core/base/text.h"

namespace hf::nvidia {
namespace {

constexpr const char* kProgram = "holdfast-runtime";
constexpr const char* kVerb = "hook";
constexpr const char* kStage = "create-container";

Result<HookOptions::Link> parse_link(const std::string& pair) {
  const std::size_t colons = pair.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == pair.size()) {
    return fail(std::errc::invalid_argument, "--link wants TARGET::PATH, not " + quote(pair));
  }
  return HookOptions::Link{pair.substr(0, colons), pair.substr(colons + 2)};
}

// An option with a value. False where it is not known.
Result<bool> parse_option(HookOptions& options, const std::string& name, const std::string& value) {
  if (name == "--directory" || name == "--folder") {  // the second in CDI specs of 0.1
    options.directories.push_back(value);
    return value.starts_with('/')
               ? Result<bool>(true)
               : fail(std::errc::invalid_argument, "--directory wants an absolute path, not " + quote(value));
  }
  if (name == "--link") {
    options.links.push_back(TRY(parse_link(value)));
    return true;
  }
  if (name == "--spec") {
    options.spec = value;
    return true;
  }
  if (name == "--cuda-compat") {
    options.driver_version = value;
    return true;
  }
  return false;
}

}  // namespace

Result<HookOptions> parse_hook_options(const std::vector<std::string>& arguments) {
  HookOptions parsed;
  if (arguments.empty() || arguments[0] != kStage) {  // other stages run in the host's mount namespace
    return fail(std::errc::invalid_argument, "hook wants a stage: create-container");
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--keep-device-files") {
      parsed.keeps_device_files = true;
    } else if (name == "--limit-graphics") {
      parsed.limits_graphics = true;
    } else if (i + 1 == arguments.size() || !TRY(parse_option(parsed, name, arguments[i + 1]))) {
      return fail(std::errc::invalid_argument, "hook knows no " + quote(name) + ", or it lacks its value");
    } else {
      ++i;
    }
  }
  return parsed;
}

container::HookEdit hook_of(const HookOptions& options, const std::string& program) {
  container::HookEdit hook;
  hook.path = program;
  hook.arguments = {kProgram, kVerb, kStage};
  hook.environment = {container::kHookPath};
  const auto add = [&hook](const char* option, const std::string& value) {
    if (!value.empty()) {
      hook.arguments.insert(hook.arguments.end(), {option, value});
    }
  };
  for (const std::string& directory : options.directories) {
    add("--directory", directory);
  }
  for (const HookOptions::Link& link : options.links) {
    add("--link", link.target + "::" + link.path);
  }
  add("--cuda-compat", options.driver_version);
  if (options.keeps_device_files) {
    hook.arguments.emplace_back("--keep-device-files");
  }
  if (options.limits_graphics) {
    hook.arguments.emplace_back("--limit-graphics");
  }
  add("--spec", options.spec);
  return hook;
}

std::optional<HookOptions> options_of(const container::HookEdit& hook) {
  if (hook.stage != container::HookStage::create_container || hook.arguments.size() < 2 ||
      hook.arguments[0] != kProgram || hook.arguments[1] != kVerb) {
    return std::nullopt;
  }
  const Result<HookOptions> parsed = parse_hook_options({hook.arguments.begin() + 2, hook.arguments.end()});
  return parsed ? std::optional(*parsed) : std::nullopt;
}

}  // namespace hf::nvidia
