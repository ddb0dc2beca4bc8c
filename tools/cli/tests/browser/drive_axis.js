"use strict";
// The axis near the end of a run, and measured from a moment that somebody chose.
window.driver.run(async (result, { shown, key }) => {
  const page = window.timeline, { state, panels: [panel] } = page, { end } = panel.run;
  const look = () => {
    const texts = shown(() => page.paint());
    return {
      ticks: texts.filter(text => /^[+\u2212]?[\d.]+ (ns|us|ms|s)$/.test(text)),
      reference: texts.find(text => text.startsWith("from ")) ?? null, exact: panel.axis.ticks.map(tick => tick.at),
    };
  };
  result.whole = look();
  state.show(end - 300, end);
  result.near = look();
  page.measureFrom(end - 250);
  result.measured = look();
  key("Escape");
  result.cleared = look().reference;
});
