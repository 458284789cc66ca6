// holdfast: the command line tool for all queries and repairs.
#include <cstdio>
#include <exception>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/files/fd.h"

namespace {

// Files that we open must not get the descriptor of a closed standard stream, to which libraries may write.
void fill_standard_files() {
  while (true) {
    const int file = ::open("/dev/null", O_RDWR);
    if (file < 0 || file > STDERR_FILENO) {
      ::close(file);
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_files();
  hf::kernel::raise_descriptor_limit();  // each BPF program of the host is held open, and there may be thousands
  CLI::App app{"holdfast gives a container its devices and its own CPU cores, and keeps them there.", "holdfast"};
  app.set_version_flag("--version", std::string("holdfast ") + HOLDFAST_VERSION);
  app.get_formatter()->column_width(28);
  app.require_subcommand(0, 1);
  int status = hf::programs::kFine;
  hf::programs::add_ps(app, status);
  hf::programs::add_doctor(app, status);
  hf::programs::add_explain(app, status);
  hf::programs::add_devices(app, status);
  hf::programs::add_mend(app, status);
  hf::programs::add_heal(app, status);
  hf::programs::add_blame(app, status);
  hf::programs::add_watch(app, status);
  hf::programs::add_rules(app, status);
  hf::programs::add_grant_and_revoke(app, status);
  hf::programs::add_cdi(app, status);
  hf::programs::add_setup(app, status);
  hf::programs::add_cpu(app, status);
  hf::programs::add_demo(app, status);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      throw CLI::RequiredError(
          "a command: ps, doctor, explain, devices, heal, blame, watch, rules, grant, revoke, cdi, setup or "
          "demo");
    }
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    std::cerr << "holdfast: " << error.what() << " (see holdfast --help)\n";
    return hf::programs::kCannotTell;
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return hf::programs::kCannotTell;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::cerr << "holdfast: cannot write to standard output\n";
    return hf::programs::kCannotTell;
  }
  return status;
}
