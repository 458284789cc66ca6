#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "adapters/cdi/cdi.h"
#include "adapters/config/config.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/report/cdi_report.h"
#include "kernel/host.h"
#include "node/inventory.h"
#include "output.h"
#include "services/specs/check.h"
#include "services/specs/generate.h"

namespace hf::programs {
namespace {

struct CdiWords {
  specs::Settings settings;
  std::string file;
  std::string format;
  std::string strategy = "both";
  bool no_all = false;
  std::vector<std::string> words;  // files, or names of devices
  Output output;
};

Result<specs::Generated> make_spec(const CdiWords& words) {
  const kernel::Host host = TRY(kernel::open_host());
  const config::Config config = TRY(config::read_config(host));
  const std::string& name = words.settings.device_class;
  if (device::find_class(config.classes, name) == nullptr) {
    return fail(std::errc::invalid_argument, "class " + quote(name) + ": there is no such class of devices");
  }
  specs::Settings settings = words.settings;
  settings.has_all = !words.no_all;
  settings.names = words.strategy == "index"  ? specs::Names::index
                   : words.strategy == "uuid" ? specs::Names::uuid
                                              : specs::Names::both;
  // NVML alone knows the parts of a GPU by their names.
  const node::Libraries libraries = name == "nvidia" ? node::Libraries::ask : node::Libraries::leave;
  return specs::generate(host, node::take_inventory(host, config, libraries), settings);
}

int generate(const CdiWords& words) {
  const Progress progress("looking at this node");
  const Result<specs::Generated> generated = make_spec(words);
  progress.done();
  if (!generated) {
    const bool is_usage = generated.error().code == std::errc::invalid_argument;
    const int cannot_tell = complain(generated.error());
    return is_usage ? cannot_tell : kProblem;
  }
  for (const std::string& note : generated->notes) {
    complain({std::errc::no_such_device, "note: " + note});
  }
  const bool is_json = words.format.empty() ? words.file.ends_with(".json") : words.format == "json";
  const std::string text = is_json ? render_json(generated->spec) : render_yaml(generated->spec);
  if (words.file.empty()) {
    print(text);
    return kFine;
  }
  const Result<void> written = specs::write_spec(words.file, text);
  return written ? kFine : complain(written.error());
}

int show_list(const CdiWords& words) {
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const report::CdiList list = specs::list_devices(*host);
  print(words.output.is_json() ? render_json(list) : render_text(list));
  return kFine;
}

Result<report::CdiCheck> check(const CdiWords& words) {
  const kernel::Host host = TRY(kernel::open_host());
  const device::Inventory inventory =
      node::take_inventory(host, TRY(config::read_config(host)), node::Libraries::leave);
  return words.words.empty() ? specs::check_registry(host, inventory)
                             : specs::check_files(host, inventory, words.words);
}

int show_check(const CdiWords& words) {
  const Result<report::CdiCheck> checked = check(words);
  if (!checked) {
    return complain(checked.error());
  }
  print(words.output.is_json() ? render_json(*checked) : render_text(*checked));
  return checked->is_well() ? kFine : kProblem;
}

int show_edits(const CdiWords& words) {
  const Result<kernel::Host> host = kernel::open_host();
  if (!host) {
    return complain(host.error());
  }
  const Result<container::ContainerEdits> edits = specs::resolve(cdi::read_registry(*host), words.words);
  if (!edits) {
    complain(edits.error());
    return kProblem;
  }
  print(words.output.is_json() ? render_json(report::CdiResolved{words.words, cdi::render_json(*edits)})
                               : cdi::render_yaml(*edits));
  return kFine;
}

void add_generate(CLI::App& app, int& status) {
  const auto words = std::make_shared<CdiWords>();
  CLI::App* command = app.add_subcommand("generate", "a spec of this node's GPUs, or of another class of devices");
  command->add_option("--class", words->settings.device_class, "nvidia, amd, rdma, fuse, or one of the config file")
      ->capture_default_str();
  command->add_option("--output", words->file, "the file to write, in one step; none: standard output");
  command->add_option("-o,--format", words->format, "yaml or json; else what the file's name ends with, else yaml")
      ->check(CLI::IsMember({"yaml", "json"}));
  command->add_option("--driver-root", words->settings.driver_root, "where NVIDIA's driver lies, if not in /");
  command->add_option("--hook-path", words->settings.hook.path, "the program that containers call when they are made")
      ->capture_default_str();
  command->add_option("--vendor", words->settings.vendor, "nvidia.com for NVIDIA's, holdfast.dev for all others");
  command->add_option("--name-strategy", words->strategy, "how devices are called")
      ->check(CLI::IsMember({"index", "uuid", "both"}))
      ->capture_default_str();
  command->add_flag("--no-all", words->no_all, "no device that stands for all of them");
  command->footer(
      "A node that containers cannot do without, such as /dev/nvidia-uvm, and that is missing is an error.\n"
      "exit: 0 done; 1 there is nothing to write a spec of, or something is missing; 2 usage, or it could not be told\n"
      "try:  holdfast cdi generate --output /etc/cdi/nvidia.yaml");
  command->callback([words, &status] { status = generate(*words); });
}

}  // namespace

void add_cdi(CLI::App& app, int& status) {
  CLI::App* cdi = app.add_subcommand("cdi", "specs of the Container Device Interface: write, list, check, resolve");
  cdi->require_subcommand(1);
  add_generate(*cdi, status);

  const auto list = std::make_shared<CdiWords>();
  CLI::App* command = cdi->add_subcommand("list", "the devices that specs of this node have");
  add_output(*command, list->output);
  command->callback([list, &status] { status = show_list(*list); });

  const auto checked = std::make_shared<CdiWords>();
  command = cdi->add_subcommand("check", "what is wrong with the specs of this node, or with some files");
  command->add_option("FILE", checked->words, "specs, wherever they lie; none: those of /etc/cdi and /var/run/cdi");
  add_output(*command, checked->output);
  command->footer("exit: 0 nothing is wrong, 1 something is, 2 usage, or it could not be told");
  command->callback([checked, &status] { status = show_check(*checked); });

  const auto resolved = std::make_shared<CdiWords>();
  command = cdi->add_subcommand("resolve", "the edits of a container that gets these devices");
  command->add_option("NAME", resolved->words, "such as nvidia.com/gpu=0")->required();
  add_output(*command, resolved->output);
  command->footer("exit: 0 done, 1 a name means nothing here, 2 usage, or it could not be told");
  command->callback([resolved, &status] { status = show_edits(*resolved); });
}

}  // namespace hf::programs
