// Texts of quantities, and positions of sliders.

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

/** A number with a fixed count of significant digits, without exponent and trailing zeros. */
export function digits(value, count = 3) {
  if (value === 0) return "0";
  const text = Number(value.toPrecision(count));
  return Math.abs(text) >= 1e15 || Math.abs(text) < 1e-6 ? String(text) : text.toLocaleString("en-GB", {
    maximumFractionDigits: 12, useGrouping: false,
  });
}

/** The prefix of a unit for numbers of this size. */
export function prefixOf(size, unit) {
  const isScaled = ["bit/s", "B", "s", "W", "J"].includes(unit);
  const fits = ([factor]) => size >= factor * 0.9995 && (unit !== "s" || factor <= 1) && (unit === "s" || factor >= 1);
  return (isScaled && size > 0 && PREFIXES.find(fits)) || [1, ""];
}

/** A number with its unit, such as "2.85 Mbit/s"; an en dash for unknown values. */
export function withUnit(value, unit, count = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const [factor, prefix] = prefixOf(Math.abs(value), unit);
  const space = unit === "" ? "" : " ";
  return `${digits(value / factor, count)}${space}${prefix}${unit}`;
}

/** Units of a scenario file, the largest first. */
const UNITS = {
  bit_rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  duration: [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]],
  bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  probability: [[1e-2, "%"]],
  packets: [[1, "packets"], [1, "packet"]],
};

/** A value as a scenario file has it. */
export function quantityText(kind, value) {
  if (kind === "count") return String(Math.round(value));
  if (kind === "packets") return `${Math.round(value)} ${Math.round(value) === 1 ? "packet" : "packets"}`;
  const units = UNITS[kind];
  const [factor, name] = units.find(([size]) => Math.abs(value) >= size * 0.9999999) ?? units[kind === "duration" ? 1 : units.length - 1];
  return `${digits(value / factor, 6)} ${name}`;
}

/** The value of a text, or null. */
export function quantityOf(kind, text) {
  const found = /^\s*([0-9][0-9_.eE+-]*)\s*(\S*)\s*$/.exec(text);
  if (!found) return null;
  const number = Number(found[1].replaceAll("_", ""));
  if (!Number.isFinite(number)) return null;
  if (kind === "count") return found[2] === "" ? number : null;
  const unit = UNITS[kind].find(([, name]) => name === found[2]);
  return unit ? number * unit[0] : null;
}

/** Number of positions of a slider. */
export const POSITIONS = 400;

/** The smallest value above 0 of a scale that begins with 0. */
const SMALLEST = { duration: 1e-3, probability: 1e-4 };

/** The value at a position of a slider, on a logarithmic scale, rounded to two digits. */
export function valueAt(control, position) {
  const { quantity, min, max } = control;
  if (position <= 0) return min;
  if (position >= POSITIONS) return max;
  const low = min > 0 ? min : SMALLEST[quantity] ?? 1;
  const value = low * (max / low) ** (position / POSITIONS);
  const whole = quantity === "packets" || quantity === "count" || quantity === "bytes";
  const rounded = Number(value.toPrecision(2));
  return whole ? Math.max(1, Math.round(rounded)) : rounded;
}

/** The position of a slider for a value; the end without a limit. */
export function positionOf(control, value) {
  const { quantity, min, max } = control;
  if (value === null) return POSITIONS;
  const low = min > 0 ? min : SMALLEST[quantity] ?? 1;
  if (value <= min || value < low) return 0;
  const position = Math.round(POSITIONS * Math.log(value / low) / Math.log(max / low));
  return Math.min(POSITIONS, Math.max(1, position));
}
