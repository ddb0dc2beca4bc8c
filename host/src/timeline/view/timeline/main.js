// The page: a panel for each run, and the panel next to them. Nothing is requested from anywhere.
class Page {
  constructor({ runs, colours }) {
    this.runs = runs.map(({ name, ...data }) => new Run(data, name));
    const kernels = [...new Set(this.runs.flatMap(run => Object.values(run.data.kernels)))];
    this.hues = new Map(kernels.map((kernel, index) => [kernel, colours[index % colours.length]]));
    this.state = new State(this.runs);
    this.state.search("");
    this.theme = new Theme(byId("theme"), () => this.draw());
    this.panels = this.runs.map((run, index) => new Panel(run, index, this.state, this.theme, this.hues));
    this.address = new Address(() => this.state.fields(), fields => this.restore(fields));
    this.side = new Side(this.state, this.hues, {
      goTo: (run, slot) => this.goTo(run, slot), find: text => this.search(text), changed: () => this.changed(), measureFrom: at => this.measureFrom(at),
    });
    this.build();
  }

  build() {
    const two = this.runs.length > 1;
    for (const panel of this.panels) {
      const title = two ? [element("h2", `${panel.run.name}: graph ${time(panel.run.graph)}, ${panel.run.data.summary}`)] : [];
      byId("panels").append(element("div", undefined, ...title, panel.canvas));
      new Input(panel, this.state, this);
    }
    const [run] = this.runs;
    byId("facts").textContent = two ? "" : `${plural(run.count, "task")}, ${plural(run.data.edges.length / 2, "edge")}, graph ${time(run.graph)}, ${run.data.summary}`;
    this.side.once();
    this.controls();
    addEventListener("resize", () => this.resize());
    this.address.restore();
    this.reflect();
    this.resize();
  }

  controls() {
    byId("search").addEventListener("input", event => this.search(event.target.value));
    byId("search").addEventListener("keydown", event => { if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1); });
    byId("next").onclick = () => this.step(1);
    byId("previous").onclick = () => this.step(-1);
    byId("whole").onclick = () => this.whole();
    byId("clear").onclick = () => this.clear();
    byId("zoom-range").onclick = () => this.zoomRange();
    byId("idle").onchange = () => this.toggleAll(this.state.idle);
    byId("folded").onchange = () => this.toggleAll(this.state.folded);
    for (const [id, sets] of [["idle", this.state.idle], ["folded", this.state.folded]])
      byId(id).parentElement.hidden = this.state.foldable(sets).every(groups => !groups.length);
    for (const name of Object.keys(this.state.switches))
      byId(name).onchange = event => { this.state.switches[name] = event.target.checked; this.resize(); this.changed(); };
    addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    if (event.target instanceof HTMLInputElement && event.target.type === "search") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { state } = this, middle = (state.from + state.to) / 2;
    const scroll = by => { for (const panel of this.panels) panel.top += by(panel); };
    const keys = {
      "+": () => state.zoom(0.7, middle), "=": () => state.zoom(0.7, middle), "-": () => state.zoom(1.4, middle), "0": () => this.whole(),
      ArrowLeft: () => state.pan(-0.2 * state.span), ArrowRight: () => state.pan(0.2 * state.span),
      ArrowUp: () => scroll(() => -60), ArrowDown: () => scroll(() => 60), PageUp: () => scroll(({ room }) => -0.9 * room), PageDown: () => scroll(({ room }) => 0.9 * room),
      Home: () => scroll(({ full }) => -full), End: () => scroll(({ full }) => full),
      f: () => this.toggleAll(state.folded), i: () => this.toggleAll(state.idle), Escape: () => this.clear(), "/": () => byId("search").focus(),
      r: () => this.measureFrom(state.pointer ?? (state.moment >= 0 ? state.moment : state.from)), z: () => this.zoomRange(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    this.changed();
  }

  // ---- what is asked for ------------------------------------------------------------------------------
  select(run, slot) { this.state.select(run, slot); this.changed(); }
  // Opens or closes a heading, or a line of idle lanes.
  fold(run, { heading, idle }) {
    const { state } = this;
    state.toggle(idle === undefined ? state.folded : state.idle, run, heading ?? idle);
    this.resize();
    this.changed();
  }
  toggleAll(sets) { this.state.toggleAll(sets); this.resize(); this.changed(); }
  showMoment(run, at) { [this.state.run, this.state.moment] = [run, at]; this.changed(); }
  measureFrom(at) { this.state.reference = Math.round(at); this.changed(); }
  whole() { this.state.whole(); for (const panel of this.panels) panel.top = 0; this.changed(); }
  clear() { Object.assign(this.state, { selected: -1, moment: -1, range: null, reference: null }); this.changed(); }
  zoomRange() { if (this.state.range) this.state.show(...this.state.range); this.changed(); }
  search(text) { this.state.search(text); this.changed(); }

  step(by) {
    const all = this.state.matches.flatMap((matches, run) => matches.map(slot => [run, slot]));
    if (!all.length) return;
    this.state.match = (this.state.match + by + all.length) % all.length;
    this.goTo(...all[this.state.match]);
  }

  goTo(run, slot) {
    const { state } = this, own = this.runs[run];
    state.select(run, slot);
    if (own.startOf(slot) >= 0) {
      const [from, to] = [own.startOf(slot), own.endOf(slot)];
      if (from < state.from || to > state.to || (to - from) / state.span < 0.002) {
        const wide = Math.min(state.span, Math.max(20 * (to - from), 200));
        state.show((from + to - wide) / 2, (from + to + wide) / 2);
      }
      this.reveal(run, slot);
    }
    this.changed();
  }

  // Scrolls to a task; the lanes of its group are shown.
  reveal(run, slot) {
    const own = this.runs[run];
    if (own.rows[slot][CORE] < 0) return;
    if (this.state.folded[run].delete(own.lanes[own.laneOf(slot)].group)) this.resize();
    this.panels[run].reveal(slot);
  }

  // What each idle core of a run waited for at a time.
  idle(run, at) { return idleCores(this.runs[run], at); }

  // ---- what is shown ----------------------------------------------------------------------------------
  restore(fields) { this.state.take(fields); this.reflect(); this.resize(); }

  changed() { this.reflect(); this.address.changed(); this.draw(); }

  // Elements that show the state.
  reflect() {
    const { state } = this, found = state.matches.reduce((sum, matches) => sum + matches.length, 0);
    if (byId("search").value !== state.query) byId("search").value = state.query;
    byId("matches").textContent = !state.query ? "" : state.match < 0 ? `${found} found` : `${state.match + 1} of ${found}`;
    for (const [name, on] of Object.entries(state.switches)) byId(name).checked = on;
    byId("idle").checked = state.hasAll(state.idle);
    byId("folded").checked = state.hasAll(state.folded);
    byId("zoom-range").disabled = !state.range;
    this.stale = true;
  }

  point(panel, event) {
    const slot = event ? panel.taskAt(event.offsetX, event.offsetY) : -1, { run } = panel, tip = byId("tip");
    this.state.pointer = event && panel.isOverTimes(event) ? panel.timeAt(event.offsetX) : null;
    const line = event && panel.lineAt(event.offsetY);
    panel.canvas.classList.toggle("folds", Boolean(line) && line.lane === undefined);
    tip.hidden = slot < 0;
    this.draw();
    if (slot < 0) return;
    const task = run.owner(slot), part = run.block(slot) && `, block ${run.block(slot).slice(1)}`;
    const lines = [`${run.called(slot)} #${task}${part} on ${run.coreNames[run.rows[slot][CORE]]}`];
    lines.push(...run.waits(slot).map(([name, value]) => `${name}: ${value}`));
    lines.push(`${plural(run.producers[task].length, "producer")}, ${plural(run.consumers[task].length, "consumer")}`);
    tip.textContent = lines.join("\n");
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 4))}px`;
  }

  // All panels have the same place for names, so that their times stand below each other.
  resize() {
    for (const panel of this.panels) panel.measure();
    this.state.label = Math.max(...this.panels.map(panel => panel.labelWidth()));
    for (const panel of this.panels) panel.resize();
    this.draw();
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }

  paint() {
    if (this.stale) this.side.update();
    this.stale = false;
    for (const panel of this.panels) panel.paint();
  }
}

// For scripts of the user.
window.timeline = new Page(JSON.parse(byId("data").textContent));
