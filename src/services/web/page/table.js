// Table: the containers. A row is created once; afterwards only the cells that changed are written.
import { byId, codeLink, count, ifChanged, make, setLevel, setText, stateLevels, stateRank } from "./labels.js";
import { detailOf, signatureOf } from "./detail.js";
import { severityLevels } from "./findings.js";
import { devicesOf } from "./units.js";
import { moveWithKeys, rove, roving } from "./roving.js";

const kFirst = 50;  // rows shown at once: those in trouble come first
const rows = new Map();  // by id: {container, row, cells, button, title, detail, text}
const open = new Set();  // ids
let findings = [];       // of all containers
let flagged = new Set();   // ids with a finding that is more than a note
let unserved = new Set();  // ids that run without the devices they ask for, and may seem to work
let sort = { column: "state", down: false };
let order = "";
let showsAll = false;
let showsOthers = false;

const byTitle = (a, b) => a.title.localeCompare(b.title) || a.id.localeCompare(b.id);
// docker keeps its containers in a namespace of containerd that its users do not know.
const containerdNamespaceOf = (it) => (it.engine === "docker" && it.namespace === "moby" ? "docker" : it.namespace);
const namespaceOf = (it) => it.pod?.namespace || containerdNamespaceOf(it) || "";
const isProblem = (it) => !["ok", "not owed"].includes(it.state) || flagged.has(it.id) || unserved.has(it.id);
const asksForNothing = (it) => it.state === "not owed" && !(it.findings?.length) && it.nodes.length === 0;
const modeOf = (it) => [it.mode || "–", it.hardened ? "hardened" : "", it.locked ? "locked" : "", it.shielded ? "shielded" : ""].filter(Boolean).join(", ");
const rankOf = (it) => stateRank.indexOf(it.state) - (flagged.has(it.id) && it.state === "ok" ? 0.5 : 0);
const deviceRank = (it) => Math.min(4, ...devicesOf(it).map((one) => ["bad", "warn", "good", "none"].indexOf(one.level)));

const columns = [
  { key: "title", name: "Container", compare: byTitle },
  { key: "state", name: "State", compare: (a, b) => rankOf(a) - rankOf(b) },
  { key: "devices", name: "Devices", compare: (a, b) => deviceRank(a) - deviceRank(b) },
  { key: "findings", name: "Findings", compare: (a, b) => (b.findings?.length || 0) - (a.findings?.length || 0) },
  { key: "losses", name: "Losses", number: true, text: (it) => it.losses.toLocaleString("en") },
  { key: "heals", name: "Repairs", number: true, text: (it) => it.heals.toLocaleString("en") },
  { key: "namespace", name: "Namespace", text: namespaceOf },
  { key: "engine", name: "Engine", text: (it) => it.engine || "–" },
  { key: "mode", name: "Mode", text: modeOf },
  { key: "cpus", name: "CPUs", text: (it) => (it.cpus || "–") + (it.cpus_exclusive ? " exclusive" : "") },
];

function compareBy(column) {
  return column.compare || (column.number ? (a, b) => a[column.key] - b[column.key] : (a, b) => column.text(a).localeCompare(column.text(b)));
}

function drawHead() {
  byId("table-head").replaceChildren(...columns.map((column) => {
    const button = make("button", { class: "sort", type: "button", text: column.name });
    button.addEventListener("click", () => sortBy(column.key));
    return make("th", { scope: "col", class: column.number ? "number" : "", "data-key": column.key }, button);
  }));
  markSort();
}

function markSort() {
  for (const cell of byId("table-head").children) {
    if (cell.dataset.key === sort.column) {
      cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    } else {
      cell.removeAttribute("aria-sort");
    }
  }
}

function sortBy(key) {
  sort = { column: key, down: sort.column === key ? !sort.down : false };
  markSort();
  arrange();
}

function makeRow(it) {
  const title = make("span");
  const button = make("button", { class: "open", type: "button", "aria-expanded": String(open.has(it.id)), tabindex: "-1" }, title);
  button.addEventListener("click", () => toggle(it.id));
  button.addEventListener("focus", () => rove(button));
  const row = make("tr", { class: "row" }, make("th", { scope: "row" }, button));
  const cells = columns.slice(1).map((column) => {
    const inside = make("span", { class: column.key === "state" ? "state" : column.number || column.key === "devices" ? "" : "clip" });
    row.append(make("td", { class: column.number ? "number" : `col-${column.key}` }, inside));
    return { column, inside, shown: "" };
  });
  row.addEventListener("click", (event) => {
    if (!event.target.closest("button, a") && !String(getSelection())) {
      toggle(it.id);
    }
  });
  return { container: it, row, cells, button, title, detail: null, text: "" };
}

function fillDevices(cell, it) {
  const devices = devicesOf(it);
  const shown = JSON.stringify(devices);
  if (cell.shown !== shown) {
    cell.shown = shown;
    cell.inside.replaceChildren(...(devices.length === 0 ? [make("span", { class: "quiet", text: "none" })]
      : devices.map((one) => make("span", { class: "state chip", "data-level": one.level, text: one.text }))));
  }
}

function fillCodes(cell, it) {
  const codes = [...new Set(it.findings || [])];
  if (cell.shown !== codes.join(" ")) {
    cell.shown = codes.join(" ");
    cell.inside.replaceChildren(...codes.flatMap((code, index) => [index ? " " : "", codeLink(code)]));
  }
}

function fillCell(cell, it) {
  const { column, inside } = cell;
  if (column.key === "state") {
    setLevel(inside, flagged.has(it.id) && it.state === "ok" ? "warn" : stateLevels[it.state] || "warn");
    setText(inside, it.state);
  } else if (column.key === "devices") {
    fillDevices(cell, it);
  } else if (column.key === "findings") {
    fillCodes(cell, it);
  } else {
    setText(inside, column.text(it));
    inside.title = column.number ? "" : column.text(it);
  }
}

function fillRow(entry, it) {
  entry.container = it;
  setText(entry.title, it.title);
  entry.title.title = it.title;
  entry.cells.forEach((cell) => fillCell(cell, it));
  entry.text = [it.title, it.id, namespaceOf(it), it.engine, it.state, it.image, modeOf(it), ...(it.findings || []),
    ...devicesOf(it).map((one) => one.text), ...it.nodes.map((node) => node.path)].join("\n").toLowerCase();
  if (open.has(it.id)) {
    showDetail(entry);
  }
}

function showDetail(entry) {
  const shown = signatureOf(entry.container, findings);
  if (entry.detail?.shown === shown) {
    return;
  }
  const row = entry.detail?.row ?? make("tr", { class: "detail" });
  row.replaceChildren(make("td", { colspan: String(columns.length) }, detailOf(entry.container, findings)));
  entry.detail = { row, shown };
  if (entry.row.nextSibling !== row) {
    entry.row.after(row);
  }
  row.hidden = entry.row.hidden;
}

function toggle(id) {
  const entry = rows.get(id);
  const opens = !open.has(id);
  entry.button.setAttribute("aria-expanded", String(opens));
  if (opens) {
    open.add(id);
    showDetail(entry);
  } else {
    open.delete(id);
    entry.detail?.row.remove();
    entry.detail = null;
  }
}

// Sorts the rows, and changes the document only if their order has changed.
function arrange() {
  const compare = compareBy(columns.find((it) => it.key === sort.column));
  const sign = sort.down ? -1 : 1;
  const sorted = [...rows.values()].sort((a, b) => sign * compare(a.container, b.container) || byTitle(a.container, b.container));
  const wanted = sorted.map((entry) => entry.container.id).join("\n");
  if (wanted !== order) {
    order = wanted;
    const focused = document.activeElement;
    const all = document.createDocumentFragment();
    for (const entry of sorted) {
      all.append(entry.row);
      if (entry.detail) {
        all.append(entry.detail.row);
      }
    }
    byId("table-body").replaceChildren(all);
    if (focused && focused !== document.activeElement && document.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
  }
  filter(sorted);
}

function showRow(entry, fits) {
  if (entry.row.hidden === fits) {
    entry.row.hidden = !fits;
  }
  if (entry.detail) {
    entry.detail.row.hidden = !fits;
  }
}

function showCounts(fitting, others, shown) {
  setText(byId("shown"), fitting + others === rows.size ? count(rows.size, "container") : `${fitting + others} of ${count(rows.size, "container")}`);
  byId("nothing").hidden = fitting + others > 0 || rows.size === 0;
  byId("show-more").hidden = shown >= fitting;
  setText(byId("show-more"), `Show ${fitting - shown} more`);
  byId("show-others").hidden = others === 0;
  byId("show-others").setAttribute("aria-expanded", String(showsOthers));
  setText(byId("show-others"), `${count(others, "container asks", "containers ask")} for no device`);
}

// A search looks at every container. Without one, those that ask for nothing are one line.
function filter(sorted = [...byId("table-body").querySelectorAll("tr.row")].map((row) => entryOf(row))) {
  const terms = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyProblems = byId("only-problems").checked;
  let fitting = 0;
  let others = 0;
  let shown = 0;
  for (const entry of sorted) {
    const it = entry.container;
    const fits = terms.every((term) => entry.text.includes(term)) && (!onlyProblems || isProblem(it));
    const isOther = fits && terms.length === 0 && asksForNothing(it);
    others += isOther ? 1 : 0;
    fitting += fits && !isOther ? 1 : 0;
    const isShown = isOther ? showsOthers : fits && (showsAll || fitting <= kFirst);
    shown += isShown && !isOther ? 1 : 0;
    showRow(entry, isShown);
  }
  showCounts(fitting, others, shown);
  if (!roving() || roving().closest("tr").hidden || !document.contains(roving())) {
    rove(byId("table-body").querySelector("tr.row:not([hidden]) .open"));
  }
}

const entries = new WeakMap();  // by row
const entryOf = (row) => entries.get(row);

function removeGone(containers) {
  const here = new Set(containers.map((it) => it.id));
  for (const [id, entry] of rows) {
    if (!here.has(id)) {
      entry.row.remove();
      entry.detail?.row.remove();
      rows.delete(id);
      open.delete(id);
    }
  }
}

export function showContainers(snapshot) {
  findings = snapshot.findings;
  const idsWith = (fits) => new Set(findings.filter(fits).map((finding) => finding.container));
  flagged = idsWith((finding) => severityLevels[finding.severity] !== "none");
  unserved = idsWith((finding) => finding.code === "HF-125");
  ifChanged("table head", columns.length, drawHead);
  byId("table").classList.toggle("no-findings", snapshot.containers.every((it) => !it.findings?.length));
  removeGone(snapshot.containers);
  for (const it of snapshot.containers) {
    if (!rows.has(it.id)) {
      const entry = makeRow(it);
      rows.set(it.id, entry);
      entries.set(entry.row, entry);
    }
    fillRow(rows.get(it.id), it);
  }
  arrange();
}

function focusFilterAtSlash(event) {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    byId("filter").focus();
  }
}

export function startTable() {
  byId("filter").addEventListener("input", () => filter());
  byId("only-problems").addEventListener("change", () => filter());
  byId("show-more").addEventListener("click", () => { showsAll = true; filter(); });
  byId("show-others").addEventListener("click", () => { showsOthers = !showsOthers; filter(); });
  byId("table-body").addEventListener("keydown", moveWithKeys);
  document.addEventListener("keydown", focusFilterAtSlash);
  byId("filter").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.target.value = "";
      filter();
    }
  });
}
