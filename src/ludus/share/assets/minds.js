// What an agent thinks, while it plays: which strategy it believes its opponent to follow, over the last seconds, if it has a
// strategy encoder; and how likely it is to press each key.

const LIVE = {}; // live matches, by world; the script of a world, which comes next, puts itself there

const MIND_STEPS = 240; // of the past that is shown
const MOST_CLASSES = 8; // the most likely ones; others are drawn as one

// Probabilities of an action's alternatives, from the parameters of its distribution: of each button, or of all choices one
// after the other; null for continuous actions.
function actionChances(parameters, { kind, counts }) {
  if (kind === "box") return null;
  if (kind === "multi_binary") return Array.from(parameters, (logit) => 1 / (1 + Math.exp(-logit)));
  const chances = [];
  for (let first = 0, k = 0; k < counts.length; first += counts[k], k++) {
    const logits = parameters.slice(first, first + counts[k]), most = Math.max(...logits), powers = Array.from(logits, (logit) => Math.exp(logit - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    chances.push(...powers.map((power) => power / sum));
  }
  return chances;
}

function makeReading(world, data, seat) {
  let history = [], classes = null, chances = null;
  const title = make("h3", { class: `team-${seat}` }), chart = make("canvas", { class: "mind-chart", role: "img" });
  const legend = make("div", { class: "legend" }), bars = make("div", { class: "bars" }), note = make("p", { class: "sub" });
  const element = make("div", { class: "mind" }, title, chart, legend, bars, note);

  function drawHistory() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), width = Math.max(chart.clientWidth, 120), height = 92;
    chart.width = Math.round(width * ratio);
    chart.height = Math.round(height * ratio);
    const pen = chart.getContext("2d"), style = getComputedStyle(chart);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const means = classes.map((_, k) => history.reduce((sum, row) => sum + row[k], 0));
    const order = means.map((_, k) => k).sort((a, b) => means[b] - means[a]).slice(0, MOST_CLASSES);
    const base = history.map(() => 0), step = width / (MIND_STEPS - 1), from = MIND_STEPS - history.length;
    for (const k of [...order].sort((a, b) => a - b)) {
      pen.fillStyle = style.getPropertyValue(`--k${k % 12}`);
      pen.beginPath();
      history.forEach((row, at) => { const y = height * (1 - base[at]); if (at) pen.lineTo((from + at) * step, y); else pen.moveTo((from + at) * step, y); });
      for (let at = history.length - 1; at >= 0; at--) { base[at] += history[at][k]; pen.lineTo((from + at) * step, height * (1 - base[at])); }
      pen.fill();
    }
    const now = history[history.length - 1];
    legend.replaceChildren(...order.sort((a, b) => now[b] - now[a]).map((k) => make("span", { class: "key" },
      make("i", { class: `swatch c${k % 12}` }), `${readable(classes[k])} ${percent(now[k])}`)));
  }

  function drawBars() {
    bars.replaceChildren(...chances.map(([label, chance]) => {
      const bar = make("span", { class: `bar team-fill-${seat}` });
      bar.style.width = `${100 * Math.min(Math.max(chance, 0), 1)}%`;
      return make("div", { class: "bar-row" }, make("span", { class: "bar-label" }, label),
        make("div", { class: "bar-line" }, make("div", { class: "bar-lane" }, bar), make("em", {}, percent(chance))));
    }));
  }

  return {
    clear() { history = []; classes = null; chances = null; },
    // Right after the policy has acted for the seat.
    add(policy) {
      const found = policy.readout(seat), probabilities = actionChances(policy.parameters(), data.engine.description.action);
      if (found) {
        classes = found.classes;
        history.push(Array.from(found.probabilities));
        if (history.length > MIND_STEPS) history.shift();
      }
      chances = probabilities ? world.chances(probabilities, data.live) : null;
    },
    draw(name, rate) {
      title.textContent = name;
      chart.hidden = legend.hidden = !history.length;
      note.textContent = history.length ? `How it reads its opponent, over the last ${Math.round(MIND_STEPS / rate)} s; below, its next keys` : chances ? "How likely it is to press each key next" : "It shows nothing that could be drawn";
      chart.setAttribute("aria-label", `strategies that ${name} sees in its opponent`);
      if (history.length) drawHistory();
      if (chances) drawBars();
      return element;
    },
  };
}
