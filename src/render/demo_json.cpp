#include <nlohmann/json.hpp>

#include "render/demo.h"
#include "render/json_string.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

Json to_json(const std::optional<Finding>& finding) {
  return finding ? Json{{"code", finding->code},
                        {"severity", to_string(finding->severity)},
                        {"verdict", sentence_of(*finding)},
                        {"evidence", finding->evidence},
                        {"cure", finding->cure}}
                 : Json(nullptr);
}

Json to_json(const Spread& spread) {
  return {{"count", spread.count}, {"median_ns", spread.median}, {"p99_ns", spread.p99}, {"max_ns", spread.max}};
}

Json to_json(const DemoContainer& it) {
  const Json unguarded = {
      {"attack", it.attack}, {"refusal", it.refusal}, {"lost_ns", it.lost_ns}, {"finding", to_json(it.finding)}};
  const Json seen = {{"opens", it.seen.count},
                     {"refused", it.seen.refused},
                     {"outages", it.seen.outages},
                     {"longest_outage_ns", it.seen.longest_ns}};
  const Json guarded = {{"attacks", it.attack_count()},
                        {"attacks_by_kind", it.attacks},
                        {"overtaken", it.overtaken},
                        {"repaired", it.repaired},
                        {"loss", to_json(spread_of(it.losses_ns))},
                        {"held", it.held},
                        {"held_opens", it.held_opens},
                        {"writers", it.writers},
                        {"inside", seen}};
  return {{"id", it.id},
          {"hierarchy", it.hierarchy == container::Hierarchy::v1 ? "v1" : "v2"},
          {"launcher", it.launcher},
          {"cgroup", it.cgroup},
          {"nodes", it.nodes},
          {"stand_in", it.is_stand_in},
          {"notes", it.notes},
          {"unguarded", unguarded},
          {"guarded", guarded}};
}

}  // namespace

std::string render_json(const DemoReport& report) {
  Json containers = Json::array();
  for (const DemoContainer& it : report.containers) {
    containers.push_back(to_json(it));
  }
  const Json document = {{"version", kVersion},
                         {"held", report.has_held()},
                         {"interrupted", report.is_interrupted},
                         {"kernel", report.kernel},
                         {"layout", report.layout},
                         {"watching", report.watching},
                         {"guarded_ms", report.guarded_ms},
                         {"containers", containers}};
  return render_document(document);
}

}  // namespace hf::report
