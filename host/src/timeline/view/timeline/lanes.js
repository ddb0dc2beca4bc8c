// The lanes: what ran on each core, what each AICPU instance did, and which way work went between them.
const MARKS = ["mark-add", "mark-dispatch", "mark-end", "mark-skip"];

function paintGround(panel) {
  const { context, theme, width, height } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, 0, width, height);
  for (const [line, row] of panel.visible()) {
    context.fillStyle = line.heading !== undefined ? theme.colours.heading : row % 2 ? theme.colours["lane-odd"] : theme.colours["lane-even"];
    context.fillRect(panel.left, panel.yOf(row), panel.right - panel.left, panel.laneHeight - 1);
  }
}

function paintTasks(panel, lane, top) {
  const { context, run, state, theme, laneHeight } = panel, list = lane.tasks;
  const matching = state.matching[panel.index], selected = state.selectedIn(panel.index);
  let last = -Infinity;
  for (let i = run.firstVisible(list, state.from); i < list.length; i++) {
    const slot = list[i], task = run.owner(slot);
    if (run.startOf(slot) > state.to) break;
    const left = panel.x(run.startOf(slot)), right = Math.max(panel.x(run.endOf(slot)), left + 1);
    // Below a pixel, one of a pixel's tasks is drawn for all; those that matter are always drawn.
    if (right <= last + 0.5 && task !== selected && !matching.has(task)) continue;
    last = right;
    const from = Math.max(left, panel.left);
    context.globalAlpha = state.query && !matching.has(task) ? 0.25 : 1;
    context.fillStyle = panel.shade(slot);
    context.fillRect(from, top + 1, right - from, laneHeight - 3);
    if (right - from > 40 && laneHeight > 11) paintName(panel, slot, from, right, top);
    context.globalAlpha = 1;
    if (task !== selected) continue;
    context.strokeStyle = theme.colours.ink;
    context.lineWidth = 2;
    context.strokeRect(left, top + 1, right - left, laneHeight - 3);
  }
}

function paintName({ context, run, laneHeight, hues }, slot, from, to, top) {
  context.save();
  context.beginPath();
  context.rect(from, top, to - from - 2, laneHeight);
  context.clip();
  context.fillStyle = inkOn(hues.get(run.kernel(slot)));
  context.fillText(`${run.called(slot)} #${run.owner(slot)}${run.block(slot)}`, from + 3, top + laneHeight / 2);
  context.restore();
}

function paintMarks(panel, lane, top) {
  let last = -1;
  for (const [at, , what] of lane.marks) {
    if (at < panel.state.from) continue;
    if (at > panel.state.to) break;
    const px = Math.round(panel.x(at));
    if (px === last) continue;
    last = px;
    panel.context.fillStyle = panel.theme.colours[MARKS[what]];
    panel.context.fillRect(px, top + 2, 1, panel.laneHeight - 5);
  }
}

// The middle of a row's lane.
const middleOf = (panel, slot) => panel.y(panel.run.laneOf(slot)) + panel.laneHeight / 2;

function paintChain(panel) {
  const { context, run } = panel;
  context.strokeStyle = panel.theme.colours.chain;
  context.lineWidth = 2;
  context.beginPath();
  let begun = false;
  for (const slot of run.data.chain) {
    if (run.startOf(slot) < 0 || run.rows[slot][CORE] < 0) continue;
    const middle = middleOf(panel, slot);
    if (begun) context.lineTo(panel.x(run.startOf(slot)), middle); else context.moveTo(panel.x(run.startOf(slot)), middle);
    context.lineTo(panel.x(run.endOf(slot)), middle);
    begun = true;
  }
  context.stroke();
}

function paintEdges(panel, slot) {
  const { run, theme } = panel;
  run.producers[slot].forEach(producer => paintArrow(panel, producer, slot, theme.colours.producer));
  run.consumers[slot].forEach(consumer => paintArrow(panel, slot, consumer, theme.colours.consumer));
}

function paintArrow(panel, from, to, shade) {
  const { context, run } = panel;
  if (run.startOf(from) < 0 || run.startOf(to) < 0) return;
  const [x0, x1] = [panel.x(run.endOf(from)), panel.x(run.startOf(to))], [y0, y1] = [middleOf(panel, from), middleOf(panel, to)];
  context.strokeStyle = context.fillStyle = shade;
  context.lineWidth = 1.2;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + 30, y0, x1 - 30, y1, x1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 6, y1 - 3);
  context.lineTo(x1 - 6, y1 + 3);
  context.fill();
}

// The core and the task that ended the run.
function paintFault(panel) {
  const { context, run, laneHeight } = panel, { fault } = run.data;
  if (!fault) return;
  context.strokeStyle = panel.theme.colours.fault;
  context.lineWidth = 2;
  if (fault.core !== null) context.strokeRect(panel.left + 1, panel.y(run.firstCore + fault.core), panel.right - panel.left - 2, laneHeight - 1);
  run.rows.forEach((_, slot) => {
    if (run.owner(slot) !== fault.task || !run.ran(slot)) return;
    const left = panel.x(run.startOf(slot)), right = panel.x(run.endOf(slot));
    context.strokeRect(left, panel.y(run.laneOf(slot)) + 1, Math.max(right - left, 3), laneHeight - 3);
  });
}

// On the heading of a group: how many of its cores were busy.
function paintBusy(panel, group, top) {
  const { context, theme, laneHeight } = panel, { busy } = panel.run.groups[group];
  context.fillStyle = theme.colours["counter-busy"];
  paintSteps(panel, busy, top + laneHeight - 2, laneHeight - 4);
}

// The scroll bar: which part of the lanes can be seen, where that is not all of them.
function paintScroll(panel) {
  const { context, theme, width, height, head } = panel, thumb = panel.thumb();
  context.fillStyle = theme.colours.paper;
  context.fillRect(panel.right, 0, BAR, height);
  if (!thumb) return;
  context.fillStyle = theme.colours.control;
  context.fillRect(panel.right + 2, head, BAR - 2, panel.room);
  context.fillStyle = theme.colours.quiet;
  context.fillRect(width - BAR + 3, thumb[0], BAR - 4, thumb[1]);
}

function paintLabels(panel) {
  const { context, theme, height, laneHeight } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, 0, panel.left, height);
  // Lanes that are too narrow for a line of text: below a heading, every second one has a label, and none above a heading or a line of idle lanes.
  const every = laneHeight < 11 ? 2 : 1;
  const isCrowded = (row, last) => row - last < every || (every > 1 && panel.lines[row + 1] && panel.lines[row + 1].lane === undefined);
  let last = -every;
  for (const [line, row] of panel.visible()) {
    const middle = panel.yOf(row) + laneHeight / 2;
    if (middle < panel.head || (line.lane !== undefined && isCrowded(row, last))) continue;
    last = row;
    context.fillStyle = line.lane === undefined ? theme.colours.accent : theme.colours.ink;
    const room = line.idle === undefined ? panel.left - 8 : panel.right, indent = 6 + panel.indentOf(line);
    context.fillText(shortened(context, panel.called(line), room - indent), indent, middle);
  }
}

// A text, or as much of it as there is room for.
function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}\u2026`).width > room) length--;
  return `${text.slice(0, length)}\u2026`;
}
