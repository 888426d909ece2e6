// The page of `ludus play mimic`: it draws the walker that the program sends, and sends back speed, turns and pushes.

(() => {
  const { VIEWS, PUSHES, KEYS, HISTORY_S, mixed, prepared, drawSpeeds, keyCard } = MimicPanel;
  const TIMES = [0.1, 0.25, 0.5, 1, 2];
  const REACH_PX = 60; // of a pointer around the hips
  const CLICK_PX = 6; // a pointer that moved by less was a click
  const IMPULSE_PER_PX = 0.25; // N s of a push that is drawn with the pointer
  const PUSH_S = 0.1; // see `steering.py`
  const SPEED_STEP = 0.05;
  const TURN_KEYS = { a: 1, d: -1 };
  const page = document.getElementById("page");
  const state = { facts: null, now: null, before: null, arrived: 0, every: 20, history: [], camera: null, view: { ...VIEWS["from the side, ahead"], distance: 3.6 }, drag: null, turning: null, isPaused: false, hasGhost: true, turn: 0 };

  // --- elements ---

  const canvas = make("canvas", { class: "picture", tabindex: 0, "aria-label": "the walker; arrow keys push it, drag from its hips to push it, drag beside it to turn the camera" });
  const banner = make("p", { class: "banner", "aria-live": "polite" });
  const stage = make("div", { class: "stage" }, canvas, banner);
  const button = (label, act, attributes = {}) => make("button", { type: "button", onclick: act, ...attributes }, label);
  const speed = make("input", { type: "range", step: 0.01, "aria-label": "desired speed in m/s", oninput: () => send({ speed: Number(speed.value) }) });
  const speedText = make("output", { class: "value" });
  const strength = make("input", { type: "range", min: 2, max: 60, step: 1, value: 12, "aria-label": "impulse of a push in N s", oninput: showStrength });
  const strengthText = make("output", { class: "value" });
  const pause = button("Pause", () => send({ paused: !state.isPaused }), { class: "wide-button" });
  const motion = make("select", { "aria-label": "motion", onchange: () => send({ motion: motion.value }) });
  const motionChoice = make("label", { hidden: true }, "motion ", motion);
  const time = make("select", { "aria-label": "time", onchange: () => send({ time: Number(time.value) }) }, TIMES.map((each) => make("option", { value: each, selected: each === 1 }, `${each}x`)));
  const view = make("select", { "aria-label": "camera", onchange: () => Object.assign(state.view, VIEWS[view.value]) }, Object.keys(VIEWS).map((name) => make("option", { value: name }, name)));
  const ghost = make("input", { type: "checkbox", checked: true, onchange: () => { state.hasGhost = ghost.checked; } });
  const chart = make("canvas", { class: "mind-chart", "aria-label": "speed over the last seconds" });
  const turnButton = (label, share) => make("button", { type: "button", onpointerdown: () => turn(share), onpointerup: () => turn(0), onpointerleave: () => turn(0) }, label);
  const title = make("h1", {}, "Steer a walker"), subtitle = make("p", { class: "sub" }), about = make("section", { class: "card" });
  const rows = [["drag from the hips", "push: direction and strength are those of the arrow"], ["click beside the hips", "push away from the pointer, with the strength of the slider"], ["drag elsewhere", "turn the camera"],
    ...Object.entries(KEYS).map(([key, name]) => [key, `push ${name}`]), ["A or D", "turn left or right"], ["+ or -", "faster or slower"], ["P", "pause"], ["R", "restart"]];
  page.append(
    make("header", {}, make("p", { class: "mark" }, "LUDUS"), title, subtitle),
    make("section", { class: "game" }, stage),
    make("div", { class: "desk" }, make("label", { class: "wide-slider" }, "desired speed ", speed, speedText),
      make("div", { class: "tools" }, turnButton("Turn left", 1), turnButton("Turn right", -1), pause, button("Restart", () => send({ restart: true })), motionChoice, make("label", {}, "time ", time), make("label", {}, "camera ", view), make("label", {}, ghost, " what it imitates"))),
    make("div", { class: "desk" }, make("div", { class: "tools" }, make("label", {}, "push ", strength, strengthText), Object.keys(PUSHES).map((name) => button(name, () => pushFrom(name))))),
    make("div", { class: "grid below" },
      make("section", { class: "card wide" }, make("h2", {}, "Speed"), chart, make("p", { class: "sub" }, "Line: speed of the hips in m/s, mean of a second. Dashed: what is asked for. Bars: pushes.")),
      keyCard("Steer it", rows), about));
  Object.assign(banner.style, { inset: "auto 0 5%", fontSize: "clamp(1.3rem, 4vw, 2.6rem)" });
  canvas.style.touchAction = "none";

  // --- commands ---

  function send(command) {
    fetch("/command", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(command) })
      .then((answer) => { if (!answer.ok) answer.text().then(noteProblem); })
      .catch(() => { banner.textContent = "The program has ended"; });
  }
  function push([x, y], impulse) {
    const most = state.facts.largest_impulse_ns;
    send({ push: { direction_deg: (Math.atan2(y, x) * 180) / Math.PI, impulse_ns: Math.min(Math.max(impulse, 0.5), most) } });
  }
  const headingOf = (frame) => (frame.heading_deg * Math.PI) / 180;
  function pushFrom(name) {
    if (!state.now) return;
    const [ahead, left] = PUSHES[name], heading = headingOf(state.now), cos = Math.cos(heading), sin = Math.sin(heading);
    push([ahead * cos - left * sin, ahead * sin + left * cos], Number(strength.value));
  }
  function turn(share) {
    if (share === state.turn) return;
    state.turn = share;
    send({ turn: share });
  }
  function changeSpeed(by) { if (state.now) send({ speed: Math.min(Math.max(state.now.desired + by, state.facts.speeds[0]), state.facts.speeds[1]) }); }
  function showStrength() { strengthText.textContent = `${strength.value} N s`; }

  // --- frames ---

  const source = new EventSource("/events");
  source.addEventListener("hello", (event) => {
    const facts = JSON.parse(event.data), [low, high] = facts.speeds;
    state.facts = facts;
    speed.min = low.toFixed(2);
    speed.max = high.toFixed(2);
    motion.replaceChildren(...facts.motions.map((name) => make("option", { value: name }, name)));
    motionChoice.hidden = facts.motions.length === 0;
    title.textContent = `Steer ${facts.agent}`;
    subtitle.textContent = `${facts.walker}, ${facts.height_m} m and ${facts.mass_kg.toFixed(0)} kg, decides ${facts.rate_hz} times per second`;
    about.replaceChildren(make("h2", {}, "What this is"),
      make("p", {}, "A walker that learned to walk by imitating human gait, the pale figure beside it. The agent decides in the program that serves this page, and MuJoCo is its physics, as in training."),
      make("p", {}, `It was trained for ${facts.trained[0]} to ${facts.trained[1]} m/s and straight ahead. It turns because its world is turned under it, by up to ${facts.turn_deg_s} degrees per second. A push is a force at the hips for ${PUSH_S} s.`),
      make("p", {}, "Time needed is the share of real time that the program takes for physics and decisions; above 100 % it walks slower."));
    banner.textContent = "";
  });
  source.onmessage = (event) => {
    const frame = JSON.parse(event.data), arrived = performance.now(), { points: names } = state.facts;
    for (const who of ["points", "ghost"]) frame[who] = Object.fromEntries(frame[who].map((place, k) => [names[k], place]));
    const isNew = !state.now || frame.seconds < state.now.seconds;
    if (isNew) state.history = [];
    if (state.now && !isNew) state.every = 0.9 * state.every + 0.1 * Math.min(arrived - state.arrived, 200);
    Object.assign(state, { before: isNew ? null : state.now, now: frame, arrived, isPaused: frame.state === "paused" });
    if (frame.state === "walking") {
      state.history.push({ seconds: frame.seconds, speed: frame.speed, desired: frame.desired, force: Math.hypot(...frame.force) });
      while (frame.seconds - state.history[0].seconds > HISTORY_S) state.history.shift();
    }
    show(frame);
  };
  source.onerror = () => { banner.textContent = "The program has ended"; };
  function show(frame) {
    const [low, high] = state.facts.trained, isTrained = frame.desired >= low - 1e-6 && frame.desired <= high + 1e-6;
    if (document.activeElement !== speed || !speed.matches(":active")) speed.value = frame.desired;
    speedText.textContent = `${frame.desired.toFixed(2)} m/s${isTrained ? "" : ` (trained for ${low} to ${high})`}`;
    if (frame.motion && document.activeElement !== motion) motion.value = frame.motion;
    pause.textContent = state.isPaused ? "Resume" : "Pause";
    banner.textContent = frame.state === "fallen" ? `It fell after ${frame.seconds.toFixed(1)} s` : "";
    // What tests and other scripts can read.
    Object.assign(document.documentElement.dataset, { ready: "yes", state: frame.state, seconds: frame.seconds, desired: frame.desired, heading: frame.heading_deg, falls: frame.falls, push: frame.last_push ? frame.last_push.impulse_ns : 0 });
  }

  // --- pictures ---

  function paint() {
    requestAnimationFrame(paint);
    if (!state.now) return;
    const [width, height, pen] = prepared(canvas), { now, before } = state, isMoving = before && now.state === "walking";
    const share = isMoving ? Math.min((performance.now() - state.arrived) / Math.max(state.every, 1), 1) : 1, between = (who) => (before ? mixed(before[who], now[who], share) : now[who]);
    const points = between("points"), lines = [["speed", now.speed === null ? "-" : `${now.speed.toFixed(2)} m/s`], ["asked for", `${now.desired.toFixed(2)} m/s`], ["heading", `${now.heading_deg.toFixed(0)} deg`],
      ["imitation", percent(now.likeness)], ["time", `${now.seconds.toFixed(1)} s`], ["distance", `${now.distance.toFixed(1)} m`], ["last push", now.last_push ? `${now.last_push.impulse_ns.toFixed(0)} N s` : "-"], ["falls", String(now.falls)], ["time needed", percent(now.load)]];
    if (width < 560) lines.splice(2);
    const drawn = state.drag && state.drag.isLong ? drawnPush() : null, force = drawn ? [...drawn.direction.map((value) => (value * drawn.impulse) / PUSH_S), 0] : [...now.force, 0];
    const shown = { points, ghost: state.hasGhost ? between("ghost") : null, height: state.facts.height_m, rows: lines, heading: headingOf(now), isOpen: true, force: { point: points.hip, force } };
    state.camera = MimicScene.drawMoment(pen, shown, state.view, width, height);
    state.points = points;
  }
  setInterval(() => { if (state.now) drawSpeeds(chart, state.history, state.now.seconds, ...state.facts.speeds); }, 100);

  // --- pointer and keys ---

  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  // A way on the picture as a direction on the ground: to the right of the picture, and away from the camera.
  function groundDirection(right, away) {
    const [x, y] = state.camera.ahead, size = Math.hypot(x, y), ahead = [x / size, y / size], length = Math.hypot(right, away) || 1;
    return [(right * ahead[1] + away * ahead[0]) / length, (-right * ahead[0] + away * ahead[1]) / length];
  }
  function drawnPush() {
    const { from, to } = state.drag, right = to[0] - from[0], away = from[1] - to[1];
    return { direction: groundDirection(right, away), impulse: Math.min(IMPULSE_PER_PX * Math.hypot(right, away), state.facts.largest_impulse_ns) };
  }
  function hipsOnPicture() { const seen = state.camera.project(state.points.hip); return [seen.x, seen.y]; }
  canvas.addEventListener("pointerdown", (event) => {
    if (!state.camera) return;
    const [x, y] = place(event), [hx, hy] = hipsOnPicture();
    canvas.setPointerCapture(event.pointerId);
    if (Math.hypot(x - hx, y - hy) < REACH_PX) state.drag = { from: [x, y], to: [x, y], id: event.pointerId, isLong: false };
    else state.turning = { x, y, id: event.pointerId };
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event), { drag, turning } = state;
    if (drag && drag.id === event.pointerId) {
      drag.to = [x, y];
      drag.isLong = drag.isLong || Math.hypot(x - drag.from[0], y - drag.from[1]) > CLICK_PX;
    } else if (turning && turning.id === event.pointerId) {
      state.view.turn += (turning.x - x) * 0.008;
      state.view.rise = Math.min(Math.max(state.view.rise + (y - turning.y) * 0.005, 0.02), 1.2);
      Object.assign(turning, { x, y });
    } else if (state.camera) { const [hx, hy] = hipsOnPicture(); canvas.style.cursor = Math.hypot(x - hx, y - hy) < REACH_PX ? "crosshair" : "default"; }
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
    const { drag, turning } = state;
    if (drag && drag.id === event.pointerId) {
      const [hx, hy] = hipsOnPicture(), [x] = drag.from;
      if (name === "pointerup" && drag.isLong) { const { direction, impulse } = drawnPush(); push(direction, impulse); }
      else if (name === "pointerup") push(groundDirection(x > hx ? -1 : 1, 0), Number(strength.value));
      state.drag = null;
    }
    if (turning && turning.id === event.pointerId) state.turning = null;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    state.view.distance = Math.min(Math.max(state.view.distance * Math.exp(event.deltaY * 0.001), 2), 9);
  }, { passive: false });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
    const key = event.key.toLowerCase();
    if (KEYS[event.key]) { event.preventDefault(); if (!event.repeat) pushFrom(KEYS[event.key]); }
    else if (key in TURN_KEYS) turn(TURN_KEYS[key]);
    else if (event.key === "+" || event.key === "-") changeSpeed(event.key === "+" ? SPEED_STEP : -SPEED_STEP);
    else if (key === "p") send({ paused: !state.isPaused });
    else if (key === "r") send({ restart: true });
  });
  document.addEventListener("keyup", (event) => { if (event.key.toLowerCase() in TURN_KEYS) turn(0); });
  window.addEventListener("blur", () => turn(0)); // a key that is let go of elsewhere is not reported

  showStrength();
  requestAnimationFrame(paint);
})();
