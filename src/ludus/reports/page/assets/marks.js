// Charts other than lines: stacked areas, bars with intervals, a heat map and one bar cut into shares.

// options: title, note, x, palette [names], terms {name: [values]}: positive parts stack upward, negative ones downward.
function stackChart(given) {
  const again = drawnBefore(given);
  if (again) return again;
  const ordered = () => Object.keys(given.terms).sort((a, b) => size(given.terms[b]) - size(given.terms[a]));
  let names = ordered();
  const hidden = new Set();
  const picture = draw("svg", { class: "plot", role: "img", "aria-label": given.title });
  const tip = make("div", { class: "tip", hidden: true });
  const holder = make("div", { class: "holder" }, picture, tip);
  const hue = (name) => color(given.palette.indexOf(name));
  let scale = null;
  function size(values) { return values.reduce((sum, value) => sum + Math.abs(value || 0), 0); }
  function redraw() {
    const width = Math.max(holder.clientWidth, 220), height = 320;
    const shown = names.filter((name) => !hidden.has(name));
    const up = given.x.map(() => 0), down = given.x.map(() => 0);
    const layers = shown.map((name) => {
      const values = smoothed(given.terms[name], options.smoothing);
      // Gains and costs are areas of their own, so that a term that changes its sign leaves no hole.
      const sides = [[up, (value) => Math.max(value, 0)], [down, (value) => Math.min(value, 0)]].map(([edge, part]) => {
        const from = [...edge];
        given.x.forEach((_, i) => { edge[i] += part(values[i] || 0); });
        return { from, to: [...edge] };
      });
      return { name, values, sides };
    });
    const total = given.x.map((_, i) => layers.reduce((sum, layer) => sum + (layer.values[i] || 0), 0));
    const high = Math.max(...up, 1e-9) * 1.05, low = Math.min(...down, 0) * 1.05;
    const inner = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    const [first, last, marks] = across(given.x, Math.min(6, Math.floor(inner.w / 70)));
    const drawn = given.x.length > 1 ? (values) => values : (values) => [values[0], values[0]]; // one point is a block
    const x = given.x.length > 1 ? given.x : [first, last];
    const toX = (x) => MARGIN.left + (inner.w * (x - first)) / (last - first);
    const toY = (y) => MARGIN.top + inner.h * (1 - (y - low) / (high - low));
    scale = { toX, first, last, inner, layers, total };
    drawAxes(picture, { width, height, toX, toY, values: ticks(low, high, 5), places: marks });
    for (const layer of layers) {
      for (const { from, to } of layer.sides) {
        picture.append(draw("path", { class: `area ${hue(layer.name)}`, d: bandOf(x, drawn(from), drawn(to), toX, toY) }));
      }
    }
    picture.append(draw("line", { class: "zero", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(0), y2: toY(0) }),
      draw("path", { class: "line total", d: pathOf(x, drawn(total), toX, toY) }), draw("g", { class: "cursor" }));
  }
  holder.addEventListener("pointermove", (event) => {
    const { toX, first, last, inner, layers, total } = scale;
    const place = (event.clientX - picture.getBoundingClientRect().left - MARGIN.left) / inner.w;
    const i = nearest(given.x, first + Math.min(Math.max(place, 0), 1) * (last - first));
    picture.querySelector(".cursor").replaceChildren(draw("line", { class: "hair", x1: toX(given.x[i]), x2: toX(given.x[i]), y1: MARGIN.top, y2: MARGIN.top + inner.h }));
    tip.replaceChildren(make("b", {}, `${wholeNumber(given.x[i])} steps`),
      make("div", {}, make("i", { class: "swatch total" }), make("span", {}, "sum"), make("em", {}, shortNumber(total[i]))),
      ...layers.map((layer) => make("div", {}, make("i", { class: `swatch ${hue(layer.name)}` }),
        make("span", {}, readable(layer.name)), make("em", {}, shortNumber(layer.values[i])))));
    tip.hidden = false;
    const left = toX(given.x[i]);
    tip.style.left = `${left + 14 + tip.offsetWidth > holder.clientWidth ? Math.max(0, left - tip.offsetWidth - 14) : left + 14}px`;
  });
  holder.addEventListener("pointerleave", () => { tip.hidden = true; picture.querySelector(".cursor").replaceChildren(); });
  const keys = () => names.map((name) => {
    const button = make("button", {
      type: "button", class: `key ${hue(name)}`, "aria-pressed": !hidden.has(name),
      onclick: () => {
        hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        button.setAttribute("aria-pressed", !hidden.has(name));
        redraw();
      },
    }, make("i", { class: `swatch ${hue(name)}` }), readable(name));
    return button;
  });
  const legend = make("div", { class: "legend" }, keys());
  charts.add(redraw);
  const stopWatching = whenResized(holder, redraw);
  return drawnNow(given, make("figure", { class: "card chart wide", "data-chart": given.title },
    make("figcaption", {}, make("b", {}, given.title), given.note ? make("small", {}, given.note) : null), holder, legend), redraw,
  (next) => {
    given = next;
    const order = ordered();
    if (order.join() !== names.join()) { names = order; legend.replaceChildren(...keys()); }
    redraw();
  },
  () => { charts.delete(redraw); stopWatching(); });
}

// rows: [{label, bars: [{cls, value, low, high, title}]}]; limits [low, high]; marks [{value, label}].
function barChart(given) {
  const [low, high] = given.limits;
  const place = (value) => `${(100 * (Math.min(Math.max(value, low), high) - low)) / (high - low || 1)}%`;
  const rows = given.rows.map((row) => make("div", { class: "bar-row" },
    make("span", { class: "bar-label", title: row.label }, row.label),
    make("div", { class: "bar-lanes" }, row.bars.map((bar) => {
      if (!bar) return make("div", { class: "bar-lane" });
      const fillBar = make("i", { class: `bar ${bar.cls}` });
      const zero = Math.min(Math.max(0, low), high);
      fillBar.style.left = place(Math.min(bar.value, zero));
      fillBar.style.width = `calc(${place(Math.max(bar.value, zero))} - ${place(Math.min(bar.value, zero))})`;
      const lane = make("div", { class: "bar-lane", title: bar.title }, fillBar);
      if (isNumber(bar.low) && isNumber(bar.high)) {
        const whisker = make("i", { class: "whisker" });
        whisker.style.left = place(bar.low);
        whisker.style.width = `calc(${place(bar.high)} - ${place(bar.low)})`;
        lane.append(whisker);
      }
      return make("div", { class: "bar-line" }, lane, make("em", {}, bar.text));
    }))));
  return make("figure", { class: "card chart", "data-chart": given.name || given.title },
    make("figcaption", {}, make("b", {}, given.title), given.unit ? make("span", { class: "unit" }, given.unit) : null, given.note ? make("small", {}, given.note) : null), make("div", { class: "bars" }, rows));
}

// From red over neutral to blue, so that also those who cannot tell red from green can read it.
function heatColor(share) {
  const weight = Math.round(Math.abs(share - 0.5) * 150);
  return `color-mix(in srgb, var(${share < 0.5 ? "--cold" : "--warm"}) ${Math.min(weight, 75)}%, var(--card))`;
}

// options: title, note, columns [labels], rows [{label, cells: [{share, title} or null]}].
function heatMap(given) {
  const body = given.rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.label), row.cells.map((cell) => {
    if (!cell) return make("td", { class: "none" });
    const box = make("td", { title: cell.title }, Math.round(100 * cell.share));
    box.style.background = heatColor(cell.share);
    return box;
  })));
  return make("figure", { class: "card chart wide", "data-chart": given.title },
    make("figcaption", {}, make("b", {}, given.title), given.note ? make("small", {}, given.note) : null),
    make("div", { class: "scroll" }, make("table", { class: "heat" },
      make("thead", {}, make("tr", {}, make("th", {}), given.columns.map((label) => make("th", { scope: "col" }, label)))),
      make("tbody", {}, body))));
}

// rows: [{label, shares: {name: share}}]; one bar a row, cut into shares, with one legend for all.
function shareBars(given) {
  const names = [...new Set(given.rows.flatMap((row) => Object.keys(row.shares)))];
  return make("figure", { class: "card chart", "data-chart": given.title },
    make("figcaption", {}, make("b", {}, given.title), given.note ? make("small", {}, given.note) : null),
    given.rows.map((row) => make("div", { class: "share-row" }, given.rows.length > 1 ? make("span", {}, row.label) : null,
      make("div", { class: "shares" }, names.map((name, index) => {
        const part = make("i", { class: color(index), title: `${readable(name)} ${percent(row.shares[name] || 0)}` },
          (row.shares[name] || 0) > 0.08 ? percent(row.shares[name]) : "");
        part.style.width = `${100 * (row.shares[name] || 0)}%`;
        return part;
      })))),
    make("div", { class: "legend" }, names.map((name, index) => make("span", { class: "key" },
      make("i", { class: `swatch ${color(index)}` }), readable(name), given.rows.length === 1 ? ` ${percent(given.rows[0].shares[name])}` : ""))));
}

// options: title, note, styles [names], planes {name: [[x, y, style]]}: points of one plane at a time, names switch styles.
function scatterChart(given) {
  const hidden = new Set(), planes = Object.keys(given.planes);
  const state = { plane: planes[0] };
  const picture = draw("svg", { class: "plot", role: "img", "aria-label": given.title, viewBox: "0 0 420 320" });
  function redraw() {
    const points = given.planes[state.plane] || [];
    const [lowX, highX, lowY, highY] = [0, 1].flatMap((axis) => [Math.min(...points.map((each) => each[axis])), Math.max(...points.map((each) => each[axis]))]);
    const place = (value, low, high, size) => 12 + ((value - low) / (high - low || 1)) * (size - 24);
    picture.replaceChildren(...points.filter((each) => !hidden.has(each[2])).map(([x, y, style]) => draw("circle", {
      class: `point ${color(style)}`, cx: place(x, lowX, highX, 420).toFixed(1), cy: (320 - place(y, lowY, highY, 320)).toFixed(1), r: points.length > 300 ? 2.2 : 4,
    }, draw("title", {}, given.styles[style]))));
  }
  const choice = planes.length > 1 && make("select", { "aria-label": "map", onchange: (event) => { state.plane = event.target.value; redraw(); } },
    planes.map((name) => make("option", { value: name }, name)));
  const legend = make("div", { class: "legend" }, given.styles.map((name, style) => {
    const button = make("button", { type: "button", class: "key", "aria-pressed": "true", onclick: () => {
      hidden.has(style) ? hidden.delete(style) : hidden.add(style);
      button.setAttribute("aria-pressed", !hidden.has(style));
      redraw();
    } }, make("i", { class: `swatch ${color(style)}` }), name);
    return button;
  }));
  redraw();
  return make("figure", { class: "card chart big", "data-chart": "latents" },
    make("figcaption", {}, make("b", {}, given.title), choice || make("span", { class: "unit" }, planes[0] || "no points"), make("small", {}, given.note)), picture, legend);
}
