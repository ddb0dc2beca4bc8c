// What measures the lanes: axis and ruler, the counters, the selected range, the chosen moment.

function paintAxis(panel) {
  const { context, theme, state, width, height, left, right } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, 0, width, AXIS);
  const axis = axisOf(state.from, state.to, right - left, state.reference);
  panel.axis = axis;
  context.fillStyle = theme.colours.quiet;
  if (axis.reference !== null) context.fillText(`from ${exactTime(axis.reference)}`, 6, AXIS / 4);
  context.fillText(axis.reference === null ? "time" : "offset", 6, AXIS * 3 / 4);
  for (const { at, label } of axis.ticks) {
    const px = panel.x(at);
    if (px < left - 1) continue;
    context.fillStyle = theme.colours.grid;
    context.fillRect(px, AXIS - 6, 1, height);
    context.fillStyle = theme.colours.quiet;
    if (px + 4 + context.measureText(label).width <= right) context.fillText(label, px + 4, AXIS * 3 / 4);
  }
}

// A counter, filled from its zero to its value: of all values that fall on one pixel, the largest.
function paintSteps(panel, counter, bottom, room) {
  const scale = room / Math.max(counter.largest, 1);
  let step = counter.stepAt(panel.state.from);
  for (let px = panel.left; px < panel.right; px++) {
    const until = panel.timeAt(px + 1);
    let value = counter.values[step] ?? 0;
    while (step + 1 < counter.times.length && counter.times[step + 1] < until) value = Math.max(value, counter.values[++step]);
    if (value > 0) panel.context.fillRect(px, bottom - value * scale, 1, value * scale);
  }
}

function paintCounters(panel) {
  const { context, theme, state, width, left, right } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, AXIS, width, panel.head - AXIS - GAP);
  panel.counters.forEach((counter, index) => {
    const bottom = AXIS + (index + 1) * TRACK - 3, room = TRACK - 7;
    context.fillStyle = theme.colours["lane-even"];
    context.fillRect(left, bottom - room, right - left, room);
    context.fillStyle = theme.colours[`counter-${counter.name}`];
    paintSteps(panel, counter, bottom, room);
    context.fillStyle = theme.colours.ink;
    context.fillText(counter.name, 6, bottom - room + 6);
    context.fillStyle = theme.colours.quiet;
    const shown = state.pointer === null ? `max ${counter.largest}` : `${counter.at(state.pointer)} of ${counter.largest}`;
    context.fillText(shown, 6, bottom - room + 19);
  });
}

// A text in the upper row of the axis, near a position and inside the canvas.
function paintNote({ context, theme, left: from, right }, text, px, shade) {
  const room = context.measureText(text).width + 8, left = Math.min(Math.max(px - room / 2, from), right - room);
  context.fillStyle = shade;
  context.fillRect(left, 1, room, AXIS / 2 - 2);
  context.fillStyle = theme.colours.paper;
  context.fillText(text, left + 4, AXIS / 4);
}

function paintRange(panel) {
  const { context, theme, state, height } = panel;
  if (!state.range) return;
  const [left, right] = state.range.map(at => Math.min(Math.max(panel.x(at), panel.left), panel.right));
  context.fillStyle = theme.colours.shaded;
  context.fillRect(panel.left, AXIS, left - panel.left, height);
  context.fillRect(right, AXIS, panel.right - right, height);
  context.fillStyle = theme.colours.accent;
  for (const px of [left, right]) context.fillRect(px - 0.5, AXIS / 2, 1.5, height);
  context.fillRect(left, AXIS / 2, right - left, 2);
  paintNote(panel, exactTime(state.range[1] - state.range[0]), (left + right) / 2, theme.colours.accent);
}

// The chosen moment, and the position of the pointer.
function paintMoments(panel) {
  const { context, theme, state, axis, height } = panel;
  const line = (at, shade) => {
    const px = panel.x(at);
    if (px < panel.left || px > panel.right) return;
    context.fillStyle = shade;
    context.fillRect(px, AXIS / 2, 1, height);
    const from = state.reference ?? axis.reference;
    const text = from === null || from === at ? exactTime(at) : offset(at - from, axis.step / 100, axis.unit);
    return [text, px, shade];
  };
  const notes = [];
  if (state.moment >= 0 && panel.index === state.run) notes.push(line(state.moment, theme.colours.ink));
  if (state.pointer !== null) notes.push(line(state.pointer, theme.colours.quiet));
  const last = notes.filter(note => note).pop();
  if (last) paintNote(panel, ...last);
}
