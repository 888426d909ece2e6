// Puts the page together: the game with its menu, a bar of controls, what the agents think, keys, and where it all comes from.

// A world's script puts itself into LIVE by the name of the world:
//   sides         names of the two seats
//   read          (engine, data, before) => state: what the painter needs of the simulator's memory, copied
//   paint         (pen, match) => nothing: draws between two states; match.view is an object that it may keep things in
//   act           (engine, seat, { held, stick, hasStick }, data) => nothing: writes the action of who holds these keys
//   score         (engine, page data, state) => text about a match that has ended
//   chances       (probabilities, data) => [label, probability] pairs of an agent's next action, or null
//   bindings      for makeInput; touchHelp and padHelp say the same in words
// and, if it has any: views and turnCamera(view); hold(before, now) => seconds for which a match waits, with match.held of
// them passed; keyLines and unusedKeys where keys differ from `ludus play`. `data` is what its BrowserGame.data returned.

const YOU = "you";
const SPEEDS = [0.25, 0.5, 0.75, 1, 2, 4, 8];
const MOST_SEED = 2 ** 31;
const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;

function startPage(data) {
  const page = document.getElementById("page"), world = LIVE[data.world], rate = data.rate_hz;
  const wanted = new URLSearchParams(location.hash.slice(1)), known = new Map(data.players.map((player) => [player.id, player]));
  const input = makeInput(world.bindings, (name) => { if (name === "c" && world.views) turnCamera(); }), touch = touchControls(world.bindings, input);
  const nameOf = (id) => (id === YOU ? "You" : known.get(id).name);
  const main = data.players[0].id;
  document.documentElement.classList.add(data.world);

  // --- elements ---

  const canvas = make("canvas", { class: "picture", tabindex: 0, "aria-label": `${data.world}: the game` });
  const banner = make("p", { class: "banner", "aria-live": "polite" }, "Loading");
  const menu = make("div", { class: "menu card", role: "group", "aria-label": "menu", hidden: true });
  const pauseDot = make("button", { type: "button", class: "pause-dot", "aria-label": "pause", onclick: () => setPaused(true) }, "II");
  const stage = make("div", { class: "stage" }, canvas, banner, pauseDot, menu);
  const button = (label, act, attributes = {}) => make("button", { type: "button", onclick: act, ...attributes }, label);
  const pauseButton = button("Pause", () => setPaused(!game.isPaused), { class: "wide-button" });
  const speedSelect = make("select", { "aria-label": "speed", onchange: () => { game.speed = Number(speedSelect.value); } },
    SPEEDS.map((speed) => make("option", { value: speed, selected: speed === 1 }, `${speed}x`)));
  const seedField = make("input", { type: "number", min: 0, max: MOST_SEED - 1, "aria-label": "seed of the match",
    onchange: () => { const seed = Number(seedField.value); if (Number.isInteger(seed) && seed >= 0 && seed < MOST_SEED) begin(seed); } });
  const seatSelects = [0, 1].map((seat) => playerSelect(`who plays ${world.sides[seat]}`, true, (id) => seatPlayer(seat, id)));
  const save = button("Download replay", download), watchButton = button("Watch", watch);
  const mindsButton = button("What the agent sees", () => showMinds(minds.hidden), { "aria-pressed": false });
  const minds = make("section", { class: "minds card", "aria-label": "what the agent sees", hidden: true });
  const bar = make("div", { class: "desk" },
    make("div", { class: "players" }, make("label", { class: "side side-0" }, make("span", {}, world.sides[0]), seatSelects[0]),
      button("\u21c4", switchSides, { "aria-label": "switch sides", title: "Switch sides" }),
      make("label", { class: "side side-1" }, make("span", {}, world.sides[1]), seatSelects[1])),
    make("div", { class: "tools" }, pauseButton, button("Rematch", () => begin()), watchButton, make("label", {}, "speed ", speedSelect),
      make("label", {}, "seed ", seedField), mindsButton, save, world.views ? button("Camera", turnCamera) : null,
      document.fullscreenEnabled ? button("Full screen", () => stage.parentElement.requestFullscreen()) : null));
  page.append(make("header", {}, make("p", { class: "mark" }, "LUDUS"), make("h1", {}, data.title), make("p", { class: "sub" }, data.subtitle)),
    make("section", { class: "game" }, touch.stick, stage, touch.buttons), bar, minds,
    make("div", { class: "grid below" }, keyHelp(), about()));
  const screen = { view: {}, chosen: undefined, ratio: Math.min(window.devicePixelRatio || 1, 2), slow: 0 };

  function playerSelect(label, withYou, choose) {
    const select = make("select", { "aria-label": label, onchange: () => choose(select.value) });
    if (withYou) select.append(make("option", { value: YOU }, "You"));
    for (const [kind, title] of [["agent", "Agents"], ["snapshot", "Earlier in its training"], ["bot", "Scripted bots"]]) {
      const players = data.players.filter((player) => player.kind === kind);
      const options = players.map((player) => make("option", { value: player.id }, player.note ? `${player.name} (${player.note})` : player.name));
      if (options.length) select.append(make("optgroup", { label: title }, options));
    }
    return select;
  }

  function keyHelp() {
    const general = [["p", "pause"], ["r", "rematch"], ...(world.views ? [["c", "camera"]] : [])];
    const caps = (names) => names.split(" or ").filter((name) => !(world.unusedKeys || []).includes(name)).map((name) => make("kbd", {}, name.toUpperCase()));
    const rows = [...data.keys, ...general].map(([names, meaning]) => make("tr", {}, make("th", {}, caps(names)), make("td", {}, meaning)));
    return make("section", { class: "card" }, make("h2", {}, "Keys"), make("table", { class: "rows keys" }, make("tbody", {}, rows)),
      make("p", { class: "sub" }, world.padHelp));
  }

  function about() {
    return make("section", { class: "card" }, make("h2", {}, "About this page"),
      make("dl", {}, data.about.map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
      make("p", { class: "sub" }, "Simulator and agents run in this page as WebAssembly; it asks no server for anything. A downloaded replay plays again with: ludus replay FILE"));
  }

  // --- the match ---

  let engine = null;
  const policies = new Map(); // by id, once their weights are unpacked
  const game = {
    seats: [YOU, main], seed: 0, steps: 0, behind: 0, speed: 1, isPaused: true, isOver: false, isDemo: false, wait: 0, hold: 0, held: 0, before: null, now: null,
    recorder: null, result: null, turn: 0, noise: [], focusing: 0,
  };
  const person = () => game.seats.indexOf(YOU);
  const rivalSeat = () => (person() < 0 ? 1 : 1 - person());

  async function ready(id) {
    const player = known.get(id);
    if (!player || player.kind === "bot" || policies.has(id)) return;
    policies.set(id, engine.addPolicy(await unpacked(player.weights), player.policy));
  }

  // Begin a match: the same seed and the same actions give the same match, here and in Python.
  async function begin(seed = Math.floor(Math.random() * MOST_SEED), { demo = false } = {}) {
    const turn = ++game.turn;
    await Promise.all(game.seats.map(ready));
    if (turn !== game.turn) return; // another match was begun meanwhile
    const isAnotherDemo = demo && game.isDemo;
    Object.assign(game, { seed, steps: 0, behind: 0, isOver: false, isDemo: demo, result: null, wait: demo || person() < 0 ? 0 : 1.2, hold: 0, held: 0 });
    engine.reset(seed);
    game.seats.forEach((id, seat) => {
      const isBot = id !== YOU && known.get(id).kind === "bot";
      engine.setBot(seat, isBot ? id : null);
      if (policies.has(id)) policies.get(id).reset(seat);
      game.noise[seat] = makeNoise(seed, seat);
    });
    game.recorder = makeRecorder(engine, data.replay, seed, game.seats.map(nameOf));
    game.now = game.before = world.read(engine, data.live, null);
    screen.view = { kind: screen.chosen };
    readings.forEach((reading) => reading.clear());
    seedField.value = seed;
    input.release();
    game.isPaused = false;
    if (!demo && document.activeElement !== seedField) canvas.focus({ preventScroll: true });
    if (!isAnotherDemo) update(); // else the menu stays as it is: somebody may be choosing
  }

  function advance() {
    const taken = input.take();
    engine.actBots();
    game.seats.forEach((id, seat) => {
      if (id === YOU) world.act(engine, seat, taken, data.live);
      if (!policies.has(id)) return;
      const draw = data.engine.description.action.kind === "box" ? game.noise[seat].normal : game.noise[seat].uniform;
      policies.get(id).act(seat, { uniforms: Array.from({ length: engine.actionSize }, draw) }); // sampled, as in `ludus play`
      if (!minds.hidden) readings[seat].add(policies.get(id));
    });
    game.recorder.note();
    const { terminated, truncated } = engine.step(), ended = terminated || truncated;
    game.recorder.add(ended);
    game.steps++;
    game.before = game.now;
    if (!ended) {
      game.now = world.read(engine, data.live, game.before);
      game.hold = world.hold ? world.hold(game.before, game.now) : 0;
      return;
    }
    game.isOver = true; // the engine stands at the next match already: the picture stays at the last state of this one
    const wins = data.replay.events.indexOf("wins"), rows = engine.tensor("events"), columns = data.replay.events.length;
    const winner = [0, 1].findIndex((seat) => rows[seat * columns + wins] > 0);
    game.result = { winner, details: world.score(engine, data, game.now) };
    if (game.isDemo) begin(undefined, { demo: true });
    else update();
  }

  function seatPlayer(seat, id) {
    const other = game.seats[1 - seat];
    game.seats[seat] = id;
    if (id === YOU && other === YOU) game.seats[1 - seat] = main;
    begin();
  }
  function choose(id) { game.seats[rivalSeat()] = id; begin(); }
  function switchSides() { game.seats.reverse(); begin(); }
  function watch() {
    const rival = game.seats[rivalSeat()];
    game.seats = person() < 0 ? [YOU, main] : [main, rival];
    begin();
  }
  function setPaused(isPaused) {
    if (game.isOver || game.isDemo) return;
    game.isPaused = isPaused;
    game.behind = 0;
    input.release();
    if (!isPaused) canvas.focus({ preventScroll: true });
    update();
  }
  function turnCamera() {
    world.turnCamera(screen.view);
    screen.chosen = screen.view.kind; // later matches keep it
  }

  async function download() {
    if (!game.recorder || !game.recorder.steps) return;
    const file = await game.recorder.file(), link = make("a", { href: URL.createObjectURL(file), download: `${data.world}-${game.seed}.replay` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  // --- menu and bar ---

  function title() {
    if (game.isOver) {
      const { winner } = game.result;
      if (winner < 0) return "Draw";
      return game.seats[winner] === YOU ? "You win" : `${nameOf(game.seats[winner])} wins`;
    }
    return game.isDemo ? `Play against ${known.get(main).name}` : "Paused";
  }
  function fillMenu() {
    const select = playerSelect("opponent", false, (id) => { if (game.isDemo) rival.id = id; else choose(id); });
    select.value = game.isDemo ? rival.id : game.seats[rivalSeat()];
    const go = game.isDemo ? ["Play", play] : game.isOver ? ["Rematch", () => begin()] : ["Resume", () => setPaused(false)];
    const primary = button(go[0], go[1], { class: "primary" });
    const side = game.isDemo ? rival.side : person();
    const swap = game.isDemo ? () => { rival.side = 1 - rival.side; update(); } : switchSides;
    menu.replaceChildren();
    fill(menu, {}, [make("h2", { class: game.isOver && game.result.winner >= 0 ? `team-${game.result.winner}` : "" }, title()),
      game.isOver ? make("p", { class: "sub" }, game.result.details) : null, primary,
      make("div", { class: "choices" }, make("label", {}, game.isDemo || person() >= 0 ? "against " : "second ", select),
        side >= 0 ? button(["you are ", make("b", { class: `team-${side}` }, world.sides[side])], swap, { "aria-label": `you are ${world.sides[side]}; switch sides` }) : null,
        game.isDemo ? button("Watch", () => { game.seats = [main, rival.id]; begin(); }) : button(person() < 0 ? "Play yourself" : "Watch", watch),
        game.isOver ? button("Download replay", download) : null),
      game.isDemo ? make("p", { class: "hint for-keys" }, (world.keyLines || data.key_lines).map((line) => [line.replace(/ {3}/g, " \u00b7 "), make("br")])) : null,
      game.isDemo ? make("p", { class: "hint for-touch" }, world.touchHelp) : null]);
  }
  const rival = { id: main, side: 0 };
  function play() {
    game.seats = rival.side === 0 ? [YOU, rival.id] : [rival.id, YOU];
    begin();
  }
  function update() {
    const isMenu = game.isDemo || game.isPaused || game.isOver;
    menu.hidden = !isMenu;
    pauseDot.hidden = isMenu;
    if (isMenu) fillMenu();
    pauseButton.textContent = game.isPaused ? "Resume" : "Pause";
    pauseButton.disabled = game.isDemo || game.isOver;
    watchButton.textContent = person() < 0 && !game.isDemo ? "Play yourself" : "Watch";
    seatSelects.forEach((select, seat) => { select.value = game.isDemo ? (seat === rival.side ? YOU : rival.id) : game.seats[seat]; });
    const root = document.documentElement.dataset;
    root.state = game.isDemo ? "menu" : game.isOver ? "over" : game.isPaused ? "paused" : "playing";
    root.winner = game.isOver ? String(game.result.winner) : "";
    root.seed = game.seed;
    // Who still presses jump when a match ends does not mean the button.
    clearTimeout(game.focusing);
    game.focusing = setTimeout(() => { if (!menu.hidden && !menu.contains(document.activeElement)) menu.querySelector(".primary").focus({ preventScroll: true }); }, game.isOver ? 1200 : 0);
  }

  // --- what the agents think ---

  const readings = [0, 1].map((seat) => makeReading(world, data, seat));
  function showMinds(isShown) {
    minds.hidden = !isShown;
    mindsButton.setAttribute("aria-pressed", isShown);
    readings.forEach((reading) => reading.clear());
  }
  function drawMinds() {
    if (minds.hidden) return;
    const shown = [0, 1].filter((seat) => policies.has(game.seats[seat]));
    const elements = shown.map((seat) => readings[seat].draw(nameOf(game.seats[seat]), rate));
    if (elements.length !== minds.childElementCount || elements.some((each, k) => each !== minds.children[k])) {
      minds.replaceChildren(...(elements.length ? elements : [make("p", { class: "sub" }, "Scripted bots show nothing; choose an agent.")]));
    }
  }

  // --- the loop: steps at the world's rate, pictures as often as the screen shows them ---

  let last = performance.now(), drawnMinds = 0;
  function tick(now) {
    const elapsed = Math.min(Math.max(now - last, 0), 250) / 1000;
    last = now;
    if (input.readPad().started && !game.isDemo) setPaused(!game.isPaused);
    if (!game.isPaused && !game.isOver && engine && game.now) {
      if (game.hold > 0) { // something worth seeing: the match waits
        game.held += elapsed * game.speed;
        if (game.held >= game.hold) Object.assign(game, { hold: 0, held: 0, behind: 0, before: game.now, wait: person() < 0 ? 0 : 0.7 });
      } else if (game.wait > 0) game.wait -= elapsed;
      else {
        game.behind += elapsed * rate * game.speed;
        // A machine that is too slow plays slower: it never tries to catch up with more than it can do.
        for (const until = performance.now() + 40; game.behind >= 1 && !game.isOver && !game.isPaused && !game.hold; game.behind--) {
          if (performance.now() > until) { game.behind %= 1; break; }
          advance();
        }
      }
    }
    if (now - drawnMinds > 80) { drawnMinds = now; drawMinds(); }
    paint(elapsed);
    requestAnimationFrame(tick);
  }
  function paint(elapsed) {
    if (!game.now) return;
    // A machine that paints fewer than 40 pictures a second for a while gets coarser ones.
    screen.slow = elapsed > 0.025 ? screen.slow + 1 : Math.max(screen.slow - 2, 0);
    if (screen.slow > 60 && screen.ratio > 0.8) { screen.ratio *= 0.75; screen.slow = 0; }
    const { ratio } = screen, width = Math.max(canvas.clientWidth, 120), height = Math.max(canvas.clientHeight, 90);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d", { alpha: false });
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const share = game.isOver ? 1 : Math.min(game.behind, 1);
    world.paint(pen, {
      before: game.before, now: game.now, share, held: game.held, width, height, view: screen.view, names: game.seats.map(nameOf), live: data.live, rate,
      seat: Math.max(person(), 0), isWatching: person() < 0, elapsed: game.isPaused ? 0 : elapsed * game.speed, isCalm,
    });
    const said = game.wait > 0 ? (game.wait > 0.4 ? "Ready" : "Go!") : "";
    if (banner.textContent !== said) banner.textContent = said;
    save.disabled = game.isDemo || !game.steps;
    stage.dataset.step = game.steps;
  }

  // --- keys ---

  document.addEventListener("keydown", (event) => {
    const name = input.keyDown(event);
    if (!name) return;
    const isInGame = !game.isDemo && !game.isPaused && !game.isOver;
    if (isInGame && data.held.includes(name)) event.preventDefault(); // the page does not scroll while somebody plays
    if (event.repeat || game.isDemo) return;
    if (name === "p") setPaused(!game.isPaused);
    else if (name === "r") begin();
    else if (name === "c" && world.views) turnCamera();
  });
  document.addEventListener("keyup", (event) => input.keyUp(event));
  window.addEventListener("blur", () => input.release());
  document.addEventListener("visibilitychange", () => { if (document.hidden) setPaused(true); });
  const markTouch = () => document.documentElement.classList.add("touch");
  if (matchMedia("(pointer: coarse)").matches) markTouch();
  window.addEventListener("touchstart", markTouch, { passive: true, once: true });

  // --- start ---

  async function start() {
    engine = await LudusEngine.load(await unpacked(data.engine.wasm), data.engine.description);
    const opponent = wanted.get("against"), seed = Number(wanted.get("seed") || NaN), speed = Number(wanted.get("speed"));
    if (known.has(opponent)) rival.id = opponent;
    if (wanted.get("side") === "1") rival.side = 1;
    if (SPEEDS.includes(speed)) { game.speed = speed; speedSelect.value = speed; }
    const first = Number.isInteger(seed) && seed >= 0 && seed < MOST_SEED ? seed : undefined;
    if (wanted.has("watch")) game.seats = [main, rival.id];
    else if (wanted.has("play")) game.seats = rival.side === 0 ? [YOU, rival.id] : [rival.id, YOU];
    if (wanted.has("watch") || wanted.has("play")) await begin(first);
    else {
      game.seats = [main, data.players.find((player) => player.kind === "bot" && player.id === data.demo_bot) ? data.demo_bot : main];
      await begin(first, { demo: true });
      if (isCalm) { game.isPaused = true; update(); }
    }
    requestAnimationFrame(tick);
    document.documentElement.dataset.ready = "yes";
  }
  return start();
}

// Random numbers of a seat that depend on the seed alone: the same keys give the same match again (mulberry32).
function makeNoise(seed, seat) {
  let state = (Math.imul(seed, 2) + seat) | 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return { uniform, normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()) };
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function missingParts() {
  const needed = { WebAssembly: typeof WebAssembly, DecompressionStream: typeof DecompressionStream, CompressionStream: typeof CompressionStream };
  return Object.keys(needed).filter((name) => needed[name] === "undefined");
}

const lacking = missingParts();
if (lacking.length) {
  const text = `This browser has no ${lacking.join(", no ")}, which the game needs. Browsers since 2023 have it: update this one or try another.`;
  document.getElementById("page").append(make("p", { class: "card sorry", role: "alert" }, text));
  document.documentElement.dataset.ready = "no";
} else {
  const data = JSON.parse(document.getElementById("data").textContent);
  (LIVE[data.world].start || startPage)(data).catch((error) => {
    noteProblem(error.stack || error);
    document.getElementById("page").append(make("p", { class: "card sorry", role: "alert" }, `The game could not be started: ${error.message}`));
  });
}
