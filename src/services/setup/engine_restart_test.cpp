#include "services/setup/engine_restart.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "support/fake_host.h"

namespace hf::setup {
namespace {

constexpr const char* kFile = "/etc/containerd/config.toml";
constexpr const char* kMarker = "/run/holdfast/restart-containerd";
constexpr const char* kOld = "version = 2\n";

// systemd and containerd of a host: what they do depends on the config.
class RestartTest : public testing::Test {
 protected:
  RestartTest() : fake_({{"etc/containerd/config.toml", kOld}, {"run/", ""}}) {
    host_.root = *kernel::open_directory(AT_FDCWD, fake_.root());
    control_.run = [this](const std::vector<std::string>& arguments, std::chrono::milliseconds) {
      return run(join(arguments, " "));
    };
    control_.wait = [this](std::chrono::milliseconds time) { waited_ += time; };
  }

  Result<std::string> run(const std::string& command) {
    commands_.push_back(command);
    if (const auto edit = edits_.extract(command); !edit.empty()) {
      write(kFile, edit.mapped());
    }
    const bool is_new = read(kFile).contains("holdfast");
    if (command == "systemctl cat " + unit_) {
      return "";
    }
    if (command == "systemctl restart " + unit_) {
      is_active_ = !(is_new && breaks_) && !is_broken_;
      return restart_fails_ && !is_active_ ? fail(std::errc::io_error, "run systemctl: failed") : Result<std::string>();
    }
    if (command == "systemctl is-active " + unit_ && is_active_) {
      return "active";
    }
    const bool is_check = command.starts_with("containerd --config") || command.starts_with("dockerd --validate");
    const std::string file = is_check ? command.substr(command.find('/')) : "";
    if (is_check && exists(file.substr(0, file.find(' '))) && !(is_new && is_refused_) && !refuses_all_) {
      return "";
    }
    return fail(std::errc::io_error, "run " + command.substr(0, command.find(' ')) + ": no");
  }

  [[nodiscard]] std::string read(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(fake_.root() + file, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(fake_.root() + file, std::ios::binary) << text;
  }
  // As a call leaves it that was killed before the engine ran.
  void interrupt_after_the_change() {
    std::filesystem::create_directories(fake_.root() + "/run/holdfast");
    ASSERT_TRUE(register_runtime(host_, {"containerd", "", {"/usr/bin/holdfast-runtime"}, RunMode::carry_out}));
    ASSERT_TRUE(
        kernel::replace_file(host_.root.get(), std::string(kMarker).substr(1), {"systemctl restart containerd"}));
  }
  [[nodiscard]] bool exists(const std::string& file) const { return std::filesystem::exists(fake_.root() + file); }

  Result<report::SetupReport> set_up(engine::RuntimeRole role = engine::RuntimeRole::offered, bool undoes = false) {
    EngineSetupOptions options{"containerd", "", {"/usr/bin/holdfast-runtime", role}, RunMode::carry_out, own_unit_};
    const auto change = [&](RunMode mode) {
      options.mode = mode;
      return undoes ? undo_registration(host_, options) : register_runtime(host_, options);
    };
    return change_and_restart(host_, options, change, control_);
  }

  // Without a file at first, which docker's packages do not have.
  Result<report::SetupReport> set_up_docker(bool undoes) {
    unit_ = "docker";
    EngineSetupOptions options{"docker", "", {"/usr/bin/holdfast-runtime"}, RunMode::carry_out, ""};
    const auto change = [&](RunMode mode) {
      options.mode = mode;
      return undoes ? undo_registration(host_, options) : register_runtime(host_, options);
    };
    return change_and_restart(host_, options, change, control_);
  }

  void expect_as_it_was() const {
    EXPECT_EQ(read(kFile), kOld);
    EXPECT_FALSE(exists(std::string(kFile) + kBackup));
  }
  [[nodiscard]] long count(const std::string& command) const { return std::ranges::count(commands_, command); }

  test::FakeHost fake_;
  kernel::Host host_;
  EngineControl control_;
  std::string unit_ = "containerd";
  std::string own_unit_;
  bool is_active_ = true;
  bool breaks_ = false;        // the engine does not run with the new config
  bool restart_fails_ = true;  // and systemctl says so
  bool is_broken_ = false;     // nor with any other
  bool is_refused_ = false;    // by the engine's own check
  bool refuses_all_ = false;
  std::map<std::string, std::string> edits_;  // by another program, the first time that this command runs
  std::vector<std::string> commands_;
  std::chrono::milliseconds waited_{0};
};

TEST_F(RestartTest, RestartsOnceAndSeesThatTheEngineStaysActive) {
  control_.delay = std::chrono::minutes(1);
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(done->failed.empty());
  EXPECT_EQ(done->command, "");
  EXPECT_EQ(done->steps.back(), "run systemctl restart containerd");
  EXPECT_EQ(count("systemctl is-active containerd"), 1 + 3) << "before and after";
  EXPECT_GE(waited_, std::chrono::minutes(1));
  EXPECT_FALSE(exists(kMarker));
  commands_.clear();
  EXPECT_TRUE(set_up()->changes_nothing());
  EXPECT_TRUE(commands_.empty());
}

TEST_F(RestartTest, ChangesNothingWhereSystemdHasNoSuchUnit) {
  unit_ = "k3s-agent";
  const Result<report::SetupReport> refused = set_up();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--unit"), std::string::npos) << refused.error().message;
  expect_as_it_was();
  own_unit_ = "k3s-agent";
  EXPECT_EQ(set_up()->steps.back(), "run systemctl restart k3s-agent");
}

TEST_F(RestartTest, RestoresAConfigThatTheEngineRefuses) {
  is_refused_ = true;
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->verdict, "/etc/containerd/config.toml is as it was: containerd refuses the new one");
  EXPECT_EQ(done->failed, std::vector<std::string>{"run containerd: no"});
  EXPECT_EQ(count("systemctl restart containerd"), 0);
  expect_as_it_was();
}

TEST_F(RestartTest, ACheckThatRefusesTheOldConfigSaysNothing) {
  refuses_all_ = true;
  EXPECT_TRUE(set_up()->failed.empty());
  EXPECT_NE(read(kFile), kOld);
}

TEST_F(RestartTest, RestoresAConfigThatTheEngineDoesNotRunWith) {
  breaks_ = true;
  for (const bool says_so : {true, false}) {
    restart_fails_ = says_so;
    commands_.clear();
    const Result<report::SetupReport> done = set_up();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->verdict, "/etc/containerd/config.toml is as it was: containerd did not run with the new one");
    EXPECT_EQ(done->failed.size(), 1U);
    EXPECT_EQ(count("systemctl restart containerd"), 2);
    EXPECT_TRUE(is_active_);
    EXPECT_FALSE(exists(kMarker));
    expect_as_it_was();
  }
}

TEST_F(RestartTest, RepeatsARestartThatFailed) {
  is_broken_ = true;
  const Result<report::SetupReport> failed = set_up();
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->failed.size(), 2U);
  EXPECT_EQ(failed->command, "systemctl restart containerd");
  EXPECT_TRUE(exists(kMarker));
  expect_as_it_was();
  is_broken_ = false;
  commands_.clear();
  EXPECT_TRUE(set_up()->failed.empty());
  EXPECT_EQ(count("systemctl restart containerd"), 1);
  EXPECT_FALSE(exists(kMarker));
}

TEST_F(RestartTest, AnEngineThatDoesNotRunIsNotStarted) {
  is_active_ = false;
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->command, "");
  EXPECT_EQ(done->notes.back(), "containerd does not run: it reads the config when it starts");
  EXPECT_EQ(count("systemctl restart containerd"), 0);
  EXPECT_NE(read(kFile), kOld);
  EXPECT_FALSE(exists(kMarker));
}

TEST_F(RestartTest, DockersFileAndSymlinkComeAndGoTogether) {
  std::filesystem::create_directories(fake_.root() + "/usr/bin");
  const std::string link = fake_.root() + "/usr/bin/nvidia-container-runtime-hook";
  const auto has_link = [&link] { return std::filesystem::is_symlink(std::filesystem::symlink_status(link)); };
  is_broken_ = true;
  const Result<report::SetupReport> failed = set_up_docker(false);
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->verdict, "/etc/docker/daemon.json is as it was: docker did not run with the new one");
  EXPECT_FALSE(exists("/etc/docker/daemon.json"));
  EXPECT_FALSE(has_link());
  is_broken_ = false;
  is_active_ = true;
  ASSERT_TRUE(set_up_docker(false)->failed.empty());
  EXPECT_TRUE(has_link());
  is_broken_ = true;
  EXPECT_FALSE(set_up_docker(true)->failed.empty());
  EXPECT_TRUE(exists("/etc/docker/daemon.json"));
  EXPECT_TRUE(has_link()) << "the runtime is registered again";
  is_broken_ = false;
  is_active_ = true;
  const Result<report::SetupReport> undone = set_up_docker(true);
  ASSERT_TRUE(undone) << undone.error().message;
  EXPECT_TRUE(undone->failed.empty()) << join(undone->failed, "; ");
  EXPECT_FALSE(exists("/etc/docker/daemon.json")) << "nothing is left to check";
  EXPECT_FALSE(has_link());
}

TEST_F(RestartTest, AChangeThatFailsHalfWayIsTakenBack) {
  const EngineSetupOptions options{"containerd", "", {"/usr/bin/holdfast-runtime"}, RunMode::carry_out, ""};
  const auto change = [&](RunMode mode) -> Result<report::SetupReport> {
    EngineSetupOptions now = options;
    now.mode = mode;
    Result<report::SetupReport> report = register_runtime(host_, now);
    return mode == RunMode::dry_run ? std::move(report) : fail(std::errc::read_only_file_system, "make symlink");
  };
  const Result<report::SetupReport> done = change_and_restart(host_, options, change, control_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "make symlink");
  EXPECT_FALSE(exists(kMarker));
  expect_as_it_was();
}

TEST_F(RestartTest, WhatAnotherProgramWroteWhileTheEngineAnsweredIsRestoredToo) {
  const std::string theirs = std::string(kOld) + "# theirs\n";
  edits_["systemctl is-active containerd"] = theirs;
  breaks_ = true;
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->verdict, "/etc/containerd/config.toml is as it was: containerd did not run with the new one");
  EXPECT_EQ(read(kFile), theirs);
  EXPECT_TRUE(is_active_);
}

TEST_F(RestartTest, WhatAnotherProgramWroteInsteadOfTheChangeStays) {
  const EngineSetupOptions options{"containerd", "", {"/usr/bin/holdfast-runtime"}, RunMode::carry_out, ""};
  const auto change = [&](RunMode mode) -> Result<report::SetupReport> {
    EngineSetupOptions now = options;
    now.mode = RunMode::dry_run;
    Result<report::SetupReport> report = register_runtime(host_, now);
    if (mode == RunMode::dry_run) {
      return report;
    }
    write(std::string(kFile) + kBackup, kOld);
    write(kFile, "version = 2\n# theirs\n");
    return fail(std::errc::resource_unavailable_try_again, "write it: it was changed meanwhile");
  };
  const Result<report::SetupReport> done = change_and_restart(host_, options, change, control_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "write it: it was changed meanwhile");
  EXPECT_EQ(read(kFile), "version = 2\n# theirs\n");
  EXPECT_FALSE(exists(std::string(kFile) + kBackup));
  EXPECT_FALSE(exists(kMarker));
}

TEST_F(RestartTest, WhatAnotherProgramWroteAfterTheChangeStays) {
  const std::string theirs = "# theirs and holdfast's\n";
  edits_["systemctl restart containerd"] = theirs;
  breaks_ = true;
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->verdict,
            "/etc/containerd/config.toml could not be restored: containerd did not run with the new one");
  EXPECT_EQ(read(kFile), theirs);
  EXPECT_TRUE(exists(kMarker));
}

TEST_F(RestartTest, TakesOutWhatAnInterruptedCallRegistered) {
  using engine::RuntimeRole;
  for (const RuntimeRole role : {RuntimeRole::offered, RuntimeRole::by_default}) {  // the latter changes the file again
    interrupt_after_the_change();
    breaks_ = true;
    commands_.clear();
    const Result<report::SetupReport> done = set_up(role);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->verdict, "holdfast is no runtime any more: containerd did not run with it");
    EXPECT_FALSE(done->failed.empty());
    EXPECT_EQ(done->command, "");
    EXPECT_TRUE(is_active_);
    EXPECT_FALSE(exists(kMarker));
    expect_as_it_was();
  }
}

TEST_F(RestartTest, TakesBackDockersSymlinkAlone) {
  std::filesystem::create_directories(fake_.root() + "/usr/bin");
  const std::string link = fake_.root() + "/usr/bin/nvidia-container-runtime-hook";
  ASSERT_TRUE(set_up_docker(false)->failed.empty());
  std::filesystem::remove(link);
  is_broken_ = true;
  commands_.clear();
  const Result<report::SetupReport> failed = set_up_docker(false);
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->verdict, "/etc/docker/daemon.json is as it was: docker did not run with the new one");
  EXPECT_EQ(count("systemctl restart docker"), 2);
  EXPECT_FALSE(std::filesystem::is_symlink(std::filesystem::symlink_status(link)));
  EXPECT_TRUE(exists("/etc/docker/daemon.json"));
}

TEST_F(RestartTest, FailsWhereTheEngineWritesItsFileAnew) {
  edits_["systemctl restart containerd"] = kOld;
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->verdict, "holdfast is no runtime");
  EXPECT_EQ(done->failed, std::vector<std::string>{"containerd wrote /etc/containerd/config.toml when it started: "
                                                   "change what the file is made from"});
  EXPECT_EQ(count("systemctl restart containerd"), 1);
  EXPECT_FALSE(exists(kMarker));
  ASSERT_TRUE(set_up()->failed.empty());
  edits_["systemctl restart containerd"] = read(kFile);
  const Result<report::SetupReport> undone = set_up(engine::RuntimeRole::offered, true);
  ASSERT_TRUE(undone) << undone.error().message;
  EXPECT_EQ(undone->verdict, "holdfast is still a runtime");
  EXPECT_EQ(undone->failed.size(), 1U);
}

TEST_F(RestartTest, ARestartOfAnotherUnitThatFailedIsRepeatedWithTheUnitOfNow) {
  interrupt_after_the_change();
  unit_ = own_unit_ = "k3s";
  const Result<report::SetupReport> done = set_up();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->steps, std::vector<std::string>{"run systemctl restart k3s"});
  EXPECT_FALSE(exists(kMarker));
}

}  // namespace
}  // namespace hf::setup
