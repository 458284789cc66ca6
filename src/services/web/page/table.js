// Table: containers by device classes. A row is created once; afterwards only the cells that changed are written.
import { byId, clock, count, dayAndClock, make, setLevel, setText, stateLevels, stateRank } from "./labels.js";

const rows = new Map();  // by id: {container, row, cells, button, title, detail, text}
const open = new Set();  // ids
let classes = [];
let sort = { column: "state", down: false };
let order = "";
let roving = null;  // the only button of the table that Tab reaches; arrow keys move it

const byTitle = (a, b) => a.title.localeCompare(b.title) || a.id.localeCompare(b.id);
const namespaceOf = (it) => it.pod?.namespace || it.namespace || "";
const isProblem = (it) => !["ok", "not owed"].includes(it.state);

function fixedColumns() {
  return [
    { key: "title", name: "Container", compare: byTitle },
    { key: "state", name: "State", compare: (a, b) => stateRank.indexOf(a.state) - stateRank.indexOf(b.state) },
  ];
}

function otherColumns() {
  return [
    { key: "losses", name: "Losses", number: true, text: (it) => String(it.losses) },
    { key: "heals", name: "Repairs", number: true, text: (it) => String(it.heals) },
    { key: "namespace", name: "Namespace", clip: true, text: namespaceOf },
    { key: "engine", name: "Engine", clip: true, text: (it) => it.engine || "–" },
    { key: "mode", name: "Mode", clip: true, text: modeOf },
    { key: "cpus", name: "CPUs", clip: true, text: (it) => (it.cpus || "–") + (it.cpus_exclusive ? " exclusive" : "") },
  ];
}

function columns() {
  return [
    ...fixedColumns(),
    ...classes.map((name) => ({ key: `class ${name}`, name, class: name })),
    ...otherColumns(),
  ];
}

const modeOf = (it) => [it.mode || "–", it.hardened ? "hardened" : "", it.locked ? "locked" : "", it.shielded ? "shielded" : ""].filter(Boolean).join(", ");
const classOf = (node) => node.class || "other";

// The state of a container's devices of one class: [level, text].
function classState(it, name) {
  const nodes = it.nodes.filter((node) => classOf(node) === name);
  if (nodes.length === 0) {
    return ["none", "not owed"];
  }
  const troubled = nodes.filter((node) => node.troubled).length;
  if (troubled > 0) {
    return ["bad", `${troubled} of ${nodes.length} lost`];
  }
  if (nodes.some((node) => node.trouble === undefined)) {
    return ["warn", "not checked"];
  }
  return it.state === "at risk" ? ["warn", `${nodes.length} at risk`] : ["good", `${nodes.length} ok`];
}

function compareBy(column) {
  if (column.compare) {
    return column.compare;
  }
  if (column.class) {
    const rank = { bad: 0, warn: 1, good: 2, none: 3 };
    return (a, b) => rank[classState(a, column.class)[0]] - rank[classState(b, column.class)[0]];
  }
  return column.number ? (a, b) => a[column.key] - b[column.key] : (a, b) => column.text(a).localeCompare(column.text(b));
}

const cellClass = (column) => (column.clip ? "wide clip" : column.number ? "number" : "");

function drawHead() {
  const head = byId("table-head");
  head.replaceChildren(...columns().map((column) => {
    const button = make("button", { class: "sort", type: "button", text: column.name });
    button.addEventListener("click", () => sortBy(column.key));
    const cell = make("th", { scope: "col", class: cellClass(column), "data-key": column.key }, button);
    return cell;
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
  const button = make("button", { class: "open", type: "button", "aria-expanded": "false", tabindex: "-1" }, title);
  button.addEventListener("click", () => toggle(it.id));
  button.addEventListener("focus", () => rove(button));
  const row = make("tr", { class: "row" }, make("th", { scope: "row" }, button));
  const cells = columns().slice(1).map((column) => {
    const inside = make("span", { class: column.class || column.key === "state" ? "state" : "" });
    row.append(make("td", { class: cellClass(column) }, inside));
    return { column, inside };
  });
  return { container: it, row, cells, button, title, detail: null, text: "" };
}

function fillRow(entry, it) {
  entry.container = it;
  setText(entry.title, it.title);
  for (const { column, inside } of entry.cells) {
    if (column.key === "state") {
      setLevel(inside, stateLevels[it.state] || "warn");
      setText(inside, it.state);
    } else if (column.class) {
      const [level, text] = classState(it, column.class);
      setLevel(inside, level);
      setText(inside, text);
    } else {
      setText(inside, column.text(it));
    }
  }
  entry.text = [it.title, it.id, namespaceOf(it), it.engine, it.state, it.image, modeOf(it),
    ...it.nodes.map((node) => node.path)].join("\n").toLowerCase();
  if (open.has(it.id)) {
    showDetail(entry);
  }
}

function fact(name, value) {
  return value === undefined || value === "" ? null
    : make("div", {}, make("dt", { text: name }), make("dd", { text: String(value) }));
}

function factsOf(it) {
  return make("dl", { class: "facts" },
    fact("Id", it.id), fact("Pod", it.pod ? `${it.pod.namespace || ""}/${it.pod.name || it.pod.uid || ""}` : ""),
    fact("Image", it.image), fact("Engine", [it.engine, it.runtime, it.runtime_version].filter(Boolean).join(", ")),
    fact("Process", it.pid || ""), fact("Since", dayAndClock(it.started_at)), fact("Cgroup", it.cgroup),
    fact("systemd unit", it.systemd_unit), fact("CPUs", (it.cpus || "") + (it.cpus_exclusive ? " (exclusive)" : "")),
    fact("Mode", it.mode), fact("Hardened in systemd", it.hardened ? "yes" : "no"), fact("Locked", it.locked ? "yes" : "no"),
    fact("Shielded", it.shielded ? `yes, ${(it.held_opens || 0).toLocaleString("en")} opens held` : it.why_not_shielded ? `no: ${it.why_not_shielded}` : "no"),
    fact("Losses", it.losses), fact("Repairs", it.heals),
    fact("Last loss", it.last_loss_at ? `${dayAndClock(it.last_loss_at)} (${clock(it.last_loss_at)})` : "none"),
    fact("Findings", (it.findings || []).join(", ")), fact("Inside container", it.inside));
}

function nodeRow(node) {
  const level = node.troubled ? "bad" : node.trouble === undefined ? "warn" : "good";
  const device = node.device ? `${node.device.type} ${node.device.major}:${node.device.minor}` : "–";
  return make("tr", {},
    make("th", { scope: "row", text: node.path }), make("td", { text: `${node.class || "other"}, ${node.part}` }),
    make("td", { text: `${device} ${node.access}` }),
    make("td", {}, make("span", { class: "state", "data-level": level, text: node.trouble || "not checked" })),
    make("td", { text: node.words || "" }), make("td", { text: (node.because || []).join("; ") }));
}

function nodesOf(it) {
  if (it.nodes.length === 0) {
    return make("p", { class: "quiet", text: "No trusted evidence says that it may have a device." });
  }
  const head = ["Node", "Class", "Numbers", "State", "Obstacle", "Because"];
  return make("div", { class: "scroll" }, make("table", { class: "inner" },
    make("caption", { class: "sr-only", text: `Nodes that ${it.title} is owed` }),
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col", text })))),
    make("tbody", {}, ...it.nodes.map(nodeRow))));
}

function showDetail(entry) {
  const shown = JSON.stringify(entry.container);
  if (entry.detail?.shown === shown) {
    return;
  }
  const row = entry.detail?.row ?? make("tr", { class: "detail" });
  const cell = make("td", { colspan: String(entry.cells.length + 1) },
    make("div", { class: "detail-grid" }, factsOf(entry.container), nodesOf(entry.container)));
  row.replaceChildren(cell);
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
  const column = columns().find((it) => it.key === sort.column) || columns()[1];
  const compare = compareBy(column);
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
  filter();
}

export function filter() {
  const terms = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyProblems = byId("only-problems").checked;
  let shown = 0;
  for (const entry of rows.values()) {
    const fits = terms.every((term) => entry.text.includes(term)) && (!onlyProblems || isProblem(entry.container));
    shown += fits ? 1 : 0;
    if (entry.row.hidden === fits) {
      entry.row.hidden = !fits;
    }
    if (entry.detail) {
      entry.detail.row.hidden = !fits;
    }
  }
  setText(byId("shown"), shown === rows.size ? count(rows.size, "container") : `${shown} of ${count(rows.size, "container")}`);
  byId("nothing").hidden = shown > 0 || rows.size === 0;
  if (!roving || roving.closest("tr").hidden || !document.contains(roving)) {
    rove(visibleButtons()[0]);
  }
}

const visibleButtons = () => [...byId("table-body").querySelectorAll("tr.row:not([hidden]) .open")];

function rove(button) {
  if (roving) {
    roving.tabIndex = -1;
  }
  roving = button || null;
  if (roving) {
    roving.tabIndex = 0;
  }
}

function moveWithKeys(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !event.target.classList.contains("open")) {
    return;
  }
  const buttons = visibleButtons();
  const at = buttons.indexOf(event.target) + steps[event.key];
  buttons[Math.max(0, Math.min(buttons.length - 1, at))]?.focus();
  event.preventDefault();
}

function rebuild(found) {
  classes = found;
  rows.clear();
  order = "";
  byId("table-body").replaceChildren();
  drawHead();
}

export function showContainers(containers) {
  const found = [...new Set(containers.flatMap((it) => it.nodes.map(classOf)))].sort();
  if (byId("table-head").children.length === 0 || found.join("\n") !== classes.join("\n")) {
    rebuild(found);
  }
  const here = new Set(containers.map((it) => it.id));
  for (const [id, entry] of rows) {
    if (!here.has(id)) {
      entry.row.remove();
      entry.detail?.row.remove();
      rows.delete(id);
      open.delete(id);
    }
  }
  for (const it of containers) {
    if (!rows.has(it.id)) {
      const entry = makeRow(it);
      rows.set(it.id, entry);
      entry.button.setAttribute("aria-expanded", String(open.has(it.id)));
    }
    fillRow(rows.get(it.id), it);
  }
  arrange();
}

export function startTable() {
  byId("filter").addEventListener("input", filter);
  byId("only-problems").addEventListener("change", filter);
  byId("table-body").addEventListener("keydown", moveWithKeys);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      byId("filter").focus();
    }
  });
  byId("filter").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.target.value = "";
      filter();
    }
  });
}
