// Labels: formats values as text and creates elements. Names may be hostile, so no string is ever parsed as markup.

export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") {
      element.textContent = value;
    } else if (name === "class") {
      element.className = value;
    } else if (value !== undefined && value !== null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

// Only changed text is written, so that a screen reader's position and a selection are kept.
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

export function setLevel(element, level) {
  if (element.dataset.level !== level) {
    element.dataset.level = level;
  }
}

const drawn = new Map();

// A part of the page is redrawn only if what it shows has changed.
export function ifChanged(name, value, draw) {
  const text = JSON.stringify(value);
  if (drawn.get(name) !== text) {
    drawn.set(name, text);
    draw();
  }
}

export const count = (number, noun, nouns = noun + "s") => `${number} ${number === 1 ? noun : nouns}`;

const kUnits = [[3600e9, "h", 2], [60e9, "min", 2], [1e9, "s", 1], [1e6, "ms", 1], [1e3, "µs", 1], [1, "ns", 0]];

export function duration(nanoseconds) {
  const [size, name] = kUnits.find(([size, , least]) => nanoseconds >= size * least * 0.9995) ?? kUnits.at(-1);
  const value = nanoseconds / size;
  return `${Number(value.toFixed(value < 9.95 ? 1 : 0))} ${name}`;
}

const two = (number) => String(number).padStart(2, "0");

export function day(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "" : `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

export function minute(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "" : `${two(time.getHours())}:${two(time.getMinutes())}`;
}

export function clock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text
    : `${minute(text)}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

export function dayAndClock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text || "" : `${day(text)} ${minute(text)}:${two(time.getSeconds())}`;
}

// Ids of 64 digits fill a line: the first 12 name the container.
export const shortIds = (text) => text.replace(/\b([0-9a-f]{12})[0-9a-f]{20,}/g, "$1…");

// [0, 1, 2, 5] as "0-2,5"; names that are no numbers stay as they are.
export function shortNames(names) {
  const numbers = names.filter((name) => /^\d+$/.test(name)).map(Number).sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < numbers.length;) {
    let end = i;
    while (numbers[end + 1] === numbers[end] + 1) ++end;
    parts.push(end > i + 1 ? `${numbers[i]}-${numbers[end]}` : numbers.slice(i, end + 1).join(","));
    i = end + 1;
  }
  return [...parts, ...names.filter((name) => !/^\d+$/.test(name))].join(",");
}

export const codeLink = (code) => make("a", { class: "code", href: `/findings/${encodeURIComponent(code)}`, text: code, title: `what ${code} means` });

export function bytes(number) {
  return number === undefined ? "–" : `${Math.round(number / 2 ** 20).toLocaleString("en")} MiB`;
}

export const stateLevels = {
  "ok": "good", "at risk": "warn", "partial": "bad", "stale": "bad", "lost": "bad", "unknown": "warn", "not owed": "none",
};
export const stateRank = ["lost", "stale", "partial", "unknown", "at risk", "ok", "not owed"];

export function writerTitle(writer) {
  if (!writer || !writer.pid) {
    return writer?.name || "an unknown process";
  }
  const title = `${writer.name || "a process"} (pid ${writer.pid})`;
  if (writer.inside) {
    return `${title} in container ${writer.inside}`;
  }
  const chain = [title, ...(writer.through || [])].join(", ");
  if (!writer.service || writer.service === writer.name) return chain;
  return `${chain}${writer.through ? "," : ""} for ${writer.service}`;
}

export function shortList(entries, most = 6) {
  return entries.length > most ? `${entries.slice(0, most).join(", ")} and ${entries.length - most} more` : entries.join(", ");
}

// "0-3,8" as [0, 1, 2, 3, 8]; bounded, because the text may be hostile.
export function cpusOf(text) {
  const cpus = [];
  for (const part of (text || "").split(",")) {
    const [first, last = first] = part.trim().split("-").map(Number);
    for (let cpu = first; Number.isInteger(cpu) && cpu <= last && cpus.length < 4096; ++cpu) {
      cpus.push(cpu);
    }
  }
  return cpus;
}

async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    return navigator.clipboard.writeText(text);
  }
  const area = make("textarea", { readonly: "" });  // a browser offers no clipboard over plain HTTP
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done ? undefined : Promise.reject(new Error("the browser refused"));
}

export function copyButton(text, what) {
  const button = make("button", { class: "copy", type: "button", text: "Copy", "aria-label": `Copy the command ${what}` });

  button.addEventListener("click", async () => {
    try {
      await copyText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
    button.focus();
  });
  return button;
}
