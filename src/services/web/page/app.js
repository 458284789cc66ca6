// App: fetches snapshots, follows the event stream, and passes both to the parts of the page.
import { byId, setText } from "./labels.js";
import { showFindings, startFindings } from "./findings.js";
import { startHints } from "./hints.js";
import { lastNumber } from "./records.js";
import { showContainers, startTable } from "./table.js";
import { drawTimeline, restartTimeline, showLostRecords, showRecords, startTimeline } from "./timeline.js";
import { showAbout, showCpuManager, showCpus, showDevices, showFigures, showTiers } from "./sections.js";
import { useUnits } from "./units.js";
import { showNoContact, showVerdict } from "./verdict.js";

const kInterval = 5000;    // milliseconds between two updates
const kSoon = 400;         // from an event to the next update
const kLeastPause = 1500;  // between two updates, however many events come
const kRedraw = 60000;     // the timeline ends now, so that it moves on without events
const kBatch = 100;        // events within this time are shown together
let tag = "";
let timer = 0;
let due = Infinity;
let lastUpdate = 0;
let batch = [];
let isFetching = false;
let isLive = false;
let hasContact = true;
let latest = null;

function draw(snapshot) {
  useUnits(snapshot.devices.units);
  showVerdict(snapshot);
  showFindings(snapshot.findings);
  showRecords(snapshot.records);
  showContainers(snapshot);
  showFigures(snapshot);
  showDevices(snapshot.devices, new Map(snapshot.containers.map((it) => [it.id, it.title])));
  showCpus(snapshot);
  showCpuManager(snapshot);
  showTiers(snapshot.tiers);
  showAbout(snapshot);
}

function showContact() {
  const contact = byId("contact");
  contact.dataset.live = !hasContact ? "no" : isLive ? "yes" : "";
  setText(contact, !hasContact ? "no contact" : isLive ? "live" : "connecting");
}

async function fetchSnapshot() {
  const response = await fetch("/api/v1/snapshot", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
  if (response.status === 304) {
    return latest;
  }
  if (!response.ok) {
    throw new Error(`status ${response.status}`);
  }
  tag = response.headers.get("ETag") || "";
  return response.json();
}

async function update() {
  clearTimeout(timer);
  timer = 0;
  if (isFetching) {
    return scheduleUpdate(kSoon);
  }
  isFetching = true;
  lastUpdate = performance.now();
  try {
    const snapshot = await fetchSnapshot();
    if (snapshot !== latest || !hasContact) {
      const begin = performance.now();
      const isFirst = latest === null;
      if (!isFirst && latest.started_at !== snapshot.started_at) {
        restartTimeline();
      }
      latest = snapshot;
      draw(snapshot);
      if (isFirst) {
        performance.measure("first picture", { start: begin, end: performance.now() });
      }
    }
    hasContact = true;
  } catch {
    hasContact = false;
    tag = "";
    showNoContact();
  }
  isFetching = false;
  showContact();
  return scheduleUpdate(kInterval);
}

// An update that is due earlier is kept: otherwise a storm of events would postpone it for ever.
function scheduleUpdate(milliseconds) {
  const now = performance.now();
  const at = Math.max(now + milliseconds, lastUpdate + kLeastPause);
  if (document.hidden || (timer && due <= at)) {
    return;
  }
  clearTimeout(timer);
  due = at;
  timer = setTimeout(update, at - now);
}

function addToBatch(record) {
  batch.push(record);
  if (batch.length === 1) {
    setTimeout(() => {
      showRecords(batch, true);
      batch = [];
      scheduleUpdate(kSoon);
    }, kBatch);
  }
}

function listen() {
  const source = new EventSource(`/api/v1/events?after=${Math.max(lastNumber(), 0)}`);
  source.addEventListener("open", () => { isLive = true; showContact(); });
  source.addEventListener("message", (event) => addToBatch(JSON.parse(event.data)));
  source.addEventListener("lost", (event) => {
    showLostRecords(JSON.parse(event.data).lost);
    scheduleUpdate(kSoon);
  });
  source.addEventListener("error", () => {
    isLive = false;
    showContact();
    if (source.readyState === EventSource.CLOSED) {  // the server refused: the browser does not try again, we do
      setTimeout(listen, kInterval);
    }
  });
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    update();
  }
});
startFindings();
startTable();
startTimeline();
startHints();
setInterval(() => { if (!document.hidden) drawTimeline(); }, kRedraw);
update().then(listen);
