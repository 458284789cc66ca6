// kubectl-holdfast: `kubectl holdfast`, which asks holdfast on every node of a cluster and shows one table.
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/text.h"
#include "kernel/files/fd.h"
#include "kernel/process/command.h"
#include "programs/console/exit_code.h"
#include "programs/console/output.h"
#include "programs/console/usage.h"
#include "services/fleet/fleet.h"

namespace hf::programs {
namespace {

struct Options {
  report::Question question = report::Question::doctor;
  std::string pod;
  std::vector<std::string> nodes;
  bool all_nodes = false;
  std::string name_space;
  std::string holdfast_namespace;
  std::string context;
  std::string kubeconfig;
  std::string since;
  bool losses = false;
  bool notes = false;
  std::size_t parallel = 32;
  std::uint32_t timeout = 20;
  fleet::Inquiry inquiry;
  Output output;
};

Result<std::vector<std::string>> kubectl_of(const Options& options) {
  std::string program = kernel::find_program("kubectl");
  if (program.empty()) {
    return fail(std::errc::no_such_file_or_directory, "there is no kubectl in $PATH");
  }
  std::vector<std::string> command = {std::move(program)};
  if (!options.context.empty()) {
    command.push_back("--context=" + options.context);
  }
  if (!options.kubeconfig.empty()) {
    command.push_back("--kubeconfig=" + options.kubeconfig);
  }
  return command;
}

Result<void> check_names(const Options& options) {
  for (const std::string& node : options.nodes) {
    if (!report::is_cluster_name(node)) {
      return fail(std::errc::invalid_argument, "node " + quote(node) + ": no node can have this name");
    }
  }
  for (const std::string& name : {options.name_space, options.holdfast_namespace}) {
    if (!name.empty() && !report::is_cluster_name(name)) {
      return fail(std::errc::invalid_argument, "namespace " + quote(name) + ": none can have this name");
    }
  }
  return {};
}

Result<fleet::Settings> settings_of(const Options& options) {
  TRY(check_names(options));
  fleet::Settings settings;
  settings.inquiry = options.inquiry;
  settings.inquiry.question = options.question;
  settings.inquiry.nodes = options.nodes;
  settings.inquiry.name_space = options.holdfast_namespace;
  if (options.pod.empty() && options.holdfast_namespace.empty()) {
    settings.inquiry.name_space = options.name_space;
  }
  if (!options.pod.empty()) {
    settings.inquiry.pod = TRY(fleet::parse_pod_name(options.pod, options.name_space));
  }
  if (!options.since.empty()) {
    settings.inquiry.options.push_back("--since=" + options.since);
  }
  if (options.losses) {
    settings.inquiry.options.emplace_back("--losses");
  }
  settings.inquiry.kubectl = TRY(kubectl_of(options));
  settings.limits.at_once = options.parallel;
  settings.limits.time = std::chrono::seconds(options.timeout);
  settings.notes = options.notes || !options.pod.empty() ? report::Notes::shown : report::Notes::hidden;
  settings.documents = options.output.is_text() ? fleet::Documents::dropped : fleet::Documents::kept;
  return settings;
}

Result<void> print_document(fleet::Answers& answers, const Output& output) {
  report::sort_by_name(answers.report);
  using Format = report::FleetDocument::Format;
  report::FleetDocument document(output.format == "yaml" ? Format::yaml : Format::json);
  print(document.head(answers.report));
  for (const report::NodeAnswer& answer : answers.report.nodes) {
    print(document.node(answer, TRY(answers.document_of(answer.member))));
  }
  print(document.tail(answers.report));
  return {};
}

int exit_code_of(const report::FleetVerdict& verdict) {
  return verdict.critical + verdict.warning > 0       ? kProblem
         : verdict.undecided + verdict.unanswered > 0 ? kCannotTell
                                                      : kFine;
}

Result<int> ask_and_show(const Options& options) {
  fleet::Settings settings = TRY(settings_of(options));
  ProgressCount progress;
  settings.progress = [&progress](const std::string& activity) { progress.show(activity + " …"); };
  fleet::Answers answers = TRY(fleet::ask(std::move(settings)));
  progress.done();
  if (options.output.is_text()) {
    print(report::render_text(answers.report, terminal_width()));
  } else {
    TRY(print_document(answers, options.output));
  }
  return exit_code_of(report::verdict_of(answers.report));
}

void add_cluster_options(CLI::App& command, Options& options) {
  CLI::Option* pod = command.add_option("POD", options.pod, "only this pod, on its node: NAME, or NAMESPACE/NAME");
  CLI::Option* all =
      command.add_flag("-A,--all-nodes", options.all_nodes, "all nodes that have a pod of holdfast; the default");
  CLI::Option* nodes =
      command.add_option("--node", options.nodes, "only this node; may be repeated")->type_name("NODE");
  nodes->allow_extra_args(false);
  pod->excludes(all)->excludes(nodes);
  nodes->excludes(all);
  command.add_option("-n,--namespace", options.name_space, "the namespace of POD; without POD: of holdfast's pods")
      ->type_name("NAMESPACE");
  command
      .add_option("--holdfast-namespace", options.holdfast_namespace,
                  "of holdfast's pods; none: the only one that has them")
      ->type_name("NAMESPACE");
  command.add_option("--selector,-l", options.inquiry.selector, "the label of holdfast's pods")->capture_default_str();
  command.add_option("--container,-c", options.inquiry.container, "the container of these pods that has holdfast")
      ->capture_default_str();
  command.add_option("--context", options.context, "as of kubectl");
  command.add_option("--kubeconfig", options.kubeconfig, "as of kubectl")->type_name("FILE");
  command.add_option("--parallel", options.parallel, "how many nodes are asked at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--timeout", options.timeout, "seconds that kubectl has for each node")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  add_output(command, options.output);
}

// A command that asks one question.
std::shared_ptr<Options> add_question(CLI::App& command, report::Question question, int& status) {
  const auto options = std::make_shared<Options>();
  options->question = question;
  add_cluster_options(command, *options);
  command.footer(
      "exit: 0 no problem, 1 a problem was found, 2 usage, or it could not be determined: no problem is known and a\n"
      "node did not answer");
  command.callback([options, &status] {
    const Result<int> done = ask_and_show(*options);
    status = done ? *done : complain(done.error());
  });
  return options;
}

void add_commands(CLI::App& app, int& status) {
  using report::Question;
  CLI::App& doctor = *app.add_subcommand("doctor", "what is wrong with the devices of each node, and what helps");
  const auto of_doctor = add_question(doctor, Question::doctor, status);
  doctor.add_flag("--all", of_doctor->notes, "also what is worth knowing but needs nothing done; always so for a POD");
  add_question(
      *app.add_subcommand("ps", "the containers of each node, the devices they are owed, and whether they have them"),
      Question::ps, status);
  CLI::App& blame =
      *app.add_subcommand("blame", "which process changed a container's device rules, on all nodes in one timeline");
  const auto of_blame = add_question(blame, Question::blame, status);
  blame.add_option("--since", of_blame->since, "only the last 90s, 30m, 1h, 7d");
  blame.add_flag("--losses", of_blame->losses, "only changes that removed something a container is owed");
  CLI::App& cpu = *app.add_subcommand("cpu", "exclusive cores");
  cpu.require_subcommand(1);
  add_question(*cpu.add_subcommand("status", "which container of each node has which CPUs of its own"),
               Question::cpu_status, status);
}

int run(std::span<char* const> argv) {
  fill_standard_files();
  kernel::raise_descriptor_limit();  // two for each node that is asked
  CLI::App app{"Asks holdfast on every node of a cluster through kubectl exec, and shows one table.",
               "kubectl holdfast"};
  app.set_version_flag("-V,--version", std::string("kubectl-holdfast ") + HOLDFAST_VERSION);
  app.get_formatter()->column_width(28);
  app.require_subcommand(0, 1);
  int status = kFine;
  add_commands(app, status);
  return run_command_line(
      app, argv, "a command is missing; there are doctor, ps, blame, cpu status (see kubectl holdfast --help)", status);
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run({argv, std::size_t(argc)}); }
