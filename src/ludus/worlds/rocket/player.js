// Draws one moment of a Rocket match from a stand at the side: the pitch at night, walls, goals, cars, ball, goals and clock.

const ROCKET = {
  eye: [9300, 0, 7300], target: [350, 0, 0], spread: 0.6, // half of the picture's width at a distance of 1
  teams: [{ base: "#3888ff", dark: "#1a429c", light: "#96caff" }, { base: "#ff8c28", dark: "#a04816", light: "#ffcc8e" }],
  grass: ["#24563e", "#306e4d"], line: "rgba(205,222,214,0.8)", ballRadius: 92, jump: 500, // uu a frame: put there, not moved
  field: [[4096, -3968], [4096, 3968], [2944, 5120], [-2944, 5120], [-4096, 3968], [-4096, -3968], [-2944, -5120], [2944, -5120]],
  hull: { x: [-47, 74], y: [-43, 43], z: [2, 40], big: 2.3 }, // cars are drawn so many times as large as they are
};

function rocketCamera(width, height) {
  const minus = (a, b) => a.map((each, k) => each - b[k]), dot = (a, b) => a.reduce((sum, each, k) => sum + each * b[k], 0);
  const ahead = minus(ROCKET.target, ROCKET.eye), far = Math.hypot(...ahead);
  ahead.forEach((each, k) => (ahead[k] = each / far));
  const level = Math.hypot(ahead[0], ahead[1]), right = [ahead[1] / level, -ahead[0] / level, 0];
  const up = [right[1] * ahead[2], -right[0] * ahead[2], right[0] * ahead[1] - right[1] * ahead[0]];
  return (x, y, z = 0) => {
    const seen = minus([x, y, z], ROCKET.eye), scale = width / 2 / ROCKET.spread / dot(seen, ahead);
    return [width / 2 + dot(seen, right) * scale, height / 2 - dot(seen, up) * scale, scale];
  };
}

function rocketShape(pen, to, points, fill, stroke, wide) {
  pen.beginPath();
  points.forEach((point, k) => { const [x, y] = to(...point); if (k) pen.lineTo(x, y); else pen.moveTo(x, y); });
  if (fill) { pen.closePath(); pen.fillStyle = fill; pen.fill(); }
  if (stroke) { pen.strokeStyle = stroke; pen.lineWidth = wide; pen.stroke(); }
}

function rocketPitch(pen, to, width, height, pads) {
  const night = pen.createLinearGradient(0, 0, 0, height);
  night.addColorStop(0, "#070916"); night.addColorStop(0.4, "#182044"); night.addColorStop(1, "#0c101e");
  pen.fillStyle = night; pen.fillRect(0, 0, width, height);
  const wall = (from, to_, hue) => rocketShape(pen, to, [[...from, 0], [...to_, 0], [...to_, 2044], [...from, 2044]], hue, "rgba(150,166,204,0.55)", 1);
  const f = ROCKET.field, hues = ["rgba(56,110,220,0.35)", "rgba(220,110,70,0.32)", "rgba(90,100,150,0.3)"];
  wall(f[6], f[7], hues[0]); wall(f[5], f[6], hues[0]); wall(f[2], f[3], hues[1]); wall(f[3], f[4], hues[1]); wall(f[4], f[5], hues[2]);
  rocketShape(pen, to, f, ROCKET.grass[0]);
  pen.save(); pen.beginPath();
  f.forEach(([x, y], k) => { const [px, py] = to(x, y); if (k) pen.lineTo(px, py); else pen.moveTo(px, py); });
  pen.clip();
  for (let k = 0; k < 16; k += 2) rocketShape(pen, to, [[-4096, -5120 + 640 * k], [4096, -5120 + 640 * k], [4096, -4480 + 640 * k], [-4096, -4480 + 640 * k]], ROCKET.grass[1]);
  pen.restore();
  [-1, 1].forEach((side) => {
    const team = ROCKET.teams[side < 0 ? 0 : 1], mouth = side * 5120, back = side * 6000;
    rocketShape(pen, to, [[-896, mouth], [896, mouth], [896, back], [-896, back]], team.dark);
    rocketShape(pen, to, [[-896, back, 0], [896, back, 0], [896, back, 560], [-896, back, 560]], "rgba(10,12,24,0.45)");
    rocketShape(pen, to, [[-896, mouth, 0], [-896, back, 0], [-896, back, 560], [-896, mouth, 640]], "rgba(10,12,24,0.45)");
    rocketShape(pen, to, [[-1650, side * 5110], [-1650, side * 3980], [1650, side * 3980], [1650, side * 5110]], "", team.light, 1.5);
    rocketShape(pen, to, [[-896, mouth, 0], [-896, mouth, 640], [896, mouth, 640], [896, mouth, 0]], "", team.light, 2.5);
  });
  rocketShape(pen, to, [[-4096, 0], [4096, 0]], "", ROCKET.line, 1.5);
  const circle = Array.from({ length: 49 }, (_, k) => [1020 * Math.cos((k * Math.PI) / 24), 1020 * Math.sin((k * Math.PI) / 24)]);
  rocketShape(pen, to, circle, "", ROCKET.line, 1.5);
  for (const [x, y, big] of pads) {
    const [px, py, scale] = to(x, y);
    pen.fillStyle = big ? "#ffc44a" : "rgba(255,196,74,0.55)";
    pen.beginPath(); pen.ellipse(px, py, (big ? 105 : 60) * scale, (big ? 62 : 36) * scale, 0, 0, 7); pen.fill();
  }
}

function rocketCar(pen, to, car, team) {
  const [x, y, z, w] = car.turn, big = ROCKET.hull.big;
  const place = ([a, b, c]) => { // turned by the quaternion, then moved
    const tx = 2 * (y * c - z * b), ty = 2 * (z * a - x * c), tz = 2 * (x * b - y * a);
    return [car.x + big * (a + w * tx + y * tz - z * ty), car.y + big * (b + w * ty + z * tx - x * tz),
      Math.max(car.z, 17) + big * (c + w * tz + x * ty - y * tx)];
  };
  const { x: [tail, nose], y: [right, left], z: [low, high] } = ROCKET.hull, belt = 26;
  const faces = [ // counter-clockwise as they are seen; those that turn away are left out
    [[[tail, right, belt], [nose, right, 14], [nose, left, 14], [tail, left, belt]], team.light],
    [[[tail, right, low], [tail, left, low], [nose, left, low], [nose, right, low]], "#1a1c24"],
    [[[nose, right, low], [nose, left, low], [nose, left, 14], [nose, right, 14]], "#fff6dc"],
    [[[tail, left, low], [tail, right, low], [tail, right, belt], [tail, left, belt]], "#e22e32"],
    [[[tail, right, low], [nose, right, low], [nose, right, 14], [tail, right, belt]], team.base],
    [[[nose, left, low], [tail, left, low], [tail, left, belt], [nose, left, 14]], team.dark],
    [[[-38, -32, belt], [30, -32, belt - 5], [6, -24, high], [-24, -24, high]], "#1e263a"],
    [[[30, 32, belt - 5], [-38, 32, belt], [-24, 24, high], [6, 24, high]], "#1e263a"],
    [[[30, -32, belt - 5], [30, 32, belt - 5], [6, 24, high], [6, -24, high]], "#26304a"],
    [[[-38, 32, belt], [-38, -32, belt], [-24, -24, high], [-24, 24, high]], "#26304a"],
    [[[-24, -24, high], [6, -24, high], [6, 24, high], [-24, 24, high]], team.base],
  ];
  if (car.doing & 1) {
    const [px, py, scale] = to(...place([tail, 0, 14])), [ex, ey] = to(...place([tail - 90, 0, 14]));
    pen.strokeStyle = "rgba(255,170,60,0.9)"; pen.lineCap = "round"; pen.lineWidth = 22 * big * scale;
    pen.beginPath(); pen.moveTo(px, py); pen.lineTo(ex, ey); pen.stroke();
  }
  for (const [corners, hue] of faces) {
    const flat = corners.map((corner) => to(...place(corner)));
    const turn = flat.reduce((sum, [px, py], k) => { const [qx, qy] = flat[(k + 1) % flat.length]; return sum + px * qy - qx * py; }, 0);
    if (turn >= 0) continue;
    pen.beginPath(); flat.forEach(([px, py], k) => (k ? pen.lineTo(px, py) : pen.moveTo(px, py))); pen.closePath();
    pen.fillStyle = hue; pen.fill();
  }
}

function rocketBall(pen, to, [x, y, z]) {
  const [sx, sy, low] = to(x, y), [px, py, scale] = to(x, y, z), radius = 1.25 * ROCKET.ballRadius * scale;
  pen.fillStyle = "rgba(8,20,16,0.6)";
  pen.beginPath(); pen.ellipse(sx, sy, 110 * low, 66 * low, 0, 0, 7); pen.fill();
  if (z > 250) { pen.strokeStyle = "rgba(244,246,248,0.6)"; pen.lineWidth = 1; pen.beginPath(); pen.moveTo(sx, sy); pen.lineTo(px, py); pen.stroke(); }
  const light = pen.createRadialGradient(px - radius / 3, py - radius / 2.5, radius / 6, px, py, radius);
  light.addColorStop(0, "#ffffff"); light.addColorStop(1, "#7d8698");
  pen.fillStyle = light; pen.beginPath(); pen.arc(px, py, radius, 0, 7); pen.fill();
}

function rocketBoard(pen, replay, cars, i, width) {
  const size = Math.max(width / 62, 6.5), middle = width / 2, columns = replay.columns, tenths = columns.clock[i];
  const seconds = Math.abs(tenths) / 10, whole = tenths < 0 ? Math.floor(seconds) : Math.ceil(seconds);
  pen.fillStyle = "rgba(16,19,36,0.85)"; pen.fillRect(middle - size * 7, size * 0.5, size * 14, size * 2.7);
  pen.textAlign = "center"; pen.font = `700 ${size * 1.8}px system-ui, sans-serif`;
  [["blue", -1], ["orange", 1]].forEach(([name, side], team) => {
    pen.fillStyle = ROCKET.teams[team].base; pen.fillRect(middle + side * size * 5.4 - size * 1.6, size * 0.5, size * 3.2, size * 2.7);
    pen.fillStyle = "#f4f6f8"; pen.fillText(columns[name][i], middle + side * size * 5.4, size * 2.5);
  });
  pen.fillText(`${tenths < 0 ? "+" : ""}${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`, middle, size * 2.5);
  const rows = [0, 0];
  pen.font = `600 ${size * 1.05}px system-ui, sans-serif`;
  cars.forEach((car, seat) => {
    const team = replay.teams[seat], top = size * (0.6 + 1.9 * rows[team]++), left = team ? width - size * 15.6 : size * 0.6;
    pen.fillStyle = "rgba(16,19,36,0.75)"; pen.fillRect(left, top, size * 15, size * 1.6);
    pen.fillStyle = ROCKET.teams[team].light; pen.textAlign = "left";
    pen.fillText((replay.players[seat] || "").slice(0, 14), left + size * 0.5, top + size * 1.15);
    pen.fillStyle = "#363c50"; pen.fillRect(left + size * 9.6, top + size * 0.5, size * 5, size * 0.6);
    pen.fillStyle = car.doing & 4 ? "#ff4848" : "#ffc44a"; pen.fillRect(left + size * 9.6, top + size * 0.5, size * 0.05 * car.boost, size * 0.6);
  });
}

// Columns are whole numbers a decision; between two of them places are blended, unless somebody was put elsewhere.
function drawRocket(pen, replay, at, width, height) {
  const columns = replay.columns, i = Math.floor(at), next = Math.min(i + 1, replay.frames - 1), blend = at - i;
  const place = (names) => {
    const [a, b] = [i, next].map((frame) => names.map((name) => columns[name][frame]));
    const jumped = Math.hypot(...a.map((each, k) => b[k] - each)) > ROCKET.jump;
    return a.map((each, k) => (jumped ? each : each + (b[k] - each) * blend));
  };
  const cars = replay.teams.map((team, seat) => {
    const [x, y, z] = place(["x", "y", "z"].map((name) => name + seat));
    const [p, q] = [i, next].map((frame) => ["qx", "qy", "qz", "qw"].map((name) => columns[name + seat][frame]));
    const way = p.reduce((sum, each, k) => sum + each * q[k], 0) < 0 ? -1 : 1;
    const turn = p.map((each, k) => each + (way * q[k] - each) * blend), length = Math.hypot(...turn) || 1;
    return { x, y, z, turn: turn.map((each) => each / length), team, seat, boost: columns[`boost${seat}`][i], doing: columns[`doing${seat}`][i] };
  });
  const to = rocketCamera(width, height), ball = place(["ball_x", "ball_y", "ball_z"]);
  rocketPitch(pen, to, width, height, replay.pads);
  const things = [...cars.filter((car) => !(car.doing & 4)), { x: ball[0], isBall: true }].sort((a, b) => a.x - b.x);
  for (const thing of things) {
    if (thing.isBall) { rocketBall(pen, to, ball); continue; }
    const [sx, sy, scale] = to(thing.x, thing.y);
    pen.fillStyle = "rgba(8,20,16,0.55)";
    pen.beginPath(); pen.ellipse(sx, sy, 115 * scale, 70 * scale, 0, 0, 7); pen.fill();
    rocketCar(pen, to, thing, ROCKET.teams[thing.team]);
  }
  rocketBoard(pen, replay, cars, i, width);
}

PAINTERS.rocket = drawRocket;
