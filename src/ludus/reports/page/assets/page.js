// Puts the page together, and says when it is done.

// Address, name in the bar, title, and who builds it.
const SECTIONS = [
  ["overview", "Overview", "Overview", overview],
  ["notices", "Alarms", "Alarms and notes", notices],
  ["learning", "Learning", "Learning", (data) => panels(data, "learning", "There is no metrics.jsonl, or it has no rows yet.")],
  ["evaluation", "Evaluation", "Evaluation", evaluations],
  ["replays", "Replays", "Replays", replays],
  ["rewards", "Rewards", "Rewards", rewards],
  ["ratings", "Ratings", "Ratings and payoffs", ratings],
  ["behaviour", "Behaviour", "Behaviour", (data) => panels(data, "behaviour", "There is no behavior_metrics.csv: the world has no behaviour numbers, or no episode ended yet.")],
  ["optimiser", "Optimiser", "Optimiser", (data) => panels(data, "optimiser", "There is no metrics.jsonl, or it has no rows yet.")],
  ["strategy", "Strategy", "Strategy encoder", strategy],
  ["times", "Time", "Time", times],
  ["settings", "Config", "Configuration", settings],
  ["origins", "Origin", "Where it comes from", origins],
];

function controls() {
  const smoothing = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: options.smoothing, id: "smoothing",
    oninput: () => { options.smoothing = Number(smoothing.value); redrawAll(); } });
  const bands = make("input", { type: "checkbox", checked: true, id: "bands", onchange: () => { options.bands = bands.checked; redrawAll(); } });
  return make("div", { class: "controls-bar" }, make("label", {}, "smooth ", smoothing), make("label", {}, bands, " bands"));
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const worlds = [...new Set(data.runs.map((run) => run.world).filter(Boolean))].join(", ");
  const count = data.runs.length === 1 ? "1 run" : `${data.runs.length} runs`;
  page.append(make("header", {}, make("p", { class: "mark" }, "LUDUS"),
    make("h1", {}, data.groups.map((group) => group.label).join(", ")),
    make("p", { class: "sub" }, `${worlds ? `${worlds}, ` : ""}${count}, ${data.made}`)));
  const links = make("div", { class: "links" });
  page.append(make("nav", {}, links, controls()));
  appendSections(page, links, SECTIONS, data);
  const seeds = data.groups.some((group) => group.runs.length > 1) ? "from the lowest to the highest seed, and " : "";
  page.append(make("footer", {}, `Made by ludus report. Bands reach ${seeds}over all that was merged into a point.`));
  redrawAll();
  const wanted = location.hash && document.getElementById(location.hash.slice(1).replace(/^replay-\d+$/, "replays"));
  if (wanted) wanted.scrollIntoView();
  document.documentElement.dataset.ready = "yes";
}
start();
