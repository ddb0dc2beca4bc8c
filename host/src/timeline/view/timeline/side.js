// The panel next to the lanes: about the selected task, a moment, the kernels, the runs.
class Side {
  // `act` is what links do: goTo(run, slot), find(text), changed(), measureFrom(at).
  constructor(state, hues, act) {
    Object.assign(this, { state, hues, act });
    this.kernels = new KernelTable(state, hues, act.changed, act.find);
  }

  link(run, slot) { return action(`#${slot} ${this.state.runs[run].called(slot)}`, () => this.act.goTo(run, slot)); }

  links(run, slots) {
    const made = element("span");
    slots.slice(0, 12).forEach((slot, index) => made.append(index ? ", " : "", this.link(run, slot)));
    if (slots.length > 12) made.append(` and ${slots.length - 12} more`);
    return slots.length ? made : "none";
  }

  update() {
    this.selected();
    this.moment();
    this.table();
  }

  selected() {
    const { run: index, selected: slot, runs } = this.state, box = byId("selected");
    if (slot < 0) return box.replaceChildren("Click a task.");
    box.replaceChildren(factTable(this.facts(index, slot)));
    const run = runs[index];
    if (run.startOf(slot) >= 0) box.append(action("measure times from its start", () => this.act.measureFrom(run.startOf(slot))));
    runs.forEach((other, at) => {
      const same = this.state.selectedIn(at);
      if (at !== index && same >= 0) box.append(element("h3", `the same task in ${other.name}`), factTable(this.facts(at, same).slice(1, -2)));
    });
  }

  facts(index, slot) {
    const run = this.state.runs[index], row = run.rows[slot], rows = [["task", `#${slot} ${run.called(slot)}`]];
    const parts = run.data.parts.filter(part => part[0] === slot), skipped = run.skipped.has(slot);
    if (parts.length) rows.push(["parts", `${parts.length} in ${new Set(parts.map(part => part[1])).size} blocks, the last one on ${run.coreNames[row[CORE]]}`]);
    else if (row[CORE] >= 0) rows.push(["core", run.coreNames[row[CORE]]]);
    if (row[SCHEDULER] >= 0) rows.push([skipped ? "skipped by" : "dispatched by", `aicpu ${row[SCHEDULER]}`]);
    if (row[STARTED] >= 0) rows.push(["started at", exactTime(row[STARTED])]);
    if (run.isUnfinished(slot)) rows.push(["not finished", `it had run for ${time(run.end - row[STARTED])} when the run ended`]);
    if (skipped) rows.push(["skipped at", `${exactTime(row[COMPLETED])}: its predicate was false`]);
    rows.push(...run.waits(slot), ["critical chain", run.chain.has(slot) ? "yes" : "no"]);
    rows.push(["producers", this.links(index, run.producers[slot])], ["consumers", this.links(index, run.consumers[slot])]);
    return rows;
  }

  moment() {
    const { moment: at, run: index, runs } = this.state, box = byId("moment"), title = byId("moment-title");
    title.textContent = "A moment";
    if (at < 0) return box.replaceChildren("Click a place without a task: what each idle core waited for.");
    const run = runs[index], idle = idleCores(run, at), cores = run.lanes.length - run.firstCore;
    title.textContent = `At ${exactTime(at)}: ${idle.length} of ${cores} cores idle`;
    const values = countersOf(run).map(counter => `${counter.name} ${counter.at(at)}`).join(", ");
    box.replaceChildren(element("p", values), action("measure times from here", () => this.act.measureFrom(at)));
    // The cores that ran nothing more are many in a group: they share a row.
    const done = idle.filter(core => core.task < 0), open = idle.filter(core => core.task >= 0).map(core => [core.core, this.waited(index, core)]);
    const rest = done.length ? [[done.length > 1 ? `${done.length} cores` : done[0].core, done[0].text]] : [];
    box.append(factTable([...open, ...rest]));
  }

  waited(run, core) {
    const line = element("span"), why = element("span", core.text);
    if (core.task >= 0) line.append(this.link(run, core.task), ": ");
    if (core.why === "overhead") why.className = "overhead";
    line.append(why);
    if (core.tasks?.length) line.append(" ", this.links(run, core.tasks));
    return line;
  }

  table() {
    const { range, runs } = this.state, [from, to] = range ?? [];
    byId("kernels-title").textContent = range ? `Kernels from ${exactTime(from)} to ${exactTime(to)}: ${exactTime(to - from)}` : "Kernels of the whole run";
    const busy = runs.map(run => {
      const kinds = busyOf(run, ...this.state.tabled(run)).map(({ kind, cores, share }) => `${kind} ${share} of ${cores}`).join(", ");
      return element("p", `${runs.length > 1 ? `${run.name}: ` : ""}cores busy: ${kinds}`);
    });
    const lines = runs.length > 1 ? [element("p", `A line for each run: ${runs.map(run => run.name).join(", ")}. The change is that of the time.`)] : [];
    byId("kernels").replaceChildren(...lines, this.kernels.make(), ...busy);
  }

  // What does not change: the legend, and the facts of the runs.
  once() {
    const { runs } = this.state, style = name => `var(--${name})`;
    byId("legend").append(
      ...[...this.hues].map(([kernel, shade]) => legendKey(shade, kernel)),
      legendKey(style("chain"), "critical chain: what the last task waited for"),
      legendKey(style("mark-add"), "task added"), legendKey(style("mark-dispatch"), "task dispatched"),
      legendKey(style("mark-end"), "end seen by its scheduler"),
      ...(runs.some(run => run.skipped.size) ? [legendKey(style("mark-skip"), "task skipped")] : []),
      ...countersOf(runs[0]).map(({ name, meaning }) => legendKey(style(`counter-${name}`), `${name}: ${meaning}`)));
    const names = [...new Set(runs.flatMap(run => Object.keys(run.data.run)))];
    const facts = names.map(name => [name, ...runs.map(run => run.data.run[name] ?? "-")]);
    const compared = runs.length > 1 ? [["", ...runs.map(run => run.name)], ...this.compared()] : [];
    byId("run").append(factTable([...compared, ...facts]));
    for (const run of runs) this.warnings(run);
  }

  compared() {
    const [first, ...others] = this.state.runs, row = (name, of) => [name, ...this.state.runs.map(of)];
    return [
      row("makespan", run => run.data.makespan_ns === null ? "-" : time(run.data.makespan_ns)),
      row("graph", run => time(run.graph)), ["change", "", ...others.map(run => change(first.graph, run.graph))],
      row("tasks", run => String(run.count)), row("verdict", run => run.data.summary),
    ];
  }

  warnings(run) {
    const tell = text => byId("run").append(element("p", `${this.state.runs.length > 1 ? `${run.name}: ` : ""}${text}`));
    if (run.skipped.size) tell(`${plural(run.skipped.size, "task")} skipped, because the predicate was false.`);
    if (run.data.dropped) tell(`${plural(run.data.dropped, "event")} dropped: the picture is incomplete.`);
    const { fault } = run.data, box = byId("fault");
    if (!fault) return;
    box.hidden = false;
    box.append(element("strong", `Ended by the fault ${fault.text}. `), `${fault.sentence} ${fault.remedy} `);
    if (fault.task !== null) box.append(this.link(this.state.runs.indexOf(run), fault.task));
  }
}
