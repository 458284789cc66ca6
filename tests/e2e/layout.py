"""Layout: finds texts that are cut off and elements that lie on each other, in the page that a browser shows."""

import chromium

# Boxes of texts and controls, as far as they can be seen. What has a tooltip with its whole text may end in "…".
SCRIPT = r"""(() => {
  const problems = new Set();
  const name = (it) => it.tagName.toLowerCase() + (it.id ? '#' + it.id : it.className && it.className.baseVal === undefined ? '.' + it.className.split(' ')[0] : '');
  const said = (it) => `${name(it)} "${(it.textContent || it.value || '').trim().slice(0, 40)}"`;
  const scrolls = (style) => /auto|scroll/.test(style.overflowX);
  const hides = (style) => /hidden|clip/.test(style.overflowX + style.overflowY) && !scrolls(style);
  const isForReaders = (it) => it.closest('.sr-only, .skip, noscript, option') !== null;

  function clippedBy(it, box) {  // the part of the box that can be seen, and whether text was cut off
    let { left, right, top, bottom } = box;
    let isCut = false;
    for (let above = it; above && above !== document.body; above = above.parentElement) {
      const style = getComputedStyle(above);
      if (style.display === 'inline') continue;
      const edge = above.getBoundingClientRect();
      if (hides(style)) {
        const whole = above.title && above.title.trim() === above.textContent.trim();
        isCut ||= !whole && (right > edge.right + 1 || left < edge.left - 1 || bottom > edge.bottom + 2 || top < edge.top - 2);
      }
      if (hides(style) || scrolls(style)) {
        [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      }
    }
    return { box: { left, right, top, bottom }, isCut };
  }

  const boxes = [];
  function add(it, rect) {
    if (rect.width < 1 || rect.height < 1) return;
    const { box, isCut } = clippedBy(it, rect);
    if (isCut) problems.add(`cut off: ${said(it)}`);
    if (box.right - box.left < 1 || box.bottom - box.top < 1) return;
    if (box.right > innerWidth + 1 || box.left < -1) problems.add(`outside of the page: ${said(it)}`);
    boxes.push({ it, ...box });
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const it = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || isForReaders(it) || !it.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    for (const rect of range.getClientRects()) add(it, rect);
  }
  for (const it of document.querySelectorAll('input, select, .copy, .more, .range button, img, .bars svg')) {
    if (!isForReaders(it) && it.checkVisibility({ visibilityProperty: true })) add(it, it.getBoundingClientRect());
  }

  const canvas = document.createElement('canvas').getContext('2d');
  for (const it of document.querySelectorAll('input[placeholder]')) {
    const style = getComputedStyle(it);
    canvas.font = style.font;
    const room = it.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (canvas.measureText(it.placeholder).width > room + 1) problems.add(`cut off: placeholder "${it.placeholder}"`);
  }

  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; ++i) {
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 2; ++j) {
      const [a, b] = [boxes[i], boxes[j]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 3 && a.it !== b.it && !a.it.contains(b.it) && !b.it.contains(a.it)) {
        problems.add(`on each other: ${said(a.it)} and ${said(b.it)}`);
      }
    }
  }

  for (const box of document.querySelectorAll('.scroll')) {
    const hint = box.previousElementSibling;
    if (box.scrollWidth > box.clientWidth + 1 && !(hint?.classList.contains('hint') && hint.checkVisibility())) {
      problems.add(`scrolls without a hint: ${said(box)}`);
    }
  }
  for (const it of document.querySelectorAll('main *')) {
    const style = getComputedStyle(it);
    if (/auto|scroll/.test(style.overflowY) && it.scrollHeight > it.clientHeight + 1) problems.add(`a scroll box in the page: ${said(it)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) problems.add(`the page is ${document.documentElement.scrollWidth} wide`);
  const lines = new Set([...document.querySelectorAll('nav a')].map((it) => Math.round(it.getBoundingClientRect().top)));
  if (lines.size > 1) problems.add('the menu has several lines');
  return [...problems].slice(-20);
})()"""


def problems(browser: chromium.Browser) -> list[str]:
    """What is wrong with the layout; the page is seen from its top, where nothing may hide below the header."""
    browser.run("void scrollTo({ top: 0, behavior: 'instant' })")
    return browser.run(SCRIPT)
