// A live match of Rocket in a page that shares an agent: reads the simulator's state, says which keys do what, interpolates
// between decisions as view.py does, and moves the cameras as rendering/director.py does. `data` is what display.py's
// `live_data` gives; `player.js` draws.

LIVE.rocket = (() => {
  const VIEWS = ["ball", "chase", "side"], HOLD_S = 1.6, TRAIL_S = 0.55, LEAP_S = 0.5;
  const mix = (a, b, share) => a + (b - a) * share, mixed = (a, b, share) => rocketAhead(a, rocketLess(b, a), share);
  const within = (value, most) => Math.min(Math.max(value, -most), most);

  function read(engine, data) {
    const match = (name) => engine.field("matches", 0, name), ball = (name) => engine.field("balls", 0, name), tick = match("tick"), back = engine.tensor("pads");
    return {
      tick, time: tick / 120, clock: data.has_clock ? match("clock_s") : tick / 120, kickoff: match("since_kickoff_s"), goals: [match("blue_goals"), match("orange_goals")],
      ball: { position: ball("position"), velocity: ball("velocity"), spin: ball("spin") },
      cars: data.teams.map((team, seat) => {
        const f = (name) => engine.field("cars", seat, name);
        return {
          position: f("position"), velocity: f("velocity"), rotation: f("rotation"), team, boost: f("boost"), boosting: f("boosting_s") > 0,
          supersonic: f("supersonic") > 0, grounded: f("on_ground") > 0, steer: f("steer"), demolished: f("demolished_s"),
        };
      }),
      pads: data.pads.map(([x, y, big], k) => ({ x, y, big: big > 0, away: Math.max(back[k] - tick, 0) / 120 })),
    };
  }

  // Two straight lines that meet where a body that flies on and one that flies back come closest: there it was hit.
  function placeBetween(a, b, duration, share) {
    const change = rocketLess(b.velocity, a.velocity), gap = rocketLess(rocketAhead(b.position, b.velocity, -duration), a.position), weight = rocketDot(change, change);
    const meeting = weight > 1e-6 ? Math.min(Math.max(-rocketDot(gap, change) / (weight * duration), 0.05), 0.95) : 0.5, missed = rocketAhead(gap, change, meeting * duration);
    if (share <= meeting) return rocketAhead(rocketAhead(a.position, a.velocity, share * duration), missed, (0.5 * share) / meeting);
    return rocketAhead(rocketAhead(b.position, b.velocity, (share - 1) * duration), missed, (-0.5 * (1 - share)) / (1 - meeting));
  }

  function between(first, second, share) {
    const duration = second.time - first.time, passed = share * duration;
    if (share >= 1 || duration <= 0) return second;
    const onward = (car) => (car.demolished > 0 ? { ...car, demolished: Math.max(car.demolished - passed, 1e-3) } : { ...car, position: rocketAhead(car.position, car.velocity, passed) });
    if (second.kickoff < first.kickoff) {
      const [x, y, z] = rocketAhead(first.ball.position, first.ball.velocity, passed);
      return { ...first, time: first.time + passed, ball: { ...first.ball, position: [x, y, Math.max(z, ROCKET.ballRadius)] }, cars: first.cars.map(onward) };
    }
    const cars = first.cars.map((one, seat) => {
      const other = second.cars[seat];
      if (one.demolished > 0 || other.demolished > 0) return onward(one);
      const nearer = one.rotation.reduce((sum, each, k) => sum + each * other.rotation[k], 0) < 0 ? -1 : 1;
      const turn = one.rotation.map((each, k) => mix(each, nearer * other.rotation[k], share)), length = Math.hypot(...turn) || 1;
      return {
        ...other, position: placeBetween(one, other, duration, share), velocity: mixed(one.velocity, other.velocity, share),
        rotation: turn.map((each) => each / length), boost: mix(one.boost, other.boost, share), steer: mix(one.steer, other.steer, share),
      };
    });
    const ball = { position: placeBetween(first.ball, second.ball, duration, share), velocity: mixed(first.ball.velocity, second.ball.velocity, share), spin: mixed(first.ball.spin, second.ball.spin, share) };
    return { ...first, time: first.time + passed, clock: mix(first.clock, second.clock, share), ball, cars };
  }

  // How a match might have gone on after a goal, where the simulator goes on with the kickoff.
  function afterGoal(before, kickoff, passed) {
    const slowed = (hz) => (1 - Math.exp(-hz * passed)) / hz, fall = (z, speed) => z + speed * passed - 325 * passed * passed, { ball } = before;
    const [x, y] = rocketAhead(ball.position, ball.velocity, slowed(1.6)), r = ROCKET.ballRadius;
    const position = [within(x, 896 - r), within(y, 6000 - r), Math.min(Math.max(fall(ball.position[2], ball.velocity[2]), r), 640 - r)];
    const cars = before.cars.map((car) => {
      if (car.demolished > 0) return { ...car, demolished: Math.max(car.demolished - passed, 1e-3) };
      const [cx, cy, cz] = rocketAhead(car.position, car.velocity, slowed(2.2)), z = car.grounded ? cz : fall(car.position[2], car.velocity[2]);
      const place = [within(cx, 4000), within(cy, 5025 + (Math.abs(cx) < 800 ? 880 : 0)), Math.min(Math.max(z, 17), 1950)];
      return { ...car, position: place, velocity: car.velocity.map((each) => each * Math.exp(-2.2 * passed)), boosting: false, supersonic: false };
    });
    return { ...before, time: before.time + passed, goals: kickoff.goals, ball: { ...ball, position, spin: ball.spin.map((each) => each * Math.exp(-passed)) }, cars };
  }

  // What pictures remember: how the ball is turned, trails, the last goal.
  function remember(view, moment) {
    const elapsed = view.time === undefined ? 0 : moment.time - view.time, isCut = view.time === undefined || elapsed < 0 || elapsed > LEAP_S || moment.kickoff < view.kickoff;
    if (isCut) { view.turn = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]; view.trails = moment.cars.map(() => []); }
    if (view.goals) moment.goals.forEach((goals, team) => { if (goals > view.goals[team]) { view.scorer = team; view.goalTime = 0; } });
    Object.assign(view, { time: moment.time, kickoff: moment.kickoff, goals: [...moment.goals], isCut });
    const passed = isCut ? 0 : elapsed, speed = Math.hypot(...moment.ball.spin);
    if (passed > 0 && speed > 1e-6) {
      const [x, y, z] = moment.ball.spin.map((each) => each / speed), angle = speed * passed, c = Math.cos(angle), s = Math.sin(angle), t = 1 - c;
      const step = [[t * x * x + c, t * x * y - s * z, t * x * z + s * y], [t * x * y + s * z, t * y * y + c, t * y * z - s * x], [t * x * z - s * y, t * y * z + s * x, t * z * z + c]];
      view.turn = step.map((row) => [0, 1, 2].map((k) => row[0] * view.turn[0][k] + row[1] * view.turn[1][k] + row[2] * view.turn[2][k]));
    }
    moment.cars.forEach((car, seat) => {
      const trail = view.trails[seat];
      while (trail.length && moment.time - trail[0].time > TRAIL_S) trail.shift();
      if ((car.boosting || car.supersonic) && car.demolished <= 0 && passed > 0) trail.push({ time: moment.time, place: rocketAhead(car.position, rocketTurned(rocketMatrix(car.rotation), [-50, 0, 14]), 1) });
    });
    return passed;
  }

  function camera(view, moment, seat, passed) {
    const jumps = view.isCut || view.placed !== view.kind;
    view.placed = view.kind;
    if (view.kind === "side") {
      const aim = [0.45, 0.78, 0.45].map((share, k) => share * moment.ball.position[k]), share = jumps ? 1 : 1 - Math.exp(-3.2 * passed);
      view.watched = mixed(view.watched || aim, aim, share);
      const [x, y, z] = view.watched;
      return { eye: [6900, 0.62 * y, 2700], target: [x, y, z + 60], wide: 47 };
    }
    const car = moment.cars[seat], toBall = rocketLess(moment.ball.position, car.position), far = Math.hypot(toBall[0], toBall[1]);
    let wish = view.way || rocketUnit([car.team ? 0 : 0, car.team ? -1 : 1, 0]);
    if (view.kind === "ball" && far >= 260) wish = rocketUnit([toBall[0] / far, toBall[1] / far, Math.min(Math.max(toBall[2] / far, -0.25), 0.55)]);
    if (view.kind === "chase") {
      const ahead = car.grounded ? rocketTurned(rocketMatrix(car.rotation), [1, 0, 0]) : car.velocity, length = Math.hypot(ahead[0], ahead[1]);
      wish = length > (car.grounded ? 0.3 : 300) ? [ahead[0] / length, ahead[1] / length, 0] : [wish[0], wish[1], 0];
    }
    const way = mixed(view.way || wish, wish, jumps ? 1 : 1 - Math.exp(-7 * passed));
    view.way = Math.hypot(...way) > 1e-3 ? rocketUnit(way) : wish; // opposite ways: turn at once
    const [x, y, z] = rocketAhead(rocketAhead(car.position, view.way, -290), [0, 0, 118], 1), isInGoal = Math.abs(x) < 806 && z < 550;
    const eye = [within(x, 4006), within(y, 5030 + (isInGoal ? 880 : 0)), Math.min(Math.max(z, 45), 1900)];
    return { eye, target: rocketAhead(rocketAhead(car.position, view.way, 520), [0, 0, 40], 1), wide: 92 };
  }

  function paint(pen, match) {
    const { before, now, share, view, live, names, width, height, seat } = match;
    view.kind = view.kind || (match.isWatching || match.isCalm ? "side" : "ball");
    const moment = match.held > 0 ? afterGoal(before, now, match.held) : between(before, now, share), passed = remember(view, moment);
    view.goalTime = (view.goalTime || 0) + match.elapsed;
    if (view.goalTime > 2.1) view.scorer = -1;
    const look = camera(view, moment, seat, passed), trails = view.trails.map((trail) => trail.map(({ time, place }) => ({ place, age: (moment.time - time) / TRAIL_S })));
    paintRocket(pen, {
      time: moment.time, clock: moment.clock, goals: moment.goals, names, cars: moment.cars, ball: { ...moment.ball, turn: view.turn }, pads: moment.pads, trails,
      scorer: view.scorer === undefined ? -1 : view.scorer, goalAge: view.goalTime, camera: look, sizes: [1, 1], driver: view.kind === "side" ? -1 : seat,
    }, width, height);
  }

  // Controls in the order of `rules.Control`, as `display.held_controls` has them; a stick may be held half way.
  function controls({ held, stick, hasStick }) {
    const is = (...names) => Number(names.some((name) => held.has(name))), strong = (value) => (Math.abs(value) > 0.15 ? value : 0);
    const drive = is("w", "up") - is("s", "down"), turn = strong(stick[0]) || is("d", "right") - is("a", "left"), slide = is("x"), boost = is("left shift", "right shift"), roll = is("e") - is("q");
    const nose = hasStick ? strong(stick[1]) : -drive; // with a stick, throttle and nose are apart
    return [drive || boost, turn, nose, slide ? 0 : turn, roll || (slide ? turn : 0), is("space"), boost, slide];
  }

  // The action nearest to the controls, as `display.action_of` chooses it.
  function act(engine, seat, taken, data) {
    const asked = controls(taken), actions = engine.actions;
    if (data.actions === "continuous") { asked.forEach((value, k) => { actions[seat * 8 + k] = k < 5 ? value : value > 0 ? 1 : -1; }); return; }
    const grounded = engine.field("cars", seat, "on_ground") > 0, weights = [...data.weights];
    if (!(grounded && asked[5] > 0)) (grounded ? [2, 3, 4] : [0, 1]).forEach((k) => { weights[k] *= 0.1; });
    const distance = (row) => row.reduce((sum, each, k) => sum + Math.abs(each - asked[k]) * weights[k], 0);
    actions[seat] = data.table.reduce((best, row, k) => { const away = distance(row); return away < best[1] ? [k, away] : best; }, [0, Infinity])[0];
  }

  // How likely each control is, over all actions of the table.
  function chances(probabilities, data) {
    const labels = [["forward", 0, 1], ["backward", 0, -1], ["left", 1, -1], ["right", 1, 1], ["nose up", 2, 1], ["nose down", 2, -1], ["jump", 5, 1], ["boost", 6, 1], ["slide", 7, 1]];
    if (data.actions !== "table") return null;
    return labels.map(([label, control, value]) => [label, data.table.reduce((sum, row, k) => sum + (Math.sign(row[control]) === value ? probabilities[k] : 0), 0)]);
  }

  function score(engine, data, state) {
    const events = data.replay.events, rows = engine.tensor("events"), goals = [0, 1].map((seat) => state.goals[seat] + Math.round(rows[seat * events.length + events.indexOf("team_goals")]));
    return `goals ${goals.join(" : ")}, ${Math.floor(state.time / 60)}:${String(Math.floor(state.time) % 60).padStart(2, "0")} played`;
  }

  return {
    sides: ["blue", "orange"], views: VIEWS, read, paint, act, chances, score,
    // A goal is shown for a while before the kickoff.
    hold: (before, now) => (before.goals[0] !== now.goals[0] || before.goals[1] !== now.goals[1] ? HOLD_S : 0),
    turnCamera: (view) => { view.kind = VIEWS[(VIEWS.indexOf(view.kind) + 1) % VIEWS.length]; },
    bindings: {
      stick: { up: "", left: "", down: "", right: "" }, // the stick steers by itself
      buttons: [
        { label: "Slide", key: "x" }, { label: "Back", key: "s" }, { label: "Jump", key: "space", size: "big" },
        { label: "Camera", key: "c" }, { label: "Boost", key: "left shift", size: "big" }, { label: "Drive", key: "w", size: "big" },
      ],
      pad: { 0: "space", 1: "left shift", 2: "x", 4: "q", 5: "e", 6: "s", 7: "w", 3: "c" },
    },
    unusedKeys: ["left ctrl", "right ctrl"], // with W the browser would close the page
    keyLines: ["W S drive, nose down and up   A D steer   Q E roll   Space jump, dodge", "Shift boost   X slide   C camera"],
    touchHelp: "The stick steers, and tilts the nose in the air; hold Drive; Jump twice with the stick to dodge.",
    padHelp: "Gamepad: stick steers, right trigger drives, left trigger brakes, A jump, B boost, X slide, shoulders roll, Y camera, Start pause.",
  };
})();
