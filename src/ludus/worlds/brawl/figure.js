// The fighters of Brawl as shapes, as in the videos (rendering/poses.py, rendering/figure.py): poses of attacks follow the
// numbers of their moves. Lengths are stage units, y grows downward; colours are [red, green, blue].

const BRAWL = {
  teams: [
    { base: [64, 144, 255], dark: [34, 82, 176], light: [160, 208, 255] },
    { base: [244, 74, 82], dark: [158, 34, 58], light: [255, 172, 160] },
  ],
  ink: [13, 14, 26], white: [246, 244, 236], stone: [112, 104, 118], stoneLight: [156, 146, 150], stoneDark: [74, 68, 88],
  sand: [222, 200, 152], brass: [214, 170, 92], wood: [128, 92, 70], skin: [232, 188, 152], steel: [196, 200, 212],
  muted: [150, 150, 170], danger: [255, 64, 64], sky: [[16, 18, 40], [34, 38, 74], [70, 66, 104], [122, 100, 124]],
  farWall: [46, 46, 82], nearWall: [33, 33, 64], moon: [206, 198, 208],
  damage: [[0, [246, 244, 236]], [50, [255, 226, 120]], [100, [255, 154, 60]], [150, [255, 78, 52]], [250, [190, 24, 60]]],
  state: {
    standing: 0, walking: 1, sprinting: 2, turnaround: 3, air: 4, airTurn: 5, dash: 6, backdash: 7, dodge: 8, attack: 9,
    stun: 10, taunt: 11, ko: 12, clash: 13,
  },
  high: 0.85, low: 2.85, inner: 2, outer: 7, killY: 8, body: 0.435, hurt: 0.51, koFrames: 90, itemLock: 36, rate: 30,
  floor: 0.5, chest: [0, -0.12], arm: 0.21, leg: 0.205, trunk: 0.29, grip: 0.72, kickBelow: 0.22, outline: 0.04,
  yard: [-17, -10, 34, 20], // what the picture of the background covers: left, top, width, height
};

const brawlMix = (a, b, share) => a.map((each, k) => each + (b[k] - each) * Math.min(Math.max(share, 0), 1));
const brawlHue = (color, alpha = 1) => `rgba(${color.map(Math.round).join(",")},${alpha})`;
const brawlLerp = (a, b, share) => (Array.isArray(a) ? a.map((each, k) => each + (b[k] - each) * share) : a + (b - a) * share);

// --- shapes with one outline around all of them ---

function brawlSketch(outline = 0) {
  const shapes = [];
  const trace = (pen, { points, radii }, grow) => {
    pen.beginPath();
    if (points.length > 2) {
      points.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      return;
    }
    points.forEach(([x, y], k) => { pen.moveTo(x + radii[k] + grow, y); pen.arc(x, y, radii[k] + grow, 0, 7); });
    if (points.length < 2) return;
    const [[ax, ay], [bx, by]] = points, length = Math.hypot(bx - ax, by - ay);
    if (!length) return;
    const nx = -(by - ay) / length, ny = (bx - ax) / length, [a, b] = radii.map((radius) => radius + grow);
    pen.moveTo(ax - nx * a, ay - ny * a); pen.lineTo(bx - nx * b, by - ny * b);
    pen.lineTo(bx + nx * b, by + ny * b); pen.lineTo(ax + nx * a, ay + ny * a); pen.closePath();
  };
  return {
    circle: (center, radius, color, outlined = true) => shapes.push({ points: [center], radii: [radius], color, outlined }),
    capsule: (start, end, radius, color, endRadius = radius) =>
      shapes.push({ points: [start, end], radii: [radius, endRadius], color, outlined: true }),
    polygon: (points, color, outlined = true) => shapes.push({ points, radii: [], color, outlined }),
    paint(pen, opacity = 1) {
      pen.save();
      pen.globalAlpha *= opacity;
      if (outline) {
        pen.fillStyle = pen.strokeStyle = brawlHue(BRAWL.ink); pen.lineWidth = 2 * outline; pen.lineJoin = "round";
        for (const shape of shapes) {
          if (!shape.outlined) continue;
          trace(pen, shape, outline);
          pen.fill();
          if (shape.points.length > 2) pen.stroke();
        }
      }
      for (const shape of shapes) { trace(pen, shape, 0); pen.fillStyle = brawlHue(shape.color); pen.fill(); }
      pen.restore();
    },
  };
}

// --- poses: places in (forward, down) from a fighter's centre ---

const BRAWL_STANCE = {
  hip: [0, 0.14], lean: 0.06, frontHand: [0.27, -0.03], backHand: [0.13, 0.06], frontFoot: [0.15, BRAWL.floor],
  backFoot: [-0.15, BRAWL.floor], weaponAngle: -0.95, spin: 0,
};
const brawlPose = (changes, base = BRAWL_STANCE) => ({ ...base, ...changes });
const BRAWL_RISING = brawlPose({ lean: 0.12, frontHand: [0.24, -0.24], backHand: [-0.26, 0], frontFoot: [0.17, 0.33], backFoot: [-0.14, 0.5] });
const BRAWL_FALLING = brawlPose({ lean: -0.05, frontHand: [0.3, -0.3], backHand: [-0.28, -0.28], frontFoot: [0.19, 0.44], backFoot: [-0.16, 0.4] });

function brawlBlend(a, b, share) {
  const t = Math.min(Math.max(share, 0), 1);
  return Object.fromEntries(Object.keys(a).map((name) => [name, brawlLerp(a[name], b[name], t)]));
}

function brawlFreePose(f, frame) {
  const s = BRAWL.state, floor = BRAWL.floor;
  const running = (stride, reach, lean) => { // the cycle follows the place, not the clock, so that feet do not slide
    const angle = (2 * Math.PI * f.x * f.facing) / stride, swing = Math.cos(angle), lift = Math.sin(angle);
    return brawlPose({
      hip: [0, 0.14 - 0.025 * Math.abs(lift)], lean, frontFoot: [reach * swing, floor - 0.17 * Math.max(-lift, 0)],
      backFoot: [-reach * swing, floor - 0.17 * Math.max(lift, 0)], frontHand: [0.2 - 0.16 * swing, -0.02],
      backHand: [0.02 + 0.22 * swing, 0.02], weaponAngle: -0.8 - 0.5 * lean,
    });
  };
  switch (f.state) {
    case s.walking: return running(1.25, 0.24, 0.16);
    case s.sprinting: return running(1.9, 0.36, 0.42);
    case s.turnaround: case s.airTurn: return brawlPose({ lean: -0.22, frontFoot: [0.24, floor], backFoot: [-0.02, floor] });
    case s.air: return brawlBlend(BRAWL_RISING, BRAWL_FALLING, 0.5 + f.vy / 12);
    case s.dash: return brawlPose({
      hip: [-0.04, 0.19], lean: 0.72, frontHand: [-0.02, 0.14], backHand: [-0.26, 0.02], frontFoot: [0.3, floor],
      backFoot: [-0.4, 0.44], weaponAngle: -2.75,
    });
    case s.backdash: {
      const hop = 0.12 * Math.sin((Math.PI * f.timer) / 7);
      return brawlPose({ lean: -0.42, frontFoot: [0.34, 0.36 - hop], backFoot: [-0.1, floor - hop] });
    }
    case s.dodge: return brawlPose({ hip: [0, 0.24], lean: 0.55, frontHand: [0.22, 0.18], backHand: [0.1, 0.22], weaponAngle: -2.2 });
    case s.stun: {
      const wave = 0.07 * Math.sin(frame * 1.3);
      return brawlPose({
        lean: -0.25, frontHand: [0.34, -0.28 + wave], backHand: [-0.34, -0.22 - wave], frontFoot: [0.32, 0.38 - wave],
        backFoot: [-0.26, 0.44 + wave], weaponAngle: -0.6 + 3 * wave, spin: -0.42 * f.timer,
      });
    }
    case s.taunt: {
      const beat = Math.abs(Math.sin((3 * Math.PI * f.timer) / 30)), hop = f.grounded ? 0.1 * beat : 0;
      return brawlPose({
        hip: [0, 0.14 - hop], lean: -0.16, frontHand: [0.16, -0.62 - 0.08 * beat], backHand: [-0.3, -0.46 - 0.1 * beat],
        frontFoot: [0.16, floor - hop], backFoot: [-0.16, floor - hop], weaponAngle: -1.57,
      });
    }
    case s.clash: { // it shows nothing of the choice
      const push = 0.03 * Math.sin(frame * 2.1), feet = f.grounded ? [[0.3, floor], [-0.34, floor]] : [[0.2, 0.42], [-0.3, 0.36]];
      return brawlPose({
        hip: [-0.04, 0.19], lean: 0.34 + push, frontHand: [0.36 + push, -0.26], backHand: [0.3 + push, -0.12],
        frontFoot: feet[0], backFoot: feet[1], weaponAngle: -1.2 + push,
      });
    }
  }
  const lift = 0.012 * Math.sin(frame * 0.16), rest = BRAWL_STANCE;
  return brawlPose({ hip: [0, 0.14 + lift], frontHand: [0.27, rest.frontHand[1] + 1.6 * lift], backHand: [0.13, rest.backHand[1] + 1.6 * lift] });
}

// Where an attack is, for which hit: between two hits it is the startup of the second.
function brawlPhase(move, frame) {
  let before = 0;
  const hits = [...move.hits].sort((a, b) => a.frames[0] - b.frames[0]);
  for (const hit of hits) {
    const [first, last] = hit.frames;
    if (frame < first) return { name: "startup", share: (frame - before) / Math.max(first - before, 1), hit };
    if (frame < last + 1) return { name: "active", share: (frame - first + 1) / (last - first + 1), hit };
    before = last;
  }
  const hit = hits.reduce((a, b) => (b.frames[1] > a.frames[1] ? b : a));
  return { name: "recovery", share: (frame - before) / Math.max(move.total - before, 1), hit };
}

const brawlFar = (hit) => {
  const away = ([x, y]) => Math.hypot(x - BRAWL.chest[0], y - BRAWL.chest[1]);
  return away(hit.start) > away(hit.end) ? hit.start : hit.end;
};
const brawlTwoSided = (hit) => hit.start[0] * hit.end[0] < -0.2;

function brawlStrike(stance, weapon, phase, grounded) {
  const { hit } = phase, tip = brawlFar(hit), [cx, cy] = BRAWL.chest, floor = BRAWL.floor;
  const reachTo = Math.hypot(tip[0] - cx, tip[1] - cy) || 1, dx = (tip[0] - cx) / reachTo, dy = (tip[1] - cy) / reachTo;
  const feet = grounded ? { frontFoot: [0.27, floor], backFoot: [-0.27, floor] } : {};
  const wide = brawlPose({ lean: 0.34 * dx, hip: [0.08 * dx, 0.14 + 0.05 * Math.max(dy, 0)], ...feet }, stance);
  if (weapon.length > 0) {
    const reach = Math.min(Math.max(reachTo - BRAWL.grip * weapon.length, 0.25), 0.6);
    return brawlPose({
      frontHand: [cx + reach * dx, cy + reach * dy], backHand: [cx + 0.17 * dx, cy + 0.17 * dy + 0.05], weaponAngle: Math.atan2(dy, dx),
    }, wide);
  }
  if (tip[1] <= BRAWL.kickBelow && !brawlTwoSided(hit)) return brawlPose({ frontHand: tip, backHand: [-0.12, 0] }, wide);
  const guard = brawlPose({ lean: -0.3 * dx, frontHand: [0.2, -0.16], backHand: [-0.18, -0.1] }, wide);
  if (!brawlTwoSided(hit)) return brawlPose({ frontFoot: tip, backFoot: grounded ? [-0.1, floor] : [-0.05, 0.36] }, guard);
  const [back, front] = [hit.start, hit.end].sort((a, b) => a[0] - b[0]);
  const spin = !grounded && phase.name === "active" ? 2 * Math.PI * phase.share : 0;
  return brawlPose({ lean: 0, hip: [0, 0.24], frontFoot: front, backFoot: back, spin }, guard);
}

function brawlWindup(strike, weapon, hit) {
  const tip = brawlFar(hit), [cx, cy] = BRAWL.chest, away = Math.hypot(tip[0] - cx, tip[1] - cy) || 1;
  const dx = (tip[0] - cx) / away, dy = (tip[1] - cy) / away, hand = [cx - 0.24 * dx, cy - 0.2 * dy];
  const back = brawlPose({ lean: -0.28 * dx, hip: [-0.07 * dx, 0.17], spin: 0 }, strike);
  if (weapon.length > 0 && !weapon.heavy) return brawlPose({ frontHand: hand, backHand: [hand[0] + 0.16 * dx, hand[1] + 0.16 * dy] }, back);
  if (weapon.length > 0) { // a swing comes from behind and above; an upward one from below
    const turn = dy < -0.7 ? 2.3 : -2.3;
    return brawlPose({ frontHand: [-0.16, -0.26], backHand: [0, -0.18], weaponAngle: strike.weaponAngle + turn }, back);
  }
  if (tip[1] <= BRAWL.kickBelow && !brawlTwoSided(hit)) return brawlPose({ frontHand: hand, backHand: [0.24, -0.06] }, back);
  return brawlPose({ lean: -0.12, frontFoot: [0.12, 0.28], backFoot: [-0.08, BRAWL.floor] }, back);
}

function brawlPoseOf(f, weapon, frame) {
  const move = f.state === BRAWL.state.attack && f.move >= 0 ? weapon.moves[f.move % weapon.moves.length] : null;
  if (!move) return brawlFreePose(f, frame);
  const stance = f.grounded ? BRAWL_STANCE : brawlBlend(BRAWL_RISING, BRAWL_FALLING, 0.5 + f.vy / 12);
  const phase = brawlPhase(move, f.moveFrame), strike = brawlStrike(stance, weapon, phase, f.grounded), t = phase.share;
  if (phase.name === "active") return strike;
  if (phase.name === "recovery") return brawlBlend(strike, stance, t * t * (3 - 2 * t));
  return brawlBlend(stance, brawlWindup(strike, weapon, phase.hit), 1.7 * t);
}

// --- a fighter ---

function brawlWeapon(sketch, weapon, color, grip, tip) {
  const ahead = weapon.length * BRAWL.grip, behind = weapon.length - ahead, side = [-tip[1], tip[0]];
  const end = [grip[0] + tip[0] * ahead, grip[1] + tip[1] * ahead], steel = BRAWL.steel;
  const at = (along, across) => [end[0] + tip[0] * along + side[0] * across, end[1] + tip[1] * along + side[1] * across];
  sketch.capsule([grip[0] - tip[0] * behind, grip[1] - tip[1] * behind], end, 0.04, BRAWL.wood);
  if (weapon.heavy) {
    sketch.polygon([at(0.1, 0.26), at(-0.18, 0.26), at(-0.18, -0.26), at(0.1, -0.26)], color);
    sketch.polygon([at(0.1, 0.26), at(-0.18, 0.26), at(-0.18, 0.12), at(0.1, 0.12)], brawlMix(color, [60, 30, 30], 0.35), false);
    sketch.capsule(at(-0.04, -0.26), at(-0.04, 0.26), 0.03, steel);
  } else {
    sketch.polygon([at(0.06, 0), at(-0.22, 0.1), at(-0.34, 0), at(-0.22, -0.1)], color);
    sketch.polygon([at(0.04, 0), at(-0.22, 0), at(-0.2, -0.07)], brawlMix(color, steel, 0.8), false);
    sketch.capsule(at(-0.36, -0.07), at(-0.36, 0.07), 0.035, steel);
  }
}

// A limb of two equal bones that reaches for a place, stretched a little if it must.
function brawlBones(start, target, length, bend) {
  const dx = target[0] - start[0], dy = target[1] - start[1], distance = Math.hypot(dx, dy) || 1e-6;
  const ux = dx / distance, uy = dy / distance, reach = Math.min(distance, 3.5 * length), half = reach / 2;
  const height = Math.sqrt(Math.max(length * length - half * half, 0)) * bend;
  return [[start[0] + ux * half - uy * height, start[1] + uy * half + ux * height], [start[0] + ux * reach, start[1] + uy * reach]];
}

function brawlFigure(f, weapon, team, pose, frame, offset) {
  const sketch = brawlSketch(BRAWL.outline), { ink, skin, steel } = BRAWL, sine = Math.sin(pose.spin), cosine = Math.cos(pose.spin);
  const place = ([x, y]) => [f.x + offset + f.facing * (x * cosine - y * sine), f.y + x * sine + y * cosine];
  const { hip, lean } = pose, neck = [hip[0] + BRAWL.trunk * Math.sin(lean), hip[1] - BRAWL.trunk * Math.cos(lean)];
  const head = place([neck[0] + 0.2 * Math.sin(lean * 0.6) + 0.02, neck[1] - 0.17 * Math.cos(lean)]), shade = brawlMix(team.dark, ink, 0.25);
  const limb = (from, to, size, bend, hues, widths) => {
    const [joint, end] = brawlBones(from, to, size, bend);
    sketch.capsule(place(from), place(joint), widths[0], hues[0], widths[1]);
    sketch.capsule(place(joint), place(end), widths[2], hues[1], widths[3]);
    return end;
  };
  const arm = (shoulder, hand, hues) => sketch.circle(place(limb(shoulder, hand, BRAWL.arm, 1, hues, [0.075, 0.06, 0.06, 0.055])), 0.085, hues[1]);
  const leg = (from, foot, hues) => {
    const end = limb(from, [foot[0], foot[1] - 0.06], BRAWL.leg, -1, hues, [0.095, 0.075, 0.07, 0.06]);
    sketch.capsule(place([end[0] - 0.02, end[1] + 0.005]), place([end[0] + 0.09, end[1] + 0.01]), 0.055, hues[1]);
  };
  const wind = [-0.3 * f.facing - 0.03 * f.vx, 0.1 + 0.06 * Math.sin(frame * 0.35) - 0.025 * f.vy], long = Math.hypot(...wind) || 1e-6;
  let from = place(neck);
  [[0.4, 0.05], [0.75, -0.05], [1, 0.03]].forEach(([share, wave], k) => { // the scarf
    const root = place(neck), to = [root[0] + wind[0] * share - (wind[1] / long) * wave, root[1] + wind[1] * share + (wind[0] / long) * wave];
    sketch.capsule(from, to, 0.075 - 0.015 * k, team.light, 0.06 - 0.015 * k);
    from = to;
  });
  arm([neck[0], neck[1] + 0.06], pose.backHand, [shade, brawlMix(skin, ink, 0.3)]);
  leg(hip, pose.backFoot, [shade, brawlMix(steel, ink, 0.45)]);
  leg([hip[0] + 0.03, hip[1]], pose.frontFoot, [team.dark, brawlMix(steel, ink, 0.15)]);
  sketch.capsule(place(hip), place(neck), 0.125, team.base, 0.165);
  const belt = [hip[0] + 0.05 * Math.sin(lean), hip[1] - 0.05];
  sketch.capsule(place([belt[0] - 0.09, belt[1]]), place([belt[0] + 0.09, belt[1]]), 0.035, brawlMix(team.light, skin, 0.4));
  const angle = pose.weaponAngle + pose.spin;
  if (weapon.length > 0) brawlWeapon(sketch, weapon, weapon.color, place(pose.frontHand), [f.facing * Math.cos(angle), Math.sin(angle)]);
  const turn = pose.spin + 0.5 * lean, ts = Math.sin(turn), tc = Math.cos(turn);
  const tilt = ([x, y]) => [head[0] + f.facing * (x * tc - y * ts), head[1] + x * ts + y * tc];
  const ring = (radius, angles, dx, dy) => angles.map((a) => tilt([radius * Math.cos(a) + dx, radius * Math.sin(a) + dy]));
  sketch.polygon([...ring(0.21, [-0.9, -1.5, -2.2, -2.9, -3.6], -0.03, -0.06), ...ring(0.12, [-3.4, -1.2], 0, 0)], team.light);
  sketch.circle(head, 0.185, team.base);
  sketch.capsule(tilt([0.05, 0.09]), tilt([0.12, 0.07]), 0.075, skin);
  sketch.capsule(tilt([-0.13, -0.01]), tilt([0.15, -0.01]), 0.045, team.dark);
  sketch.capsule(tilt([0.06, 0]), tilt([0.15, 0]), 0.028, [255, 250, 230]);
  arm([neck[0] + 0.02, neck[1] + 0.07], pose.frontHand, [team.base, skin]);
  return sketch;
}

