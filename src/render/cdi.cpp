#include "render/cdi.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/finding.h"
#include "render/json_string.h"
#include "render/text_table.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

std::string coloured(const std::string& state) { return marked(state == "ok" ? kGreen : kYellow, state); }

}  // namespace

std::string render_text(const CdiList& list, std::size_t columns) {
  TextTable table({"DEVICE", "STATE", "CDI", "NODES", "MOUNTS", "HOOKS", "SPEC"}, columns);
  for (const CdiList::Device& device : list.devices) {
    table.add({on_one_line(device.name), coloured(device.state), on_one_line(device.version),
               std::to_string(device.nodes), std::to_string(device.mounts), std::to_string(device.hooks),
               on_one_line(device.file)});
  }
  std::string text = list.devices.empty() ? "no spec of /etc/cdi or /var/run/cdi has a device\n" : table.render();
  for (const CdiList::Broken& broken : list.broken) {
    text += marked(kRed, "cannot be used: ") + on_one_line(broken.why) + "\n";
  }
  return text;
}

std::string render_json(const CdiList& list) {
  Json devices = Json::array();
  for (const CdiList::Device& device : list.devices) {
    devices.push_back({{"name", device.name},
                       {"state", device.state},
                       {"cdi_version", device.version},
                       {"file", device.file},
                       {"nodes", device.nodes},
                       {"mounts", device.mounts},
                       {"hooks", device.hooks}});
  }
  Json broken = Json::array();
  for (const CdiList::Broken& entry : list.broken) {
    broken.push_back({{"file", entry.file}, {"why", entry.why}});
  }
  return render_document({{"version", 1}, {"devices", std::move(devices)}, {"broken", std::move(broken)}});
}

std::string render_text(const CdiCheck& check) {
  const auto problems = std::size_t(
      std::ranges::count_if(check.findings, [](const Finding& finding) { return finding.severity != Severity::note; }));
  const std::string verdict =
      problems == 0 ? marked(kGreen, "nothing is wrong") : marked(kRed, count_of(problems, "problem"));
  return verdict + " (" + count_of(check.specs, "spec") + ", " + count_of(check.devices, "device") + ")\n" +
         render_text(check.findings);
}

std::string render_json(const CdiCheck& check) {
  Json findings = Json::array();
  for (const Finding& finding : check.findings) {
    findings.push_back({{"code", finding.code},
                        {"severity", to_string(finding.severity)},
                        {"subject", finding.subject},
                        {"container", nullptr},
                        {"verdict", sentence_of(finding)},
                        {"evidence", finding.evidence},
                        {"cure", finding.cure}});
  }
  return render_document({{"version", 1},
                          {"well", check.is_well()},
                          {"specs", check.specs},
                          {"devices", check.devices},
                          {"findings", std::move(findings)}});
}

std::string render_json(const CdiResolved& resolved) {
  return render_document({{"version", 1}, {"names", resolved.names}, {"edits", Json::parse(resolved.edits)}});
}

}  // namespace hf::report
