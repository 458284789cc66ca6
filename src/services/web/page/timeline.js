// Timeline: what happened in a range of time, the newest first, with announcements for screen readers.
import { byId, count, dayAndClock, make, setText, shortList } from "./labels.js";
import { addRecords, allRecords, eventItem, forgetRecords, isLoss, outcomeOf, titleOf, writerOf } from "./records.js";
import { barsOf } from "./bars.js";

const kHour = 3600e3;
const kFirst = 20;            // entries shown at once
const kMost = 200;            // and on request
const kMostChoices = 300;     // in a list of containers or writers
const kMostName = 60;         // characters of a choice
const kAnnouncePause = 2000;  // milliseconds between two announcements
const kKept = 500;            // records in a snapshot: with as many, older ones may be missing
const ranges = [
  { name: "1 h", title: "hour", milliseconds: kHour, bins: 60, binName: "a minute" },
  { name: "24 h", title: "24 hours", milliseconds: 24 * kHour, bins: 48, binName: "half an hour" },
  { name: "7 d", title: "7 days", milliseconds: 7 * 24 * kHour, bins: 84, binName: "two hours" },
];
let range = ranges[1];
let showsMore = false;
let unannounced = [];
let timer = 0;
let lostByStream = 0;

const chosen = (id) => byId(id).value;

function selected(now) {
  const from = now - range.milliseconds;
  return allRecords().filter((record) => new Date(record.at).getTime() >= from &&
    (!chosen("timeline-container") || titleOf(record) === chosen("timeline-container")) &&
    (!chosen("timeline-writer") || writerOf(record) === chosen("timeline-writer")));
}

function fillChoices(id, all, names) {
  const select = byId(id);
  const sorted = [...new Set(names)].sort((a, b) => a.localeCompare(b)).slice(0, kMostChoices);
  const wanted = [all, ...sorted];
  if (wanted.join("\n") === select.dataset.shown) {
    return;
  }
  const before = select.value;
  select.dataset.shown = wanted.join("\n");
  select.replaceChildren(make("option", { value: "", text: all }),
    ...sorted.map((value) => make("option", { value, text: value.length > kMostName ? `${value.slice(0, kMostName)}…` : value })));
  select.value = sorted.includes(before) ? before : "";
}

function emptyText() {
  const last = allRecords().at(-1);
  return last ? `Nothing in the last ${range.title}${chosen("timeline-container") || chosen("timeline-writer") ? " for this choice" : ""}. The latest change was at ${dayAndClock(last.at)}.`
    : "Nothing has happened yet.";
}

// Entries that stay are kept, so that an opened one stays open.
function fillList(shown) {
  const list = byId("timeline-list");
  const known = new Map([...list.children].map((item) => [item.dataset.number, item]));
  const items = shown.map((record) => known.get(String(record.number)) || eventItem(record));
  items.forEach((item, index) => {
    if (list.children[index] !== item) {
      list.insertBefore(item, list.children[index] || null);
    }
  });
  while (list.children.length > items.length) {
    list.lastElementChild.remove();
  }
}

function noteText(now) {
  const oldest = allRecords()[0];
  const cut = allRecords().length >= kKept && new Date(oldest.at).getTime() > now - range.milliseconds;
  return [cut ? `This page has the latest ${allRecords().length} changes, since ${dayAndClock(oldest.at)}.` : "",
    lostByStream ? `${count(lostByStream, "change")} came too fast to be shown.` : "",
    cut || lostByStream ? "holdfast blame has all of them." : ""].filter(Boolean).join(" ");
}

export function drawTimeline() {
  const now = Date.now();
  fillChoices("timeline-container", "all", allRecords().map(titleOf));
  fillChoices("timeline-writer", "all", allRecords().map(writerOf));
  const records = selected(now);
  byId("bars").replaceChildren(...barsOf(records, range, now));
  byId("bars").hidden = allRecords().length === 0;
  const most = showsMore ? kMost : kFirst;
  fillList(records.slice(-most).reverse());
  setText(byId("timeline-empty"), emptyText());
  byId("timeline-empty").hidden = records.length > 0;
  byId("timeline-more").hidden = showsMore || records.length <= kFirst;
  setText(byId("timeline-more"), `Show ${Math.min(records.length, kMost) - kFirst} earlier changes`);
  setText(byId("timeline-note"), noteText(now));
  byId("timeline-note").hidden = byId("timeline-note").textContent === "";
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
  const fresh = addRecords(records);
  if (fresh.length === 0) {
    return;
  }
  drawTimeline();
  if (live) {
    const numbers = new Set(fresh.map((record) => String(record.number)));
    [...byId("timeline-list").children].filter((item) => numbers.has(item.dataset.number)).forEach((item) => item.classList.add("new"));
    fresh.filter(isLoss).forEach(announceSoon);
  }
}

// Another daemon has other records: without the journal of the last one it counts them from 1 again.
export function restartTimeline() {
  forgetRecords();
  lostByStream = 0;
  byId("timeline-list").replaceChildren();
  drawTimeline();
}

export function showLostRecords(lost) {
  lostByStream += lost;
  drawTimeline();
}

function chooseRange(wanted) {
  range = wanted;
  showsMore = false;
  for (const button of byId("range").children) {
    button.setAttribute("aria-pressed", String(button.textContent === range.name));
  }
  drawTimeline();
}

export function startTimeline() {
  byId("range").replaceChildren(...ranges.map((one) => {
    const button = make("button", { type: "button", "aria-pressed": String(one === range), text: one.name });
    button.addEventListener("click", () => chooseRange(one));
    return button;
  }));
  for (const id of ["timeline-container", "timeline-writer"]) {
    byId(id).addEventListener("change", drawTimeline);
  }
  drawTimeline();
  byId("timeline-more").addEventListener("click", () => {
    showsMore = true;
    drawTimeline();
    byId("timeline-list").children[kFirst]?.querySelector("summary")?.focus();
  });
}
