// What is shown, the same for all runs of the page: the stretch of time, what is selected, what is switched on.
class State {
  constructor(runs) {
    [this.runs, this.end] = [runs, Math.max(...runs.map(run => run.end))];
    [this.run, this.selected] = [0, -1];
    [this.moment, this.range, this.reference, this.pointer] = [-1, null, null, null];
    [this.query, this.matches, this.match] = ["", [], -1];
    this.switches = { counters: true, chain: true, edges: true };
    this.unfold();
    this.sort = { column: "total", rising: false };
    this.tops = runs.map(() => 0);
    // Pixels that the names of lanes take, the same in all panels.
    this.label = LABEL_MIN;
    this.whole();
  }

  get span() { return this.to - this.from; }

  whole() { this.show(-this.end * 0.01, this.end * 1.01); }

  // Shows a stretch of time: at least 20 ns of it, and not more than the run.
  show(from, to) {
    const span = Math.min(Math.max(to - from, 20), this.end * 1.02), middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, -this.end * 0.01), this.end * 1.01 - span);
    this.to = this.from + span;
  }

  // Zooms around a time, which stays where it is.
  zoom(factor, at) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }

  pan(by) { this.show(this.from + by, this.to + by); }

  // As the page opens: the lanes of every group are shown, and its idle ones are not.
  unfold() { [this.folded, this.idle] = [0, 1].map(() => this.runs.map(() => new Set())); }

  // The groups of each run that `folded` or `idle` can have: those with a heading, those with idle lanes.
  foldable(sets) { return this.runs.map(run => [...run.groups.keys()].filter(at => sets === this.idle ? run.groups[at].idle.length : run.groups[at].name)); }
  hasAll(sets) { return this.foldable(sets).every((groups, run) => groups.every(at => sets[run].has(at))); }
  // Puts all groups into `folded` or `idle`, or takes them out if all are in.
  toggleAll(sets) {
    const isAll = this.hasAll(sets);
    this.foldable(sets).forEach((groups, run) => { sets[run] = new Set(isAll ? [] : groups); });
  }
  toggle(sets, run, group) { if (!sets[run].delete(group)) sets[run].add(group); }

  select(run, slot) { [this.run, this.selected] = [run, slot]; }

  // The task with the selected one's number in another run, if the same kernel runs it; otherwise -1.
  selectedIn(index) {
    if (index === this.run || this.selected < 0) return this.selected;
    const [own, other] = [this.runs[this.run], this.runs[index]];
    return this.selected < other.count && other.kernel(this.selected) === own.kernel(this.selected) ? this.selected : -1;
  }

  setRange(a, b) {
    const [from, to] = [Math.max(0, Math.min(a, b)), Math.min(this.end, Math.max(a, b))];
    this.range = to > from ? [from, to] : null;
  }

  // The stretch that tables are about: the range, or the time of the run's graph.
  tabled(run) { return this.range ?? run.data.graph; }

  search(query) {
    [this.query, this.match] = [query, -1];
    this.matches = this.runs.map(run => run.search(query));
    this.matching = this.matches.map(matches => new Set(matches));
  }

  // For the address: what differs from the page as it opens.
  fields() {
    const off = Object.keys(this.switches).filter(name => !this.switches[name]);
    const rounded = list => list ? list.map(ns => Math.round(ns)).join(",") : "";
    const pairs = sets => sets.flatMap((groups, run) => [...groups].map(group => `${run}.${group}`)).join(",");
    const isWhole = this.span > this.end * 1.015;
    return [
      ["time", isWhole ? "" : [this.from, this.to].map(ns => ns.toFixed(1)).join(",")], ["range", rounded(this.range)],
      ["moment", this.moment >= 0 ? `${this.run},${Math.round(this.moment)}` : ""],
      ["task", this.selected >= 0 ? `${this.run},${this.selected}` : ""],
      ["from", this.reference === null ? "" : String(Math.round(this.reference))], ["search", this.query],
      ["top", this.tops.some(top => top > 0) ? rounded(this.tops) : ""], ["off", off.join(",")],
      ["folded", pairs(this.folded)], ["idle", pairs(this.idle)],
      ["sort", this.sort.column === "total" && !this.sort.rising ? "" : `${this.sort.column},${this.sort.rising ? "rising" : "falling"}`],
    ];
  }

  // Takes fields back. What is missing is as the page opens; what makes no sense is as if it was missing.
  take(fields) {
    const isRun = list => list && list[0] in this.runs;
    const [stretch, range, moment, task] = [numbers(fields.time, 2), numbers(fields.range, 2), numbers(fields.moment, 2), numbers(fields.task, 2)];
    if (stretch) this.show(...stretch); else this.whole();
    this.range = null;
    if (range) this.setRange(...range);
    [this.run, this.moment] = isRun(moment) ? moment : [0, -1];
    if (isRun(task) && task[1] in this.runs[task[0]].data.tasks) this.select(...task); else this.selected = -1;
    this.reference = numbers(fields.from, 1)?.[0] ?? null;
    this.tops = numbers(fields.top, this.runs.length) ?? this.runs.map(() => 0);
    const off = (fields.off ?? "").split(",");
    for (const name of Object.keys(this.switches)) this.switches[name] = !off.includes(name);
    this.unfold();
    for (const name of ["folded", "idle"]) {
      for (const pair of (fields[name] ?? "").split(",")) {
        const [run, group] = numbers(pair.replace(".", ","), 2) ?? [];
        if (this.runs[run]?.groups[group]) this[name][run].add(group);
      }
    }
    const [column, order] = (fields.sort ?? "total,falling").split(",");
    this.sort = { column, rising: order === "rising" };
    this.search(fields.search ?? "");
  }
}
