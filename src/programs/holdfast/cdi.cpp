#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "adapters/cdi/cdi.h"
#include "adapters/config/config.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/report/cdi_report.h"
#include "host/inventory.h"
#include "kernel/files/host.h"
#include "programs/console/output.h"
#include "render/cdi.h"
#include "services/specs/check.h"
#include "services/specs/generate.h"

namespace hf::programs {
namespace {

struct CdiOptions {
  specs::Settings settings;
  std::string file;
  std::string format;
  std::string strategy = "both";
  bool no_all = false;
  std::vector<std::string> arguments;  // files, or names of devices
  Output output;
};

Result<specs::Generated> generate_spec(const CdiOptions& options) {
  const kernel::Host host = TRY(kernel::open_host());
  const config::Config config = TRY(config::read_config(host));
  const std::string& name = options.settings.device_class;
  TRY(device::check_class(config.classes, name));
  specs::Settings settings = options.settings;
  settings.driver_root = settings.driver_root.empty() ? config.runtime.driver_root : settings.driver_root;
  settings.has_all = !options.no_all;
  settings.names = options.strategy == "index"  ? specs::Names::index
                   : options.strategy == "uuid" ? specs::Names::uuid
                                                : specs::Names::both;
  return specs::generate(host, host::take_inventory(host, config, host::Libraries::ask_for_mig), settings);
}

// Until 0.1.0 --output named the file.
Result<CdiOptions> with_old_options(CdiOptions options) {
  const bool is_path =
      options.format.contains('/') || options.format.ends_with(".yaml") || options.format.ends_with(".json");
  if (is_path && options.file.empty()) {
    warn("--output names the format now and will take no file with the next release; use: --file " + options.format);
    options.file = std::exchange(options.format, "");
  }
  if (!options.format.empty() && options.format != "yaml" && options.format != "json") {
    return fail(std::errc::invalid_argument, "-o " + quote(options.format) + ": want yaml or json");
  }
  return options;
}

// That there is no such device is an answer; all else is usage, or something that could not be read.
int complain_about_devices(const Error& error) {
  const int status = complain(error);
  return error.reason == Reason::unavailable ? kProblem : status;
}

int generate(const CdiOptions& given) {
  const Result<CdiOptions> adapted = with_old_options(given);
  if (!adapted) {
    return complain(adapted.error());
  }
  const CdiOptions& options = *adapted;
  const Progress progress("surveying this host");
  const Result<specs::Generated> generated = generate_spec(options);
  progress.done();
  if (!generated) {
    return complain_about_devices(generated.error());
  }
  for (const std::string& note : generated->notes) {
    complain({std::errc::no_such_device, "note: " + note});
  }
  const bool is_json = options.format.empty() ? options.file.ends_with(".json") : options.format == "json";
  const std::string text = is_json ? render_json(generated->spec) : render_yaml(generated->spec);
  if (options.file.empty()) {
    print(text);
    return kFine;
  }
  const Result<void> written = specs::write_spec(options.file, text);
  return written ? kFine : complain(written.error());
}

int show_list(const CdiOptions& options) {
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const report::CdiList list = specs::list_devices(*host);
  print(options.output.is_text() ? render_text(list, terminal_width()) : in_format(options.output, render_json(list)));
  return kFine;
}

Result<report::CdiCheck> check(const CdiOptions& options) {
  const kernel::Host host = TRY(kernel::open_host());
  const device::Inventory inventory =
      host::take_inventory(host, TRY(config::read_config(host)), host::Libraries::leave);
  return options.arguments.empty() ? specs::check_registry(host, inventory)
                                   : specs::check_files(host, inventory, options.arguments);
}

int show_check(const CdiOptions& options) {
  const Result<report::CdiCheck> checked = check(options);
  if (!checked) {
    return complain(checked.error());
  }
  print(options.output.is_text() ? render_text(*checked) : in_format(options.output, render_json(*checked)));
  return checked->is_well() ? kFine : kProblem;
}

int show_edits(const CdiOptions& options) {
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<container::ContainerEdits> edits = specs::resolve(cdi::read_registry(*host), options.arguments);
  if (!edits) {
    return complain_about_devices(edits.error());
  }
  print(options.output.is_text()
            ? cdi::render_yaml(*edits)
            : in_format(options.output, render_json(report::CdiResolved{options.arguments, cdi::render_json(*edits)})));
  return kFine;
}

void add_generate(CLI::App& app, int& status) {
  const auto options = std::make_shared<CdiOptions>();
  CLI::App* command = app.add_subcommand("generate", "a spec of this host's GPUs, or of another device class");
  command->add_option("--class", options->settings.device_class, "nvidia, amd, rdma, fuse, or one of the config file")
      ->capture_default_str();
  command->add_option("--file", options->file, "the file to write, in one step; none: standard output");
  command->add_option("-o,--output,--format", options->format,
                      "yaml or json; else what the file's name ends with, else yaml");
  command->add_option("--driver-root", options->settings.driver_root,
                      "the root directory of NVIDIA's driver, if not /");
  command->add_option("--hook-path", options->settings.hook.path, "the hook that runs when a container is created")
      ->capture_default_str();
  command->add_option("--vendor", options->settings.vendor, "nvidia.com for NVIDIA's, holdfast.dev for all others");
  command->add_option("--name-strategy", options->strategy, "how devices are named")
      ->check(CLI::IsMember({"index", "uuid", "both"}))
      ->capture_default_str();
  command->add_flag("--no-all", options->no_all, "no device that combines all of them");
  command->footer(
      "A node that containers cannot do without, such as /dev/nvidia-uvm, and that is missing is an error.\n"
      "exit: 0 done; 1 there is nothing to write a spec of, or something is missing; 2 usage, or it could not be "
      "determined\n"
      "try:  holdfast cdi generate --file /etc/cdi/nvidia.yaml");
  command->callback([options, &status] { status = generate(*options); });
}

}  // namespace

void add_cdi(CLI::App& app, int& status) {
  CLI::App* cdi = app.add_subcommand("cdi", "specs of the Container Device Interface: write, list, check, resolve");
  cdi->require_subcommand(1);
  add_generate(*cdi, status);

  const auto list = std::make_shared<CdiOptions>();
  CLI::App* command = cdi->add_subcommand("list", "the devices in the specs of this host");
  add_output(*command, list->output);
  command->callback([list, &status] { status = show_list(*list); });

  const auto checked = std::make_shared<CdiOptions>();
  command = cdi->add_subcommand("check", "what is wrong with the specs of this host, or with some files");
  command->add_option("FILE", checked->arguments, "specs in any directory; none: those of /etc/cdi and /var/run/cdi");
  add_output(*command, checked->output);
  command->footer("exit: 0 nothing is wrong, 1 something is, 2 usage, or it could not be determined");
  command->callback([checked, &status] { status = show_check(*checked); });

  const auto resolved = std::make_shared<CdiOptions>();
  command = cdi->add_subcommand("resolve", "the edits of a container that gets these devices");
  command->add_option("NAME", resolved->arguments, "such as nvidia.com/gpu=0")->required();
  add_output(*command, resolved->output);
  command->footer("exit: 0 done, 1 a name is unknown here, 2 usage, or it could not be determined");
  command->callback([resolved, &status] { status = show_edits(*resolved); });
}

}  // namespace hf::programs
