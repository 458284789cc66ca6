// Sections: the figures, the devices and the CPUs of a snapshot, and how changes are detected.
import { byId, bytes, count, cpusOf, dayAndClock, duration, ifChanged, make, setText } from "./labels.js";

function mean(histogram) {
  return histogram?.count ? duration(histogram.sum_ns / histogram.count) : "–";
}

export function showFigures(snapshot) {
  const sum = (list) => list.reduce((total, entry) => total + entry.count, 0);
  const counters = snapshot.counters;
  const losses = sum(counters.losses);
  const repairs = sum(counters.heals.filter((one) => one.result === "ok" && !["none", "observed", "waits"].includes(one.action)));
  const figures = [
    [losses === 1 ? "loss" : "losses", losses],
    [repairs === 1 ? "repair" : "repairs", repairs],
    ["mean loss", mean(counters.loss_duration)],
    ["mean repair", mean(counters.heal_duration)],
    ["events received", Object.values(counters.events || {}).reduce((total, number) => total + number, 0)],
  ];
  ifChanged("figures", figures, () => byId("figures").replaceChildren(...figures.map(([name, value]) =>
    make("div", {}, make("dt", { text: name }), make("dd", { text: typeof value === "number" ? value.toLocaleString("en") : value })))));
}

const tierTexts = {
  tracepoints: "by tracing bpf(2): at once, with the writer",
  files: "by watching the devices hierarchy: at once, with the writer",
  polling: "by polling: later, without the writer",
};

export function showTiers(tiers) {
  ifChanged("tiers", tiers, () => {
    const known = ["v2", "v1"].filter((hierarchy) => tiers[hierarchy]);
    byId("tiers").textContent = known.length === 0 ? "Not at all."
      : known.map((it) => `cgroup ${it}: ${tierTexts[tiers[it]] || tiers[it]} (${tiers[it]})`).join(". ") + ".";
    byId("tiers-more").hidden = !tiers.why?.length;
    byId("tiers-why").replaceChildren(...(tiers.why || []).map((text) => make("li", { text })));
  });
}

function titles(ids, names, most = 4) {
  const shown = ids.slice(0, most).map((id) => names.get(id) || id);
  return ids.length > most ? `${shown.join(", ")} and ${ids.length - most} more` : shown.join(", ") || "–";
}

// What holdfast-kube says of a device, in place of what the inventory knows, where it keeps the device from kubelet.
function healthOf(unit, offers) {
  const offered = offers.flatMap((offer) => offer.devices).find((device) => [unit.uuid, unit.name].includes(device.unit) && device.problem);
  if (offered) {
    return { level: "bad", text: `kept from kubelet: ${offered.problem}` };
  }
  const level = { good: "good", bad: "bad" }[unit.health] || "none";
  return { level, text: unit.health + (unit.health_words ? `: ${unit.health_words}` : "") };
}

function offerText(offer) {
  const healthy = offer.devices.filter((device) => !device.problem).length;
  return `kubelet is offered ${offer.resource}: ${healthy} of ${offer.devices.length} healthy, ${offer.allocated} allocations, ` +
    `${offer.refused} refused${offer.connected ? "" : "; it does not read the list"}`;
}

function unitRow(unit, names, offers) {
  const { level, text: health } = healthOf(unit, offers);
  return make("tr", {},
    make("th", { scope: "row", text: `${unit.class}${unit.name === unit.class ? "" : ` ${unit.name}`}${unit.mig?.length ? ` (${unit.mig.length} MIG)` : ""}` }),
    make("td", {}, make("span", { class: "state", "data-level": level, text: health })),
    make("td", { text: unit.model || "–" }), make("td", { class: "number", text: unit.numa === undefined ? "–" : String(unit.numa) }),
    make("td", { text: unit.pci || "–" }), make("td", { class: "number", text: bytes(unit.memory_bytes) }),
    make("td", { text: titles(unit.containers || [], names) }));
}

function driverText(driver) {
  return [`${driver.class}: driver ${driver.version || "not loaded"}`,
    driver.library_version ? `library ${driver.library_version}` : "", driver.cuda_version ? `CUDA ${driver.cuda_version}` : "",
    driver.error || "", driver.meaning || ""].filter(Boolean).join(", ");
}

export function showDevices(devices, names) {
  ifChanged("devices", devices, () => {
    byId("drivers").textContent = [...devices.drivers.map(driverText), ...devices.offers.map(offerText)].join(". ");
    byId("drivers").hidden = devices.drivers.length + devices.offers.length === 0;
    byId("units").hidden = devices.units.length === 0;
    byId("devices-empty").hidden = devices.units.length > 0;
    byId("units-body").replaceChildren(...devices.units.map((unit) => unitRow(unit, names, devices.offers)));
  });
}

function placeOf(one) {
  const nodes = one?.numa?.length ? [`NUMA node ${one.numa.join(", ")}`] : [];
  const distance = one?.distance === undefined ? [] : [`distance ${one.distance} to its devices`];
  return nodes.length + distance.length > 0 ? ` (${[...nodes, ...distance].join(", ")})` : "";
}

// Containers with the same CPUs share one line, so that 1,000 containers do not fill 1,000 lines.
function groupsOf(snapshot) {
  const groups = new Map();
  const placed = new Map((snapshot.cpus?.containers ?? []).map((one) => [one.id, one]));
  for (const it of snapshot.containers.filter((container) => container.cpus)) {
    const key = `${it.cpus_exclusive ? "exclusive" : "shared"} ${it.cpus}`;
    const group = groups.get(key) || { cpus: it.cpus, exclusive: it.cpus_exclusive, titles: [] };
    group.titles.push(it.title + (it.cpus_exclusive ? placeOf(placed.get(it.id)) : ""));
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => Number(b.exclusive) - Number(a.exclusive) || (cpusOf(a.cpus)[0] ?? 0) - (cpusOf(b.cpus)[0] ?? 0));
}

function cpuMap(online, groups) {
  const owners = new Map();
  for (const group of groups.filter((one) => one.exclusive)) {
    cpusOf(group.cpus).forEach((cpu) => owners.set(cpu, (owners.get(cpu) || 0) + group.titles.length));
  }
  return online.map((cpu) => {
    const holders = owners.get(cpu) || 0;
    return make("span", { class: holders > 1 ? "cpu contested" : holders === 1 ? "cpu taken" : "cpu", text: String(cpu) });
  });
}

function cpuRow(group) {
  const kMost = 6;
  const rest = group.titles.length - kMost;
  return make("tr", {}, make("th", { scope: "row", text: group.cpus }), make("td", { text: group.exclusive ? "exclusive" : "shared" }),
    make("td", { text: group.titles.slice(0, kMost).join(", ") + (rest > 0 ? ` and ${rest} more` : "") }));
}

export function showCpus(snapshot) {
  const groups = groupsOf(snapshot);
  ifChanged("cpus", [snapshot.online_cpus, groups], () => {
    const online = cpusOf(snapshot.online_cpus);
    const exclusive = new Set(groups.filter((group) => group.exclusive).flatMap((group) => cpusOf(group.cpus)));
    byId("cpus-text").textContent = `${count(online.length, "CPU")} online (${snapshot.online_cpus || "–"}), ${exclusive.size} of them a container's own.`;
    byId("cpus-map").replaceChildren(...cpuMap(online, groups));
    byId("cpus-table").hidden = groups.length === 0;
    byId("cpus-body").replaceChildren(...groups.slice(0, 200).map(cpuRow));
  });
}

// What the CPU manager says, where it is on.
export function showCpuManager(snapshot) {
  ifChanged("cpu-manager", snapshot.cpus ?? null, () => {
    const cpus = snapshot.cpus;
    const problems = cpus ? cpus.containers.filter((one) => one.problem).map((one) => `${one.container}: ${one.problem}`) : [];
    byId("cpus-manager").hidden = !cpus;
    byId("cpus-manager").textContent = !cpus ? "" : cpus.managed
      ? [`Shared pool ${cpus.pool || "–"}, reserved for the system ${cpus.reserved || "–"}`, ...problems.slice(0, 20)].join(". ") + "."
      : `CPUs are not managed: ${cpus.problem}`;
    byId("cpus-picture").hidden = !cpus || !cpus.managed;
    byId("cpus-map").hidden = Boolean(cpus?.managed);  // the picture shows more
    if (cpus && cpus.managed) {
      byId("cpus-picture").src = `/cpus.svg?at=${encodeURIComponent(snapshot.at)}`;
    }
  });
}

export function showAbout(snapshot) {
  setText(byId("about"), [`holdfast ${snapshot.program_version || ""}`, `kernel ${snapshot.kernel || "–"}`, `cgroup ${snapshot.layout || "–"}`,
    snapshot.started_at ? `running since ${dayAndClock(snapshot.started_at)}` : "",
    snapshot.surveyed_at ? `host last surveyed ${dayAndClock(snapshot.surveyed_at)}` : ""].filter(Boolean).join(" · "));
}
