// The page of a walker: it walks at the speed that the visitor sets, and is pushed with mouse, finger, keys or buttons.

LIVE.mimic = (() => {
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2];
  const { VIEWS, PUSHES, KEYS, HISTORY_S, mixed, prepared, drawSpeeds, keyCard } = MimicPanel;
  const STIFFNESS_N_M = 160, MOST_N = 250; // of the band between the walker and the pointer that pulls it
  const PUSH_S = 0.1; // how long a push lasts, as in training
  const REACH_PX = 44; // of a pointer around the figure
  const LYING_S = 1.6; // after a fall, before it begins again
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  async function start(data) {
    const { live } = data, wanted = new URLSearchParams(location.hash.slice(1)), page = document.getElementById("page");
    const state = {
      isPaused: false, rate: 1, behind: 0, before: null, now: null, lying: 0, falls: 0, longest: 0, push: null, grab: null, hasGhost: true,
      view: { ...VIEWS["from the side, ahead"], distance: 3.6 }, history: [], camera: null, way: [],
    };

    // --- elements ---

    const [low, high] = live.reference.speeds, [trainedLow, trainedHigh] = live.speed_range;
    const canvas = make("canvas", { class: "picture", tabindex: 0, "aria-label": "the walker; arrow keys push it, drag it to pull it, drag beside it to turn the camera" });
    const banner = make("p", { class: "banner", "aria-live": "polite" });
    const stage = make("div", { class: "stage" }, canvas, banner);
    const button = (label, act, attributes = {}) => make("button", { type: "button", onclick: act, ...attributes }, label);
    const speed = make("input", { type: "range", min: low.toFixed(2), max: high.toFixed(2), step: 0.01, value: live.speed, "aria-label": "desired speed in m/s", oninput: () => setSpeed(Number(speed.value)) });
    const speedText = make("output", { class: "value" });
    const strength = make("input", { type: "range", min: 2, max: 40, step: 1, value: 12, "aria-label": "impulse of a push in N s", oninput: showStrength });
    const strengthText = make("output", { class: "value" });
    const pause = button("Pause", () => setPaused(!state.isPaused), { class: "wide-button" });
    const rate = make("select", { "aria-label": "time", onchange: () => { state.rate = Number(rate.value); } }, SPEEDS.map((each) => make("option", { value: each, selected: each === 1 }, `${each}x`)));
    const view = make("select", { "aria-label": "camera", onchange: () => Object.assign(state.view, VIEWS[view.value]) }, Object.keys(VIEWS).map((name) => make("option", { value: name }, name)));
    const ghost = make("input", { type: "checkbox", checked: true, onchange: () => { state.hasGhost = ghost.checked; } });
    const who = make("select", { "aria-label": "agent", onchange: () => choose(who.value) }, data.players.map((player) => make("option", { value: player.id }, player.note ? `${player.name} (${player.note})` : player.name)));
    const chart = make("canvas", { class: "mind-chart", "aria-label": "speed over the last seconds" });
    const pushes = make("div", { class: "tools" }, make("label", {}, "push ", strength, strengthText), Object.keys(PUSHES).map((name) => button(name, () => push(name))));
    const tools = make("div", { class: "tools" }, pause, button("Restart", () => restart()), make("label", {}, "time ", rate), make("label", {}, "camera ", view),
      make("label", {}, ghost, " what it imitates"), data.players.length > 1 ? make("label", {}, "agent ", who) : null);
    page.append(
      make("header", {}, make("p", { class: "mark" }, "LUDUS"), make("h1", {}, data.title), make("p", { class: "sub" }, data.subtitle)),
      make("section", { class: "game" }, stage),
      make("div", { class: "desk" }, make("label", { class: "wide-slider" }, "desired speed ", speed, speedText), tools),
      make("div", { class: "desk" }, pushes),
      make("div", { class: "grid below" },
        make("section", { class: "card wide" }, make("h2", {}, "Speed"), chart, make("p", { class: "sub" }, "Line: speed of the hips in m/s, mean of a second. Dashed: what is asked for. Bars: pushes.")),
        help(), about()));

    function help() {
      const rows = [["drag the walker", "pull it with a rubber band, by mouse or finger"], ["drag beside it", "turn the camera"], ...Object.entries(KEYS).map(([key, name]) => [key, `push ${name}`]),
        ["+ or -", "faster or slower"], ["P", "pause"], ["R", "restart"]];
      return keyCard("Push it", rows);
    }
    function about() {
      return make("section", { class: "card" }, make("h2", {}, "What this is"), live.about.map((text) => make("p", {}, text)),
        make("dl", {}, data.about.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
        make("p", { class: "sub" }, "Everything runs in this page; it asks no server for anything."));
    }

    // --- the walker ---

    const engine = await LudusEngine.load(await unpacked(data.engine.wasm), data.engine.description), policies = new Map();
    const walker = new LiveWalker(live, new Float32Array((await unpacked(live.reference.table)).buffer), engine);
    let policy = null;

    async function choose(id) {
      const player = data.players.find((each) => each.id === id);
      if (!policies.has(id)) policies.set(id, engine.addPolicy(await unpacked(player.weights), player.policy));
      policy = policies.get(id);
      restart();
    }
    function restart() {
      walker.restart(0);
      policy.reset(0);
      Object.assign(state, { behind: 0, lying: 0, push: null, way: [], before: null, history: [] });
      state.now = moment();
      banner.textContent = "";
      mark();
    }
    function setSpeed(value) {
      walker.desired = value;
      speed.value = value;
      const isTrained = value >= trainedLow - 1e-9 && value <= trainedHigh + 1e-9;
      speedText.textContent = `${value.toFixed(2)} m/s${isTrained ? "" : ` (trained for ${trainedLow} to ${trainedHigh})`}`;
    }
    function showStrength() { strengthText.textContent = `${strength.value} N s`; }
    function setPaused(isPaused) {
      state.isPaused = isPaused;
      pause.textContent = isPaused ? "Resume" : "Pause";
      mark();
    }

    // A push at the hips: the force lasts as long as those of training, so that its impulse is the one that was set.
    function push(name) {
      const [ahead, left] = PUSHES[name], force = Number(strength.value) / PUSH_S;
      state.push = { body: 0, point: [0, 0, 0], force: [ahead * force, left * force, 0], steps: Math.round(PUSH_S * data.rate_hz) };
    }
    // The force of the moment: that of a push, or of the band between a point of the walker and the pointer.
    function pull() {
      if (state.push) return state.push;
      if (!state.grab || !state.camera) return null;
      const { body, point, x, y } = state.grab, from = walker.physics.pointOf(body, point), to = state.camera.at(x, y, state.camera.project(from).depth);
      const force = to.map((value, k) => STIFFNESS_N_M * (value - from[k])), size = Math.hypot(...force);
      return { body, point, force: size > MOST_N ? force.map((value) => (value * MOST_N) / size) : force };
    }
    function moment() { return { points: walker.points(), ghost: walker.ghost(), likeness: walker.likeness() }; }

    function advance() {
      const force = pull();
      walker.step(policy, force);
      if (state.push && --state.push.steps <= 0) state.push = null;
      state.before = state.now;
      state.now = moment();
      const seconds = walker.seconds, hip = walker.physics.positions[0];
      state.way.push([seconds, hip]);
      while (seconds - state.way[0][0] > 1) state.way.shift();
      state.history.push({ seconds, speed: meanSpeed(), desired: walker.desired, force: force ? Math.hypot(...force.force) : 0 });
      while (seconds - state.history[0].seconds > HISTORY_S) state.history.shift();
      state.longest = Math.max(state.longest, seconds);
      if (walker.isFallen) {
        state.falls++;
        state.lying = LYING_S;
        state.grab = state.push = null;
        banner.textContent = `It fell after ${seconds.toFixed(1)} s`;
      }
      mark();
    }
    function meanSpeed() {
      const [first] = state.way, last = state.way[state.way.length - 1];
      return last && last[0] - first[0] > 0.2 ? (last[1] - first[1]) / (last[0] - first[0]) : null;
    }
    // What tests and other scripts can read.
    function mark() {
      Object.assign(document.documentElement.dataset, {
        state: walker.isFallen ? "fallen" : state.isPaused ? "paused" : "walking", seconds: walker.seconds.toFixed(2), falls: state.falls,
        x: walker.physics.positions[0].toFixed(3), y: walker.physics.positions[1].toFixed(3),
      });
    }

    // --- pictures ---

    function paint() {
      const [width, height, pen] = prepared(canvas), { now, before } = state, share = before && !walker.isFallen ? Math.min(state.behind, 1) : 1;
      const points = before ? mixed(before.points, now.points, share) : now.points, force = walker.isFallen ? null : pull(), mean = meanSpeed();
      const rows = [["speed", mean === null ? "-" : `${mean.toFixed(2)} m/s`], ["asked for", `${walker.desired.toFixed(2)} m/s`], ["imitation", `${Math.round(100 * now.likeness)} %`],
        ["time", `${walker.seconds.toFixed(1)} s`], ["distance", `${walker.physics.positions[0].toFixed(1)} m`], ["falls", String(state.falls)]];
      if (width < 560) rows.splice(2); // a small picture is for the walker
      const shown = {
        points, height: live.height_m, rows, ghost: state.hasGhost ? (before ? mixed(before.ghost, now.ghost, share) : now.ghost) : null,
        force: force && { point: walker.physics.pointOf(force.body, force.point), force: force.force },
      };
      state.camera = MimicScene.drawMoment(pen, shown, state.view, width, height);
      state.points = points;
    }

    // --- time ---

    let last = performance.now(), charted = 0;
    function tick(now) {
      const elapsed = Math.min(Math.max(now - last, 0), 250) / 1000;
      last = now;
      if (!state.isPaused) {
        if (state.lying > 0) {
          state.lying -= elapsed;
          if (state.lying <= 0) restart();
        } else {
          state.behind += elapsed * data.rate_hz * state.rate;
          // A machine that is too slow walks slower: it never tries to catch up with more than it can do.
          for (const until = performance.now() + 30; state.behind >= 1 && !walker.isFallen; state.behind--) {
            if (performance.now() > until) { state.behind %= 1; break; }
            advance();
          }
        }
      }
      paint();
      if (now - charted > 100) { charted = now; drawSpeeds(chart, state.history, walker.seconds, low, high); }
      requestAnimationFrame(tick);
    }

    // --- pointer and keys ---

    const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    // The point of the figure next to a place of the picture, as {body, point}; null if none is near.
    function found(x, y) {
      let best = null, least = REACH_PX;
      for (const [name, [body, point]] of Object.entries(live.points)) {
        const seen = state.camera.project(walker.physics.pointOf(body, point)), away = Math.hypot(seen.x - x, seen.y - y);
        if (away < least) { least = away; best = { body, point, name }; }
      }
      const hip = state.camera.project(state.points.hip), neck = state.camera.project(state.points.neck), along = [neck.x - hip.x, neck.y - hip.y];
      const share = Math.min(Math.max(((x - hip.x) * along[0] + (y - hip.y) * along[1]) / (along[0] ** 2 + along[1] ** 2), 0), 1);
      if (!best && Math.hypot(hip.x + share * along[0] - x, hip.y + share * along[1] - y) < REACH_PX) {
        const [body, top] = live.points.neck;
        best = { body, point: top.map((value) => value * share), name: "trunk" };
      }
      return best;
    }
    let turning = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!state.camera || walker.isFallen) return;
      const [x, y] = place(event), grabbed = found(x, y);
      canvas.setPointerCapture(event.pointerId);
      if (grabbed) state.grab = { ...grabbed, x, y, id: event.pointerId };
      else turning = { x, y, id: event.pointerId };
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (state.grab && state.grab.id === event.pointerId) Object.assign(state.grab, { x, y });
      else if (turning && turning.id === event.pointerId) {
        state.view.turn += (turning.x - x) * 0.008;
        state.view.rise = Math.min(Math.max(state.view.rise + (y - turning.y) * 0.005, 0.02), 1.2);
        Object.assign(turning, { x, y });
      } else if (event.pointerType === "mouse" && state.camera) canvas.style.cursor = found(x, y) ? "grab" : "default";
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
      if (state.grab && state.grab.id === event.pointerId) state.grab = null;
      if (turning && turning.id === event.pointerId) turning = null;
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      state.view.distance = Math.min(Math.max(state.view.distance * Math.exp(event.deltaY * 0.001), 2), 9);
    }, { passive: false });
    canvas.style.touchAction = "none";
    Object.assign(banner.style, { inset: "auto 0 5%", fontSize: "clamp(1.3rem, 4vw, 2.6rem)" }); // beside the walker, not over it
    stage.style.minHeight = "min(56vh, 30rem)"; // on a phone, a person is taller than the picture is wide
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
      if (KEYS[event.key]) { event.preventDefault(); if (!event.repeat) push(KEYS[event.key]); }
      else if (event.key === "+" || event.key === "-") setSpeed(Math.min(Math.max(walker.desired + (event.key === "+" ? 0.05 : -0.05), low), high));
      else if (event.key.toLowerCase() === "p") setPaused(!state.isPaused);
      else if (event.key.toLowerCase() === "r") restart();
    });
    document.addEventListener("visibilitychange", () => { last = performance.now(); });

    // --- start ---

    const asked = Number(wanted.get("speed"));
    if (SPEEDS.includes(Number(wanted.get("time")))) { state.rate = Number(wanted.get("time")); rate.value = state.rate; }
    setSpeed(wanted.has("speed") && asked >= low && asked <= high ? asked : live.speed);
    showStrength();
    await choose(data.players[0].id);
    if (isCalm || wanted.has("paused")) setPaused(true);
    requestAnimationFrame(tick);
    document.documentElement.dataset.ready = "yes";
  }

  return { start };
})();
