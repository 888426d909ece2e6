// The stadium of Rocket and the camera that looks at it, as in the videos (rendering/stadium.py, rendering/camera.py): sky,
// stands with their crowd, pitch, walls and goals. Lengths in uu, z up; colours are [red, green, blue].

const ROCKET = {
  teams: [
    { name: "Blue", base: [56, 136, 255], dark: [26, 66, 156], light: [150, 202, 255] },
    { name: "Orange", base: [255, 140, 40], dark: [160, 72, 22], light: [255, 204, 142] },
  ],
  ink: [10, 12, 24], white: [244, 246, 248], muted: [150, 158, 176], panel: [16, 19, 36], danger: [255, 72, 72],
  sky: [[7, 9, 22], [12, 16, 38], [24, 31, 66], [46, 54, 96]], ground: [14, 18, 32], stand: [27, 31, 56], standLight: [39, 44, 76],
  grass: [[36, 86, 62], [48, 110, 77]], line: [205, 222, 214], glass: [[62, 70, 112], [42, 74, 156], [128, 72, 84]], rail: [150, 166, 204],
  lamp: [255, 250, 232], pad: [255, 196, 74], padBase: [92, 84, 66], padAway: [56, 66, 70], flame: [255, 190, 90],
  sideX: 4096, backY: 5120, top: 2048, cornerSum: 8064, fillet: 256, backFillet: 160, ceilingFillet: 512,
  goalX: 896, goalZ: 640, goalY: 880, ballRadius: 91.25, near: 12, mist: [3000, 26000],
};

const rocketMix = (a, b, share) => a.map((each, k) => each + (b[k] - each) * Math.min(Math.max(share, 0), 1));
const rocketHue = (color, alpha = 1) => `rgba(${color.map(Math.round).join(",")},${alpha})`;
const rocketDot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const rocketCross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const rocketLess = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const rocketAhead = (place, way, time) => [place[0] + way[0] * time, place[1] + way[1] * time, place[2] + way[2] * time];
const rocketUnit = (a) => { const length = Math.hypot(...a) || 1; return a.map((each) => each / length); };

// An eye that looks at a place; `wide` is the angle between the left and the right edge, in degrees.
function rocketCamera({ eye, target, wide }, width, height) {
  const ahead = rocketUnit(rocketLess(target, eye)), level = Math.hypot(ahead[0], ahead[1]) || 1e-9;
  const right = [ahead[1] / level, -ahead[0] / level, 0], up = rocketCross(right, ahead);
  const focal = Math.max(width / 2 / Math.tan((wide * Math.PI) / 360), height / 2 / Math.tan(0.66)); // a tall picture sees less to the sides
  const see = (p) => { const d = rocketLess(p, eye); return [rocketDot(d, right), rocketDot(d, up), rocketDot(d, ahead)]; };
  const flat = ([x, y, z]) => [width / 2 + (x * focal) / z, height / 2 - (y * focal) / z];
  // The corners of a polygon in the picture, cut off in front of the eye; null if it is out of sight.
  const outline = (points) => {
    let seen = points.map(see);
    if (seen.some((p) => p[2] < ROCKET.near)) {
      const kept = [];
      seen.forEach((p, k) => {
        const q = seen[(k + seen.length - 1) % seen.length], a = q[2] - ROCKET.near, b = p[2] - ROCKET.near;
        if (a >= 0 !== b >= 0) kept.push(rocketAhead(q, rocketLess(p, q), a / (a - b)));
        if (b >= 0) kept.push(p);
      });
      seen = kept;
    }
    if (seen.length < 3) return null;
    const found = seen.map(flat), xs = found.map((p) => p[0]), ys = found.map((p) => p[1]);
    if (Math.max(...xs) < 0 || Math.min(...xs) > width || Math.max(...ys) < 0 || Math.min(...ys) > height) return null;
    return found;
  };
  // The pixel of a place and the pixels per uu there; null behind the eye.
  const pixel = (place) => { const p = see(place); return p[2] < ROCKET.near ? null : [...flat(p), focal / p[2]]; };
  return { eye, ahead, right, up, focal, width, height, see, flat, outline, pixel };
}

function rocketFill(pen, points, color, edge = 0) {
  pen.beginPath();
  points.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.fillStyle = color;
  pen.fill();
  if (edge) { pen.strokeStyle = color; pen.lineWidth = edge; pen.lineJoin = "round"; pen.stroke(); }
}

function rocketFaces(pen, camera, faces, edge) {
  const [from, to] = ROCKET.mist;
  for (const { points, color, normal } of faces) {
    const away = rocketLess(points[0], camera.eye);
    if (rocketDot(away, normal) >= 0) continue; // it shows its back
    const found = camera.outline(points);
    if (found) rocketFill(pen, found, rocketHue(rocketMix(color, ROCKET.sky[2], (Math.hypot(...away) - from) / (to - from))), edge);
  }
}

const rocketFace = (points, color) => ({ points, color, normal: rocketUnit(rocketCross(rocketLess(points[1], points[0]), rocketLess(points[2], points[0]))) });
const rocketTint = (color, y, strength) => rocketMix(color, ROCKET.teams[y < 0 ? 0 : 1].base, strength * Math.min(Math.abs(y) / ROCKET.backY, 1) ** 1.5);
const rocketSpread = (from, to, count) => Array.from({ length: count + 1 }, (_, k) => from + ((to - from) * k) / count);

// Places on the foot of the walls, counter-clockwise around the field, with the way into it.
function rocketPosts() {
  const { sideX, backY, cornerSum, fillet, backFillet, goalX } = ROCKET, tangent = 256 * Math.SQRT2;
  const post = (x, y, inward, radius) => ({ x, y, inward, radius, level: (inset, z, along = 0) => [x + inset * inward[0] + along * inward[1], y + inset * inward[1] - along * inward[0], z] });
  const arc = (ex, ey, heading, from, to) => {
    const bend = Math.PI / 4, radius = tangent / Math.tan(bend / 2), away = radius / Math.cos(bend / 2);
    const cx = ex - away * Math.cos(heading + bend / 2), cy = ey - away * Math.sin(heading + bend / 2);
    return [0, 0.5, 1].map((share) => {
      const out = [Math.cos(heading + share * bend), Math.sin(heading + share * bend)];
      return post(cx + radius * out[0], cy + radius * out[1], [-out[0], -out[1]], from + share * (to - from));
    });
  };
  const edgeY = cornerSum - sideX, edgeX = cornerSum - backY;
  const quarter = rocketSpread(0, edgeY - tangent, 4).slice(0, -1).map((y) => post(sideX, y, [-1, 0], fillet));
  quarter.push(...arc(sideX, edgeY, 0, fillet, fillet), ...arc(edgeX, backY, Math.PI / 4, fillet, backFillet));
  quarter.push(...[(edgeX - tangent + goalX) / 2, goalX].map((x) => post(x, backY, [0, -1], backFillet)));
  const mirrored = [...quarter].reverse().map((p) => post(-p.x, p.y, [-p.inward[0], p.inward[1]], p.radius));
  const half = [...quarter, ...mirrored.slice(0, -1)];
  return [...half, ...half.map((p) => post(-p.x, -p.y, [-p.inward[0], -p.inward[1]], p.radius)), quarter[0]];
}

let rocketBuilt = null; // the stadium's faces, made once

function rocketStadium() {
  if (rocketBuilt) return rocketBuilt;
  const { sideX, backY, top, cornerSum, fillet, backFillet, ceilingFillet: head, goalX, goalZ, goalY, grass, glass, rail, stand, standLight, sky, line, teams } = ROCKET;
  const posts = rocketPosts(), pairs = posts.slice(1).map((post, k) => [posts[k], post]);
  const flatX = sideX - fillet, flatY = backY - backFillet, flatSum = cornerSum - fillet * Math.SQRT2, bendY = flatSum - flatX;
  const halfWidth = (y) => Math.min(flatX, flatSum - Math.abs(y)), turf = (stripe, y) => rocketTint(grass[stripe % 2], y, 0.24);
  const floor = (corners, color) => rocketFace(corners.map(([x, y]) => [x, y, 0]), color), box = (l, b, r, t, color) => floor([[l, b], [r, b], [r, t], [l, t]], color);
  const pitch = [box(-flatX - 90, -bendY, flatX + 90, bendY, grass[0])];
  for (const side of [-1, 1]) {
    const near = side * bendY, far = side * (flatY + 60), wide = flatX + 90, narrow = halfWidth(flatY) + 150;
    const corners = [[-wide, near], [wide, near], [narrow, far], [-narrow, far]];
    pitch.push(floor(side > 0 ? corners : corners.reverse(), turf(0, side * flatY)));
  }
  const between = (flatY + bendY) / 2, edges = [-flatY, -between, ...rocketSpread(-bendY, bendY, 14), between, flatY];
  edges.slice(1).forEach((high, number) => {
    const low = edges[number], under = halfWidth(low), over = halfWidth(high), shares = rocketSpread(-1, 1, 4);
    shares.slice(1).forEach((right, column) => {
      const left = shares[column], color = rocketMix(turf(number, (low + high) / 2), grass[column % 2], 0.35);
      pitch.push(floor([[left * under, low], [right * under, low], [right * over, high], [left * over, high]], color));
    });
  });
  for (const side of [-1, 1]) {
    const [low, high] = [side * (backY + goalY), side * flatY].sort((a, b) => a - b);
    pitch.push(box(-goalX, low, goalX, high, rocketTint(grass[0], side * backY, 0.5)));
  }
  const lines = [];
  const stroke = ([ax, ay], [bx, by], color) => {
    const length = Math.hypot(bx - ax, by - ay), sx = (-(by - ay) / length) * 17, sy = ((bx - ax) / length) * 17, parts = Math.max(Math.round(length / 1300), 1);
    for (let k = 0; k < parts; k++) {
      const [px, py, qx, qy] = [ax + ((bx - ax) * k) / parts, ay + ((by - ay) * k) / parts, ax + ((bx - ax) * (k + 1)) / parts, ay + ((by - ay) * (k + 1)) / parts];
      lines.push(floor([[px - sx, py - sy], [qx - sx, qy - sy], [qx + sx, qy + sy], [px + sx, py + sy]], color));
    }
  };
  stroke([-flatX, 0], [flatX, 0], line);
  for (const side of [-1, 1]) {
    const color = rocketMix(line, teams[side > 0 ? 1 : 0].base, 0.5);
    stroke([-1650, side * 3980], [1650, side * 3980], color);
    for (const x of [-1650, 1650]) stroke([x, side * 3980], [x, side * flatY], color);
    stroke([-goalX, side * backY], [goalX, side * backY], line);
  }
  const circle = rocketSpread(0, 2 * Math.PI, 36).map((a) => [1020 * Math.cos(a), 1020 * Math.sin(a)]);
  circle.slice(1).forEach((to, k) => stroke(circle[k], to, line));
  const pane = (y) => rocketMix(glass[0], glass[y < 0 ? 1 : 2], Math.min(Math.abs(y) / backY, 1) ** 0.8), middle = 1 - Math.sqrt(0.5);
  const profile = (p) => [p.level(p.radius, 0), p.level(p.radius * middle, p.radius * middle), p.level(0, p.radius), p.level(0, 860), p.level(0, top - head),
    p.level(head * middle, top - head * middle), p.level(head * 0.8, top - 8)];
  const walls = [], joints = [], stands = [];
  for (const [first, second] of pairs) {
    const y = (first.y + second.y) / 2, wall = pane(y), green = rocketTint(grass[0], y, 0.24), [a, b] = [profile(first), profile(second)];
    const hues = [rocketMix(green, wall, 0.35), rocketMix(green, wall, 0.8), rocketMix(wall, sky[1], 0.06), rocketMix(wall, sky[1], 0.26), rocketMix(wall, sky[2], 0.45), rocketMix(wall, sky[2], 0.75)];
    const isGoal = Math.abs(first.x) === goalX && first.x === -second.x, from = isGoal ? 2 : 0;
    for (let k = from; k < 6; k++) {
      const [low, other] = isGoal && k === 2 ? [first.level(0, goalZ), second.level(0, goalZ)] : [a[k], b[k]];
      walls.push(rocketFace([other, low, a[k + 1], b[k + 1]], hues[k]));
    }
    [[860, 18, rocketMix(wall, rail, 0.42)], [top - head, 30, rocketMix(rocketMix(wall, rail, 0.42), rail, 0.6)]].forEach(([z, wide, color]) =>
      joints.push(rocketFace([second.level(0, z - wide / 2), first.level(0, z - wide / 2), first.level(0, z + wide / 2), second.level(0, z + wide / 2)], color)));
    const tiers = [[750, 900], [1750, 1700], [2000, 2150], [3300, 3500]], number = pairs.findIndex((pair) => pair[0] === first);
    tiers.slice(1).forEach(([out, z], row) => {
      const [lowOut, lowZ] = tiers[row], color = rocketMix(stand, standLight, [0.25, 0.9, 0.55][row] - 0.2 * (number % 2));
      stands.push(rocketFace([second.level(-lowOut, lowZ), first.level(-lowOut, lowZ), first.level(-out, z), second.level(-out, z)], rocketTint(color, y, 0.14)));
    });
    stands.push(rocketFace([second.level(-3450, 3650), first.level(-3450, 3650), first.level(-2350, 4350), second.level(-2350, 4350)], rocketMix(sky[0], stand, 0.5)));
  }
  for (const p of posts.slice(0, -1)) {
    const foot = Math.abs(p.x) < goalX + 1 && Math.abs(p.y) > sideX ? goalZ : p.radius, high = top - head;
    joints.push(rocketFace([p.level(0, foot, -9), p.level(0, high, -9), p.level(0, high, 9), p.level(0, foot, 9)], rocketMix(pane(p.y), rail, 0.42)));
    if (Math.abs(p.x) !== goalX) continue; // the rounding of the floor ends at the goals: close its ends
    const [low, rise, wall] = profile(p), corners = [[p.x, p.y, 0], low, rise, wall];
    walls.push(rocketFace(p.x * p.y > 0 ? corners : corners.reverse(), rocketMix(rocketTint(grass[0], p.y, 0.24), pane(p.y), 0.8)));
  }
  const goals = [], nets = [], frames = [];
  for (const side of [-1, 1]) {
    const mouth = side * backY, back = side * (backY + goalY), backZ = goalZ - 80, team = teams[side > 0 ? 1 : 0], dim = rocketMix(team.dark, sky[1], 0.5), darker = rocketMix(dim, sky[0], 0.3);
    const [ll, lr, hl, hr] = [[-goalX, back, 0], [goalX, back, 0], [-goalX, back, backZ], [goalX, back, backZ]];
    const [fl, bl, br, fr] = [[-goalX, mouth, 0], [-goalX, mouth, goalZ], [goalX, mouth, goalZ], [goalX, mouth, 0]];
    [[[ll, lr, hr, hl], dim], [[hl, hr, br, bl], darker], [[fl, ll, hl, bl], darker], [[lr, fr, br, hr], darker]].forEach(([corners, color]) =>
      goals.push(rocketFace(side > 0 ? corners : [...corners].reverse(), color)));
    const strings = [...rocketSpread(-goalX, goalX, 12).slice(1, -1).map((x) => [[x, back, 0], [x, back, backZ]]), ...rocketSpread(0, backZ, 4).slice(1, -1).map((z) => [[-goalX, back, z], [goalX, back, z]])];
    nets.push({ side, strings, color: rocketMix(team.base, sky[1], 0.45) });
    frames.push({ points: [fl, bl, br, fr], color: team.light });
  }
  let seed = 7;
  const drawn = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const people = Array.from({ length: 1100 }, () => {
    const [first, second] = pairs[Math.floor(drawn() * pairs.length)], along = drawn(), up = drawn(), [a, b] = drawn() < 0.62 ? [[2000, 2150], [3300, 3500]] : [[750, 900], [1750, 1700]];
    const out = a[0] + up * (b[0] - a[0]), z = a[1] + up * (b[1] - a[1]), p = first.level(-out, z + 30), q = second.level(-out, z + 30), place = rocketAhead(p, rocketLess(q, p), along);
    const team = teams[place[1] < 0 !== drawn() < 0.2 ? 0 : 1];
    return { place, hue: rocketHue(rocketMix(ROCKET.ink, team.light, [0.35, 0.55, 0.8][Math.floor(drawn() * 3)])) };
  });
  const crowd = [...new Set(people.map((each) => each.hue))].map((hue) => [hue, people.filter((each) => each.hue === hue).map((each) => each.place)]);
  const lamps = posts.slice(1, -1).filter((_, k) => k % 4 === 0).map((p) => p.level(-2350, 4350));
  return (rocketBuilt = { pitch, lines, walls, joints, stands, goals, nets, frames, crowd, lamps });
}

// Light that is added to what is behind it; spots are painted once per colour and scaled.
const rocketSpots = new Map();
function rocketGlow(pen, [x, y], radius, color, strength = 1) {
  if (radius < 1 || strength <= 0) return;
  const key = color.map(Math.round).join();
  if (!rocketSpots.has(key)) {
    const canvas = make("canvas", { width: 64, height: 64 }), brush = canvas.getContext("2d"), light = brush.createRadialGradient(32, 32, 0, 32, 32, 32);
    [[0, 1], [0.25, 0.6], [0.5, 0.3], [0.75, 0.1], [1, 0]].forEach(([at, alpha]) => light.addColorStop(at, rocketHue(color, alpha)));
    brush.fillStyle = light; brush.fillRect(0, 0, 64, 64);
    rocketSpots.set(key, canvas);
  }
  pen.save();
  pen.globalCompositeOperation = "lighter"; pen.globalAlpha = Math.min(strength, 1);
  pen.drawImage(rocketSpots.get(key), x - radius, y - radius, 2 * radius, 2 * radius);
  pen.restore();
}

function rocketScenery(pen, camera) {
  const built = rocketStadium(), { width, height, focal } = camera, { sky, ground } = ROCKET;
  const level = rocketUnit([camera.ahead[0], camera.ahead[1], 0]), far = camera.see(rocketAhead(camera.eye, level, 1e5)), horizon = far[2] > 1 ? camera.flat(far)[1] : -height;
  const night = pen.createLinearGradient(0, horizon - 0.8 * height, 0, horizon);
  sky.forEach((color, k) => night.addColorStop(k / 3, rocketHue(color)));
  pen.fillStyle = night; pen.fillRect(0, 0, width, height);
  pen.fillStyle = rocketHue(ground); pen.fillRect(0, horizon, width, height);
  rocketFaces(pen, camera, built.stands, 1);
  for (const [hue, places] of built.crowd) {
    pen.fillStyle = hue;
    pen.beginPath();
    for (const place of places) {
      const p = camera.see(place);
      if (p[2] < 2500) continue;
      const [x, y] = camera.flat(p), size = Math.max((26 * focal) / p[2], 1.2);
      if (x > 0 && x < width && y > 0 && y < height) pen.rect(x, y, size, 1.5 * size);
    }
    pen.fill();
  }
  for (const lamp of built.lamps) { const spot = camera.pixel(lamp); if (spot) rocketGlow(pen, spot, 0.06 * height, ROCKET.lamp); }
  rocketFaces(pen, camera, built.goals, 1);
  for (const { side, strings, color } of built.nets) {
    if ((camera.eye[1] - side * ROCKET.backY) * side >= 0) continue;
    pen.strokeStyle = rocketHue(color); pen.lineWidth = 1; pen.beginPath();
    for (const [a, b] of strings) {
      const [p, q] = [camera.pixel(a), camera.pixel(b)];
      if (p && q) { pen.moveTo(p[0], p[1]); pen.lineTo(q[0], q[1]); }
    }
    pen.stroke();
  }
  rocketFaces(pen, camera, built.pitch, 0.6);
  rocketFaces(pen, camera, built.lines, 0);
  rocketFaces(pen, camera, built.walls, 0.8);
  rocketFaces(pen, camera, built.joints, 0);
  for (const { points, color } of built.frames) {
    const found = points.map(camera.pixel);
    if (found.some((p) => !p)) continue;
    pen.strokeStyle = rocketHue(color); pen.lineJoin = "round"; pen.lineWidth = Math.max(22 * found[0][2], 1.5);
    pen.beginPath(); found.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y))); pen.stroke();
  }
}
