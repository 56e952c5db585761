"use strict";
// Helpers: elements, packed values, formatting of numbers, the tooltip.

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) node.append(child);
  return node;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Booleans as a function of their index.
function bits(text) {
  const packed = bytes(text);
  return (place) => (packed[place >> 3] >> (place & 7)) & 1;
}

// Numbers from 0 to 1 as a function of their index; NaN if missing.
function shares(text) {
  const packed = new DataView(bytes(text).buffer);
  return (place) => {
    const value = packed.getUint16(2 * place, true);
    return value === 0xffff ? NaN : value / 0xfffe;
  };
}

// Minimum and maximum of any number of values; Math.min fails with a hundred thousand arguments.
const least = (values, from = Infinity) => values.reduce((low, value) => Math.min(low, value), from);
const most = (values, from = -Infinity) => values.reduce((high, value) => Math.max(high, value), from);

function shown(value, digits = 4) {
  if (typeof value === "string") return value; // inf
  if (value == null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// A mean with half its interval, and the number of seeds if some have no value.
function withInterval([mean, low, high, count], seeds) {
  const some = count < seeds ? ` (${count} of ${seeds} seeds)` : "";
  return halfInterval(mean, low, high) + some;
}

// A mean and half its interval, to two digits of the latter.
function halfInterval(mean, low, high) {
  if (low == null) return shown(mean);
  const half = (high - low) / 2;
  if (half <= 1e-6 * Math.abs(mean)) return `${shown(mean)} ± 0`;
  const digits = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(half))));
  return [mean, half].map((value) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })).join(" ± ");
}

const inkFor = (color) => (color === "#000000" ? "var(--ink)" : color);

const tip = {
  show(event, text) {
    const box = document.getElementById("tip");
    box.textContent = text;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, Math.min(event.clientY - height - 10, innerHeight - height - 4))}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};

// Placeholder for a part that failed.
function failure(error) {
  console.error(error);
  return element("p", { class: "failure", role: "alert" }, `This part of the page could not be shown (${error.message ?? error}).`);
}

const failures = new WeakMap(); // error messages by the node that they precede

// Run an action for a node and return whether it succeeded; until it does, an error message precedes the node.
function tried(node, action) {
  failures.get(node)?.remove();
  try {
    action();
    return true;
  } catch (error) {
    failures.set(node, failure(error));
    node.before(failures.get(node));
    return false;
  }
}

// A part of a page: `make(state)` returns its node, and its listeners are called when the selection changes. A failure affects this part alone.
function part(state, make) {
  const own = { place: state.place, listeners: [] };
  try {
    const node = make(own);
    if (!node) return null;
    state.listeners.push(() => {
      node.hidden = false;
      node.hidden = !tried(node, () => own.listeners.forEach((listener) => listener()));
    });
    return node;
  } catch (error) {
    return failure(error);
  }
}

// Calls `draw(width)` now and whenever the width of the node changes.
function drawnToWidth(node, draw) {
  let last = 0;
  const now = () => tried(node, () => draw((last = node.clientWidth)));
  new ResizeObserver(() => {
    if (node.clientWidth && node.clientWidth !== last) now();
  }).observe(node);
  return () => node.clientWidth && now();
}
