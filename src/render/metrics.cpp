#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/report/verdict.h"
#include "render/snapshot.h"

namespace hf::report {
namespace {

using container::State;

constexpr std::size_t kMostContainers = 1000;  // with series of their own
constexpr std::size_t kMostLabel = 200;        // bytes of a label's value

using Labels = std::initializer_list<std::pair<const char*, std::string>>;

// Prometheus refuses the whole page for one byte that is not UTF-8.
std::string clean(const std::string& text) { return cut_to(printable(text), kMostLabel); }

std::string escaped(const std::string& text) {
  std::string value;
  for (const char character : text) {
    value += character == '\n'   ? "\\n"
             : character == '"'  ? "\\\""
             : character == '\\' ? "\\\\"
                                 : std::string(1, character);
  }
  return value;
}

std::string number_of(double value) {
  std::array<char, 64> text{};
  const std::to_chars_result done = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), done.ptr};
}

double seconds_of(std::uint64_t nanoseconds) { return double(nanoseconds) / 1e9; }

class Page {
 public:
  void begin(const std::string& name, const char* type, const std::string& help) {
    name_ = "holdfast_" + name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }

  void add(const Labels& labels, const std::string& value, const char* suffix = "") {
    std::vector<std::string> parts;
    parts.reserve(labels.size());
    for (const auto& [label, text] : labels) {
      parts.push_back(std::string(label) + "=\"" + escaped(clean(text)) + "\"");
    }
    text_ += name_ + suffix + (parts.empty() ? "" : "{" + join(parts, ",") + "}") + " " + value + "\n";
  }

  void add(const Labels& labels, std::uint64_t value, const char* suffix = "") {
    add(labels, std::to_string(value), suffix);
  }

  void gauge(const std::string& name, const std::string& help, const std::string& value) {
    begin(name, "gauge", help);
    add({}, value);
  }

  void histogram(const std::string& name, const std::string& help, const Histogram& histogram) {
    begin(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
      below += histogram.counts[i];
      add({{"le", number_of(seconds_of(Histogram::kBounds[i]))}}, below, "_bucket");
    }
    add({{"le", "+Inf"}}, histogram.total(), "_bucket");
    add({}, number_of(seconds_of(histogram.sum)), "_sum");
    add({}, histogram.total(), "_count");
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

// The labels that identify the series of a container.
struct Name {
  std::string container;
  std::string name_space;

  friend auto operator<=>(const Name&, const Name&) = default;
};

struct Series {
  Name name;
  bool is_at_risk = false;
  bool is_shielded = false;
  std::map<std::string, bool> classes;  // whether all owed nodes of it can be used
};

std::map<std::string, bool> classes_of(const ContainerStatus& guarded) {
  const auto class_name = [](const container::OwedNode& node) {
    return node.device_class.empty() ? "other" : clean(node.device_class);
  };
  std::map<std::string, bool> classes;
  for (const container::OwedNode& node : guarded.owed->nodes) {
    classes.try_emplace(class_name(node), true);
  }
  for (const container::NodeState& node : *guarded.nodes) {
    bool& fine = classes.try_emplace(class_name(*node.owed), true).first->second;
    fine = fine && !node.is_inaccessible();
  }
  return classes;
}

std::string shown_name_space_of(const container::Container& it) {
  return container::shown_name_space(it.engine.value_or(""), name_space_of(it));
}

// Two series with the same labels would spoil the page, and names may be hostile. Absent: even the id is taken.
std::optional<Name> name_of(const container::Container& it, std::set<Name>& taken) {
  for (const std::string& candidate : {unambiguous_name_of(it), "container:" + it.id.value}) {
    Name name{clean(candidate), clean(shown_name_space_of(it))};
    if (taken.insert(name).second) {
      return name;
    }
  }
  return std::nullopt;
}

// Containers that are owed something, those in failure first: where there are too many, the last are left out.
std::vector<const ContainerStatus*> owed_of(const std::vector<ContainerStatus>& guarded_containers) {
  std::vector<const ContainerStatus*> owed;
  std::vector<const ContainerStatus*> well;
  for (const ContainerStatus& guarded : guarded_containers) {
    if (!guarded.owed->owes_nothing() || !guarded.nodes->empty()) {
      (guarded.state == State::ok ? well : owed).push_back(&guarded);
    }
  }
  owed.insert(owed.end(), well.begin(), well.end());
  return owed;
}

std::vector<Series> series_of(const std::vector<const ContainerStatus*>& owed) {
  std::vector<Series> series;
  std::set<Name> taken;
  for (const ContainerStatus* const guarded : owed) {
    const std::optional<Name> name =
        series.size() < kMostContainers ? name_of(*guarded->container, taken) : std::nullopt;
    if (name) {
      series.push_back({*name, guarded->state == State::at_risk, guarded->is_shielded, classes_of(*guarded)});
    }
  }
  return series;
}

void add_states(Page& page, const std::vector<ContainerStatus>& guarded_containers) {
  std::map<std::string, std::uint64_t> states;
  for (const State state :
       {State::ok, State::at_risk, State::partial, State::stale, State::lost, State::not_owed, State::unknown}) {
    states[to_string(state)] = 0;
  }
  for (const ContainerStatus& guarded : guarded_containers) {
    ++states[to_string(guarded.state)];
  }
  page.begin("containers", "gauge", "Containers on this host by state.");
  for (const auto& [state, count] : states) {
    page.add({{"state", state}}, count);
  }
}

void add_containers(Page& page, const std::vector<ContainerStatus>& guarded_containers) {
  const std::vector<const ContainerStatus*> owed = owed_of(guarded_containers);
  const std::vector<Series> all = series_of(owed);
  page.begin("container_device_accessible", "gauge",
             "Whether a container can use every device of a class that it is owed.");
  for (const Series& series : all) {
    for (const auto& [name, fine] : series.classes) {
      page.add({{"container", series.name.container}, {"namespace", series.name.name_space}, {"class", name}},
               fine ? 1U : 0U);
    }
  }
  page.begin("container_at_risk", "gauge",
             "Whether the next reload or update takes away from a container what it is owed.");
  for (const Series& series : all) {
    for (const auto& [name, fine] : series.classes) {
      page.add({{"container", series.name.container}, {"namespace", series.name.name_space}, {"class", name}},
               series.is_at_risk ? 1U : 0U);
    }
  }
  page.begin("container_shielded", "gauge",
             "Whether the shield keeps open what a container is owed, whatever is done to its rules; 0: it is healed.");
  for (const Series& series : all) {
    page.add({{"container", series.name.container}, {"namespace", series.name.name_space}},
             series.is_shielded ? 1U : 0U);
  }
  page.gauge("containers_left_out", "Containers that are owed something and have no series of their own.",
             std::to_string(owed.size() - all.size()));
}

// The writers with the most losses by name, the rest together.
std::map<std::pair<std::string, std::string>, std::uint64_t> bounded(const Counters& counters) {
  std::map<std::string, std::uint64_t> by_writer;
  for (const auto& [key, count] : counters.losses) {
    by_writer[clean(key.second)] += count;
  }
  std::vector<std::pair<std::uint64_t, std::string>> most;
  most.reserve(by_writer.size());
  for (const auto& [writer, count] : by_writer) {
    most.emplace_back(count, writer);
  }
  std::ranges::sort(most, std::greater());
  most.resize(std::min(most.size(), Counters::kMostWriters - 1));
  std::set<std::string> named;
  for (const auto& [count, writer] : most) {
    named.insert(writer);
  }
  std::map<std::pair<std::string, std::string>, std::uint64_t> losses;
  for (const auto& [key, count] : counters.losses) {
    const std::string writer = clean(key.second);
    losses[{clean(key.first), named.contains(writer) ? writer : "other"}] += count;
  }
  return losses;
}

void add_counters(Page& page, const Counters& counters) {
  page.begin("losses_total", "counter", "Losses of owed devices by cause and writer.");
  for (const auto& [key, count] : bounded(counters)) {
    page.add({{"cause", key.first}, {"writer", key.second}}, count);
  }
  page.begin("heals_total", "counter", "What was done about losses, by action and result.");
  // There from the start: Prometheus does not count what a series has when it appears.
  std::map<std::pair<std::string, std::string>, std::uint64_t> heals = counters.heals;
  heals.try_emplace({"failed", "failed"}, 0);
  for (const auto& [key, count] : heals) {
    page.add({{"action", key.first}, {"result", key.second}}, count);
  }
  page.begin("shield_opens_total", "counter", "Requests that only the shield let through.");
  page.add({}, counters.held_opens);
  page.begin("events_total", "counter", "Events received by kind.");
  for (const auto& [kind, count] : counters.events) {
    page.add({{"kind", kind}}, count);
  }
  page.histogram("loss_duration_seconds", "From the change that took a device to access restored.",
                 counters.loss_duration);
  page.histogram("heal_duration_seconds", "Our own work in a repair.", counters.heal_duration);
}

void add_findings(Page& page, const std::vector<Finding>& findings) {
  std::map<std::pair<std::string, Severity>, std::uint64_t> counts;
  for (const Finding& finding : findings) {
    ++counts[{finding.code, finding.severity}];
  }
  page.begin("findings", "gauge", "Findings of doctor by code and severity.");
  for (const auto& [key, count] : counts) {
    page.add({{"code", key.first}, {"severity", to_string(key.second)}}, count);
  }
}

// Replicas of one device are one series.
std::map<std::string, std::string> problems_in(const resource::Offer& offer) {
  std::map<std::string, std::string> problems;
  for (const resource::OfferedDevice& device : offer.devices) {
    if (device.problem) {
      problems.emplace(clean(device.device), *device.problem);
    }
  }
  return problems;
}

void add_offers(Page& page, const std::vector<resource::OfferStatus>& offers) {
  if (offers.empty()) {
    return;
  }
  page.begin("resource_devices", "gauge",
             "Devices that holdfast-kube offers, by resource (the DRA driver: its name) and health.");
  for (const resource::OfferStatus& status : offers) {
    page.add({{"resource", status.offer.resource}, {"health", "Healthy"}}, status.healthy());
    page.add({{"resource", status.offer.resource}, {"health", "Unhealthy"}},
             status.offer.devices.size() - status.healthy());
  }
  page.begin("resource_device_unhealthy", "gauge", "Why a device that is offered must not be used.");
  for (const resource::OfferStatus& status : offers) {
    for (const auto& [device, problem] : problems_in(status.offer)) {
      page.add({{"resource", status.offer.resource}, {"device", device}, {"reason", problem}}, 1);
    }
  }
  page.begin("resource_connected", "gauge",
             "Whether kubelet reads the list of a resource's devices, or has registered the DRA driver.");
  for (const resource::OfferStatus& status : offers) {
    page.add({{"resource", status.offer.resource}}, status.is_connected ? 1U : 0U);
  }
  page.begin("resource_allocations_total", "counter",
             "Requests of kubelet for devices by result, since holdfast-kube started.");
  for (const resource::OfferStatus& status : offers) {
    page.add({{"resource", status.offer.resource}, {"result", "allocated"}}, status.allocated);
    page.add({{"resource", status.offer.resource}, {"result", "refused"}}, status.refused);
  }
}

void add_cpus(Page& page, const CpuStatus& status) {
  page.gauge("cpus_managed", "Whether exclusive CPUs are managed.", status.problem.empty() ? "1" : "0");
  if (!status.problem.empty()) {
    return;
  }
  page.begin("cpus", "gauge", "CPUs by use: shared by containers, owned by one, or reserved for the system.");
  page.add({{"use", "shared"}}, (status.pool - status.reserved).count());
  page.add({{"use", "exclusive"}}, given_cpus(status.state).count());
  page.add({{"use", "reserved"}}, status.reserved.count());
  page.begin("container_cpus", "gauge", "Exclusive CPUs of a container.");
  for (const CpuContainer& one : status.containers) {
    if (one.is_exclusive) {
      page.add({{"container", clean(one.title)}, {"id", one.id}, {"cpus", to_string(one.cpus)}}, one.cpus.count());
    }
  }
  page.begin("container_cpus_distance", "gauge",
             "From a container's devices to the farthest NUMA node of its exclusive CPUs; 10: the same node.");
  for (const CpuContainer& one : status.containers) {
    if (one.is_exclusive && one.distance) {
      page.add({{"container", clean(one.title)}, {"id", one.id}}, *one.distance);
    }
  }
  page.begin("container_cpus_problem", "gauge", "Why a container does not have the CPUs that it is to have.");
  for (const CpuContainer& one : status.containers) {
    if (!one.problem.empty()) {
      page.add({{"container", clean(one.title)}, {"id", one.id}, {"reason", clean(one.problem)}}, 1);
    }
  }
}

void add_scans(Page& page, const Snapshot& snapshot) {
  page.begin("scans_total", "counter", "Surveys of the whole host.");
  page.add({}, snapshot.counters.surveys);
  if (snapshot.surveyed_at != 0) {
    page.gauge("last_scan_timestamp_seconds", "When the whole host was last surveyed, since 1970.",
               number_of(double(snapshot.surveyed_at) / 1e3));
    page.gauge("scan_duration_seconds", "How long that took.", number_of(seconds_of(snapshot.counters.survey_ns)));
  }
}

void add_self(Page& page, const Snapshot& snapshot) {
  page.begin("build_info", "gauge", "The version that runs.");
  page.add({{"version", snapshot.version}}, 1);
  page.gauge("blind", "Whether the last survey of the host failed, or nothing is watched at all.",
             snapshot.is_blind ? "1" : "0");
  page.begin("verdict", "gauge", "The headline of the status page: 1 for its level.");
  for (const Level level : {Level::good, Level::warning, Level::critical}) {
    page.add({{"level", to_string(level)}}, verdict_of(snapshot).level == level ? 1 : 0);
  }
  page.begin("tracer_mode", "gauge", "By which means changes are noticed.");
  if (snapshot.tiers.has_v1) {
    page.add({{"hierarchy", "v1"}, {"tier", to_string(snapshot.tiers.v1)}}, 1);
  }
  if (snapshot.tiers.has_v2) {
    page.add({{"hierarchy", "v2"}, {"tier", to_string(snapshot.tiers.v2)}}, 1);
  }
}

}  // namespace

std::string render_metrics(const Snapshot& snapshot) {
  Page page;
  add_self(page, snapshot);
  add_scans(page, snapshot);
  add_states(page, snapshot.containers);
  add_containers(page, snapshot.containers);
  add_findings(page, *snapshot.findings);
  add_offers(page, snapshot.offers);
  if (snapshot.cpus) {
    add_cpus(page, *snapshot.cpus);
  }
  add_counters(page, snapshot.counters);
  return page.take();
}

}  // namespace hf::report
