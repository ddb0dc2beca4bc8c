// The lanes: what ran on each core, what each AICPU instance did, and which way work went between them.
const MARKS = ["mark-add", "mark-dispatch", "mark-end", "mark-skip"];

function paintGround(panel) {
  const { context, theme, width, height } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, 0, width, height);
  panel.shown.forEach((index, row) => {
    context.fillStyle = row % 2 ? theme.colours["lane-odd"] : theme.colours["lane-even"];
    context.fillRect(LABEL, panel.y(index), width - LABEL, panel.laneHeight - 1);
  });
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
    const from = Math.max(left, LABEL);
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
  if (fault.core !== null) context.strokeRect(LABEL + 1, panel.y(run.firstCore + fault.core), panel.width - LABEL - 2, laneHeight - 1);
  run.rows.forEach((_, slot) => {
    if (run.owner(slot) !== fault.task || !run.ran(slot)) return;
    const left = panel.x(run.startOf(slot)), right = panel.x(run.endOf(slot));
    context.strokeRect(left, panel.y(run.laneOf(slot)) + 1, Math.max(right - left, 3), laneHeight - 3);
  });
}

// Which part of the lanes can be seen, where that is not all of them: a bar at the right edge.
function paintScroll(panel) {
  const { context, theme, shown, width, height, head, laneHeight } = panel, all = shown.length * laneHeight, room = height - head;
  if (all <= room) return;
  context.fillStyle = theme.colours.ink;
  context.globalAlpha = 0.4;
  context.fillRect(width - 5, head + panel.top / all * room, 4, Math.max(room / all * room, 12));
  context.globalAlpha = 1;
}

function paintLabels(panel) {
  const { context, theme, run, shown, height, laneHeight } = panel;
  context.fillStyle = theme.colours.paper;
  context.fillRect(0, 0, LABEL, height);
  context.fillStyle = theme.colours.ink;
  // Lanes that are too narrow for a line of text: every second one has a label.
  const every = laneHeight < 11 ? 2 : 1;
  shown.forEach((index, row) => {
    const top = panel.y(index);
    if (top >= panel.head - laneHeight / 2 && top < height && row % every === 0) context.fillText(run.lanes[index].name, 6, top + laneHeight / 2);
  });
}
