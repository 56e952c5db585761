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
  node.append(...children.flat().filter((child) => child != null));
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

function shown(value, digits = 4) {
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

// Calls `draw(width)` now and whenever the width of the node changes.
function drawnToWidth(node, draw) {
  let last = 0;
  new ResizeObserver(() => {
    if (node.clientWidth && node.clientWidth !== last) draw((last = node.clientWidth));
  }).observe(node);
  return () => node.clientWidth && draw((last = node.clientWidth));
}
