"use strict";
// A page with more lanes than fit: it scrolls, and ranks fold.
window.driver.run(async (result, { Hand, key, press, shown, type, later, switch: toggle }) => {
  const page = window.timeline, { state, panels: [panel], runs: [run] } = page, hand = new Hand(panel.canvas);
  const paint = () => page.paint(), lines = () => { paint(); return panel.lines.map(line => panel.called(line)); };
  // What stays where it is: the axis and the names of the counters.
  const fixed = () => shown(paint).filter(text => /^(time|ready|busy|ahead|.* us)$/.test(text));
  result.lines = lines();
  key("i");
  result.idle = lines().length;
  result.fixed = [fixed()];
  const most = panel.full - panel.room, tops = {};
  const after = (name, act) => { act(); tops[name] = panel.top / most; };
  after("down", () => key("ArrowDown"));
  after("up", () => key("ArrowUp"));
  after("page_down", () => key("PageDown"));
  result.page = panel.top / panel.room;
  after("page_up", () => key("PageUp"));
  after("end", () => key("End"));
  result.fixed.push(fixed());
  result.last = panel.called(panel.visible().at(-1)[0]);
  after("home", () => key("Home"));
  after("wheel_on_names", () => hand.wheel(10, panel.head + 50, 120));
  const span = state.span;
  after("wheel_on_times", () => hand.wheel(panel.left + 200, panel.head + 50, -120));
  result.zoomed = state.span !== span;
  key("0");
  // The thumb is dragged from the top to the middle of its way, and a press below it brings it to the end.
  const bar = panel.right + 6, [top, high] = panel.thumb(), way = panel.room - high;
  const drag = (from, to) => { for (const [type, y] of [["pointerdown", from], ["pointermove", to], ["pointerup", to]]) hand.pointer(type, bar, y); };
  after("dragged", () => drag(top + 3, top + 3 + way / 2));
  after("pressed", () => drag(panel.height - 2, panel.height - 2));
  result.tops = tops;
  key("Home");
  key("i");

  // The heading of rank 1, then all of them.
  const headingOf = name => panel.yOf(panel.lines.findIndex(line => panel.called(line).includes(name))) + 5;
  hand.click(10, headingOf("rank 1"));
  result.one = lines();
  const task = run.lanes.findIndex(lane => lane.name === "rank 1 aiv 0"), slot = run.lanes[task].tasks[0];
  // In the line of its rank, but no task is there to be clicked.
  result.hidden = [panel.y(task) + 5 === headingOf("rank 1"), panel.taskAt((panel.x(run.startOf(slot)) + panel.x(run.endOf(slot))) / 2, panel.y(task) + 5)];
  const green = hand.pixels((r, g, b) => r < 60 && g > 110 && b < 90);
  key("f");
  result.all = lines();
  paint();
  result.bars = hand.pixels((r, g, b) => r < 60 && g > 110 && b < 90) > 0 && green > 0;
  result.scrolls = panel.thumb() !== null;
  await later(400);
  result.address = location.hash;
  // A task that is looked for is shown.
  type("search", `#${slot}`);
  press("search", "Enter");
  result.found = lines();
  result.seen = panel.yOf(panel.rows[task]) >= panel.head && panel.yOf(panel.rows[task]) < panel.height;
  toggle("folded");
  result.folded = lines().length;
  toggle("folded");
  result.unfolded = lines().length;
  // From a link; what makes no sense is as if it was missing.
  page.restore({ folded: "0.1,0.13,0.99,9.1,x", idle: "0.2" });
  result.restored = lines().length;
});
