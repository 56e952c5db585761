// The network and the raster of one run, with a common slider.

const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const SPEEDS = [1, 5, 25];
const TICK = 120; // milliseconds per frame

function viridis(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (VIRIDIS.length - 1);
  const parts = [Math.floor(place), Math.floor(place) + 1].map((at) =>
    [1, 3, 5].map((first) => parseInt(VIRIDIS[at].slice(first, first + 2), 16)));
  const mixed = parts[0].map((low, at) => Math.round(low + (parts[1][at] - low) * (place % 1)));
  return { color: `rgb(${mixed})`, dark: share < 0.55 };
}

// A run with its packed values as functions.
function opened(run, study) {
  const devices = run.weak.length, links = run.links.length;
  const edges = Array.isArray(run.edges) ? run.edges : regular(run.edges);
  const fired = (run.exact ? bits : shares)(run.fired);
  const accuracy = shares(run.accuracy);
  const used = run.used && bits(run.used), up = run.up && bits(run.up);
  const places = run.places == null ? null : shares(study.places[run.places]);
  const evaluations = study.iterations.slice(0, run.curves.accuracy.mean.length);
  return {
    ...run, devices, edges, name: (device) => run.ids?.[device] ?? device, frames: edges.length - 1,
    fired: (frame, device) => fired(frame * devices + device),
    used: (frame, link) => used != null && used(frame * links + link) === 1,
    isUp: (frame, link) => up == null || up(frame * links + link) === 1,
    place: places && ((frame, device) => {
      const at = 2 * ((run.moves ? frame * devices : 0) + device);
      return [100 * places(at), 100 - 100 * places(at + 1)];
    }),
    evaluation: (frame) => Math.max(0, evaluations.findLastIndex((iteration) => iteration <= edges[frame])),
    accuracy: (evaluation, device) => accuracy(evaluation * devices + device),
  };
}

function regular({ length, steps }) {
  const edges = [];
  for (let edge = 0; edge < steps; edge += length) edges.push(edge);
  return [...edges, steps];
}

function stretch(run, frame) {
  const first = run.edges[frame], last = run.edges[frame + 1] - 1;
  return first === last ? `iteration ${first.toLocaleString("en")}`
    : `iterations ${first.toLocaleString("en")} to ${last.toLocaleString("en")}`;
}

// The part of the page below the curves: `view.show(run, color)` changes the run.
function activityView(range) {
  const view = { run: null, frame: 0, color: "", timer: 0 };
  const network = element("div"), canvas = element("canvas", { "aria-label": "broadcasts of each device over time" });
  const output = element("output");
  const slider = element("input", { type: "range", min: 0, value: 0, "aria-label": "iteration", oninput: () => go(Number(slider.value)) });
  const speed = element("select", { "aria-label": "speed" }, SPEEDS.map((pace) => element("option", { value: pace }, `× ${pace}`)));
  const play = element("button", { type: "button", onclick: () => (view.timer ? stop() : start()) }, "▶ Play");
  const note = element("p", { class: "soft" }), extent = element("p", { class: "soft part" }), key = networkKey(range);
  const rasterNote = element("p", { class: "soft" });
  const redraw = drawnToWidth(canvas, () => drawRaster(canvas, view));

  function start() {
    if (view.frame >= view.run.frames - 1) go(0);
    play.textContent = "❚❚ Pause";
    view.timer = setInterval(() => {
      if (view.frame >= view.run.frames - 1) stop();
      else go(Math.min(view.run.frames - 1, view.frame + Number(speed.value)));
    }, TICK);
  }
  function stop() {
    clearInterval(view.timer);
    view.timer = 0;
    play.textContent = "▶ Play";
  }
  function go(frame) {
    view.frame = frame;
    slider.value = frame;
    slider.setAttribute("aria-valuetext", stretch(view.run, frame));
    output.textContent = readout(view.run, frame);
    tried(network, () => view.move?.(frame));
    redraw();
  }
  canvas.addEventListener("pointermove", (event) => {
    const { frame, device } = rasterPlace(canvas, view, event);
    if (event.buttons) go(frame);
    const share = view.run.fired(frame, device);
    const word = view.run.exact ? (share ? "broadcast" : "silent") : `broadcast in ${shown(100 * share, 3)} %`;
    tip.show(event, `device ${view.run.name(device)}${view.run.weak[device] ? ", weak" : ""}\n${stretch(view.run, frame)}: ${word}`);
  });
  canvas.addEventListener("pointerdown", (event) => go(rasterPlace(canvas, view, event).frame));
  canvas.addEventListener("pointerleave", tip.hide);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  const player = element("div", { class: "player" }, play, slider, speed, output);
  const node = element("div", {}, player, element("div", { class: "activity" },
    element("div", { class: "card network" }, element("h4", {}, "Network"), network, key, note, extent),
    element("div", { class: "card raster" }, element("h4", {}, "Broadcasts"), canvas, rasterNote)));
  return {
    node,
    show(run, color, flag) {
      stop();
      Object.assign(view, { run, color });
      slider.max = run.frames - 1;
      for (const sign of node.querySelectorAll(".now")) sign.hidden = !run.use;
      view.move = run.place ? drawNetwork(network, run, range) : network.replaceChildren(element("p", {}, `The network is not stored in this result; ${flag} records it.`));
      note.textContent = run.use ? "The wider a link, the more often it carried models over the whole run. Links that carry models in this iteration are highlighted."
        : run.place ? `The use of links was not recorded; ${flag} records it.` : "";
      key.hidden = !run.place;
      extent.textContent = run.whole && run.place ? `${partShown(run)} are drawn, those with the fewest hops to device 0. The line above the figure counts all.` : "";
      rasterNote.textContent = run.use ? "One row per device, and one column per iteration, or per pixel if there are more iterations; the stronger the colour, the more often it broadcast. ■ marks weak devices, with less than the mean bandwidth. Click to select an iteration."
        : `Broadcasts are counted between evaluations; ${flag} records every iteration. ■ marks weak devices, with less than the mean bandwidth.`;
      if (run.ids) rasterNote.append(` ${run.devices.toLocaleString("en")} of ${run.whole.devices.toLocaleString("en")} devices are shown.`);
      go(Math.min(view.frame, run.frames - 1));
    },
  };
}

// Text on how much of a network is drawn.
function partShown({ devices, links, whole }) {
  const counts = [[devices, whole.devices, "devices"], [links.length, whole.links, "links"]].filter(([, all]) => all != null);
  return counts.map(([some, all, what]) => `${some.toLocaleString("en")} of ${all.toLocaleString("en")} ${what}`).join(" and ");
}

function readout(run, frame) {
  const devices = [...Array(run.devices).keys()];
  const evaluation = run.evaluation(frame);
  const mean = run.curves.accuracy.mean[evaluation];
  const talking = devices.filter((device) => run.fired(frame, device) > 0);
  const who = run.ids || talking.length > 12 || !talking.length ? "" : ` (${talking.join(", ")})`;
  const links = run.whole?.used?.[frame] ?? run.links.filter((_, link) => run.used(frame, link)).length;
  const count = (value) => value.toLocaleString("en");
  const carried = run.use ? `, ${count(links)} of ${count(run.whole?.links ?? run.links.length)} links carried models` : "";
  const broadcast = `${count(run.whole?.fired[frame] ?? talking.length)} of ${count(run.whole?.devices ?? run.devices)} devices broadcast`;
  const words = `${stretch(run, frame)}: ${broadcast}${who}${carried}; mean accuracy ${mean == null ? "–" : mean.toFixed(1)} %`;
  return words[0].toUpperCase() + words.slice(1);
}

// Draws the network and returns a function that moves it to a frame.
function drawNetwork(parent, run, [low, high]) {
  const box = surrounding(run);
  const svg = drawn("svg", { viewBox: box.join(" "), role: "img", "aria-label": "the network, with the links in use" });
  const size = (Math.max(box[2], box[3]) / 100) * Math.max(0.9, Math.min(2.9, 14 / Math.sqrt(run.devices)));
  const widest = most(run.use ?? [], 1e-9);
  const lines = run.links.map(([one, other], link) => {
    const width = size * (run.use ? 0.1 + (0.55 * run.use[link]) / widest : 0.15);
    const text = `link ${run.name(one)} – ${run.name(other)}` + (run.use ? `\ncarried models in ${shown(100 * run.use[link], 3)} % of the iterations` : "");
    return drawn("line", { class: "link", "stroke-width": width, ...hover(() => text) });
  });
  const marks = run.weak.map((weak, device) => {
    const square = { width: 1.8 * size, height: 1.8 * size, x: -0.9 * size, y: -0.9 * size };
    const shape = weak ? drawn("rect", { class: "device", ...square }) : drawn("circle", { class: "device", r: size });
    const number = run.devices <= 40 ? drawn("text", { class: "number", style: `font-size: ${1.1 * size}px` }, String(run.name(device))) : null;
    return drawn("g", hover(() => aboutDevice(run, device, marks[device].frame)), shape, number);
  });
  for (const shape of [lines, marks].flat()) svg.append(shape);
  parent.replaceChildren(svg);
  return (frame) => {
    const evaluation = run.evaluation(frame);
    run.links.forEach(([one, other], link) => {
      const [x1, y1] = run.place(frame, one), [x2, y2] = run.place(frame, other);
      const state = run.used(frame, link) ? " on" : run.isUp(frame, link) ? "" : " down";
      filled(lines[link], { x1, y1, x2, y2, class: `link${state}` }, []);
    });
    marks.forEach((mark, device) => {
      const share = (run.accuracy(evaluation, device) - low) / (high - low || 1);
      const { color, dark } = viridis(share);
      mark.frame = frame;
      mark.setAttribute("transform", `translate(${run.place(frame, device)})`);
      mark.firstChild.setAttribute("stroke-width", run.exact && run.fired(frame, device) ? 0.4 * size : 0.15 * size);
      mark.firstChild.setAttribute("class", run.exact && run.fired(frame, device) ? "device fires" : "device");
      mark.firstChild.setAttribute("fill", color);
      if (mark.children[1]) mark.children[1].style.fill = dark ? "#fff" : "#111";
    });
  };
}

// The bounding box of all positions, with a margin: [left, top, width, height].
function surrounding(run) {
  const corners = [Infinity, Infinity, -Infinity, -Infinity];
  for (let frame = 0; frame < (run.moves ? run.frames : 1); frame++) {
    for (let device = 0; device < run.devices; device++) {
      const [x, y] = run.place(frame, device);
      corners.forEach((edge, at) => (corners[at] = Math[at < 2 ? "min" : "max"](edge, [x, y][at % 2])));
    }
  }
  const room = 0.06 * Math.max(corners[2] - corners[0], corners[3] - corners[1], 10);
  return [corners[0] - room, corners[1] - room, corners[2] - corners[0] + 2 * room, corners[3] - corners[1] + 2 * room];
}

function aboutDevice(run, device, frame) {
  const weak = run.weak[device] ? "weak, " : "";
  const accuracy = shown(100 * run.accuracy(run.evaluation(frame), device), 3);
  return `device ${run.name(device)} (${weak}bandwidth ${shown(run.bandwidth[device])})\naccuracy ${accuracy} %`;
}

const hover = (text) => ({ onpointermove: (event) => tip.show(event, text()), onpointerleave: tip.hide });

function networkKey([low, high]) {
  const sign = (...shapes) => drawn("svg", { viewBox: "0 0 10 10" }, ...shapes);
  const ramp = element("span", { class: "ramp", style: `background: linear-gradient(to right, ${VIRIDIS.join(",")})` });
  return element("div", { class: "key soft" },
    element("span", {}, `accuracy ${(100 * low).toFixed(0)} %`, ramp, `${(100 * high).toFixed(0)} %`),
    element("span", {}, sign(drawn("rect", { x: 1.5, y: 1.5, width: 7, height: 7, fill: "var(--soft)" })), "weak device"),
    element("span", { class: "now" }, sign(drawn("circle", { cx: 5, cy: 5, r: 3.4, fill: "var(--shade)", stroke: "var(--accent)", "stroke-width": 1.6 })), "broadcasts now"),
    element("span", { class: "now" }, sign(drawn("line", { x1: 0, x2: 10, y1: 5, y2: 5, stroke: "var(--accent)", "stroke-width": 2 })), "link in use now"));
}

const RASTER = { left: 44, bottom: 22, row: 20, most: 440 };

function rasterRow(run) {
  return Math.max(1.5, Math.min(RASTER.row, RASTER.most / run.devices));
}

function drawRaster(canvas, view) {
  const { run, frame } = view;
  if (!run) return;
  const style = getComputedStyle(canvas), ratio = devicePixelRatio || 1;
  const css = (name) => style.getPropertyValue(name).trim();
  const width = canvas.clientWidth, row = rasterRow(run), high = row * run.devices;
  canvas.style.height = `${high + RASTER.bottom}px`;
  canvas.width = width * ratio;
  canvas.height = (high + RASTER.bottom) * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `11px ${style.fontFamily}`;
  const steps = run.edges[run.frames] || 1, wide = width - RASTER.left;
  const at = (iteration) => RASTER.left + (iteration / steps) * wide;
  for (let device = 0; device < run.devices; device++) {
    const top = device * row, thick = row > 4 ? row - 2 : row;
    pen.globalAlpha = 1;
    pen.fillStyle = css("--shade");
    pen.fillRect(RASTER.left, top, wide, thick);
    pen.fillStyle = view.color.startsWith("var") ? css("--ink") : view.color;
    for (const [left, right, share] of columns(run, device, at)) {
      pen.globalAlpha = share;
      pen.fillRect(left, top, right - left, thick);
    }
    pen.globalAlpha = 1;
    if (row < 9 && device % Math.ceil(10 / row)) continue;
    pen.fillStyle = run.weak[device] ? css("--ink") : css("--soft");
    pen.textAlign = "right";
    pen.fillText(`${run.weak[device] ? "■ " : ""}${run.name(device)}`, RASTER.left - 6, top + thick / 2 + 4);
  }
  pen.fillStyle = css("--soft");
  for (const tick of rounds(0, steps, Math.max(2, wide / 110))) {
    pen.textAlign = tick > 0.95 * steps ? "right" : tick === 0 ? "left" : "center";
    pen.fillText(tick.toLocaleString("en"), at(tick), high + 15);
  }
  pen.strokeStyle = css("--accent");
  pen.lineWidth = 2;
  const middle = at((run.edges[frame] + run.edges[frame + 1]) / 2);
  pen.beginPath();
  pen.moveTo(middle, 0);
  pen.lineTo(middle, high + 3);
  pen.stroke();
}

// Intervals of pixels with the fraction of iterations in which a device broadcast: [left, right, share].
function columns(run, device, at) {
  const found = [];
  let left = at(run.edges[0]), sum = 0, length = 0;
  for (let frame = 0; frame < run.frames; frame++) {
    const steps = run.edges[frame + 1] - run.edges[frame];
    sum += (run.fired(frame, device) || 0) * steps;
    length += steps;
    const right = at(run.edges[frame + 1]);
    if (right - left < 1 && frame < run.frames - 1) continue;
    if (sum) found.push([left, right, sum / length]);
    [left, sum, length] = [right, 0, 0];
  }
  return found;
}

function rasterPlace(canvas, { run }, event) {
  const box = canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - RASTER.left) / (box.width - RASTER.left);
  const iteration = Math.max(0, Math.min(0.9999, share)) * run.edges[run.frames];
  const frame = run.edges.findLastIndex((edge) => edge <= iteration);
  const device = Math.floor((event.clientY - box.top) / rasterRow(run));
  return { frame: Math.min(frame, run.frames - 1), device: Math.max(0, Math.min(run.devices - 1, device)) };
}
