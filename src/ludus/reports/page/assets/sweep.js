// The page of a sweep: its best settings, all trials, the importance of the keys, what a score costs, and all curves.

const MOST_CURVES = 48; // of the best trials; more cannot be told apart

const trialOf = (data, number) => data.trials.find((trial) => trial.number === number);
const inOrder = (data) => data.ranking.map((number) => trialOf(data, number)).filter(Boolean);
const estimate = (trial) => (trial.value ? trial.value[0] : null);
const between = (value) => (!value ? "-" : `${shortNumber(value[0])}${isNumber(value[1]) ? ` (${shortNumber(value[1])} to ${shortNumber(value[2])})` : ""}`);
const written = (value) => (isNumber(value) ? shortNumber(value) : typeof value === "string" ? value : JSON.stringify(value));
const nameOf = (trial) => `trial ${trial.number}`;

function bestSection(data) {
  const best = trialOf(data, data.best);
  if (!best) return missing("No trial has ended with a value yet.");
  const seeds = data.sweep.seeds;
  const count = (state) => data.trials.filter((trial) => trial.state === state).length;
  const rows = data.keys.map((key) => make("tr", {}, make("td", {}, key.name), make("td", { class: "number" }, written(best.values[key.name])),
    make("td", {}, key.sweep === "choice" ? key.values.map(written).join(", ") : `${written(key.low)} to ${written(key.high)}${key.log ? ", logarithmic" : ""}`)));
  return [
    make("div", { class: "tiles" },
      tile(`Best ${readable(data.sweep.objective)}`, shortNumber(estimate(best)),
        isNumber(best.value[1]) ? `${shortNumber(best.value[1])} to ${shortNumber(best.value[2])}, 95 % over ${seeds} seeds` : "one seed: no interval"),
      tile("Trial", best.number, `${best.folder}, ${best.state}`),
      tile("Trials", data.trials.length, `${count("finished")} finished, ${count("stopped")} stopped, ${count("failed")} failed`),
      tile("Wall time", duration(data.wall_s), `${duration(data.trials.reduce((sum, trial) => sum + trial.wall_s, 0))} of training in all`)),
    tableOf(["key", "best value", "searched"], rows),
    make("p", { class: "sub" }, `Train with these settings: ludus train ${data.world} --config best.yaml`),
  ];
}

function trialsSection(data) {
  const rows = inOrder(data).map((trial) => make("tr", { class: trial.number === data.best ? "differs" : null },
    make("td", { class: "number" }, trial.number), make("td", {}, make("span", { class: `state ${trial.state === "failed" ? "not-ended" : trial.state}` }, trial.state)),
    make("td", { class: "number" }, between(trial.value)), make("td", { class: "number" }, trial.evaluations),
    make("td", { class: "number" }, wholeNumber(trial.env_steps)), make("td", { class: "number" }, duration(trial.wall_s)),
    data.keys.map((key) => make("td", { class: "number" }, written(trial.values[key.name]))),
    make("td", {}, [trial.reason, ...trial.forks.map((fork) => `forked from ${fork.source} at evaluation ${fork.evaluations}`)].filter(Boolean).join("; "))));
  const table = tableOf(["trial", "state", readable(data.sweep.objective), "evaluations", "env steps", "wall time", ...data.keys.map((key) => key.name), "note"], rows);
  table.dataset.chart = "trials";
  return table;
}

function importanceSection(data) {
  const found = data.importance, bars = found && barChart({
    name: "importance", title: "Importance", limits: [0, 1],
    note: `Share of the variance of ${readable(data.sweep.objective)} that each key explains: ${found.evaluator} of Optuna, ${found.trials} trials at evaluation ${found.evaluation}`,
    rows: Object.entries(found.keys).map(([label, value]) => ({ label, bars: [{ cls: "c0", value, text: percent(value), title: `${label}: ${percent(value)}` }] })),
  });
  const charts = data.keys.map((key) => keyChart(data, key)).filter(Boolean);
  if (!bars && !charts.length) return missing("Importance needs at least four trials with different values.");
  return grid(bars || missing("Importance needs at least four trials that were not forked, with different values, and is computed at the end."), charts);
}

// How the objective depends on one key, all else as the trials had it.
function keyChart(data, key) {
  const place = (value) => (key.sweep === "choice" ? key.values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value)) : value);
  const points = inOrder(data).filter((trial) => trial.value).map((trial) => ({ x: place(trial.values[key.name]), y: estimate(trial), trial }));
  return points.length ? dotChart({ name: `key-${key.name}`, title: key.name, unit: readable(data.sweep.objective), points, isLog: key.log, data, range: key.sweep === "choice" ? [0, key.values.length - 1] : [key.low, key.high],
    xText: (x) => (key.sweep === "choice" ? written(key.values[x]) : written(x)), xTicks: key.sweep === "choice" ? key.values.map((_, index) => index) : null }) : null;
}

function costSection(data) {
  const points = inOrder(data).filter((trial) => trial.value && trial.wall_s > 0).map((trial) => ({ x: trial.wall_s, y: estimate(trial), trial }));
  if (!points.length) return missing("No trial has ended with a value yet.");
  const front = data.front.map((number) => points.find((point) => point.trial.number === number)).filter(Boolean);
  return grid(dotChart({ name: "cost", title: `${readable(data.sweep.objective)} by cost`, unit: "wall time of all seeds", big: true, points, front, data,
    note: "The line joins the trials to which no other one is both cheaper and better", xText: duration }));
}

function curvesSection(data) {
  const shown = inOrder(data).filter((trial) => trial.curve.env_steps.length).slice(0, MOST_CURVES);
  if (!shown.length) return missing("No trial has been evaluated yet.");
  const withBands = shown.length <= 4;
  return grid(lineChart({
    name: "curves", title: `${readable(data.sweep.objective)} of all trials`, big: true,
    note: `Mean over ${data.sweep.seeds} seeds, the best trial first${withBands ? ", with 95 % intervals" : ""}${shown.length < data.trials.length ? `; ${shown.length} of ${data.trials.length} trials` : ""}`,
    series: shown.map((trial, index) => ({
      label: nameOf(trial), cls: color(index), x: trial.curve.env_steps, y: trial.curve.value.map((value) => value[0]),
      ...(withBands ? { low: trial.curve.value.map((value) => value[1]), high: trial.curve.value.map((value) => value[2]) } : {}),
    })),
  }));
}

// options: points [{x, y, trial}], front [points], range [low, high] of x, isLog, xText, xTicks; one dot per trial with its values as a title.
function dotChart(given) {
  const picture = draw("svg", { class: "plot", role: "img", "aria-label": given.title });
  const holder = make("div", { class: "holder" }, picture);
  function redraw() {
    const width = Math.max(holder.clientWidth, 220), height = given.big && width > 600 ? 420 : 210;
    const inner = { w: width - MARGIN.left - MARGIN.right - 16, h: height - MARGIN.top - MARGIN.bottom };
    const xs = given.points.map((point) => point.x), ys = given.points.map((point) => point.y);
    const scaled = given.isLog ? Math.log : (x) => x;
    const [lowX, highX] = given.range || [Math.min(...xs), Math.max(...xs)];
    const [lowY, highY] = [Math.min(...ys), Math.max(...ys)];
    const share = (value, low, high) => (high > low ? (value - low) / (high - low) : 0.5);
    const toX = (x) => MARGIN.left + 8 + inner.w * share(scaled(x), scaled(lowX), scaled(highX));
    const toY = (y) => MARGIN.top + 8 + (inner.h - 16) * (1 - share(y, lowY, highY));
    const places = given.xTicks || (given.isLog ? logTicks(lowX, highX) : ticks(lowX, highX, Math.min(5, Math.floor(inner.w / 80))));
    drawAxes(picture, { width, height, toX, toY, values: ticks(lowY, highY, 4), places, placeFormat: given.xText });
    picture.append(
      ...(given.front && given.front.length > 1 ? [draw("path", { class: "line c1", d: pathOf(given.front.map((point) => point.x), given.front.map((point) => point.y), toX, toY) })] : []),
      ...given.points.map((point) => draw("circle", {
        class: `point ${point.trial.number === given.data.best ? "c1" : "c0"}`, cx: toX(point.x).toFixed(1), cy: toY(point.y).toFixed(1),
        r: point.trial.number === given.data.best ? 6 : 4,
      }, draw("title", {}, `${nameOf(point.trial)}: ${between(point.trial.value)}; ${Object.entries(point.trial.values).map(([name, value]) => `${name} ${written(value)}`).join(", ")}`))));
  }
  charts.add(redraw);
  whenResized(holder, redraw);
  return make("figure", { class: given.big ? "card chart big" : "card chart", "data-chart": given.name },
    make("figcaption", {}, make("b", {}, given.title), make("span", { class: "unit" }, given.unit), given.note ? make("small", {}, given.note) : null), holder);
}

const SWEEP_SECTIONS = [
  ["best", "Best", "Best settings", bestSection],
  ["keys", "Keys", "Importance of each key", importanceSection],
  ["cost", "Cost", "Cost and score", costSection],
  ["curves", "Curves", "Curves of all trials", curvesSection],
  ["trials", "Trials", "All trials, the best first", trialsSection],
];

startPage((data) => {
  const { scheduler, search, seeds } = data.sweep, isPopulation = scheduler === "pbt";
  const how = isPopulation ? scheduler : `${search} search, scheduler ${scheduler}`;
  return { title: data.name, sections: SWEEP_SECTIONS, smoothing: 0, // curves are means already
    subtitle: `Sweep of ${data.world}: ${data.trials.length} of ${data.sweep.trials} trials, ${seeds} seed${seeds > 1 ? "s" : ""} each, ${how}; ${data.state}${data.reason ? `: ${data.reason}` : ""}; ${data.made}`,
    footer: "Made by ludus sweep. All numbers are in results.json; every trial is made of run folders, for which ludus report draws a page." };
});
