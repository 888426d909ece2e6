// A chart of lines with bands: hover or arrow keys read values, names switch lines, a logarithmic scale where it can be.

const MARGIN = { left: 52, right: 14, top: 10, bottom: 26 };

// Exponential smoothing that begins at the first value, in the manner of a running mean.
function smoothed(values, weight) {
  if (!weight || !values || values.length < FEW_POINTS) return values;
  let sum = 0, norm = 0;
  return values.map((value) => {
    if (!isNumber(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}

function pathOf(x, y, toX, toY) {
  let path = "", pen = "M";
  for (let i = 0; i < x.length; i++) {
    if (!isNumber(y[i])) { pen = "M"; continue; }
    path += `${pen}${toX(x[i]).toFixed(1)} ${toY(y[i]).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function bandOf(x, low, high, toX, toY) {
  const known = x.map((_, i) => i).filter((i) => isNumber(low[i]) && isNumber(high[i]));
  if (known.length < 2) return "";
  const upper = known.map((i) => `${toX(x[i]).toFixed(1)} ${toY(high[i]).toFixed(1)}`);
  const lower = known.map((i) => `${toX(x[i]).toFixed(1)} ${toY(low[i]).toFixed(1)}`).reverse();
  return `M${upper.join("L")}L${lower.join("L")}Z`;
}

// Both ends of an axis over some places, and its ticks; a single place is in the middle and the only tick.
function across(xs, count) {
  const first = Math.min(...xs), last = Math.max(...xs);
  return first < last ? [first, last, ticks(first, last, count)] : [first - 1, first + 1, [first]];
}

function nearest(x, wanted) {
  let low = 0, high = x.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] < wanted) low = middle; else high = middle;
  }
  return Math.abs(x[low] - wanted) <= Math.abs(x[high] - wanted) ? low : high;
}

function resize(picture, width, height) {
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
}
// Empties a picture and draws its axes: a rule for each of `values`, which are written at the left, and `places` below.
function drawAxes(picture, { width, height, toX, toY, values, format = (value) => shortNumber(value), places, placeFormat = (place) => shortNumber(place, 3) }) {
  resize(picture, width, height);
  picture.replaceChildren(
    ...values.flatMap((value) => [
      draw("line", { class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(value), y2: toY(value) }),
      draw("text", { class: "tick", x: MARGIN.left - 7, y: toY(value) + 4, "text-anchor": "end" }, format(value))]),
    ...places.map((place) => draw("text", { class: "tick", x: toX(place), y: height - 8, "text-anchor": "middle" }, placeFormat(place))));
}

// options: title, note, series [{label, cls, x, y, low, high}], phases [[x, name]], format, range [low, high], xUnit, big.
function lineChart(given) {
  const again = drawnBefore(given);
  if (again) return again;
  const format = (value) => (given.format || shortNumber)(value);
  const at = (x) => (given.xUnit ? `${shortNumber(x)} ${given.xUnit}` : `${wholeNumber(x)} steps`);
  const hidden = new Set();
  const state = { log: false, cursor: null, scale: null };
  const picture = draw("svg", { class: "plot", role: "img", "aria-label": given.title });
  const tip = make("div", { class: "tip", hidden: true });
  const holder = make("div", { class: "holder", tabindex: 0, "aria-label": `${given.title}: arrow keys read values` }, picture, tip);
  const shown = () => given.series.filter((each) => !hidden.has(each.label));
  const canBeLog = () => !given.range && given.series.every((each) => each.y.every((value) => !isNumber(value) || value > 0));
  const logButton = make("button", {
    type: "button", class: "small", "aria-pressed": "false", title: "Logarithmic scale",
    onclick: () => { state.log = !state.log; logButton.setAttribute("aria-pressed", state.log); redraw(); },
  }, "log");

  function limits(lines) {
    if (given.range) return given.range;
    let low = Infinity, high = -Infinity;
    for (const line of lines) {
      const rows = options.bands && line.low ? [line.raw, line.low, line.high] : [line.raw];
      for (const row of rows) for (const value of row) {
        if (!isNumber(value) || (state.log && value <= 0)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) return [0, 1];
    if (state.log) return low === high ? [low / 2, high * 2] : [low, high];
    if (low === high) return low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * low)];
    if (low > 0 && low < 0.4 * high) low = 0;
    if (high < 0 && high > 0.4 * low) high = 0;
    const space = (high - low || Math.abs(high) || 1) * 0.05;
    return [low === 0 ? 0 : low - space, high === 0 ? 0 : high + space];
  }

  function redraw() {
    const width = Math.max(holder.clientWidth, 220), height = given.big && width > 600 ? 420 : 210;
    const lines = shown().map((each) => ({
      ...each, raw: each.y, y: smoothed(each.y, options.smoothing),
      low: smoothed(each.low, options.smoothing), high: smoothed(each.high, options.smoothing),
    }));
    const [low, high] = limits(lines);
    const xs = given.series.flatMap((each) => [each.x[0], each.x[each.x.length - 1]]).filter(isNumber);
    const [first, last, marks] = across(xs, Math.min(5, Math.floor((width - MARGIN.left - MARGIN.right) / 70)));
    const inner = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    const toX = (x) => MARGIN.left + (inner.w * (x - first)) / (last - first);
    const share = state.log ? (y) => Math.log(Math.max(y, low) / low) / Math.log(high / low) : (y) => (y - low) / (high - low);
    const toY = (y) => MARGIN.top + inner.h * (1 - share(y));
    state.scale = { toX, toY, first, last, inner, lines };
    drawAxes(picture, { width, height, toX, toY, format, values: state.log ? logTicks(low, high) : ticks(low, high, 4), places: marks });
    for (const [start, name] of given.phases || []) {
      if (start <= first || start > last) continue;
      picture.append(draw("line", { class: "phase", x1: toX(start), x2: toX(start), y1: MARGIN.top, y2: MARGIN.top + inner.h },
        draw("title", {}, `phase ${name}`)));
    }
    if (low < 0 && high > 0 && !state.log) {
      picture.append(draw("line", { class: "zero", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(0), y2: toY(0) }));
    }
    for (const line of lines) {
      if (options.bands && line.low) {
        picture.append(draw("path", { class: `band ${line.cls}`, d: bandOf(line.x, line.low, line.high, toX, toY) }));
      }
    }
    for (const line of lines) {
      if (line.raw !== line.y) picture.append(draw("path", { class: `line raw ${line.cls}`, d: pathOf(line.x, line.raw, toX, toY) }));
    }
    for (const line of lines) {
      picture.append(draw("path", { class: `line ${line.cls}`, d: pathOf(line.x, line.y, toX, toY) }));
      if (line.x.length === 1 && options.bands && line.low && isNumber(line.low[0])) { // too little for a band
        picture.append(draw("line", { class: `line ${line.cls}`, x1: toX(line.x[0]), x2: toX(line.x[0]), y1: toY(line.low[0]), y2: toY(line.high[0]) }));
      }
      if (line.x.length <= 24) {
        line.x.forEach((x, i) => isNumber(line.y[i]) &&
          picture.append(draw("circle", { class: `dot ${line.cls}`, cx: toX(x), cy: toY(line.y[i]), r: 2.6 })));
      }
    }
    picture.append(draw("g", { class: "cursor" }));
    if (!lines.length) picture.append(draw("text", { class: "tick", x: width / 2, y: height / 2, "text-anchor": "middle" }, "all lines are switched off"));
  }

  function showCursor(x, withTip) {
    const layer = picture.querySelector(".cursor");
    if (!layer || !state.scale) return;
    layer.replaceChildren();
    const { toX, toY, first, last, inner, lines } = state.scale;
    if (x === null || x < first || x > last) { tip.hidden = true; return; }
    layer.append(draw("line", { class: "hair", x1: toX(x), x2: toX(x), y1: MARGIN.top, y2: MARGIN.top + inner.h }));
    if (!withTip) { tip.hidden = true; return; }
    const rows = lines.map((line) => {
      const i = nearest(line.x, x);
      return { line, i, value: line.raw[i] }; // what was measured, not what is drawn smoothly
    }).filter((row) => isNumber(row.value)).sort((a, b) => b.value - a.value);
    for (const { line, i, value } of rows) {
      layer.append(draw("circle", { class: `dot ${line.cls}`, cx: toX(line.x[i]), cy: toY(value), r: 3.5 }));
    }
    tip.replaceChildren(make("b", {}, at(rows.length ? rows[0].line.x[rows[0].i] : x)),
      ...rows.slice(0, 16).map(({ line, i, value }) => make("div", {},
        make("i", { class: `swatch ${line.cls}` }), make("span", {}, line.label), make("em", {}, format(value),
          options.bands && line.low && isNumber(line.low[i]) ? ` (${format(line.low[i])} to ${format(line.high[i])})` : ""))));
    tip.hidden = false;
    const isHigh = rows.length && toY(rows[0].value) < MARGIN.top + inner.h / 2; // it must not hide what it tells of
    tip.style.top = isHigh ? "auto" : "4px";
    tip.style.bottom = isHigh ? `${MARGIN.bottom}px` : "auto";
    const left = toX(x), space = holder.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(space, left + 14 + tip.offsetWidth > holder.clientWidth ? left - tip.offsetWidth - 14 : left + 14))}px`;
  }
  function moveTo(x) {
    state.cursor = x;
    cursorListeners.forEach((listener) => listener(x, holder));
  }
  const follow = (x, from) => showCursor(x, from === holder);
  cursorListeners.add(follow);
  holder.addEventListener("pointermove", (event) => {
    const { first, last, inner } = state.scale;
    const place = (event.clientX - picture.getBoundingClientRect().left - MARGIN.left) / inner.w;
    moveTo(place < -0.05 || place > 1.05 ? null : first + Math.min(Math.max(place, 0), 1) * (last - first));
  });
  holder.addEventListener("pointerleave", () => moveTo(null));
  holder.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const line = state.scale && state.scale.lines[0];
    if (!way || !line) return;
    const at = state.cursor === null ? (way > 0 ? -1 : line.x.length) : nearest(line.x, state.cursor);
    moveTo(line.x[Math.min(Math.max(at + way, 0), line.x.length - 1)]);
    event.preventDefault();
  });

  const legend = make("div", { class: "legend" });
  const keys = () => (given.series.length > 1 ? given.series : []).map((each) => {
    const button = make("button", {
      type: "button", class: `key ${each.cls}`, "aria-pressed": "true", title: "Switch this line; double click shows it alone",
      onclick: () => { hidden.has(each.label) ? hidden.delete(each.label) : hidden.add(each.label); sync(); },
      ondblclick: () => { given.series.forEach((other) => hidden.add(other.label)); hidden.delete(each.label); sync(); },
    }, make("i", { class: `swatch ${each.cls}` }), each.label);
    button.dataset.label = each.label;
    return button;
  });
  let labels = "";
  function name() {
    const now = JSON.stringify(given.series.map((each) => [each.label, each.cls]));
    if (labels !== now) legend.replaceChildren(...keys());
    labels = now;
    if (given.series.length > 1) figure.append(legend); else legend.remove();
    const isLog = state.log && canBeLog();
    if (isLog !== state.log) logButton.setAttribute("aria-pressed", state.log = isLog);
    heading.replaceChildren(...[make("b", {}, given.title), given.unit && make("span", { class: "unit" }, given.unit),
      canBeLog() && logButton, given.note && make("small", {}, given.note)].filter(Boolean));
  }
  function sync() {
    legend.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", !hidden.has(button.dataset.label)));
    redraw();
  }
  const heading = make("figcaption", {});
  const figure = make("figure", { class: given.big ? "card chart big" : "card chart", "data-chart": given.name || given.title }, heading, holder);
  name();
  charts.add(redraw);
  const stopWatching = whenResized(holder, redraw);
  return drawnNow(given, figure, redraw, (next) => {
    given = next;
    name();
    sync();
    if (state.cursor !== null) showCursor(state.cursor, holder.matches(":hover, :focus"));
  }, () => { charts.delete(redraw); cursorListeners.delete(follow); stopWatching(); });
}
