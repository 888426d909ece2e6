// Draws one moment of a walker as a stick figure from the side, with the one that it imitates behind it.

function drawWalker(pen, replay, at, width, height) {
  const i = Math.floor(at), next = Math.min(i + 1, replay.frames - 1), blend = at - i, scale = replay.scale;
  const value = (name) => (replay.columns[name][i] * (1 - blend) + replay.columns[name][next] * blend) / scale;
  const unit = (height * 0.66) / (replay.height / scale), ground = height * 0.84;
  const middle = value("hip_x");
  const toX = (x) => width / 2 + (x - middle) * unit, toY = (z) => ground - z * unit;
  const sky = pen.createLinearGradient(0, 0, 0, ground);
  sky.addColorStop(0, "#bcd2e8"); sky.addColorStop(1, "#eef3f7");
  pen.fillStyle = sky; pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#9eaaa8"; pen.fillRect(0, ground, width, height - ground);
  pen.fillStyle = "#5c6664"; pen.strokeStyle = "#7d8987"; pen.textAlign = "center"; pen.textBaseline = "alphabetic";
  pen.font = `${Math.max(10, height / 32)}px system-ui, sans-serif`; pen.lineWidth = 1.5;
  for (let mark = Math.floor(middle - width / unit); mark <= middle + width / unit; mark++) {
    pen.beginPath(); pen.moveTo(toX(mark), ground); pen.lineTo(toX(mark), ground + height * 0.03); pen.stroke();
    pen.fillText(`${mark} m`, toX(mark), ground + height * 0.09);
  }
  const figure = (who, colors, thickness) => {
    const point = (name) => [toX(value(`${who}${name}_x`)), toY(value(`${who}${name}_z`))];
    const limb = (names, hue, size) => {
      pen.strokeStyle = hue; pen.lineWidth = size * unit; pen.lineCap = pen.lineJoin = "round"; pen.beginPath();
      names.map(point).forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.stroke();
    };
    for (const [side, hue] of [["left", colors[0]], ["right", colors[1]]]) {
      limb([`${side}_thigh`, `${side}_knee`, `${side}_ankle`], hue, thickness);
      limb([`${side}_heel`, `${side}_ball`], hue, thickness * 0.8);
      limb([`${side}_ankle`, `${side}_heel`], hue, thickness * 0.6);
      limb([`${side}_ankle`, `${side}_ball`], hue, thickness * 0.6);
    }
    limb(["hip", "neck"], colors[2], thickness * 1.7);
    const [x, y] = point("head");
    pen.fillStyle = colors[3]; pen.beginPath(); pen.arc(x, y, 0.11 * unit, 0, 7); pen.fill();
  };
  pen.globalAlpha = 0.28;
  figure("ghost_", ["#3a4250", "#3a4250", "#3a4250", "#3a4250"], 0.07);
  pen.globalAlpha = 1;
  figure("", ["#7a3d30", "#e8553a", "#29859f", "#e0a984"], 0.09);
  const before = Math.max(i - 6, 0);
  const speed = i > before ? ((replay.columns.hip_x[i] - replay.columns.hip_x[before]) / scale) * (replay.rate_hz / (i - before)) : 0;
  const size = Math.max(width / 62, 7);
  pen.fillStyle = "rgba(22,26,34,0.72)"; pen.fillRect(size * 0.7, size * 0.6, size * 15.5, size * 5);
  pen.font = `600 ${size * 1.15}px system-ui, sans-serif`;
  [["speed", `${speed.toFixed(2)} m/s`], ["asked for", `${value("desired").toFixed(2)} m/s`], ["time", `${(at / replay.rate_hz).toFixed(1)} s`]]
    .forEach(([name, text], k) => {
      pen.textAlign = "left"; pen.fillStyle = "#bcc4d0"; pen.fillText(name, size * 1.5, size * (2 + 1.5 * k));
      pen.textAlign = "right"; pen.fillStyle = "#fafaf8"; pen.fillText(text, size * 15.4, size * (2 + 1.5 * k));
    });
}

PAINTERS.mimic = drawWalker;
