// Plays replays on a canvas: play and pause, a slider, speed, single frames; keys do the same.

// Turns differences back into numbers, once, when a replay is first shown.
function decoded(strip) {
  const columns = {};
  for (const [name, steps] of Object.entries(strip.columns)) {
    let sum = 0;
    columns[name] = steps.map((step) => (sum += step));
  }
  const changes = Object.keys(strip.items || {}).map(Number).sort((a, b) => a - b);
  const lying = (frame) => {
    let known = [];
    for (const change of changes) { if (change > frame) break; known = strip.items[change]; }
    return known;
  };
  return { ...strip, columns, lying, frames: Object.values(columns)[0].length };
}

function replayPlayer(strips) {
  const ready = new Map();
  const state = { index: 0, frame: 0, speed: 1, isPlaying: false, last: 0 };
  const canvas = make("canvas", { tabindex: 0, "aria-label": "replay; space plays, arrow keys step" });
  const button = make("button", { type: "button", class: "play", "aria-label": "play or pause" }, "Play");
  const slider = make("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "frame" });
  const clock = make("span", { class: "clock" });
  const result = make("p", { class: "result" });
  const speeds = make("select", { "aria-label": "speed" }, [0.25, 0.5, 1, 2, 4, 8].map((speed) => make("option", { value: speed, selected: speed === 1 }, `${speed}x`)));
  const choices = make("div", { class: "legend" }, strips.map((strip, index) => make("button", {
    type: "button", class: "key", "aria-pressed": index === 0, onclick: () => choose(index, true),
  }, strip.title)));
  const figure = make("figure", { class: "card replay wide", "data-chart": "replays" }, strips.length > 1 ? choices : null, canvas,
    make("div", { class: "controls" }, button, slider, clock, speeds), result);
  const current = () => {
    if (!ready.has(state.index)) ready.set(state.index, decoded(strips[state.index]));
    return ready.get(state.index);
  };

  function paint() {
    const replay = current(), ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(canvas.clientWidth, 200), height = Math.round((width * 9) / 16);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    PAINTERS[replay.world](pen, replay, state.frame, width, height);
    const last = replay.frames - 1;
    slider.max = last;
    slider.value = Math.round(state.frame);
    clock.textContent = `${(state.frame / replay.rate_hz).toFixed(1)} of ${(last / replay.rate_hz).toFixed(1)} s`;
    figure.dataset.frame = Math.round(state.frame);
  }
  function setPlaying(isPlaying) {
    state.isPlaying = isPlaying;
    button.textContent = isPlaying ? "Pause" : "Play";
    figure.dataset.playing = isPlaying;
    state.last = performance.now();
    if (isPlaying) requestAnimationFrame(tick);
  }
  function tick(now) {
    if (!state.isPlaying) return;
    const replay = current(), last = replay.frames - 1;
    state.frame = Math.min(last, state.frame + (Math.min(Math.max(now - state.last, 0), 250) / 1000) * replay.rate_hz * state.speed);
    state.last = now;
    if (state.frame >= last) setPlaying(false);
    paint();
    if (state.isPlaying) requestAnimationFrame(tick);
  }
  function toggle() {
    if (!state.isPlaying && state.frame >= current().frames - 1) state.frame = 0;
    setPlaying(!state.isPlaying);
    paint();
  }
  function goTo(frame) {
    setPlaying(false);
    state.frame = Math.min(Math.max(frame, 0), current().frames - 1);
    paint();
  }
  function choose(index, plays) {
    state.index = index;
    state.frame = 0;
    [...choices.children].forEach((each, place) => each.setAttribute("aria-pressed", place === index));
    result.textContent = `${strips[index].title}: ${strips[index].result}`;
    setPlaying(false);
    paint();
    if (plays) toggle();
  }
  button.addEventListener("click", toggle);
  canvas.addEventListener("click", toggle);
  slider.addEventListener("input", () => goTo(Number(slider.value)));
  speeds.addEventListener("change", () => { state.speed = Number(speeds.value); });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
    if (event.key === " ") toggle();
    else if (steps) goTo(Math.round(state.frame) + steps);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(paint).observe(canvas);
  choose(0, false);
  const linked = /^#replay-(\d+)$/.exec(location.hash); // a link may name a replay, which then plays at once
  if (linked && strips[Number(linked[1]) - 1]) choose(Number(linked[1]) - 1, true);
  return figure;
}
