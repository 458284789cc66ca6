// Verdict: the headline of the page. The daemon computes it from the findings and the states; the page only shows it.
import { byId, codeLink, copyButton, make, setLevel, setText } from "./labels.js";

const marks = { good: "✓", warn: "!", bad: "✕" };
export const levelOf = { good: "good", warning: "warn", critical: "bad" };
let shown = "";

function cureOf(verdict) {
  const [first, ...others] = verdict.cure || [];
  const rest = verdict.needs_all_cures ? (others.length === 1 ? "then one more step" : `then ${others.length} more steps`)
    : others.length === 1 ? "another way" : `${others.length} other ways`;
  return [others.length && verdict.needs_all_cures ? make("span", { class: "relation", text: "first" }) : null,
    make("code", { text: first }), copyButton(first, "that helps"),
    others.length ? make("a", { href: "#findings", class: "others", text: rest }) : null].filter(Boolean);
}

export function showVerdict(snapshot) {
  const verdict = snapshot.verdict;
  const level = levelOf[verdict.level] || "warn";
  setLevel(byId("verdict"), level);
  setText(byId("verdict-mark"), marks[level]);
  setText(byId("headline"), verdict.headline);
  setText(byId("verdict-rest"), verdict.rest || "");
  setText(byId("host"), snapshot.host_name || "");
  const text = JSON.stringify(verdict);
  if (text !== shown) {
    shown = text;
    byId("verdict-because").replaceChildren(...[verdict.because || "", verdict.because && verdict.code ? " · " : "",
      verdict.code ? codeLink(verdict.code) : ""].filter(Boolean));
    byId("verdict-cure").hidden = !verdict.cure?.length;
    byId("verdict-cure").replaceChildren(...(verdict.cure?.length ? cureOf(verdict) : []));
  }
  const title = `${marks[level]} ${snapshot.host_name || "holdfast"} · holdfast`;
  if (document.title !== title) {
    document.title = title;
  }
}

export function showNoContact() {
  shown = "";
  setLevel(byId("verdict"), "bad");
  setText(byId("verdict-mark"), "⊘");
  setText(byId("headline"), "No contact with holdfastd");
  setText(byId("verdict-because"), "What is shown below may be old. Trying again.");
  setText(byId("verdict-rest"), "");
  byId("verdict-cure").hidden = false;
  byId("verdict-cure").replaceChildren(make("code", { text: "systemctl status holdfastd" }), copyButton("systemctl status holdfastd", "that shows why"));
}
