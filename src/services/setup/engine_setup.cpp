#include "services/setup/engine_setup.h"

#include "render/text_diff.h"
#include "services/setup/config_place.h"
#include "services/setup/docker_gpus.h"
#include "services/setup/engines.h"
#include "services/setup/host_file.h"

namespace hf::setup {
namespace {

using engine::RuntimeRole;
using report::SetupReport;

template <class Value>
Result<Value> named(Result<Value> result, const std::string& path) {
  return result ? std::move(result) : fail(result.error().code, "read " + path + ": " + result.error().message);
}

struct ConfigFiles {
  Engine engine;
  HostFile file;
  HostFile backup;
};

Result<ConfigFiles> find_files(const kernel::Host& host, const EngineSetupOptions& options) {
  Engine engine = TRY(find_engine(options));
  const std::string path = options.file.empty() ? engine.file : options.file;
  return ConfigFiles{std::move(engine), HostFile(host, path), HostFile(host, path + kBackup)};
}

// The texts of the engine's other files, in the order in which it reads them; unreadable files are skipped.
std::vector<std::string> read_others(const kernel::Host& host, const ConfigFiles& files) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& path) {
    const Result<HostFile::Content> content = HostFile(host, path).read();
    if (path != files.file.path() && content && *content) {
      texts.push_back((*content)->text);
    }
  };
  for (const std::string& path : files.engine.others) {
    add(path);
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(path))) {
      add(std::string(path).append("/").append(name));
    }
  }
  return texts;
}

// Another file belongs to another docker, which may search another PATH.
bool is_systems_docker(const EngineSetupOptions& options) { return options.engine == "docker" && options.file.empty(); }

std::string text_of(const HostFile::Content& content) { return content ? content->text : std::string(); }

void add_diff(SetupReport& report, const HostFile& file, std::string_view before, std::string_view after) {
  report.files.push_back({file.path(), report::render_diff({file.path(), before, after})});
}

std::string done_or_planned(const SetupReport& report, const std::string& done, const std::string& planned) {
  return report.is_done ? done : planned;
}

// The note names an option: it is none for those who have just given it.
bool has_news(const Engine& engine, const engine::Registration& registration) {
  const bool is_followed =
      engine.name == "docker" ? registration.role == RuntimeRole::by_default : registration.passes_annotations;
  return !engine.note.empty() && !is_followed;
}

std::string role_text(RuntimeRole role) {
  return role == RuntimeRole::by_default ? "the default runtime" : "a runtime";
}

// Registers again in the text of the backup: the same result means that the file was not edited since.
bool is_untouched(const kernel::Host& host, const ConfigFiles& files, const std::string& text,
                  const std::string& before) {
  const Result<std::optional<engine::Registered>> found = files.engine.find(text);
  if (!found || !*found || !(*found)->program) {
    return false;
  }
  const Result<engine::Edited> again = files.engine.add(
      before, {*(*found)->program, (*found)->role, (*found)->passes_annotations}, read_others(host, files));
  return again && again->text == text;
}

engine::Before before_of(const HostFile::Content& backup) {
  return backup ? engine::Before(backup->text) : std::nullopt;
}

struct Restored {
  std::optional<std::string> text;  // absent: the file is removed
  std::string step;
};

Result<Restored> plan_undo(const kernel::Host& host, const ConfigFiles& files, const std::string& text,
                           const HostFile::Content& backup) {
  if (backup && is_untouched(host, files, text, backup->text)) {
    return Restored{backup->text, "restore " + files.file.path() + " as it was"};
  }
  std::string rest = TRY(named(files.engine.remove(text, before_of(backup)), files.file.path()));
  if (!backup && files.engine.is_empty(rest)) {
    return Restored{std::nullopt, "remove " + files.file.path() + ", which has nothing but holdfast's"};
  }
  return Restored{std::move(rest), "remove holdfast's lines from " + files.file.path() + ", and leave the others"};
}

}  // namespace

Result<SetupReport> register_runtime(const kernel::Host& host, const EngineSetupOptions& options) {
  const ConfigFiles files = TRY(find_files(host, options));
  const HostFile::Content old = TRY(files.file.read());
  const std::string text = text_of(old);
  TRY(check_no_template(files.file.path(), text));
  const auto found = TRY(named(files.engine.find(text), files.file.path()));
  const HostFile::Content backup = found ? TRY(files.backup.read()) : std::nullopt;
  engine::Registration registration = options.registration;
  registration.before = before_of(backup);
  const std::vector<std::string> others = read_others(host, files);
  const engine::Edited edited = TRY(named(files.engine.add(text, registration, others), files.file.path()));
  SetupReport report;
  report.subject = files.engine.name;
  report.is_done = options.mode == RunMode::carry_out;
  report.notes = edited.notes;
  report.notes.insert(report.notes.end(), has_news(files.engine, registration) ? 1 : 0, files.engine.note);
  report.manifest = files.engine.manifest;
  const bool changes_file = !old || edited.text != text;
  if (changes_file) {
    TRY(check_lasts(files.file.path(), text, others));
    add_diff(report, files.file, text, edited.text);
    // A backup must hold the file as it was before us, so none is written of a file that already has our runtime.
    if (old && !found) {
      TRY(report.is_done ? files.backup.write_copy(*old) : Result<void>());
      report.steps.push_back("keep the old file as " + files.backup.path());
    }
    TRY(report.is_done ? files.file.write(old, edited.text) : Result<void>());
    report.steps.push_back((old ? "write " : "create ") + files.file.path());
  }
  // The last step: a hook for --gpus without the runtime would be half of a registration.
  const std::size_t steps = report.steps.size();
  TRY(is_systems_docker(options) ? offer_gpus(host, options.registration.program, report) : Result<void>());
  const bool changes_gpus = report.steps.size() > steps;  // docker looks for the hook only when it starts
  const bool ends_default =
      found && found->role == RuntimeRole::by_default && registration.role == RuntimeRole::offered;
  const std::string what = role_text(registration.role) + (ends_default ? ", and not the default" : "");
  if (changes_file) {
    report.verdict = "holdfast " + done_or_planned(report, "is " + what + " now", "would be " + what);
    report.command = ends_default || changes_gpus ? files.engine.restart_command : files.engine.command;
  } else {
    report.verdict = "holdfast is " + what + " already" + (report.changes_nothing() ? ": nothing to do" : "");
    report.command = changes_gpus ? files.engine.restart_command : "";
  }
  return report;
}

Result<SetupReport> undo_registration(const kernel::Host& host, const EngineSetupOptions& options) {
  const ConfigFiles files = TRY(find_files(host, options));
  const HostFile::Content old = TRY(files.file.read());
  const HostFile::Content backup = TRY(files.backup.read());
  SetupReport report;
  report.subject = files.engine.name;
  report.is_done = options.mode == RunMode::carry_out;
  const auto found = TRY(named(files.engine.find(text_of(old)), files.file.path()));
  if (found) {
    const Restored restored = TRY(plan_undo(host, files, old->text, backup));
    report.verdict = "holdfast " + done_or_planned(report, "is no runtime any more", "would be no runtime any more");
    add_diff(report, files.file, old->text, restored.text.value_or(""));
    if (report.is_done) {
      TRY(restored.text ? files.file.write(old, *restored.text) : files.file.remove(old));
      TRY(backup ? files.backup.remove(backup) : Result<void>());
    }
    report.steps.push_back(restored.step);
    if (backup) {
      report.steps.push_back("remove " + files.backup.path());
    }
  }
  TRY(is_systems_docker(options) ? stop_offering_gpus(host, report) : Result<void>());
  report.command = report.changes_nothing() ? "" : files.engine.restart_command;
  if (report.changes_nothing()) {
    report.verdict = files.file.path() + (old ? " has nothing of holdfast's" : " is not there") + ": nothing to undo";
  } else if (!found) {
    report.verdict = "docker " + done_or_planned(report, "finds", "would find") + " no hook for --gpus any more";
  }
  return report;
}

}  // namespace hf::setup
