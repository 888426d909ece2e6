// Draws one moment of nudge: a groove from -5 to 5, and the marble in it.

PAINTERS.nudge = (pen, replay, at, width, height) => {
  const place = replay.columns.place[Math.min(Math.round(at), replay.frames - 1)];
  pen.fillStyle = "#20242c";
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#3a414d";
  pen.fillRect(width * 0.05, height * 0.5, width * 0.9, height * 0.1);
  pen.fillStyle = "#4c8dff";
  pen.beginPath();
  pen.arc(width * (0.5 + place * 0.09), height * 0.48, height * 0.06, 0, 2 * Math.PI);
  pen.fill();
};
