// holdfastd: the node agent. It watches every container's device rules and gives back what was taken.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <mutex>

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "core/report/blame.h"
#include "kernel/bpf_api.h"
#include "kernel/filters.h"
#include "kernel/seat.h"
#include "kernel/shield.h"
#include "programs/holdfastd/capabilities.h"
#include "programs/holdfastd/log.h"
#include "programs/holdfastd/notify.h"
#include "services/doctor/doctor.h"
#include "services/guard/daemon.h"
#include "services/specs/fresh.h"
#include "services/web/server.h"

namespace hf::programs {
namespace {

constexpr int kFine = 0;
constexpr int kCannot = 2;

struct Words {
  std::string config_file;
  std::string tier;
  std::string journal;
  std::string listen;
  std::string socket;
  std::string log = "text";
  bool check_config = false;
  bool remove_shields = false;
};

int complain(const Error& error) {
  std::cerr << "holdfastd: " << error.message << '\n';
  return kCannot;
}

Result<config::Config> read_config(const kernel::Host& host, const Words& words) {
  config::Config config =
      words.config_file.empty() ? TRY(config::read_config(host)) : TRY(config::read_config(host, words.config_file));
  config.journal.folder = words.journal.empty() ? config.journal.folder : words.journal;
  const auto place = [](const std::string& word) { return word == "none" ? std::string() : word; };
  config.web.listen = words.listen.empty() ? config.web.listen : place(words.listen);
  config.web.socket = words.socket.empty() ? config.web.socket : place(words.socket);
  return config;
}

int show_config(const config::Config& config) {
  std::cout << "config is fine: " << (config.files.empty() ? "no file, all defaults" : "") << '\n';
  for (const std::string& file : config.files) {
    std::cout << "  read " << file << '\n';
  }
  std::cout << "  mode " << to_string(config.policy.mode) << ", shield " << to_string(config.policy.shield) << ", "
            << config.policy.rules.size() << " rules, " << config.classes.size() << " device classes\n";
  return kFine;
}

void block_signals() {
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) {
    ::sigaddset(&set, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// The doctor's look at the whole node, for the findings on the page. A machine of its own: it is another thread's.
Result<std::vector<report::Finding>> diagnose(const kernel::Host& host) {
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  kernel::Filters filters(host, *bpf);
  const std::unique_ptr<kernel::Seats> seats = kernel::open_kernel_seats(host);
  doctor::Machine machine{host, filters, *seats, std::time(nullptr)};
  report::DoctorReport report = TRY(doctor::diagnose(machine, {{}, false, false}));
  return std::move(report.findings);
}

// Guarding is more important than being seen: a server that cannot start is reported, and the guard goes on.
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

// Before any thread starts: each has capabilities of its own.
std::vector<std::string> give_up_capabilities(Log& log) {
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

// For uninstalling: nothing of ours stays in the kernel but repaired rules, which are the containers' own.
int remove_shields(const kernel::Host& host) {
  if (const std::optional<journal::Status> running = journal::read_status(host)) {
    return complain({std::errc::device_or_resource_busy, "holdfastd runs (pid " + std::to_string(running->pid.value) +
                                                             ") and would put them back: stop it first"});
  }
  const std::unique_ptr<kernel::Bpf> bpf = kernel::open_kernel_bpf();
  kernel::Filters filters(host, *bpf);
  const Result<std::vector<std::string>> removed = kernel::remove_shields(host, filters);
  if (!removed) {
    return complain(removed.error());
  }
  for (const std::string& cgroup : *removed) {
    std::cout << "took the shield off " << printable(cgroup) << '\n';
  }
  std::cout << (removed->empty() ? "there was no shield\n" : "");
  return kFine;
}

int serve(const Words& words) {
  Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<config::Config> config = read_config(*host, words);
  if (!config) {
    return complain(config.error());
  }
  if (words.check_config) {
    return show_config(*config);
  }
  if (::geteuid() != 0) {
    return complain({std::errc::operation_not_permitted, "needs root: it changes the device rules of containers"});
  }
  if (words.remove_shields) {
    return remove_shields(*host);
  }
  guard::DaemonSettings settings;
  settings.config = *config;
  if (!words.tier.empty()) {
    const Result<container::Tier> tier = container::parse_tier(words.tier);
    if (!tier) {
      return complain(tier.error());
    }
    settings.at_most = *tier;
  }
  Log log(words.log == "json" ? Log::Format::json : Log::Format::text);
  settings.version = HOLDFAST_VERSION;
  settings.reload = [&host, &words] { return read_config(*host, words); };
  settings.diagnose = [&host] { return diagnose(*host); };
  specs::FreshSpec spec(*host);
  settings.refresh = [&spec](const config::Config& now) { return spec.refresh(now); };
  settings.notify = notify;
  settings.watchdog = watchdog_interval();
  settings.outlets.log = [&log](const std::string& line, bool is_warning) { log.write(line, is_warning); };
  web::Board board;
  settings.outlets.record = [&board](const report::BlameRecord& record) { board.publish(record); };
  settings.outlets.snapshot = [&board](const std::shared_ptr<const report::Snapshot>& snapshot) {
    board.publish(snapshot);
  };
  settings.missing_capabilities = give_up_capabilities(log);
  const std::unique_ptr<web::Server> server = open_web(config->web, board, log);
  const Result<void> ran = guard::run_daemon(*host, settings);
  return ran ? kFine : complain(ran.error());
}

int run(int count, char** words_given) {
  // Three threads that come and go through few pages: arenas of their own would cost memory and bring nothing.
  ::mallopt(M_ARENA_MAX, 2);
  block_signals();
  CLI::App app("holdfastd: watches every container's device rules and gives back what was taken", "holdfastd");
  app.set_version_flag("--version", std::string("holdfastd ") + HOLDFAST_VERSION);
  Words words;
  app.add_option("--config", words.config_file, "this file instead of /etc/holdfast/config.yaml and its drop-ins");
  app.add_flag("--check-config", words.check_config, "read the configuration, say what it means, and end");
  app.add_option("--tier", words.tier, "hear of changes by no better means than: tracepoints, files, polling");
  app.add_flag("--remove-shields", words.remove_shields, "take every shield off this host, and end: to uninstall");
  app.add_option("--journal", words.journal, "the folder for blame records, instead of the configured one");
  app.add_option("--listen", words.listen, "address:port for the status page and metrics, or none");
  app.add_option("--socket", words.socket, "the path of a unix socket for the same, or none");
  app.add_option("--log", words.log, "text or json, one line for each decision")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(
      "signals: SIGHUP reads the configuration again, SIGTERM ends; containers keep what they have, and shields stay\n"
      "exit: 0 ended as told, 2 usage, or it cannot run here");
  try {
    app.parse(count, words_given);
  } catch (const CLI::ParseError& error) {
    const bool is_asked = error.get_exit_code() == 0;
    const int status = app.exit(error);
    return is_asked ? kFine : (status == 0 ? kFine : kCannot);
  }
  for (std::string* path : {&words.config_file, &words.journal}) {  // as seen from where we were started
    *path = path->empty() ? std::string() : std::filesystem::absolute(*path).string();
  }
  return serve(words);
}

}  // namespace
}  // namespace hf::programs

int main(int count, char** words) { return hf::programs::run(count, words); }
