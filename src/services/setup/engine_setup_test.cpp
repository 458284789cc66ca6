#include "services/setup/engine_setup.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kernel/files/file.h"
#include "support/fake_host.h"
#include "support/setup_files.h"

namespace hf::setup {
namespace {

using engine::RuntimeRole;

class SetupTest : public testing::Test {
 protected:
  SetupTest() : fake_({{"etc/", ""}, {"usr/bin/", ""}}) {
    host_.root = *kernel::open_directory(AT_FDCWD, fake_.root());
  }

  [[nodiscard]] std::string path(const std::string& file) const { return fake_.root() + file; }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::binary) << text;
  }

  [[nodiscard]] std::string read(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(path(file), std::ios::binary).rdbuf();
    return text.str();
  }

  [[nodiscard]] bool exists(const std::string& file) const { return std::filesystem::exists(path(file)); }

  Result<report::SetupReport> add(const std::string& engine, RuntimeRole role, RunMode mode = RunMode::carry_out) {
    return register_runtime(host_, {engine, "", {"/usr/bin/holdfast-runtime", role}, mode});
  }
  Result<report::SetupReport> undo(const std::string& engine, RunMode mode = RunMode::carry_out) {
    return undo_registration(host_, {engine, "", {}, mode});
  }

  test::FakeHost fake_;
  kernel::Host host_;
};

constexpr const char* kDocker = "/etc/docker/daemon.json";
constexpr const char* kContainerd = "/etc/containerd/config.toml";

TEST_F(SetupTest, UndoesExactlyWhatItDid) {
  for (const RuntimeRole role : {RuntimeRole::offered, RuntimeRole::by_default}) {
    for (const auto& [engine, file] : {std::pair("docker", kDocker), std::pair("containerd", kContainerd)}) {
      for (const test::SetupFile& old : test::read_setup_files(std::string(engine) + "-")) {
        write(file, old.text);
        ASSERT_TRUE(add(engine, role)) << old.name;
        EXPECT_EQ(read(std::string(file) + kBackup), old.text);
        EXPECT_NE(read(file), old.text);
        EXPECT_TRUE(add(engine, role)->changes_nothing()) << old.name;
        ASSERT_TRUE(undo(engine)) << old.name;
        EXPECT_EQ(read(file), old.text);
        EXPECT_FALSE(exists(std::string(file) + kBackup));
        EXPECT_TRUE(undo(engine)->changes_nothing());
      }
    }
  }
}

TEST_F(SetupTest, KeepsModeAndOwner) {
  write(kDocker, "{}\n");
  ::chmod(path(kDocker).c_str(), 0600);
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  struct stat status{};
  ASSERT_EQ(::stat(path(kDocker).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  ASSERT_EQ(::stat((path(kDocker) + kBackup).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_F(SetupTest, CreatesAMissingFileAndRemovesItAgain) {
  for (const char* engine : {"docker", "containerd", "crio", "podman"}) {
    const Result<report::SetupReport> done = add(engine, RuntimeRole::by_default);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->files.size(), 1U);
    const std::string file = done->files.front().path;
    EXPECT_TRUE(exists(file));
    EXPECT_FALSE(exists(file + kBackup));
    EXPECT_TRUE(add(engine, RuntimeRole::by_default)->changes_nothing());
    ASSERT_TRUE(undo(engine));
    EXPECT_FALSE(exists(file)) << read(file);
  }
}

TEST_F(SetupTest, SaysWhatPodmanDoesWithGpus) {
  const Result<report::SetupReport> done = add("podman", RuntimeRole::offered);
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(done->notes.size(), 1U);
  EXPECT_NE(done->notes.front().find("--gpus"), std::string::npos);
  EXPECT_NE(done->notes.front().find("use --device nvidia.com/gpu=all"), std::string::npos);
}

TEST_F(SetupTest, RestoresAnEmptyFile) {
  write(kDocker, "");
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  ASSERT_TRUE(undo("docker"));
  EXPECT_TRUE(exists(kDocker));
  EXPECT_EQ(read(kDocker), "");
}

TEST_F(SetupTest, KeepsEditsMadeSince) {
  write(kDocker, "{\n  \"default-runtime\": \"crun\"\n}\n");
  ASSERT_TRUE(add("docker", RuntimeRole::by_default));
  std::string text = read(kDocker);
  write(kDocker, text.insert(2, "  \"debug\": true,\n"));
  ASSERT_TRUE(undo("docker"));
  EXPECT_EQ(read(kDocker), "{\n  \"debug\": true,\n  \"default-runtime\": \"crun\"\n}\n");
}

TEST_F(SetupTest, KeepsTheFirstBackup) {
  const std::string old = test::read_setup_file("containerd-1.6");
  write(kContainerd, old);
  ASSERT_TRUE(add("containerd", RuntimeRole::offered));
  ASSERT_TRUE(add("containerd", RuntimeRole::by_default));
  EXPECT_EQ(read(std::string(kContainerd) + kBackup), old);
  ASSERT_TRUE(undo("containerd"));
  EXPECT_EQ(read(kContainerd), old);
}

TEST_F(SetupTest, EndsTheDefaultWhereTheRuntimeIsOnlyOffered) {
  for (const auto& [engine, file] : {std::pair("docker", kDocker), std::pair("containerd", kContainerd)}) {
    for (const test::SetupFile& old : test::read_setup_files(std::string(engine) + "-")) {
      write(file, old.text);
      ASSERT_TRUE(add(engine, RuntimeRole::by_default)) << old.name;
      const Result<report::SetupReport> offered = add(engine, RuntimeRole::offered);
      ASSERT_TRUE(offered) << old.name;
      EXPECT_EQ(offered->verdict, "holdfast is a runtime, and not the default now") << old.name;
      EXPECT_EQ(offered->command, std::string("systemctl restart ") + engine) << old.name;
      EXPECT_TRUE(add(engine, RuntimeRole::offered)->changes_nothing()) << old.name;
      ASSERT_TRUE(undo(engine)) << old.name;
      EXPECT_EQ(read(file), old.text) << old.name;
    }
  }
}

TEST_F(SetupTest, WritesANewBackupOfAFileThatNoLongerHasOurRuntime) {
  write(kDocker, "{\"a\": 1}");
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  write(kDocker, "{\"b\": 2}");  // by hand
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  ASSERT_TRUE(undo("docker"));
  EXPECT_EQ(read(kDocker), "{\"b\": 2}");
}

TEST_F(SetupTest, WritesNothingOnADryRun) {
  write(kDocker, "{}\n");
  const Result<report::SetupReport> planned = add("docker", RuntimeRole::by_default, RunMode::dry_run);
  EXPECT_EQ(planned->steps.size(), 3U);
  EXPECT_FALSE(planned->is_done);
  EXPECT_EQ(read(kDocker), "{}\n");
  EXPECT_FALSE(exists(std::string(kDocker) + kBackup));
  add("containerd", RuntimeRole::offered, RunMode::dry_run);
  EXPECT_FALSE(exists("/etc/containerd"));
  ASSERT_TRUE(add("docker", RuntimeRole::by_default));
  const std::string text = read(kDocker);
  EXPECT_FALSE(undo("docker", RunMode::dry_run)->changes_nothing());
  EXPECT_EQ(read(kDocker), text);
}

TEST_F(SetupTest, LetsDockerOfferGpusWhereNvidiasHookIsNotThere) {
  const std::string hook = "/usr/bin/nvidia-container-runtime-hook";
  const auto target = [&] { return std::filesystem::read_symlink(path(hook)).string(); };
  ASSERT_TRUE(add("docker", RuntimeRole::offered, RunMode::dry_run));
  EXPECT_FALSE(std::filesystem::is_symlink(path(hook)));
  EXPECT_EQ(add("docker", RuntimeRole::offered)->command,
            "systemctl restart docker");  // which looks for it when it starts
  EXPECT_EQ(target(), "/usr/bin/holdfast-runtime");
  const Result<report::SetupReport> again = add("docker", RuntimeRole::offered);
  EXPECT_TRUE(again->changes_nothing());
  EXPECT_EQ(again->command, "");
  EXPECT_EQ(add("docker", RuntimeRole::by_default)->command, "systemctl reload docker");
  std::filesystem::remove(path(hook));
  const Result<report::SetupReport> registered = add("docker", RuntimeRole::by_default);
  EXPECT_FALSE(registered->changes_nothing());  // the symlink was gone
  EXPECT_EQ(registered->command, "systemctl restart docker");
  ASSERT_TRUE(undo("docker"));
  EXPECT_FALSE(std::filesystem::is_symlink(path(hook)));
  write(hook, "NVIDIA's");
  const Result<report::SetupReport> beside = add("docker", RuntimeRole::offered);
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->notes.size(), 2U);
  EXPECT_EQ(beside->command, "systemctl reload docker");
  ASSERT_TRUE(undo("docker"));
  EXPECT_EQ(read(hook), "NVIDIA's");
}

TEST_F(SetupTest, ReplacesADanglingSymlinkOfNvidiasHookAndRemovesItsOwnBesideAnother) {
  const std::string hook = "/usr/bin/nvidia-container-runtime-hook";
  std::filesystem::create_symlink("nvidia-container-toolkit", path(hook));  // which was removed
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  EXPECT_EQ(std::filesystem::read_symlink(path(hook)), "/usr/bin/holdfast-runtime");
  std::filesystem::create_directories(path("/usr/local/bin"));
  write("/usr/local/bin/nvidia-container-runtime-hook", "NVIDIA's");
  ASSERT_TRUE(undo("docker"));
  EXPECT_FALSE(std::filesystem::is_symlink(path(hook)));
  EXPECT_EQ(read("/usr/local/bin/nvidia-container-runtime-hook"), "NVIDIA's");
}

TEST_F(SetupTest, LeavesTheHookForGpusAsItIsWhereTheFileCannotBeChanged) {
  const std::string hook = "/usr/bin/nvidia-container-runtime-hook";
  std::filesystem::create_directories(path(std::string(kDocker) + kBackup));  // no backup can be written
  write(kDocker, "{}");
  EXPECT_FALSE(add("docker", RuntimeRole::offered));
  EXPECT_FALSE(std::filesystem::is_symlink(path(hook)));
  std::filesystem::remove(path(std::string(kDocker) + kBackup));
  ASSERT_TRUE(add("docker", RuntimeRole::offered));
  std::filesystem::remove(path(std::string(kDocker) + kBackup));
  std::filesystem::create_directories(path(std::string(kDocker) + kBackup));
  EXPECT_FALSE(undo("docker"));
  EXPECT_TRUE(std::filesystem::is_symlink(path(hook)));
}

TEST_F(SetupTest, AdvisesNoOptionThatWasGiven) {
  EXPECT_NE(add("docker", RuntimeRole::offered)->notes.front().find("setup docker --default"), std::string::npos);
  for (const std::string& note : add("docker", RuntimeRole::by_default)->notes) {
    EXPECT_EQ(note.find("--default"), std::string::npos) << note;
  }
  EXPECT_NE(add("containerd", RuntimeRole::offered)->notes.back().find("--pod-annotations"), std::string::npos);
  engine::Registration registration{"/usr/bin/holdfast-runtime", RuntimeRole::offered};
  registration.passes_annotations = true;
  const auto done = register_runtime(host_, {"containerd", "", registration, RunMode::carry_out});
  for (const std::string& note : done->notes) {
    EXPECT_EQ(note.find("--pod-annotations"), std::string::npos) << note;
  }
}

TEST_F(SetupTest, ReplacesASymlinkToARuntimeThatWasMoved) {
  const std::string hook = "/usr/bin/nvidia-container-runtime-hook";
  std::filesystem::create_symlink("/opt/old/holdfast-runtime", path(hook));  // which was removed
  EXPECT_EQ(add("docker", RuntimeRole::offered)->command, "systemctl restart docker");
  EXPECT_EQ(std::filesystem::read_symlink(path(hook)), "/usr/bin/holdfast-runtime");
  EXPECT_TRUE(add("docker", RuntimeRole::offered)->changes_nothing());
}

TEST_F(SetupTest, PrintsTheRuntimeClassOfEnginesWithPods) {
  EXPECT_NE(add("containerd", RuntimeRole::offered)->manifest.find("handler: holdfast"), std::string::npos);
  EXPECT_EQ(add("docker", RuntimeRole::offered)->manifest, "");
}

TEST_F(SetupTest, NamesTheFileAndTheLineOfASyntaxError) {
  write(kDocker, "{\n  nonsense\n}\n");
  const Result<report::SetupReport> refused = add("docker", RuntimeRole::offered);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("read /etc/docker/daemon.json: line 2, column "))
      << refused.error().message;
  EXPECT_FALSE(undo("docker"));
  EXPECT_EQ(read(kDocker), "{\n  nonsense\n}\n");
  EXPECT_FALSE(exists(std::string(kDocker) + kBackup));
}

TEST_F(SetupTest, RefusesASymlink) {
  write("/etc/real.json", "{}");
  std::filesystem::create_directories(path("/etc/docker"));
  std::filesystem::create_symlink("../real.json", path(kDocker));
  const Result<report::SetupReport> refused = add("docker", RuntimeRole::offered);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("etc/docker/daemon.json: it is a symlink"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(read("/etc/real.json"), "{}");
}

TEST_F(SetupTest, ReadsTheMonitorPathFromOtherFilesOfCrio) {
  write("/etc/crio/crio.conf", test::read_setup_file("crio.conf"));
  write("/etc/crio/crio.conf.d/10-mine.conf", "[crio.runtime.runtimes.crun]\nmonitor_path = \"/opt/conmon\"\n");
  ASSERT_TRUE(add("crio", RuntimeRole::offered));
  EXPECT_NE(read("/etc/crio/crio.conf.d/99-holdfast.conf").find("monitor_path = \"/opt/conmon\""), std::string::npos);
}

}  // namespace
}  // namespace hf::setup
