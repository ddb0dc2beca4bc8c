"use strict";
// The page of one run.
window.driver.run(async (result, { Hand, text, key, type, press, cells, shown, later, switch: toggle }) => {
  const page = window.timeline, { state, panels: [panel], runs: [run] } = page, hand = new Hand(panel.canvas);
  const paint = () => page.paint(), red = (r, g, b) => r > 200 && g < 30 && b < 30;
  const count = test => { paint(); return hand.pixels(test); };
  result.lanes = run.lanes.map(lane => lane.name);
  result.runs = run.lanes.map(lane => lane.tasks?.length ?? 0);
  result.coloured = count((r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 60);
  result.red = count(red);
  toggle("chain");
  result.red_without_chain = count(red);
  toggle("chain");
  result.table = cells();
  result.kernels = page.side.kernels.rows().map(({ kernel, runs: [row] }) => ({ kernel, runs: row.runs, total: row.total, median: row.median, max: row.max }));

  // The last task of the first core lane that has one.
  const index = run.lanes.findIndex(lane => lane.tasks?.length), slot = run.lanes[index].tasks.at(-1);
  const middle = [(panel.x(run.startOf(slot)) + panel.x(run.endOf(slot))) / 2, panel.y(index) + 4];
  hand.pointer("pointermove", ...middle);
  result.tip = document.getElementById("tip").hidden ? "hidden" : text("tip");
  hand.click(...middle);
  paint();
  result.selected = text("selected");

  // A place of the axis, where no task is.
  hand.click(panel.x(run.end * 0.65), 5);
  paint();
  result.clicked_moment = text("moment-title") + text("moment");
  result.moments = Object.fromEntries([5, 15, 70, 125, 140].map(at => [at, page.idle(0, at)]));
  result.counters = Object.fromEntries(panel.counters.map(counter => [counter.name, [5, 15, 70, 125, 140, 205].map(at => counter.at(at))]));
  // Where each counter changes, and its values.
  result.steps = Object.fromEntries(panel.counters.map(({ name, times, values }) => [
    name, times.map((at, i) => [at, values[i]]).filter(([, value], i) => value !== (values[i - 1] ?? 0)),
  ]));
  const green = (r, g, b) => r < 60 && g > 110 && b < 90;
  result.green = count(green);
  toggle("counters");
  result.green_without_counters = count(green);
  toggle("counters");

  // Idle lanes are one line below the others, until a click on it; the key opens it again. A lane is found where it is drawn.
  const lines = () => { paint(); return panel.lines.map(line => panel.called(line)); };
  const last = () => hand.click(panel.left + 40, panel.yOf(panel.lines.length - 1) + 4);
  result.lines = [lines()];
  last();
  result.lines.push(lines());
  key("i");
  result.lines.push(lines());
  const used = run.lanes.map((lane, at) => [lane, at]).filter(([lane]) => run.isUsed(lane));
  result.used = used.map(([lane]) => lane.name);
  result.rows = used.map(([, at]) => (panel.y(at) - panel.head + panel.top) / panel.laneHeight);
  result.found = used.map(([, at]) => run.lanes[panel.laneAt(panel.y(at) + 3)].name);

  // At the right edge, at the top and at the bottom of the lanes: where all of them can be seen, and where they cannot.
  const edge = bottom => [2, bottom].map(y => hand.pixel(panel.width - 3, panel.head + y).reduce((a, b) => a + b));
  paint();
  result.edge = edge(panel.laneHeight - 6);
  [panel.height, panel.laneHeight] = [panel.head + 40, 22];
  panel.paint();
  result.edge_with_bar = edge(38);
  page.resize();

  // A range: with the axis, and with Shift on the lanes.
  // In 210ths of the run: the traces made by hand have so many nanoseconds.
  const at = part => panel.x(run.end * part / 210);
  hand.drag(at(20), at(70), 8);
  paint();
  result.ranged = { range: state.range.map(Math.round), title: text("kernels-title"), cells: cells(), text: text("kernels"), note: shown(paint) };
  key("Escape");
  paint();
  result.cleared = [state.range, text("kernels-title")];
  hand.drag(at(100), at(160), panel.y(index) + 2, { shiftKey: true });
  result.shifted = state.range.map(Math.round);
  key("z");
  result.zoomed_to_range = [state.from, state.to].map(Math.round);
  await later(400);
  result.address = location.hash;
  key("Escape");
  key("0");
  const sorted = column => {
    document.querySelectorAll("table.kernels th .link")[column].click();
    paint();
    return cells().slice(1).map(row => row[0]);
  };
  // By name, by runs with the most first, by runs with the fewest first.
  result.sorted = [sorted(0), sorted(1), sorted(1)];

  const px = panel.width / 2, before = { from: state.from, to: state.to }, held = panel.timeAt(px);
  hand.wheel(px, 300, -400);
  result.zoom = { span_before: before.to - before.from, span_after: state.span, drift: (panel.timeAt(px) - held) / (before.to - before.from) };
  const from = state.from;
  hand.drag(px, px - 100, 300);
  result.pan = state.from - from;

  type("search", "AD");
  result.search = { found: text("matches") };
  press("search", "Enter");
  result.search.after_enter = text("matches");
  type("search", "#2");
  result.search.by_number = state.matches[0];
  result.task_under_label = panel.taskAt(10, 200);
  type("search", "");
  key("0");
});
