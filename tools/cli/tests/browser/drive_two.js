"use strict";
// The page of two runs.
window.driver.run(async (result, { Hand, text, cells }) => {
  const page = window.timeline, { state, panels } = page, [hand] = panels.map(panel => new Hand(panel.canvas));
  page.paint();
  result.panels = panels.map(panel => document.body.contains(panel.canvas) && panel.height > 100);
  result.headings = [...document.querySelectorAll("#panels h2")].map(heading => heading.textContent);
  result.same_axis = panels[0].x(100) === panels[1].x(100);
  result.cells = cells();
  result.run = text("run");
  result.kernels = text("kernels");
  const [panel] = panels, lane = panel.run.laneOf(2);
  hand.click((panel.x(160) + panel.x(200)) / 2, panel.y(lane) + 4);
  page.paint();
  result.selected = [state.selected, state.selectedIn(1)];
  result.told = text("selected");
});
