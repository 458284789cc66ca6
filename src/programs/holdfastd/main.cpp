// holdfastd: the daemon. It watches the device rules of every container and restores what was lost.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <span>

#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/config/reload.h"
#include "adapters/journal/journal.h"
#include "adapters/journal/run_file.h"
#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "core/report/blame.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/filters.h"
#include "kernel/cgroup/shield.h"
#include "kernel/container/node_prober.h"
#include "kernel/net/socket.h"
#include "programs/console/exit_code.h"
#include "programs/daemon/daemon_program.h"
#include "programs/daemon/log.h"
#include "programs/daemon/notify.h"
#include "programs/holdfastd/capabilities.h"
#include "programs/holdfastd/cpu_board.h"
#include "services/cpus/manager_thread.h"
#include "services/doctor/doctor.h"
#include "services/guard/daemon.h"
#include "services/specs/fresh.h"
#include "services/web/server.h"

namespace hf::programs {
namespace {

struct DaemonOptions : CommonOptions {
  std::string tier;
  std::string journal;
  std::string listen;
  std::string socket;
  bool remove_shields = false;
};

Result<config::Config> read_config(const kernel::Host& host, const DaemonOptions& options) {
  config::Config config = options.config_file.empty() ? TRY(config::read_config(host))
                                                      : TRY(config::read_config(host, options.config_file));
  config.journal.directory = options.journal.empty() ? config.journal.directory : options.journal;
  const auto address = [](const std::string& value) { return value == "none" ? std::string() : value; };
  config.web.listen = options.listen.empty() ? config.web.listen : address(options.listen);
  config.web.socket = options.socket.empty() ? config.web.socket : address(options.socket);
  if (!config.web.listen.empty()) {
    TRY(kernel::check_address(config.web.listen));
  }
  return config;
}

int show_config(const config::Config& config) {
  std::cout << "config is fine" << (config.files.empty() ? ": no file, all defaults" : "") << '\n';
  for (const std::string& file : config.files) {
    std::cout << "  read " << file << '\n';
  }
  std::cout << "  mode " << to_string(config.policy.mode) << ", shield " << to_string(config.policy.shield) << ", "
            << config.policy.rules.size() << " rules, " << config.classes.size() << " device classes, CPU manager "
            << (config.cpus.manages ? "on" : "off") << ", NRI " << (config.nri.is_enabled ? "on" : "off") << '\n';
  return kFine;
}

// Diagnoses the whole host for the status page. Opens its own filters, because it runs in another thread.
// `latest` has what the records say, as the doctor reads it from the journal.
Result<std::vector<report::Finding>> diagnose(const kernel::Host& host, const report::Snapshot& latest) {
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  kernel::Filters filters(host, *bpf);
  const std::unique_ptr<kernel::NodeProber> prober = kernel::open_node_prober(host);
  host::OpenHost machine{host, filters, *prober, std::time(nullptr)};
  report::DoctorReport report = TRY(doctor::diagnose(machine, {{}, false, &latest.histories}));
  return std::move(report.findings);
}

// Guarding matters more than the status page: a server that cannot start is reported, and the guard runs without it.
std::unique_ptr<web::Server> open_web(const config::WebSettings& settings, const web::Board& board, Log& log) {
  const std::size_t slash = settings.socket.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    (void)::mkdir(settings.socket.substr(0, slash).c_str(), 0755);
  }
  const web::Settings wanted{settings.listen, settings.socket,
                             settings.shows_details ? web::Details::shown : web::Details::hidden,
                             [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); }};
  Result<std::unique_ptr<web::Server>> server = web::Server::start(wanted, board);
  if (!server) {
    log.write("not-listening error=" + quote(server.error().message), true);
    return nullptr;
  }
  return *std::move(server);
}

// Must run before any thread starts, because each thread has its own capabilities.
std::vector<std::string> drop_capabilities(Log& log) {
  Result<std::vector<std::string>> missing = keep_needed_capabilities();
  if (!missing) {
    log.write("capabilities error=" + quote(missing.error().message), true);
    return {};
  }
  if (!missing->empty()) {
    log.write("capabilities missing=" + join(*missing, ","), true);
  }
  return *std::move(missing);
}

// For uninstalling: only repaired rules stay in the kernel, and those belong to the containers.
Result<int> remove_shields(const kernel::Host& host) {
  if (const std::optional<container::Pid> running = journal::holder_of_host_lock(host)) {
    return fail(std::errc::device_or_resource_busy,
                "holdfastd runs (pid " + std::to_string(running->value) + ") and would restore them: stop it first");
  }
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  kernel::Filters filters(host, *bpf);
  const std::vector<std::string> removed = TRY(kernel::remove_shields(host, filters));
  for (const std::string& cgroup : removed) {
    std::cout << "removed the shield from " << printable(cgroup) << '\n';
  }
  std::cout << (removed.empty() ? "there was no shield\n" : "");
  return kFine;
}

Result<int> guard_host(const kernel::Host& host, const config::Config& config, const DaemonOptions& options) {
  const Result<kernel::Fd> only_here = journal::lock_host(host);
  const Result<kernel::Fd> only_writer = journal::lock_journal(host, config.journal.directory);
  for (const Result<kernel::Fd>* lock : {&only_here, &only_writer}) {
    if (!*lock && lock->error().code == std::errc::device_or_resource_busy) {
      return std::unexpected(lock->error());  // without a lock, for any other reason, it guards all the same
    }
  }
  guard::DaemonSettings settings;
  settings.config = config;
  settings.at_most = options.tier.empty() ? settings.at_most : *container::parse_tier(options.tier);
  Log log(options.log == "json" ? Log::Format::json : Log::Format::text);
  settings.version = HOLDFAST_VERSION;
  settings.reload = [&]() -> Result<config::Config> {
    config::Config read = TRY(read_config(host, options));
    if (const std::vector<std::string> keys = config::waits_for_restart_of_guard(config, read); !keys.empty()) {
      log.write("config-waits-for-restart keys=" + join(keys, ","), true);
    }
    read.kube.root_dir = config.kube.root_dir;  // its directories are watched
    return read;
  };
  specs::FreshSpec spec(host);
  settings.refresh = [&spec](const config::Config& now) { return spec.refresh(now); };
  settings.notify = notify;
  settings.heartbeat = heartbeat_interval(journal::kHeartbeat);
  settings.callbacks.log = [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); };
  web::Board board;
  settings.diagnose = [&host, &board] {
    const std::shared_ptr<const report::Snapshot> latest = board.latest();
    return diagnose(host, latest ? *latest : report::Snapshot());
  };
  settings.callbacks.record = [&board](const report::BlameRecordPtr& record) { board.publish(record); };
  settings.callbacks.snapshot = [&board](const std::shared_ptr<const report::Snapshot>& snapshot) {
    board.publish(snapshot);
  };
  settings.missing_capabilities = drop_capabilities(log);
  CpuBoard cpu_board;
  cpus::ManagerThread cpu_manager(
      host, {config, settings.callbacks.log, [&](auto status) { cpu_board.publish(std::move(status)); }});
  settings.census = [&](const auto& discovered, std::uint64_t began) { cpu_manager.take_census(discovered, began); };
  settings.offer_census = [&](std::function<void()> request) { cpu_manager.set_census_request(std::move(request)); };
  settings.newcomer = [&](const host::DiscoveredContainer& discovered) { cpu_manager.add(discovered); };
  settings.reloaded = [&](const config::Config& now) { cpu_manager.set_config(now); };
  settings.callbacks.cpus = [&] { return cpu_board.latest(); };
  const std::unique_ptr<web::Server> server = open_web(config.web, board, log);
  const Result<void> ran = guard::run_daemon(host, settings);
  if (only_here) {
    journal::remove_host_lock(host);
  }
  TRY(ran);
  return kFine;
}

Result<int> serve(const DaemonOptions& options) {
  const kernel::Host host = TRY(enter_host());
  if (options.check_health) {
    // It guards also where it cannot write its file.
    const bool lacks_file = !kernel::exists(host.root.get(), kernel::below_root(journal::kStatusFile)) &&
                            journal::holder_of_host_lock(host).has_value();
    return show_health(lacks_file ? std::nullopt : journal::find_problem(host, journal::kStatusFile, "holdfastd"));
  }
  const config::Config config = TRY(read_config(host, options));
  if (options.check_config) {
    return show_config(config);
  }
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "needs root: it changes the device rules of containers");
  }
  if (options.remove_shields) {
    return remove_shields(host);
  }
  return guard_host(host, config, options);
}

void add_options(CLI::App& app, DaemonOptions& options) {
  add_check_options(app, options);
  app.add_option("--tier", options.tier, "detect changes by no better means")
      ->check(CLI::IsMember({"tracepoints", "files", "polling"}));
  app.add_flag("--remove-shields", options.remove_shields, "remove every shield from this host, and end: to uninstall");
  app.add_option("--journal", options.journal, "the directory for blame records, instead of the configured one");
  app.add_option("--listen", options.listen, "address:port for the status page and metrics, or none");
  app.add_option("--socket", options.socket, "the path of a unix socket for the same, or none")
      ->transform([](const std::string& path) {
        return path.empty() || path == "none" ? path : std::filesystem::absolute(path).string();
      });
}

int run(std::span<char* const> argv) {
  DaemonOptions options;
  DaemonProgram program;
  program.name = "holdfastd";
  program.task = "watches the device rules of every container and restores what was lost";
  program.footer =
      "signals: SIGHUP reads the configuration again, SIGTERM ends; containers keep what they have, and shields stay\n"
      "exit: 0 ended as requested, 1 --check-health: not well, 2 usage, or it cannot run here";
  program.add_options = [&options](CLI::App& app) { add_options(app, options); };
  program.paths = {&options.journal};
  program.serve = [&options] { return serve(options); };
  return run_program(program, options, argv);
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run({argv, std::size_t(argc)}); }
