#include "kernel/cgroup/exchange_note.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::kernel {
namespace {

using container::Attachment;

constexpr const char* kRunDirectory = "run/holdfast";
constexpr const char* kDirectory = "run/holdfast/frozen";
constexpr const char* kMark = "holdfast-exchange-1";

struct Note {
  container::Pid writer;
  std::int64_t writer_started = 0;  // in ticks; a pid may be reused
  bool thaws = true;                // false where the cgroup had been frozen before
  Attachment wanted = Attachment::single;
  std::string cgroup;
  bpf::Code code;
};

std::string render(const Note& note) {
  std::ostringstream text;
  text << kMark << '\n'
       << note.writer.value << ' ' << note.writer_started << ' ' << note.thaws << ' ' << int(note.wanted) << '\n'
       << note.cgroup << '\n'
       << bpf::to_hex(note.code);
  return text.str();
}

std::optional<Note> parse(const std::string& text) {
  std::istringstream lines(text);
  std::string mark;
  std::string numbers;
  Note note;
  if (!std::getline(lines, mark) || mark != kMark || !std::getline(lines, numbers) ||
      !std::getline(lines, note.cgroup)) {
    return std::nullopt;
  }
  int wanted = 0;
  std::istringstream fields(numbers);
  if (!(fields >> note.writer.value >> note.writer_started >> note.thaws >> wanted)) {
    return std::nullopt;
  }
  note.wanted = wanted == int(Attachment::several) ? Attachment::several : Attachment::single;
  const std::string rest(std::istreambuf_iterator<char>(lines), {});
  Result<bpf::Code> code = bpf::parse_hex(rest);
  if (!code) {
    return std::nullopt;
  }
  note.code = *std::move(code);
  return note;
}

Result<void> make_directory(const Host& host) {
  for (const auto& [path, mode] : {std::pair(kRunDirectory, 0755), std::pair(kDirectory, 0700)}) {
    if (::mkdirat(host.root.get(), path, mode_t(mode)) < 0 && errno != EEXIST) {
      return fail_errno(errno, std::string("make /") + path);
    }
  }
  return {};
}

bool is_writer_running(const Host& host, const Note& note) {
  const Result<Process> writer = read_process(host, note.writer);
  return writer && writer->started_at == note.writer_started;
}

Result<void> finish(const Host& host, Filters& filters, const Note& note) {
  const Cgroup cgroup = TRY(open_cgroup(host, container::Hierarchy::v2, container::CgroupPath{note.cgroup}));
  const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
  const bool has_filter = std::ranges::any_of(attached.ids, [&filters](container::ProgramId id) {
    const Result<ReadProgramPtr> read = filters.read(id);
    return !read || !is_shield(**read);
  });
  if (!has_filter) {
    const ProgramPtr program = TRY(filters.load(note.code, {}));
    const AttachMode mode =
        note.wanted == Attachment::several ? AttachMode(AttachAlongside{}) : AttachMode(AttachAlone{note.wanted, 0});
    TRY(filters.bpf().attach(cgroup, *program, mode));
  }
  return note.thaws ? write_text(cgroup.directory.get(), "cgroup.freeze", "0") : Result<void>();
}

}  // namespace

Result<ExchangeNote> ExchangeNote::write(const Host& host, const Cgroup& cgroup, Attachment wanted,
                                         const bpf::Code& code) {
  Note note;
  note.writer.value = ::getpid();
  note.writer_started = TRY(read_process(host, note.writer)).started_at;
  note.thaws = !TRY(read_text(cgroup.directory.get(), "cgroup.freeze")).starts_with('1');
  note.wanted = wanted;
  note.cgroup = cgroup.path.text;
  note.code = code;
  TRY(make_directory(host));
  std::string path = std::string(kDirectory) + "/" + std::to_string(cgroup.id.value);
  const std::string text = render(note);
  TRY(replace_file(host.root.get(), path, {text, 0600}));
  note.writer = {};
  return ExchangeNote(host, std::move(path), render(note));
}

void ExchangeNote::stay() {
  if (host_ != nullptr) {
    (void)replace_file(host_->root.get(), path_, {unattended_, 0600});
    host_ = nullptr;
  }
}

ExchangeNote::ExchangeNote(ExchangeNote&& other) noexcept
    : host_(std::exchange(other.host_, nullptr)),
      path_(std::move(other.path_)),
      unattended_(std::move(other.unattended_)) {}

ExchangeNote::~ExchangeNote() {
  if (host_ != nullptr) {
    (void)::unlinkat(host_->root.get(), path_.c_str(), 0);
    (void)::unlinkat(host_->root.get(), kDirectory, AT_REMOVEDIR);  // succeeds where it is empty now
  }
}

std::vector<std::string> finish_exchanges(const Host& host, Filters& filters) {
  std::vector<std::string> done;
  for (const std::string& name : list_names(host.root.get(), kDirectory)) {
    const std::string path = std::string(kDirectory) + "/" + name;
    const Result<std::string> text = read_trusted_file(host.root.get(), path);
    const std::optional<Note> note = text ? parse(*text) : std::nullopt;
    if (note && is_writer_running(host, *note)) {
      continue;
    }
    const Result<void> finished = note ? finish(host, filters, *note) : Result<void>();
    const bool is_gone = !finished && finished.error().code == std::errc::no_such_file_or_directory;
    if (finished || is_gone) {
      (void)::unlinkat(host.root.get(), path.c_str(), 0);
    }
    if (note && !is_gone) {
      done.push_back(note->cgroup + (finished ? ": its exchange was finished" : ": " + finished.error().message));
    }
  }
  return done;
}

}  // namespace hf::kernel
