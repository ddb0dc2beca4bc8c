// The picture of one run on a canvas: where times and lanes are on it, and in which order it is painted.
const LABEL = 76, AXIS = 36, TRACK = 34, GAP = 3, LANE_MIN = 9, LANE_MAX = 22;
// The row of a lane that is not shown: far above the canvas.
const NOWHERE = -1e6;

class Panel {
  constructor(run, index, state, theme, hues) {
    Object.assign(this, { run, index, state, theme, hues, counters: countersOf(run) });
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", `swimlane of ${run.name}`);
    this.context = this.canvas.getContext("2d");
    [this.width, this.height, this.laneHeight] = [0, 0, LANE_MAX];
    this.choose();
  }

  // The lanes that are shown, from the top on: without the switch, those on which something happened.
  choose() {
    const { lanes } = this.run, all = lanes.map((_, lane) => lane);
    this.shown = this.state.switches.idle ? all : all.filter(lane => this.run.isUsed(lanes[lane]));
    this.rows = lanes.map(() => NOWHERE);
    this.shown.forEach((lane, row) => { this.rows[lane] = row; });
  }

  get top() { return this.state.tops[this.index]; }
  set top(top) { this.state.tops[this.index] = Math.max(0, Math.min(top, this.shown.length * this.laneHeight - (this.height - this.head))); }
  // The height of the rows above the lanes.
  get head() { return AXIS + GAP + (this.state.switches.counters ? this.counters.length * TRACK : 0); }

  x(at) { return LABEL + (at - this.state.from) / this.state.span * (this.width - LABEL); }
  timeAt(px) { return this.state.from + (px - LABEL) / (this.width - LABEL) * this.state.span; }
  y(lane) { return this.head + this.rows[lane] * this.laneHeight - this.top; }
  laneAt(py) { return py < this.head ? -1 : this.shown[Math.floor((py - this.head + this.top) / this.laneHeight)] ?? -1; }
  shade(slot) { return this.hues.get(this.run.kernel(slot)); }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    [this.width, this.height] = [box.width, box.height];
    [this.canvas.width, this.canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.choose();
    const fits = Math.floor((this.height - this.head) / Math.max(this.shown.length, 1));
    this.laneHeight = Math.min(LANE_MAX, Math.max(LANE_MIN, fits));
    this.top = this.state.tops[this.index];
  }

  // The row at a point of the canvas; -1: none. Rows narrower than a pixel are found by it as well.
  taskAt(px, py) {
    const lane = this.run.lanes[this.laneAt(py)];
    if (!lane?.tasks || px < LABEL) return -1;
    const slack = this.state.span / (this.width - LABEL), at = this.timeAt(px);
    for (let i = this.run.firstVisible(lane.tasks, at - slack); i < lane.tasks.length; i++) {
      if (this.run.startOf(lane.tasks[i]) > at + slack) break;
      if (this.run.endOf(lane.tasks[i]) >= at - slack) return lane.tasks[i];
    }
    return -1;
  }

  // Scrolls so that a task's lane can be seen.
  reveal(slot) {
    if (this.run.rows[slot][CORE] < 0) return;
    const top = this.rows[this.run.laneOf(slot)] * this.laneHeight, room = this.height - this.head;
    if (top < this.top || top + this.laneHeight > this.top + room) this.top = top - room / 2;
  }

  paint() {
    const { context, width, height, state } = this;
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    paintGround(this);
    context.save();
    context.beginPath();
    context.rect(LABEL, this.head, width - LABEL, height - this.head);
    context.clip();
    this.run.lanes.forEach((lane, index) => {
      const top = this.y(index);
      if (top + this.laneHeight < this.head || top > height) return;
      if (lane.tasks) paintTasks(this, lane, top); else paintMarks(this, lane, top);
    });
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
