// The sections of the page. Each takes the document and returns what stands in it; what is missing says so.

const missing = (text) => make("p", { class: "card missing" }, text);

// Appends every section that the document has something for, and a link to it; a section that fails leaves the others.
function appendSections(page, links, sections, data) {
  for (const [id, name, title, build] of sections) {
    const section = make("section", { id }, make("h2", {}, title));
    try {
      const content = build(data);
      if (content === null) continue;
      section.append(...[content].flat(Infinity).filter(Boolean));
    } catch (error) {
      noteProblem(`${id}: ${error.stack || error}`);
      section.append(missing(`This section could not be drawn: ${error.message}`));
    }
    links.append(make("a", { href: `#${id}` }, name));
    page.append(section);
  }
}

// Puts a page together from the document in its file, and says when it is done. What is said of it: title, subtitle,
// sections, footer, and perhaps the smoothing of its curves and tools beside the links.
function startPage(describe) {
  const data = JSON.parse(document.getElementById("data").textContent), page = document.getElementById("page");
  const said = describe(data), links = make("div", { class: "links" });
  options.smoothing = said.smoothing ?? options.smoothing;
  page.append(make("header", {}, make("p", { class: "mark" }, "LUDUS"), make("h1", {}, said.title), make("p", { class: "sub" }, said.subtitle)),
    make("nav", {}, links, said.tools));
  appendSections(page, links, said.sections, data);
  page.append(make("footer", {}, said.footer));
  redrawAll();
  const wanted = location.hash && document.getElementById(location.hash.slice(1).replace(/^replay-\d+$/, "replays"));
  if (wanted) wanted.scrollIntoView();
  document.documentElement.dataset.ready = "yes";
}
const grid = (...children) => make("div", { class: "grid" }, children);
// Whether a setting is switched off in all runs; false where the configuration does not say.
function isOff(data, path) {
  const rows = data.settings[path.includes(".") ? path.split(".")[0] : "general"] || [];
  const row = rows.find(([name]) => name === path);
  return Boolean(row) && row[1].every((value) => value === "null" || value === "[]");
}
// The colour of a group: that of its first run where runs have colours, else by its place.
const groupColor = (data, group) => color(data.groups[group].color ?? group);
const known = (rows) => rows.map((row, group) => ({ row, group })).filter(({ row }) => row);

function mean(values) {
  const found = values.filter(isNumber);
  return found.length ? found.reduce((sum, value) => sum + value, 0) / found.length : null;
}
function spread(values, format) {
  const found = values.filter(isNumber);
  if (!found.length) return ["-", ""];
  const low = format(Math.min(...found)), high = format(Math.max(...found));
  return [format(mean(found)), low === high ? "" : `${low} to ${high}`];
}

// The numbers of one group of runs, large.
function tiles(data) {
  const runs = data.runs, tiles = [];
  if (data.groups.length === 1) {
    const [steps, stepsNote] = spread(runs.map((run) => run.env_steps), (value) => shortNumber(value));
    const before = Math.max(...runs.map((run) => run.parent_env_steps));
    tiles.push(tile("Env steps", steps, before ? `${shortNumber(before)} of them by the run it branched off` : stepsNote));
    const [trained, trainedNote] = spread(runs.map((run) => run.training_s), duration);
    const [took, tookNote] = spread(runs.map((run) => run.wall_s), duration);
    if (took === "-") tiles.push(tile("Training time", trained, trainedNote));
    else tiles.push(tile("Wall time", took, [tookNote, trained !== "-" && `training ${trained}`].filter(Boolean).join("; ")));
    const [speed, speedNote] = spread(runs.map((run) => run.steps_per_s), (value) => shortNumber(value, 3));
    tiles.push(tile("Steps per second", speed, speedNote));
    const [best, bestNote] = spread(runs.map((run) => run.best_score), (value) => shortNumber(value, 3));
    tiles.push(tile("Best score", best, bestNote));
    const found = data.evaluations[0];
    if (found && found.lines.win_rate) {
      const last = found.labels.map((label) => [label, (found.lines.win_rate[label][1] || []).at(-1)]).filter(([, value]) => isNumber(value));
      last.sort((a, b) => a[1] - b[1]);
      if (last.length) tiles.push(tile("Hardest opponent", last[0][0] || "-", `${percent(last[0][1])} won`));
    }
    const payoffs = (data.payoffs[0] || []).at(-1), evaluated = payoffs && Object.values(payoffs.agent)[0];
    const rating = evaluated || (payoffs && payoffs.learner.filter(Boolean).at(-1));
    const where = `${evaluated ? " of the best agent" : " at the end"}${payoffs && payoffs.mode ? ` in ${payoffs.mode}` : ""}`;
    if (rating) tiles.push(tile(`Rating${where}`, wholeNumber(rating[0]), `${wholeNumber(rating[1])} to ${wholeNumber(rating[2])}; 0 is the mean`));
  }
  return tiles;
}

function overview(data) {
  const runs = data.runs, found = tiles(data), large = found.length ? make("div", { class: "tiles" }, found) : null;
  if (live.isOn) return large; // the list of runs has the rest
  const header = ["run", "group", "world", "seed", "state", "env steps", "wall time", "training", "steps/s", "best score", "last score", "commit"];
  const rows = runs.map((run) => make("tr", {},
    make("td", {}, make("i", { class: `swatch ${color(data.groups.findIndex((group) => group.label === run.group))}` }), run.name),
    make("td", {}, run.group), make("td", {}, run.world || "-"), make("td", { class: "number" }, run.seed === null ? "-" : run.seed),
    make("td", {}, make("span", { class: `state ${run.state.replace(" ", "-")}` }, run.state)),
    make("td", { class: "number" }, wholeNumber(run.env_steps)), make("td", { class: "number" }, duration(run.wall_s)), make("td", { class: "number" }, duration(run.training_s)),
    make("td", { class: "number" }, wholeNumber(run.steps_per_s)), make("td", { class: "number" }, shortNumber(run.best_score)),
    make("td", { class: "number" }, shortNumber(run.last_score)), make("td", {}, run.commit ? run.commit.slice(0, 8) : "-")));
  const interval = (score) => (score ? `${shortNumber(score[0])} (${shortNumber(score[1])} to ${shortNumber(score[2])})` : "-");
  const means = data.groups.filter((group) => group.scores.best).map((group) => make("tr", { class: "mean" },
    make("td", { colspan: header.length - 3 }, make("i", { class: `swatch ${color(data.groups.indexOf(group))}` }),
      `${group.label}: mean of ${group.runs.length} seeds with Student's 95 % interval`),
    make("td", { class: "number" }, interval(group.scores.best)), make("td", { class: "number" }, interval(group.scores.last)), make("td", {})));
  return [large, tableOf(header, rows, means)];
}

// The curves that tell most, beside the newest match.
function now(data) {
  if (!live.isOn) return null;
  const scores = scoreSeries(data);
  const chosen = ["episode_return", scores.length ? "" : "rating_elo"].map((name) => data.panels.find((panel) => panel.name === name)).filter(Boolean);
  if (!chosen.length && !scores.length) return missing("Nothing was written yet.");
  return [chosen.map((panel) => panelChart(data, panel)),
    scores.length ? lineChart({ name: "score", title: "Score", note: "Of the evaluations, by which the best agent is kept", series: scores }) : null];
}
const scoreSeries = (data) => known(data.evaluations).map(({ row: { score: [x, y, low, high] }, group }) => (
  { label: data.groups[group].label, cls: groupColor(data, group), x, y, ...(low.some(isNumber) ? { low, high } : {}) }));

function notices(data) {
  if (!data.notices) return missing("The doctor is examining the runs."); // the slowest part of a live document
  if (!data.notices.length) return make("p", { class: "card calm" }, "No alarms: nothing was rolled back or skipped, and the doctor found nothing.");
  return make("ul", { class: "card notices" }, data.notices.map((notice) => make("li", { class: notice.level },
    make("b", {}, notice.level), make("span", {}, notice.run), make("p", {}, notice.text,
      notice.details.length ? make("details", {}, make("summary", {}, "evidence and remedy"), make("ul", {}, notice.details.map((line) => make("li", {}, line)))) : null),
    isNumber(notice.env_steps) ? make("small", {}, `at ${wholeNumber(notice.env_steps)} steps`) : null)));
}

function panels(data, section, without) {
  const found = data.panels.filter((panel) => panel.section === section);
  if (!found.length) return missing(without);
  return grid(found.map((panel) => panelChart(data, panel)));
}
function panelChart(data, panel) {
  return lineChart({ name: panel.name, title: panel.title, note: panel.note, unit: panel.unit, phases: data.groups.flatMap((group) => group.phases),
    series: known(panel.curves).map(({ row, group }) => ({ label: data.groups[group].label, cls: groupColor(data, group), ...row })) });
}

const evaluationChoice = { number: null, group: null };
function evaluations(data) {
  const found = known(data.evaluations);
  if (!found.length) return missing("No evaluation was made: evaluation_results.csv is not there or has no rows yet.");
  const titles = Object.assign({}, ...found.map(({ row }) => row.numbers));
  const numbers = [...new Set(found.flatMap(({ row }) => Object.keys(row.numbers)))];
  const severalSeeds = data.groups.some((group) => group.runs.length > 1);
  const state = evaluationChoice; // stays when a live page draws this again
  if (!numbers.includes(state.number)) state.number = numbers[0];
  if (!found.some(({ group }) => group === state.group)) state.group = found[0].group;
  const holder = make("div", { class: "grid" });
  const isShare = () => /rate$|share$/.test(state.number) && state.number !== "attack_rate";
  const choice = (label, values, texts, now, chosen) => make("label", {}, `${label} `, make("select", {
    "aria-label": label, onchange: (event) => { chosen(event.target.value); drawIn("evaluation", show); },
  }, values.map((value, index) => make("option", { value, selected: String(value) === String(now) }, texts[index]))));
  function show() {
    const format = isShare() ? percent : (value) => shortNumber(value);
    const row = data.evaluations[state.group], kind = row.kind;
    const labels = row.labels, lines = row.lines[state.number] || {};
    const [title, unit] = titles[state.number];
    const every = [...new Set(found.flatMap((each) => each.row.labels))];
    const last = (each, label) => {
      const line = (each.row.lines[state.number] || {})[label];
      const i = line ? line[0].length - 1 : -1;
      return i >= 0 && isNumber(line[1][i]) ? { value: line[1][i], low: line[2][i], high: line[3][i] } : null;
    };
    const rows = every.map((label) => ({
      label: label || "the agent",
      bars: found.map((each) => {
        const bar = last(each, label);
        return bar && { cls: groupColor(data, each.group), text: format(bar.value), ...bar,
          title: `${data.groups[each.group].label}: ${format(bar.value)}${isNumber(bar.low) ? `, ${format(bar.low)} to ${format(bar.high)}` : ""}` };
      }),
    })).sort((a, b) => (b.bars[0] ? b.bars[0].value : -Infinity) - (a.bars[0] ? a.bars[0].value : -Infinity));
    const values = rows.flatMap((each) => each.bars.filter(Boolean).flatMap((bar) => [bar.value, bar.low, bar.high])).filter(isNumber);
    const limits = isShare() ? [0, 1] : [Math.min(0, ...values), Math.max(0, ...values)];
    const hasRange = rows.some((each) => each.bars.some((bar) => bar && isNumber(bar.low)));
    const pooled = severalSeeds ? (state.number === "win_rate" ? "95 % intervals, matches of all seeds together" : "mean and range over seeds")
      : hasRange ? "95 % intervals" : "";
    const note = [kind && `by ${kind}`, found.length > 1 && data.groups[state.group].label, labels.length < 5 && pooled].filter(Boolean).join(", ");
    holder.replaceChildren(
      barChart({ title: `${title} at the last evaluation`, name: "last-evaluation", unit, note: pooled, rows, limits }),
      lineChart({ title: `${title} over time`, name: "evaluation", unit, note, big: true, format, range: isShare() ? [0, 1] : null,
        series: labels.filter((label) => lines[label] && lines[label][1].some(isNumber)).map((label, index) => {
          const [x, y, low, high] = lines[label];
          return { label: label || "the agent", cls: color(index), x, y, ...(labels.length < 5 ? { low, high } : {}) };
        }) }),
      lineChart({ title: "Score", name: "score", note: `By which the best agent is kept${severalSeeds ? "; mean and range over seeds" : ""}`,
        series: scoreSeries(data) }));
  }
  show();
  return [make("div", { class: "choices" },
    choice("number", numbers, numbers.map((name) => titles[name].filter(Boolean).join(", ")), state.number, (value) => { state.number = value; }),
    found.length > 1 ? choice("runs", found.map(({ group }) => group), found.map(({ group }) => data.groups[group].label), state.group, (value) => { state.group = Number(value); }) : null),
  holder];
}

function rewards(data) {
  const found = known(data.rewards);
  if (!found.length) return missing("There is no reward_breakdown.csv, or it has no rows yet.");
  const palette = [...new Set(found.flatMap(({ row }) => Object.keys(row.terms)))];
  return grid(found.map(({ row, group }) => stackChart({
    palette,
    title: `Reward terms${found.length > 1 ? `: ${data.groups[group].label}` : ""}`,
    note: "Weighted, per 1,000 env steps; gains stack upward, costs downward, the line is their sum", ...row,
  })));
}

function ratings(data) {
  const found = known(data.payoffs).flatMap(({ row, group }) => row.map((each) => ({ row: each, group })))
    .map((each, place) => ({ ...each, cls: data.groups.length > 1 ? groupColor(data, each.group) : color(place),
      label: [data.groups[each.group].label, each.row.mode].filter(Boolean).join(" ") }));
  if (!found.length && isOff(data, "opponents") && isOff(data, "curriculum")) return null;
  if (!found.length) return missing("There is no opponents.csv, or no match was played yet: ratings and payoffs are made from it.");
  const ratingLines = found.map(({ row, cls, label: name }) => {
    const places = row.learner.map((rating, i) => [rating, i]).filter(([rating]) => rating);
    return { label: name, cls, x: places.map(([, i]) => row.ends[i]),
      y: places.map(([rating]) => rating[0]), low: places.map(([rating]) => rating[1]), high: places.map(([rating]) => rating[2]) };
  }).filter((line) => line.x.length);
  const bars = found.map(({ row, cls, label: name }) => {
    const evaluated = Object.keys(row.agent).length > 0;
    const players = Object.entries(evaluated ? row.agent : row.rated);
    const last = row.learner.findLastIndex(Boolean);
    const learner = evaluated ? players[0][0] : `learner at ${shortNumber(row.ends[last], 3)}`;
    if (!evaluated && last >= 0) players.push([learner, row.learner[last]]);
    if (players.length < 2) return null;
    players.sort((a, b) => b[1][0] - a[1][0]);
    const all = players.flatMap(([, rating]) => rating);
    return barChart({ title: `Ratings${found.length > 1 ? `: ${name}` : ""}`,
      note: `Bradley-Terry over ${evaluated ? "the best agent's evaluation" : "all training matches"} with 95 % intervals; 400 points are odds of ten to one`,
      limits: [Math.min(0, ...all), Math.max(0, ...all)],
      rows: players.map(([label, [value, low, high]]) => ({ label, bars: [{ cls: label === learner ? cls : "plain", value, low, high,
        text: wholeNumber(value), title: `${wholeNumber(low)} to ${wholeNumber(high)}` }] })) });
  });
  const maps = found.map(({ row, label: name }) => heatMap({
    title: `Payoffs${found.length > 1 ? `: ${name}` : ""}`,
    note: "Share of points in training matches, in percent, by opponent and by the learner's env steps; draws are half a point",
    columns: row.ends.map((end) => shortNumber(end, 2)),
    rows: row.opponents.map((label, i) => ({ label, cells: row.score[i].map((share, k) => (isNumber(share)
      ? { share, title: `${label}: ${percent(share)} of ${wholeNumber(row.matches[i][k])} matches` } : null)) })),
  }));
  return grid(ratingLines.length ? lineChart({ title: "Rating over time", name: "rating",
    note: "Of the learner at each time, Bradley-Terry over all training matches with 95 % intervals; the mean of all players is 0", series: ratingLines }) : null, bars, maps);
}

function strategy(data) {
  const curves = data.panels.some((panel) => panel.section === "strategy");
  const found = known(data.latents);
  if (!curves && !found.length && isOff(data, "policy.strategy")) return null;
  if (!curves && !found.length) return missing("There is no strategy_analysis.csv: the policy has no strategy encoder.");
  const maps = found.map(({ row, group }) => scatterChart({ title: `Map of latents: ${row.run}`,
    note: "What the encoder makes of what it sees; a point a frame or match, coloured by the opponent's style", ...row }));
  const probes = found.filter(({ row }) => row.times_s.length).map(({ row, group }) => lineChart({
    title: `Telling the opponent: ${row.run}`, name: "probe", xUnit: "s", format: percent, range: [0, 1],
    note: `Share of matches whose style a linear probe tells from what was seen so far, by seconds seen${isNumber(row.chance) ? `; guessing gives ${percent(row.chance)}` : ""}`,
    series: [{ label: "probe", cls: groupColor(data, group), x: row.times_s, y: row.accuracy.map((each) => each[0]),
      low: row.accuracy.map((each) => each[1]), high: row.accuracy.map((each) => each[2]) }] }));
  return [curves ? panels(data, "strategy", "") : null, found.length
    ? make("div", { class: "grid after" }, maps, probes)
    : missing("`ludus analyze RUN` draws a map of the latents, which then stands here.")];
}

function times(data) {
  const found = known(data.times);
  if (!found.length) return missing("No speed is known: there is no resources.csv (monitoring.resources), or it has no rows yet.");
  const speeds = found.filter(({ row }) => row.speed);
  const shares = found.filter(({ row }) => Object.keys(row.shares).length);
  return grid(
    speeds.length ? lineChart({ title: "Throughput", name: "throughput", unit: "env steps/s", note: "Of the learner's seats, without logging and evaluations",
      series: speeds.map(({ row, group }) => ({ label: data.groups[group].label, cls: groupColor(data, group), ...row.speed })) }) : null,
    shares.length ? shareBars({ title: "Where the time went", note: "Share of the time of all sessions",
      rows: shares.map(({ row, group }) => ({ label: data.groups[group].label, shares: row.shares })) }) : null,
    [...new Set(found.flatMap(({ row }) => Object.keys(row.memory)))].map((title) => lineChart({ title, name: title,
      series: found.filter(({ row }) => row.memory[title]).map(({ row, group }) => ({ label: data.groups[group].label, cls: groupColor(data, group), ...row.memory[title] })) })));
}

function replays(data) {
  if (!data.replays) return null; // a live page has the newest match
  const notes = data.replay_notes.map(missing);
  if (data.replays.length) return [grid(replayPlayer(data.replays)), notes];
  return notes.length ? notes : missing("No match was replayed; `ludus report RUN --replays 1` plays some against the hardest opponents.");
}

function logs(data) {
  if (!data.log) return null;
  const found = Object.entries(data.log).filter(([, lines]) => lines.length);
  if (!found.length) return missing("There is no run.log, or it has no lines yet.");
  const levelOf = (line) => (/\[(ERROR|ALARM)\]/.test(line) ? "bad" : line.includes("[WARN]") ? "warn" : null);
  return make("div", { class: "parts" }, found.map(([name, lines]) => make("details", { class: "card log", open: true },
    make("summary", {}, name, make("small", {}, ` last ${lines.length} lines`)),
    make("pre", { tabindex: 0, "aria-label": `log of ${name}` }, lines.map((line) => make("span", { class: levelOf(line) }, `${line}\n`))))));
}

function settings(data) {
  const parts = Object.entries(data.settings);
  if (!parts.length) return missing("The configuration is lost: there is no config.yaml.");
  const header = () => make("thead", {}, make("tr", {}, make("th", {}, "setting"), data.groups.map((group) => make("th", {}, group.label))));
  const row = ([path, values, differs]) => make("tr", { class: differs ? "differs" : null }, make("th", { scope: "row" }, path),
    values.map((value) => make("td", {}, value === null ? "-" : value)));
  const different = parts.flatMap(([, rows]) => rows.filter((each) => each[2]));
  const compared = data.groups.length > 1 && (different.length
    ? make("div", { class: "card scroll" }, make("b", {}, "What differs"), make("table", { class: "rows" }, header(), make("tbody", {}, different.map(row))))
    : missing("The runs differ in no setting."));
  return [compared || null, make("div", { class: "parts" }, parts.map(([part, rows]) => make("details", { class: "card" },
    make("summary", {}, part, make("small", {}, ` ${rows.length}`)),
    make("div", { class: "scroll" }, make("table", { class: "rows" }, data.groups.length > 1 ? header() : null, make("tbody", {}, rows.map(row)))))))];
}

function origins(data) {
  const words = (mapping) => Object.entries(mapping).map(([name, value]) => `${name} ${value}`).join(", ");
  return make("div", { class: "parts" }, data.runs.map((run) => make("details", { class: "card" }, make("summary", {}, run.name),
    make("dl", {}, [["started", run.started], ["command", run.command], ["commit", run.commit], ["versions", words(run.versions)],
      ["machine", words(run.machine)], ["missing", run.missing.join(", ")]]
      .filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])))));
}
