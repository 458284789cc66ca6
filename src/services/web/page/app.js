// App: asks for the picture, listens to the stream, and hands both to the parts of the page.
import { byId, setText } from "./words.js";
import { showContainers, startTable } from "./table.js";
import { lastNumber, showHole, showRecords } from "./timeline.js";
import { showAbout, showCpus, showDevices, showFigures, showFindings, showNoContact, showTiers, showVerdict } from "./sections.js";

const kEvery = 5000;  // milliseconds between two looks
const kSoon = 400;    // after an event
const kRest = 1500;   // between two looks, however much happens
const kGather = 100;  // events that come together are shown together
let tag = "";
let timer = 0;
let due = Infinity;
let lastLook = 0;
let gathered = [];
let asking = false;
let isLive = false;
let hasContact = true;
let latest = null;

function draw(snapshot) {
  showVerdict(snapshot);
  showFigures(snapshot);
  showTiers(snapshot.tiers);
  showContainers(snapshot.containers);
  showRecords(snapshot.records);
  showFindings(snapshot.findings);
  showDevices(snapshot.devices, new Map(snapshot.containers.map((it) => [it.id, it.title])));
  showCpus(snapshot);
  showAbout(snapshot);
}

function showContact() {
  const contact = byId("contact");
  contact.dataset.live = !hasContact ? "no" : isLive ? "yes" : "";
  setText(contact, !hasContact ? "no contact" : isLive ? "live" : "connecting");
}

async function ask() {
  const answer = await fetch("/api/v1/snapshot", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
  if (answer.status === 304) {
    return latest;
  }
  if (!answer.ok) {
    throw new Error(`status ${answer.status}`);
  }
  tag = answer.headers.get("ETag") || "";
  return answer.json();
}

async function look() {
  if (asking) {
    return lookIn(kSoon);
  }
  asking = true;
  timer = 0;
  lastLook = performance.now();
  try {
    const snapshot = await ask();
    if (snapshot !== latest || !hasContact) {
      const begin = performance.now();
      const isFirst = latest === null;
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
  asking = false;
  showContact();
  return lookIn(kEvery);
}

// A look that is due earlier stays: in a storm of events none would ever come.
function lookIn(milliseconds) {
  const now = performance.now();
  const at = Math.max(now + milliseconds, lastLook + kRest);
  if (document.hidden || (timer && due <= at)) {
    return;
  }
  clearTimeout(timer);
  due = at;
  timer = setTimeout(look, at - now);
}

function gather(record) {
  gathered.push(record);
  if (gathered.length === 1) {
    setTimeout(() => {
      showRecords(gathered, true);
      gathered = [];
      lookIn(kSoon);
    }, kGather);
  }
}

function listen() {
  const source = new EventSource(`/api/v1/events?after=${Math.max(lastNumber(), 0)}`);
  source.addEventListener("open", () => { isLive = true; showContact(); });
  source.addEventListener("message", (event) => gather(JSON.parse(event.data)));
  source.addEventListener("lost", (event) => {
    showHole(JSON.parse(event.data).lost);
    lookIn(kSoon);
  });
  source.addEventListener("error", () => {
    isLive = false;
    showContact();
    if (source.readyState === EventSource.CLOSED) {  // refused, not broken: the browser gives up, we do not
      setTimeout(listen, kEvery);
    }
  });
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    look();
  }
});
startTable();
look().then(listen);
