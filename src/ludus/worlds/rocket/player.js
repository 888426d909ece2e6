// Draws one moment of a Rocket match as the videos do (rendering/*.py): stadium, boost pads, cars, ball, flames, score and
// instruments. `paintRocket` draws a moment; replays and live matches both come to it.

// --- cars ---

const ROCKET_CAR = { light: rocketUnit([0.32, -0.24, 0.92]), ambient: 0.52, steer: 0.5, faces: null };

// Faces whose corners run counter-clockwise: corners, part, number of the wheel or -1.
function rocketCarFaces() {
  if (ROCKET_CAR.faces) return ROCKET_CAR.faces;
  const faces = [], add = (part, corners, wheel = -1) => faces.push({ part, corners, wheel });
  const sections = [[-46, 34, 7, 26], [-34, 39, 3, 30], [24, 39, 3, 28], [58, 37, 3.5, 21], [74, 27, 7, 14]];
  sections.slice(1).forEach(([x1, w1, low1, high1], k) => {
    const [x0, w0, low0, high0] = sections[k], waist0 = low0 + 0.4 * (high0 - low0), waist1 = low1 + 0.4 * (high1 - low1);
    add("paint", [[x0, w0, high0], [x0, -w0, high0], [x1, -w1, high1], [x1, w1, high1]]);
    add("trim", [[x0, -w0, low0], [x0, w0, low0], [x1, w1, low1], [x1, -w1, low1]]);
    add("paint", [[x1, w1, waist1], [x0, w0, waist0], [x0, w0, high0], [x1, w1, high1]]);
    add("trim", [[x1, w1, low1], [x0, w0, low0], [x0, w0, waist0], [x1, w1, waist1]]);
    add("paint", [[x0, -w0, waist0], [x1, -w1, waist1], [x1, -w1, high1], [x0, -w0, high0]]);
    add("trim", [[x0, -w0, low0], [x1, -w1, low1], [x1, -w1, waist1], [x0, -w0, waist0]]);
  });
  [[sections[4], "headlight", 1], [sections[0], "taillight", -1]].forEach(([[x, w, low, high], lamp, way]) => {
    const edge = way * w, waist = low + 0.5 * (high - low);
    add("trim", [[x, -edge, low], [x, edge, low], [x, edge, waist], [x, -edge, waist]]);
    [[-1, -0.5, lamp], [-0.5, 0.5, "paint"], [0.5, 1, lamp]].forEach(([a, b, part]) =>
      add(part, [[x, a * edge, waist], [x, b * edge, waist], [x, b * edge, high], [x, a * edge, high]]));
  });
  const [bl, br, fl, fr] = [[-40, 32, 28], [-40, -32, 28], [30, 33, 27], [30, -33, 27]], [tbl, tbr, tl, tr] = [[-24, 24, 45], [-24, -24, 45], [8, 24, 44], [8, -24, 44]];
  [[fr, fl, tl, tr], [bl, br, tbr, tbl], [fl, bl, tbl, tl], [br, fr, tr, tbr]].forEach((corners) => add("window", corners));
  add("paint", [tbl, tbr, tr, tl]);
  const wing = [[-52, 36, 47], [-52, -36, 47], [-38, -36, 44], [-38, 36, 44]];
  add("paint", wing); add("trim", [...wing].reverse()); add("paint", [[-52, 36, 41], [-52, -36, 41], [-52, -36, 47], [-52, 36, 47]]);
  for (const y of [27, -27]) {
    const strut = [[-40, y, 26], [-46, y, 26], [-46, y, 44], [-40, y, 44]];
    add("trim", strut); add("trim", [...strut].reverse());
  }
  [[50, 33, 16], [-31, 33, 17.5]].forEach(([x, inner, radius], number) => [1, -1].forEach((left, side) => {
    const y = left * inner, outer = y + left * 13, z = radius - 17, wheel = 2 * number + side;
    const rim = (part, at, reach) => { const angle = (2 * Math.PI * (part + 0.5)) / 8; return [x + reach * Math.cos(angle), at, z + reach * Math.sin(angle)]; };
    const quad = (corners, flips) => (flips ? corners.reverse() : corners);
    for (let part = 0; part < 8; part++) add("tyre", quad([rim(part, y, radius), rim(part, outer, radius), rim(part + 1, outer, radius), rim(part + 1, y, radius)], left < 0), wheel);
    [[radius, "tyre", outer, left > 0], [0.55 * radius, "hub", outer + left * 0.5, left > 0], [radius, "tyre", y, left < 0]].forEach(([reach, part, at, flips]) =>
      [0, 2, 4].forEach((k) => add(part, quad([rim(7, at, reach), rim(k, at, reach), rim(k + 1, at, reach), rim(k + 2, at, reach)], flips), wheel)));
  }));
  return (ROCKET_CAR.faces = faces);
}

// The rows of a rotation's matrix; its columns are the car's axes forward, left and up.
function rocketMatrix([x, y, z, w]) {
  return [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]];
}
const rocketTurned = (matrix, p) => [rocketDot(matrix[0], p), rocketDot(matrix[1], p), rocketDot(matrix[2], p)];

function rocketCar(pen, camera, car, size) {
  const team = ROCKET.teams[car.team], matrix = rocketMatrix(car.rotation), spot = camera.pixel(car.position), steer = Math.max(-1, Math.min(1, car.steer || 0));
  if (!spot || spot[0] < -300 || spot[0] > camera.width + 300) return;
  const hues = {
    paint: team.base, trim: rocketMix(team.dark, [20, 22, 32], 0.45), window: [30, 38, 58], tyre: [26, 28, 36], hub: [176, 184, 198], headlight: [252, 248, 236], taillight: [232, 46, 50],
  };
  const cos = Math.cos(-steer * ROCKET_CAR.steer), sin = Math.sin(-steer * ROCKET_CAR.steer), shown = [];
  for (const { part, corners, wheel } of rocketCarFaces()) {
    if (wheel >= 0 && spot[2] * size < 0.05) continue; // too small to be seen
    const placed = corners.map((corner) => {
      let [x, y, z] = corner;
      if (wheel === 0 || wheel === 1) { const dx = x - 50, dy = y - (wheel ? -33 : 33); x = 50 + dx * cos - dy * sin; y = (wheel ? -33 : 33) + dx * sin + dy * cos; }
      return rocketAhead(car.position, rocketTurned(matrix, [x, y, z]), size);
    });
    const normal = rocketUnit(rocketCross(rocketLess(placed[1], placed[0]), rocketLess(placed[2], placed[0])));
    if (rocketDot(rocketLess(placed[0], camera.eye), normal) >= 0) continue;
    const found = camera.outline(placed);
    if (!found) continue;
    const glows = part === "headlight" || part === "taillight";
    const light = glows ? 1 : Math.min(1.06 * (ROCKET_CAR.ambient + (1 - ROCKET_CAR.ambient) * Math.max(rocketDot(normal, ROCKET_CAR.light), 0)), 1);
    const away = placed.reduce((sum, p) => sum + Math.hypot(...rocketLess(p, camera.eye)), 0) / placed.length;
    shown.push({ found, hue: rocketHue(hues[part].map((each) => each * light)), away: away - (part === "hub" ? 8 : 0) });
  }
  shown.sort((a, b) => b.away - a.away);
  for (const { found, hue } of shown) rocketFill(pen, found, hue, 0.7);
}

function rocketShadow(pen, camera, car, size) {
  const matrix = rocketMatrix(car.rotation), ground = [[-50, 38], [-50, -38], [62, -42], [76, -22], [76, 22], [62, 42]].map(([x, y]) => {
    const turned = rocketTurned(matrix, [x, y, 0]);
    return [car.position[0] + size * turned[0], car.position[1] + size * turned[1], 0];
  });
  const found = camera.outline(ground), weak = Math.min(Math.max(car.position[2] - 17, 0) / 700, 1);
  if (found) rocketFill(pen, found, rocketHue([18, 44, 38], 0.85 * (1 - 0.75 * weak)));
}

function rocketFlame(pen, camera, car, time, size) {
  const matrix = rocketMatrix(car.rotation), tail = rocketAhead(car.position, rocketTurned(matrix, [-50, 0, 14]), size), back = rocketTurned(matrix, [-1, 0, 0]);
  const length = size * 92 * (0.82 + 0.18 * Math.sin(time * 61) * Math.sin(time * 37 + 1.3)), start = camera.pixel(tail);
  if (!start) return;
  rocketGlow(pen, start, size * 46 * start[2], ROCKET.flame, 0.6);
  [[1, 15, [255, 122, 36]], [0.72, 10, ROCKET.flame], [0.42, 6, [255, 244, 214]]].forEach(([share, wide, color]) => {
    const end = camera.pixel(rocketAhead(tail, back, share * length));
    if (!end) return;
    const dx = end[0] - start[0], dy = end[1] - start[1], long = Math.hypot(dx, dy) || 1, radius = Math.max(size * wide * start[2], 0.8);
    pen.fillStyle = rocketHue(color); pen.beginPath(); pen.arc(start[0], start[1], radius, 0, 7); pen.fill();
    rocketFill(pen, [[start[0] - (dy / long) * radius, start[1] + (dx / long) * radius], end, [start[0] + (dy / long) * radius, start[1] - (dx / long) * radius]], rocketHue(color));
  });
}

function rocketExplosion(pen, camera, car, seat) {
  const age = 3 - car.demolished, spot = camera.pixel(car.position), share = Math.max(age, 0) / 0.9; // cars come back after 3 s
  if (!spot || share > 1) return;
  const fire = [[255, 250, 224], [255, 198, 84], [244, 106, 42], [120, 52, 46]][Math.min(Math.floor(share * 4), 3)];
  rocketGlow(pen, spot, (170 + 330 * Math.sqrt(share)) * spot[2], fire, 1 - share);
  rocketGlow(pen, spot, 150 * spot[2], ROCKET.white, 1 - 2.5 * share);
  for (let k = 0; k < 16; k++) {
    const angle = k * 2.4 + seat, way = [420 * Math.cos(angle), 420 * Math.sin(angle), 260 + 60 * ((k * 7) % 6)];
    const place = rocketAhead(car.position, way, age), where = camera.pixel([place[0], place[1], Math.max(place[2] - 450 * age * age, 8)]);
    if (!where) continue;
    const turn = k + 9 * age, points = [0, 2, 3.6].map((each) => [where[0] + 15 * where[2] * Math.cos(turn + each), where[1] + 15 * where[2] * Math.sin(turn + each)]);
    rocketFill(pen, points, rocketHue([fire, ROCKET.teams[car.team].base, [40, 42, 52]][k % 3]));
  }
}

// --- ball and pads ---

const ROCKET_PATCHES = (() => { // middles of twelve patches on a sphere, and their five corners
  const golden = (1 + Math.sqrt(5)) / 2, middles = [];
  for (const a of [-1, 1]) for (const b of [-1, 1]) middles.push([0, a, b * golden], [a, b * golden, 0], [b * golden, 0, a]);
  const units = middles.map(rocketUnit);
  return units.map((middle) => {
    const near = units.filter((other) => other !== middle).sort((p, q) => rocketDot(q, middle) - rocketDot(p, middle)).slice(0, 5);
    const flat = near.map((other) => rocketUnit(rocketAhead(other, middle, -rocketDot(other, middle)))), aside = rocketCross(middle, flat[0]);
    const sorted = flat.sort((p, q) => Math.atan2(rocketDot(p, aside), rocketDot(p, flat[0])) - Math.atan2(rocketDot(q, aside), rocketDot(q, flat[0])));
    return { middle, corners: sorted.map((way) => rocketAhead(middle.map((each) => Math.cos(0.34) * each), way, Math.sin(0.34))) };
  });
})();

function rocketBall(pen, camera, ball, size) {
  const spot = camera.pixel(ball.position);
  if (!spot) return;
  const [x, y, scale] = spot, radius = size * ROCKET.ballRadius * scale;
  if (radius > 1500 || x < -radius || x > camera.width + radius || y < -radius || y > camera.height + radius) return;
  const light = pen.createRadialGradient(x - radius * 0.35, y - radius * 0.45, radius * 0.1, x, y, radius);
  light.addColorStop(0, "#ffffff"); light.addColorStop(0.45, "#d8dde6"); light.addColorStop(1, "#6c7486");
  pen.fillStyle = light; pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fill();
  if (radius < 4) return;
  const toward = rocketUnit(rocketLess(camera.eye, ball.position)), right = rocketUnit(rocketCross(camera.up, toward)), up = rocketCross(toward, right);
  for (const { middle, corners } of ROCKET_PATCHES) {
    const face = rocketTurned(ball.turn, middle), front = rocketDot(face, toward);
    if (front < 0.12) continue;
    const points = corners.map((corner) => {
      const turned = rocketTurned(ball.turn, corner);
      let [px, py] = [rocketDot(turned, right), rocketDot(turned, up)];
      if (rocketDot(turned, toward) < 0) { const length = Math.hypot(px, py); px /= length; py /= length; }
      return [x + radius * px, y - radius * py];
    });
    rocketFill(pen, points, rocketHue(rocketMix([58, 66, 84], [22, 26, 38], 0.5 - 0.5 * rocketDot(face, up))));
  }
}

const ROCKET_RING = Array.from({ length: 20 }, (_, k) => [Math.cos((k * Math.PI) / 10), Math.sin((k * Math.PI) / 10)]);
const rocketDisc = (camera, x, y, radius, z = 0) => camera.outline(ROCKET_RING.map(([a, b]) => [x + radius * a, y + radius * b, z]));

function rocketBallShadow(pen, camera, [x, y, z], size) {
  const lift = Math.max(z - ROCKET.ballRadius, 0), disc = rocketDisc(camera, x, y, size * ROCKET.ballRadius * 0.95), ring = rocketDisc(camera, x, y, size * ROCKET.ballRadius * 1.35);
  if (disc) rocketFill(pen, disc, rocketHue([18, 44, 38], 0.85 * (1 - Math.min(lift / 2200, 0.8))));
  const [foot, high] = [camera.pixel([x, y, 0]), camera.pixel([x, y, z])];
  if (lift < 160 || !ring || !foot || !high) return;
  pen.strokeStyle = rocketHue(ROCKET.white, 0.75); pen.lineWidth = 1.2;
  pen.beginPath(); ring.forEach(([a, b], k) => (k ? pen.lineTo(a, b) : pen.moveTo(a, b))); pen.closePath();
  pen.moveTo(foot[0], foot[1]); pen.lineTo(high[0], high[1]); pen.stroke();
}

function rocketPads(pen, camera, pads) {
  for (const { x, y, big, away } of pads) {
    const radius = big ? 118 : 62, plate = rocketDisc(camera, x, y, radius), cover = rocketDisc(camera, x, y, 0.68 * radius), isThere = away <= 0;
    if (!plate) continue;
    rocketFill(pen, plate, rocketHue(isThere ? ROCKET.padBase : ROCKET.padAway));
    if (cover) rocketFill(pen, cover, rocketHue(isThere ? ROCKET.pad : rocketMix(ROCKET.padAway, ROCKET.padBase, 0.4)));
    const spot = camera.pixel([x, y, big ? 112 : 12]);
    if (!isThere || !spot || spot[2] < 0.05) continue;
    rocketGlow(pen, spot, (big ? 150 : 80) * spot[2], ROCKET.pad, big ? 0.5 : 0.3);
    if (!big) continue;
    [[46, ROCKET.pad, 0, 0], [17, rocketMix(ROCKET.pad, ROCKET.white, 0.65), -12, -14]].forEach(([size, color, dx, dy]) => {
      pen.fillStyle = rocketHue(color); pen.beginPath(); pen.arc(spot[0] + dx * spot[2], spot[1] + dy * spot[2], size * spot[2], 0, 7); pen.fill();
    });
  }
}

// --- score, players and instruments ---

function rocketText(pen, text, x, y, size, color, align) {
  pen.font = `700 ${size}px system-ui, "Segoe UI", Roboto, sans-serif`; pen.textAlign = align; pen.textBaseline = "middle"; pen.lineJoin = "round";
  pen.lineWidth = size * 0.16; pen.strokeStyle = rocketHue(ROCKET.ink); pen.strokeText(text, x, y);
  pen.fillStyle = rocketHue(color); pen.fillText(text, x, y);
}
const rocketPanel = (pen, x, y, wide, high, round, hue) => { pen.fillStyle = hue; pen.beginPath(); pen.roundRect(x, y, wide, high, round); pen.fill(); };

function rocketHud(pen, scene, width, height) {
  const u = Math.max(Math.min(width / 1000, height / 560), 0.55), middle = width / 2, clock = scene.clock, seconds = clock < 0 ? Math.floor(-clock) : Math.ceil(clock);
  rocketPanel(pen, middle - 118 * u, 8 * u, 236 * u, 46 * u, 8 * u, rocketHue(ROCKET.panel, 0.86));
  [-1, 1].forEach((side, team) => {
    rocketPanel(pen, middle + side * 89 * u - 29 * u, 8 * u, 58 * u, 46 * u, 8 * u, rocketHue(rocketMix(ROCKET.teams[team].base, ROCKET.ink, 0.12)));
    rocketText(pen, String(scene.goals[team]), middle + side * 89 * u, 32 * u, 32 * u, ROCKET.white, "center");
  });
  rocketText(pen, `${clock < 0 ? "+" : ""}${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, middle, 32 * u, 29 * u, clock <= 10 ? ROCKET.danger : ROCKET.white, "center");
  if (clock < 0) rocketText(pen, "OVERTIME", middle, 66 * u, 15 * u, ROCKET.danger, "center");
  const rows = [0, 0], wide = Math.min(218 * u, width / 2 - 126 * u > 110 * u ? width / 2 - 130 * u : width / 2 - 12 * u), low = width / 2 - 126 * u > 110 * u ? 10 : 62;
  scene.cars.forEach((car, seat) => {
    const team = ROCKET.teams[car.team], left = car.team ? width - wide - 8 * u : 8 * u, top = (low + 30 * rows[car.team]++) * u, bar = Math.min(78 * u, wide * 0.4);
    rocketPanel(pen, left, top, wide, 26 * u, 5 * u, rocketHue(ROCKET.panel, 0.66)); rocketPanel(pen, left, top, 5 * u, 26 * u, 2 * u, rocketHue(team.base));
    const name = scene.names[seat] || "", most = Math.max(Math.floor((wide - bar - 30 * u) / (8.6 * u)), 3);
    rocketText(pen, name.length > most ? `${name.slice(0, most - 1)}\u2026` : name, left + 12 * u, top + 13.5 * u, 14.5 * u, team.light, "left");
    if (car.demolished > 0) { rocketText(pen, `back in ${Math.ceil(car.demolished)}`, left + wide - 8 * u, top + 13.5 * u, 12 * u, ROCKET.danger, "right"); return; }
    rocketPanel(pen, left + wide - bar - 8 * u, top + 9 * u, bar, 8 * u, 4 * u, rocketHue(rocketMix(ROCKET.panel, ROCKET.muted, 0.25)));
    if (car.boost > 1) rocketPanel(pen, left + wide - bar - 8 * u, top + 9 * u, bar * Math.min(car.boost / 100, 1), 8 * u, 4 * u, rocketHue(car.boosting ? ROCKET.flame : ROCKET.pad));
  });
  if (scene.scorer >= 0) {
    const team = ROCKET.teams[scene.scorer], grow = Math.min(scene.goalAge / 0.18, 1);
    rocketText(pen, "GOAL", middle, height * 0.27, (44 + 44 * grow) * u, ROCKET.white, "center");
    rocketText(pen, `${team.name} scores`, middle, height * 0.27 + 58 * u, 26 * u, team.light, "center");
  }
}

function rocketInstruments(pen, scene, width, height) {
  const u = Math.max(Math.min(width / 1000, height / 560), 0.5), car = scene.cars[scene.driver], team = ROCKET.teams[car.team], cx = width - 76 * u, cy = height - 74 * u, speed = Math.hypot(...car.velocity);
  const arc = (radius, wide, share, color) => {
    if (share < 0.01) return;
    pen.strokeStyle = rocketHue(color); pen.lineWidth = wide; pen.lineCap = "butt"; pen.beginPath(); pen.arc(cx, cy, radius, 0.75 * Math.PI, (0.75 + 1.5 * Math.min(share, 1)) * Math.PI); pen.stroke();
  };
  pen.fillStyle = rocketHue(ROCKET.panel, 0.74); pen.beginPath(); pen.arc(cx, cy, 64 * u, 0, 7); pen.fill();
  arc(52 * u, 9 * u, 1, rocketMix(ROCKET.panel, ROCKET.muted, 0.3));
  arc(52 * u, 9 * u, car.boost / 100, car.boosting ? ROCKET.flame : car.boost < 20 ? ROCKET.danger : ROCKET.pad);
  arc(40 * u, 3.5 * u, speed / 2300, car.supersonic ? team.light : team.base);
  rocketText(pen, String(Math.round(car.boost)), cx, cy - 5 * u, 35 * u, ROCKET.white, "center");
  rocketText(pen, car.supersonic ? "SUPERSONIC" : `${Math.round(speed)} uu/s`, cx, cy + 21 * u, 10.5 * u, car.supersonic ? ROCKET.white : ROCKET.muted, "center");
  const scale = 0.0133 * u, way = car.team ? -1 : 1, mx = 12 * u + ROCKET.sideX * scale, my = height - 12 * u - (ROCKET.backY + 300) * scale; // a map, the own goal below
  const at = ([x, y]) => [mx + way * x * scale, my - way * y * scale], edge = [[4096, 3968], [2944, 5120], [-2944, 5120], [-4096, 3968], [-4096, -3968], [-2944, -5120], [2944, -5120], [4096, -3968]];
  rocketFill(pen, edge.map(at), rocketHue(rocketMix(ROCKET.grass[0], ROCKET.ink, 0.45), 0.8));
  pen.strokeStyle = rocketHue(ROCKET.line, 0.75); pen.lineWidth = 1.2; pen.stroke();
  [-1, 1].forEach((side, k) => { const [[ax, ay], [bx, by]] = [at([-896, side * 5120]), at([896, side * 5120])]; pen.strokeStyle = rocketHue(ROCKET.teams[k].base); pen.lineWidth = 3.5 * u; pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(bx, by); pen.stroke(); });
  const dot = (place, radius, color) => { pen.fillStyle = rocketHue(color); pen.beginPath(); pen.arc(...at(place), radius * u, 0, 7); pen.fill(); };
  scene.cars.forEach((each, seat) => {
    if (each.demolished > 0) return;
    if (seat === scene.driver) dot(each.position, 5.6, ROCKET.white);
    dot(each.position, 4, ROCKET.teams[each.team].base);
  });
  dot(scene.ball.position, 4.4, ROCKET.ink); dot(scene.ball.position, 3.2, ROCKET.white);
}

// --- the whole picture ---

// A scene: time, clock, goals, names, cars, ball (with its turn as a matrix), pads, trails, scorer and goalAge, camera, sizes of
// cars and ball as they are painted, and driver: the seat whose instruments are shown, or -1.
function paintRocket(pen, scene, width, height) {
  const camera = rocketCamera(scene.camera, width, height), [carSize, ballSize] = scene.sizes;
  pen.save();
  if (scene.backdrop) pen.drawImage(scene.backdrop(camera), 0, 0, width, height);
  else rocketScenery(pen, camera);
  rocketPads(pen, camera, scene.pads);
  const driving = scene.cars.filter((car) => car.demolished <= 0);
  driving.forEach((car) => rocketShadow(pen, camera, car, carSize));
  rocketBallShadow(pen, camera, scene.ball.position, ballSize);
  scene.trails.forEach((trail, seat) => trail.forEach(({ place, age }) => {
    const spot = camera.pixel(place);
    if (spot) rocketGlow(pen, spot, (16 + 20 * age) * spot[2], ROCKET.teams[scene.cars[seat].team].base, 0.7 * (1 - age));
  }));
  const away = (place) => Math.hypot(...rocketLess(place, camera.eye)), things = [...driving, scene.ball].sort((a, b) => away(b.position) - away(a.position));
  for (const thing of things) {
    if (thing === scene.ball) { rocketBall(pen, camera, scene.ball, ballSize); continue; }
    const nose = rocketTurned(rocketMatrix(thing.rotation), [1, 0, 0]), flameFirst = rocketDot(nose, rocketLess(thing.position, camera.eye)) < 0;
    if (thing.boosting && flameFirst) rocketFlame(pen, camera, thing, scene.time, carSize);
    rocketCar(pen, camera, thing, carSize);
    if (thing.boosting && !flameFirst) rocketFlame(pen, camera, thing, scene.time, carSize);
  }
  scene.cars.forEach((car, seat) => { if (car.demolished > 0) rocketExplosion(pen, camera, car, seat); });
  if (scene.scorer >= 0) {
    const share = Math.min(scene.goalAge / 1.4, 1), side = scene.scorer === 0 ? 1 : -1;
    for (let k = 0; k < 14; k++) {
      const angle = k * 2.4 + 0.6, reach = (200 + 1500 * Math.sqrt(share)) * (0.35 + 0.065 * ((k * 7) % 10));
      const spot = camera.pixel([reach * Math.cos(angle), side * (ROCKET.backY - 0.6 * reach * share), Math.max(330 + 0.7 * reach * Math.sin(angle), 20)]);
      if (spot) rocketGlow(pen, spot, (190 + 160 * share) * spot[2], ROCKET.teams[scene.scorer].base, 1 - share);
    }
  }
  scene.cars.forEach((car, seat) => {
    const spot = seat === scene.driver || car.demolished > 0 ? null : camera.pixel(rocketAhead(car.position, [0, 0, 1], 95 * carSize));
    if (spot) rocketText(pen, (scene.names[seat] || "").slice(0, 15), spot[0], spot[1] - 8, Math.max(11, width / 95), ROCKET.teams[car.team].light, "center");
  });
  pen.restore();
  rocketHud(pen, scene, width, height);
  if (scene.driver >= 0) rocketInstruments(pen, scene, width, height);
}

// --- replays of a report: columns of whole numbers per decision, seen from a stand that never moves ---

const ROCKET_STAND = { eye: [9300, 0, 7300], target: [350, 0, 0], wide: 62 };
let rocketStill = null; // the stadium from there, painted once per size

function rocketStillPicture(camera) {
  const { width, height } = camera, scale = 2;
  if (!rocketStill || rocketStill.width !== Math.round(width * scale) || rocketStill.height !== Math.round(height * scale)) {
    rocketStill = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = rocketStill.getContext("2d");
    pen.scale(scale, scale);
    rocketScenery(pen, camera);
  }
  return rocketStill;
}

// The middle of the ball rolls over the ground below it, as far as a picture alone can say.
function rocketRolled([x, y]) {
  const a = x / ROCKET.ballRadius, b = y / ROCKET.ballRadius, [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
  return [[ca, sa * sb, sa * cb], [0, cb, -sb], [-sa, ca * sb, ca * cb]];
}

PAINTERS.rocket = (pen, replay, at, width, height) => {
  const { columns } = replay, i = Math.floor(at), next = Math.min(i + 1, replay.frames - 1), share = at - i;
  const place = (names) => { // blended between two decisions, unless somebody was put elsewhere
    const [a, b] = [i, next].map((frame) => names.map((name) => columns[name][frame]));
    return Math.hypot(...rocketLess(b, a)) > 500 ? a : rocketAhead(a, rocketLess(b, a), share);
  };
  const cars = replay.teams.map((team, seat) => {
    const [p, q] = [i, next].map((frame) => ["qx", "qy", "qz", "qw"].map((name) => columns[name + seat][frame]));
    const way = p.reduce((sum, each, k) => sum + each * q[k], 0) < 0 ? -1 : 1, turn = p.map((each, k) => each + (way * q[k] - each) * share), length = Math.hypot(...turn) || 1;
    const doing = columns[`doing${seat}`][i], position = place(["x", "y", "z"].map((name) => name + seat));
    return {
      position, rotation: turn.map((each) => each / length), velocity: [0, 0, 0], team, boost: columns[`boost${seat}`][i], boosting: (doing & 1) > 0,
      supersonic: (doing & 2) > 0, demolished: doing & 4 ? 2 : 0, steer: 0,
    };
  });
  const ball = place(["ball_x", "ball_y", "ball_z"]);
  let since = 0; // decisions since the last goal
  while (since < 2 * replay.rate_hz && since < i && columns.blue[i - since] === columns.blue[i - since - 1] && columns.orange[i - since] === columns.orange[i - since - 1]) since++;
  const scorer = since < 2 * replay.rate_hz && since < i ? (columns.blue[i - since] > columns.blue[i - since - 1] ? 0 : 1) : -1;
  paintRocket(pen, {
    time: at / replay.rate_hz, clock: columns.clock[i] / 10, goals: [columns.blue[i], columns.orange[i]], names: replay.players, cars,
    ball: { position: ball, turn: rocketRolled(ball) }, pads: replay.pads.map(([x, y, big]) => ({ x, y, big: big > 0, away: 0 })), trails: [],
    scorer, goalAge: since / replay.rate_hz, camera: ROCKET_STAND, sizes: [2.9, 1.5], driver: -1, backdrop: rocketStillPicture,
  }, width, height);
};
