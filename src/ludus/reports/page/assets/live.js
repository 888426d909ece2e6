// The live page: a list of runs, and the sections of the page about those that are chosen, updated as the runs grow.

live.isOn = true;
const MOST_ROWS = 25; // of the list, until all are asked for
const MOST_CHOSEN = 12; // as the server has it
const MOST_MATCHES = 5; // to choose from
const STATUSES = ["running", "silent", "killed", "stopped", "finished"];

const state = {
  runs: new Map(), // summaries by id
  parts: {}, // of the document, as the server sends them
  chosen: [], // ids, in the order of choosing
  merged: false,
  filter: "",
  showsAll: false,
  matchOf: "", // id of the run whose matches are played
  matches: new Map(), // strips by run, the newest first
  source: null,
  version: null,
  folder: "",
  skew_s: 0, // the server's clock less ours
};

// The document as the report has it, of which not all parts are there yet.
function documentNow() {
  const { parts } = state, byName = new Map([...state.runs.values()].map((run) => [run.name, run]));
  const panels = (parts.panels || []).map((name) => parts[`panels/${name}`]).filter(Boolean);
  const runs = (parts.runs || []).map((run) => { // what a run that has not ended yet does not know of itself
    const known = byName.get(run.name) || {};
    const so_far_s = isNumber(known.started_s) && isNumber(known.written_s) ? known.written_s - known.started_s : null;
    return known.status === "running" ? { ...run, steps_per_s: known.steps_per_s, wall_s: (run.wall_s || 0) + so_far_s } : run;
  });
  return { settings: {}, notices: null, groups: [], evaluations: [], rewards: [], payoffs: [], times: [], latents: [], log: {}, ...parts, panels, runs };
}

// The page's skeleton.

const title = make("h1", {}, "Runs"), subtitle = make("p", { class: "sub" });
const connection = make("span", { class: "state link", role: "status" }, "connecting");
const goneNotes = make("div", { class: "gone-notes", "aria-live": "polite" });
const listBody = make("tbody", {});
const more = make("button", { type: "button", onclick: () => { state.showsAll = !state.showsAll; drawList(); } });
const filter = make("input", { type: "search", placeholder: "Filter by name, world or status", "aria-label": "filter runs",
  oninput: () => { state.filter = filter.value.toLowerCase(); drawList(); } });
const merged = make("input", { type: "checkbox", id: "merged", onchange: () => { state.merged = merged.checked; connect(); } });
const matchHolder = make("div", { class: "match" });
const sections = new Map(); // id -> {element, body, isVisible, isOld}
const links = make("div", { class: "links" });

function build() {
  const page = document.getElementById("page");
  const names = ["", "run", "status", "progress", "left", "steps/s", "best", "last", "world", "device", "written"];
  page.append(make("header", {}, make("div", { class: "title-row" }, make("p", { class: "mark" }, "LUDUS"), connection), title, subtitle),
    goneNotes,
    make("div", { class: "card list" }, make("div", { class: "list-bar" }, filter, more),
      make("table", { class: "rows runs" }, make("thead", {}, make("tr", {}, names.map((name) => make("th", { scope: "col" }, name)))), listBody)),
    make("nav", {}, links, controls(
      make("label", { title: "Runs that differ only in their seed become one line: the mean, with a band from the lowest to the highest" }, merged, " merge seeds"))));
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const section = sections.get(target.id);
      section.isVisible = isIntersecting;
      if (isIntersecting && section.isOld) drawSection(target.id);
    }
  }, { rootMargin: "400px 0px" });
  for (const [id, name, heading] of SECTIONS) {
    const body = make("div", { class: "body" });
    const element = make("section", { id }, make("h2", {}, heading), id === "now" ? make("div", { class: "now" }, matchHolder, body) : body);
    const link = make("a", { href: `#${id}` }, name);
    sections.set(id, { element, body, link, isVisible: false, isOld: false, isDrawn: false });
    links.append(link);
    page.append(element);
    watcher.observe(element);
  }
  // The hash of the address holds the choice: links inside the page must not replace it.
  links.addEventListener("click", (event) => {
    const wanted = event.target.closest("a");
    if (!wanted) return;
    event.preventDefault();
    for (const [id, section] of sections) if (section.isOld) drawSection(id); // or what lies above would grow on the way
    document.getElementById(wanted.hash.slice(1)).scrollIntoView();
  });
  page.append(make("footer", {}, "Made by ludus watch from the files of the runs. Bands reach over all that was merged into a point."));
}

// The list of runs.

const ago = (seconds) => (seconds < 60 ? "now" : `${duration(seconds)} ago`);
const rank = (run) => [STATUSES.indexOf(run.status) > 0 ? 1 : 0, -(run.started_s || 0), run.name];
function inOrder(a, b) {
  const left = rank(a), right = rank(b);
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

const rows = new Map(); // by id: the row and its cells
function rowOf(run) {
  if (rows.has(run.id)) return rows.get(run.id);
  const box = make("input", { type: "checkbox", "aria-label": `show ${run.name}`, onchange: () => choose(run.id, box.checked) });
  const cell = (name, ...children) => make("td", { class: name, "data-label": name }, children);
  const bar = make("i", {}), share = make("span", {}), status = make("span", {});
  const cells = Object.fromEntries(["left", "speed", "best", "last", "world", "device", "written"].map((name) => [name, cell(name)]));
  const row = make("tr", { "data-run": run.name },
    cell("pick", box), cell("name", make("i", { class: `swatch ${color(run.color)}` }),
      make("button", { type: "button", class: "plain-button", title: "Show this run alone", onclick: () => chooseOnly(run.id) }, run.name)),
    cell("status-cell", status), cell("progress", make("div", { class: "progress-bar" }, bar), share), Object.values(cells));
  const found = { row, box, bar, share, status, cells };
  rows.set(run.id, found);
  return found;
}
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

function drawRow(run) {
  const { row, box, bar, share, status, cells } = rowOf(run);
  const total = run.total_env_steps, done = total ? Math.min(run.env_steps / total, 1) : null;
  box.checked = state.chosen.includes(run.id);
  row.classList.toggle("chosen", box.checked);
  status.className = `state ${run.status}`;
  status.title = run.reason;
  put(status, run.status);
  bar.className = run.status;
  bar.style.width = `${100 * (done ?? 0)}%`;
  put(share, done === null ? shortNumber(run.env_steps) : `${percent(done)} of ${shortNumber(total, 3)}`);
  const since = isNumber(run.written_s) ? Date.now() / 1000 + state.skew_s - run.written_s : null;
  put(cells.left, isNumber(run.left_s) ? duration(run.left_s) : "");
  put(cells.speed, isNumber(run.steps_per_s) ? shortNumber(run.steps_per_s, 3) : "");
  put(cells.best, isNumber(run.best_score) ? shortNumber(run.best_score, 3) : "");
  put(cells.last, isNumber(run.last_score) ? shortNumber(run.last_score, 3) : "");
  put(cells.world, run.world);
  put(cells.device, run.device);
  put(cells.written, since === null ? "" : ago(since));
  for (const cell of Object.values(cells)) cell.classList.toggle("empty", !cell.textContent);
  return row;
}

const noRow = make("tr", {}, make("td", { colspan: 11, class: "missing" }));
function drawList() {
  const all = [...state.runs.values()].sort(inOrder);
  const words = state.filter.split(/\s+/).filter(Boolean);
  const fits = all.filter((run) => words.every((word) => `${run.name} ${run.world} ${run.status}`.toLowerCase().includes(word)));
  const shown = state.showsAll ? fits : fits.filter((run, place) => place < MOST_ROWS || state.chosen.includes(run.id));
  const wanted = shown.length ? shown.map(drawRow) : [noRow];
  put(noRow.firstChild, all.length ? "No run fits the filter." : "There is no run in this folder yet. It appears here as soon as one starts.");
  if (wanted.length !== listBody.children.length || wanted.some((row, place) => listBody.children[place] !== row)) listBody.replaceChildren(...wanted);
  for (const id of rows.keys()) if (!state.runs.has(id)) rows.delete(id);
  more.hidden = fits.length <= MOST_ROWS;
  put(more, state.showsAll ? "Show fewer" : `Show all ${fits.length}`);
  const count = (status) => all.filter((run) => run.status === status).length;
  put(subtitle, [state.folder, `${all.length} ${all.length === 1 ? "run" : "runs"}`, ...STATUSES.filter(count).map((status) => `${count(status)} ${status}`)].join(", "));
  const running = count("running");
  document.title = `${running ? `(${running}) ` : ""}Ludus`;
}

// Choosing runs; the choice is in the hash of the address, so that a reload or a bookmark shows the same.

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.chosen = (given.get("runs") || "").split(",").filter(Boolean).slice(0, MOST_CHOSEN);
  state.merged = merged.checked = given.get("merged") === "1";
}
function writeAddress() {
  const given = new URLSearchParams();
  if (state.chosen.length) given.set("runs", state.chosen.join(","));
  if (state.merged) given.set("merged", "1");
  history.replaceState(null, "", `#${given.toString().replaceAll("%2C", ",")}`);
}
function choose(id, isChosen) {
  state.chosen = state.chosen.filter((each) => each !== id);
  if (isChosen) state.chosen = [...state.chosen, id].slice(-MOST_CHOSEN);
  connect();
}
function chooseOnly(id) {
  state.chosen = [id];
  state.matchOf = id;
  connect();
}
// What a visitor most likely wants to see: what is running, else the newest run.
function chooseFirst() {
  const all = [...state.runs.values()].sort(inOrder);
  const running = all.filter((run) => run.status === "running").slice(0, 4);
  state.chosen = (running.length ? running : all.slice(0, 1)).map((run) => run.id);
  if (state.chosen.length) connect();
}

// The stream of changes.

function connect() {
  writeAddress();
  if (!state.chosen.includes(state.matchOf)) {
    state.matchOf = state.chosen.find((id) => (state.runs.get(id) || {}).status === "running") || state.chosen[0] || "";
  }
  if (state.source) state.source.close();
  const query = new URLSearchParams({ runs: state.chosen.join(","), merged: state.merged ? "1" : "0", match: state.matchOf });
  const source = state.source = new EventSource(`/events?${query}`);
  const on = (name, listener) => source.addEventListener(name, (event) => {
    if (source === state.source) listener(JSON.parse(event.data));
  });
  let isFirst = true;
  on("hello", (hello) => {
    if (state.version && state.version !== hello.version) location.reload(); // the server is a newer one
    state.version = hello.version;
    state.skew_s = hello.now_s - Date.now() / 1000;
    put(title, hello.folder.split(/[\\/]/).filter(Boolean).at(-1) || hello.folder);
    state.folder = hello.folder;
    setConnection("live");
    isFirst = true;
  });
  on("runs", (news) => {
    if (news.all) state.runs.clear();
    for (const run of news.runs) state.runs.set(run.id, run);
    for (const id of news.lost) state.runs.delete(id);
    const there = state.chosen.filter((id) => state.runs.has(id));
    if (news.gone.length || goneNotes.children.length) drawGone(news.gone);
    drawList();
    if (!there.length && state.runs.size) { chooseFirst(); return; }
    if (there.length !== state.chosen.length) { state.chosen = there; connect(); }
    drawMatch();
  });
  on("document", (news) => {
    if (isFirst) { state.parts = {}; isFirst = false; }
    for (const name of news.lost) delete state.parts[name];
    Object.assign(state.parts, news.parts);
    const changed = new Set(Object.keys(news.parts).concat(news.lost).map((name) => name.split("/")[0]));
    for (const [id, , , build, needs] of SECTIONS) if (changed.has("groups") || needs.some((part) => changed.has(part))) markOld(id);
    document.documentElement.dataset.ready = "yes";
  });
  on("match", (news) => loadMatch(news.run));
  source.addEventListener("error", () => {
    if (source !== state.source) return;
    setConnection("no connection");
    // A browser tries again by itself, except after a refusal.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (source === state.source) connect(); }, 2000);
  });
}
function setConnection(text) {
  put(connection, text);
  connection.className = `state link ${text === "live" ? "finished" : "killed"}`;
}
function drawGone(names) {
  goneNotes.replaceChildren(...names.slice(-5).map((name) => make("p", { class: "card missing" }, `${name} is gone: its folder was deleted or moved.`)));
}
// A page that nobody sees costs nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { state.source.close(); setConnection("paused"); } else connect();
});

// Sections.

function markOld(id) {
  const section = sections.get(id);
  section.isOld = true;
  if (section.isVisible || section.element.hidden || !section.isDrawn) drawSection(id); // the others when they are seen
}

function drawSection(id) {
  const section = sections.get(id), { element, body } = section;
  const [, , , build] = SECTIONS.find(([each]) => each === id);
  const active = document.activeElement;
  if (active && body.contains(active) && active.tagName === "SELECT") return; // its list may be open
  section.isOld = false;
  section.isDrawn = true;
  const opened = new Map([...body.querySelectorAll("details")].map((each) => [each.querySelector("summary").firstChild.textContent, each.open]));
  const places = [...body.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop, each.scrollHeight - each.clientHeight - each.scrollTop < 8]);
  let content;
  try {
    content = drawIn(id, () => build(documentNow()));
  } catch (error) { // the rest of the page is worth reading without it
    noteProblem(`${id}: ${error.stack || error}`);
    content = missing(`This section could not be drawn: ${error.message}`);
  }
  const isEmpty = content === null;
  element.hidden = section.link.hidden = isEmpty;
  const height = body.offsetHeight;
  body.style.minHeight = `${height}px`; // or the page would jump while its content is exchanged
  body.replaceChildren(...[content].flat(Infinity).filter(Boolean));
  body.style.minHeight = "";
  settle(id);
  for (const each of body.querySelectorAll("details")) {
    const wasOpen = opened.get(each.querySelector("summary").firstChild.textContent);
    if (wasOpen !== undefined) each.open = wasOpen;
  }
  body.querySelectorAll(".scroll, pre").forEach((each, place) => {
    const [left, top, isAtEnd] = places[place] || [0, 0, true];
    each.scrollLeft = left;
    each.scrollTop = each.tagName === "PRE" && isAtEnd ? each.scrollHeight : top;
  });
  if (active && active !== document.activeElement && body.contains(active)) active.focus({ preventScroll: true });
}

// The newest match.

const painters = new Map(); // by world: when its script is loaded
function loadPainter(world) {
  if (!painters.has(world)) {
    painters.set(world, new Promise((done, failed) => {
      const script = make("script", { src: `/painter.js?${new URLSearchParams({ world })}`, onload: done, onerror: () => failed(new Error(`no script draws ${world}`)) });
      document.head.append(script);
    }));
  }
  return painters.get(world);
}

async function loadMatch(run) {
  const answer = await fetch(`/match?${new URLSearchParams({ run })}`);
  if (!answer.ok) return;
  const content = await answer.json(), known = state.matches.get(run) || { strips: [], note: "", key: "" };
  if (content.key === known.key) return; // it was told again after the connection was lost
  known.key = content.key;
  if (content.strip) {
    await loadPainter(content.strip.world);
    state.matches.set(run, { ...known, strips: [content.strip, ...known.strips].slice(0, MOST_MATCHES), note: "", isNew: true });
  } else state.matches.set(run, { ...known, note: content.error });
  drawMatch();
}

let matchDrawn = null; // what the section shows
function drawMatch() {
  const found = state.matches.get(state.matchOf);
  const names = state.chosen.map((id) => state.runs.get(id)).filter(Boolean);
  const shows = JSON.stringify([state.matchOf, names.map((run) => run.id), found ? [found.strips.map((strip) => strip.title), found.note] : null]);
  if (shows === matchDrawn) return;
  matchDrawn = shows;
  const choice = names.length > 1 && make("div", { class: "choices" }, make("label", {}, "run ", make("select", {
    "aria-label": "run of the match", onchange: (event) => { state.matchOf = event.target.value; connect(); drawMatch(); },
  }, names.map((run) => make("option", { value: run.id, selected: run.id === state.matchOf }, run.name)))));
  const parts = [choice || null];
  if (!found) parts.push(missing(names.length ? "The newest agent is playing a match; it is shown as soon as it is over." : "No run is chosen."));
  else {
    if (found.note) parts.push(missing(`No newer match: ${found.note}`));
    if (found.strips.length) {
      const player = replayPlayer(found.strips);
      parts.push(player);
      if (found.isNew && !matchMedia("(prefers-reduced-motion: reduce)").matches) playWhenSeen(player);
      found.isNew = false;
    }
  }
  matchHolder.replaceChildren(...parts.filter(Boolean));
  matchHolder.parentElement.classList.toggle("without", !found || !found.strips.length);
}
// Once, and not before somebody sees it: drawing takes time that the training could use.
function playWhenSeen(player) {
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    player.querySelector(".play").click();
  });
  watcher.observe(player);
}

readAddress();
build();
connect();
setInterval(() => { if (!document.hidden) drawList(); }, 10_000); // the times since the last line
