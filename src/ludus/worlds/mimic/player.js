// Draws a walker with shapes of a person, the reference beside it, and the way: for replays in reports and live pages.
//
// Everything is made of rounded cones between points in space (x forward, y left, z up, in m), drawn from far to near.
// The looks are those of `rendering/figure.py` and `rendering/painter.py`.

const MimicScene = (() => {
  const SKIN = [230, 173, 138], SHIRT = [41, 133, 173], SHORTS = [48, 54, 77], HAIR = [61, 41, 31], SHOE = [235, 84, 56], SOCK = [242, 242, 237], EYE = [52, 40, 36];
  const GHOST = [148, 190, 236];
  const LEFT_SHADE = 0.72, GHOST_ASIDE_M = 1.0, DRAWN_HEIGHT_M = 1.75;
  const TILES = ["#bcc4c7", "#a1adb3"], MEADOW = "#a3b0ab", LANES = [-1, 0, 1, 2], FIELD = Array.from({ length: 17 }, (_, k) => k - 8);
  const PUSH_M_PER_N = 0.004;
  const SIDES = [["right", -1, 1], ["left", 1, LEFT_SHADE]];
  const BEHIND = 0.3; // m before the camera; what is nearer is not drawn

  // --- points in space ---

  const add = (a, b, factor = 1) => [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]];
  const between = (a, b, share) => add(a, add(b, a, -1), share);
  const inner = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const size = Math.hypot(...a) || 1; return [a[0] / size, a[1] / size, a[2] / size]; };

  // A camera that looks at a point of the walker: turned by 0 from its right side, by a quarter turn from the front.
  function makeCamera(target, { turn = 0.5, rise = 0.14, distance = 3.6, width, height }) {
    const ahead = [-Math.sin(turn) * Math.cos(rise), Math.cos(turn) * Math.cos(rise), -Math.sin(rise)];
    const right = [Math.cos(turn), Math.sin(turn), 0], up = cross(right, ahead), eye = add(target, ahead, -distance);
    const focal = Math.min(height * 1.45, width * 1.3);
    const project = (point) => {
      const from = add(point, eye, -1), depth = inner(from, ahead), scale = focal / Math.max(depth, 0.05);
      return { x: width / 2 + inner(from, right) * scale, y: height * 0.5 - inner(from, up) * scale, depth, scale };
    };
    // The point at the depth of another one that is seen at a place of the picture.
    const at = (x, y, depth) => add(add(add(eye, ahead, depth), right, ((x - width / 2) * depth) / focal), up, ((height * 0.5 - y) * depth) / focal);
    // Where the ground meets the sky.
    const horizon = height * 0.5 - (focal * Math.sin(rise)) / Math.cos(rise);
    return { project, at, horizon, width, height, eye, ahead };
  }

  // --- shapes ---

  const tint = (color, factor) => `rgb(${color.map((part) => Math.round(Math.min(Math.max(part * factor, 0), 255))).join(" ")})`;

  // A rounded cone: two spheres and what is between them, lit from above.
  function drawCone(pen, { a, b, from, to, color, shade }) {
    const ra = from * a.scale, rb = to * b.scale, dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy);
    pen.beginPath();
    if (length <= Math.abs(ra - rb) + 0.01) {
      const big = ra > rb ? a : b;
      pen.arc(big.x, big.y, Math.max(ra, rb, 0.5), 0, 2 * Math.PI);
    } else {
      const along = Math.atan2(dy, dx), open = Math.acos((ra - rb) / length);
      pen.arc(a.x, a.y, Math.max(ra, 0.5), along + open, along - open + 2 * Math.PI);
      pen.arc(b.x, b.y, Math.max(rb, 0.5), along - open, along + open);
      pen.closePath();
    }
    const size = Math.max(ra, rb), nx = length > 0.01 ? -dy / length : 0, ny = length > 0.01 ? dx / length : 1;
    // Light comes from above and from the left of the picture: the side that faces it is brighter.
    const side = nx * -0.5 + ny * -0.86 > 0 ? 1 : -1, mx = (a.x + b.x) / 2, my = (a.y + b.y) / 2;
    const light = pen.createLinearGradient(mx + side * nx * size, my + side * ny * size, mx - side * nx * size, my - side * ny * size);
    light.addColorStop(0, tint(color, 1.12 * shade));
    light.addColorStop(0.45, tint(color, shade));
    light.addColorStop(1, tint(color, 0.7 * shade));
    pen.fillStyle = light;
    pen.fill();
  }

  // The cones of a person whose hips, neck, knees, ankles and soles are at these points.
  function conesOf(points, height) {
    const size = height / DRAWN_HEIGHT_M, cones = [];
    const up = unit(add(points.neck, points.hip, -1)), across = add(points.left_thigh, points.right_thigh, -1);
    const left = unit(add(across, up, -inner(across, up))), ahead = cross(left, up);
    const own = ([x, y, z]) => add(add(add(points.hip, ahead, x * size), left, y * size), up, z * size);
    const cone = (from, to, start, end, color, shade = 1, layer = 0) => cones.push({ from, to, start: start * size, end: end * size, color, shade, layer });
    const trunk = (from, to, start, end, color, shade = 1, layer = 0) => cone(own(from), own(to), start, end, color, shade, layer);
    trunk([0, -0.05, 0.035], [0, 0.05, 0.035], 0.1, 0.1, SHORTS);
    trunk([0, -0.04, 0.17], [0, 0.04, 0.17], 0.098, 0.098, SHIRT);
    for (const side of [-1, 1]) trunk([0, 0.045 * side, 0.17], [0.005, 0.068 * side, 0.40], 0.095, 0.108, SHIRT);
    trunk([0, 0, 0.17], [0.005, 0, 0.41], 0.1, 0.112, SHIRT, 1, -0.012);
    trunk([0, -0.13, 0.47], [0, 0.13, 0.47], 0.06, 0.06, SHIRT);
    trunk([0, 0, 0.49], [0.01, 0, 0.6], 0.05, 0.046, SKIN);
    trunk([0.028, 0, 0.645], [0.014, 0, 0.715], 0.068, 0.086, SKIN, 1, -0.01);
    trunk([0.1, 0, 0.682], [0.108, 0, 0.672], 0.012, 0.016, SKIN, 1, -0.011);
    trunk([-0.03, 0, 0.69], [-0.002, 0, 0.742], 0.078, 0.086, HAIR, 1, -0.005);
    for (const side of [-1, 1]) trunk([0.075, 0.034 * side, 0.704], [0.076, 0.034 * side, 0.702], 0.0105, 0.0105, EYE, 1, -0.012);
    for (const [side, sign, shade] of SIDES) {
      trunk([0, 0.185 * sign, 0.465], [-0.014, 0.207 * sign, 0.315], 0.056, 0.046, SHIRT, shade);
      trunk([-0.014, 0.207 * sign, 0.315], [-0.025, 0.225 * sign, 0.2], 0.04, 0.036, SKIN, shade);
      trunk([-0.025, 0.225 * sign, 0.2], [0.055, 0.215 * sign, -0.03], 0.037, 0.027, SKIN, shade);
      trunk([0.062, 0.215 * sign, -0.05], [0.085, 0.213 * sign, -0.105], 0.031, 0.024, SKIN, shade);
      const [hip, knee, ankle, heel, ball] = ["thigh", "knee", "ankle", "heel", "ball"].map((name) => points[`${side}_${name}`]);
      cone(hip, between(hip, knee, 0.56), 0.088, 0.074, SHORTS, shade);
      cone(between(hip, knee, 0.5), knee, 0.062, 0.051, SKIN, shade, 0.005);
      const calf = between(knee, ankle, 0.3), back = unit(cross(cross(add(ball, heel, -1), add(knee, ankle, -1)), add(knee, ankle, -1)));
      cone(knee, add(calf, back, 0.012 * size), 0.05, 0.055, SKIN, shade, 0.006);
      cone(add(calf, back, 0.012 * size), between(knee, ankle, 0.92), 0.055, 0.036, SKIN, shade, 0.004);
      cone(between(knee, ankle, 0.8), ankle, 0.04, 0.042, SOCK, shade, 0.001);
      const toes = unit(add(ball, heel, -1)), rise = unit(add(add(ankle, heel, -1), toes, -inner(add(ankle, heel, -1), toes)));
      const wide = cross(rise, toes);
      const sole = (place, ahead, above, aside = 0) => add(add(add(place, toes, ahead * size), rise, above * size), wide, aside * size);
      cone(sole(heel, 0.02, 0.046), sole(ankle, 0.01, -0.012), 0.042, 0.042, SHOE, shade);
      for (const edge of [-0.014, 0.014]) {
        cone(sole(heel, 0.012, 0.016, edge), sole(ball, 0.02, 0.014, edge), 0.02, 0.018, SOCK, shade, 0.03);
        cone(sole(heel, 0.025, 0.042, edge * 0.4), sole(ball, 0, 0.036, edge), 0.038, 0.032, SHOE, shade, -0.002);
        cone(sole(ball, -0.01, 0.035, edge), sole(ball, 0.045, 0.028, edge * 0.7), 0.033, 0.025, SHOE, shade, -0.003);
      }
    }
    return cones;
  }

  function drawFigure(pen, camera, points, height, color = null) {
    const seen = conesOf(points, height).map(({ from, to, start, end, color: own, shade, layer }) => {
      const a = camera.project(from), b = camera.project(to);
      return { a, b, from: start, to: end, color: color || own, shade, depth: (a.depth + b.depth) / 2 + layer };
    });
    seen.sort((one, other) => other.depth - one.depth);
    for (const cone of seen) if (Math.min(cone.a.depth, cone.b.depth) > BEHIND) drawCone(pen, cone);
  }

  // Spots below the feet, the fainter the higher they are, and a large one below the trunk.
  function drawShadows(pen, camera, points, strength) {
    const spot = (place, ahead, size, flat, opacity) => {
      const middle = camera.project(place), front = camera.project(add(place, ahead, size)), aside = camera.project(add(place, [-ahead[1], ahead[0], 0], size * flat));
      if (middle.depth < BEHIND || opacity <= 0.01) return;
      pen.save();
      pen.transform(front.x - middle.x, front.y - middle.y, aside.x - middle.x, aside.y - middle.y, middle.x, middle.y);
      pen.fillStyle = `rgb(20 28 34 / ${opacity.toFixed(3)})`;
      pen.beginPath();
      pen.arc(0, 0, 1, 0, 2 * Math.PI);
      pen.fill();
      pen.restore();
    };
    for (const [side] of SIDES) {
      const heel = points[`${side}_heel`], ball = points[`${side}_ball`], middle = between(heel, ball, 0.55);
      const ahead = unit([ball[0] - heel[0], ball[1] - heel[1], 0]), above = Math.max(Math.min(heel[2], ball[2]), 0);
      spot([middle[0], middle[1], 0], ahead, 0.16, 0.42, 0.34 * strength * Math.max(1 - above / 0.35, 0));
    }
    spot([points.hip[0], points.hip[1], 0], [1, 0, 0], 0.3, 0.75, 0.13 * strength);
  }

  // --- the way ---

  // A way along x, or open ground where a walker may turn anywhere.
  function drawGround(pen, camera, middle, aside, isOpen) {
    const { width, height, horizon } = camera;
    const sky = pen.createLinearGradient(0, 0, 0, Math.max(horizon, 1));
    sky.addColorStop(0, "#a9c6e4");
    sky.addColorStop(1, "#e9f0f6");
    pen.fillStyle = sky;
    pen.fillRect(0, 0, width, height);
    const ground = pen.createLinearGradient(0, horizon, 0, height);
    ground.addColorStop(0, "#c3cdca");
    ground.addColorStop(0.25, MEADOW);
    pen.fillStyle = ground;
    pen.fillRect(0, Math.max(horizon, 0), width, height);
    const begin = Math.floor(middle) - 14, end = Math.floor(middle) + 15;
    const quad = (x, y) => [[x, y - 0.5], [x + 1, y - 0.5], [x + 1, y + 0.5], [x, y + 0.5]].map(([px, py]) => camera.project([px, py, 0]));
    for (let x = begin; x < end; x++) {
      for (const lane of (isOpen ? FIELD : LANES).map((each) => each + Math.round(aside))) { // the way is as wide as the walker strays
        const corners = quad(x, lane);
        if (corners.some((corner) => corner.depth < BEHIND)) continue;
        pen.fillStyle = pen.strokeStyle = TILES[(((x + lane) % 2) + 2) % 2];
        pen.lineWidth = 0.7; // closes the hairlines between tiles
        pen.beginPath();
        corners.forEach(({ x: px, y: py }, k) => (k ? pen.lineTo(px, py) : pen.moveTo(px, py)));
        pen.closePath();
        pen.fill();
        pen.stroke();
      }
    }
    if (isOpen) return;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let x = begin; x < end; x++) {
      const place = camera.project([x, Math.round(aside) - 1.62, 0]);
      if (place.depth < 1 || place.y > height + 20) continue;
      pen.font = `600 ${Math.max(8, Math.min(0.13 * place.scale, 26))}px system-ui, sans-serif`;
      pen.fillStyle = "rgb(62 72 76 / 0.75)";
      pen.fillText(`${x} m`, place.x, place.y);
    }
  }

  // The arrow of a force in N at a point.
  function drawForce(pen, camera, point, force) {
    const size = Math.hypot(...force);
    if (size < 1) return;
    const a = camera.project(point), b = camera.project(add(point, force, PUSH_M_PER_N));
    const angle = Math.atan2(b.y - a.y, b.x - a.x), head = Math.max(0.07 * a.scale, 9), length = Math.hypot(b.x - a.x, b.y - a.y);
    pen.save();
    pen.translate(a.x, a.y);
    pen.rotate(angle);
    pen.fillStyle = "#ee5a26";
    pen.strokeStyle = "rgb(255 255 255 / 0.85)";
    pen.lineWidth = 1.5;
    pen.beginPath();
    const shaft = head * 0.28, neck = Math.max(length - head, 0);
    [[0, -shaft], [neck, -shaft], [neck, -head * 0.62], [length, 0], [neck, head * 0.62], [neck, shaft], [0, shaft]].forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.fill();
    pen.stroke();
    pen.restore();
    const text = `${Math.round(size)} N`, font = Math.max(12, Math.min(camera.height / 26, 20));
    pen.font = `700 ${font}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.strokeStyle = "rgb(255 255 255 / 0.9)";
    const x = Math.min(Math.max(b.x + Math.cos(angle) * font * 1.8, font * 2), camera.width - font * 2), y = b.y + Math.sin(angle) * font * 1.4;
    pen.strokeText(text, x, y);
    pen.fillStyle = "#b93a10";
    pen.fillText(text, x, y);
  }

  // A panel of names and values.
  function drawPanel(pen, width, rows) {
    const size = Math.min(Math.max(width / 62, Math.min(width / 40, 9.5)), 17);
    pen.fillStyle = "rgb(22 26 34 / 0.72)";
    pen.beginPath();
    pen.roundRect(size * 0.7, size * 0.6, size * 13.5, size * (1.5 * rows.length + 0.9), size * 0.5);
    pen.fill();
    pen.textBaseline = "middle";
    rows.forEach(([name, text], k) => {
      const y = size * (1.85 + 1.5 * k);
      pen.font = `500 ${size}px system-ui, sans-serif`;
      pen.textAlign = "left"; pen.fillStyle = "#bcc4d0"; pen.fillText(name, size * 1.5, y);
      pen.font = `650 ${size * 1.06}px system-ui, sans-serif`;
      pen.textAlign = "right"; pen.fillStyle = "#fafaf8"; pen.fillText(text, size * 13.4, y);
    });
  }

  // Draw a moment: {points, ghost or null, height, force: {point, force} or null, rows, heading in rad and isOpen where the
  // walker may turn}; return the camera.
  function drawMoment(pen, moment, view, width, height) {
    const { hip } = moment.points, heading = moment.heading || 0, ahead = [Math.cos(heading), Math.sin(heading), 0], left = [-ahead[1], ahead[0], 0];
    const middle = add(add([hip[0], hip[1], 0.5 * moment.height], ahead, 0.12), left, moment.ghost ? 0.35 : 0.1);
    const camera = makeCamera(middle, { ...view, turn: view.turn === undefined ? undefined : view.turn + heading, distance: (view.distance || 3.6) * (moment.height / DRAWN_HEIGHT_M), width, height });
    drawGround(pen, camera, hip[0], hip[1], moment.isOpen);
    const ghost = moment.ghost && Object.fromEntries(Object.entries(moment.ghost).map(([name, point]) => [name, add(point, left, GHOST_ASIDE_M)]));
    const figures = [[moment.points, null, 1], ...(ghost ? [[ghost, GHOST, 0.5]] : [])];
    figures.sort(([one], [other]) => camera.project(other.hip).depth - camera.project(one.hip).depth);
    for (const [points, , strength] of figures) drawShadows(pen, camera, points, strength);
    for (const [points, color] of figures) drawFigure(pen, camera, points, moment.height, color);
    if (moment.force) drawForce(pen, camera, moment.force.point, moment.force.force);
    drawPanel(pen, width, moment.rows);
    return camera;
  }

  return { drawMoment };
})();

PAINTERS.mimic = (pen, replay, at, width, height) => {
  const i = Math.floor(at), next = Math.min(i + 1, replay.frames - 1), blend = at - i, { scale, columns } = replay;
  const value = (name) => (columns[name][i] * (1 - blend) + columns[name][next] * blend) / scale;
  // A replay has the points as they are seen from the right; the hips are as wide as those of a person.
  const tall = replay.height / scale, aside = 0.048 * tall;
  const points = (who) => {
    const names = Object.keys(columns).filter((name) => name.startsWith(who) && name.endsWith("_x") && (who || !name.startsWith("ghost_")));
    return Object.fromEntries(names.map((name) => name.slice(who.length, -2)).map((name) => {
      const y = name.startsWith("left_") ? aside : name.startsWith("right_") ? -aside : 0;
      return [name, [value(`${who}${name}_x`), y, value(`${who}${name}_z`)]];
    }));
  };
  const before = Math.max(i - Math.round(replay.rate_hz), 0);
  const speed = i > before ? ((columns.hip_x[i] - columns.hip_x[before]) / scale) * (replay.rate_hz / (i - before)) : 0;
  const rows = [["speed", `${speed.toFixed(2)} m/s`], ["asked for", `${value("desired").toFixed(2)} m/s`], ["time", `${(at / replay.rate_hz).toFixed(1)} s`]];
  MimicScene.drawMoment(pen, { points: points(""), ghost: points("ghost_"), height: tall, rows }, {}, width, height);
};
