#include "kernel/process/module.h"

#include <chrono>

#include <unistd.h>

#include "kernel/process/command.h"

namespace hf::kernel {
namespace {

constexpr std::chrono::seconds kLongest{20};

}  // namespace

Result<void> load_module(const std::string& name) {
  for (const char* program : {"/sbin/modprobe", "/usr/sbin/modprobe"}) {
    if (::access(program, X_OK) == 0) {
      Command command;
      command.arguments = {program, "-q", name};
      const Result<std::string> done = run(command, kLongest);
      return done ? Result<void>() : fail(done.error().code, "modprobe " + name + ": " + done.error().message);
    }
  }
  return fail(std::errc::no_such_file_or_directory, "modprobe " + name + ": there is no modprobe here");
}

}  // namespace hf::kernel
