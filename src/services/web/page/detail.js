// Detail: an opened row of the table: the container's findings, devices, events and commands, then its facts.
import { clock, copyButton, dayAndClock, day, make, shortIds } from "./labels.js";
import { findingItem } from "./findings.js";
import { eventItem, recordsOf } from "./records.js";

const kMostEvents = 5;

function fact(name, value, full = value) {
  return value === undefined || value === "" ? null
    : make("div", {}, make("dt", { text: name }), make("dd", { text: String(value), title: full === value ? null : String(full) }));
}

function factsOf(it) {
  const shielded = it.shielded ? `yes, ${(it.held_opens || 0).toLocaleString("en")} opens held` : it.why_not_shielded ? `no: ${it.why_not_shielded}` : "no";
  return make("dl", { class: "facts" },
    fact("Name", it.title), fact("Id", shortIds(it.id), it.id),
    fact("Pod", it.pod ? `${it.pod.namespace || ""}/${it.pod.name || it.pod.uid || ""}` : ""), fact("Image", it.image),
    fact("Engine", [it.engine, it.runtime, it.runtime_version].filter(Boolean).join(", ")), fact("Process", it.pid || ""),
    fact("Since", dayAndClock(it.started_at)), fact("Cgroup", shortIds(it.cgroup || ""), it.cgroup || ""),
    fact("systemd unit", shortIds(it.systemd_unit || ""), it.systemd_unit || ""),
    fact("CPUs", (it.cpus || "") + (it.cpus_exclusive ? " (exclusive)" : "")), fact("Mode", it.mode),
    fact("Hardened in systemd", it.hardened ? "yes" : "no"), fact("Locked", it.locked ? "yes" : "no"), fact("Shielded", shielded),
    fact("Losses", it.losses), fact("Repairs", it.heals),
    fact("Last loss", it.last_loss_at ? `${day(it.last_loss_at)} ${clock(it.last_loss_at)}` : "none"),
    fact("Inside container", it.inside ? shortIds(it.inside) : "", it.inside || ""));
}

function nodeItem(node) {
  const level = node.troubled ? "bad" : node.trouble === undefined ? "warn" : "good";
  const device = node.device ? `${node.device.type} ${node.device.major}:${node.device.minor} ${node.access}` : node.access;
  const state = node.trouble === undefined ? "not checked" : node.troubled ? node.words || node.trouble : node.words || "";
  return make("li", {}, make("span", { class: "state", "data-level": level, text: node.path }),
    make("span", { class: "quiet", text: `${device}, ${[node.class, node.part].filter(Boolean).join(" ")}` }),
    state ? make("span", { text: node.trouble && node.troubled ? `${node.trouble}: ${state}` : state }) : null);
}

function nodesOf(it) {
  if (it.nodes.length === 0) {
    return [make("p", { class: "quiet", text: "No trusted evidence says that it may have a device." })];
  }
  const because = [...new Set(it.nodes.flatMap((node) => node.because || []))];
  const shown = because.map(shortIds).join("; ");
  return [make("ul", { class: "nodes", "aria-label": `Device nodes that ${it.title} is owed` }, ...it.nodes.map(nodeItem)),
    because.length ? make("p", { class: "quiet", title: because.join("; "), text: `It is owed them because of ${shown}` }) : null];
}

function commandsOf(it) {
  const argument = it.argument || it.title;
  return [["who changed its rules", `holdfast blame ${argument}`], ["gate by gate", `holdfast explain ${argument}`]].map(([what, command]) =>
    make("div", { class: "cure" }, make("code", { text: command }), copyButton(command, `that shows ${what}`)));
}

function part(title, ...children) {
  return make("section", { class: "part", "aria-label": title }, make("h4", { text: title }), ...children);
}

function eventsOf(it) {
  const records = recordsOf(it.id);
  const items = records.slice(-kMostEvents).reverse().map((record) => eventItem(record, false));
  return [...commandsOf(it),
    records.length === 0 ? make("p", { class: "quiet", text: "No change of its rules is recorded." })
      : make("ol", { class: "timeline", reversed: "" }, ...items),
    records.length > kMostEvents ? make("p", { class: "quiet", text: `and ${records.length - kMostEvents} earlier ones` }) : null];
}

export function detailOf(it, findings) {
  const own = findings.filter((finding) => finding.container === it.id);
  return make("div", { class: "detail-grid" },
    make("h3", { class: "sr-only", text: it.title }),
    own.length ? part("Findings", make("ul", { class: "findings" }, ...own.map((finding) => findingItem(finding, "h5", false)))) : null,
    part("Devices", ...nodesOf(it)), part("Events", ...eventsOf(it)), part("Facts", factsOf(it)));
}

// What decides whether an opened row has to be drawn again.
export const signatureOf = (it, findings) =>
  JSON.stringify([it, findings.filter((finding) => finding.container === it.id), recordsOf(it.id).at(-1)?.number]);
