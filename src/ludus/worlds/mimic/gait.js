// The page of `ludus mimic gait`: numbers, joint angles over the gait cycle against published bands, and pushes.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent), page = document.getElementById("page");
  const SIDES = [["right", "c0"], ["left", "c1"]];
  const value = (number, digits = 3) => (isNumber(number) ? shortNumber(number, digits) : "n/a");
  const table = (head, rows) => make("div", { class: "card" }, make("table", { class: "rows" }, make("thead", {}, make("tr", {}, head.map((name) => make("th", {}, name)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, k) => make(k ? "td" : "th", {}, cell)))))));
  const band = ({ mean, deviation }) => ({ y: mean, low: mean.map((each, k) => each - deviation[k]), high: mean.map((each, k) => each + deviation[k]) });

  function numbers() {
    return [table(["number", "mean", "unit", "usual in people"], Object.entries(data.numbers).map(([name, each]) => [readable(name.replace(/_(m_s|steps_min|mm|m|s)$/, "")), value(each.value), each.unit, each.usual || ""])),
      make("p", { class: "sub" }, "Usual values: Perry and Burnfield 2010, at 1.37 m/s; clearance of the toes: Winter 1992. Asymmetry is the difference of right and left over their mean. Cost of transport counts the work of all joints, whatever its sign.")];
  }
  function cycle() {
    const charts = Object.entries(data.norms).map(([kind, norm]) => lineChart({
      name: kind, title: data.titles[kind], unit: "degrees", xUnit: "% of the stride", note: `Line and band: mean and deviation over strides. People: ${data.norm_source}.`,
      series: [{ label: "people", cls: "plain", x: data.percent, ...band(norm) }, ...SIDES.filter(([side]) => data.curves[`${side}_${kind}`]).map(([side, cls]) => ({ label: side, cls, x: data.percent, ...band(data.curves[`${side}_${kind}`]) }))],
    }));
    const all = [...Object.entries(data.distances), ...Object.entries(data.reference.distances).map(([kind, each]) => [`reference ${kind}`, each])];
    const rows = all.map(([joint, each]) => [readable(joint), value(each.rms_deg), value(each.rms_deviations), percent(each.share_within), percent(each.share_within_two), value(each.lag_percent), value(each.rms_without_lag_deg)]);
    return [grid(charts), table(["joint", "distance from the mean of people, degrees", "in deviations", "within one", "within two", "later by % of the stride", "distance without that, degrees"], rows),
      make("p", { class: "sub" }, `Reference is what the agent imitates; its heel is ${value(data.reference.heel_mm)} mm over the ground at the phase of its contact. Curves are early where feet strike late.`)];
  }
  function symmetry() {
    return [table(["joint", "difference of both sides, degrees", "correlation"], Object.entries(data.symmetry).map(([kind, each]) => [data.titles[kind], value(each && each.difference_deg), value(each && each.correlation, 4)])),
      make("p", { class: "sub" }, "Over strides of the right foot; the curve of the left side is moved by half a stride. The difference is a root mean square.")];
  }
  function pushes() {
    if (!data.recovery.length) return missing("No walk was pushed; run again without --no-pushes.");
    const part = (each, name) => each.survived.map((share) => share && share[name]);
    const chart = lineChart({ name: "recovery", title: "Walks that survive a push", xUnit: "N s", format: percent, range: [0, 1], big: true,
      note: `One push at the hips in a walk; survived if on its feet ${data.after_s} s later. Bands: 95 % intervals.`,
      series: data.recovery.map((each, k) => ({ label: each.direction, cls: `c${k}`, x: each.impulses_ns, y: part(each, "estimate"), low: part(each, "low"), high: part(each, "high") })) });
    const head = ["pushed", ...data.recovery[0].impulses_ns.map((impulse) => `${impulse} N s`), "half survive"];
    return [chart, table(head, data.recovery.map((each) => [each.direction, ...each.survived.map((share, k) => (share ? `${percent(share.estimate)} of ${each.walks[k]}` : "n/a")), isNumber(each.half_ns) ? `${value(each.half_ns)} N s` : "n/a"]))];
  }

  const PARTS = [["numbers", "Numbers", "Steps and strides", numbers], ["cycle", "Gait cycle", "Joint angles over the gait cycle", cycle], ["symmetry", "Symmetry", "Left and right", symmetry], ["pushes", "Pushes", "Recovery from pushes", pushes]];
  options.smoothing = 0; // curves are means already
  const speed = isNumber(data.desired_speed_m_s) ? `at ${data.desired_speed_m_s} m/s` : "at the speeds of training", links = make("div", { class: "links" });
  page.append(make("header", {}, make("p", { class: "mark" }, "LUDUS"), make("h1", {}, data.agent), make("p", { class: "sub" }, `Gait in ${data.world}: ${data.walks} walks ${speed}, ${data.fallen} ended in a fall, ${data.made}`)), make("nav", {}, links));
  appendSections(page, links, PARTS, data);
  page.append(make("footer", {}, `Made by ludus mimic gait in ${duration(data.seconds)}. All numbers are in gait.json.`));
  redrawAll();
  document.documentElement.dataset.ready = "yes";
})();
