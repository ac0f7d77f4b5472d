// What is wrong with how a page looks, a sentence each. Run by the tests with
// "overlaps", "overflow", "contrast" or "texts".
const what = arguments[0];
const wrong = [];
const SLACK = 1.5;  // pixels, for rounding

function name(element) {
  const text = [...element.textContent.trim()].slice(0, 40).join('');
  return `${element.tagName}.${element.getAttribute('class')} "${text}"`;
}

function within(inner, outer) {
  return inner.left >= outer.left - SLACK &&
    inner.right <= outer.right + SLACK &&
    inner.top >= outer.top - SLACK && inner.bottom <= outer.bottom + SLACK;
}

function apart(one, other, slack) {
  return one.right <= other.left + slack || other.right <= one.left + slack ||
    one.bottom <= other.top + slack || other.bottom <= one.top + slack;
}

function shown(element) {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0;
}

// Pairs of elements that are on each other.
function clashes(elements, slack) {
  const boxes = elements.filter(shown).map(
    element => [element, element.getBoundingClientRect()]);
  boxes.sort((one, other) => one[1].top - other[1].top);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length; j++) {
      if (boxes[j][1].top >= boxes[i][1].bottom) break;
      if (!apart(boxes[i][1], boxes[j][1], slack)) {
        wrong.push(`${name(boxes[i][0])} is on ${name(boxes[j][0])}`);
      }
    }
  }
}

function all(selector, root) {
  return [...(root || document).querySelectorAll(selector)];
}

function overlaps() {
  clashes(all('h1, body > p, header > p, main > p, main > table, .filter, ' +
              '.search, nav, .key, section, footer'), SLACK);
  for (const part of all('section')) clashes([...part.children], SLACK);
  for (const list of all(
    '.filter, .search, .site ul, .body, .nodes, .guests, .facts, .head, ' +
    '.key ul, .rows th, .rows td')) {
    clashes([...list.children], SLACK);
  }
  for (const row of all('tr')) clashes([...row.children], SLACK);
  for (const svg of all('svg.n')) {
    clashes(all('use', svg).filter(use =>
      use.getAttribute('href') !== '#tab'), .1);
    clashes(all(':scope > svg', svg), SLACK);
    clashes(all(':scope > .b, :scope > text', svg), SLACK);
  }
}

function overflow() {
  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth) {
    wrong.push(`the page is ${page.scrollWidth} pixels wide`);
  }
  for (const element of all('body *:not(svg):not(svg *)')) {
    if (element.clientWidth && element.scrollWidth >
        element.clientWidth + 1 && !element.matches('.skip')) {
      wrong.push(`${name(element)} has no room for what is in it`);
    }
  }
}

// Text of pictures that leaves the picture, or its tab.
function texts() {
  for (const text of all('svg.n text')) {
    if (!shown(text)) continue;
    const svg = text.closest('svg.n');
    const tab = text.parentNode.querySelector(':scope > use[href="#tab"]');
    const box = svg.querySelector(':scope > .box, :scope > .card');
    const outer = tab || (tab === null && box && !text.matches('g.n > *') &&
                          text.parentNode === svg ? box : svg);
    if (!within(text.getBoundingClientRect(),
                outer.getBoundingClientRect())) {
      wrong.push(`${name(text)} leaves its box`);
    }
  }
}

function rgb(colour) {
  const found = colour.match(/rgba?\(([^)]*)\)/);
  if (!found) throw new Error(`colour ${colour}`);
  return found[1].split(/[ ,/]+/).map(Number);
}

function luminance(colour) {
  const [r, g, b] = rgb(colour).slice(0, 3).map(value => {
    value /= 255;
    return value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
  });
  return .2126 * r + .7152 * g + .0722 * b;
}

function ratio(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort(
    (a, b) => b - a);
  return (high + .05) / (low + .05);
}

function background(element) {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (rgb(colour)[3] !== 0) return colour;
  }
  return 'rgb(255, 255, 255)';
}

function told(element, colour, behind) {
  const found = ratio(colour, behind);
  if (found < 4.5) {
    wrong.push(`${name(element)}: ${colour} on ${behind} is ` +
               `${found.toFixed(2)}`);
  }
}

// What is behind a text of a picture: a CPU, the badge, the box.
function behind(text) {
  const svg = text.closest('svg.n');
  const style = element => getComputedStyle(element).fill;
  if (text.matches('.m')) return [style(svg.querySelector('.badge'))];
  if (text.matches('.l')) {
    const inner = text.getBoundingClientRect();
    const uses = all('use', text.parentNode).filter(use =>
      !apart(use.getBoundingClientRect(), inner, 0));
    const tiles = uses.map(use => style(document.querySelector(
      use.getAttribute('href'))));
    const label = text.parentNode.querySelector(':scope > rect[class^=k]');
    return (label ? [style(label)] : tiles).filter(
      colour => colour.startsWith('rgb'));
  }
  const box = svg && svg.querySelector(':scope > .box, :scope > .card') ||
    (svg && svg.parentNode.closest('svg.n') || document).querySelector(
      ':scope > .card, .sheet');
  return box ? [style(box)] : [];
}

function contrast() {
  for (const element of all('body *:not(svg):not(svg *)')) {
    const own = [...element.childNodes].some(
      node => node.nodeType === 3 && node.data.trim());
    if (own && shown(element) && !element.matches('.skip')) {
      told(element, getComputedStyle(element).color, background(element));
    }
  }
  let seen = 0;
  for (const text of all('svg text')) {
    if (!shown(text)) continue;
    for (const colour of behind(text)) {
      seen++;
      told(text, getComputedStyle(text).fill, colour);
    }
  }
  if (!seen && all('svg.n').length) wrong.push('no text of a picture was found');
}

({overlaps, overflow, texts, contrast})[what]();
return wrong.slice(0, 20);
