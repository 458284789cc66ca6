#include <algorithm>
#include <chrono>
#include <memory>
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
#include "kernel/clock.h"
#include "kernel/host.h"
#include "machine.h"
#include "output.h"
#include "services/guard/by_hand.h"

namespace hf::programs {
namespace {

using report::BlameRecord;

struct GuardWords {
  std::vector<std::string> containers;
  std::string container;
  std::string since;
  std::string journal;
  bool all = false;
  bool dry_run = false;
  bool losses = false;
  Output output;
};

// "90s", "30m", "1h", "7d" as milliseconds.
Result<std::int64_t> parse_span(const std::string& text) {
  constexpr std::int64_t kSecond = 1000;
  const std::optional<std::uint32_t> number =
      text.size() < 2 ? std::nullopt : parse_number<std::uint32_t>(std::string_view(text).substr(0, text.size() - 1));
  const char unit = text.empty() ? ' ' : text.back();
  const std::int64_t scale = unit == 's'   ? kSecond
                             : unit == 'm' ? 60 * kSecond
                             : unit == 'h' ? 3600 * kSecond
                             : unit == 'd' ? 24 * 3600 * kSecond
                                           : 0;
  if (!number || scale == 0) {
    return fail(std::errc::invalid_argument, "since " + quote(text) + ": want a span such as 90s, 30m, 1h or 7d");
  }
  return std::int64_t(*number) * scale;
}

bool is_about(const BlameRecord& record, const std::string& word) {
  return word.empty() || record.container == word || record.id == word ||
         (word.size() >= 3 && record.id.starts_with(word)) || record.container.ends_with("/" + word);
}

Result<std::string> journal_folder(const kernel::Host& host, const GuardWords& words) {
  return words.journal.empty() ? TRY(config::read_config(host)).journal.folder : words.journal;
}

Result<std::vector<BlameRecord>> read_records(const GuardWords& words) {
  const kernel::Host host = TRY(kernel::open_host());
  const std::int64_t after = words.since.empty() ? 0 : kernel::wall_now() - TRY(parse_span(words.since));
  journal::Kept kept = TRY(journal::read_journal(host, TRY(journal_folder(host, words))));
  const bool is_known = std::ranges::any_of(
      kept.records, [&words](const BlameRecord& record) { return is_about(record, words.container); });
  std::erase_if(kept.records, [&](const BlameRecord& record) {
    return !is_about(record, words.container) || record.at < after || (words.losses && !record.is_loss());
  });
  if (!is_known && !words.container.empty()) {
    // A container that nothing happened to is fine; a word that means nobody is a mistake.
    const Result<rules::NamedTarget> target = target_of(words.container);
    if (!target) {
      return fail(target.error().code, target.error().message + ", and none in the journal was");
    }
  }
  return std::move(kept.records);
}

int show_blame(const GuardWords& words) {
  const Result<std::vector<BlameRecord>> records = read_records(words);
  if (!records) {
    return complain(records.error());
  }
  print(words.output.is_json() ? render_json(*records) : render_text(*records));
  return std::ranges::any_of(*records, &BlameRecord::is_loss) ? kProblem : kFine;
}

int show_watch(const GuardWords& words) {
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<std::string> folder = journal_folder(*host, words);
  Result<journal::Tail> tail =
      folder ? journal::Tail::open(*host, *folder) : Result<journal::Tail>(std::unexpected(folder.error()));
  if (!tail) {
    return complain(tail.error());
  }
  const auto until = words.since.empty() ? Result<std::int64_t>(0) : parse_span(words.since);
  if (!until) {
    return complain(until.error());
  }
  const std::int64_t end = *until == 0 ? 0 : kernel::wall_now() + *until;
  while (end == 0 || kernel::wall_now() < end) {
    constexpr std::int64_t kLongest = 10'000;
    const std::int64_t left = end == 0 ? kLongest : std::min(kLongest, end - kernel::wall_now());
    for (const BlameRecord& record : tail->wait(std::chrono::milliseconds(std::max<std::int64_t>(left, 0)))) {
      if (is_about(record, words.container) && (!words.losses || record.is_loss())) {
        print(words.output.is_json() ? render_line(record) + "\n" : render_text(record));
      }
    }
    if (std::fflush(stdout) != 0) {
      return kCannotTell;  // nobody reads any more
    }
  }
  return kFine;
}

int show_heal(const GuardWords& words) {
  if (words.containers.empty() == !words.all) {
    return complain({std::errc::invalid_argument, "heal: name containers, or say --all"});
  }
  if (::geteuid() != 0) {
    return complain({std::errc::operation_not_permitted, "heal containers: Operation not permitted (try sudo)"});
  }
  const Result<std::unique_ptr<OpenMachine>> machine = OpenMachine::open();
  if (!machine) {
    return complain(machine.error());
  }
  const Progress progress("looking at this node");
  const doctor::Machine& open = (*machine)->get();
  const guard::Doing doing = words.dry_run ? guard::Doing::dry_run : guard::Doing::carry_out;
  const Result<report::HealReport> report =
      guard::heal_by_hand({open.host, open.filters, open.seats}, words.containers, doing);
  progress.done();
  if (!report) {
    return complain(report.error());
  }
  print(words.output.is_json() ? render_json(*report) : render_text(*report));
  const bool would_change =
      words.dry_run && std::ranges::any_of(report->lines, [](const auto& line) { return !line.steps.empty(); });
  return report->is_all_well() && !would_change ? kFine : kProblem;
}

}  // namespace

void add_heal(CLI::App& app, int& status) {
  const auto words = std::make_shared<GuardWords>();
  CLI::App* command = app.add_subcommand("heal", "give containers back what they are owed and have lost, once");
  command->add_option("CONTAINER", words->containers, "names, the beginnings of ids, or pod/container");
  command->add_flag("--all", words->all, "all containers of this node");
  command->add_flag("--dry-run", words->dry_run, "say what would be done, change nothing");
  add_output(*command, words->output);
  command->footer(
      "Rules that were lost are given back, nodes that are missing or stale are made anew, and systemd is told what "
      "its\n"
      "units are owed, so that the next reload keeps it. Never more than trusted evidence says.\n"
      "exit: 0 all have what they are owed; 1 something could not be given back, or with --dry-run would be changed;\n"
      "2 usage, or it could not be told");
  command->callback([words, &status] { status = show_heal(*words); });
}

void add_blame(CLI::App& app, int& status) {
  const auto words = std::make_shared<GuardWords>();
  CLI::App* command = app.add_subcommand("blame", "who changed a container's device rules, when, and what it cost");
  command->add_option("CONTAINER", words->container, "a name, the beginning of an id, or pod/container; none: all");
  command->add_option("--since", words->since, "only the last 90s, 30m, 1h, 7d");
  command->add_flag("--losses", words->losses, "only changes that took away something it is owed");
  command->add_option("--journal", words->journal, "the folder of the records, instead of the configured one");
  add_output(*command, words->output);
  command->footer(
      "Reads what holdfastd has recorded; the daemon need not run.\n"
      "exit: 0 nothing was lost, 1 something was, 2 usage, or it could not be told");
  command->callback([words, &status] { status = show_blame(*words); });
}

void add_watch(CLI::App& app, int& status) {
  const auto words = std::make_shared<GuardWords>();
  CLI::App* command = app.add_subcommand("watch", "changes of containers' device rules as they happen");
  command->add_option("CONTAINER", words->container, "a name, the beginning of an id, or pod/container; none: all");
  command->add_option("--for", words->since, "end after 90s, 30m, 1h, 7d");
  command->add_flag("--losses", words->losses, "only changes that took away something it is owed");
  command->add_option("--journal", words->journal, "the folder of the records, instead of the configured one");
  add_output(*command, words->output);
  command->footer("Shows what holdfastd records; with -o json one object a line.");
  command->callback([words, &status] { status = show_watch(*words); });
}

}  // namespace hf::programs
