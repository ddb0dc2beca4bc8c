// Totals of each kernel, over the whole run or a range of it.

// The kernels that ran between two times. Time in a kernel counts as far as it is inside; a run counts if any of it is.
function totalsOf(run, from, to) {
  const kernels = new Map();
  for (const lane of run.lanes.filter(lane => lane.tasks)) {
    for (let i = run.firstVisible(lane.tasks, from); i < lane.tasks.length; i++) {
      const slot = lane.tasks[i], row = run.rows[slot];
      if (row[STARTED] > to) break;
      if (run.isUnfinished(slot)) continue;
      const name = run.kernel(slot);
      if (!kernels.has(name)) kernels.set(name, { kernel: name, func: row[FUNC], total: 0, times: [], waited: 0 });
      const found = kernels.get(name);
      found.total += Math.max(0, Math.min(run.endOf(slot), to) - Math.max(row[STARTED], from));
      found.times.push(run.endOf(slot) - row[STARTED]);
      found.waited += row[READY] >= 0 ? Math.max(0, row[STARTED] - row[READY]) : 0;
    }
  }
  return [...kernels.values()].map(summed);
}

function summed({ kernel, func, total, times, waited }) {
  times.sort((a, b) => a - b);
  const median = times[Math.max(1, Math.ceil(times.length / 2)) - 1];
  return { kernel, func, runs: times.length, total, median, max: times[times.length - 1], wait: waited / times.length };
}

// The share of the cores of each kind that ran kernels between two times.
function busyOf(run, from, to) {
  const kinds = new Map();
  for (const lane of run.lanes.filter(lane => lane.tasks)) {
    const kind = kinds.get(lane.kind) ?? { kind: lane.kind, cores: 0, busy: 0 };
    kinds.set(lane.kind, kind);
    kind.cores++;
    // A kernel that did not finish keeps its core busy to the end of the run.
    for (let i = run.firstVisible(lane.tasks, from); i < lane.tasks.length && run.startOf(lane.tasks[i]) <= to; i++)
      kind.busy += Math.max(0, Math.min(run.endOf(lane.tasks[i]), to) - Math.max(run.startOf(lane.tasks[i]), from));
  }
  return [...kinds.values()].map(kind => ({ ...kind, share: share(kind.busy, kind.cores * (to - from)) }));
}
