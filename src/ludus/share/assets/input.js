// What a person holds: keys of the keyboard, a stick and buttons on the screen, a gamepad. Everything becomes names of keys,
// those of `ludus play`, so that a world reads one kind of input.

const KEY_CODES = {
  Space: "space", ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", ShiftLeft: "left shift",
  ShiftRight: "right shift",
};
const keyName = (code) => KEY_CODES[code] || (/^Key[A-Z]$/.test(code) ? code.slice(3).toLowerCase() : null);
const STICK_EDGE = 0.38; // of the way out; nearer to the middle nothing is held
const isTyping = (target) => target instanceof HTMLInputElement || target instanceof HTMLSelectElement;

// `bindings` of a world: stick (names of the keys up, down, left, right), buttons (label, key), pad (button number: key).
// `onTap` is told the name of a key that a button on the screen or a gamepad has just pressed.
function makeInput(bindings, onTap) {
  const held = new Set(), tapped = new Set(), touched = new Map(), axes = { touch: [0, 0], pad: [0, 0] };
  let padBefore = new Set();

  const press = (name) => { held.add(name); tapped.add(name); };
  const directions = ([x, y]) => {
    const found = [];
    if (x < -STICK_EDGE) found.push(bindings.stick.left);
    if (x > STICK_EDGE) found.push(bindings.stick.right);
    if (y < -STICK_EDGE) found.push(bindings.stick.up);
    if (y > STICK_EDGE) found.push(bindings.stick.down);
    return found;
  };

  // A page inside another one may have no gamepads: then the browser throws.
  function connectedPads() {
    try { return [...(navigator.getGamepads ? navigator.getGamepads() : [])].filter((each) => each && each.connected); }
    catch { return []; }
  }

  // Keys of a gamepad with the standard mapping, and whether Start has just been pressed.
  function readPad() {
    const pad = connectedPads().find((each) => each.mapping === "standard");
    if (!pad) { axes.pad = [0, 0]; padBefore = new Set(); return { names: [], started: false, isThere: false }; }
    const down = (number) => pad.buttons[number] && (pad.buttons[number].pressed || pad.buttons[number].value > 0.35);
    const cross = [Number(down(15)) - Number(down(14)), Number(down(13)) - Number(down(12))];
    axes.pad = cross[0] || cross[1] ? cross : [pad.axes[0] || 0, pad.axes[1] || 0];
    const names = [...directions(axes.pad), ...Object.entries(bindings.pad).filter(([number]) => down(Number(number))).map(([, name]) => name)];
    const now = new Set(pad.buttons.map((_, number) => number).filter(down)), started = now.has(9) && !padBefore.has(9);
    for (const number of now) if (!padBefore.has(number) && bindings.pad[number]) onTap(bindings.pad[number]);
    padBefore = now;
    return { names, started, isThere: true };
  }

  return {
    keyDown(event) {
      const name = keyName(event.code);
      if (!name || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return null;
      if (!event.repeat) press(name);
      return name;
    },
    keyUp(event) { held.delete(keyName(event.code)); },
    release() { held.clear(); tapped.clear(); touched.clear(); axes.touch = [0, 0]; },
    touch(name, isDown) {
      touched.set(name, isDown);
      if (isDown) { tapped.add(name); onTap(name); }
    },
    moveStick(x, y) { axes.touch = [x, y]; },
    readPad,
    // Names of everything held now, and of what was pressed since the last call; the stick, -1 to 1 right and down; and
    // whether somebody plays with a stick at all.
    take() {
      const pad = readPad(), names = new Set([...held, ...tapped, ...directions(axes.touch), ...pad.names]);
      for (const [name, isDown] of touched) if (isDown) names.add(name);
      tapped.clear();
      const stick = Math.hypot(...axes.touch) > 0 ? axes.touch : axes.pad;
      return { held: names, stick, hasStick: pad.isThere || touched.size > 0 };
    },
  };
}

// The stick and the buttons on the screen; any number of fingers at once.
function touchControls(bindings, input) {
  const knob = make("i", { class: "knob" }), stick = make("div", { class: "stick", role: "group", "aria-label": "stick: move" }, knob);
  let finger = null;
  const move = (event) => {
    const box = stick.getBoundingClientRect(), radius = box.width / 2;
    let x = (event.clientX - box.left - radius) / radius, y = (event.clientY - box.top - radius) / radius;
    const length = Math.hypot(x, y);
    if (length > 1) { x /= length; y /= length; }
    knob.style.transform = `translate(${x * radius * 0.55}px, ${y * radius * 0.55}px)`;
    input.moveStick(x, y);
  };
  const end = (event) => {
    if (event.pointerId !== finger) return;
    finger = null;
    knob.style.transform = "";
    input.moveStick(0, 0);
  };
  stick.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    finger = event.pointerId;
    stick.setPointerCapture(finger);
    move(event);
  });
  stick.addEventListener("pointermove", (event) => { if (event.pointerId === finger) move(event); });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) stick.addEventListener(name, end);
  const buttons = bindings.buttons.map(({ label, key, size }) => {
    const button = make("button", { type: "button", class: `pad-button ${size || ""}`, "data-key": key, tabindex: -1 }, label);
    button.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      button.setPointerCapture(event.pointerId);
      button.classList.add("down");
      input.touch(key, true);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
      button.addEventListener(name, () => { button.classList.remove("down"); input.touch(key, false); });
    }
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    return button;
  });
  return { stick: make("div", { class: "touch-left" }, stick), buttons: make("div", { class: "touch-right" }, buttons) };
}
