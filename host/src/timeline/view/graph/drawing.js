// A graph with a position for each task and each edge, in the units of the drawing: a column is as wide as a task and its margin.
const COLUMN = 120, BOX = [104, 30], MARGIN = 40;
// From one layer to the next: the wider a graph is for its layers, the more, so that edges do not lie flat.
const ROWS = [74, 280];

class Drawing {
  constructor(data) {
    this.data = data;
    this.width = data.columns * COLUMN + 2 * MARGIN;
    this.row = Math.min(Math.max(this.width * 0.7 / Math.max(data.layers, 1), ROWS[0]), ROWS[1]);
    this.height = data.layers * this.row + 2 * MARGIN;
    this.tasks = data.tasks.map((task, slot) => ({ ...task, slot, x: this.x(task.column), y: this.y(task.layer) }));
    this.layers = Array.from({ length: data.layers }, () => []);
    for (const task of this.tasks) this.layers[task.layer].push(task);
    for (const layer of this.layers) layer.sort((a, b) => a.x - b.x);
    [this.producers, this.consumers] = [data.tasks.map(() => []), data.tasks.map(() => [])];
    this.edges = data.edges.map(([from, to, passed]) => this.edge(from, to, passed));
  }

  x(column) { return MARGIN + (column + 0.5) * COLUMN; }
  y(layer) { return MARGIN + (layer + 0.5) * this.row; }

  edge(from, to, passed) {
    const [producer, consumer] = [this.tasks[from], this.tasks[to]];
    this.producers[to].push(from);
    this.consumers[from].push(to);
    const points = [[producer.x, producer.y + BOX[1] / 2]];
    passed.forEach((column, index) => points.push([this.x(column), this.y(producer.layer + 1 + index)]));
    points.push([consumer.x, consumer.y - BOX[1] / 2]);
    const xs = points.map(point => point[0]);
    return { from, to, points, top: producer.y, bottom: consumer.y, left: Math.min(...xs), right: Math.max(...xs) };
  }

  kernel(func) { return this.data.kernels[func] ?? `func ${func}`; }
  // What a task is called: its name, or its kernels.
  kernels(slot) { return [this.tasks[slot].func, ...(this.tasks[slot].mix ?? [])].map(func => this.kernel(func)).join(" + "); }
  label(slot) { return this.tasks[slot].name ?? this.kernels(slot); }

  // The task at a point of the drawing; -1: none. `slack` is how far outside of it still counts.
  taskAt(x, y, slack) {
    const layer = this.layers[Math.round((y - MARGIN) / this.row - 0.5)] ?? [];
    const found = layer.find(task => Math.abs(task.x - x) <= BOX[0] / 2 + slack && Math.abs(task.y - y) <= BOX[1] / 2 + slack);
    return found ? found.slot : -1;
  }

  search(text) {
    const wanted = text.trim().toLowerCase();
    if (/^#?\d+$/.test(wanted)) {
      const slot = Number(wanted.replace("#", ""));
      return slot < this.tasks.length ? [slot] : [];
    }
    if (!wanted) return [];
    return this.tasks.map(task => task.slot).filter(slot => `${this.tasks[slot].name ?? ""} ${this.kernels(slot)}`.toLowerCase().includes(wanted));
  }
}
