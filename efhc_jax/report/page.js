// Builds the page: a section per file, with its selection and the charts that depend on it.

function choosers(study, state, update) {
  const bar = element("div", { class: "bar" });
  for (const [position, axis] of study.axes.entries()) {
    if (axis.values.length < 2) continue;
    if (axis.name === study.hue) bar.prepend(chips(study, state, position, update));
    else bar.append(chooser(axis, state, position, update));
  }
  return bar.children.length ? bar : null;
}

function chips(study, state, position, update) {
  const buttons = study.looks.map((look, at) => {
    const color = inkFor(look.color);
    const line = drawn("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": DASHES[look.dashes] ?? "" });
    return element("button", { type: "button", class: "chip", role: "radio", onclick: () => {
      state.place[position] = at;
      update();
    } }, drawn("svg", { "aria-hidden": "true" }, line), look.label);
  });
  state.listeners.push(() => buttons.forEach((button, at) => button.setAttribute("aria-checked", at === state.place[position])));
  return element("div", { class: "chips", role: "radiogroup", "aria-label": study.hue }, buttons);
}

function chooser(axis, state, position, update) {
  const options = axis.labels.map((label, at) => element("option", { value: at }, `${axis.name} ${label}`));
  if (axis.name === "seed") options.unshift(element("option", { value: -1 }, `mean of ${axis.values.length} seeds`));
  return element("select", { "aria-label": axis.name, "data-axis": axis.name, onchange: (event) => {
    state.place[position] = Number(event.target.value);
    update();
  } }, options);
}

// The keys of the selected runs, with another value on the hue's axis if one is given.
function keys(study, place, hueValue) {
  const full = place.map((at, position) => (study.axes[position].name === study.hue && hueValue != null ? hueValue : at));
  const one = full.map((at) => Math.max(0, at)).join(",");
  const all = full.filter((_, position) => study.axes[position].name !== "seed").join(",");
  return { one, all, single: full.every((at) => at >= 0) };
}

function curvesPart(study, state) {
  const means = study.headline.seeds > 1;
  const charts = {
    accuracy: lineChart("Accuracy", "iteration", "accuracy (%)", { percent: true }),
    by_time: lineChart("Accuracy against transmission time", "cumulative transmission time", "accuracy (%)", { percent: true }),
    rate: lineChart("Transmission time per iteration", "iteration", "transmission time", { zero: true }),
    consensus: lineChart("Consensus error", "iteration", "consensus error", { log: true }),
  };
  const every = study.rates.length > 1 ? Math.round(study.rates[1] - study.rates[0]) : 1;
  const notes = { rate: every > 1 ? `Each point is the mean of ${every} iterations. ` : "", consensus: "Distance of the models from their average. " };
  state.listeners.push(() => {
    const chosen = keys(study, state.place);
    const alone = !means || chosen.single;
    for (const [name, chart] of Object.entries(charts)) {
      const lines = study.looks.map((look, at) => {
        const key = keys(study, state.place, study.hue == null ? null : at);
        const source = means && chosen.single ? study.runs[key.one]?.curves : study.curves[key.all];
        const strong = study.hue == null || key.one === chosen.one;
        const x = name === "rate" ? study.rates : study.iterations;
        return source && { x, ...source[name], label: look.label, color: inkFor(look.color), dashes: look.dashes, strong };
      }).filter(Boolean);
      const isAccuracy = name === "accuracy" || name === "by_time";
      const between = name === "by_time" && !alone ? " Accuracies between evaluations are interpolated." : "";
      const shade = alone ? (isAccuracy ? "Shade: worst to best device." : "") : "Shade: 95 % interval over seeds.";
      chart.show(lines, (notes[name] ?? "") + (lines.length ? shade + between : "This run is included only in the means."));
    }
  });
  return element("div", { class: "grid curves" }, Object.values(charts).map((chart) => chart.figure));
}

// Final accuracy, or that within the last budget, against each numeric axis.
function axesPart(study, state) {
  const budget = study.headline.columns.findLastIndex((title) => title.startsWith("accuracy within"));
  const column = Math.max(0, budget);
  const found = [];
  for (const [position, axis] of study.axes.entries()) {
    const numeric = axis.values.map((_, at) => at).filter((at) => typeof axis.values[at] === "number"); // inf is a string
    if (axis.name === "seed" || numeric.length < 2) continue;
    const left = axis.values.length > numeric.length ? " inf has no place on this axis; it is in the table above." : "";
    const chart = lineChart(`Against ${axis.name}`, axis.name, study.headline.columns[column], { percent: true, spread: true });
    const own = axis.name === study.hue;
    state.listeners.push(() => {
      const lines = (own ? study.looks.slice(0, 1) : study.looks).map((look, at) => {
        const cells = numeric.map((value) => {
          const place = [...state.place];
          place[position] = value;
          const { all } = keys(study, place, own || study.hue == null ? null : at);
          return study.headline.rows.find((row) => row.place === all).cells[column];
        });
        const [mean, low, high] = [0, 1, 2].map((part) => cells.map((cell) => cell[part]));
        const strong = own || study.hue == null || keys(study, state.place, at).one === keys(study, state.place).one;
        return { x: numeric.map((at) => axis.values[at]), mean, low: low.some((value) => value != null) ? low : null, high, strong,
          label: own ? "accuracy" : look.label, color: own ? "var(--ink)" : inkFor(look.color), dashes: own ? "-" : look.dashes };
      });
      chart.show(lines, (study.headline.seeds > 1 ? "Shade: 95 % interval over seeds." : "") + left);
    });
    found.push(chart.figure);
  }
  return found.length ? element("div", { class: "grid", style: "margin-bottom: 0.9rem" }, found) : null;
}

function headlinePart(study, state) {
  const { columns, rows, seeds } = study.headline;
  if (rows.length === 1) {
    const tiles = columns.map((title, at) => element("div", {}, element("b", {}, withInterval(rows[0].cells[at], seeds)), element("span", {}, title)));
    return element("div", { class: "tiles" }, tiles);
  }
  const axes = study.axes.filter((axis) => axis.name !== "seed");
  const body = rows.map((row) => {
    const place = row.place.split(",").map(Number);
    const names = axes.map((axis, at) => {
      const dot = axis.name === study.hue ? element("span", { class: "dot", style: `background: ${inkFor(study.looks[place[at]].color)}` }) : null;
      return element("td", { class: "name" }, dot, axis.labels[place[at]]);
    });
    return element("tr", {}, names, row.cells.map((cell) => element("td", {}, withInterval(cell, seeds))));
  });
  state.listeners.push(() => body.forEach((row, at) => row.classList.toggle("chosen", rows[at].place === keys(study, state.place).all)));
  const fewer = rows.some((row) => row.cells.some((cell) => cell[3] < seeds));
  const note = (seeds > 1 ? `Means over ${seeds} seeds ± half their 95 % interval.` : "One seed, so no intervals.")
    + (fewer ? " Seeds whose run diverged or did not reach the budget have no value; cells show how many seeds have one." : "");
  const head = [...axes.map((axis) => element("th", { class: "name", scope: "col" }, axis.name)), ...columns.map((title) => element("th", { scope: "col" }, title))];
  return element("div", {}, element("div", { class: "card scroll tall" }, element("table", { class: "figures" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body))),
    element("p", { class: "soft" }, note));
}

// The range of accuracies for the colours, without the initial models, which would dominate it.
function accuracyRange(runs) {
  const reached = (side, first) => runs.flatMap(({ curves: { accuracy } }) => accuracy[side].slice(first)).filter((value) => value != null);
  const later = reached("low", 1);
  return [least(later.length ? later : reached("low", 0), 100) / 100, most(reached("high", 0), 0) / 100];
}

function activityPart(study, state) {
  const view = activityView(accuracyRange(Object.values(study.runs)));
  const which = element("p", { class: "soft" });
  const cache = new Map();
  const flag = `${study.axes.length ? "efhc sweep" : "efhc run"} --audit`;
  const position = study.axes.findIndex((axis) => axis.name === study.hue);
  const node = element("div", {}, which, view.node);
  state.listeners.push(() => {
    const { one, single } = keys(study, state.place);
    const run = study.runs[one];
    view.node.hidden = !run;
    const names = study.axes.map((axis, at) => `${axis.name} ${axis.labels[Math.max(0, state.place[at])]}`);
    which.textContent = !run ? "This run is included only in the means, or diverged in its first iteration; choose another one."
      : (names.length ? `Shown: ${names.join(", ")}. ` : "") + (single ? "" : "Choose a seed above to see another one. ")
        + (run.diverged_at >= 0 ? `The models are not finite from iteration ${run.diverged_at}.` : "");
    if (!run) return;
    if (!cache.has(one)) cache.set(one, opened(run, study));
    view.show(cache.get(one), inkFor(study.looks[Math.max(0, state.place[position] ?? 0)].color), flag);
  });
  return node;
}

const VERDICTS = { holds: ["✓ ", "holds"], "does not hold": ["✗ ", "fails"] };

function verdict(words) {
  const [sign, kind] = VERDICTS[words] ?? ["? ", "soft"];
  return element("td", { class: kind }, sign + words);
}

function auditPart(study, state) {
  const flag = study.axes.length ? "efhc sweep --audit" : "efhc run --audit";
  const box = element("div");
  state.listeners.push(() => {
    const found = study.runs[keys(study, state.place).one]?.audit;
    if (!found) return box.replaceChildren(element("p", { class: "soft" }, study.audited ? "The audit is shown only for the first seed." : `Not recorded; ${flag} records it.`));
    const head = ["assumption or claim", "verdict", "measured"].map((title) => element("th", { scope: "col" }, title));
    const body = found.map(([name, words, figure]) => element("tr", {}, element("td", {}, name), verdict(words), element("td", {}, figure)));
    box.replaceChildren(element("div", { class: "card scroll" }, element("table", { class: "audit" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body))));
  });
  return box;
}

function pairs(rows) {
  return element("dl", { class: "setting" }, rows.map(([name, value]) => element("div", {}, element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, value))));
}

function studySection(study, number, several) {
  const state = { place: study.axes.map((axis) => (axis.name === "seed" && axis.values.length > 1 ? -1 : 0)), listeners: [] };
  const update = () => state.listeners.forEach((listener) => listener());
  const within = (make) => part(state, make);
  const section = element("section", { id: `study-${number}`, class: "study" },
    element("h2", {}, several ? study.title : "Settings"),
    element("p", { class: "soft" }, study.name), within(() => pairs(study.setting)),
    element("h3", {}, "Headline figures"), within((own) => headlinePart(study, own)),
    within((own) => choosers(study, own, update)),
    element("h3", {}, "Curves"), within((own) => axesPart(study, own)), within((own) => curvesPart(study, own)),
    element("h3", {}, "Broadcasts and links"), within((own) => activityPart(study, own)),
    element("h3", {}, "Assumptions of the theorem"), within((own) => auditPart(study, own)),
    within(() => (study.notes.length ? element("div", { class: "soft" }, element("h3", {}, "Left out of this page"), study.notes.map((note) => element("p", {}, note))) : null)),
    element("h3", {}, "Run it again"), element("pre", { class: "command" }, study.command),
    element("details", {}, element("summary", {}, "All settings as a file for --config, and provenance"), element("pre", {}, study.toml), within(() => pairs(study.origin))));
  document.getElementById("studies").append(section);
  update();
}

function claimsSection(claims) {
  const head = ["panel", "the paper says", "measured", "difference (95 % interval)", "verdict"].map((title) => element("th", { scope: "col" }, title));
  const body = claims.map((claim) => {
    const margin = claim.at_least ? ` (more than ${shown(claim.at_least)})` : "";
    const range = claim.low == null ? "" : ` (${shown(claim.low, 3)} to ${shown(claim.high, 3)})`;
    return element("tr", {}, element("td", {}, `${claim.classifier} ${claim.panel}`), element("td", {}, claim.statement + margin),
      element("td", {}, claim.quantity), element("td", {}, `${shown(claim.difference, 3)}${range}, ${claim.seeds} seeds`), verdict(claim.verdict));
  });
  const count = claims.filter((claim) => claim.verdict === "holds").length;
  document.getElementById("studies").append(element("section", { id: "claims" }, element("h2", {}, "The paper's claims"),
    element("p", {}, `${count} of ${claims.length} hold on these runs.`),
    element("div", { class: "card scroll" }, element("table", { class: "claims" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)))));
}

// A section of the page; if all of it fails, an error message replaces it.
function attempt(id, title, make) {
  try {
    make();
  } catch (error) {
    document.getElementById("studies").append(element("section", { id }, element("h2", {}, title), failure(error)));
  }
}

// Errors that occur later, while the page is in use, are shown at its top.
addEventListener("error", (event) => {
  const problems = document.getElementById("problems");
  if (event.error && !problems.children.length) problems.append(failure(event.error));
});

const values = JSON.parse(document.getElementById("values").textContent);
const entries = values.studies.map((study, number) => [`study-${number}`, study.name, () => studySection(study, number, values.studies.length > 1)]);
if (values.claims.length) entries.unshift(["claims", "The paper's claims", () => claimsSection(values.claims)]);
for (const entry of entries) attempt(...entry);
if (values.studies.length > 1) {
  document.getElementById("contents").append(element("ul", {}, entries.map(([id, name]) => element("li", {}, element("a", { href: `#${id}` }, name)))));
}
