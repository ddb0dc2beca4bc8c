// Counters over time: a value that changes in steps, and stays between them.
class Counter {
  // `changes` are pairs of a time and by how much the value rises or falls then.
  constructor(name, meaning, changes) {
    [this.name, this.meaning] = [name, meaning];
    changes.sort((a, b) => a[0] - b[0]);
    [this.times, this.values, this.largest] = [[], [], 0];
    let value = 0;
    for (let i = 0; i < changes.length; i++) {
      value += changes[i][1];
      if (i + 1 < changes.length && changes[i + 1][0] === changes[i][0]) continue;
      this.times.push(changes[i][0]);
      this.values.push(value);
      this.largest = Math.max(this.largest, value);
    }
  }

  // The index of the last step that is not after a time; -1 before the first one.
  stepAt(at) {
    let low = 0, high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= at) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  at(time) { return this.values[this.stepAt(time)] ?? 0; }
}

// One more from a time on, to another one or to the end of the run.
function between(list, from, to) {
  if (from < 0) return;
  list.push([from, 1]);
  if (to >= 0) list.push([Math.max(to, from), -1]);
}

// How many of some lanes run a kernel.
function busyCounter(run, lanes) {
  const busy = [], cores = lanes.map(lane => run.lanes[lane]).filter(lane => lane.tasks);
  for (const lane of cores) for (const slot of lane.tasks) between(busy, run.startOf(slot), run.endOf(slot));
  return new Counter("busy", `cores that run a kernel, of ${cores.length}`, busy);
}

// The counters of a run.
function countersOf(run) {
  const ready = [], ahead = [];
  run.data.tasks.forEach((row, slot) => {
    const skippedAt = run.skipped.has(slot) ? row[COMPLETED] : -1;
    between(ready, row[READY], row[DISPATCHED] >= 0 ? row[DISPATCHED] : skippedAt);
    between(ahead, row[ADDED], row[STARTED] >= 0 ? row[STARTED] : skippedAt);
  });
  return [
    new Counter("ready", "tasks that are ready and not dispatched", ready),
    busyCounter(run, [...run.lanes.keys()]),
    new Counter("ahead", "tasks that the builder has added and no core has started", ahead),
  ];
}
