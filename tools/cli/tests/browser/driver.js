"use strict";
// Uses a page as a person would: real events on its elements; writes down what became of them, as JSON in an element `result`.
(() => {
  const texts = [], fillText = CanvasRenderingContext2D.prototype.fillText;
  // Every text that a canvas shows.
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) { texts.push(text); return fillText.call(this, text, ...place); };

  class Hand {
    constructor(canvas) { this.canvas = canvas; }
    at(px, py) {
      const box = this.canvas.getBoundingClientRect();
      return { clientX: box.left + px, clientY: box.top + py, bubbles: true, cancelable: true };
    }
    pointer(type, px, py, more = {}) { this.canvas.dispatchEvent(new PointerEvent(type, { ...this.at(px, py), pointerId: 1, ...more })); }
    click(px, py) { this.pointer("pointerdown", px, py); this.pointer("pointerup", px, py); }
    drag(from, to, y, more) {
      this.pointer("pointerdown", from, y, more);
      this.pointer("pointermove", (from + to) / 2, y, more);
      this.pointer("pointermove", to, y, more);
      this.pointer("pointerup", to, y, more);
    }
    wheel(px, py, deltaY) { this.canvas.dispatchEvent(new WheelEvent("wheel", { ...this.at(px, py), deltaY })); }
    // How many pixels of the canvas pass a test.
    pixels(test) {
      const { data } = this.canvas.getContext("2d").getImageData(0, 0, this.canvas.width, this.canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (test(data[i], data[i + 1], data[i + 2])) count++;
      return count;
    }
    // The colour at a place.
    pixel(px, py) { return [...this.canvas.getContext("2d").getImageData(px * devicePixelRatio, py * devicePixelRatio, 1, 1).data.slice(0, 3)]; }
  }

  window.driver = {
    Hand,
    text: id => document.getElementById(id).textContent,
    key: key => dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })),
    type: (id, text) => { const input = document.getElementById(id); input.value = text; input.dispatchEvent(new Event("input", { bubbles: true })); },
    press: (id, key) => document.getElementById(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })),
    switch: id => document.getElementById(id).click(),
    cells: () => [...document.querySelectorAll("table.kernels tr")].map(row => [...row.children].map(cell => cell.innerText)),
    // What is painted anew.
    shown: paint => { texts.length = 0; paint(); return [...texts]; },
    later: ms => new Promise(resolve => setTimeout(resolve, ms)),
    run: async drive => {
      const result = { requests: performance.getEntriesByType("resource").length, title: document.title };
      try { await drive(result, window.driver); } catch (error) { result.error = `${error}\n${error.stack}`; }
      const made = document.createElement("pre");
      made.id = "result";
      made.textContent = JSON.stringify(result);
      document.body.append(made);
    },
  };
})();
