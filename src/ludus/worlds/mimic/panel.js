// What pages of a walker share: views, pushes and their keys, a canvas as sharp as the screen, and the chart of speeds.

const MimicPanel = (() => {
  const VIEWS = { "from the side, ahead": { turn: 0.5, rise: 0.14 }, side: { turn: 0, rise: 0.06 }, front: { turn: 1.4, rise: 0.12 }, behind: { turn: -1.45, rise: 0.2 } };
  const PUSHES = { "from behind": [1, 0], "from ahead": [-1, 0], "from its right": [0, 1], "from its left": [0, -1] };
  const KEYS = { ArrowRight: "from behind", ArrowLeft: "from ahead", ArrowUp: "from its right", ArrowDown: "from its left" };
  const HISTORY_S = 12; // of the chart
  const DRAWN_N = 250; // force of a bar of 30 pixels

  // Points by name between two moments.
  const mixed = (before, now, share) => Object.fromEntries(Object.entries(now).map(([name, place]) => [name, place.map((value, k) => before[name][k] + share * (value - before[name][k]))]));

  // The size and the pen of a canvas that has as many pixels as it is seen with.
  function prepared(target) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), width = Math.max(target.clientWidth, 120), height = Math.max(target.clientHeight, 60);
    if (target.width !== Math.round(width * ratio) || target.height !== Math.round(height * ratio)) {
      target.width = Math.round(width * ratio);
      target.height = Math.round(height * ratio);
    }
    const pen = target.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [width, height, pen];
  }

  // Draw speed and desired speed over the last seconds, with bars for forces; `history` has {seconds, speed, desired, force}.
  function drawSpeeds(chart, history, last, low, high) {
    const [width, height, pen] = prepared(chart), style = getComputedStyle(chart), ink = style.color;
    const first = Math.max(last - HISTORY_S, 0), floor = Math.min(low, 0.6), top = Math.max(high, 1.7);
    const toX = (seconds) => 34 + ((seconds - first) / HISTORY_S) * (width - 40), toY = (value) => height - 12 - ((value - floor) / (top - floor)) * (height - 24);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of [0.8, 1.2, 1.6]) {
      pen.globalAlpha = 0.16; pen.fillStyle = ink; pen.fillRect(34, toY(value), width - 40, 1);
      pen.globalAlpha = 0.75; pen.fillText(value.toFixed(1), 28, toY(value));
    }
    pen.globalAlpha = 0.55;
    pen.fillStyle = "#ee5a26";
    for (const { seconds, force } of history) if (force > 1) pen.fillRect(toX(seconds) - 1, height - 3 - (force / DRAWN_N) * 30, 2, (force / DRAWN_N) * 30);
    const line = (pick, color, dash) => {
      pen.globalAlpha = 1; pen.strokeStyle = color; pen.lineWidth = 2; pen.setLineDash(dash); pen.beginPath();
      let isDrawn = false;
      for (const each of history) {
        const value = pick(each);
        if (value === null) { isDrawn = false; continue; }
        if (isDrawn) pen.lineTo(toX(each.seconds), toY(value)); else pen.moveTo(toX(each.seconds), toY(value));
        isDrawn = true;
      }
      pen.stroke();
    };
    line((each) => each.desired, ink, [5, 5]);
    line((each) => each.speed, "#2f8fc0", []);
    pen.setLineDash([]);
  }

  // A card with a table of keys and what they do.
  function keyCard(title, rows) {
    return make("section", { class: "card" }, make("h2", {}, title), make("table", { class: "rows keys" }, make("tbody", {}, rows.map(([name, meaning]) =>
      make("tr", {}, make("th", {}, make("kbd", {}, name.replace("Arrow", "arrow "))), make("td", {}, meaning))))));
  }

  return { VIEWS, PUSHES, KEYS, HISTORY_S, mixed, prepared, drawSpeeds, keyCard };
})();
