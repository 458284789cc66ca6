// Bars: losses over time: those that were given back, those that were not, and what the shield kept open.
import { count, day, make, minute } from "./labels.js";
import { isLoss, isRestored } from "./records.js";

const kSvg = "http://www.w3.org/2000/svg";
const kHeight = 60;
const kStep = 10;  // width of a bar with its gap, in units of the picture

function shape(tag, attributes, ...children) {
  const element = document.createElementNS(kSvg, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, String(value)));
  element.append(...children);
  return element;
}

function binsOf(records, range, now) {
  const begin = now - range.milliseconds;
  const width = range.milliseconds / range.bins;
  const bins = Array.from({ length: range.bins }, (_, i) => ({ from: begin + i * width, to: begin + (i + 1) * width, lost: 0, restored: 0, held: 0 }));
  for (const record of records) {
    const bin = bins[Math.min(range.bins - 1, Math.floor((new Date(record.at).getTime() - begin) / width))];
    if (bin && isLoss(record)) {
      ++bin[isRestored(record) ? "restored" : "lost"];
    } else if (bin && record.shielded) {
      ++bin.held;
    }
  }
  return bins;
}

function barOf(bin, index, most) {
  const title = document.createElementNS(kSvg, "title");
  title.textContent = `${day(bin.from)} ${minute(bin.from)} to ${minute(bin.to)}: ${count(bin.lost + bin.restored, "loss", "losses")}, ${bin.restored} given back; ${bin.held} kept open by the shield`;
  const group = shape("g", { transform: `translate(${index * kStep},0)` }, title, shape("rect", { class: "place", width: kStep - 2, height: kHeight }));
  let y = kHeight;
  for (const kind of ["lost", "restored", "held"]) {
    const height = Math.min(y, bin[kind] === 0 ? 0 : Math.max(3, (bin[kind] / most) * kHeight));
    y -= height;
    if (height > 0) group.append(shape("rect", { class: kind, y, width: kStep - 2, height }));
  }
  return group;
}

// The children of the figure for these records; `range` is {name, milliseconds, bins}.
export function barsOf(records, range, now) {
  const bins = binsOf(records, range, now);
  const most = Math.max(1, ...bins.map((bin) => bin.lost + bin.restored + bin.held));
  const sum = (kind) => bins.reduce((total, bin) => total + bin[kind], 0);
  const [lost, losses, held] = [sum("lost"), sum("lost") + sum("restored"), sum("held")];
  const text = `${count(losses, "loss", "losses")}${lost ? ` (${lost} not given back)` : ""}${held ? ` and ${count(held, "change")} kept open by the shield` : ""} in the last ${range.title}`;
  const picture = shape("svg", { viewBox: `0 0 ${range.bins * kStep} ${kHeight}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
    ...bins.map((bin, index) => barOf(bin, index, most)));
  const from = bins[0].from;
  return [make("figcaption", {}, make("strong", { text }),
    make("span", { class: "quiet", text: losses + held ? `at most ${most} in ${range.binName}` : "" })), picture,
  make("p", { class: "axis quiet", "aria-hidden": "true" }, make("span", { text: `${day(from)} ${minute(from)}` }), make("span", { text: "now" }))];
}
