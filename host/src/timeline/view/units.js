// Times as people read them: with three digits, exactly, or as an offset from a reference.
const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
const unitOf = ns => UNITS.find(([, size]) => Math.abs(ns) >= size) ?? UNITS[UNITS.length - 1];

// With three digits and a unit that fits.
function time(ns) {
  const [unit, size] = unitOf(ns), value = ns / size;
  return `${unit === "ns" ? Math.round(value) : value.toPrecision(Math.abs(value) >= 1000 ? 4 : 3)} ${unit}`;
}

// With every nanosecond: 12.345678 ms.
function exactTime(ns) {
  const [unit, size] = unitOf(ns);
  return `${Number((Math.round(ns) / size).toFixed(9))} ${unit}`;
}

// With the decimals that neighbours `step` apart need to differ, and a sign.
function offset(ns, step, [unit, size]) {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${ns < 0 ? "\u2212" : "+"}${(Math.abs(ns) / size).toFixed(decimals)} ${unit}`;
}

const share = (part, whole) => whole > 0 ? `${(part * 100 / whole).toFixed(1)} %` : "-";
const change = (before, after) => before > 0 ? `${after >= before ? "+" : "\u2212"}${(Math.abs(after - before) * 100 / before).toFixed(1)} %` : "-";
const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
