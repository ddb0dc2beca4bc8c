// The page of a graph: the drawing, a search, and the details of a task.
class Page {
  constructor(data) {
    this.drawing = new Drawing(data);
    this.state = { x: 0, y: 0, scale: 1, selected: -1, query: "", matches: [], matching: new Set(), match: -1 };
    this.canvas = byId("graph");
    this.theme = new Theme(byId("theme"), () => this.draw());
    this.painter = new Painter(this.canvas, this.drawing, this.state, this.theme);
    this.address = new Address(() => this.fields(), fields => { this.take(fields); this.changed(); });
    new Input(this.canvas, this);
    this.controls();
    this.once();
    this.painter.resize();
    this.whole();
    this.address.restore();
    this.tell();
  }

  controls() {
    byId("search").addEventListener("input", event => this.search(event.target.value));
    byId("search").addEventListener("keydown", event => { if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1); });
    byId("next").onclick = () => this.step(1);
    byId("previous").onclick = () => this.step(-1);
    byId("whole").onclick = () => this.whole();
    addEventListener("resize", () => { this.painter.resize(); if (this.fitted) this.whole(); else this.draw(); });
    addEventListener("keydown", event => this.key(event));
  }

  key(event) {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const [x, y] = [this.painter.width / 2, this.painter.height / 2];
    const keys = {
      "+": () => this.zoom(1.4, x, y), "=": () => this.zoom(1.4, x, y), "-": () => this.zoom(0.7, x, y), "0": () => this.whole(),
      ArrowLeft: () => this.move(80, 0), ArrowRight: () => this.move(-80, 0), ArrowUp: () => this.move(0, 80), ArrowDown: () => this.move(0, -80),
      Escape: () => this.select(-1), "/": () => byId("search").focus(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  // ---- what is asked for ------------------------------------------------------------------------------
  whole() {
    const { drawing, painter, state } = this, least = Math.min(painter.width / drawing.width, painter.height / drawing.height);
    state.scale = Math.min(1.5, least);
    [state.x, state.y] = [(drawing.width - painter.width / state.scale) / 2, (drawing.height - painter.height / state.scale) / 2];
    this.smallest = state.scale / 2;
    this.changed();
    this.fitted = true;
  }

  // Zooms around a point of the canvas, which stays where it is.
  zoom(factor, px, py) {
    const { state } = this, scale = Math.min(4, Math.max(this.smallest, state.scale * factor));
    state.x += px / state.scale - px / scale;
    state.y += py / state.scale - py / scale;
    [state.scale, this.fitted] = [scale, false];
    this.changed();
  }

  move(dx, dy) {
    const { state, drawing, painter } = this, within = (at, size, room) => Math.min(Math.max(at, -room / 2), size - room / 2);
    state.x = within(state.x - dx / state.scale, drawing.width, painter.width / state.scale);
    state.y = within(state.y - dy / state.scale, drawing.height, painter.height / state.scale);
    this.fitted = false;
    this.changed();
  }

  taskAt(event) {
    const { state } = this;
    return this.drawing.taskAt(state.x + event.offsetX / state.scale, state.y + event.offsetY / state.scale, 3 / state.scale);
  }

  select(slot) { this.state.selected = slot; this.tell(); this.changed(); }

  goTo(slot) {
    const { state, painter } = this, task = this.drawing.tasks[slot];
    [state.scale, this.fitted] = [Math.max(state.scale, 0.7), false];
    [state.x, state.y] = [task.x - painter.width / state.scale / 2, task.y - painter.height / state.scale / 2];
    this.select(slot);
  }

  search(text) {
    const matches = this.drawing.search(text);
    Object.assign(this.state, { query: text.trim(), matches, matching: new Set(matches), match: -1 });
    this.changed();
  }

  step(by) {
    const { state } = this;
    if (!state.matches.length) return;
    state.match = (state.match + by + state.matches.length) % state.matches.length;
    this.goTo(state.matches[state.match]);
  }

  // ---- the address ------------------------------------------------------------------------------------
  fields() {
    const { state } = this;
    return [["at", this.fitted ? "" : `${state.x.toFixed(0)},${state.y.toFixed(0)},${state.scale.toFixed(4)}`], ["task", state.selected >= 0 ? String(state.selected) : ""], ["search", state.query]];
  }

  take(fields) {
    const at = numbers(fields.at, 3), task = numbers(fields.task, 1);
    if (at && at[2] > 0) [this.state.x, this.state.y, this.state.scale, this.fitted] = [...at, false];
    this.search(fields.search ?? "");
    byId("search").value = fields.search ?? "";
    this.select(task && task[0] in this.drawing.tasks ? task[0] : -1);
  }

  // ---- details ----------------------------------------------------------------------------------------
  tell() {
    const { drawing, state } = this, slot = state.selected, box = byId("selected");
    if (slot < 0) return box.replaceChildren("Click a task.");
    const task = drawing.tasks[slot], rows = [["task", `#${slot}`], ...(task.name ? [["name", task.name]] : []), ["kernel", drawing.kernels(slot)]];
    rows.push(["runs on", task.kind], ...(task.details ?? []).map(detail => ["", detail]));
    rows.push(["producers", this.links(drawing.producers[slot])], ["consumers", this.links(drawing.consumers[slot])]);
    box.replaceChildren(factTable(rows));
  }

  links(slots) {
    const made = element("span");
    slots.slice(0, 40).forEach((slot, index) => made.append(index ? ", " : "", action(`#${slot} ${this.drawing.label(slot)}`, () => this.goTo(slot))));
    if (slots.length > 40) made.append(` and ${slots.length - 40} more`);
    return slots.length ? made : "none";
  }

  once() {
    const { data } = this.drawing, has = test => data.tasks.some(test);
    byId("facts").textContent = `${plural(data.tasks.length, "task")}, ${plural(data.edges.length, "edge")}, ${plural(data.layers, "layer")}`;
    for (const [func, shade] of this.painter.shades) byId("legend").append(legendKey(shade, this.drawing.kernel(func)));
    const notes = [
      [true, "Angular: on cube cores (AIC). Round: on vector cores (AIV)."], [has(task => task.mix), "Strips: kernels on vector cores of its cluster."],
      [has(task => task.blocks), "Shadow: several blocks."], [has(task => task.perhaps), "Dashed: runs if its predicate is true."],
      [data.straight, "The graph has many long edges: they lead straight through the layers between."],
    ];
    for (const [holds, note] of notes) if (holds) byId("legend").append(element("p", note));
  }

  point(event) {
    const slot = event ? this.taskAt(event) : -1, tip = byId("tip");
    tip.hidden = slot < 0;
    if (slot < 0) return;
    const { drawing } = this, task = drawing.tasks[slot];
    const names = [...(task.name ? [task.name] : []), `${drawing.kernels(slot)} #${slot} (${task.kind})`, ...(task.details ?? [])];
    tip.textContent = [...names, `${plural(drawing.producers[slot].length, "producer")}, ${plural(drawing.consumers[slot].length, "consumer")}`].join("\n");
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - 260))}px`;
    tip.style.top = `${Math.min(event.clientY + 12, innerHeight - 120)}px`;
  }

  changed() {
    const { state } = this;
    byId("matches").textContent = !state.query ? "" : state.match < 0 ? `${state.matches.length} found` : `${state.match + 1} of ${state.matches.length}`;
    this.address.changed();
    this.draw();
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.painter.paint(); });
  }
}

// For scripts of the user.
window.graph = new Page(JSON.parse(byId("data").textContent));
