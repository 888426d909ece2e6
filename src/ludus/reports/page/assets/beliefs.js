// Charts of a strategy analysis: probabilities over time, a confusion matrix with a slider, and tables of differences.

const ROW = 22, AXIS = 24, MOST_ACTIONS = 16;
const sharp = (value) => (isNumber(value) ? `${(100 * value).toFixed(1)} %` : "-");
const signed = (value, digits) => `${value > 0 ? "+" : value < 0 ? "\u2212" : ""}${Math.abs(value).toFixed(digits)}`;
const between = (interval, format) => (isNumber(interval.low) && isNumber(interval.high)
  ? `${format(interval.estimate)} (${format(interval.low)} to ${format(interval.high)})` : format(interval.estimate));
const isClear = (interval) => interval.low > 0 || interval.high < 0;
const caption = (title, note, ...more) => make("figcaption", {}, make("b", {}, title), ...more, note ? make("small", {}, note) : null);
const legendOf = (names) => make("div", { class: "legend" }, names.map(([cls, name]) => make("span", { class: "key" }, make("i", { class: `swatch ${cls}` }), name)));

// options: title, name, classes [names], times [s], rows [[probability of each class]], truth [[start s, class or -1, name]].
// A row of cells per class, the darker the likelier; a frame is around what is true.
function beliefMap(given) {
  const picture = draw("svg", { class: "plot", role: "img", "aria-label": given.title });
  const tip = make("div", { class: "tip", hidden: true });
  const holder = make("div", { class: "holder", tabindex: 0, "aria-label": `${given.title}: arrow keys read values` }, picture, tip);
  const { classes, times, rows, truth } = given;
  const step = times.length > 1 ? times[1] - times[0] : 1, first = times[0], last = times[times.length - 1] + step;
  let scale = null, cursor = null;
  const trueAt = (time) => truth.filter(([start]) => start <= time + 1e-9).at(-1) || [0, -1, "-"];
  function redraw() {
    const width = Math.max(holder.clientWidth, 220), height = classes.length * ROW + AXIS + 4;
    const left = Math.min(116, Math.round(0.3 * width)), inner = width - left - 8;
    const toX = (time) => left + (inner * (time - first)) / (last - first);
    scale = { toX, left, inner };
    resize(picture, width, height);
    picture.replaceChildren();
    const letters = Math.floor(left / 6.6);
    classes.forEach((name, place) => {
      const short = name.length > letters ? `${name.slice(0, letters - 1)}\u2026` : name;
      picture.append(draw("text", { class: "tick", x: left - 7, y: place * ROW + ROW / 2 + 6, "text-anchor": "end" }, short, draw("title", {}, name)));
      picture.append(draw("rect", { class: "lane", x: left, y: place * ROW + 3, width: inner, height: ROW - 2 }));
    });
    rows.forEach((row, index) => row.forEach((share, place) => {
      if (share < 0.005) return;
      const start = toX(times[index]), end = toX(index + 1 < times.length ? times[index + 1] : last);
      picture.append(draw("rect", { class: "belief", x: start.toFixed(1), y: place * ROW + 3, width: (end - start + 0.3).toFixed(1), height: ROW - 2, "fill-opacity": share.toFixed(3) }));
    }));
    truth.forEach(([start, place, name], index) => {
      const end = Math.min(index + 1 < truth.length ? truth[index + 1][0] : last, last), from = Math.max(start, first);
      if (end <= from) return;
      if (index) picture.append(draw("line", { class: "phase", x1: toX(from), x2: toX(from), y1: 2, y2: classes.length * ROW + 3 }, draw("title", {}, `switches to ${name}`)));
      if (place >= 0) picture.append(draw("rect", { class: "truth", x: toX(from), y: place * ROW + 3, width: toX(end) - toX(from), height: ROW - 2, rx: 2 }, draw("title", {}, `the opponent is ${name}`)));
    });
    for (const value of ticks(first, last, Math.min(8, Math.floor(inner / 60)))) {
      picture.append(draw("text", { class: "tick", x: toX(value), y: height - 6, "text-anchor": "middle" }, `${shortNumber(value, 3)} s`));
    }
    picture.append(draw("g", { class: "cursor" }));
  }
  function show(index) {
    cursor = index;
    const layer = picture.querySelector(".cursor");
    layer.replaceChildren();
    tip.hidden = index === null;
    if (index === null) return;
    const x = scale.toX(times[index] + step / 2), [, place, name] = trueAt(times[index]);
    layer.append(draw("line", { class: "hair", x1: x, x2: x, y1: 2, y2: classes.length * ROW + 3 }));
    const order = classes.map((_, each) => each).sort((a, b) => rows[index][b] - rows[index][a]).slice(0, 5);
    tip.replaceChildren(make("b", {}, `${times[index].toFixed(1)} s: against ${name}`), ...order.map((each) => make("div", {},
      make("span", {}, each === place ? `${classes[each]} (true)` : classes[each]), make("em", {}, sharp(rows[index][each])))));
    const space = holder.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(space, x + 14 + tip.offsetWidth > holder.clientWidth ? x - tip.offsetWidth - 14 : x + 14))}px`;
  }
  holder.addEventListener("pointermove", (event) => {
    const share = (event.clientX - picture.getBoundingClientRect().left - scale.left) / scale.inner;
    show(share < 0 || share > 1 ? null : Math.min(Math.floor(share * times.length), times.length - 1));
  });
  holder.addEventListener("pointerleave", () => show(null));
  holder.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    show(Math.min(Math.max((cursor === null ? (way > 0 ? -1 : times.length) : cursor) + way, 0), times.length - 1));
    event.preventDefault();
  });
  charts.add(redraw);
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe(holder);
  return make("figure", { class: "card chart wide", "data-chart": given.name }, caption(given.title, given.note), holder);
}

// options: title, name, note, styles [names], classes [names], times [s], shares [time][style][class].
function confusionMatrix(given) {
  const cells = given.styles.map((style, row) => given.classes.map((_, column) => make("td", { class: row === column ? "right" : null })));
  const clock = make("span", { class: "clock" });
  const slider = make("input", { type: "range", min: 0, max: given.times.length - 1, step: 1, value: given.times.length - 1, "aria-label": "seconds of the match", oninput: show });
  const play = make("button", { type: "button", class: "play", onclick: toggle }, "Play");
  let timer = null;
  function show() {
    const index = Number(slider.value);
    clock.textContent = `${given.times[index].toFixed(1)} s`;
    cells.forEach((line, row) => line.forEach((cell, column) => {
      const share = given.shares[index][row][column];
      cell.textContent = isNumber(share) ? Math.round(100 * share) : "";
      cell.title = isNumber(share) ? `against ${given.styles[row]}: ${sharp(share)} for ${given.classes[column]}` : "no match lasts that long";
      cell.style.background = `color-mix(in srgb, var(--accent) ${isNumber(share) ? Math.round(80 * share) : 0}%, var(--card))`;
    }));
  }
  function toggle() {
    if (timer !== null) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    if (Number(slider.value) === given.times.length - 1) slider.value = 0;
    play.textContent = "Pause";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === given.times.length - 1) toggle();
    }, 150);
  }
  show();
  return make("figure", { class: "card chart wide", "data-chart": given.name }, caption(given.title, given.note),
    make("div", { class: "controls" }, play, slider, clock),
    make("div", { class: "scroll" }, make("table", { class: "heat confusion" },
      make("thead", {}, make("tr", {}, make("th", {}, "true \u2193 thinks \u2192"), given.classes.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, given.styles.map((name, row) => make("tr", {}, make("th", { scope: "row" }, name), cells[row]))))));
}

// options: title, name, note, rows [names], columns [names], values [[interval]], format, scale, hint(row, column).
// Differences from blue (more) over nothing to red (less); those whose interval excludes 0 are bold.
function differenceTable(given) {
  const size = (column) => Math.max(...given.values.map((row) => Math.abs(row[column].estimate || 0)));
  const chosen = given.columns.map((_, column) => column).sort((a, b) => size(b) - size(a)).slice(0, MOST_ACTIONS).sort((a, b) => a - b);
  const largest = Math.max(...chosen.map(size), 1e-9);
  const cell = (row, column) => {
    const interval = given.values[row][column];
    if (!isNumber(interval.estimate)) return make("td", { class: "none" });
    const weight = Math.round((70 * Math.abs(interval.estimate)) / largest);
    const box = make("td", { class: isClear(interval) ? "clear" : "unclear", title: `${given.rows[row]}, ${given.columns[column]}: ${given.hint(row, column)}` }, given.format(interval.estimate));
    box.style.background = `color-mix(in srgb, var(${interval.estimate < 0 ? "--cold" : "--warm"}) ${weight}%, var(--card))`;
    return box;
  };
  const left = given.columns.length - chosen.length;
  return make("figure", { class: "card chart wide", "data-chart": given.name },
    caption(given.title, `${given.note}${left ? ` The ${chosen.length} that differ most of ${given.columns.length}.` : ""}`),
    make("div", { class: "scroll" }, make("table", { class: "heat" },
      make("thead", {}, make("tr", {}, make("th", {}), chosen.map((column) => make("th", { scope: "col" }, given.columns[column])))),
      make("tbody", {}, given.rows.map((name, row) => make("tr", {}, make("th", { scope: "row" }, name), chosen.map((column) => cell(row, column))))))));
}
