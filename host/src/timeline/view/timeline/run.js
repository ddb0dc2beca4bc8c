// One run: its tasks, the lanes that they ran on, and who waits for whom.
const [FUNC, KIND, CORE, SCHEDULER, ADDED, PUBLISHED, READY, DISPATCHED, STARTED, FINISHED, COMPLETED] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
// What an AICPU instance did: kinds of marks on its lane.
const [ADDS, DISPATCHES, SEES_END, SKIPS] = [0, 1, 2, 3];

class Run {
  constructor(data, name) {
    [this.data, this.name] = [data, name];
    // After the tasks, the parts of those that have several: `rows[i]` is what ran, `owner(i)` the task, `block(i)` its block.
    this.count = data.tasks.length;
    this.rows = data.tasks.concat(data.parts.map(part => part[3]));
    this.end = Math.max(data.end_ns, 1);
    this.graph = data.graph[1] - data.graph[0];
    this.hasParts = new Set(data.parts.map(part => part[0]));
    this.skipped = new Set(data.skipped ?? []);
    this.chain = new Set(data.chain);
    const ordinal = {};
    this.coreNames = data.rows ?? data.cores.map(kind => `${kind} ${(ordinal[kind] = (ordinal[kind] ?? -1) + 1)}`);
    this.makeLanes();
    this.groups = groupsOf(this);
    this.connect();
  }

  makeLanes() {
    const { data, rows } = this, instance = index => ({ name: `aicpu ${index}`, instance: index, marks: [] });
    this.lanes = Array.from({ length: data.instances }, (_, index) => instance(index));
    this.firstCore = this.lanes.length;
    data.cores.forEach((kind, core) => this.lanes.push({ name: this.coreNames[core], core, kind, tasks: [] }));
    rows.forEach((row, slot) => {
      if (this.ran(slot)) this.lanes[this.firstCore + row[CORE]].tasks.push(slot);
      if (slot < this.count) this.mark(row, slot);
    });
    for (const lane of this.lanes) {
      lane.tasks?.sort((a, b) => rows[a][STARTED] - rows[b][STARTED]);
      lane.marks?.sort((a, b) => a[0] - b[0]);
    }
  }

  mark(row, slot) {
    if (row[ADDED] >= 0 && this.data.instances) this.lanes[0].marks.push([row[ADDED], slot, ADDS]);
    if (row[SCHEDULER] < 0 || row[SCHEDULER] >= this.data.instances) return;
    const { marks } = this.lanes[row[SCHEDULER]];
    if (row[DISPATCHED] >= 0) marks.push([row[DISPATCHED], slot, DISPATCHES]);
    if (row[COMPLETED] >= 0) marks.push([row[COMPLETED], slot, this.skipped.has(slot) ? SKIPS : SEES_END]);
  }

  connect() {
    const { tasks, edges } = this.data;
    [this.producers, this.consumers] = [tasks.map(() => []), tasks.map(() => [])];
    for (let i = 0; i < edges.length; i += 2) {
      this.producers[edges[i + 1]].push(edges[i]);
      this.consumers[edges[i]].push(edges[i + 1]);
    }
  }

  // Whether a row is what a core ran: a task without parts, or a part.
  ran(slot) { return this.rows[slot][STARTED] >= 0 && this.rows[slot][CORE] >= 0 && !this.hasParts.has(slot); }
  owner(slot) { return slot < this.count ? slot : this.data.parts[slot - this.count][0]; }
  block(slot) { return slot < this.count ? "" : `.${this.data.parts[slot - this.count][1]}`; }
  kernel(slot) { return this.data.kernels[this.rows[slot][FUNC]] ?? `func ${this.rows[slot][FUNC]}`; }
  // With the name of the task, where the program gave one.
  called(slot) { const name = this.data.task_names?.[this.owner(slot)]; return name ? `${name}: ${this.kernel(slot)}` : this.kernel(slot); }
  startOf(slot) { return this.rows[slot][STARTED]; }
  // Whether it had begun and not ended when the run ended.
  isUnfinished(slot) { return this.ran(slot) && this.rows[slot][FINISHED] < 0; }
  // When its time on the core ends: what has no end runs to the end of the run.
  endOf(slot) { return this.rows[slot][FINISHED] >= 0 ? this.rows[slot][FINISHED] : this.end; }
  // Whether anything happened on a lane.
  isUsed(lane) { return (lane.tasks ?? lane.marks).length > 0 || (this.data.fault && lane.core === this.data.fault.core); }
  laneOf(slot) { return this.firstCore + this.rows[slot][CORE]; }

  // The index in a lane's tasks of the first one that ends at a time or after it.
  firstVisible(list, at) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.endOf(list[middle]) < at) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The tasks that a search finds: by number (`#12`), or by a part of its own name or the kernel's, in the order in which they started.
  search(text) {
    const wanted = text.trim().toLowerCase();
    if (/^#?\d+$/.test(wanted)) {
      const slot = Number(wanted.replace("#", ""));
      return slot < this.count ? [slot] : [];
    }
    if (!wanted) return [];
    const began = slot => this.rows[slot][this.skipped.has(slot) ? COMPLETED : STARTED];
    const found = this.data.tasks.map((_, slot) => slot).filter(slot => began(slot) >= 0 && this.called(slot).toLowerCase().includes(wanted));
    return found.sort((a, b) => began(a) - began(b));
  }

  // How long a task was in each of its states.
  waits(slot) {
    const row = this.rows[slot], steps = [
      ["published to ready", PUBLISHED, READY], ["ready to dispatched", READY, DISPATCHED],
      ["dispatched to started", DISPATCHED, STARTED], ["in the kernel", STARTED, FINISHED], ["finished to seen", FINISHED, COMPLETED],
    ];
    return steps.filter(([, from, to]) => row[from] >= 0 && row[to] >= 0).map(([name, from, to]) => [name, time(row[to] - row[from])]);
  }
}
