// The page of a strategy analysis: who the agent thinks it is fighting, how sure it is, and what it does differently.

const FEW_STYLES = 5; // with fewer, curves have bands
const points = (value) => (isNumber(value) ? `${signed(100 * value, 1)}` : "-");
const column = (rows, part) => rows.map((row) => row[part]);
const wide = (figure) => { figure.classList.add("wide"); return figure; };
const lede = (...text) => make("p", { class: "lede" }, text);
const whoSays = (data) => (data.belief.source === "head" ? "the agent's own classification head"
  : `a linear probe of the agent's ${data.features}, fitted to other matches (held out by match)`);

function select(label, names, chosen) {
  return make("label", {}, `${label} `, make("select", { "aria-label": label, onchange: (event) => chosen(Number(event.target.value)) },
    names.map((name, index) => make("option", { value: index }, name))));
}

function verdictSection(data) {
  const notes = data.notes.filter((note) => !data.verdict.some((each) => each.text.includes(note)));
  return [make("div", { class: "verdicts" }, data.verdict.map((each) => make("div", { class: `card verdict ${each.level}` },
    make("span", {}, each.question), make("b", {}, each.answer), make("p", {}, each.text)))),
  notes.length ? make("ul", { class: "card notices after" }, notes.map((note) => make("li", { class: "info" }, make("b", {}, "note"), make("p", {}, note)))) : null];
}

function whoSection(data) {
  const { belief, styles, times_s: times } = data;
  const holder = make("div", { class: "grid" });
  const state = { style: 0, match: 0 };
  const own = () => belief.matches.filter((match) => match.style === state.style);
  const kinds = make("span", {});
  function show() {
    const match = own()[state.match], rows = match.probabilities;
    const right = rows.filter((row) => row.indexOf(Math.max(...row)) === state.style).length;
    holder.replaceChildren(beliefMap({ name: "belief", classes: belief.classes, times: times.slice(0, rows.length), rows,
      title: `One match against ${styles[state.style]}`, truth: [[0, state.style, styles[state.style]]],
      note: `The ${match.kind} match of this style. The darker, the likelier; the frame is the true opponent. Right at ${right} of ${rows.length} times.` }));
    redrawAll();
  }
  function choose() {
    state.match = 0;
    kinds.replaceChildren(select("match", own().map((match) => match.kind), (value) => { state.match = value; show(); }));
    show();
  }
  choose();
  return [lede(`Probabilities of ${whoSays(data)}.`),
    make("div", { class: "choices" }, select("opponent", styles, (value) => { state.style = value; choose(); }), kinds), holder,
    make("div", { class: "grid after" }, confusionMatrix({ name: "confusion", title: "All matches: what it thinks against each style", styles, classes: belief.classes, times, shares: belief.confusion_by_time,
      note: "Mean probability in percent over the matches of a style at one time of the match; the diagonal is right. Move the slider to let time pass." }),
    wide(probeChart(data)))];
}

function probeChart(data) {
  const names = { trained: `its ${data.features}`, untrained: "same networks, untrained", observation: "current frame alone" };
  const series = Object.entries(data.probes).map(([kind, probe], index) => ({ label: names[kind] || kind, cls: color(index), x: data.times_s,
    y: column(probe.by_time, "estimate"), low: column(probe.by_time, "low"), high: column(probe.by_time, "high") }));
  series.push({ label: "chance", cls: "plain", x: data.times_s, y: data.times_s.map(() => data.chance) });
  return lineChart({ name: "probe", title: "How much there is to know, by seconds seen", xUnit: "s", format: percent, range: [0, 1], series,
    note: "Accuracy of a linear probe from one frame on held-out matches, 95 % intervals; training counts as far as it is above the other lines" });
}

function switchSection(data) {
  if (!data.switching.length) return null;
  const { belief } = data, holder = make("div", { class: "grid" });
  function show(index) {
    const match = data.switching[index];
    holder.replaceChildren(beliefMap({ name: "switching", classes: belief.classes, times: match.times_s, rows: match.probabilities,
      title: `Match against ${match.opponent}, which switches its style ${match.styles.length === 2 ? "once" : `${match.styles.length - 1} times`}`,
      truth: match.styles.map(([start, name]) => [start, belief.classes.indexOf(name), name]),
      note: "Dashed lines are switches, frames the style that it follows. A style without a frame is not among those that were analysed." }));
    redrawAll();
  }
  show(0);
  const { drift } = data;
  const after = drift && lineChart({ name: "drift", title: "Around a switch", xUnit: "s", format: percent, range: [0, 1],
    note: `Mean probability by the probe over ${drift.switches} switches at 0 s`, phases: [[0, "switch"]],
    series: [["new_style", "the new style"], ["old_style", "the old style"]].map(([name, label], index) => ({ label, cls: color(index), x: drift.times_s, y: drift[name] })) });
  return [data.switching.length > 1 ? make("div", { class: "choices" }, select("match", data.switching.map((match) => `${match.styles.length - 1} switches, match ${match.match + 1}`), show)) : null,
    holder, after ? make("div", { class: "grid after" }, wide(after)) : null];
}

function sureSection(data) {
  const { belief, styles, times_s: x } = data, few = styles.length < FEW_STYLES;
  const curves = (rows) => styles.map((label, index) => ({ label, cls: color(index), x, y: column(rows[index], "estimate"),
    ...(few ? { low: column(rows[index], "low"), high: column(rows[index], "high") } : {}) }));
  const mean = (text) => `${text}; mean over the matches of a style${few ? ", 95 % intervals" : ""}`;
  const said = belief.calibration.map((bin) => 100 * bin.said), tens = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
  return [lede(`On average ${whoSays(data)} gives the likeliest style ${sharp(belief.said)} and is right in ${between(belief.right, sharp)} of the frames.`),
    grid(lineChart({ name: "top", title: "Certainty over the match", xUnit: "s", format: percent, range: [0, 1], series: curves(belief.top), note: mean("Probability of the style that it thinks likeliest") }),
      lineChart({ name: "entropy", title: "Doubt over the match", unit: "bits", xUnit: "s", range: [0, Math.log2(belief.classes.length)], series: curves(belief.entropy_bits),
        note: mean(`Entropy of the probabilities: 0 is certain, ${Math.log2(belief.classes.length).toFixed(2)} knows nothing`) }),
      lineChart({ name: "calibration", title: "Is it right when it is sure?", xUnit: "% said", format: percent, range: [0, 1],
        note: `How often it is right, by the probability that it says; on the grey line it can be taken at its word. Mean distance ${(100 * belief.calibration_error).toFixed(1)} points. Intervals count every match once`,
        series: [{ label: "is right", cls: color(0), x: said, y: belief.calibration.map((bin) => bin.right.estimate), low: belief.calibration.map((bin) => bin.right.low), high: belief.calibration.map((bin) => bin.right.high) },
          { label: "taken at its word", cls: "plain", x: tens, y: tens.map((each) => each / 100) }] }))];
}

const CONDITIONS = [["other style", "c1", "latent of a match against another style"], ["same style", "plain", "of another match against the same style (control)"], ["zeroed", "c0", "zeroed"]];

function effectBars(data) {
  const { behaviour, styles } = data, format = behaviour.are_shares ? sharp : (value) => shortNumber(value, 3);
  const bar = (name, cls, interval, title) => (isNumber(interval.estimate) ? { cls, value: interval.estimate, low: interval.low, high: interval.high,
    text: format(interval.estimate), title: `${title}: ${between(interval, format)}` } : null);
  const rows = [["all matches", (effect) => effect.mean], ...styles.map((style, index) => [style, (effect) => effect.by_style[index]])];
  const all = rows.flatMap(([, take]) => CONDITIONS.flatMap(([name]) => { const each = take(behaviour.effects[name]); return [each.estimate, each.high]; })).filter(isNumber);
  const figure = barChart({ name: "effects", title: "Its decisions on the same observations, if it took its opponent for another",
    note: `${behaviour.are_shares ? "Share of decisions (keys, choices) that must differ: total variation distance between its action probabilities" : "Mean absolute difference of its expected action"} with its own ${data.features} and with another, 95 % intervals over matches. What the style causes is the first bar beyond the control.`,
    limits: [0, Math.max(...all, 1e-6)], rows: rows.map(([label, take]) => ({ label, bars: CONDITIONS.map(([name, cls, title]) => bar(name, cls, take(behaviour.effects[name]), title)) })) });
  figure.append(legendOf(CONDITIONS.map(([, cls, title]) => [cls, title.replace("latent", data.features)])));
  return wide(figure);
}

function largestChanges(data) {
  const { behaviour, styles } = data, shifts = behaviour.effects["other style"].shifts;
  const lines = styles.map((style, row) => {
    const found = behaviour.actions.map((name, place) => [name, shifts[row][place]]).filter(([, shift]) => isClear(shift))
      .sort((a, b) => Math.abs(b[1].estimate) - Math.abs(a[1].estimate)).slice(0, 3);
    const said = found.map(([name, shift]) => (behaviour.are_shares ? `${name} ${signed(100 * shift.estimate, 1)} points` : `${name} ${signed(shift.estimate, 3)}`));
    return make("li", {}, make("b", {}, style), `: ${said.length ? said.join(", ") : "no action whose change is clear"}`);
  });
  return make("figure", { class: "card chart wide", "data-chart": "largest" }, caption("The actions that change most",
    `What it does more (+) or less because of its own ${data.features}, compared with that of a match against another style`), make("ul", { class: "reading" }, lines));
}

function differentSection(data) {
  const { behaviour, styles } = data, shares = behaviour.are_shares;
  const format = shares ? points : (value) => signed(value, 2), plain = shares ? sharp : (value) => shortNumber(value, 3);
  const unit = shares ? "percentage points" : "units of the action";
  return [lede("Against other opponents an agent meets other situations, so what it does differs even if it recognises nobody. The first table shows that; the rest changes nothing but what it knows of its opponent."),
    grid(differenceTable({ name: "behaviour", title: "What it does against each opponent", rows: styles, columns: behaviour.actions, values: behaviour.differences, format,
      note: `${shares ? "Share of frames in which it does this" : "Mean of what it does"}, relative to its mean over all opponents, in ${unit}. Bold: the interval excludes 0 (95 % for the whole table).`,
      hint: (row, place) => `${plain(behaviour.rates[row][place])}, mean over all ${plain(behaviour.mean[place])}, difference ${between(behaviour.differences[row][place], format)}` }),
    effectBars(data),
    differenceTable({ name: "shifts", title: "What it does because of whom it takes its opponent for", rows: styles, columns: behaviour.actions, values: behaviour.effects["other style"].shifts, format,
      note: `On the same observations: its action probabilities with its own ${data.features} less those with that of a match against another style, in ${unit}. Bold: the interval excludes 0 (95 % for the whole table).`,
      hint: (row, place) => between(behaviour.effects["other style"].shifts[row][place], format) }),
    largestChanges(data))];
}

function winSection(data) {
  const { ablation } = data;
  if (!ablation) return missing("The ablation was not played; run again without --no-ablation.");
  const conditions = [["as is", "c0"], ["zeroed", "c1"], ["shuffled", "plain"]];
  const rate = ablation.score === "win_rate", format = rate ? percent : (value) => shortNumber(value, 3);
  const rows = ablation.opponents.length > 1 ? [...ablation.opponents, ablation.mean] : ablation.opponents, all = rows.flatMap((row) => Object.values(row.scores).flatMap((each) => [each.low, each.high, each.estimate])).filter(isNumber);
  const chart = barChart({ name: "ablation", title: rate ? "Matches won with and without it" : "Return with and without it", limits: rate ? [0, 1] : [Math.min(0, ...all), Math.max(0, ...all)],
    note: `${ablation.matches} matches per opponent and condition, with the same seeds; 95 % intervals. Shuffled: its ${data.features} comes from another game.`,
    rows: rows.map((row) => ({ label: row.opponent || "all games", bars: conditions.map(([name, cls]) => {
      const score = row.scores[name], verdict = row.losses[name] ? `; ${row.losses[name].verdict}` : "";
      return { cls, value: score.estimate, low: score.low, high: score.high, text: format(score.estimate), title: `${name}: ${between(score, format)}${verdict}` };
    }) })) });
  chart.append(legendOf(conditions.map(([name, cls]) => [cls, `${data.features} ${name}`])));
  return make("div", { class: "pair" }, chart, null);
}

const PARTS = [
  ["verdict", "Verdict", "In short", verdictSection],
  ["who", "Who", "Who it thinks it is fighting", whoSection],
  ["switches", "Switches", "When the opponent changes its style", switchSection],
  ["sure", "How sure", "How sure it is", sureSection],
  ["different", "What differs", "What it does differently", differentSection],
  ["wins", "Wins", "Whether that wins matches", winSection],
];

startPage((data) => ({ title: data.agent || "agent", sections: PARTS, smoothing: 0, // curves are means already
  subtitle: `Strategy analysis in ${data.world}: ${data.styles.length} styles, ${data.matches} matches against each, ${data.made}`,
  footer: `Made by ludus analyze in ${duration(data.seconds)} on ${data.device || "this machine"}, seed ${data.seed === null ? "-" : data.seed}. All numbers are in analysis.json.` }));
