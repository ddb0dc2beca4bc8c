// The graph on a canvas, in three levels of detail: blocks of colour, boxes with numbers, boxes with names and details.
const LEVELS = { boxes: 0.16, names: 0.62 };
// Edges that are drawn, at most, when nothing is selected; of more, each n-th is.
const EDGES = 12000;

class Painter {
  constructor(canvas, drawing, state, theme) {
    Object.assign(this, { canvas, drawing, state, theme, context: canvas.getContext("2d") });
    const funcs = Object.keys(drawing.data.kernels).map(Number), { colours } = drawing.data;
    this.shades = new Map(funcs.map((func, index) => [func, colours[index % colours.length]]));
  }

  get level() { return this.state.scale >= LEVELS.names ? "names" : this.state.scale >= LEVELS.boxes ? "boxes" : "blocks"; }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    [this.width, this.height, this.ratio] = [box.width, box.height, ratio];
    [this.canvas.width, this.canvas.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
  }

  // The part of the drawing that is on the canvas.
  seen() {
    const { x, y, scale } = this.state;
    return { left: x, top: y, right: x + this.width / scale, bottom: y + this.height / scale };
  }

  paint() {
    const { context, state, theme, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.colours.paper;
    context.fillRect(0, 0, this.width, this.height);
    const k = ratio * state.scale;
    context.setTransform(k, 0, 0, k, -state.x * k, -state.y * k);
    const seen = this.seen();
    this.painted = { level: this.level, tasks: 0, edges: 0 };
    this.edges(seen);
    for (const layer of this.drawing.layers) {
      for (const task of layer) {
        const inside = task.x > seen.left - COLUMN && task.x < seen.right + COLUMN && task.y > seen.top - BOX[1] && task.y < seen.bottom + BOX[1];
        if (inside) this.task(task);
      }
    }
  }

  edges(seen) {
    const { context, drawing, state, theme } = this;
    const visible = drawing.edges.filter(edge => edge.bottom > seen.top && edge.top < seen.bottom && edge.right > seen.left && edge.left < seen.right);
    const every = Math.ceil(visible.length / EDGES), near = edge => edge.from === state.selected || edge.to === state.selected;
    context.lineWidth = Math.max(1, 0.6 / state.scale);
    context.strokeStyle = theme.colours.edge;
    context.globalAlpha = state.selected >= 0 ? 0.18 : visible.length > 1500 ? 0.35 : 0.7;
    context.beginPath();
    visible.forEach((edge, index) => { if (index % every === 0 && !near(edge)) this.path(edge); });
    context.stroke();
    context.globalAlpha = 1;
    if (state.selected < 0) return;
    context.lineWidth = Math.max(2, 1.4 / state.scale);
    for (const edge of drawing.edges.filter(near)) {
      context.strokeStyle = edge.to === state.selected ? theme.colours.producer : theme.colours.consumer;
      context.beginPath();
      this.path(edge);
      context.stroke();
    }
  }

  // From below the producer to above the consumer, vertical at every node on the way.
  path({ points }) {
    this.painted.edges++;
    this.context.moveTo(...points[0]);
    for (let i = 1; i < points.length; i++) {
      const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]], half = (y1 - y0) / 2;
      this.context.bezierCurveTo(x0, y0 + half, x1, y1 - half, x1, y1);
    }
  }

  task(task) {
    const { context, state, theme } = this, [width, height] = BOX, left = task.x - width / 2, top = task.y - height / 2;
    this.painted.tasks++;
    const shade = this.shades.get(task.func) ?? "#888888";
    context.globalAlpha = state.query && !state.matching.has(task.slot) ? 0.2 : 1;
    context.fillStyle = shade;
    if (this.level === "blocks") context.fillRect(task.x - COLUMN / 2, task.y - this.drawing.row / 6, COLUMN, this.drawing.row / 3);
    else this.box(task, left, top, shade);
    if (task.slot === state.selected) {
      context.strokeStyle = theme.colours.ink;
      context.lineWidth = Math.max(3, 2 / state.scale);
      context.strokeRect(left - 2, top - 2, width + 4, height + 4);
    }
    context.globalAlpha = 1;
  }

  box(task, left, top, shade) {
    const { context, theme } = this, [width, height] = BOX, round = task.kind === "aic" ? 0 : 13;
    const shape = (dx, dy) => { context.beginPath(); context.roundRect(left + dx, top + dy, width, height, round); };
    if ((task.blocks ?? 1) > 1) {
      context.globalAlpha *= 0.45;
      shape(6, -6);
      context.fill();
      context.globalAlpha /= 0.45;
    }
    shape(0, 0);
    context.fill();
    (task.mix ?? []).forEach((func, index) => {
      context.fillStyle = this.shades.get(func) ?? "#888888";
      context.fillRect(left + width - 10 - 9 * index, top + 1, 8, height - 2);
    });
    if (task.perhaps) {
      context.setLineDash([6, 4]);
      context.lineWidth = 2;
      context.strokeStyle = theme.colours.ink;
      shape(0, 0);
      context.stroke();
      context.setLineDash([]);
    }
    this.text(task, left, top, inkOn(shade));
  }

  text(task, left, top, ink) {
    const { context, drawing } = this, [width, height] = BOX, room = width - 8 - 9 * (task.mix ?? []).length;
    context.fillStyle = ink;
    context.textBaseline = "middle";
    context.textAlign = "left";
    if (this.level === "boxes") {
      context.font = "600 22px system-ui, sans-serif";
      context.fillText(`${task.slot}`, left + 6, top + height / 2 + 1, room);
      return;
    }
    context.font = "11px system-ui, sans-serif";
    context.fillText(this.fitting(drawing.label(task.slot), room), left + 5, top + 9);
    context.globalAlpha *= 0.85;
    const more = [`#${task.slot}`, ...(task.name ? [drawing.kernels(task.slot)] : []), ...(task.details ?? [])].join(" \u00B7 ");
    context.font = "9px system-ui, sans-serif";
    context.fillText(this.fitting(more, room), left + 5, top + 22);
  }

  fitting(text, room) {
    if (this.context.measureText(text).width <= room) return text;
    let length = text.length - 1;
    while (length > 1 && this.context.measureText(`${text.slice(0, length)}\u2026`).width > room) length--;
    return `${text.slice(0, length)}\u2026`;
  }
}
