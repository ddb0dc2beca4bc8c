"use strict";
// What a window shows without anybody doing anything, and after the theme was switched twice.
window.driver.run(async (result, { Hand, switch: toggle }) => {
  const page = window.timeline ?? window.graph, canvas = document.querySelector("canvas"), hand = new Hand(canvas);
  const paint = () => (page.painter ?? page).paint(), box = element => document.querySelector(element).getBoundingClientRect();
  const look = () => { paint(); return { canvas: hand.pixel(2, 2), body: getComputedStyle(document.body).backgroundColor }; };
  result.width = innerWidth;
  result.scroll_width = document.scrollingElement.scrollWidth;
  const [panels, aside] = [box("#panels"), box("aside")];
  result.aside = { below: aside.top >= panels.bottom - 1, right: aside.left >= panels.right - 1 };
  // Whether the table of kernels is wider than the place that it has.
  const table = document.querySelector(".wide");
  result.cut = table ? table.scrollWidth > table.clientWidth : false;
  result.canvas = [box("canvas").width, box("canvas").height];
  result.theme = look();
  toggle("theme");
  result.light = look();
  toggle("theme");
  result.dark = look();
  if (window.timeline) {
    const { state } = page;
    result.state = { stretch: [state.from, state.to], range: state.range, moment: state.moment, selected: state.selected, reference: state.reference, query: state.query, chain: state.switches.chain, sort: state.sort, whole: state.span > state.end };
  } else {
    result.state = { ...page.state, matches: page.state.matches, matching: undefined };
  }
});
