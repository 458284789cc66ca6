// Hints: says that a table can be scrolled sideways, where it is wider than its place.

function update(box) {
  const hint = box.previousElementSibling;
  if (hint?.classList.contains("hint")) {
    hint.hidden = box.scrollWidth <= box.clientWidth + 1;
  }
}

export function startHints() {
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => update(entry.target.closest(".scroll"))));
  for (const box of document.querySelectorAll(".scroll")) {
    observer.observe(box);
    observer.observe(box.firstElementChild);
  }
}
