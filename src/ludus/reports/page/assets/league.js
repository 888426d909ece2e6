// The page of a league: its learners, the rating of every member over env steps, and who beats whom.

function leagueTiles(data) {
  const count = (state) => data.learners.filter((learner) => learner.state === state).length;
  const best = data.members.reduce((found, member) => (!found || member.rating > found.rating ? member : found), null);
  return make("div", { class: "tiles" },
    tile("Members", wholeNumber(data.members.length), best ? `best: ${best.name}, ${wholeNumber(best.rating)}` : ""),
    tile("Matches", wholeNumber(data.matches), "each counted once"),
    tile("Learners", data.learners.length, `${count("running")} running, ${count("finished")} finished`),
    tile("Evaluators", data.evaluators, ""),
    tile("Wall time", duration(data.wall_s), data.state));
}

function learnersSection(data) {
  const rows = data.learners.map((learner) => make("tr", {}, make("td", {}, learner.name), make("td", {}, readable(learner.role)),
    make("td", {}, make("span", { class: `state ${learner.state === "failed" ? "not-ended" : learner.state}` }, learner.state)),
    make("td", { class: "number" }, learner.generation), make("td", { class: "number" }, wholeNumber(learner.earlier_env_steps + learner.env_steps)),
    make("td", { class: "number" }, learner.replaced), make("td", {}, learner.reason)));
  const header = ["learner", "role", "state", "generation", "env steps", "processes replaced", "note"];
  return [leagueTiles(data), tableOf(header, rows)];
}

function ratingsSection(data) {
  const learners = [...new Set(data.members.map((member) => member.learner))];
  if (!learners.length) return missing("No snapshot has joined the league yet.");
  const series = learners.map((label, index) => {
    const members = data.members.filter((member) => member.learner === label).sort((one, two) => one.env_steps - two.env_steps);
    return { label, cls: color(index), x: members.map((member) => member.env_steps), y: members.map((member) => member.rating) };
  });
  return grid(lineChart({ name: "ratings", title: "Ratings", big: true, series,
    note: "Bradley-Terry over all matches between members, by the env steps that each had learned from; the mean of all members is 0" }));
}

function payoffsSection(data) {
  const { names, table } = data.payoffs;
  if (names.length < 2) return missing("Fewer than two members have joined the league.");
  const cell = (counts, row, column) => {
    const matches = counts ? counts[0] + counts[1] + counts[2] : 0;
    if (!matches) return null;
    const share = (counts[0] + counts[1] / 2) / matches;
    return { share, title: `${names[row]} against ${names[column]}: ${percent(share)} of ${wholeNumber(matches)} matches` };
  };
  return grid(heatMap({ title: "Payoffs", columns: names.map((_, index) => index + 1),
    note: `Share of points of the row against the column, in percent, draws as half a point${names.length < data.members.length ? `; the best ${names.length} of ${data.members.length} members` : ""}`,
    rows: names.map((name, row) => ({ label: `${row + 1} ${name}`, cells: table[row].map((counts, column) => cell(counts, row, column)) })) }));
}

const LEAGUE_SECTIONS = [
  ["learners", "Learners", "Learners", learnersSection],
  ["ratings", "Ratings", "Ratings of all members", ratingsSection],
  ["payoffs", "Payoffs", "Who beats whom", payoffsSection],
];

startPage((data) => ({ title: data.name, sections: LEAGUE_SECTIONS, smoothing: 0, // every point is a member of its own
  subtitle: `League of ${data.world}: ${data.state}${data.reason ? `: ${data.reason}` : ""}; ${data.made}`,
  footer: "Made by ludus league. All matches are in payoffs.jsonl; every learner is made of run folders, for which ludus report draws a page." }));
