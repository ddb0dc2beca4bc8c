// What a user does with a panel: wheel, mouse, fingers.

// `view` is what the page can be asked for: changed(), select(run, slot), fold(run, line), showMoment(run, at), point(panel, event).
class Input {
  constructor(panel, state, view) {
    Object.assign(this, { panel, state, view, fingers: new Map(), drag: null });
    const { canvas } = panel, on = (type, act, options) => canvas.addEventListener(type, act, options);
    on("wheel", event => this.wheel(event), { passive: false });
    on("pointerdown", event => this.down(event));
    on("pointermove", event => this.move(event));
    on("pointerup", event => this.up(event));
    on("pointercancel", event => this.leave(event));
    on("pointerleave", () => view.point(panel, null));
    on("dblclick", event => this.zoomTo(panel.taskAt(event.offsetX, event.offsetY)));
  }

  wheel(event) {
    const { panel, state } = this;
    event.preventDefault();
    if (event.shiftKey || !panel.isOverTimes(event)) panel.top += event.deltaY || event.deltaX;
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) state.pan(event.deltaX / panel.width * state.span);
    else state.zoom(Math.exp(event.deltaY * 0.0015), panel.timeAt(event.offsetX));
    this.view.changed();
  }

  down(event) {
    const { panel, state } = this, at = panel.timeAt(event.offsetX);
    this.fingers.set(event.pointerId, event);
    const isOverTimes = panel.isOverTimes(event), selects = isOverTimes && (event.shiftKey || event.offsetY < AXIS || byId("ruler").checked);
    this.drag = { x: event.offsetX, y: event.offsetY, at, selects, from: state.from, to: state.to, top: panel.top, moved: false };
    if (event.offsetX > panel.right && panel.thumb()) this.grab(event);
    if (this.fingers.size > 1) this.pinch = { apart: this.apart(), from: state.from, to: state.to };
    // A pointer that a test makes up cannot be captured.
    try { panel.canvas.setPointerCapture(event.pointerId); } catch { /* it still drags */ }
  }

  // Takes the thumb of the scroll bar; a press next to the thumb first brings the thumb there.
  grab(event) {
    const { panel } = this, [top, high] = panel.thumb(), isOn = event.offsetY >= top && event.offsetY <= top + high;
    this.drag.thumb = isOn ? event.offsetY - top : high / 2;
    panel.moveThumb(event.offsetY - this.drag.thumb);
    this.view.changed();
  }

  // How far two fingers are apart, and the middle between them.
  apart() {
    const [a, b] = [...this.fingers.values()];
    return [Math.max(Math.abs(a.offsetX - b.offsetX), 10), (a.offsetX + b.offsetX) / 2];
  }

  move(event) {
    if (!this.drag) return this.view.point(this.panel, event);
    this.fingers.set(event.pointerId, event);
    const [dx, dy] = [event.offsetX - this.drag.x, event.offsetY - this.drag.y];
    this.drag.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
    if (!this.drag.moved) return;
    if (this.fingers.size > 1) this.pinched();
    else if (this.drag.thumb !== undefined) this.panel.moveThumb(event.offsetY - this.drag.thumb);
    else if (this.drag.selects) this.state.setRange(this.drag.at, this.panel.timeAt(event.offsetX));
    else this.dragged(dx, dy);
    this.view.point(this.panel, null);
    this.view.changed();
  }

  pinched() {
    const { panel, state } = this, [apart, middle] = this.apart(), { from, to } = this.pinch;
    const span = (to - from) * this.pinch.apart[0] / apart, fraction = panel.fractionAt(this.pinch.apart[1]);
    const held = from + fraction * (to - from), start = held - panel.fractionAt(middle) * span;
    state.show(start, start + span);
  }

  dragged(dx, dy) {
    const { panel, state, drag } = this, by = dx / (panel.right - panel.left) * (drag.to - drag.from);
    state.show(drag.from - by, drag.to - by);
    panel.top = drag.top - dy;
    panel.canvas.classList.add("dragging");
  }

  leave(event) {
    this.fingers.delete(event.pointerId);
    if (this.fingers.size) return null;
    const { drag } = this;
    this.drag = null;
    this.panel.canvas.classList.remove("dragging");
    return drag;
  }

  up(event) {
    const drag = this.leave(event), { panel, view } = this;
    if (!drag || drag.moved || drag.thumb !== undefined) return;
    const line = panel.lineAt(event.offsetY);
    if (line?.heading !== undefined || line?.idle !== undefined) return view.fold(panel.index, line);
    const slot = panel.taskAt(event.offsetX, event.offsetY);
    if (slot >= 0) view.select(panel.index, panel.run.owner(slot));
    else if (panel.isOverTimes(event)) view.showMoment(panel.index, Math.min(Math.max(panel.timeAt(event.offsetX), 0), panel.run.end));
  }

  zoomTo(slot) {
    if (slot < 0) return;
    const { run } = this.panel, [from, to] = [run.startOf(slot), run.endOf(slot)];
    const wide = 6 * (to - from) + 20, middle = (from + to) / 2;
    this.state.show(middle - wide / 2, middle + wide / 2);
    this.view.changed();
  }
}
