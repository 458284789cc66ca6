// Findings: what is wrong, what proves it and what helps, the worst first.
import { byId, codeLink, copyButton, count, ifChanged, make, shortIds } from "./labels.js";

export const severityLevels = { critical: "bad", warning: "warn", note: "none" };
const kFirst = 10;   // shown at once
const kMost = 200;
let showsAll = false;
let latest = [];

function evidenceOf(finding) {
  return finding.evidence?.length
    ? make("ul", { class: "evidence" }, ...finding.evidence.map((text) => make("li", { title: shortIds(text) === text ? null : text, text: shortIds(text) })))
    : null;
}

// How several cures belong together: all are needed, one after the other, or each of them helps.
function relationOf(finding, index) {
  const [first, next] = finding.needs_all_cures ? ["first", "then"] : ["either", "or"];
  return finding.cure.length < 2 ? null : make("span", { class: "relation", text: index === 0 ? first : next });
}

// A heading of the level that fits where the finding is shown.
export function findingItem(finding, heading = "h3", withSubject = true) {
  const level = severityLevels[finding.severity] || "warn";
  const cures = (finding.cure || []).map((text, index) => make("div", { class: "cure" }, relationOf(finding, index),
    make("code", { text }), copyButton(text, `for ${finding.code}`)));
  return make("li", { "data-level": level },
    make(heading, {}, make("span", { class: "state", "data-level": level, text: finding.severity }), codeLink(finding.code),
      make("span", { class: "said", text: withSubject ? `${finding.subject}: ${finding.verdict}` : finding.verdict })),
    evidenceOf(finding), ...cures);
}

function draw() {
  const rank = ["critical", "warning", "note"];
  const sorted = [...latest].sort((a, b) => rank.indexOf(a.severity) - rank.indexOf(b.severity));
  const most = showsAll ? kMost : kFirst;
  const items = sorted.slice(0, most).map((finding) => findingItem(finding));
  if (showsAll && sorted.length > kMost) {
    items.push(make("li", { text: `and ${sorted.length - kMost} more: holdfast doctor shows all` }));
  }
  byId("findings-list").replaceChildren(...items);
  byId("findings-more").hidden = showsAll || sorted.length <= kFirst;
  byId("findings-more").textContent = `Show all ${sorted.length}`;
  byId("findings-empty").hidden = sorted.length > 0;
  const parts = rank.map((name) => [sorted.filter((it) => it.severity === name).length, name]).filter(([number]) => number > 0)
    .map(([number, name]) => (name === "critical" ? `${number} critical` : count(number, name)));
  byId("findings-title").textContent = parts.length ? `Findings (${parts.join(", ")})` : "Findings";
}

export function showFindings(findings) {
  ifChanged("findings", findings, () => {
    latest = findings;
    draw();
  });
}

export function startFindings() {
  byId("findings-more").addEventListener("click", () => {
    showsAll = true;
    draw();
    byId("findings-list").children[kFirst]?.querySelector("a, button")?.focus();
  });
}
