"use strict";
// Uses the page as a person would: real events on its elements; writes down what became of them.
(() => {
  const result = {};
  try {
    const { view, moment, taskAt, paint, x, y, lanes } = window.timeline;
    const canvas = document.getElementById("lanes"), box = canvas.getBoundingClientRect();
    const at = (px, py) => ({ clientX: box.left + px, clientY: box.top + py, bubbles: true, cancelable: true });
    const pointer = (type, px, py) => canvas.dispatchEvent(new PointerEvent(type, { ...at(px, py), pointerId: 1 }));
    const click = (px, py) => { pointer("pointerdown", px, py); pointer("pointerup", px, py); };
    const pixels = test => {
      paint();
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (test(data[i], data[i + 1], data[i + 2])) count++;
      return count;
    };
    const red = (r, g, b) => r > 200 && g < 30 && b < 30;
    result.title = document.title;
    result.requests = performance.getEntriesByType("resource").length;
    result.lanes = lanes.map(lane => lane.name);
    result.runs = lanes.map(lane => lane.tasks?.length ?? 0);
    result.coloured = pixels((r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 60);
    result.red = pixels(red);
    document.getElementById("chain").click();
    result.red_without_chain = pixels(red);
    document.getElementById("chain").click();

    // The last task of the first core lane that has one.
    const index = lanes.findIndex(lane => lane.tasks?.length), lane = lanes[index];
    const slot = lane.tasks[lane.tasks.length - 1];
    const data = JSON.parse(document.getElementById("data").textContent);
    const started = data.task_columns.indexOf("started"), finished = data.task_columns.indexOf("finished");
    const rows = data.tasks.concat(data.parts.map(part => part[3]));
    const middle = slot => [(x(rows[slot][started]) + x(rows[slot][finished])) / 2, y(index) + 4];
    pointer("pointermove", ...middle(slot));
    result.tip = document.getElementById("tip").hidden ? "hidden" : document.getElementById("tip").textContent;
    click(...middle(slot));
    result.selected = document.getElementById("selected").textContent;

    // A place of the axis, where no task is.
    click(x(data.makespan_ns * 0.65), 5);
    result.clicked_moment = document.getElementById("moment-title").textContent + document.getElementById("moment").textContent;
    result.moments = Object.fromEntries([5, 15, 70, 125, 140].map(at => [at, moment(at)]));

    const px = canvas.clientWidth / 2, before = { from: view.from, to: view.to };
    const place = () => view.from + (px - 74) / (canvas.clientWidth - 74) * (view.to - view.from);
    const held = place();
    canvas.dispatchEvent(new WheelEvent("wheel", { ...at(px, 200), deltaY: -400 }));
    result.zoom = { span_before: before.to - before.from, span_after: view.to - view.from, drift: (place() - held) / (before.to - before.from) };
    const from = view.from;
    pointer("pointerdown", px, 200);
    pointer("pointermove", px - 100, 200);
    pointer("pointerup", px - 100, 200);
    result.pan = view.from - from;

    const search = document.getElementById("search");
    const type = text => { search.value = text; search.dispatchEvent(new Event("input", { bubbles: true })); };
    type("AD");
    result.search = { found: document.getElementById("matches").textContent };
    search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    result.search.after_enter = document.getElementById("matches").textContent;
    type("#2");
    result.search.by_number = view.matches;
    dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
    result.task_under_label = taskAt(10, 100);
  } catch (error) {
    result.error = `${error}\n${error.stack}`;
  }
  const pre = document.createElement("pre");
  pre.id = "result";
  pre.textContent = JSON.stringify(result);
  document.body.append(pre);
})();
