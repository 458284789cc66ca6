// holdfast-kube: everything that speaks to Kubernetes: the device plugin.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include <malloc.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/config/plugin_options.h"
#include "core/base/text.h"
#include "core/resource/allocation.h"
#include "host/inventory.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"
#include "kernel/process/signals.h"
#include "programs/daemon/log.h"
#include "programs/daemon/notify.h"
#include "render/plugin.h"
#include "services/plugin/daemon.h"
#include "services/plugin/once.h"
#include "services/specs/fresh.h"

namespace hf::programs {
namespace {

constexpr int kFine = 0;
constexpr int kProblem = 1;
constexpr int kCannot = 2;

struct KubeOptions {
  std::string config_file;
  std::string nvidia_config;
  std::string log = "text";
  bool check_config = false;
  bool once = false;
};

int complain(const Error& error) {
  std::cerr << "holdfast-kube: " << error.message << '\n';
  return kCannot;
}

struct ReadConfig {
  config::Config config;
  std::vector<std::string> notes;
};

Result<ReadConfig> read_config(const kernel::Host& host, const KubeOptions& options) {
  ReadConfig read;
  read.config = options.config_file.empty() ? TRY(config::read_config(host))
                                            : TRY(config::read_config(host, options.config_file));
  config::KubeSettings& kube = read.config.kube;
  kube.nvidia_config = options.nvidia_config.empty() ? kube.nvidia_config : options.nvidia_config;
  if (!kube.nvidia_config.empty()) {
    const std::string text = TRY(kernel::read_regular_file(kube.nvidia_config));
    const Result<void> parsed = config::parse_nvidia_plugin(text, kube, read.notes);
    if (!parsed) {
      return fail(parsed.error().code, kube.nvidia_config + ": " + parsed.error().message);
    }
    read.config.files.push_back(kube.nvidia_config);
  }
  for (const resource::ResourceRule& rule : kube.policy.rules) {
    if (device::find_class(read.config.classes, rule.device_class) == nullptr) {
      return fail(std::errc::invalid_argument, "config: kube.resources: " + rule.resource + " is of the class " +
                                                   quote(rule.device_class) + ", which is not known");
    }
  }
  return read;
}

int show_config(const ReadConfig& read) {
  const config::KubeSettings& kube = read.config.kube;
  std::cout << "config is fine: " << (read.config.files.empty() ? "no file, all defaults" : "") << '\n';
  for (const std::string& file : read.config.files) {
    std::cout << "  read " << file << '\n';
  }
  for (const resource::ResourceRule& rule : kube.policy.rules) {
    std::cout << "  offers " << rule.resource << ": devices of class " << rule.device_class
              << (rule.pattern == "*" ? "" : " that match " + rule.pattern) << '\n';
  }
  for (const resource::Sharing& sharing : kube.policy.sharing) {
    std::cout << "  shares " << sharing.resource << " by " << sharing.replicas << " replicas\n";
  }
  std::vector<std::string> ways;
  ways.reserve(kube.policy.ways.size());
  for (const resource::Way way : kube.policy.ways) {
    ways.push_back(to_string(way));
  }
  std::cout << "  gives devices by " << join(ways, ", ") << (kube.policy.passes_nodes ? " and as device nodes" : "")
            << '\n';
  for (const std::string& note : read.notes) {
    std::cout << "  note: " << note << '\n';
  }
  return kFine;
}

// One spec per class that is offered by CDI names.
class Specs {
 public:
  // The hook is holdfast-runtime: beside this program, or where it is installed.
  explicit Specs(const kernel::Host& host) : host_(host) {
    const std::string own = kernel::own_path();
    const std::string beside = own.substr(0, own.rfind('/')) + "/holdfast-runtime";
    hook_ = kernel::exists(host.root.get(), kernel::below_root(beside)) ? beside : nvidia::HookSettings().path;
  }

  Result<void> refresh(const config::Config& config) {
    const resource::Policy& policy = config.kube.policy;
    const bool uses_cdi =
        policy.ways.contains(resource::Way::cdi_cri) || policy.ways.contains(resource::Way::cdi_annotations);
    if (!uses_cdi) {
      return {};
    }
    const device::Inventory inventory = host::take_inventory(host_, config);
    for (const resource::ResourceRule& rule : policy.rules) {
      if (std::ranges::find(inventory.units, rule.device_class, &device::Unit::device_class) != inventory.units.end()) {
        TRY(refresh(config, rule.device_class));
      }
    }
    return {};
  }

 private:
  // A file that holdfastd keeps current is not written twice.
  Result<void> refresh(config::Config config, const std::string& device_class) {
    const bool is_by_guard = !config.cdi.file.empty() && config.cdi.device_class == device_class;
    config.cdi.file = is_by_guard ? config.cdi.file : "/var/run/cdi/holdfast-" + device_class + ".yaml";
    config.cdi.device_class = device_class;
    specs::Settings settings;
    settings.incomplete = specs::Incomplete::left_out;
    settings.hook.path = hook_;
    if (device_class == "nvidia" && !kernel::exists(host_.root.get(), kernel::below_root(hook_))) {
      return fail(std::errc::no_such_file_or_directory,
                  hook_ + " is not there, and CDI specs need it as their hook: install it, or set kube.strategies");
    }
    auto& spec = specs_.try_emplace(device_class, host_, settings).first->second;
    (void)TRY(spec.refresh(config));
    return spec.problem() ? Result<void>(std::unexpected(*spec.problem())) : Result<void>();
  }

  const kernel::Host& host_;
  std::string hook_;
  std::map<std::string, specs::FreshSpec> specs_;
};

int show_once(const kernel::Host& host, const config::Config& config) {
  const report::PluginReport report = plugin::look_once(host, config);
  std::cout << report::render_json(report) << '\n';
  return report.is_fine() ? kFine : kProblem;
}

int serve(const KubeOptions& options) {
  Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<ReadConfig> read = read_config(*host, options);
  if (!read) {
    return complain(read.error());
  }
  if (options.check_config) {
    return show_config(*read);
  }
  if (options.once) {
    return show_once(*host, read->config);
  }
  if (::geteuid() != 0) {
    return complain({std::errc::operation_not_permitted, "needs root: kubelet's directory belongs to it"});
  }
  Log log(options.log == "json" ? Log::Format::json : Log::Format::text);
  for (const std::string& note : read->notes) {
    log.write("config note=" + quote(note), false);
  }
  Specs specs(*host);
  plugin::DaemonSettings settings;
  settings.config = read->config;
  settings.version = HOLDFAST_VERSION;
  settings.reload = [&host, &options]() -> Result<config::Config> { return TRY(read_config(*host, options)).config; };
  settings.refresh_specs = [&specs](const config::Config& config) { return specs.refresh(config); };
  settings.notify = notify;
  settings.log = [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); };
  const Result<void> ran = plugin::run_daemon(*host, settings);
  return ran ? kFine : complain(ran.error());
}

int run(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 2);
  kernel::block_signals();
  CLI::App app("holdfast-kube: offers devices to kubelet, each with its whole set of device nodes or not at all",
               "holdfast-kube");
  app.set_version_flag("--version", std::string("holdfast-kube ") + HOLDFAST_VERSION);
  KubeOptions options;
  app.add_option("--config", options.config_file, "this file instead of /etc/holdfast/config.yaml and its drop-ins");
  app.add_option("--nvidia-config", options.nvidia_config, "a config file of NVIDIA's device plugin, read as well");
  app.add_flag("--check-config", options.check_config, "read the configuration, say what it means, and end");
  app.add_flag("--once", options.once, "print what would be offered and allocated, as JSON, and end");
  app.add_option("--log", options.log, "text or json, one line per decision")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(
      "signals: SIGHUP reads the configuration again, SIGTERM ends; running pods keep what they have\n"
      "exit: 0 fine, 1 --once found a device that cannot be given, 2 usage, or it cannot run here");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kCannot;
  }
  for (std::string* path : {&options.config_file, &options.nvidia_config}) {
    *path = path->empty() ? std::string() : std::filesystem::absolute(*path).string();
  }
  return serve(options);
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run(argc, argv); }
