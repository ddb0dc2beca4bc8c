// The picture of one run on a canvas: where times and lanes are on it, and in which order it is painted.
const LABEL_MIN = 76, LABEL_MAX = 200, INDENT = 8, BAR = 12, AXIS = 36, TRACK = 34, GAP = 3;
// Lanes are as high as they fit into the panel, LANE_SMALL at least. If they do not fit, they are LANE_SCROLLED high.
const LANE_SMALL = 9, LANE_SCROLLED = 14, LANE_MAX = 22;
const FONT = "11px system-ui, sans-serif";

class Panel {
  constructor(run, index, state, theme, hues) {
    Object.assign(this, { run, index, state, theme, hues, counters: countersOf(run) });
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", `swimlane of ${run.name}`);
    this.context = this.canvas.getContext("2d");
    [this.width, this.height, this.laneHeight] = [0, 0, LANE_MAX];
  }

  // What is shown from the top on, and in which line each lane is found: the lanes of a folded group are in that of its heading.
  choose() {
    const { run, state, index } = this;
    this.lines = linesOf(run, state.folded[index], state.idle[index]);
    const headings = new Map(this.lines.map((line, row) => [line.heading, row])), idles = new Map(this.lines.map((line, row) => [line.idle, row]));
    this.rows = run.lanes.map(({ group }) => idles.get(group) ?? headings.get(group) ?? 0);
    this.lines.forEach(({ lane }, row) => { if (lane !== undefined) this.rows[lane] = row; });
  }

  // What a line is called; that of idle lanes stands over the lanes, where there is room.
  called({ heading, idle, lane }) {
    const { run, state, index } = this;
    if (lane !== undefined) return run.lanes[lane].label;
    const group = run.groups[heading ?? idle], mark = isOpen => isOpen ? "\u25BE" : "\u25B8";
    if (idle !== undefined) return `${mark(state.idle[index].has(idle))} ${plural(group.idle.length, "idle lane")}`;
    const isFolded = state.folded[index].has(heading);
    return `${mark(!isFolded)} ${group.name}${isFolded ? `: ${plural(group.used.length + group.idle.length, "lane")}` : ""}`;
  }

  // How many pixels the names of the lanes want, within limits.
  labelWidth() {
    this.context.font = FONT;
    const named = this.lines.filter(({ idle }) => idle === undefined);
    const widths = named.map(line => this.context.measureText(this.called(line)).width + this.indentOf(line));
    return Math.ceil(Math.min(Math.max(LABEL_MIN, ...widths.map(width => width + 16)), LABEL_MAX, Math.max(LABEL_MIN, this.width * 0.35)));
  }
  indentOf({ heading, lane, idle }) { return heading === undefined && this.run.groups[this.run.lanes[lane]?.group ?? idle].name ? INDENT : 0; }

  get top() { return this.state.tops[this.index]; }
  set top(top) { this.state.tops[this.index] = Math.max(0, Math.min(top, this.full - this.room)); }
  // The height of the rows above the lanes, that of the place for lanes, and that of all lanes.
  get head() { return AXIS + GAP + (this.state.switches.counters ? this.counters.length * TRACK : 0); }
  get room() { return this.height - this.head; }
  get full() { return this.lines.length * this.laneHeight; }
  // Where times are: right of the names, left of the scroll bar.
  get left() { return this.state.label; }
  get right() { return this.width - BAR; }

  x(at) { return this.left + (at - this.state.from) / this.state.span * (this.right - this.left); }
  fractionAt(px) { return (px - this.left) / (this.right - this.left); }
  timeAt(px) { return this.state.from + this.fractionAt(px) * this.state.span; }
  isOverTimes({ offsetX }) { return offsetX >= this.left && offsetX <= this.right; }
  y(lane) { return this.yOf(this.rows[lane]); }
  yOf(row) { return this.head + row * this.laneHeight - this.top; }
  lineAt(py) { return py < this.head ? undefined : this.lines[Math.floor((py - this.head + this.top) / this.laneHeight)]; }
  laneAt(py) { return this.lineAt(py)?.lane ?? -1; }
  shade(slot) { return this.hues.get(this.run.kernel(slot)); }

  // The lines that can be seen, with the row of each.
  visible() {
    const first = Math.floor(this.top / this.laneHeight), last = Math.ceil((this.top + this.room) / this.laneHeight);
    return this.lines.slice(first, last).map((line, at) => [line, first + at]);
  }

  // Where the thumb of the scroll bar is: its top and its height; null: all lanes can be seen.
  thumb() {
    const { full, room, head } = this;
    if (full <= room) return null;
    const high = Math.min(Math.max(room / full * room, 24), room);
    return [head + this.top / (full - room) * (room - high), high];
  }
  // Scrolls so that the thumb begins at a place.
  moveThumb(py) {
    const [, high] = this.thumb();
    this.top = (py - this.head) / Math.max(this.room - high, 1) * (this.full - this.room);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const fits = Math.floor(this.room / Math.max(this.lines.length, 1));
    // Headings have a line of text each.
    const least = this.run.groups.some(({ name }) => name) ? LANE_SCROLLED : LANE_SMALL;
    this.laneHeight = fits < least ? LANE_SCROLLED : Math.min(LANE_MAX, fits);
    this.top = this.state.tops[this.index];
  }

  measure() {
    const box = this.canvas.getBoundingClientRect();
    [this.width, this.height] = [box.width, box.height];
    this.choose();
  }

  // The row at a point of the canvas; -1: none. Rows narrower than a pixel are found by it as well.
  taskAt(px, py) {
    const lane = this.run.lanes[this.laneAt(py)];
    if (!lane?.tasks || px < this.left || px > this.right) return -1;
    const slack = this.state.span / (this.right - this.left), at = this.timeAt(px);
    for (let i = this.run.firstVisible(lane.tasks, at - slack); i < lane.tasks.length; i++) {
      if (this.run.startOf(lane.tasks[i]) > at + slack) break;
      if (this.run.endOf(lane.tasks[i]) >= at - slack) return lane.tasks[i];
    }
    return -1;
  }

  // Scrolls so that a task's lane can be seen.
  reveal(slot) {
    const top = this.rows[this.run.laneOf(slot)] * this.laneHeight;
    if (top < this.top || top + this.laneHeight > this.top + this.room) this.top = top - this.room / 2;
  }

  paint() {
    const { context, width, height, state } = this;
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    paintGround(this);
    context.save();
    context.beginPath();
    context.rect(this.left, this.head, this.right - this.left, this.room);
    context.clip();
    for (const [line, row] of this.visible()) {
      const lane = this.run.lanes[line.lane];
      if (lane?.tasks) paintTasks(this, lane, this.yOf(row)); else if (lane) paintMarks(this, lane, this.yOf(row));
      if (line.heading !== undefined) paintBusy(this, line.heading, this.yOf(row));
    }
    if (state.switches.chain) paintChain(this);
    const selected = state.selectedIn(this.index);
    if (state.switches.edges && selected >= 0) paintEdges(this, selected);
    paintFault(this);
    context.restore();
    paintLabels(this);
    if (state.switches.counters) paintCounters(this);
    paintAxis(this);
    paintMoments(this);
    paintRange(this);
    paintScroll(this);
  }
}
