#include "services/setup/engine_setup.h"

#include "core/report/text_diff.h"
#include "services/setup/engines.h"
#include "services/setup/host_file.h"

namespace hf::setup {
namespace {

using engine::Standing;
using report::SetupReport;

template <class Value>
Result<Value> named(Result<Value> result, const std::string& path) {
  return result ? std::move(result) : fail(result.error().code, "read " + path + ": " + result.error().message);
}

struct Place {
  Engine engine;
  HostFile file;
  HostFile backup;
};

Result<Place> find_place(const kernel::Host& host, const EngineOrder& order) {
  Engine engine = TRY(find_engine(order.engine));
  const std::string path = order.file.empty() ? engine.file : order.file;
  return Place{std::move(engine), HostFile(host, path), HostFile(host, path + kBackup)};
}

// The texts of the engine's other files, in the order in which it reads them; what cannot be read is left out.
std::vector<std::string> read_others(const kernel::Host& host, const Place& place) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& path) {
    const Result<HostFile::Content> content = HostFile(host, path).read();
    if (path != place.file.path() && content && *content) {
      texts.push_back((*content)->text);
    }
  };
  for (const std::string& path : place.engine.others) {
    add(path);
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(path))) {
      add(std::string(path).append("/").append(name));
    }
  }
  return texts;
}

std::string text_of(const HostFile::Content& content) { return content ? content->text : std::string(); }

void add_diff(SetupReport& report, const HostFile& file, std::string_view before, std::string_view after) {
  report.files.push_back({file.path(), report::render_diff({file.path(), before, after})});
}

std::string words_for(const SetupReport& report, const std::string& done, const std::string& planned) {
  return report.is_done ? done : planned;
}

std::string standing_words(Standing standing) {
  return standing == Standing::by_default ? "the default runtime" : "a runtime";
}

// What our runtime would be if this were done to the text of before: the same text means that nobody touched it since.
bool is_untouched(const kernel::Host& host, const Place& place, const std::string& text, const std::string& before) {
  const Result<std::optional<engine::Registered>> found = place.engine.find(text);
  if (!found || !*found || !(*found)->program) {
    return false;
  }
  const Result<engine::Edited> again =
      place.engine.add(before, {*(*found)->program, (*found)->standing}, read_others(host, place));
  return again && again->text == text;
}

struct Restored {
  std::optional<std::string> text;  // absent: the file goes
  std::string step;
};

Result<Restored> plan_undo(const kernel::Host& host, const Place& place, const std::string& text,
                           const HostFile::Content& backup) {
  if (backup && is_untouched(host, place, text, backup->text)) {
    return Restored{backup->text, "put back " + place.file.path() + " as it was"};
  }
  const engine::Before before = backup ? engine::Before(backup->text) : std::nullopt;
  std::string rest = TRY(named(place.engine.remove(text, before), place.file.path()));
  if (!backup && place.engine.is_bare(rest)) {
    return Restored{std::nullopt, "remove " + place.file.path() + ", which has nothing but holdfast's"};
  }
  return Restored{std::move(rest), "take holdfast's lines out of " + place.file.path() + ", and leave the others"};
}

}  // namespace

Result<SetupReport> register_runtime(const kernel::Host& host, const EngineOrder& order) {
  const Place place = TRY(find_place(host, order));
  const HostFile::Content old = TRY(place.file.read());
  const std::string text = text_of(old);
  const auto found = TRY(named(place.engine.find(text), place.file.path()));
  const engine::Edited edited =
      TRY(named(place.engine.add(text, order.registration, read_others(host, place)), place.file.path()));
  SetupReport report;
  report.subject = place.engine.name;
  report.is_done = order.doing == Doing::carry_out;
  report.notes = edited.notes;
  const std::string what = standing_words(order.registration.standing);
  if (old && edited.text == text) {
    report.verdict = "holdfast is " + what + " already: nothing to do";
    return report;
  }
  report.verdict = "holdfast " + words_for(report, "is " + what + " now", "would be " + what);
  report.command = place.engine.command;
  add_diff(report, place.file, text, edited.text);
  // A backup is of the time before us: none is made of a file that has something of ours.
  if (old && !found) {
    TRY(report.is_done ? place.backup.write_copy(*old) : Result<void>());
    report.steps.push_back("keep the old file as " + place.backup.path());
  }
  TRY(report.is_done ? place.file.write(old, edited.text) : Result<void>());
  report.steps.push_back((old ? "write " : "make ") + place.file.path());
  return report;
}

Result<SetupReport> undo_registration(const kernel::Host& host, const EngineOrder& order) {
  const Place place = TRY(find_place(host, order));
  const HostFile::Content old = TRY(place.file.read());
  const HostFile::Content backup = TRY(place.backup.read());
  SetupReport report;
  report.subject = place.engine.name;
  report.is_done = order.doing == Doing::carry_out;
  const auto found = TRY(named(place.engine.find(text_of(old)), place.file.path()));
  if (!found) {
    report.verdict = place.file.path() + (old ? " has nothing of holdfast's" : " is not there") + ": nothing to undo";
    return report;
  }
  const Restored restored = TRY(plan_undo(host, place, old->text, backup));
  report.verdict = "holdfast " + words_for(report, "is no runtime any more", "would be no runtime any more");
  report.command = place.engine.undo_command;
  add_diff(report, place.file, old->text, restored.text.value_or(""));
  if (report.is_done) {
    TRY(restored.text ? place.file.write(old, *restored.text) : place.file.remove(old));
    TRY(backup ? place.backup.remove(backup) : Result<void>());
  }
  report.steps.push_back(restored.step);
  if (backup) {
    report.steps.push_back("remove " + place.backup.path());
  }
  return report;
}

}  // namespace hf::setup
