#include "services/shim/serve.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/config/config.h"
#include "adapters/ledger/ledger.h"
#include "adapters/oci/command_line.h"
#include "adapters/oci/edit_spec.h"
#include "adapters/oci/spec.h"
#include "core/base/text.h"
#include "host/cpu_tenant.h"
#include "kernel/files/file.h"
#include "kernel/net/stream.h"
#include "services/shim/complaint.h"
#include "services/shim/delivery.h"
#include "services/shim/driver.h"
#include "services/shim/facts.h"
#include "services/shim/host_step.h"
#include "services/shim/low_level.h"
#include "services/shim/request.h"
#include "services/shim/root_files.h"
#include "services/shim/update.h"

namespace hf::shim {
namespace {

using oci::CommandLine;
using oci::Verb;

constexpr const char* kTitle = "holdfast-runtime " HOLDFAST_VERSION;
constexpr int kFailed = 1;
// A container that waits for the CPU manager starts after this time, whatever happens.
constexpr std::chrono::milliseconds kLongestWait{50};
constexpr std::size_t kMostSpec = std::size_t(512) << 20U;

std::string absolute(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  const std::string result = resolved == nullptr ? path : resolved;
  ::free(resolved);  // NOLINT(cppcoreguidelines-no-malloc): realpath allocates it
  return result;
}

std::string program_of(const std::string& process) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(("/proc/" + process + "/exe").c_str(), path.data(), path.size());
  path.resize(size > 0 ? std::size_t(size) : 0);
  return path;
}

std::string own_program() { return program_of("self"); }

// If the parent has ended meanwhile, its pid may belong to another process; getppid() then returns another pid.
Starter starter_of(const std::string& bundle) {
  const pid_t parent = ::getppid();
  const Starter found = starter_named(program_of(std::to_string(parent)), bundle);
  return ::getppid() == parent ? found : Starter::other;
}

// Loads a driver that is missing, because it decides what there is to give. Changes nothing else.
Result<Delivery> plan(const kernel::Host& host, const config::Config& config, const DeliveryInput& input) {
  std::optional<Facts> facts = read_facts(host, config, input);
  if (!facts) {
    return Delivery();
  }
  load_driver(host, config, input.spec, *facts);
  return plan_delivery(host, config, input, *std::move(facts));
}

class Server {
 public:
  explicit Server(const std::vector<std::string>& arguments)
      : arguments_(arguments), line_(oci::parse_command_line(arguments)) {}

  int serve() {
    Result<kernel::Host> host = kernel::open_host_without_cgroups();
    if (host) {
      host_ = *std::move(host);
    }
    read_settings();
    const Result<std::string> program = find_low_level(config_ ? config_->runtime.programs : kDefaults.programs);
    const bool asks_for_version = is_only({"--version", "-v"});
    if (!program) {
      (void)std::printf("%s", asks_for_version ? (std::string(kTitle) + "\n").c_str() : "");
      return complain_and_fail(program.error().message);
    }
    program_ = *program;
    if (asks_for_version) {
      return show_version();
    }
    if (is_only({"--help", "-h", "help"})) {
      (void)std::printf("%s\nIt completes the specs of containers that ask for devices, and becomes %s:\n\n", kTitle,
                        program_.c_str());
      (void)std::fflush(stdout);
    }
    decide("program=" + program_ + " arguments=" + quote(join(arguments_, " ")));
    switch (line_.asks_for_help || !host_ ? Verb::other : line_.verb) {
      case Verb::create:
      case Verb::run:
      case Verb::restore: return create();
      case Verb::update: return update();
      case Verb::remove: return remove();
      case Verb::other: break;
    }
    return exec_runtime();
  }

 private:
  [[nodiscard]] bool is_only(std::initializer_list<std::string_view> options) const {
    return arguments_.size() == 1 && std::ranges::find(options, arguments_.front()) != options.end();
  }

  // Engines read the version of the runtime from the first lines, so ours comes last.
  int show_version() {
    const Result<int> code = run_to_end(program_, arguments_);
    (void)std::printf("%s, over %s\n", kTitle, program_.c_str());
    return code ? *code : complain_and_fail(code.error().message);
  }

  // For `runtime.log`.
  void decide(const std::string& decision) const {
    if (config_ && !config_->runtime.log.empty()) {
      write_decision(config_->runtime.log, line_, decision);
    }
  }

  int complain_and_fail(const std::string& why) {
    decide("refused error=" + quote(why));
    complain(line_, Level::error, why);
    return kFailed;
  }

  int exec_runtime() { return complain_and_fail(exec_program(program_, arguments_).error().message); }

  // The whole line where it has quotes: they may hold what looks like a comment.
  static std::string_view without_comment(std::string_view line) {
    const std::size_t comment = line.starts_with('#') ? 0 : line.find(" #");
    return line.find_first_of("'\"") < comment ? line : line.substr(0, comment);
  }

  // Does the text of a config file have this key, outside of comments?
  static bool mentions(std::string_view text, std::string_view key) {
    return std::ranges::any_of(split(text, '\n'),
                               [key](std::string_view line) { return without_comment(line).contains(key); });
  }

  // Parsing YAML takes longer than everything else here, so it is done only if the file names runtimes, classes or a
  // log.
  static bool has_settings(const kernel::Host& host) {
    const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(config::kFile));
    const bool in_main = text && (mentions(*text, "programs") || mentions(*text, "classes") || mentions(*text, "log"));
    return in_main || kernel::exists(host.root.get(), kernel::below_root(config::kDropIns));
  }

  void read_settings() {
    if (host_ && has_settings(*host_)) {
      read_all_settings();
    }
  }

  // A broken config is an error only for containers that request a device, so it is kept for later.
  void read_all_settings() {
    if (config_ || !config_problem_.empty()) {
      return;
    }
    Result<config::Config> config = config::read_config(*host_);
    if (config) {
      config_ = *std::move(config);
    } else {
      config_problem_ = config.error().message;
    }
  }

  int create() {
    last_ = entry();
    const Result<void> prepared = prepare();
    if (!prepared) {
      return complain_and_fail(prepared.error().message);
    }
    return gives_ || last_ || waits_for_cpus() ? create_and_wait() : exec_runtime();
  }

  // Between create and start the container's own program does not run yet. The other verbs start it themselves.
  [[nodiscard]] bool waits_for_cpus() const {
    return line_.verb == Verb::create && kernel::exists(host_->root.get(), kernel::below_root(host::kPlacementSocket));
  }

  // The CPU manager closes the connection as soon as the container has its CPUs. Without it the container starts in
  // any case, and is moved later.
  void wait_for_cpus() const {
    const kernel::Clock::time_point deadline = kernel::Clock::now() + kLongestWait;
    Result<kernel::Stream> manager = kernel::Stream::open(*host_, host::kPlacementSocket, deadline);
    if (manager && manager->send(line_.container + "\n", deadline)) {
      (void)manager->receive(deadline);
    }
  }

  // An entry must live exactly as long as its container: the name may be taken, or the container may fail to start or
  // end with its runtime, and the next container of the name must not inherit what the last one was given.
  int create_and_wait() {
    const Result<int> code = run_to_end(program_, arguments_);
    if (!code || *code != 0) {
      restore_last_entry();
    } else if (!gives_ || line_.ends_with_runtime) {
      ledger::remove_entry(*host_, {line_.container});
    }
    if (code && *code == 0 && waits_for_cpus()) {
      wait_for_cpus();
    }
    return code ? *code : complain_and_fail(code.error().message);
  }

  void restore_last_entry() {
    if (last_) {
      (void)ledger::save_entry(*host_, *last_);
    } else {
      ledger::remove_entry(*host_, {line_.container});
    }
  }

  Result<void> prepare() {
    const std::string bundle = absolute(line_.bundle);
    const std::string file = line_.config.starts_with('/') ? line_.config : bundle + "/" + line_.config;
    const Result<std::string> text = kernel::read_start(AT_FDCWD, file, kMostSpec);
    const std::vector<std::string> prefixes = config_ ? path_prefixes_of(config_->classes) : std::vector<std::string>();
    if (!text || !may_ask(*text, prefixes)) {
      decide("asks for no device");
      return {};  // the runtime itself reports a missing file
    }
    const Result<oci::Spec> spec = oci::parse_spec(*text);
    if (!spec) {
      return fail(spec.error().code, file + ": " + spec.error().message);
    }
    read_all_settings();
    const config::Config& config = config_ ? *config_ : default_config();
    const std::string other_file = file == bundle + "/config.json" ? std::string() : absolute(file);
    const DeliveryInput input{bundle, *spec, own_program(), other_file, starter_of(bundle)};
    Result<Delivery> delivery = plan(*host_, config, input);
    if (!delivery) {
      // The broken config may be the cause, so it is reported instead.
      return config_problem_.empty() ? std::unexpected(delivery.error())
                                     : fail(std::errc::invalid_argument, config_problem_);
    }
    for (const std::string& note : delivery->notes) {
      decide("warning=" + quote(note));
      complain(line_, Level::warning, note);
    }
    if (!config_problem_.empty() && does_something(delivery->change)) {
      return fail(std::errc::invalid_argument, config_problem_);
    }
    TRY(carry_out(*host_, delivery->steps));
    const ReplacedHooks replaced = TRY(replace_hooks(*host_, input, *delivery));
    for (const std::string& reason : replaced.reasons) {
      decide("hook because=" + quote(reason));
      complain(line_, Level::info, "the container gets a hook: " + reason);
    }
    for (const std::string& note : replaced.notes) {
      decide("note=" + quote(note));
      complain(line_, Level::info, note);
    }
    return does_something(delivery->change) ? apply(*delivery, bundle, file, *text) : Result<void>();
  }

  static bool does_something(const oci::SpecChange& change) {
    return !change.edits.is_empty() || !change.dropped_hooks.empty();
  }

  static const config::Config& default_config() {
    static const config::Config kConfig = *config::parse_config(std::string_view());
    return kConfig;
  }

  Result<void> apply(const Delivery& delivery, const std::string& bundle, const std::string& file,
                     const std::string& text) {
    const Result<oci::EditedSpec> edited = oci::edit_spec(text, delivery.change);
    if (!edited) {
      return fail(edited.error().code, file + ": " + edited.error().message);
    }
    for (const std::string& corrected : edited->corrected) {
      complain(line_, Level::warning, "stale device numbers corrected: " + corrected);
    }
    decide(given_text(delivery));
    // A rootless runtime has no ledger and no device cgroup.
    gives_ = !delivery.given.empty() && ::geteuid() == 0;
    if (gives_) {
      TRY(ledger::save_entry(*host_, {{line_.container}, bundle, {}, delivery.given}));
    }
    const Result<void> written = edited->text == text ? Result<void>() : write_spec(file, edited->text);
    if (!written && gives_) {
      restore_last_entry();
    }
    return written;
  }

  static std::string given_text(const Delivery& delivery) {
    std::vector<std::string> nodes;
    nodes.reserve(delivery.given.size());
    for (const container::WantedNode& node : delivery.given) {
      nodes.push_back(node.path);
    }
    const container::ContainerEdits& edits = delivery.change.edits;
    return "given=" + join(nodes, ",") + " mounts=" + std::to_string(edits.mounts.size()) +
           " hooks=" + std::to_string(edits.hooks.size()) +
           " dropped-hooks=" + join(delivery.change.dropped_hooks, ",");
  }

  static Result<void> write_spec(const std::string& file, const std::string& text) {
    struct stat status{};
    constexpr std::uint32_t kBits = 07777;
    const std::uint32_t mode = ::stat(file.c_str(), &status) == 0 ? status.st_mode & kBits : 0600;
    return kernel::replace_file(AT_FDCWD, file, {text, mode});
  }

  // Absent if we gave the container nothing.
  [[nodiscard]] std::optional<ledger::Entry> entry() const {
    const Result<std::optional<ledger::Entry>> read = ledger::read_entry(*host_, {line_.container});
    return read ? *read : std::nullopt;
  }

  // The engine may send device rules with an update that lack what we gave, and crun applies them. Access that is lost
  // all the same is restored before we return.
  int update() {
    const std::optional<ledger::Entry> given = entry();
    if (!given) {
      return exec_runtime();
    }
    const SafeUpdate safe = keep_devices(arguments_, line_, *given);
    const Result<int> code = run_to_end(program_, safe.arguments);
    if (!code) {
      return complain_and_fail(code.error().message);
    }
    if (!heal_container(line_.container, own_program())) {
      complain(line_, Level::warning, "could not heal " + line_.container + " after its update");
    }
    return *code;
  }

  int remove() {
    if (!entry()) {
      return exec_runtime();
    }
    const Result<int> code = run_to_end(program_, arguments_);
    if (!code) {
      return complain_and_fail(code.error().message);
    }
    if (*code == 0) {
      ledger::remove_entry(*host_, {line_.container});
    }
    return *code;
  }

  inline static const config::RuntimeSettings kDefaults;

  const std::vector<std::string>& arguments_;
  CommandLine line_;
  std::optional<kernel::Host> host_;
  std::optional<config::Config> config_;
  std::string config_problem_;
  std::string program_;
  std::optional<ledger::Entry> last_;  // the entry of this name before this call
  bool gives_ = false;
};

}  // namespace

int serve(const std::vector<std::string>& arguments) { return Server(arguments).serve(); }

}  // namespace hf::shim
