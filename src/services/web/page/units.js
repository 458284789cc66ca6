// Units: the devices of a container as people name them: "nvidia 0,1", not the number of device nodes.
import { shortNames } from "./labels.js";

let names = new Map();  // of units, by the path of their node

export function useUnits(units) {
  names = new Map(units.flatMap((unit) => (unit.nodes || []).slice(0, 1).map((path) => [path, unit.name])));
}

export const classOf = (node) => node.class || "other";

function nameOf(node) {
  const base = node.path.slice(node.path.lastIndexOf("/") + 1);
  const name = names.get(node.path) ?? base;
  if (name === node.class) return "";  // /dev/fuse is "fuse"
  if (names.has(node.path)) return name;
  return base.startsWith(node.class) ? base.slice(node.class.length) : base;
}

function describe(it, name, nodes) {
  const units = nodes.filter((node) => node.part === "unit");
  const bad = nodes.filter((node) => node.troubled);
  const allAreLost = bad.some((node) => node.part === "control");
  const lost = allAreLost ? units : units.filter((node) => node.troubled);
  const rest = units.filter((node) => !lost.includes(node));
  const list = (some) => shortNames(some.map(nameOf).filter(Boolean));
  const words = (...parts) => [name, ...parts].filter(Boolean).join(" ");
  if (lost.length > 0) {
    return { level: "bad", text: rest.length ? words(list(rest), "·", list(lost), "lost") : words(list(units), "lost") };
  }
  if (bad.length > 0) {
    return { level: "bad", text: words(list(units), "partial") };
  }
  if (nodes.some((node) => node.trouble === undefined || node.trouble === "unknown")) {
    return { level: "warn", text: words(list(units), "not checked") };
  }
  return it.state === "at risk" ? { level: "warn", text: words(list(units), "at risk") } : { level: "good", text: words(list(units)) };
}

// One entry for each class: {name, level, text}.
export function devicesOf(it) {
  const classes = [...new Set(it.nodes.map(classOf))].sort();
  return classes.map((name) => ({ name, ...describe(it, name, it.nodes.filter((node) => classOf(node) === name)) }));
}
