// Timeline: losses and repairs as they come, the newest first, with announcements for screen readers.
import { byId, clock, count, dayAndClock, duration, make, setText, shortList, writerTitle } from "./labels.js";

const kMost = 200;  // entries shown
const kAnnouncePause = 2000;  // milliseconds between two announcements
let newest = -1;
let unannounced = [];
let timer = 0;

export const lastNumber = () => newest;

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

function outcomeOf(record) {
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

function line(name, text) {
  return text ? make("p", { class: name, text }) : null;
}

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

function entryOf(record) {
  const [level, outcome] = outcomeOf(record);
  const lost = record.devices?.length ? `could not open ${shortList(record.devices)}` : "";
  const what = make("p", { class: "what" }, make("strong", { text: record.container || record.id || "the host" }),
    " ", make("span", { class: "state", "data-level": level, text: outcome }));
  return make("li", { "data-number": String(record.number) },
    make("time", { datetime: record.at, title: dayAndClock(record.at), text: clock(record.at) }),
    make("div", {}, what, line("lost-devices", lost), line("cause", causeOf(record)), moreOf(record)));
}

function add(elements) {
  const list = byId("timeline-list");
  list.prepend(...elements);
  while (list.children.length > kMost) {
    list.lastElementChild.remove();
  }
  byId("timeline-empty").hidden = list.children.length > 0;
}

function announceSoon(record) {
  unannounced.push(record);
  timer ||= setTimeout(() => {
    const last = unannounced.at(-1);
    const more = unannounced.length > 1 ? `${count(unannounced.length, "loss", "losses")}, the latest: ` : "";
    setText(byId("announce"), `${more}${last.container} lost ${shortList(last.devices, 2)}, ${outcomeOf(last)[1]}`);
    unannounced = [];
    timer = 0;
  }, kAnnouncePause);
}

export function showRecords(records, live = false) {
  const fresh = records.filter((record) => record.number > newest);
  if (fresh.length === 0) {
    return;
  }
  newest = Math.max(...fresh.map((record) => record.number));
  const elements = fresh.slice(-kMost).map(entryOf).reverse();
  if (live) {
    elements.forEach((element) => element.classList.add("new"));
    fresh.filter((record) => record.devices?.length).forEach(announceSoon);
  }
  add(elements);
}

export function showLostRecords(lost) {
  add([make("li", {}, make("time", { text: clock(new Date().toISOString()) }),
    make("p", { class: "quiet", text: `${count(lost, "record")} came too fast to be shown here; holdfast blame has them.` }))]);
}
