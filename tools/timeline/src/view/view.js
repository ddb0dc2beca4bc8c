"use strict";
// The timeline of one run on a canvas. Data: see html.rs. No library, no request.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [FUNC, KIND, CORE, SCHEDULER, ADDED, PUBLISHED, READY, DISPATCHED, STARTED, FINISHED, COMPLETED] =
    data.task_columns.map((_, index) => index);
  const KINDS = ["aic", "aiv"];
  // Behind the tasks, the parts of those that have several: `tasks[i]` is what ran, `owner(i)` the task, `block(i)` its block.
  const count = data.tasks.length, tasks = data.tasks.concat(data.parts.map(part => part[3])), end = Math.max(data.makespan_ns, 1);
  const owner = run => run < count ? run : data.parts[run - count][0];
  const block = run => run < count ? "" : `.${data.parts[run - count][1]}`;
  const skipped = new Set(data.skipped);
  const hasParts = new Set(data.parts.map(part => part[0]));
  const byId = id => document.getElementById(id);
  const canvas = byId("lanes"), context = canvas.getContext("2d"), tip = byId("tip");
  const LABEL = 74, AXIS = 24, LANE_MIN = 9, LANE_MAX = 22;

  // ---- what there is ------------------------------------------------------------------------------------
  const ordinal = {}, coreNames = data.cores.map(kind => `${kind} ${(ordinal[kind] = (ordinal[kind] ?? -1) + 1)}`);
  const lanes = [];
  for (let instance = 0; instance < data.instances; instance++)
    lanes.push({ name: `aicpu ${instance}`, instance, marks: [] });
  const firstCore = lanes.length;
  data.cores.forEach((kind, core) => lanes.push({ name: coreNames[core], core, kind, tasks: [] }));
  tasks.forEach((task, slot) => {
    if (task[STARTED] >= 0 && task[CORE] >= 0 && !hasParts.has(slot)) lanes[firstCore + task[CORE]].tasks.push(slot);
    if (slot >= count) return;
    if (task[ADDED] >= 0 && data.instances) lanes[0].marks.push([task[ADDED], slot, 0]);
    const by = task[SCHEDULER] >= 0 && task[SCHEDULER] < data.instances ? lanes[task[SCHEDULER]] : null;
    if (by && task[DISPATCHED] >= 0) by.marks.push([task[DISPATCHED], slot, 1]);
    if (by && task[COMPLETED] >= 0) by.marks.push([task[COMPLETED], slot, skipped.has(slot) ? 3 : 2]);
  });
  for (const lane of lanes) {
    lane.tasks?.sort((a, b) => tasks[a][STARTED] - tasks[b][STARTED]);
    lane.marks?.sort((a, b) => a[0] - b[0]);
  }
  const producers = data.tasks.map(() => []), consumers = data.tasks.map(() => []);
  for (let i = 0; i < data.edges.length; i += 2) {
    producers[data.edges[i + 1]].push(data.edges[i]);
    consumers[data.edges[i]].push(data.edges[i + 1]);
  }
  const chain = new Set(data.chain);
  const funcs = Object.keys(data.kernels).map(Number);
  const colour = func => data.colours[Math.max(funcs.indexOf(func), 0) % data.colours.length];
  const colours = Object.fromEntries(funcs.map(func => [func, colour(func)]));
  const kernel = slot => data.kernels[tasks[slot][FUNC]] ?? `func ${tasks[slot][FUNC]}`;
  const began = slot => tasks[slot][skipped.has(slot) ? COMPLETED : STARTED];
  const endOf = slot => tasks[slot][FINISHED] >= 0 ? tasks[slot][FINISHED] : end;

  // ---- what is shown ------------------------------------------------------------------------------------
  const view = { from: 0, to: end, top: 0, selected: -1, moment: -1, matches: [], match: -1, matching: new Set() };
  let width = 0, height = 0, laneHeight = LANE_MAX;
  const x = at => LABEL + (at - view.from) / (view.to - view.from) * (width - LABEL);
  const timeAt = px => view.from + (px - LABEL) / (width - LABEL) * (view.to - view.from);
  const y = lane => AXIS + lane * laneHeight - view.top;
  const laneAt = py => Math.floor((py - AXIS + view.top) / laneHeight);

  const time = ns => {
    const [value, unit] = ns >= 1e9 ? [ns / 1e9, "s"] : ns >= 1e6 ? [ns / 1e6, "ms"] : ns >= 1e3 ? [ns / 1e3, "us"] : [ns, "ns"];
    return `${unit === "ns" ? Math.round(value) : value.toPrecision(value >= 1000 ? 4 : 3)} ${unit}`;
  };

  function resize() {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    [width, height] = [box.width, box.height];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    laneHeight = Math.min(LANE_MAX, Math.max(LANE_MIN, Math.floor((height - AXIS) / Math.max(lanes.length, 1))));
    clamp();
    draw();
  }

  function clamp() {
    const span = Math.min(Math.max(view.to - view.from, 20), end * 1.02);
    view.from = Math.min(Math.max(view.from, -end * 0.01), end * 1.01 - span);
    view.to = view.from + span;
    view.top = Math.max(0, Math.min(view.top, lanes.length * laneHeight - (height - AXIS)));
  }

  // The first task of a lane that ends after a time.
  function firstVisible(list, at) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endOf(list[middle]) < at) low = middle + 1; else high = middle;
    }
    return low;
  }

  let pending = false;
  function draw() {
    if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; paint(); }); }
  }

  function paint() {
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    lanes.forEach((lane, index) => {
      const top = y(index);
      if (top + laneHeight < AXIS || top > height) return;
      context.fillStyle = index % 2 ? "#fafbfc" : "#f3f5f7";
      context.fillRect(LABEL, top, width - LABEL, laneHeight - 1);
      if (lane.tasks) paintTasks(lane, top); else paintMarks(lane, top);
    });
    if (byId("chain").checked) paintChain();
    if (byId("edges").checked && view.selected >= 0) paintEdges(view.selected);
    paintFault();
    paintMoment();
    paintLabels();
    paintAxis();
  }

  // The core and the task that ended the run.
  function paintFault() {
    if (!data.fault) return;
    context.strokeStyle = "#d1242f";
    context.lineWidth = 2;
    if (data.fault.core !== null) context.strokeRect(LABEL, y(firstCore + data.fault.core), width - LABEL - 1, laneHeight - 1);
    for (const lane of lanes) {
      for (const slot of lane.tasks ?? []) {
        if (owner(slot) !== data.fault.task) continue;
        const left = x(tasks[slot][STARTED]), right = x(endOf(slot));
        context.strokeRect(left, y(firstCore + lane.core) + 1, Math.max(right - left, 3), laneHeight - 3);
      }
    }
  }

  function paintTasks(lane, top) {
    const list = lane.tasks, dim = view.matching.size > 0;
    let last = -Infinity;
    for (let i = firstVisible(list, view.from); i < list.length; i++) {
      const slot = list[i], task = tasks[slot];
      if (task[STARTED] > view.to) break;
      const left = x(task[STARTED]), right = Math.max(x(endOf(slot)), left + 1);
      // Below a pixel, one of a pixel's tasks stands for all; those that matter are always drawn.
      const matters = owner(slot) === view.selected || view.matching.has(owner(slot));
      if (right <= last + 0.5 && !matters) continue;
      last = right;
      context.globalAlpha = dim && !view.matching.has(owner(slot)) ? 0.25 : 1;
      context.fillStyle = colours[task[FUNC]] ?? "#888";
      context.fillRect(Math.max(left, LABEL), top + 1, right - Math.max(left, LABEL), laneHeight - 3);
      if (right - left > 40 && laneHeight > 11) {
        context.save();
        context.beginPath();
        context.rect(Math.max(left, LABEL), top, right - Math.max(left, LABEL) - 2, laneHeight);
        context.clip();
        context.fillStyle = "#fff";
        context.fillText(`${kernel(slot)} #${owner(slot)}${block(slot)}`, Math.max(left, LABEL) + 3, top + laneHeight / 2);
        context.restore();
      }
      context.globalAlpha = 1;
      if (owner(slot) === view.selected) {
        context.strokeStyle = "#000";
        context.lineWidth = 2;
        context.strokeRect(left, top + 1, right - left, laneHeight - 3);
      }
    }
  }

  const MARKS = ["#8250df", "#1f883d", "#9a6700", "#6e7781"];
  function paintMarks(lane, top) {
    let last = -1;
    for (const [at, , what] of lane.marks) {
      if (at < view.from) continue;
      if (at > view.to) break;
      const px = Math.round(x(at));
      if (px === last) continue;
      last = px;
      context.fillStyle = MARKS[what];
      context.fillRect(px, top + 2, 1, laneHeight - 5);
    }
  }

  function paintChain() {
    context.strokeStyle = "#d00";
    context.lineWidth = 2;
    context.beginPath();
    let begun = false;
    for (const slot of data.chain) {
      const task = tasks[slot];
      if (task[STARTED] < 0 || task[CORE] < 0) continue;
      const middle = y(firstCore + task[CORE]) + laneHeight / 2;
      if (begun) context.lineTo(x(task[STARTED]), middle); else context.moveTo(x(task[STARTED]), middle);
      context.lineTo(x(endOf(slot)), middle);
      begun = true;
    }
    context.stroke();
  }

  function paintEdges(slot) {
    const arrow = (from, to, colour) => {
      if (tasks[from][STARTED] < 0 || tasks[to][STARTED] < 0) return;
      const [x0, x1] = [x(endOf(from)), x(tasks[to][STARTED])];
      const [y0, y1] = [from, to].map(end => y(firstCore + tasks[end][CORE]) + laneHeight / 2);
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 1.2;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + 30, y0, x1 - 30, y1, x1, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 6, y1 - 3);
      context.lineTo(x1 - 6, y1 + 3);
      context.fill();
    };
    producers[slot].forEach(producer => arrow(producer, slot, "#0550ae"));
    consumers[slot].forEach(consumer => arrow(slot, consumer, "#1a7f37"));
  }

  function paintMoment() {
    if (view.moment < 0) return;
    context.fillStyle = "#000";
    context.fillRect(x(view.moment), 0, 1, height);
  }

  function paintLabels() {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, LABEL, height);
    context.fillStyle = "#1b1f24";
    lanes.forEach((lane, index) => {
      const top = y(index);
      if (top + laneHeight > AXIS && top < height) context.fillText(lane.name, 6, top + laneHeight / 2);
    });
  }

  function paintAxis() {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, width, AXIS);
    const span = view.to - view.from, rough = span / Math.max(1, (width - LABEL) / 110);
    const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
    for (let at = Math.ceil(Math.max(view.from, 0) / step) * step; at <= view.to; at += step) {
      context.fillStyle = "#d8dee4";
      context.fillRect(x(at), AXIS - 6, 1, height);
      context.fillStyle = "#57606a";
      context.fillText(time(at), x(at) + 3, AXIS / 2);
    }
  }

  // ---- what is asked ------------------------------------------------------------------------------------
  function taskAt(px, py) {
    const lane = lanes[laneAt(py)];
    if (!lane?.tasks || px < LABEL || py < AXIS) return -1;
    const slack = (view.to - view.from) / (width - LABEL), at = timeAt(px);
    for (let i = firstVisible(lane.tasks, at - slack); i < lane.tasks.length; i++) {
      const slot = lane.tasks[i];
      if (tasks[slot][STARTED] > at + slack) break;
      if (endOf(slot) >= at - slack) return slot;
    }
    return -1;
  }

  // Why a task had not started at a time: the first thing that had not happened.
  function waitedFor(slot, at) {
    const task = tasks[slot], later = column => task[column] < 0 || task[column] > at;
    if (later(ADDED) && task[ADDED] >= 0) return { why: "builder", text: "not added yet: the builder" };
    if (later(PUBLISHED) && task[PUBLISHED] >= 0) return { why: "builder", text: "not published yet: the builder" };
    if (later(READY)) {
      const before = producers[owner(slot)], open = before.filter(producer => endOf(producer) > at);
      if (open.length) return { why: "producers", tasks: open, text: "producers that had not finished" };
      return { why: "polling", tasks: before, text: "its scheduler had not seen that the producers had finished" };
    }
    if (later(DISPATCHED)) return { why: "overhead", text: "ready, not dispatched: scheduler overhead" };
    return { why: "staged", text: "dispatched, not started" };
  }

  // What each core that ran no kernel at a time waited for: the task that it ran next, and what that lacked.
  function moment(at) {
    const idle = [];
    for (const lane of lanes) {
      if (!lane.tasks) continue;
      const next = lane.tasks[firstVisible(lane.tasks, at)] ?? -1;
      if (next >= 0 && tasks[next][STARTED] <= at && endOf(next) >= at) continue;
      if (next < 0) idle.push({ core: lane.name, task: -1, why: "nothing", text: "nothing: it ran no further task" });
      else idle.push({ core: lane.name, task: owner(next), ...waitedFor(next, at) });
    }
    return idle;
  }

  function search(text) {
    const wanted = text.trim().toLowerCase();
    view.matches = [];
    if (/^#?\d+$/.test(wanted)) {
      const slot = Number(wanted.replace("#", ""));
      if (data.tasks[slot]) view.matches = [slot];
    } else if (wanted) {
      data.tasks.forEach((task, slot) => { if ((task[STARTED] >= 0 || skipped.has(slot)) && kernel(slot).toLowerCase().includes(wanted)) view.matches.push(slot); });
      view.matches.sort((a, b) => began(a) - began(b));
    }
    view.matching = new Set(view.matches);
    view.match = -1;
    byId("matches").textContent = wanted ? `${view.matches.length} found` : "";
    draw();
  }

  function step(by) {
    if (!view.matches.length) return;
    view.match = (view.match + by + view.matches.length) % view.matches.length;
    byId("matches").textContent = `${view.match + 1} of ${view.matches.length}`;
    goTo(view.matches[view.match]);
  }

  function goTo(slot) {
    select(slot);
    if (tasks[slot][STARTED] < 0 || tasks[slot][CORE] < 0) return;
    const [from, to] = [tasks[slot][STARTED], endOf(slot)], span = view.to - view.from;
    if (from < view.from || to > view.to || (to - from) / span < 0.002) {
      const wide = Math.min(span, Math.max(20 * (to - from), 200));
      [view.from, view.to] = [(from + to - wide) / 2, (from + to + wide) / 2];
    }
    const top = (firstCore + tasks[slot][CORE]) * laneHeight;
    if (top < view.top || top + laneHeight > view.top + height - AXIS) view.top = top - (height - AXIS) / 2;
    clamp();
    draw();
  }

  // ---- what is told -------------------------------------------------------------------------------------
  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
  };
  const link = slot => {
    const made = element("a", `#${slot} ${kernel(slot)}`);
    made.onclick = () => goTo(slot);
    return made;
  };
  const links = slots => {
    const made = element("span");
    slots.slice(0, 12).forEach((slot, index) => made.append(index ? ", " : "", link(slot)));
    if (slots.length > 12) made.append(` and ${slots.length - 12} more`);
    return made;
  };
  const table = rows => {
    const made = element("table");
    for (const [name, value] of rows) {
      const cell = element("td");
      cell.append(value);
      made.append(element("tr", undefined, element("td", name), cell));
    }
    return made;
  };

  function waits(slot) {
    const task = tasks[slot], known = (from, to) => task[from] >= 0 && task[to] >= 0;
    const rows = [];
    const span = (name, from, to) => { if (known(from, to)) rows.push([name, time(task[to] - task[from])]); };
    span("published to ready", PUBLISHED, READY);
    span("ready to dispatched", READY, DISPATCHED);
    span("dispatched to started", DISPATCHED, STARTED);
    span("in the kernel", STARTED, FINISHED);
    span("finished to seen", FINISHED, COMPLETED);
    return rows;
  }

  function select(slot) {
    view.selected = slot;
    const box = byId("selected");
    box.replaceChildren();
    if (slot < 0) { box.textContent = "Click a task."; return draw(); }
    const task = tasks[slot], rows = [["task", `#${slot} ${kernel(slot)}`]];
    const parts = data.parts.filter(part => part[0] === slot);
    if (parts.length) rows.push(["parts", `${parts.length} in ${new Set(parts.map(part => part[1])).size} blocks, the last one on ${coreNames[task[CORE]]}`]);
    else if (task[CORE] >= 0) rows.push(["core", coreNames[task[CORE]]]);
    if (task[SCHEDULER] >= 0) rows.push([skipped.has(slot) ? "skipped by" : "dispatched by", `aicpu ${task[SCHEDULER]}`]);
    if (task[STARTED] >= 0) rows.push(["started at", time(task[STARTED])]);
    if (skipped.has(slot)) rows.push(["skipped at", `${time(task[COMPLETED])}: its predicate was false`]);
    rows.push(...waits(slot), ["critical chain", chain.has(slot) ? "yes" : "no"]);
    rows.push(["producers", producers[slot].length ? links(producers[slot]) : "none"]);
    rows.push(["consumers", consumers[slot].length ? links(consumers[slot]) : "none"]);
    box.append(table(rows));
    draw();
  }

  function showMoment(at) {
    view.moment = at;
    const idle = moment(at), box = byId("moment");
    const cores = lanes.length - firstCore;
    byId("moment-title").textContent = `At ${time(at)}: ${idle.length} of ${cores} cores idle`;
    box.replaceChildren();
    const rows = idle.map(core => {
      const told = element("span");
      if (core.task >= 0) told.append(link(core.task), ": ");
      const why = element("span", core.text);
      if (core.why === "overhead") why.className = "overhead";
      told.append(why);
      if (core.tasks?.length) told.append(" ", links(core.tasks));
      return [core.core, told];
    });
    box.append(table(rows));
    draw();
  }

  // ---- what a user does ---------------------------------------------------------------------------------
  function zoom(factor, px) {
    const at = timeAt(px);
    view.from = at - (at - view.from) * factor;
    view.to = at + (view.to - at) * factor;
    clamp();
    draw();
  }
  function pan(share) {
    const by = (view.to - view.from) * share;
    view.from += by;
    view.to += by;
    clamp();
    draw();
  }
  function whole() {
    [view.from, view.to, view.top] = [-end * 0.01, end * 1.01, 0];
    clamp();
    draw();
  }

  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.shiftKey) { view.top += event.deltaY || event.deltaX; clamp(); draw(); }
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else zoom(Math.exp(event.deltaY * 0.0015), Math.max(event.offsetX, LABEL));
  }, { passive: false });

  let drag = null;
  canvas.addEventListener("pointerdown", event => {
    drag = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: view.top, moved: false };
    // A pointer that a test makes up cannot be captured.
    try { canvas.setPointerCapture(event.pointerId); } catch { /* it still drags */ }
  });
  canvas.addEventListener("pointermove", event => {
    if (drag) {
      const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
      drag.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
      if (!drag.moved) return;
      const by = dx / (width - LABEL) * (drag.to - drag.from);
      [view.from, view.to, view.top] = [drag.from - by, drag.to - by, drag.top - dy];
      canvas.classList.add("dragging");
      tip.hidden = true;
      clamp();
      return draw();
    }
    hover(event);
  });
  canvas.addEventListener("pointerup", event => {
    const wasClick = drag && !drag.moved;
    drag = null;
    canvas.classList.remove("dragging");
    if (!wasClick) return;
    const slot = taskAt(event.offsetX, event.offsetY);
    if (slot >= 0) select(owner(slot));
    else if (event.offsetX > LABEL) showMoment(Math.min(Math.max(timeAt(event.offsetX), 0), end));
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", event => {
    const slot = taskAt(event.offsetX, event.offsetY);
    if (slot < 0) return;
    const wide = 6 * (endOf(slot) - tasks[slot][STARTED]) + 20, middle = (endOf(slot) + tasks[slot][STARTED]) / 2;
    [view.from, view.to] = [middle - wide / 2, middle + wide / 2];
    clamp();
    draw();
  });

  function hover(event) {
    const slot = taskAt(event.offsetX, event.offsetY);
    tip.hidden = slot < 0;
    if (slot < 0) return;
    const task = owner(slot), part = block(slot) && `, block ${block(slot).slice(1)}`;
    const lines = [`${kernel(slot)} #${task}${part} on ${coreNames[tasks[slot][CORE]]}`];
    lines.push(...waits(slot).map(([name, value]) => `${name}: ${value}`));
    lines.push(`${producers[task].length} producers, ${consumers[task].length} consumers`);
    tip.textContent = lines.join("\n");
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 260)}px`;
    tip.style.top = `${Math.min(event.clientY + 12, innerHeight - 150)}px`;
  }

  byId("search").addEventListener("input", event => search(event.target.value));
  byId("search").addEventListener("keydown", event => { if (event.key === "Enter") step(event.shiftKey ? -1 : 1); });
  byId("next").onclick = () => step(1);
  byId("previous").onclick = () => step(-1);
  byId("whole").onclick = whole;
  byId("chain").onchange = byId("edges").onchange = draw;
  addEventListener("resize", resize);
  addEventListener("keydown", event => {
    if (event.target instanceof HTMLInputElement && event.target.type === "search") return;
    const middle = (width + LABEL) / 2;
    const keys = {
      "+": () => zoom(0.7, middle), "=": () => zoom(0.7, middle), "-": () => zoom(1.4, middle), "0": whole,
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      ArrowUp: () => { view.top -= 60; clamp(); draw(); }, ArrowDown: () => { view.top += 60; clamp(); draw(); },
      Escape: () => { select(-1); view.moment = -1; draw(); }, "/": () => byId("search").focus(),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  // ---- the page -----------------------------------------------------------------------------------------
  byId("facts").textContent = `${count} tasks, ${data.edges.length / 2} edges, ${time(end)}, ${data.summary}`;
  if (data.fault) {
    const box = byId("fault");
    box.hidden = false;
    box.append(element("strong", `Ended by the fault ${data.fault.text}. `), `${data.fault.sentence} ${data.fault.remedy} `);
    if (data.fault.task !== null) box.append(link(data.fault.task));
  }
  byId("run").append(table(Object.entries(data.run)));
  if (skipped.size) byId("run").append(element("p", `${skipped.size} tasks were skipped, because their predicates were false.`));
  if (data.dropped) byId("run").append(element("p", `${data.dropped} events were dropped: the picture is incomplete.`));
  const key = (shade, text) => {
    const made = element("div"), mark = element("span");
    mark.className = "key";
    mark.style.background = shade;
    made.append(mark, text);
    return made;
  };
  byId("legend").append(
    ...funcs.map(func => key(colours[func], data.kernels[func])),
    key("#d00", "critical chain: what the last task waited for"),
    key(MARKS[0], "task added"), key(MARKS[1], "task dispatched"), key(MARKS[2], "end seen by its scheduler"),
    ...(skipped.size ? [key(MARKS[3], "task skipped")] : []));
  whole();
  resize();
  // For whoever scripts the page.
  window.timeline = { view, moment, search, goTo, taskAt, time, paint, x, y, lanes };
})();
