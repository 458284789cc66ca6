#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/config/config.h"
#include "adapters/journal/journal.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/report/blame.h"
#include "core/report/heal_report.h"
#include "host/census.h"
#include "host/target.h"
#include "kernel/files/clock.h"
#include "kernel/files/host.h"
#include "programs/console/output.h"
#include "render/blame.h"
#include "render/heal.h"
#include "services/guard/manual_heal.h"

namespace hf::programs {
namespace {

using report::BlameRecord;

struct GuardOptions {
  std::vector<std::string> containers;
  std::string container;
  std::string device;
  std::string since;
  std::string journal;
  bool all = false;
  bool dry_run = false;
  bool losses = false;
  Output output;
};

// "90s", "30m", "1h", "7d" as milliseconds; 0 for "".
Result<std::int64_t> parse_span(const std::string& text, const std::string& option) {
  if (text.empty()) {
    return 0;
  }
  constexpr std::int64_t kSecond = 1000;
  const std::optional<std::uint32_t> number =
      parse_number<std::uint32_t>(std::string_view(text).substr(0, text.size() - 1));
  const char unit = text.back();
  const std::int64_t scale = unit == 's'   ? kSecond
                             : unit == 'm' ? 60 * kSecond
                             : unit == 'h' ? 3600 * kSecond
                             : unit == 'd' ? 24 * (3600 * kSecond)
                                           : 0;
  if (!number || scale == 0) {
    return fail(std::errc::invalid_argument, option + " " + quote(text) + ": want a span such as 90s, 30m, 1h or 7d");
  }
  return std::int64_t(*number) * scale;
}

// As `ps` and `doctor` name containers: an id or its beginning, or the last parts of namespace/pod/container, or of
// namespace/pod and pod, or uid/container.
bool is_called(const BlameRecord& record, const std::string& argument) {
  constexpr std::string_view kForced = "container:";
  const std::string name = argument.starts_with(kForced) ? argument.substr(kForced.size()) : argument;
  const std::string whole = "/" + record.name_space + "/" + record.container;
  const std::string pod = record.container.contains('/') ? whole.substr(0, whole.rfind('/')) : "";
  return record.id == name || (name.size() >= 3 && record.id.starts_with(name)) || whole.ends_with("/" + name) ||
         pod.ends_with("/" + name) || (record.pod && record.pod->uid + "/" + record.pod->container == name);
}

// The records that are asked for.
struct Subject {
  std::string argument;       // "": all
  std::set<std::string> ids;  // of running containers, by what the records do not have: pid:N, uid/container

  [[nodiscard]] bool has(const BlameRecord& record) const {
    return argument.empty() || ids.contains(record.id) || is_called(record, argument);
  }
};

Result<void> find_running(const kernel::Host& host, Subject& subject) {
  if (::geteuid() != 0) {  // without it no container can be found
    return fail(std::errc::operation_not_permitted, "find container " + quote(subject.argument));
  }
  const host::Census census = TRY(host::take_census(host, TRY(config::read_config(host))));
  for (const host::DiscoveredContainer* const found :
       TRY(host::find_discovered(host, census, {subject.argument}, host::PodNames::all_containers))) {
    subject.ids.insert(found->container.id.value);
  }
  return {};
}

Result<std::string> journal_directory(const kernel::Host& host, const GuardOptions& options) {
  return options.journal.empty() ? TRY(config::read_config(host)).journal.directory
                                 : std::filesystem::absolute(options.journal).lexically_normal().string();
}

// Why the records may not be all that there were.
void warn_of_gaps(const journal::Kept& kept, const std::string& directory) {
  if (!kept.has_directory) {
    warn("holdfastd has never run here: there is no " + printable(directory));
  }
  if (kept.damaged > 0) {
    warn(std::to_string(kept.damaged) + " lines of the records in " + printable(directory) + " cannot be read");
  }
}

Result<std::vector<BlameRecord>> read_records(const GuardOptions& options) {
  const kernel::Host host = TRY(kernel::open_host());
  const std::int64_t span = TRY(parse_span(options.since, "--since"));
  const std::int64_t after = options.since.empty() ? 0 : kernel::wall_now() - span;
  const std::string directory = TRY(journal_directory(host, options));
  journal::Kept kept = TRY(journal::read_journal(host, directory));
  if (!kept.has_directory && !options.journal.empty()) {
    return fail(std::errc::no_such_file_or_directory, "there is no directory " + printable(directory));
  }
  Subject subject = {options.container, {}};
  if (std::ranges::none_of(kept.records, [&subject](const BlameRecord& record) { return subject.has(record); }) &&
      !subject.argument.empty()) {
    // A container without records is fine; a name that matches no container is a mistake.
    const Result<void> found = find_running(host, subject);
    if (!found && found.error().code != std::errc::no_such_process) {
      return std::unexpected(found.error());
    }
    if (!found) {
      return fail(found.error().code, found.error().message + ", and none in the journal was");
    }
  }
  warn_of_gaps(kept, directory);
  std::erase_if(kept.records, [&](const BlameRecord& record) {
    return !subject.has(record) || record.at < after || (options.losses && !record.is_loss());
  });
  std::ranges::sort(kept.records, {}, [](const BlameRecord& record) { return std::pair(record.at, record.number); });
  return std::move(kept.records);
}

int show_blame(const GuardOptions& options) {
  const Result<std::vector<BlameRecord>> records = read_records(options);
  if (!records) {
    return complain(records.error());
  }
  print(options.output.is_text() ? render_text(*records) : in_format(options.output, render_json(*records)));
  return std::ranges::any_of(*records, &BlameRecord::is_loss) ? kProblem : kFine;
}

int show_watch(const GuardOptions& options) {
  const Result<std::int64_t> until = parse_span(options.since, "--for");
  if (!until) {
    return complain(until.error());
  }
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<std::string> directory = journal_directory(*host, options);
  Result<journal::Tail> tail =
      directory ? journal::Tail::open(*host, *directory) : Result<journal::Tail>(std::unexpected(directory.error()));
  if (!tail) {
    return complain(tail.error());
  }
  Subject subject = {options.container, {}};
  const Result<void> found = subject.argument.empty() ? Result<void>() : find_running(*host, subject);
  if (!found && subject.argument.starts_with("pid:")) {
    return complain(found.error());
  }
  if (!found) {  // it may start later
    const bool is_unknown = found.error().code == std::errc::operation_not_permitted;
    const std::string why =
        is_unknown ? "without root it is unknown whether " + quote(subject.argument) + " runs" : found.error().message;
    warn(printable(why) + "; waiting for its records");
  }
  const std::int64_t end = options.since.empty() ? 0 : kernel::wall_now() + *until;
  while (end == 0 || kernel::wall_now() < end) {
    constexpr std::int64_t kLongest = 10'000;
    const std::int64_t left = end == 0 ? kLongest : std::min(kLongest, end - kernel::wall_now());
    for (const BlameRecord& record : tail->wait(std::chrono::milliseconds(std::max<std::int64_t>(left, 0)))) {
      if (subject.has(record) && (!options.losses || record.is_loss())) {
        const bool is_yaml = options.output.format == "yaml";
        print(options.output.is_text()
                  ? render_text(record)
                  : (is_yaml ? "---\n" : "") + in_format(options.output, render_line(record) + "\n"));
      }
    }
    if (std::fflush(stdout) != 0) {
      return kCannotTell;  // the reader has closed the pipe
    }
  }
  return kFine;
}

int show_heal(const GuardOptions& options) {
  if (options.containers.empty() == !options.all) {
    return complain({std::errc::invalid_argument, "heal: name containers, or say --all"});
  }
  if (::geteuid() != 0) {
    return complain({std::errc::operation_not_permitted, "heal containers"});
  }
  host::HostOpener opener;
  const Result<host::OpenHost*> open = opener.get();
  if (!open) {
    return complain(open.error());
  }
  const Progress progress("surveying this host");
  const Result<report::HealReport> report = guard::heal_manually(**open, options.containers, run_mode(options.dry_run));
  progress.done();
  if (!report) {
    return complain(report.error());
  }
  print(options.output.is_text() ? render_text(*report) : in_format(options.output, render_json(*report)));
  const bool would_change =
      options.dry_run && std::ranges::any_of(report->lines, [](const auto& line) { return !line.steps.empty(); });
  return report->is_all_well() && !would_change ? kFine : kProblem;
}

// What `blame` and `watch` have in common.
void add_record_options(CLI::App& command, GuardOptions& options, const std::string& period, const std::string& what) {
  command.add_option("CONTAINER", options.container,
                     "a name, the beginning of an id, pod/container, or a whole pod; none: all");
  command.add_option(period, options.since, what);
  command.add_flag("--losses", options.losses, "only changes that removed something it is owed");
  command.add_option("--journal", options.journal, "the directory of the records, instead of the configured one");
  add_output(command, options.output);
}

}  // namespace

void add_heal(CLI::App& app, int& status) {
  const auto options = std::make_shared<GuardOptions>();
  CLI::App* command = app.add_subcommand("heal", "give containers back what they are owed and have lost, once");
  command->add_option("CONTAINER", options->containers,
                      "names, the beginnings of ids, pod/container, or a pod: all of its containers");
  command->add_flag("--all", options->all, "all containers of this host");
  command->add_flag("--dry-run", options->dry_run, "say what would be done, change nothing");
  add_output(*command, options->output);
  command->footer(
      "Rules that were lost are given back, device nodes that are missing or stale are recreated, and systemd's\n"
      "units get what they are owed, so that the next reload keeps it. Never more than trusted evidence says.\n"
      "exit: 0 all have what they are owed; 1 something could not be given back, or with --dry-run would be changed;\n"
      "2 usage, or it could not be determined");
  command->callback([options, &status] { status = show_heal(*options); });
}

// Kept until the next release, because scripts may still call it.
void add_mend(CLI::App& app, int& status) {
  const auto options = std::make_shared<GuardOptions>();
  CLI::App* command = app.add_subcommand("mend", "deprecated: 'heal' recreates device nodes as well");
  command->group("");  // not listed
  command->add_option("CONTAINER", options->container, "a name, the beginning of an id, or pod/container")->required();
  command->add_option("DEVICE", options->device, "ignored: heal gives back everything the container is owed");
  command->add_flag("--dry-run", options->dry_run, "say what would be done, change nothing");
  add_output(*command, options->output);
  command->callback([options, &status] {
    warn("mend is part of heal now and goes away with the next release; use: holdfast heal " + options->container);
    options->containers = {options->container};
    status = show_heal(*options);
  });
}

void add_blame(CLI::App& app, int& status) {
  const auto options = std::make_shared<GuardOptions>();
  CLI::App* command =
      app.add_subcommand("blame", "which process changed a container's device rules, when, and what was lost");
  add_record_options(*command, *options, "--since", "only the last 90s, 30m, 1h, 7d");
  command->footer(
      "Reads what holdfastd has recorded; the daemon need not run.\n"
      "exit: 0 nothing was lost, 1 something was, 2 usage, or it could not be determined");
  command->callback([options, &status] { status = show_blame(*options); });
}

void add_watch(CLI::App& app, int& status) {
  const auto options = std::make_shared<GuardOptions>();
  CLI::App* command = app.add_subcommand("watch", "changes of containers' device rules as they happen");
  add_record_options(*command, *options, "--for", "end after 90s, 30m, 1h, 7d");
  command->footer(
      "Shows what holdfastd records; with -o json one object per line.\n"
      "exit: 0 ended as requested, 2 usage, or there are no records to watch");
  command->callback([options, &status] { status = show_watch(*options); });
}

}  // namespace hf::programs
