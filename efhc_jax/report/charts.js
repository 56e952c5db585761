// Line charts with bands, axes, and a tooltip with the values at the pointer.

const DASHES = { "-": "", "--": "7 4", "-.": "8 3 2 3", ":": "2 3" };
const FEW = 12; // largest number of points with markers
const CHART = { height: 270, left: 52, right: 18, top: 10, bottom: 40 };

// A chart whose lines can be replaced: `chart.show([{label, color, dashes, strong, x, mean, low, high}])`.
function lineChart(title, xTitle, yTitle, options = {}) {
  const plot = element("div", { class: "chart" });
  const caption = element("figcaption");
  const figure = element("figure", { class: "card" }, element("h4", {}, title), plot, caption);
  let lines = [];
  const redraw = drawnToWidth(plot, (width) => plot.replaceChildren(drawChart(lines, width, xTitle, yTitle, options)));
  return {
    figure,
    show(next, note = "") {
      lines = next.filter((line) => line.mean.some((value) => value != null));
      caption.textContent = note;
      redraw();
    },
  };
}

function drawChart(lines, width, xTitle, yTitle, options) {
  const { height, left, right, top, bottom } = CHART;
  const every = (name) => lines.flatMap((line) => line[name] ?? []).filter((value) => value != null);
  const logX = options.spread && isWide(every("x"));
  const x = scale(every("x"), left, width - right, { log: logX, zero: !options.spread });
  const ys = [...every("mean"), ...every("low"), ...every("high")];
  const y = scale(options.percent ? ys.map((value) => Math.min(100, Math.max(0, value))) : ys,
    height - bottom, top, { log: options.log && isWide(ys), zero: options.zero });
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${yTitle} against ${xTitle}` });
  for (const tick of y.ticks) {
    svg.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      drawn("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, shown(tick)));
  }
  for (const tick of options.spread ? [...new Set(every("x"))] : x.ticks) {
    svg.append(drawn("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, shown(tick)));
  }
  svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle),
    drawn("text", { transform: `translate(11 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle));
  const clip = `clip${Math.random().toString(36).slice(2)}`;
  svg.append(drawn("clipPath", { id: clip }, drawn("rect", { x: left, y: 0, width: width - left - right, height: height - bottom })));
  const inside = drawn("g", { "clip-path": `url(#${clip})` });
  svg.append(inside);
  for (const line of [...lines].sort((one, other) => one.strong - other.strong)) {
    if (line.low) inside.append(drawn("path", { d: band(line, x, y), fill: line.color, opacity: line.strong ? 0.2 : 0.1 }));
    inside.append(drawn("path", { class: "line", d: path(line, x, y), fill: "none", stroke: line.color,
      "stroke-width": line.strong ? 2.6 : 1.5, "stroke-dasharray": DASHES[line.dashes] ?? "" }));
    if (line.x.length <= FEW) line.mean.forEach((value, at) => value != null &&
      inside.append(drawn("circle", { cx: x(line.x[at]), cy: y(value), r: 3, fill: line.color })));
  }
  const cursor = drawn("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const wanted = x.back(((event.clientX - box.left) * width) / box.width);
    if (!lines.length) return;
    const at = lines.map((line) => nearest(line.x, wanted));
    cursor.setAttribute("visibility", "visible");
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(lines[0].x[at[0]]));
    const rows = lines.map((line, row) => `${line.label}: ${valueAt(line, at[row])}`);
    tip.show(event, [`${xTitle} ${shown(lines[0].x[at[0]])}`, ...rows].join("\n"));
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tip.hide();
  });
  return svg;
}

function valueAt(line, at) {
  const range = line.low?.[at] == null ? "" : ` (${shown(line.low[at])} to ${shown(line.high[at])})`;
  return shown(line.mean[at]) + range;
}

function nearest(values, wanted) {
  let best = 0;
  values.forEach((value, at) => {
    if (value != null && Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = at;
  });
  return best;
}

const isWide = (values) => least(values) > 0 && most(values) / least(values) >= 20;

// From values to pixels, with round ticks.
function scale(values, from, to, { log = false, zero = false }) {
  let low = least(values), high = most(values);
  if (!values.length) [low, high] = [0, 1];
  if (zero) low = Math.min(0, low);
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const there = log ? Math.log10 : (value) => value;
  const back = log ? (value) => 10 ** value : (value) => value;
  const ratio = (to - from) / (there(high) - there(low));
  const place = (value) => from + (there(value) - there(low)) * ratio;
  place.back = (pixel) => back(there(low) + (pixel - from) / ratio);
  place.ticks = log ? powers(low, high) : rounds(low, high, Math.max(3, Math.abs(to - from) / (to > from ? 85 : 45)));
  return place;
}

function rounds(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(10)));
  return ticks;
}

function powers(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks.length > 7 ? ticks.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e9) / 1e9)) : ticks;
}

function path(line, x, y) {
  let pen = "M";
  return line.mean.map((value, at) => {
    if (value == null || line.x[at] == null) return (pen = "M"), "";
    const piece = `${pen}${x(line.x[at]).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
    return piece;
  }).join("");
}

function band(line, x, y) {
  const there = line.x.map((_, at) => at).filter((at) => line.low[at] != null && line.x[at] != null);
  const edge = (side) => there.map((at) => `${x(line.x[at]).toFixed(1)} ${y(line[side][at]).toFixed(1)}`);
  return there.length ? `M${[...edge("high"), ...edge("low").reverse()].join("L")}Z` : "";
}
