// Records: the changes that the page knows of, oldest first, and how one is shown.
import { clock, day, dayAndClock, duration, make, shortIds, shortList, writerTitle } from "./labels.js";

const kMost = 2000;  // kept in memory
let records = [];
let newest = -1;

export const allRecords = () => records;
export const recordsOf = (id) => records.filter((record) => record.id === id);
export const lastNumber = () => newest;

export function forgetRecords() {
  records = [];
  newest = -1;
}

// Keeps the records that are new, and returns them.
export function addRecords(more) {
  const fresh = more.filter((record) => record.number > newest);
  if (fresh.length > 0) {
    newest = Math.max(...fresh.map((record) => record.number));
    records = [...records, ...fresh].slice(-kMost);
  }
  return fresh;
}

// As the daemon counts: the shield kept it open, or a new container never had it.
export const isLoss = (record) => (record.devices?.length ?? 0) > 0 && !record.shielded && record.action !== "completed";
export const isRestored = (record) => ["healed", "mended", "hardened", "locked"].includes(record.action);
export const writerOf = (record) => record.writer?.service || record.writer?.name || "unknown";
export const titleOf = (record) => record.container || record.id || "the host";

const outcomes = {
  none: ["none", "nothing that is owed was lost"],
  observed: ["warn", "observed: the policy says not to repair"],
  healed: ["good", "given back"],
  mended: ["good", "nodes recreated"],
  shielded: ["good", "kept open by the shield, rules repaired"],
  completed: ["good", "a new container was given what its runtime left out"],
  hardened: ["good", "hardened before any loss"],
  locked: ["good", "locked: no other process can change it"],
  failed: ["bad", "not given back"],
  waits: ["warn", "waits: another process keeps undoing repairs"],
};

export function outcomeOf(record) {
  const [level, text] = outcomes[record.action] || ["warn", record.action];
  if (record.action === "shielded") {
    const repaired = record.heal_ns === undefined ? "" : ` after ${duration(record.heal_ns)}`;
    return [level, `${text}${repaired}; ${(record.held_opens || 0).toLocaleString("en")} opens would have failed`];
  }
  const after = record.loss_ns === undefined ? "" : ` after ${duration(record.loss_ns)}`;
  const work = record.heal_ns === undefined ? "" : ` (${duration(record.heal_ns)} of it our work)`;
  const error = record.error ? `: ${record.error}` : "";
  return [level, text + after + work + error];
}

function causeOf(record) {
  const programs = record.program === undefined ? ""
    : `, program ${record.program}${record.replaced === undefined ? "" : ` instead of ${record.replaced}`}`;
  return `${record.kind} by ${writerTitle(record.writer)}${programs}`;
}

const line = (name, text) => (text ? make("p", { class: name, text: shortIds(text), title: shortIds(text) === text ? null : text }) : null);

function moreOf(record) {
  const rules = [record.lost?.length ? `lost ${shortList(record.lost)}` : "",
    record.gained?.length ? `gained ${shortList(record.gained)}` : ""].filter(Boolean).join("; ");
  const parents = (record.writer?.parents || []).map((it) => `${it.name} (${it.pid})`);
  const lines = [line("cause", record.writer?.command && `command: ${record.writer.command}`),
    line("cause", parents.length ? `started by: ${parents.join(", ")}` : ""), line("cause", rules && `rules: ${rules}`),
    line("cause", record.text && `written: ${record.text}`), line("cause", record.doubt && `but ${record.doubt}`),
    line("cause", record.steps?.length ? `done: ${record.steps.join(", ")}` : "")].filter(Boolean);
  return lines.length ? make("details", {}, make("summary", { text: "more" }), ...lines) : null;
}

export function eventItem(record, withContainer = true) {
  const [level, outcome] = outcomeOf(record);
  const refused = record.devices?.length ? `${record.shielded ? "the rules refused" : "could not open"} ${shortList(record.devices)}; ` : "";
  const what = make("p", { class: "what" }, withContainer ? make("strong", { text: titleOf(record) }) : null,
    withContainer ? " " : null, make("span", { class: "state", "data-level": level, text: outcome }));
  return make("li", { "data-number": String(record.number) },
    make("time", { datetime: record.at, title: dayAndClock(record.at) }, make("span", { text: day(record.at) }), " ", make("span", { text: clock(record.at) })),
    make("div", {}, what, line("cause", refused + causeOf(record)), moreOf(record)));
}
