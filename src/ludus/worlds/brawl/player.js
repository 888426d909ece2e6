// Draws one moment of a Brawl match: the yard at dusk, two fighters, weapons that lie about, blows, damage and stocks.

const BRAWL = {
  halfWidth: 9.8, top: -5.6, high: 0.85, low: 2.85, inner: 2, outer: 7,
  teams: [{ base: "#4090ff", dark: "#2252b0", light: "#a0d0ff" }, { base: "#f44a52", dark: "#9e223a", light: "#ffaca0" }],
  state: { walking: 1, sprinting: 2, air: 4, airTurn: 5, dash: 6, backdash: 7, dodge: 8, attack: 9, stun: 10, taunt: 11, ko: 12 },
};

function damageColor(damage) {
  return damage < 50 ? "#f6f4ec" : damage < 100 ? "#ffe278" : damage < 150 ? "#ff9a3c" : "#ff4e34";
}

function brawlYard(pen, unit, width, height, platform, mirrored) {
  const sky = pen.createLinearGradient(0, 0, 0, height);
  [["0", "#101228"], ["0.45", "#22264a"], ["0.8", "#464268"], ["1", "#7a647c"]].forEach(([at, hue]) => sky.addColorStop(Number(at), hue));
  pen.fillStyle = sky;
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = "rgba(206,198,208,0.85)";
  pen.beginPath(); pen.arc(width * 0.78, height * 0.24, unit * 0.5, 0, 7); pen.fill();
  pen.fillStyle = "#2e2e52";
  for (let i = 0; i < 12; i++) pen.fillRect((i / 12) * width, height * (0.62 + 0.04 * ((i * 7) % 3)), width / 12 + 1, height);
  const toX = (x) => (x + BRAWL.halfWidth) * unit, toY = (y) => (y - BRAWL.top) * unit;
  const block = (from, to, top) => {
    pen.fillStyle = "#4a4458"; pen.fillRect(toX(from), toY(top), (to - from) * unit, height);
    pen.fillStyle = "#706876"; pen.fillRect(toX(from), toY(top), (to - from) * unit, unit * 0.55);
    pen.fillStyle = "#dec898"; pen.fillRect(toX(from), toY(top), (to - from) * unit, unit * 0.13);
  };
  const side = mirrored ? -1 : 1;
  block(Math.min(side * BRAWL.inner, side * BRAWL.outer), Math.max(side * BRAWL.inner, side * BRAWL.outer), BRAWL.high);
  block(Math.min(-side * BRAWL.inner, -side * BRAWL.outer), Math.max(-side * BRAWL.inner, -side * BRAWL.outer), BRAWL.low);
  pen.fillStyle = "#80604a"; pen.fillRect(toX(platform[0] - 1), toY(platform[1]), 2 * unit, 0.2 * unit);
  pen.fillStyle = "#d6aa5c"; pen.fillRect(toX(platform[0] - 1), toY(platform[1]), 2 * unit, 0.06 * unit);
}

function brawlFighter(pen, unit, fighter, team, frame, reach) {
  const s = BRAWL.state, f = fighter.facing || 1, state = fighter.state;
  const line = (points, width, hue) => {
    pen.strokeStyle = hue; pen.lineWidth = width * unit; pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x * unit, y * unit) : pen.moveTo(x * unit, y * unit)));
    pen.stroke();
  };
  pen.save();
  if (state === s.dodge) pen.globalAlpha = 0.45;
  if (state === s.stun) pen.rotate(f * -0.5 + 0.25 * Math.sin(frame * 0.7));
  const running = [s.walking, s.sprinting, s.dash, s.backdash].includes(state), airborne = state === s.air || state === s.airTurn;
  const lean = f * (state === s.dash || state === s.sprinting ? 0.16 : state === s.attack ? 0.1 : state === s.backdash ? -0.12 : 0.03);
  const swing = running ? 0.24 * Math.sin(fighter.x * 2.4) : airborne ? 0.14 : 0.1;
  const lift = running ? 0.1 * Math.abs(Math.cos(fighter.x * 2.4)) : airborne ? 0.14 : 0;
  line([[0, 0.1], [f * 0.1 - swing * 0.5, 0.29], [-swing, 0.46 - lift * 0.3]], 0.15, team.dark);
  line([[0, 0.1], [f * 0.1 + swing * 0.5, 0.29], [swing, 0.46 - (airborne ? lift : 0)]], 0.15, team.dark);
  const rest = state === s.taunt ? [f * 0.1, -0.75 - 0.08 * Math.sin(frame * 0.6)] : airborne ? [f * 0.26, -0.22] : [f * 0.24, 0.02];
  const hand = reach ? [Math.max(-0.75, Math.min(0.75, reach[0])), Math.max(-0.75, Math.min(0.75, reach[1]))]
    : state === s.attack ? [f * 0.42, -0.16] : rest;
  line([[lean, -0.16], [-f * 0.18, 0], [-f * 0.1, 0.06]], 0.11, team.dark);
  line([[0, 0.12], [lean, -0.18]], 0.3, team.base);
  if (fighter.weapon === "spear") line([[hand[0] - f * 0.5, hand[1] + 0.12], [hand[0] + f * 1.0, hand[1] - 0.1]], 0.07, "#c4c8d4");
  if (fighter.weapon === "hammer") {
    line([[hand[0] - f * 0.1, hand[1] + 0.1], [hand[0] + f * 0.34, hand[1] - 0.32]], 0.08, "#80604a");
    line([[hand[0] + f * 0.22, hand[1] - 0.42], [hand[0] + f * 0.46, hand[1] - 0.22]], 0.24, "#c4c8d4");
  }
  line([[lean, -0.16], [(lean + hand[0]) / 2, (hand[1] - 0.16) / 2 + 0.05], hand], 0.11, team.base);
  pen.fillStyle = "#e8bc98";
  pen.beginPath(); pen.arc((lean * 1.5 + f * 0.03) * unit, -0.4 * unit, 0.16 * unit, 0, 7); pen.fill();
  pen.fillStyle = team.base;
  pen.beginPath(); pen.arc((lean * 1.5) * unit, -0.43 * unit, 0.17 * unit, Math.PI, 2 * Math.PI); pen.fill();
  line([[lean * 1.5 - f * 0.16, -0.42], [lean * 1.5 - f * 0.02, -0.63]], 0.07, team.light);
  if (fighter.safe) {
    pen.strokeStyle = "rgba(246,244,236,0.8)"; pen.lineWidth = 0.05 * unit; pen.setLineDash([0.12 * unit, 0.1 * unit]);
    pen.beginPath(); pen.ellipse(0, -0.05 * unit, 0.5 * unit, 0.68 * unit, 0, 0, 7); pen.stroke(); pen.setLineDash([]);
  }
  pen.restore();
}

function brawlPanel(pen, size, width, name, fighter, team, seat) {
  const left = seat === 0 ? size * 0.7 : width - size * 14.7;
  pen.fillStyle = "rgba(18,19,36,0.78)";
  pen.fillRect(left, size * 0.6, size * 14, size * 3.7);
  pen.fillStyle = team.base;
  pen.fillRect(seat === 0 ? left : left + size * 13.65, size * 0.6, size * 0.35, size * 3.7);
  pen.textBaseline = "alphabetic";
  pen.textAlign = seat === 0 ? "left" : "right";
  const edge = seat === 0 ? left + size * 0.9 : left + size * 13.1, far = seat === 0 ? left + size * 13.4 : left + size * 0.6;
  pen.fillStyle = "#f6f4ec"; pen.font = `600 ${size * 1.1}px system-ui, sans-serif`;
  pen.fillText(name.length > 20 ? `${name.slice(0, 19)}...` : name, edge, size * 2);
  for (let i = 0; i < 3; i++) {
    pen.fillStyle = i < fighter.stocks ? team.light : "rgba(255,255,255,0.15)";
    pen.beginPath(); pen.arc(edge + (seat === 0 ? 1 : -1) * size * (0.5 + i * 1.2), size * 3.2, size * 0.42, 0, 7); pen.fill();
  }
  pen.textAlign = seat === 0 ? "right" : "left";
  pen.fillStyle = damageColor(fighter.damage); pen.font = `800 ${size * 2.1}px system-ui, sans-serif`;
  pen.fillText(`${Math.round(fighter.damage)}`, far, size * 3.7);
}

// Columns are whole numbers a frame; between two frames places are blended, unless somebody jumped across the stage.
function drawBrawl(pen, replay, at, width, height) {
  const unit = width / (2 * BRAWL.halfWidth), scale = replay.scale, columns = replay.columns;
  const i = Math.floor(at), next = Math.min(i + 1, replay.frames - 1), blend = at - i;
  const place = (name) => {
    const a = columns[name][i], b = columns[name][next];
    return (Math.abs(b - a) > 2 * scale ? a : a + (b - a) * blend) / scale;
  };
  const fighters = [0, 1].map((seat) => ({
    x: place(`x${seat}`), y: place(`y${seat}`), facing: columns[`facing${seat}`][i], state: columns[`state${seat}`][i],
    damage: columns[`damage${seat}`][i], stocks: columns[`stocks${seat}`][i], safe: columns[`safe${seat}`][i],
    weapon: replay.weapons[columns[`weapon${seat}`][i]],
  }));
  brawlYard(pen, unit, width, height, [place("platform_x"), place("platform_y")], replay.mirrored);
  const toX = (x) => (x + BRAWL.halfWidth) * unit, toY = (y) => (y - BRAWL.top) * unit;
  for (const [x, y, weapon] of replay.lying(i)) {
    pen.save();
    pen.translate(toX(x / scale), toY(y / scale)); pen.rotate(-0.6);
    pen.fillStyle = "#d6aa5c"; pen.fillRect(-0.45 * unit, -0.05 * unit, 0.9 * unit, 0.1 * unit);
    pen.fillStyle = "#c4c8d4";
    if (replay.weapons[weapon] === "hammer") pen.fillRect(0.22 * unit, -0.2 * unit, 0.26 * unit, 0.4 * unit);
    else pen.fillRect(0.4 * unit, -0.08 * unit, 0.3 * unit, 0.16 * unit);
    pen.restore();
  }
  const hits = replay.hits[i] || [];
  fighters.forEach((fighter, seat) => {
    if (fighter.state === BRAWL.state.ko) return;
    const x = Math.max(-BRAWL.halfWidth + 0.4, Math.min(BRAWL.halfWidth - 0.4, fighter.x));
    const y = Math.max(BRAWL.top + 0.5, Math.min(BRAWL.top + height / unit - 0.5, fighter.y));
    const blow = hits.find((hit) => hit[0] === seat);
    pen.save();
    pen.translate(toX(x), toY(y));
    if (x !== fighter.x || y !== fighter.y) pen.globalAlpha = 0.55;
    brawlFighter(pen, unit, fighter, BRAWL.teams[seat], at, blow && [blow[3] / scale - fighter.x, blow[4] / scale - fighter.y]);
    pen.restore();
  });
  pen.lineCap = "round";
  for (const [, x1, y1, x2, y2, radius] of hits) {
    pen.strokeStyle = "rgba(255,214,120,0.38)"; pen.lineWidth = (2 * radius * unit) / scale;
    pen.beginPath(); pen.moveTo(toX(x1 / scale), toY(y1 / scale)); pen.lineTo(toX(x2 / scale) + 0.01, toY(y2 / scale)); pen.stroke();
  }
  const size = Math.max(width / 62, 6.5);
  fighters.forEach((fighter, seat) => brawlPanel(pen, size, width, replay.players[seat] || "", fighter, BRAWL.teams[seat], seat));
  pen.textAlign = "center"; pen.fillStyle = "#f6f4ec"; pen.font = `700 ${size * 1.5}px system-ui, sans-serif`;
  pen.fillText(`${Math.floor(at / replay.rate_hz)} s`, width / 2, size * 2.3);
}

PAINTERS.brawl = drawBrawl;
