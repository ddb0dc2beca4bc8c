"use strict";
// The page of a graph.
window.driver.run(async (result, { Hand, text, type, press, key, shown, later }) => {
  const page = window.graph, { state, drawing, painter } = page, hand = new Hand(page.canvas), paint = () => painter.paint();
  const look = () => { const texts = shown(paint); return { ...painter.painted, texts, scale: state.scale }; };
  result.whole = look();
  result.fits = drawing.width * state.scale <= painter.width + 1 && drawing.height * state.scale <= painter.height + 1;
  result.coloured = hand.pixels((r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 60);
  type("search", "#2");
  press("search", "Enter");
  result.near = look();
  result.selected = text("selected");
  type("search", "");
  const place = task => [(drawing.tasks[task].x - state.x) * state.scale, (drawing.tasks[task].y - state.y) * state.scale];
  hand.pointer("pointermove", ...place(2));
  result.tip = text("tip");
  page.select(-1);
  hand.click(...place(2));
  result.clicked = state.selected;
  const before = [state.scale, state.x];
  hand.wheel(300, 300, -300);
  hand.drag(300, 200, 300);
  result.moved = [state.scale > before[0], state.x > before[1]];
  await later(400);
  result.address = location.hash;
  key("0");
  result.back = look().level;
});
