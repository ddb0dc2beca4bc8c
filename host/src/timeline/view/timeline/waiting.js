// What a core that ran no kernel at a moment waited for.

// Why a task had not started at a time: the first thing that had not happened.
function waitedFor(run, slot, at) {
  const row = run.rows[slot], later = column => row[column] < 0 || row[column] > at;
  if (later(ADDED) && row[ADDED] >= 0) return { why: "builder", text: "not added yet: the builder" };
  if (later(PUBLISHED) && row[PUBLISHED] >= 0) return { why: "builder", text: "not published yet: the builder" };
  if (later(READY)) {
    const before = run.producers[run.owner(slot)], open = before.filter(producer => run.endOf(producer) > at);
    if (open.length) return { why: "producers", tasks: open, text: "producers that had not finished" };
    return { why: "polling", tasks: before, text: "its scheduler had not seen that the producers had finished" };
  }
  if (later(DISPATCHED)) return { why: "overhead", text: "ready, not dispatched: scheduler overhead" };
  return { why: "staged", text: "dispatched, not started" };
}

// Each core that ran no kernel at a time: the task that it ran next, and what that lacked.
function idleCores(run, at) {
  const idle = [];
  for (const lane of run.lanes.filter(lane => lane.tasks)) {
    const next = lane.tasks[run.firstVisible(lane.tasks, at)] ?? -1;
    if (next >= 0 && run.startOf(next) <= at && run.endOf(next) >= at) continue;
    if (next < 0) idle.push({ core: lane.name, task: -1, why: "nothing", text: "nothing: it ran no further task" });
    else idle.push({ core: lane.name, task: run.owner(next), ...waitedFor(run, next, at) });
  }
  return idle;
}
