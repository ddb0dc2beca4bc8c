// What a user does with the graph: wheel, mouse, fingers.
class Input {
  // `page` is what can be asked for: zoom, move, select, point.
  constructor(canvas, page) {
    Object.assign(this, { canvas, page, fingers: new Map(), last: null, moved: false });
    const on = (type, act, options) => canvas.addEventListener(type, act, options);
    on("wheel", event => { event.preventDefault(); page.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY); }, { passive: false });
    on("pointerdown", event => this.down(event));
    on("pointermove", event => this.move(event));
    on("pointerup", event => this.up(event));
    on("pointercancel", event => this.fingers.delete(event.pointerId));
    on("pointerleave", () => page.point(null));
  }

  // The middle of the fingers, and how far two of them are apart.
  grip() {
    const all = [...this.fingers.values()], mean = list => list.reduce((sum, value) => sum + value, 0) / list.length;
    const [a, b] = all;
    const apart = b ? Math.max(10, Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY)) : 0;
    return { x: mean(all.map(event => event.offsetX)), y: mean(all.map(event => event.offsetY)), apart };
  }

  down(event) {
    this.fingers.set(event.pointerId, event);
    if (this.fingers.size === 1) this.moved = false;
    [this.last, this.travelled] = [this.grip(), 0];
    // A pointer that a test makes up cannot be captured.
    try { this.canvas.setPointerCapture(event.pointerId); } catch { /* it still drags */ }
  }

  move(event) {
    if (!this.fingers.has(event.pointerId)) return this.page.point(event);
    this.fingers.set(event.pointerId, event);
    const grip = this.grip(), [dx, dy] = [grip.x - this.last.x, grip.y - this.last.y];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    this.moved ||= this.travelled > 3;
    if (!this.moved) return;
    this.page.move(dx, dy);
    if (grip.apart && this.last.apart) this.page.zoom(grip.apart / this.last.apart, grip.x, grip.y);
    this.last = grip;
  }

  up(event) {
    this.fingers.delete(event.pointerId);
    if (this.fingers.size) this.last = this.grip();
    else if (!this.moved) this.page.select(this.page.taskAt(event));
  }
}
