#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/finding.h"
#include "render/host.h"
#include "render/json_string.h"
#include "render/plugin.h"
#include "render/rules.h"
#include "render/time.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using container::Container;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json text_or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Json device_or_null(const std::optional<device::Device>& device) {
  return device ? Json{{"type", std::string(1, device::kind_character(device->kind))},
                       {"major", device->major},
                       {"minor", device->minor}}
                : Json(nullptr);
}

Json errno_or_null(const std::optional<int>& number) { return number ? Json(*number) : Json(nullptr); }

Json to_json(const Container& it) {
  Json json = {{"id", it.id.value},
               {"name", text_or_null(it.name)},
               {"title", title_of(it)},
               {"engine", text_or_null(it.engine)},
               {"namespace", text_or_null(it.name_space)},
               {"image", text_or_null(it.image)},
               {"pod", nullptr},
               {"sandbox", it.is_sandbox},
               {"pid", it.init.value},
               {"started_at", render_time(it.started_at)},
               {"mount_namespace", it.mount_namespace},
               {"cgroup", it.cgroup},
               {"cgroup_v1", it.v1},
               {"cgroup_v2", it.v2 ? Json(*it.v2) : Json(nullptr)},
               {"cgroup_driver", it.driver ? Json(to_string(*it.driver)) : Json(nullptr)},
               {"systemd_unit", text_or_null(it.unit)},
               {"runtime", it.runtime ? Json(it.runtime->name) : Json(nullptr)},
               {"runtime_version", it.runtime ? text_or_null(it.runtime->version) : Json(nullptr)},
               {"bundle", text_or_null(it.bundle)},
               {"cpus", text_or_null(it.cpus)},
               {"cpus_exclusive", it.has_exclusive_cpus},
               {"inside", it.inside ? Json(it.inside->value) : Json(nullptr)}};
  if (it.pod) {
    json["pod"] = {{"uid", it.pod->uid},
                   {"name", text_or_null(it.pod->name)},
                   {"namespace", text_or_null(it.pod->name_space)},
                   {"container", text_or_null(it.pod->container)}};
  }
  return json;
}

Json to_json(const container::OwedNode& node) {
  return {{"path", node.path},
          {"class", text_or_null(node.device_class)},
          {"part", to_string(node.part)},
          {"device", device_or_null(node.device)},
          {"claimed", device_or_null(node.claimed)},
          {"access", to_string(node.access)},
          {"because", node.because},
          {"completes_set", node.is_completion},
          {"rule_only", node.is_rule_only}};
}

Json to_json(const container::Claim& claim) {
  return {{"source", to_string(claim.source)},
          {"where", claim.where},
          {"nodes", paths_of(claim)},
          {"believed", claim.refused.empty()},
          {"refused_because", text_or_null(claim.refused)}};
}

Json to_json(const container::ShieldCover& cover) {
  Json json = {{"on", cover.is_on}, {"devices", cover.devices}, {"count", cover.count}};
  if (!cover.why.empty()) {
    json["why"] = cover.why;
  }
  return json;
}

Json to_json(const ContainerLine& line) {
  Json json = to_json(line.container);
  json["state"] = to_string(line.state);
  json["findings"] = line.codes;
  json["shield"] = to_json(line.shield);
  json["owed"] = Json::array();
  for (const container::OwedNode& node : line.entitlement.nodes) {
    json["owed"].push_back(to_json(node));
  }
  json["refused"] = Json::array();
  for (const container::Claim& claim : line.entitlement.refused) {
    json["refused"].push_back(to_json(claim));
  }
  return json;
}

Json to_json(const Finding& finding) {
  return {{"code", finding.code},
          {"severity", to_string(finding.severity)},
          {"subject", finding.subject},
          {"container", text_or_null(finding.container)},
          {"verdict", sentence_of(finding)},
          {"evidence", finding.evidence},
          {"cure", finding.cure},
          {"needs_all_cures", finding.needs_all_cures}};
}

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back(to_json(finding));
  }
  return list;
}

Json to_json(const container::NodeState& node) {
  Json json = to_json(*node.owed);
  json["trouble"] = to_string(node.diagnosis.failure);
  json["words"] = text_or_null(node.diagnosis.text);
  json["rules"] = render_text(node.gates);
  json["seen"] = {{"errno", node.seen.lookup_error},
                  {"device", device_or_null(node.seen.device)},
                  {"mode", node.seen.mode},
                  {"uid", node.seen.uid},
                  {"gid", node.seen.gid},
                  {"nodev", node.seen.is_on_nodev_mount},
                  {"access_errno", errno_or_null(node.seen.access)},
                  {"open_errno", errno_or_null(node.seen.open)}};
  return json;
}

Json to_json(const device::Unit& unit) {
  Json mig = Json::array();
  for (const device::MigDevice& part : unit.mig) {
    mig.push_back({{"uuid", part.uuid},
                   {"gpu_instance", part.gpu_instance},
                   {"compute_instance", part.compute_instance},
                   {"nodes", part.nodes}});
  }
  return {{"class", unit.device_class},
          {"name", unit.name},
          {"uuid", text_or_null(unit.uuid)},
          {"model", text_or_null(unit.model)},
          {"pci", text_or_null(unit.pci)},
          {"numa", unit.numa ? Json(*unit.numa) : Json(nullptr)},
          {"memory_bytes", unit.memory_bytes ? Json(*unit.memory_bytes) : Json(nullptr)},
          {"health", to_string(unit.health)},
          {"health_words", text_or_null(unit.health_text)},
          {"nodes", unit.nodes},
          {"mig_enabled", unit.mig_enabled},
          {"mig", mig}};
}

std::vector<std::string> list_for(const std::map<std::string, std::vector<std::string>>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::vector<std::string>() : found->second;
}

}  // namespace

std::string render_json(const ContainerList& list) {
  Json containers = Json::array();
  for (const ContainerLine& line : list.lines) {
    containers.push_back(to_json(line));
  }
  return render_document({{"version", kVersion}, {"containers", containers}, {"notes", list.notes}});
}

std::string render_json(const DoctorReport& report) {
  Json shields = Json::array();
  for (const DoctorReport::Shielded& shielded : report.shields) {
    Json json = to_json(shielded.cover);
    json["container"] = shielded.container;
    shields.push_back(std::move(json));
  }
  return render_document({{"version", kVersion},
                          {"summary", summary_line(report)},
                          {"containers", report.containers},
                          {"states", report.states},
                          {"findings", to_json(report.findings)},
                          {"shields", shields},
                          {"guard", report.guard},
                          {"notes", report.notes}});
}

std::string render_json(const Explanation& explanation) {
  Json claims = Json::array();
  for (const container::Claim& claim : explanation.claims) {
    claims.push_back(to_json(claim));
  }
  Json nodes = Json::array();
  for (const container::NodeState& node : explanation.nodes) {
    nodes.push_back(to_json(node));
  }
  return render_document({{"version", kVersion},
                          {"container", to_json(explanation.line)},
                          {"claims", claims},
                          {"nodes", nodes},
                          {"gates", Json::parse(render_json(explanation.gates))},
                          {"gates_problem", text_or_null(explanation.gates_problem)},
                          {"systemd_allows", explanation.unit_allows},
                          {"not_owed", explanation.not_owed},
                          {"findings", to_json(explanation.findings)}});
}

std::string render_json(const DeviceList& list) {
  Json units = Json::array();
  for (const device::Unit& unit : list.inventory.units) {
    units.push_back(to_json(unit));
  }
  Json nodes = Json::array();
  for (const device::Node& node : list.inventory.nodes) {
    nodes.push_back({{"path", node.path},
                     {"class", node.device_class},
                     {"part", to_string(node.part)},
                     {"live", device_or_null(node.live)},
                     {"expected", device_or_null(node.expected)},
                     {"stale", node.is_stale()},
                     {"mode", node.mode},
                     {"uid", node.uid},
                     {"gid", node.gid},
                     {"containers", list_for(list.entitled, node.path)},
                     {"held_by", list_for(list.holders, node.path)}});
  }
  Json drivers = Json::array();
  for (const device::DriverState& state : list.inventory.states) {
    drivers.push_back({{"class", state.device_class},
                       {"version", text_or_null(state.version)},
                       {"library_version", text_or_null(state.library_version)},
                       {"cuda_version", text_or_null(state.cuda_version)},
                       {"modules", state.modules},
                       {"error", text_or_null(state.library_error)},
                       {"meaning", text_or_null(state.meaning)}});
  }
  return render_document({{"version", kVersion},
                          {"units", units},
                          {"nodes", nodes},
                          {"drivers", drivers},
                          {"offers", Json::parse(render_json(list.offers))},
                          {"notes", list.inventory.notes}});
}

std::string render_page_json(std::string_view code, std::string_view page) {
  const std::size_t end = page.find('\n');
  const std::string_view title = trim(page.substr(code.size(), end - code.size()));
  const std::string_view text = trim(page.substr(std::min(end, page.size())));
  return render_document({{"version", kVersion}, {"code", code}, {"title", title}, {"text", text}});
}

}  // namespace hf::report
