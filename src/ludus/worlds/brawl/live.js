// A live match of Brawl in a page that shares an agent: reads the simulator's state, says which keys do what, and moves the
// camera. `data` is what display.py's `live_data` gives; `player.js` draws.

LIVE.brawl = (() => {
  const KEYS = 10, LEFT = 1, RIGHT = 3, CYCLE = 290;

  // The platform's top, the same curve as `stage.platform_at`.
  function platformAt(frame, side) {
    const phase = frame % CYCLE, t = (Math.min(phase, CYCLE - phase) * 2) / CYCLE, s = 1 - 2 * t * t * (3 - 2 * t);
    return [side * 0.93 * s, 1 - 0.93 * s];
  }

  // A picture is mirrored if the first seat would start on the right: blue is always seen on the left first.
  function read(engine, data, before) {
    const mirrored = before ? before.mirrored : engine.field("players", 0, "home") > 0, side = mirrored ? -1 : 1;
    const fighters = [0, 1].map((seat) => {
      const f = (name) => engine.field("players", seat, name), earlier = before && before.fighters[seat];
      const fighter = {
        x: side * f("x"), y: f("y"), vx: side * f("vx"), vy: f("vy"), facing: side * f("facing"), state: f("state"), timer: f("timer"),
        damage: f("damage"), stocks: f("stocks"), weapon: f("weapon"), safe: f("invincible") > 0, move: f("move"), moveFrame: f("move_frame"),
        charge: f("charge"), grounded: f("ground") > 0, exit: null,
      };
      if (fighter.state === BRAWL.state.ko && earlier) fighter.exit = earlier.state === BRAWL.state.ko ? earlier.exit : [earlier.x, earlier.y];
      return fighter;
    });
    const items = [0, 1, 2, 3].map((slot) => {
      const i = (name) => engine.field("items", slot, name);
      return { x: side * i("x"), y: i("y"), weapon: i("weapon"), life: i("life"), lock: i("lock") };
    }).filter((item) => item.life > 0);
    return { frame: engine.field("matches", 0, "frame"), mirrored, fighters, items };
  }

  // Keep both fighters in the picture, not larger than needed; ease after them.
  function camera({ view, isCalm, elapsed, width, height }, fighters) {
    const aspect = width / height, xs = fighters.map((f) => f.x), ys = fighters.map((f) => f.y), least = aspect > 1.3 ? 17 : 12.5;
    const spread = (values) => Math.max(...values) - Math.min(...values), middle = (values) => (Math.max(...values) + Math.min(...values)) / 2;
    const wide = Math.min(Math.max(spread(xs) + 6.5, (spread(ys) + 6) * aspect, least), 28.4), room = Math.max(14.2 - wide / 2, 0);
    const aim = isCalm ? { x: 0, y: 0.2, width: Math.max(19.6, 12 * aspect) }
      : { x: Math.min(Math.max(0.75 * middle(xs), -room), room), y: Math.min(Math.max(0.8 * middle(ys), -3.5), 4), width: wide };
    const share = view.camera ? 1 - Math.exp(-3.5 * elapsed) : 1, from = view.camera || aim;
    view.camera = Object.fromEntries(Object.keys(aim).map((name) => [name, brawlLerp(from[name], aim[name], share)]));
    return view.camera;
  }

  function paint(pen, match) {
    const { before, now, share, live, names, width, height } = match, at = brawlLerp(before.frame, now.frame, share);
    const fighters = [0, 1].map((seat) => brawlBetween(before.fighters[seat], now.fighters[seat], share, at, live.arsenal));
    const left = Math.max(live.step_limit - now.frame, 0), items = now.items;
    paintBrawl(pen, {
      frame: at, clock: brawlClock(Math.ceil(left / match.rate)), hurry: left < 10 * match.rate && left % match.rate > match.rate / 2,
      mirrored: now.mirrored, names, arsenal: live.arsenal, platform: platformAt(at, now.mirrored ? -1 : 1), items, fighters,
      front: match.seat, camera: camera(match, fighters),
    }, width, height);
  }

  // The keys of a seat: its own right leads away from its start (`display.sees_mirrored`), which is left for the first seat.
  function act(engine, seat, { held }, data) {
    const swaps = seat === 1, actions = engine.actions;
    actions.fill(0, seat * KEYS, (seat + 1) * KEYS);
    for (const [name, key] of data.controls) {
      if (!held.has(name)) continue;
      const own = swaps && (key === LEFT || key === RIGHT) ? LEFT + RIGHT - key : key;
      actions[seat * KEYS + own] = 1;
    }
  }

  function score(engine, data, state) {
    const [a, b] = state.fighters, metrics = data.replay.state_metrics, rows = engine.tensor("state_metrics");
    const last = (seat, name) => rows[seat * metrics.length + metrics.indexOf(name)];
    const stocks = [last(0, "stocks"), last(1, "stocks")].map(Math.round), damage = [a, b].map((f) => Math.round(f.damage));
    return `stocks ${stocks.join(" : ")}, damage ${damage.join(" : ")}, ${brawlClock(state.frame / data.rate_hz)} played`;
  }

  return {
    sides: ["blue", "red"], read, paint, act, score, platformAt,
    chances: (probabilities, data) => data.controls.map(([name, key, meaning]) => [meaning.split(/[:,(]/)[0].trim() || name, probabilities[key]]),
    bindings: {
      stick: { up: "w", left: "a", down: "s", right: "d" },
      buttons: [
        { label: "Weapon", key: "h" }, { label: "Dodge", key: "l" }, { label: "Taunt", key: "g" },
        { label: "Light", key: "j", size: "big" }, { label: "Heavy", key: "k", size: "big" }, { label: "Jump", key: "space", size: "big" },
      ],
      pad: { 0: "space", 1: "l", 2: "j", 3: "k", 4: "h", 5: "l", 6: "h", 7: "k", 8: "g" },
    },
    touchHelp: "The stick moves; dash with Dodge and a direction; hold Heavy to charge.",
    padHelp: "Gamepad: stick or cross moves, A jump, X light, Y heavy, B dash or dodge, left shoulder weapon, Start pause.",
  };
})();
