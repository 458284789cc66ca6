#include "services/shim/serve.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/config/config.h"
#include "adapters/ledger/ledger.h"
#include "adapters/oci/command_line.h"
#include "adapters/oci/edit_spec.h"
#include "adapters/oci/spec.h"
#include "core/base/text.h"
#include "kernel/file.h"
#include "services/shim/complaint.h"
#include "services/shim/delivery.h"
#include "services/shim/low_level.h"
#include "services/shim/request.h"
#include "services/shim/usual.h"

namespace hf::shim {
namespace {

using oci::CommandLine;
using oci::Verb;

constexpr int kFailed = 1;
constexpr std::size_t kMostSpec = std::size_t(512) << 20U;

Result<kernel::Host> open_root() {
  kernel::Host host;
  host.root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  return host;
}

std::string absolute(const std::string& path) {
  char* const made = ::realpath(path.c_str(), nullptr);
  const std::string result = made == nullptr ? path : made;
  ::free(made);  // NOLINT(cppcoreguidelines-no-malloc): realpath's
  return result;
}

std::string program_of(const std::string& process) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink(("/proc/" + process + "/exe").c_str(), path.data(), path.size());
  path.resize(size > 0 ? std::size_t(size) : 0);
  return path;
}

std::string own_program() { return program_of("self"); }

// Should it have ended meanwhile, the number may be another's: then we have another parent now.
Starter starter_of(const std::string& bundle) {
  const pid_t parent = ::getppid();
  const Starter found = starter_named(program_of(std::to_string(parent)), bundle);
  return ::getppid() == parent ? found : Starter::other;
}

class Server {
 public:
  explicit Server(const std::vector<std::string>& words) : words_(words), line_(oci::parse_command_line(words)) {}

  int serve() {
    Result<kernel::Host> host = open_root();
    if (host) {
      host_ = *std::move(host);
    }
    read_settings();
    const Result<std::string> program = find_low_level(config_ ? config_->runtime.programs : kUsual.programs);
    if (!program) {
      return complain_and_fail(program.error().message);
    }
    program_ = *program;
    switch (line_.asks_for_help || !host_ ? Verb::other : line_.verb) {
      case Verb::create:
      case Verb::run:
      case Verb::restore: return make();
      case Verb::update: return update();
      case Verb::remove: return remove();
      case Verb::other: break;
    }
    return hand_over();
  }

 private:
  int complain_and_fail(const std::string& why) {
    complain(line_, Grade::error, why);
    return kFailed;
  }

  int hand_over() { return complain_and_fail(become(program_, words_).error().message); }

  // Reading YAML takes longer than all the rest: only where it says which runtime we become, or what a device is.
  static bool has_settings(const kernel::Host& host) {
    const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(config::kFile));
    const bool in_main = text && (names_programs(*text) || text->find("classes") != std::string::npos);
    return in_main || kernel::exists(host.root.get(), kernel::below_root(config::kDropIns));
  }

  void read_settings() {
    if (host_ && has_settings(*host_)) {
      read_all_settings();
    }
  }

  // A broken config is nobody's business who asks for no device.
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

  int make() {
    last_ = entry();
    const Result<void> prepared = prepare();
    if (!prepared) {
      return complain_and_fail(prepared.error().message);
    }
    return gives_ || last_ ? make_with_entry() : hand_over();
  }

  // An entry is there as long as its container is: a name may be taken, a container may not come to be or end with its
  // runtime, and the next of its name must not have what the last one was given.
  int make_with_entry() {
    const Result<int> code = run_to_end(program_, words_);
    if (!code || *code != 0) {
      put_back_last();
    } else if (!gives_ || line_.ends_with_runtime) {
      ledger::remove_entry(*host_, {line_.container});
    }
    return code ? *code : complain_and_fail(code.error().message);
  }

  void put_back_last() {
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
    const std::vector<std::string> more = config_ ? signs_of(config_->classes) : std::vector<std::string>();
    if (!text || !may_ask(*text, more)) {
      return {};  // of a file that is not there the runtime speaks itself
    }
    const Result<oci::Spec> spec = oci::parse_spec(*text);
    if (!spec) {
      return fail(spec.error().code, file + ": " + spec.error().message);
    }
    read_all_settings();
    const config::Config& config = config_ ? *config_ : usual_config();
    const std::string other_file = file == bundle + "/config.json" ? std::string() : absolute(file);
    const Result<Delivery> delivery =
        plan_delivery(*host_, config, {bundle, *spec, own_program(), other_file, starter_of(bundle)});
    if (!delivery) {
      // Perhaps only because we did not understand what we are told in there.
      return config_problem_.empty() ? std::unexpected(delivery.error())
                                     : fail(std::errc::invalid_argument, config_problem_);
    }
    for (const std::string& note : delivery->notes) {
      complain(line_, Grade::warning, note);
    }
    const bool does_something = !delivery->change.edits.is_empty() || !delivery->change.dropped_hooks.empty();
    if (!config_problem_.empty() && does_something) {
      return fail(std::errc::invalid_argument, config_problem_);
    }
    return does_something ? carry_out(*delivery, bundle, file, *text) : Result<void>();
  }

  static const config::Config& usual_config() {
    static const config::Config kConfig = *config::parse_config(std::string_view());
    return kConfig;
  }

  Result<void> carry_out(const Delivery& delivery, const std::string& bundle, const std::string& file,
                         const std::string& text) {
    const Result<oci::EditedSpec> edited = oci::edit_spec(text, delivery.change);
    if (!edited) {
      return fail(edited.error().code, file + ": " + edited.error().message);
    }
    for (const std::string& corrected : edited->corrected) {
      complain(line_, Grade::warning, "numbers of another time corrected: " + corrected);
    }
    // Whoever is not root has no ledger, and no device cgroup to speak of.
    gives_ = !delivery.given.empty() && ::geteuid() == 0;
    if (gives_) {
      TRY(ledger::save_entry(*host_, {{line_.container}, bundle, {}, delivery.given}));
    }
    const Result<void> written = edited->text == text ? Result<void>() : write_spec(file, edited->text);
    if (!written && gives_) {
      put_back_last();
    }
    return written;
  }

  static Result<void> write_spec(const std::string& file, const std::string& text) {
    struct stat status{};
    constexpr std::uint32_t kBits = 07777;
    const std::uint32_t mode = ::stat(file.c_str(), &status) == 0 ? status.st_mode & kBits : 0600;
    return kernel::replace_file(AT_FDCWD, file, {text, mode});
  }

  // Absent where the container was given nothing by us.
  [[nodiscard]] std::optional<ledger::Entry> entry() const {
    const Result<std::optional<ledger::Entry>> read = ledger::read_entry(*host_, {line_.container});
    return read ? *read : std::nullopt;
  }

  // An update may come with rules for devices made from what the engine knows, and lack what we gave: crun carries them
  // out. Whatever is lost all the same is given back before we return.
  int update() {
    const std::optional<ledger::Entry> given = entry();
    if (!given) {
      return hand_over();
    }
    const Result<int> code = run_to_end(program_, safe_words(*given));
    if (!code) {
      return complain_and_fail(code.error().message);
    }
    heal();
    return *code;
  }

  std::vector<std::string> safe_words(const ledger::Entry& given) {
    if (line_.resources_at == 0) {
      return words_;
    }
    const bool by_input = line_.resources == "-";
    const Result<std::string> text = kernel::read_text(AT_FDCWD, by_input ? "/dev/stdin" : line_.resources);
    std::vector<container::NodeEdit> nodes;
    nodes.reserve(given.nodes.size());
    for (const container::WantedNode& node : given.nodes) {
      nodes.push_back({.path = node.path, .device = node.claimed, .access = node.access});
    }
    const Result<std::string> safe = text ? oci::allow_in_resources(*text, nodes) : text;
    if (!text || (!by_input && (!safe || *safe == *text))) {
      return words_;
    }
    // As standard input it is a copy that stays open; the runtime gets no file more than it would from the engine.
    resources_ = kernel::Fd(::memfd_create("resources", by_input ? MFD_CLOEXEC : 0));
    const std::string& content = safe ? *safe : *text;
    if (!resources_ || ::write(resources_.get(), content.data(), content.size()) != ssize_t(content.size())) {
      return words_;
    }
    if (by_input) {
      (void)::lseek(resources_.get(), 0, SEEK_SET);
      (void)::dup2(resources_.get(), STDIN_FILENO);
      return words_;
    }
    return oci::with_resources(words_, line_, "/proc/self/fd/" + std::to_string(resources_.get()));
  }

  void heal() {
    const std::string ours = own_program();
    const std::string folder = ours.substr(0, ours.rfind('/'));
    for (const std::string& program :
         {folder + "/holdfast", std::string("/usr/bin/holdfast"), std::string("/usr/local/bin/holdfast")}) {
      if (::access(program.c_str(), X_OK) != 0) {
        continue;
      }
      const kernel::Fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
      (void)::dup2(nowhere.get(), STDIN_FILENO);
      (void)::dup2(nowhere.get(), STDOUT_FILENO);
      const Result<int> code = run_to_end(program, {"heal", line_.container});
      if (!code || *code > kFailed) {
        complain(line_, Grade::warning, "could not look after " + line_.container + " after its update");
      }
      return;
    }
  }

  int remove() {
    if (!entry()) {
      return hand_over();
    }
    const Result<int> code = run_to_end(program_, words_);
    if (!code) {
      return complain_and_fail(code.error().message);
    }
    if (*code == 0) {
      ledger::remove_entry(*host_, {line_.container});
    }
    return *code;
  }

  inline static const config::RuntimeSettings kUsual;

  const std::vector<std::string>& words_;
  CommandLine line_;
  std::optional<kernel::Host> host_;
  std::optional<config::Config> config_;
  std::string config_problem_;
  std::string program_;
  std::optional<ledger::Entry> last_;  // of that name, before this call
  bool gives_ = false;
  kernel::Fd resources_;
};

}  // namespace

int serve(const std::vector<std::string>& words) { return Server(words).serve(); }

}  // namespace hf::shim
