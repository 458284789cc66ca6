// Sections: the verdict, the figures, findings, devices and CPUs of a snapshot. Each is redrawn only if it changed.
import { byId, bytes, copyButton, count, cpusOf, dayAndClock, duration, make, setLevel, setText } from "./labels.js";

const drawn = new Map();

function ifChanged(name, value, draw) {
  const text = JSON.stringify(value);
  if (drawn.get(name) !== text) {
    drawn.set(name, text);
    draw();
  }
}

function judge(snapshot) {
  if (snapshot.blind) {
    return ["bad", "⊘", "Blind: nothing can be promised now", snapshot.why_blind || "Nothing is watched."];
  }
  const of = (...states) => snapshot.containers.filter((it) => states.includes(it.state)).length;
  const lacking = of("lost", "stale", "partial");
  const risk = of("at risk");
  const unknown = of("unknown");
  const rest = [risk ? `${risk} at risk` : "", unknown ? `${unknown} unknown` : "", `${of("ok")} fine`,
    `${of("not owed")} owed nothing`].filter(Boolean).join(", ");
  if (lacking) {
    return ["bad", "✕", `${count(lacking, "container lacks", "containers lack")} something`, rest];
  }
  if (risk || unknown) {
    const headline = risk ? `${count(risk, "container is", "containers are")} at risk` : `${count(unknown, "container")} cannot be judged`;
    return ["warn", "!", headline, `Everything works now. ${rest}`];
  }
  return ["good", "✓", "All is fine", `Every container has what it is owed. ${rest}`];
}

export function showVerdict(snapshot) {
  const [level, mark, headline, explanation] = judge(snapshot);
  setLevel(byId("verdict"), level);
  setText(byId("verdict-mark"), mark);
  setText(byId("headline"), headline);
  setText(byId("verdict-text"), explanation);
  setText(byId("host"), snapshot.host_name || "");
  const title = `${level === "good" ? "✓" : level === "warn" ? "!" : "✕"} ${snapshot.host_name || "holdfast"} · holdfast`;
  if (document.title !== title) {
    document.title = title;
  }
}

export function showNoContact() {
  setLevel(byId("verdict"), "bad");
  setText(byId("verdict-mark"), "⊘");
  setText(byId("headline"), "No contact with holdfastd");
  setText(byId("verdict-text"), "What is shown below may be old. Trying again.");
}

function mean(histogram) {
  return histogram?.count ? duration(histogram.sum_ns / histogram.count) : "–";
}

export function showFigures(snapshot) {
  const sum = (list) => list.reduce((total, entry) => total + entry.count, 0);
  const counters = snapshot.counters;
  const figures = [
    ["containers", snapshot.containers.length],
    ["owed devices", snapshot.containers.filter((it) => it.nodes.length > 0).length],
    ["losses", sum(counters.losses)],
    ["repairs", sum(counters.heals)],
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

const severityLevels = { critical: "bad", warning: "warn", note: "none" };

function findingOf(finding) {
  const level = severityLevels[finding.severity] || "warn";
  const cures = (finding.cure || []).map((text) => make("div", { class: "cure" }, make("code", { text }), copyButton(text, `for ${finding.code}`)));
  return make("li", { "data-level": level },
    make("h3", {}, make("span", { class: "state", "data-level": level, text: finding.severity }),
      make("span", { text: finding.code }), make("span", { text: `${finding.subject}: ${finding.verdict}` })),
    finding.evidence?.length ? make("ul", { class: "evidence" }, ...finding.evidence.map((text) => make("li", { text }))) : null,
    ...cures);
}

export function showFindings(findings) {
  ifChanged("findings", findings, () => {
    const rank = ["critical", "warning", "note"];
    const sorted = [...findings].sort((a, b) => rank.indexOf(a.severity) - rank.indexOf(b.severity));
    const kMost = 200;
    const items = sorted.slice(0, kMost).map(findingOf);
    if (sorted.length > kMost) {
      items.push(make("li", { text: `and ${sorted.length - kMost} more: holdfast doctor shows all` }));
    }
    byId("findings-list").replaceChildren(...items);
    byId("findings-empty").hidden = findings.length > 0;
    byId("findings-title").textContent = findings.length ? `Findings (${findings.length})` : "Findings";
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
    make("th", { scope: "row", text: `${unit.class} ${unit.name}${unit.mig?.length ? ` (${unit.mig.length} MIG)` : ""}` }),
    make("td", { text: unit.model || "–" }), make("td", { text: unit.numa === undefined ? "–" : String(unit.numa) }),
    make("td", { text: unit.pci || "–" }), make("td", { text: bytes(unit.memory_bytes) }),
    make("td", {}, make("span", { class: "state", "data-level": level, text: health })),
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

// Containers with the same CPUs share one line, so that 1,000 containers do not fill 1,000 lines.
function groupsOf(containers) {
  const groups = new Map();
  for (const it of containers.filter((container) => container.cpus)) {
    const key = `${it.cpus_exclusive ? "exclusive" : "shared"} ${it.cpus}`;
    const group = groups.get(key) || { cpus: it.cpus, exclusive: it.cpus_exclusive, titles: [] };
    group.titles.push(it.title);
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
  const groups = groupsOf(snapshot.containers);
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
