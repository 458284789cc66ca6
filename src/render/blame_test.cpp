#include "render/blame.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "render/text_table.h"
#include "render/time.h"

namespace hf::report {
namespace {

using container::Pid;
using container::ProgramId;

BlameRecord full() {
  BlameRecord record;
  record.number = 7;
  record.at = 1'794'719'648'123;
  record.id = std::string(64, 'a');
  record.container = "trainer/main";
  record.engine = "containerd";
  record.name_space = "ml";
  record.pod = container::Pod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer", "ml", "main", true};
  record.kind = container::EventKind::attach;
  record.hierarchy = container::Hierarchy::v2;
  record.cgroup = "/kubepods/x";
  record.writer = {Pid{812},
                   "runc",
                   "/usr/bin/runc",
                   "runc update --cpus 2 x",
                   {{Pid{700}, "containerd-shim"}, {Pid{1}, "systemd"}},
                   "kubelet",
                   {"containerd-shim", "containerd"},
                   ""};
  record.program = ProgramId{61};
  record.replaced = ProgramId{57};
  record.lost = {"c 195:0 rw", "c 195:255 rw"};
  record.gained = {"c 1:3 rwm"};
  record.devices = {"/dev/nvidia0", "/dev/nvidiactl"};
  record.doubt = "one gate could not be read";
  record.action = Action::healed;
  record.steps = {"replaced program 61 with 62"};
  record.loss_ns = 38'200;
  record.heal_ns = 12'000;
  return record;
}

TEST(BlameLine, IsParsedBackToTheSameRecord) {
  for (int kind = 0; kind <= int(container::EventKind::found_changed); ++kind) {
    BlameRecord record = full();
    record.kind = container::EventKind(kind);
    record.action = Action(kind % 8);
    record.hierarchy = kind % 2 == 0 ? container::Hierarchy::v1 : container::Hierarchy::v2;
    const std::string line = render_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const Result<BlameRecord> back = parse_blame_record(line);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(render_line(*back), line);
    EXPECT_EQ(back->kind, record.kind);
    EXPECT_EQ(back->at, record.at);
    EXPECT_EQ(back->writer.parents, record.writer.parents);
    EXPECT_EQ(back->writer.through, record.writer.through);
    EXPECT_EQ(back->replaced, record.replaced);
    EXPECT_EQ(back->loss_ns, record.loss_ns);
    EXPECT_EQ(back->devices, record.devices);
    ASSERT_TRUE(back->pod);
    EXPECT_EQ(back->pod->uid, record.pod->uid);
    EXPECT_EQ(back->pod->container, record.pod->container);
    EXPECT_TRUE(back->pod->is_named_by_cri);
  }
}

TEST(BlameLine, LeavesOutWhatIsAbsent) {
  const nlohmann::json json = nlohmann::json::parse(render_line({}));
  for (const char* key : {"id", "program", "lost", "loss_ns", "error", "text", "null"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  EXPECT_TRUE(parse_blame_record(render_line({})));
}

TEST(BlameLine, StaysOneLineThatCanBeReadWhateverTheNamesAre) {
  for (const std::string& hostile :
       {std::string("\xff\xfe\n\r\x00x", 6), std::string("\"}\n{\"number\":9"), std::string(10'000, '\x01')}) {
    BlameRecord record = full();
    for (std::string* text : {&record.id, &record.container, &record.engine, &record.name_space, &record.cgroup,
                              &record.text, &record.doubt, &record.error, &record.writer.name, &record.writer.program,
                              &record.writer.command, &record.writer.service, &record.writer.inside}) {
      *text = hostile;
    }
    record.lost.assign(2000, hostile);
    record.gained = record.devices = record.steps = record.lost;
    record.writer.through = record.lost;
    record.writer.parents.assign(2000, {Pid{std::numeric_limits<std::int32_t>::max()}, hostile});
    const std::string line = render_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_LE(line.size(), kMostLine);
    const Result<BlameRecord> back = parse_blame_record(line);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->lost.back(), "and 1901 more");
    EXPECT_EQ(render_line(*back), line);
  }
}

TEST(BlameLine, IsRefusedInOneLineWhenItIsGarbage) {
  const std::string good = render_line(full());
  const auto with = [&good](const char* key, nlohmann::json value) {
    nlohmann::json json = nlohmann::json::parse(good);
    json[key] = std::move(value);
    return json.dump();
  };
  const std::vector<std::string> garbage = {
      "",
      "null",
      "[]",
      "{",
      "\xff\xff",
      std::string(100'000, '['),
      std::string(kMostLine + 1, ' '),
      "{}",
      with("number", -1),
      with("number", 1e300),
      with("number", "7"),
      with("version", 2),
      with("at", "yesterday"),
      with("at", "2026-13-15T05:14:08.123Z"),
      with("at", "2026-11-15 05:14:08.123Z"),
      with("kind", "explode"),
      with("kind", nullptr),
      with("hierarchy", "v3"),
      with("action", ""),
      with("lost", "c 195:0 rw"),
      with("lost", {1, 2}),
      with("lost", std::vector<std::string>(101, "x")),
      with("writer", "runc"),
      with("writer", {{"pid", 1ULL << 40U}}),
      with("writer", {{"parents", {{{"pid", "x"}}}}}),
      with("program", 1ULL << 40U),
      with("loss_ns", -5),
  };
  for (const std::string& line : garbage) {
    const Result<BlameRecord> record = parse_blame_record(line);
    ASSERT_FALSE(record) << line.substr(0, 200);
    EXPECT_EQ(record.error().message.find('\n'), std::string::npos);
    EXPECT_LT(record.error().message.size(), 300U);
  }
}

TEST(BlameLine, CutAnywhereOrWithAnyByteChangedIsParsedOrRefused) {
  const std::string good = render_line(full());
  for (std::size_t at = 0; at < good.size(); ++at) {
    EXPECT_FALSE(parse_blame_record(good.substr(0, at)));
    std::string changed = good;
    changed[at] = '\x80';
    EXPECT_FALSE(parse_blame_record(changed)) << at;
    changed[at] = '0';
    (void)parse_blame_record(changed);
  }
}

TEST(Moment, IsParsedBackToTheSameMoment) {
  for (const std::int64_t at : {std::int64_t(0), std::int64_t(999), std::int64_t(1'794'719'648'123)}) {
    EXPECT_EQ(*parse_moment(render_moment(at)), at);
  }
  EXPECT_EQ(render_moment(1'794'719'648'123), "2026-11-15T05:14:08.123Z");
  EXPECT_EQ(render_moment(-5), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(render_moment(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_FALSE(parse_moment("2026-02-30T00:00:00.000Z"));
  EXPECT_FALSE(parse_moment("1969-12-31T00:00:00.000Z"));
}

TEST(Duration, IsShort) {
  const std::vector<std::pair<std::uint64_t, const char*>> table = {{0, "0 ns"},
                                                                    {850, "850 ns"},
                                                                    {1'000, "1 µs"},
                                                                    {1'240, "1.2 µs"},
                                                                    {38'200, "38 µs"},
                                                                    {999'900, "1 ms"},
                                                                    {1'200'000, "1.2 ms"},
                                                                    {9'960'000, "10 ms"},
                                                                    {4'000'000'000, "4 s"},
                                                                    {119'000'000'000, "119 s"},
                                                                    {300'000'000'000, "5 min"},
                                                                    {9'000'000'000'000, "2.5 h"}};
  for (const auto& [nanoseconds, text] : table) {
    EXPECT_EQ(render_duration(nanoseconds), text);
  }
}

TEST(BlameText, NamesTheWriterTheChangeAndTheDuration) {
  const std::string text = render_text(std::vector<BlameRecord>{full()});
  for (const char* part :
       {"2026-11-15T05:14:08.123Z", "trainer/main",
        "attach by runc (pid 812), containerd-shim, containerd, for kubelet (program 61 instead of 57)",
        "c 195:0 rw, c 195:255 rw", "gained c 1:3 rwm", "could not open /dev/nvidia0, /dev/nvidiactl",
        "command: runc update --cpus 2 x", "started by: containerd-shim (700), systemd (1)",
        " after 38 µs, 12 µs of it our work: replaced program 61 with 62", "1 change, 1 loss, the longest 38 µs"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(render_text(std::vector<BlameRecord>()), "nothing is recorded\n");
}

TEST(BlameText, CallsDockersNamespaceDocker) {
  BlameRecord record = full();
  record.container = "train";
  record.engine = "docker";
  record.name_space = "moby";
  record.pod.reset();
  EXPECT_EQ(cells_of(record).at(1), "docker/train");
  EXPECT_NE(render_text(record).find(marked(kBold, "train") + " (docker): "), std::string::npos) << render_text(record);
  EXPECT_NE(render_line(record).find(R"("namespace":"moby")"), std::string::npos) << "fields stay as they are";
  EXPECT_EQ(cells_of(full()).at(1), "ml/trainer/main");
}

TEST(BlameText, ReplacesControlCharactersInNames) {
  BlameRecord record = full();
  record.container = "x\x1b[2J\ny";
  record.error = record.writer.command = record.doubt = record.container;
  record.text = record.container;
  record.action = Action::failed;
  const std::string text = render_text(record);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\ny"), std::string::npos);
}

TEST(BlameText, SaysWhatWasDoneForEveryAction) {
  BlameRecord record = full();
  record.error = "no such program";
  const std::vector<std::pair<Action, const char*>> table = {
      {Action::observed, "observed"}, {Action::failed, "not healed"}, {Action::waits, "waits"},
      {Action::hardened, "hardened"}, {Action::locked, "locked"},     {Action::recreated, "mended"}};
  for (const auto& [action, part] : table) {
    record.action = action;
    EXPECT_NE(render_text(record).find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace hf::report
