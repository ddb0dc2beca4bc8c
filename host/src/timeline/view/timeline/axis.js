// The axis: ticks at round places. Where times from zero would need many digits, ticks are offsets from a reference.

const PIXELS_A_TICK = 92;
// Digits of a tick from zero, at most; beyond them, the axis names a reference and ticks tell the offset from it.
const DIGITS = 3;

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(n => n * power).find(n => n >= rough * 0.999);
}

// The ticks between two times on so many pixels. `chosen`: a reference that the user asked for, or null.
function axisOf(from, to, pixels, chosen) {
  const step = Math.max(1, roundStep((to - from) / Math.max(1, pixels / PIXELS_A_TICK)));
  const digits = Math.log10(Math.max(Math.abs(from), Math.abs(to), 1) / step);
  const coarse = 10 ** Math.ceil(Math.log10(to - from));
  const needed = digits > DIGITS ? Math.floor(Math.max(from, 0) / coarse) * coarse : 0;
  const reference = chosen ?? needed;
  const unit = unitOf(Math.max(Math.abs(from - reference), Math.abs(to - reference)));
  const ticks = [];
  const isOffset = chosen !== null || reference > 0;
  const first = Math.ceil((from - reference) / step);
  for (let n = isOffset ? first : Math.max(first, 0); reference + n * step <= to; n++) {
    const label = offset(n * step, step, unit);
    ticks.push({ at: reference + n * step, label: isOffset ? label : label.replace("+", "") });
  }
  return { reference: isOffset ? reference : null, step, unit, ticks };
}
