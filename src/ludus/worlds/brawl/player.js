// Draws one moment of a Brawl match as the videos do (rendering/*.py): the yard at dusk, fighters, weapons that lie about,
// blows, knockouts, damage and stocks. `paintBrawl` draws a moment; replays and live matches both come to it.

// --- the yard ---

let brawlBackdrop = null; // painted once: sky, moon, arcades and mist, at 40 pixels per unit

function brawlYardPicture() {
  if (brawlBackdrop) return brawlBackdrop;
  const [left, top, wide, high] = BRAWL.yard, scale = 40, canvas = make("canvas", { width: wide * scale, height: high * scale });
  const pen = canvas.getContext("2d"), { sky, moon, stoneLight } = BRAWL;
  pen.scale(scale, scale); pen.translate(-left, -top);
  const dusk = pen.createLinearGradient(0, top + 2, 0, top + high - 2);
  sky.forEach((color, k) => dusk.addColorStop(k / 3, brawlHue(color)));
  pen.fillStyle = dusk; pen.fillRect(left, top, wide, high);
  let seed = 7;
  const drawn = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let k = 0; k < 130; k++) {
    const x = left + wide * drawn(), y = top + high * 0.55 * drawn() ** 2, size = drawn();
    pen.fillStyle = brawlHue(brawlMix(sky[1], [235, 232, 245], 0.25 + 0.6 * size));
    pen.beginPath(); pen.arc(x, y, 0.018 + 0.03 * size, 0, 7); pen.fill();
  }
  const glow = pen.createRadialGradient(0, -2.6, 1.6, 0, -2.6, 4.4);
  glow.addColorStop(0, brawlHue(moon, 0.4)); glow.addColorStop(1, brawlHue(moon, 0));
  pen.fillStyle = glow; pen.fillRect(-4.5, -7.1, 9, 9);
  [[0, 0, 1.9, 0.55], [-0.6, -0.4, 0.42, 0.45], [0.5, 0.5, 0.3, 0.45], [0.35, -0.9, 0.22, 0.45]].forEach(([x, y, radius, share]) => {
    pen.fillStyle = brawlHue(brawlMix(sky[2], moon, share));
    pen.beginPath(); pen.arc(x, y - 2.6, radius, 0, 7); pen.fill();
  });
  const arcade = (roof, arch, color, shift) => {
    const cornice = brawlMix(color, stoneLight, 0.22), radius = arch * 0.33;
    pen.fillStyle = brawlHue(color);
    pen.beginPath(); pen.rect(left, roof, wide, high);
    for (let k = -1; k * arch < wide + arch; k++) { // arches are holes: they wind the other way
      const x = left + (k + shift) * arch, y = roof + 0.55 + radius;
      pen.moveTo(x - radius, high); pen.lineTo(x + radius, high); pen.lineTo(x + radius, y); pen.arc(x, y, radius, 0, Math.PI, true); pen.closePath();
    }
    pen.fill();
    pen.fillStyle = brawlHue(cornice); pen.fillRect(left, roof, wide, 0.14);
    for (let k = -1; k * arch < wide + arch; k++) { pen.beginPath(); pen.arc(left + (k + shift + 0.5) * arch, roof + 0.28, 0.1, 0, 7); pen.fill(); }
  };
  arcade(-3.4, 2.1, BRAWL.farWall, 0.35);
  arcade(-0.6, 3.1, BRAWL.nearWall, 0);
  const mist = pen.createLinearGradient(0, -2.4, 0, 8);
  mist.addColorStop(0, "rgba(20,18,38,0)"); mist.addColorStop(1, "rgba(20,18,38,0.86)");
  pen.fillStyle = mist; pen.fillRect(left, top, wide, high);
  return (brawlBackdrop = canvas);
}

function brawlGround(pen, side, top) {
  const { ink, stone, stoneDark, stoneLight, sand } = BRAWL, left = side > 0 ? BRAWL.inner : -BRAWL.outer, wide = BRAWL.outer - BRAWL.inner, high = 12;
  const box = (color, x, y, w, h) => { pen.fillStyle = brawlHue(color); pen.fillRect(x, y, w, h); };
  box(ink, left - 0.04, top - 0.04, wide + 0.08, high); box(stone, left, top, wide, high);
  pen.strokeStyle = brawlHue(brawlMix(stone, stoneDark, 0.55)); pen.lineWidth = 0.035;
  pen.beginPath();
  for (let row = 1; row < 20; row++) {
    const y = top + row * 0.44;
    pen.moveTo(left, y); pen.lineTo(left + wide, y);
    for (let column = 0; column < 8; column++) {
      const x = left + (column + 0.5 * (row % 2)) * 0.72;
      if (x > left && x < left + wide) { pen.moveTo(x, y); pen.lineTo(x, y + 0.44); }
    }
  }
  pen.stroke();
  for (let k = 0; k < 3; k++) {
    const x = left + ((k + 0.5) / 3) * wide, y = top + 1.35;
    [[0.43, stoneDark], [0.33, brawlMix(stoneDark, ink, 0.55)]].forEach(([half, color]) => {
      pen.fillStyle = brawlHue(color); pen.beginPath(); pen.arc(x, y, half, Math.PI, 0); pen.rect(x - half, y, 2 * half, 0.85); pen.fill();
    });
  }
  const shade = pen.createLinearGradient(0, top, 0, BRAWL.killY);
  shade.addColorStop(0, brawlHue(ink, 0)); shade.addColorStop(1, brawlHue(ink, 0.75));
  pen.fillStyle = shade; pen.fillRect(left, top, wide, high);
  box(stoneLight, left, top, wide, 0.3); box(sand, left, top, wide, 0.13); box(stoneDark, left, top + 0.3, wide, 0.05);
}

function brawlPlatform(pen, [x, y]) {
  const glow = brawlSketch(), board = brawlSketch(BRAWL.outline), low = y + 0.2;
  glow.polygon([[x - 0.5, low], [x + 0.5, low], [x + 0.2, y + 0.75], [x - 0.2, y + 0.75]], BRAWL.brass); glow.paint(pen, 0.16);
  board.polygon([[x - 0.3, low], [x + 0.3, low], [x, y + 0.46]], BRAWL.stoneDark);
  board.polygon([[x - 1, y], [x + 1, y], [x + 1, low], [x - 1, low]], BRAWL.wood);
  board.polygon([[x - 1, y], [x + 1, y], [x + 1, y + 0.07], [x - 1, y + 0.07]], BRAWL.brass);
  [-0.8, -0.4, 0, 0.4, 0.8].forEach((dx) => board.circle([x + dx, y + 0.135], 0.03, BRAWL.ink, false));
  board.circle([x, y + 0.3], 0.07, [255, 226, 140], false);
  board.paint(pen);
}

function brawlItem(pen, item, weapon, frame) {
  if (item.life < 75 && Math.floor(item.life / 5) % 2 === 0) return; // it blinks before it vanishes
  const locked = item.lock > 0, y = item.y - 0.42 + (locked ? 0 : 0.05 * Math.sin(frame * 0.18)), tip = [Math.cos(-0.62), Math.sin(-0.62)];
  const middle = weapon.length * (BRAWL.grip - 0.5), sketch = brawlSketch(0.035), ring = brawlSketch();
  const color = locked ? brawlMix(weapon.color, BRAWL.muted, 0.7) : weapon.color;
  brawlWeapon(sketch, weapon, color, [item.x - tip[0] * middle, y - tip[1] * middle], tip);
  sketch.paint(pen, locked ? 0.6 : 1);
  const dots = locked ? Math.max(Math.round(16 * (1 - item.lock / BRAWL.itemLock)), 1) : 16;
  for (let k = 0; k < dots; k++) {
    const angle = (2 * Math.PI * k) / 16 - Math.PI / 2;
    ring.circle([item.x + 0.62 * Math.cos(angle), y + 0.62 * Math.sin(angle)], 0.035, locked ? BRAWL.muted : weapon.color);
  }
  ring.paint(pen, 0.78);
}

// --- what surrounds fighters ---

function brawlStar([x, y], radius, turn, points, waist) {
  return Array.from({ length: 2 * points }, (_, k) => {
    const reach = k % 2 ? radius * waist : radius, angle = turn + (Math.PI * k) / points;
    return [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
  });
}

function brawlShadow(pen, scene, f) {
  const floors = [], side = scene.mirrored ? -1 : 1;
  if (Math.abs(f.x) + BRAWL.body > BRAWL.inner && Math.abs(f.x) - BRAWL.body < BRAWL.outer) floors.push(f.x * side > 0 ? BRAWL.high : BRAWL.low);
  if (Math.abs(f.x - scene.platform[0]) < 1) floors.push(scene.platform[1]);
  const floor = Math.min(...floors.filter((each) => each >= f.y - 0.05));
  if (!Number.isFinite(floor)) return;
  const size = Math.max(0.16, 0.42 - 0.05 * (floor - f.y)), sketch = brawlSketch();
  sketch.capsule([f.x - size, floor + 0.045], [f.x + size, floor + 0.045], 0.045, BRAWL.ink);
  sketch.paint(pen, 0.47);
}

function brawlStreaks(pen, f, team) {
  const speed = Math.hypot(f.vx, f.vy);
  if (speed < 8.5 && f.state !== BRAWL.state.dash) return;
  const ux = f.vx / Math.max(speed, 1e-6), uy = f.vy / Math.max(speed, 1e-6), length = Math.min(0.09 * speed, 2.4), sketch = brawlSketch();
  [[-0.3, 0.7], [-0.08, 1], [0.14, 0.85], [0.34, 0.6]].forEach(([offset, share]) => {
    const start = [f.x - 0.35 * ux - uy * offset, f.y - 0.35 * uy + ux * offset];
    sketch.capsule(start, [start[0] - ux * length * share, start[1] - uy * length * share], 0.035,
      f.state === BRAWL.state.stun ? BRAWL.white : team.light, 0.005);
  });
  sketch.paint(pen, 0.58);
}

function brawlCharge(pen, f, weapon, frame) {
  const move = f.move >= 0 ? weapon.moves[f.move % weapon.moves.length] : null;
  if (!f.charge || !move || !move.charge || f.moveFrame > move.charge[0]) return;
  const share = f.charge / move.charge[1], white = share >= 1 && frame % 4 < 2 ? 0.7 : 0, sparks = brawlSketch();
  [[0.55 + 0.45 * share, 0.2], [0.4 + 0.3 * share, 0.27]].forEach(([radius, opacity]) => {
    const glow = brawlSketch();
    glow.circle([f.x, f.y], radius, brawlMix(weapon.color, BRAWL.white, white)); glow.paint(pen, opacity);
  });
  for (let k = 0; k < 6; k++) {
    const angle = (k * Math.PI) / 3 + frame * 0.25, distance = 1.05 - 0.06 * ((frame * 2 + k * 5) % 12);
    sparks.circle([f.x + distance * Math.cos(angle), f.y + distance * Math.sin(angle)], 0.05, BRAWL.white);
  }
  sparks.paint(pen, 0.47 + 0.53 * share);
}

function brawlShimmer(pen, f, frame) {
  const stars = brawlSketch();
  [[0.74, frame % 6 < 3 ? 0.33 : 0.24], [0.62, 0.18]].forEach(([radius, opacity]) => {
    const shell = brawlSketch();
    shell.capsule([f.x, f.y - 0.08], [f.x, f.y + 0.02], radius, [190, 240, 255]); shell.paint(pen, opacity);
  });
  for (let k = 0; k < 5; k++) {
    const angle = (k * 2 * Math.PI) / 5 - frame * 0.12;
    stars.circle([f.x + 0.74 * Math.cos(angle), f.y - 0.03 + 0.8 * Math.sin(angle)], 0.055, BRAWL.white);
  }
  stars.paint(pen, 0.9);
}

// What is drawn is what hits: the active capsules, and a spark where one touches a stunned body.
function brawlBlows(pen, f, weapon) {
  for (const { start, end, radius } of f.hits) {
    const sweep = brawlSketch(), core = brawlSketch();
    sweep.capsule(start, end, radius, brawlMix(weapon.color, BRAWL.white, 0.25)); sweep.paint(pen, 0.37);
    core.capsule(start, end, radius * 0.25, brawlMix(weapon.color, BRAWL.white, 0.75), radius * 0.6); core.paint(pen, 0.59);
  }
}
function brawlImpact(pen, attacker, victim) {
  if (victim.state !== BRAWL.state.stun) return;
  for (const { start, end, radius } of attacker.hits) {
    const dx = end[0] - start[0], dy = end[1] - start[1], along = ((victim.x - start[0]) * dx + (victim.y - start[1]) * dy) / (dx * dx + dy * dy || 1e-9);
    const t = Math.min(Math.max(along, 0), 1), spot = [start[0] + t * dx, start[1] + t * dy];
    if (Math.hypot(spot[0] - victim.x, spot[1] - victim.y) > radius + BRAWL.hurt) continue;
    const place = [(spot[0] + victim.x) / 2, (spot[1] + victim.y) / 2], sketch = brawlSketch(0.03);
    sketch.polygon(brawlStar(place, 0.52, 0.3, 7, 0.36), [255, 236, 150]);
    sketch.polygon(brawlStar(place, 0.28, 0.7, 7, 0.4), BRAWL.white, false);
    sketch.paint(pen);
    return;
  }
}

// A spark between two fighters in a clash, with rays that shrink as its time runs out.
function brawlClash(pen, [a, b], frame) {
  if (a.state !== BRAWL.state.clash || b.state !== BRAWL.state.clash) return;
  const place = [(a.x + b.x) / 2, (a.y + b.y) / 2 - 0.15], rays = brawlSketch(), star = brawlSketch(0.03), near = 0.3 + 0.04 * a.timer;
  for (let k = 0; k < 8; k++) {
    const angle = (k * Math.PI) / 4 + frame * 0.2, ux = Math.cos(angle), uy = Math.sin(angle);
    rays.capsule([place[0] + near * ux, place[1] + near * uy], [place[0] + 0.28 * ux, place[1] + 0.28 * uy], 0.03, BRAWL.white, 0.005);
  }
  rays.paint(pen, 0.67);
  star.polygon(brawlStar(place, 0.3 + 0.06 * (frame % 3), frame * 0.4, 7, 0.4), [255, 236, 150]);
  star.polygon(brawlStar(place, 0.18, frame * 0.7, 7, 0.4), BRAWL.white, false);
  star.paint(pen);
}

function brawlDizziness(pen, f, frame) {
  const sketch = brawlSketch(0.025);
  for (let k = 0; k < 3; k++) {
    const angle = frame * 0.45 + (k * 2 * Math.PI) / 3;
    sketch.polygon(brawlStar([f.x + 0.42 * Math.cos(angle), f.y - 0.62 + 0.12 * Math.sin(angle)], 0.11, angle, 5, 0.45), [255, 226, 110]);
  }
  sketch.paint(pen);
}

function brawlAbsent(pen, f, team) {
  const age = (BRAWL.koFrames - f.timer) / 24;
  if (f.exit && age < 1) { // a burst where the fighter left the stage
    const [x, y] = f.exit, inward = Math.atan2(-y, -x), rays = brawlSketch();
    for (let k = -4; k <= 4; k++) {
      const angle = inward + k * 0.15, near = 0.4 + 3 * age, far = (2.6 + 3.2 * age) * (1 - 0.06 * Math.abs(k));
      rays.capsule([x + near * Math.cos(angle), y + near * Math.sin(angle)], [x + far * Math.cos(angle), y + far * Math.sin(angle)], 0.2,
        k % 2 ? team.base : BRAWL.white, 0.03);
    }
    rays.circle(f.exit, 0.9 * (1 - age) + 0.1, BRAWL.white);
    rays.paint(pen, 1 - age);
  }
  if (f.stocks <= 0) return;
  const ring = brawlSketch(0.02); // it closes where the fighter will come back
  for (let k = 0; k < 24; k++) {
    const angle = -Math.PI / 2 - (2 * Math.PI * k) / 24;
    if (k / 24 <= f.timer / BRAWL.koFrames) ring.circle([f.x + 0.55 * Math.cos(angle), f.y + 0.55 * Math.sin(angle)], 0.05, team.base);
  }
  ring.paint(pen, 0.82);
  pen.fillStyle = brawlHue(team.light); pen.textAlign = "center"; pen.textBaseline = "middle"; pen.font = "700 0.5px system-ui, sans-serif";
  pen.fillText(String(Math.ceil(f.timer / BRAWL.rate)), f.x, f.y);
}

function brawlFighter(pen, f, weapon, team, frame) {
  brawlStreaks(pen, f, team);
  brawlCharge(pen, f, weapon, frame);
  if (f.safe) brawlShimmer(pen, f, frame);
  brawlBlows(pen, f, weapon);
  const dodging = f.state === BRAWL.state.dodge, figure = (offset) => brawlFigure(f, weapon, team, f.pose, frame, offset);
  if (dodging) [-0.34, 0.34].forEach((offset) => figure(offset).paint(pen, 0.18));
  figure(0).paint(pen, dodging ? 0.5 : f.safe && frame % 6 < 2 ? 0.6 : 1);
  if (f.state === BRAWL.state.stun) brawlDizziness(pen, f, frame);
}

// --- names, damage, stocks and clock ---

function brawlDamageHue(damage) {
  const ramp = BRAWL.damage, k = Math.max(ramp.findIndex(([high]) => damage <= high), 1);
  if (damage > ramp[ramp.length - 1][0]) return brawlHue(ramp[ramp.length - 1][1]);
  const [low, from] = ramp[k - 1], [high, to] = ramp[k];
  return brawlHue(brawlMix(from, to, (damage - low) / (high - low)));
}

function brawlText(pen, text, x, y, size, hue, align, weight = 700) {
  pen.font = `${weight} ${size}px system-ui, "Segoe UI", Roboto, sans-serif`; pen.textAlign = align; pen.textBaseline = "middle";
  pen.lineJoin = "round"; pen.lineWidth = size * 0.16; pen.strokeStyle = brawlHue(BRAWL.ink); pen.strokeText(text, x, y);
  pen.fillStyle = hue; pen.fillText(text, x, y);
}

function brawlHud(pen, scene, width, height) {
  const u = Math.max(Math.min(width / 1000, height / 560), 0.6), wide = Math.min(216 * u, width * 0.38), high = 84 * u, top = 8 * u;
  scene.fighters.forEach((f, seat) => {
    const team = BRAWL.teams[seat], left = seat ? width - wide - 8 * u : 8 * u, weapon = scene.arsenal[f.weapon];
    pen.fillStyle = "rgba(18,19,36,0.78)"; pen.beginPath(); pen.roundRect(left, top, wide, high, 12 * u); pen.fill();
    pen.fillStyle = brawlHue(team.base); pen.beginPath(); pen.roundRect(left + 2 * u, top + 14 * u, 5 * u, high - 28 * u, 2.5 * u); pen.fill();
    const name = scene.names[seat] || "", most = Math.floor((wide - 30 * u) / (9.4 * u));
    brawlText(pen, name.length > most ? `${name.slice(0, most - 1)}\u2026` : name, left + 16 * u, top + 17 * u, 16 * u, brawlHue(team.light), "left");
    if (weapon.length > 0) brawlText(pen, weapon.name, left + 16 * u, top + 40 * u, 14 * u, brawlHue(brawlMix(weapon.color, BRAWL.white, 0.2)), "left", 600);
    brawlText(pen, String(Math.round(f.damage)), left + wide - 12 * u, top + 52 * u, 46 * u, brawlDamageHue(f.damage), "right", 800);
    if (f.stocks > 6) brawlText(pen, `x ${f.stocks}`, left + 18 * u, top + 66 * u, 17 * u, brawlHue(team.light), "left");
    for (let k = 0; k < f.stocks && f.stocks <= 6; k++) {
      [[8.5, BRAWL.ink], [6.5, team.base]].forEach(([radius, color]) => {
        pen.fillStyle = brawlHue(color); pen.beginPath(); pen.arc(left + (24 + 20 * k) * u, top + 66 * u, radius * u, 0, 7); pen.fill();
      });
    }
  });
  brawlText(pen, scene.clock, width / 2, 26 * u, 34 * u, scene.hurry ? brawlHue(BRAWL.danger) : brawlHue(BRAWL.white), "center", 800);
}

const brawlClock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds) % 60).padStart(2, "0")}`;

// --- the whole picture ---

// A scene: frame, clock, hurry, mirrored, platform, fighters (with pose and hits), items, names, arsenal, front (the seat that
// is drawn over the other), camera. A camera says which place is in the middle and how many units the picture is wide.
function paintBrawl(pen, scene, width, height) {
  const { x, y, width: across } = scene.camera, scale = width / across, [left, top, wide, high] = BRAWL.yard, far = 0.55;
  const view = (share) => { // what is far away moves less
    pen.translate(width / 2, height / 2);
    pen.scale(scale * (1 - 0.35 * (1 - share)), scale * (1 - 0.35 * (1 - share)));
    pen.translate(-x * share, -y * share);
  };
  pen.save();
  pen.fillStyle = brawlHue(BRAWL.sky[0]); pen.fillRect(0, 0, width, height);
  pen.save(); view(far); pen.drawImage(brawlYardPicture(), left, top, wide, high); pen.restore();
  view(1);
  const side = scene.mirrored ? -1 : 1;
  brawlGround(pen, side, BRAWL.high);
  brawlGround(pen, -side, BRAWL.low);
  const present = scene.fighters.filter((f) => f.state !== BRAWL.state.ko);
  present.forEach((f) => brawlShadow(pen, scene, f));
  brawlPlatform(pen, scene.platform);
  scene.items.forEach((item) => brawlItem(pen, item, scene.arsenal[item.weapon], scene.frame));
  for (const seat of scene.front === 0 ? [1, 0] : [0, 1]) {
    const f = scene.fighters[seat];
    if (f.state === BRAWL.state.ko) brawlAbsent(pen, f, BRAWL.teams[seat]);
    else brawlFighter(pen, f, scene.arsenal[f.weapon], BRAWL.teams[seat], scene.frame);
  }
  const [first, second] = scene.fighters;
  brawlImpact(pen, first, second);
  brawlImpact(pen, second, first);
  brawlClash(pen, scene.fighters, scene.frame);
  pen.restore();
  present.forEach((f) => brawlPointer(pen, f, BRAWL.teams[scene.fighters.indexOf(f)], scene.camera, width, height));
  brawlHud(pen, scene, width, height);
}

// An arrow at the edge of the picture says where a fighter is who left it.
function brawlPointer(pen, f, team, camera, width, height) {
  const scale = width / camera.width, px = width / 2 + (f.x - camera.x) * scale, py = height / 2 + (f.y - camera.y) * scale, edge = 26;
  if (px > -0.3 * scale && px < width + 0.3 * scale && py > -0.3 * scale && py < height + 0.3 * scale) return;
  const ex = Math.min(Math.max(px, edge), width - edge), ey = Math.min(Math.max(py, edge), height - edge), angle = Math.atan2(py - ey, px - ex);
  pen.save(); pen.translate(ex, ey);
  pen.fillStyle = brawlHue(team.base); pen.strokeStyle = brawlHue(BRAWL.ink); pen.lineWidth = 2;
  pen.beginPath(); pen.arc(0, 0, 11, 0, 7); pen.fill(); pen.stroke();
  pen.rotate(angle); pen.beginPath(); pen.moveTo(22, 0); pen.lineTo(12, -8); pen.lineTo(12, 8); pen.closePath(); pen.fill(); pen.stroke();
  pen.restore();
}

// A fighter between two frames: places are blended, unless somebody was put elsewhere; poses are blended too.
function brawlBetween(a, b, share, frame, arsenal) {
  const now = share < 0.5 ? a : b, moved = Math.hypot(b.x - a.x, b.y - a.y) < 2 && a.state !== BRAWL.state.ko && b.state !== BRAWL.state.ko;
  const mixed = moved ? { x: brawlLerp(a.x, b.x, share), y: brawlLerp(a.y, b.y, share), vx: brawlLerp(a.vx, b.vx, share), vy: brawlLerp(a.vy, b.vy, share) } : {};
  const f = { ...now, ...mixed }, [first, second] = [a, b].map((each) => brawlPoseOf({ ...each, ...mixed }, arsenal[each.weapon], frame));
  const isTurn = Math.abs(first.spin - second.spin) > 1.5 || Math.abs(first.weaponAngle - second.weaponAngle) > 3;
  f.pose = a.facing !== b.facing || isTurn ? (share < 0.5 ? first : second) : brawlBlend(first, second, share);
  const move = f.state === BRAWL.state.attack && f.move >= 0 ? arsenal[f.weapon].moves[f.move % arsenal[f.weapon].moves.length] : null;
  f.hits = (move ? move.hits : []).filter(({ frames }) => frames[0] <= f.moveFrame && f.moveFrame <= frames[1]).map(({ start, end, radius }) => ({
    start: [f.x + f.facing * start[0], f.y + start[1]], end: [f.x + f.facing * end[0], f.y + end[1]], radius,
  }));
  return f;
}

// --- replays of a report: columns of whole numbers per frame ---

PAINTERS.brawl = (pen, replay, at, width, height) => {
  const { scale, columns } = replay, i = Math.floor(at), last = replay.frames - 1, next = Math.min(i + 1, last), share = at - i;
  const arsenal = replay.arsenal || replay.weapons.map((name) => ({ name, color: BRAWL.steel, length: name === "fists" ? 0 : 1.2, heavy: name === "hammer", moves: [] }));
  const number = (name, seat, frame, missing = 0) => (columns[name + seat] ? columns[name + seat][frame] : missing);
  const fighter = (seat, frame) => {
    const before = Math.max(frame - 1, 0), speed = (name) => ((number(name, seat, frame) - number(name, seat, before)) * replay.rate_hz) / scale;
    const [vx, vy] = ["x", "y"].map((name) => (Math.abs(speed(name)) > 45 ? 0 : speed(name)));
    let seen = frame; // a fighter that was knocked out left the stage where it was last seen
    while (seen > 0 && number("state", seat, seen) === BRAWL.state.ko) seen--;
    return {
      x: number("x", seat, frame) / scale, y: number("y", seat, frame) / scale, vx, vy, facing: number("facing", seat, frame) || 1,
      state: number("state", seat, frame), timer: number("timer", seat, frame), damage: number("damage", seat, frame),
      stocks: number("stocks", seat, frame), weapon: number("weapon", seat, frame), safe: number("safe", seat, frame) > 0,
      move: number("move", seat, frame, -1), moveFrame: number("move_frame", seat, frame), charge: number("charge", seat, frame),
      grounded: Math.abs(vy) < 0.05, exit: seen === frame ? null : [number("x", seat, seen) / scale, number("y", seat, seen) / scale],
    };
  };
  const blows = (seat) => (replay.hits[i] || []).filter((hit) => hit[0] === seat).map((hit) => hit.slice(1).map((each) => each / scale))
    .map(([ax, ay, bx, by, radius]) => ({ start: [ax, ay], end: [bx, by], radius }));
  const blended = (name) => brawlLerp(columns[name][i], columns[name][next], share) / scale;
  paintBrawl(pen, {
    frame: at, clock: brawlClock(at / replay.rate_hz), hurry: false, front: 1, mirrored: replay.mirrored, names: replay.players, arsenal,
    platform: [blended("platform_x"), blended("platform_y")], camera: { x: 0, y: -0.09, width: 19.6 },
    items: replay.lying(i).map(([x, y, weapon]) => ({ x: x / scale, y: y / scale, weapon, life: 999, lock: 0 })),
    fighters: [0, 1].map((seat) => ({ ...brawlBetween(fighter(seat, i), fighter(seat, next), share, at, arsenal), hits: blows(seat) })),
  }, width, height);
};
