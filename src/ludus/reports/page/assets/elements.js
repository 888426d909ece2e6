// Small helpers that everything else uses: elements, numbers for people, and a list of what went wrong.

const problems = [];
function noteProblem(text) {
  problems.push(String(text));
  document.documentElement.dataset.problems = problems.join("\n");
}
window.addEventListener("error", (event) => noteProblem(event.message || "a resource was refused"));
window.addEventListener("unhandledrejection", (event) => noteProblem(event.reason));
document.addEventListener("securitypolicyviolation", (event) => noteProblem(`refused: ${event.violatedDirective}`));

const PAINTERS = {}; // draw a moment of a replay, by world; the scripts of the worlds that are on the page fill it

const SVG = "http:" + "//www.w3.org/2000/svg"; // the name of a namespace; nothing is loaded from it

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const tile = (name, value, note) => make("div", { class: "card tile" }, make("span", {}, name), make("b", {}, value), make("small", {}, note || ""));
function tableOf(header, ...rows) {
  return make("div", { class: "card scroll" }, make("table", { class: "rows unbroken" },
    make("thead", {}, make("tr", {}, header.map((name) => make("th", {}, name)))), make("tbody", {}, rows)));
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function trimmed(value, digits) {
  return String(Number(value.toPrecision(digits)));
}
function shortNumber(value, digits = 4) {
  if (!isNumber(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  if (size >= 1e9) return trimmed(value / 1e9, digits) + "G";
  if (size >= 1e6) return trimmed(value / 1e6, digits) + "M";
  if (size >= 1e4) return trimmed(value / 1e3, digits) + "k";
  return trimmed(value, digits);
}
const wholeNumber = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en-US") : "-");
const percent = (value) => (isNumber(value) ? `${Math.round(100 * value)} %` : "-");
function duration(seconds) {
  if (!isNumber(seconds)) return "-";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`; // as the console of a run shows it, see loggers/progress.py
  const whole = Math.round(seconds), two = (value) => String(Math.floor(value)).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two((whole % 3600) / 60)} min`;
}
const readable = (name) => String(name).replaceAll("_", " ");
const COLORS = 24; // in page.css; lines beyond are dashed
const color = (index) => `c${index % COLORS}${index >= COLORS ? " again" : ""}`;

// Nice round ticks that cover about `count` steps between two numbers.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) found.push(place * step);
  return found;
}
function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((last - first) / 5));
  const found = [];
  for (let power = first; power <= last; power += every) {
    for (const factor of last - first <= 2 ? [1, 2, 5] : [1]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found.length ? found : [low, high];
}

// Options that people choose for the whole page; charts draw themselves anew when they change.
const options = { smoothing: 0.6, bands: true };
const FEW_POINTS = 60; // a curve of fewer is shown as it is
const charts = new Set();

// A live page draws its sections again and again. A chart of the same name is then updated in place, so that hidden lines,
// the scale and the cursor stay as people have set them. A report draws everything once.
const live = { isOn: false, section: "", charts: new Map() };
function drawIn(section, build) {
  const before = live.section;
  live.section = section;
  try { return build(); } finally { live.section = before; }
}
const chartKey = (given) => `${live.section}/${given.name || given.title}`;
// Returns the chart that was drawn before, with what is given now; null if there is none.
function drawnBefore(given) {
  const found = live.isOn && live.charts.get(chartKey(given));
  if (!found) return null;
  found.isUsed = true;
  found.update(given);
  return found.figure;
}
function drawnNow(given, figure, redraw, update, forget) {
  if (live.isOn) live.charts.set(chartKey(given), { figure, redraw, update, forget, isUsed: true, isNew: true });
  return figure;
}
// Draws the new charts of a section that was just put on the page, and forgets those that it no longer has.
function settle(section) {
  for (const [key, chart] of live.charts) {
    if (!key.startsWith(`${section}/`)) continue;
    if (!chart.isUsed) { chart.forget(); live.charts.delete(key); } else if (chart.isNew) chart.redraw();
    chart.isUsed = chart.isNew = false;
  }
}
// Draws again whenever an element has become wider or narrower. In the next frame: drawing changes its height.
function whenResized(element, redraw) {
  let width = null;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    requestAnimationFrame(redraw);
  });
  observer.observe(element);
  return () => observer.disconnect();
}
const redrawAll = () => charts.forEach((chart) => chart());
const cursorListeners = new Set();
