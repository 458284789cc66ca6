// Roving: only one button of the table is a stop for Tab. The arrow keys move it from row to row.

let current = null;

export const roving = () => current;

export function rove(button) {
  if (current) {
    current.tabIndex = -1;
  }
  current = button || null;
  if (current) {
    current.tabIndex = 0;
  }
}

export function moveWithKeys(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !event.target.classList.contains("open")) {
    return;
  }
  const buttons = [...event.currentTarget.querySelectorAll("tr.row:not([hidden]) .open")];
  const at = buttons.indexOf(event.target) + steps[event.key];
  buttons[Math.max(0, Math.min(buttons.length - 1, at))]?.focus();
  event.preventDefault();
}
