// holdfast-kube: everything that speaks to Kubernetes: the device plugin and the DRA driver.
#include <iostream>
#include <memory>
#include <span>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/apiserver/access.h"
#include "adapters/config/plugin_options.h"
#include "adapters/journal/plugin_status.h"
#include "core/base/text.h"
#include "core/resource/allocation.h"
#include "kernel/files/file.h"
#include "programs/console/exit_code.h"
#include "programs/daemon/daemon_program.h"
#include "programs/daemon/log.h"
#include "programs/daemon/notify.h"
#include "programs/holdfast-kube/class_specs.h"
#include "render/plugin.h"
#include "render/yaml.h"
#include "services/cluster/api_thread.h"
#include "services/cluster/node_name.h"
#include "services/plugin/daemon.h"
#include "services/plugin/once.h"

namespace hf::programs {
namespace {

struct KubeOptions : CommonOptions {
  std::string nvidia_config;
  std::string format = "json";  // of --once
  bool once = false;
};

struct ReadConfig {
  config::Config config;
  std::vector<std::string> notes;
};

bool uses_api(const kernel::Host& host, const config::ApiSettings& api) {
  const bool is_found = !api.kubeconfig.empty() || apiserver::is_in_cluster(host);
  return api.use == config::ApiUse::on || (api.use == config::ApiUse::automatic && is_found);
}

// Which of the two ways of offering devices is on.
Result<void> check_offering(const kernel::Host& host, const config::KubeSettings& kube,
                            std::vector<std::string>& notes) {
  if (!kube.serves_device_plugin && !kube.dra.is_enabled) {
    return fail(std::errc::invalid_argument,
                "config: kube.device_plugin and kube.dra.enabled are both false: nothing would be offered");
  }
  if (kube.dra.is_enabled && !uses_api(host, kube.api)) {
    return fail(std::errc::invalid_argument,
                "config: kube.dra.enabled needs the API server: this process has no service account, and "
                "kube.api.kubeconfig names no file, or kube.api.enabled is off");
  }
  if (kube.dra.is_enabled && kube.serves_device_plugin) {
    notes.emplace_back("kube.device_plugin and kube.dra.enabled are both true: the cluster counts each device twice");
  }
  if (kube.dra.is_enabled) {
    (void)TRY(cluster::node_name(kube.api.node));
  }
  return {};
}

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
  TRY(check_offering(host, kube, read.notes));
  for (const resource::ResourceRule& rule : kube.policy.rules) {
    const Result<void> known = device::check_class(read.config.classes, rule.device_class);
    if (!known) {
      return fail(known.error().code, "config: kube.resources: " + rule.resource + ": " + known.error().message);
    }
  }
  return read;
}

// What the API server would be told, and as whom.
Result<int> show_api(const kernel::Host& host, const config::ApiSettings& api) {
  if (!uses_api(host, api)) {
    std::cout << "  connects to no API server\n";
    return kFine;
  }
  const apiserver::Access access = TRY(apiserver::read_access(host, api.kubeconfig));
  const std::string node = TRY(cluster::node_name(api.node));
  std::cout << "  writes" << (api.writes_events ? " events of pods," : "")
            << (api.writes_condition ? " the condition DeviceAccess," : "") << (api.writes_taint ? " a taint," : "")
            << " as node " << node << ", to the API server " << access.host << ":" << access.port << '\n';
  return kFine;
}

Result<int> show_config(const kernel::Host& host, const ReadConfig& read) {
  const config::KubeSettings& kube = read.config.kube;
  std::cout << "config is fine" << (read.config.files.empty() ? ": no file, all defaults" : "") << '\n';
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
  std::vector<std::string> strategies;
  strategies.reserve(kube.policy.strategies.size());
  for (const resource::DeviceListStrategy strategy : kube.policy.strategies) {
    strategies.push_back(to_string(strategy));
  }
  std::cout << "  gives devices by " << join(strategies, ", ")
            << (kube.policy.passes_nodes ? " and as device nodes" : "") << '\n';
  if (kube.dra.is_enabled) {
    std::cout << "  publishes devices as the DRA driver " << kube.dra.driver
              << (kube.serves_device_plugin ? "" : ", and is no device plugin") << '\n';
  }
  for (const std::string& note : read.notes) {
    std::cout << "  note: " << note << '\n';
  }
  return show_api(host, kube.api);
}

int show_once(const kernel::Host& host, const config::Config& config, const std::string& format) {
  const report::PluginReport report = plugin::look_once(host, config);
  const std::string json = report::render_json(report);
  std::cout << (format == "yaml" ? report::json_to_yaml(json) : json + "\n");
  return report.is_fine() ? kFine : kProblem;
}

// Null where there is no API server to speak to. Devices are offered in any case.
std::unique_ptr<cluster::ApiThread> start_api(const kernel::Host& host, const config::Config& config, Log& log) {
  const config::ApiSettings& api = config.kube.api;
  if (!uses_api(host, api)) {
    return nullptr;
  }
  const Result<std::string> node = cluster::node_name(api.node);
  if (!node) {
    log.write("api-off error=" + quote(node.error().message), true);
    return nullptr;
  }
  cluster::ApiSettings settings;
  settings.options = api;
  settings.node = *node;
  settings.guard_socket = config.web.socket;
  settings.read_access = [&host, kubeconfig = api.kubeconfig] { return apiserver::read_access(host, kubeconfig); };
  settings.log = [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); };
  return std::make_unique<cluster::ApiThread>(host, std::move(settings));
}

Result<int> serve(const KubeOptions& options) {
  const kernel::Host host = TRY(enter_host());
  if (options.check_health) {
    return show_health(journal::find_problem(host, journal::kPluginStatusFile, "holdfast-kube"));
  }
  const ReadConfig read = TRY(read_config(host, options));
  if (options.check_config) {
    return show_config(host, read);
  }
  if (options.once) {
    return show_once(host, read.config, options.format);
  }
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "needs root: kubelet's directory belongs to it");
  }
  Log log(options.log == "json" ? Log::Format::json : Log::Format::text);
  for (const std::string& note : read.notes) {
    log.write("config note=" + quote(note), false);
  }
  const std::unique_ptr<cluster::ApiThread> api = start_api(host, read.config, log);
  ClassSpecs specs(host);
  plugin::DaemonSettings settings;
  settings.config = read.config;
  settings.version = HOLDFAST_VERSION;
  settings.reload = [&host, &options]() -> Result<config::Config> { return TRY(read_config(host, options)).config; };
  settings.refresh_specs = [&specs](const config::Config& config) { return specs.refresh(config); };
  if (api) {
    settings.record = [&api](const report::BlameRecord& record) { api->report(record); };
    settings.api = [&api](apiserver::Request request, plugin::ApiDone done) {
      api->request(std::move(request), std::move(done));
    };
    settings.node = api->node();
    settings.read_access = [&host, file = read.config.kube.api.kubeconfig] {
      return apiserver::read_access(host, file);
    };
  }
  settings.notify = notify;
  settings.heartbeat = heartbeat_interval(journal::kHeartbeat);
  settings.log = [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); };
  TRY(plugin::run_daemon(host, settings));
  return kFine;
}

void add_options(CLI::App& app, KubeOptions& options) {
  app.add_option("--nvidia-config", options.nvidia_config, "a config file of NVIDIA's device plugin, read as well");
  add_check_options(app, options);
  CLI::Option* once = app.add_flag("--once", options.once, "print what would be offered and allocated, and end");
  app.add_option("-o,--output", options.format, "the output format of --once (docs/JSON.md)")
      ->check(CLI::IsMember({"json", "yaml"}))
      ->capture_default_str()
      ->needs(once);
}

int run(std::span<char* const> argv) {
  KubeOptions options;
  DaemonProgram program;
  program.name = "holdfast-kube";
  program.task = "offers devices to kubelet, each with its whole set of device nodes or not at all";
  program.footer =
      "signals: SIGHUP reads the configuration again, SIGTERM ends; running pods keep what they have\n"
      "exit: 0 fine, 1 --once found a device that cannot be given, or --check-health: not well, 2 usage, or it cannot "
      "run here";
  program.add_options = [&options](CLI::App& app) { add_options(app, options); };
  program.paths = {&options.nvidia_config};
  program.serve = [&options] { return serve(options); };
  return run_program(program, options, argv);
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run({argv, std::size_t(argc)}); }
