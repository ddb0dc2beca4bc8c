// The table of kernels, over the whole run or the selected range, of one run or of two.
const COLUMNS = [["kernel", "kernel"], ["runs", "runs"], ["total", "time"], ["share", "share"], ["median", "median"], ["max", "max"], ["wait", "wait"]];
const MEANINGS = {
  kernel: "its name", runs: "how often it ran to its end, with any part inside the range", total: "core time in it, inside the range", share: "of the time in all kernels",
  median: "half of the runs are not longer", max: "the longest run", wait: "from ready to started, on average",
};

class KernelTable {
  // `changed` is called when the user sorts the table; `find` with a kernel's name when the user clicks one.
  constructor(state, hues, changed, find) { Object.assign(this, { state, hues, changed, find }); }

  // The rows, in order: a kernel, and what each run spent in it (undefined: nothing).
  rows() {
    const { column, rising } = this.state.sort;
    const lists = this.state.runs.map(run => {
      const list = totalsOf(run, ...this.state.tabled(run)), all = list.reduce((sum, row) => sum + row.total, 0);
      return new Map(list.map(row => [row.kernel, { ...row, share: all > 0 ? row.total / all : 0 }]));
    });
    const names = [...new Set(lists.flatMap(list => [...list.keys()]))];
    const rows = names.map(kernel => ({ kernel, runs: lists.map(list => list.get(kernel)) }));
    const value = row => column === "kernel" ? row.kernel : (row.runs.find(run => run)?.[column] ?? 0);
    const order = (a, b) => value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0;
    return rows.sort((a, b) => (rising ? order(a, b) : order(b, a)) || a.kernel.localeCompare(b.kernel));
  }

  make() {
    const two = this.state.runs.length > 1, made = element("table");
    made.className = "kernels";
    const columns = two ? COLUMNS.filter(([name]) => ["kernel", "runs", "total", "median"].includes(name)) : COLUMNS;
    made.append(element("tr", undefined, ...columns.map(column => this.head(column)), ...(two ? [element("th", "change")] : [])));
    for (const { kernel, runs } of this.rows()) {
      const cells = columns.slice(1).map(([column]) => cellOf(runs, column));
      if (two) cells.push(element("td", runs[0] && runs[1] ? change(runs[0].total, runs[1].total) : "-"));
      made.append(element("tr", undefined, this.nameCell(kernel), ...cells));
    }
    return made;
  }

  head([column, text]) {
    const { sort } = this.state, head = element("th");
    const mark = sort.column === column ? (sort.rising ? " \u25B4" : " \u25BE") : "";
    const button = action(text + mark, () => {
      this.state.sort = { column, rising: sort.column === column ? !sort.rising : column === "kernel" };
      this.changed();
    });
    button.title = MEANINGS[column];
    head.append(button);
    return head;
  }

  nameCell(kernel) {
    const named = legendKey(this.hues.get(kernel), "");
    named.append(action(kernel, () => this.find(kernel)));
    return element("td", undefined, named);
  }
}

// What a column says of each run, a line each.
function cellOf(runs, column) {
  const texts = { runs: row => row.runs.toLocaleString("en"), share: row => share(row.share, 1) };
  const text = texts[column] ?? (row => time(row[column]));
  const cell = element("td");
  runs.forEach((row, index) => cell.append(...(index ? [element("br")] : []), row ? text(row) : "-"));
  return cell;
}
