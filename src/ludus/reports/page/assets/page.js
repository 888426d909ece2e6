// The page of runs. A report draws it once from the document in its file, a live page again and again; see live.js.

const noMetrics = "There is no metrics.jsonl, or it has no rows yet.";
// Address, name in the bar, title, who builds it, and the parts of the document that it shows. What gives null is left out.
const SECTIONS = [
  ["overview", "Overview", "Overview", overview, ["runs", "evaluations", "payoffs"]],
  ["now", "Now", "Now", now, ["panels", "evaluations"]],
  ["notices", "Alarms", "Alarms and notes", notices, ["notices"]],
  ["learning", "Learning", "Learning", (data) => panels(data, "learning", noMetrics), ["panels"]],
  ["evaluation", "Evaluation", "Evaluation", evaluations, ["evaluations"]],
  ["replays", "Replays", "Replays", replays, []],
  ["rewards", "Rewards", "Rewards", rewards, ["rewards"]],
  ["ratings", "Ratings", "Ratings and payoffs", ratings, ["payoffs", "settings"]],
  ["behaviour", "Behaviour", "Behaviour", (data) => panels(data, "behaviour", "There is no behavior_metrics.csv: the world has no behaviour numbers, or no episode ended yet."), ["panels"]],
  ["optimiser", "Optimiser", "Optimiser", (data) => panels(data, "optimiser", noMetrics), ["panels"]],
  ["strategy", "Strategy", "Strategy encoder", strategy, ["panels", "latents", "settings"]],
  ["times", "Time", "Speed, memory and time", times, ["times"]],
  ["log", "Log", "Log", logs, ["log"]],
  ["settings", "Config", "Configuration", settings, ["settings"]],
  ["origins", "Origin", "Where it comes from", origins, ["runs"]],
];

function controls(...more) {
  const smoothing = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: options.smoothing, id: "smoothing",
    oninput: () => { options.smoothing = Number(smoothing.value); redrawAll(); } });
  const bands = make("input", { type: "checkbox", checked: true, id: "bands", onchange: () => { options.bands = bands.checked; redrawAll(); } });
  return make("div", { class: "controls-bar" }, make("label", {}, "smooth ", smoothing), make("label", {}, bands, " bands"), more);
}

function reportOf(data) {
  const worlds = [...new Set(data.runs.map((run) => run.world).filter(Boolean))].join(", ");
  const count = data.runs.length === 1 ? "1 run" : `${data.runs.length} runs`;
  const seeds = data.groups.some((group) => group.runs.length > 1) ? "from the lowest to the highest seed, and " : "";
  return { title: data.groups.map((group) => group.label).join(", "), subtitle: `${worlds ? `${worlds}, ` : ""}${count}, ${data.made}`,
    sections: SECTIONS, tools: controls(), footer: `Made by ludus report. Bands reach ${seeds}over all that was merged into a point.` };
}
if (document.getElementById("data")) startPage(reportOf);
