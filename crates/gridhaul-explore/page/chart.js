// Line charts as SVG, with the colours of reports.

import { digits, prefixOf } from "./format.js";

/** Space around the plot, and its height. */
const MARGIN = { left: 58, top: 44, right: 14 };
const HEIGHT = 170;

const DASHES = { sim: "", model: "7 3", rate: "2 2.5" };

/** Markers of points by series, as in reports: circle, square, triangle, diamond. */
const MARKERS = [
  "M-3.4 0A3.4 3.4 0 1 1 3.4 0A3.4 3.4 0 1 1 -3.4 0Z", "M-3.1 -3.1H3.1V3.1H-3.1Z",
  "M0 -4.2L4 2.9H-4Z", "M0 -4.4L4.4 0L0 4.4L-4.4 0Z", "M0 4.2L4 -2.9H-4Z",
];

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** Round numbers between two values. */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const numbers = [];
  for (let n = first; n * step <= high + step * 1e-9; n += 1) numbers.push(n * step);
  return numbers;
}

/**
 * The chart. `lines`: label, colour (number of the series), style (sim, model, rate), x, y, and
 * optionally error and markers; null in y interrupts a line. `levels`: label, colour, style, y.
 */
export function lineChart({ title, description, unit, xUnit = "s", xLabel = "time", xTicks = null, lines, levels = [], width = 480 }) {
  const plot = { left: MARGIN.left, top: MARGIN.top, right: width - MARGIN.right, bottom: MARGIN.top + HEIGHT };
  const withError = (line) => line.y.map((value, index) => (value === null ? null : value + (line.error?.[index] ?? 0)));
  const known = lines.flatMap((line) => withError(line).filter((value) => value !== null));
  const largest = reduceMax([0, ...levels.map((level) => level.y)].concat(known));
  const xs = lines.flatMap((line) => [line.x[0], line.x.at(-1), ...line.x.length < 500 ? line.x : []]).filter(Number.isFinite);
  const [xLow, xHigh] = xTicks ? [-0.5, xTicks.length - 0.5] : [Math.min(...xs, xLabel === "time" ? 0 : Infinity), Math.max(...xs)];
  const [factor, prefix] = prefixOf(largest, unit);
  const yHigh = largest > 0 ? largest * 1.06 : 1;
  const atX = (x) => plot.left + (plot.right - plot.left) * (xHigh > xLow ? (x - xLow) / (xHigh - xLow) : 0.5);
  const atY = (y) => plot.bottom - (plot.bottom - plot.top) * (y / yHigh);
  const entries = [...lines, ...levels].filter((line) => line.label);
  const legend = legendOf(entries, plot);
  const height = plot.bottom + 44 + legend.height;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="gh-chart" viewBox="0 0 ${width} ${height}" role="img" font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" aria-label="${escaped(description ?? title)}">`,
    `<title>${escaped(title)}</title>`,
    `<rect class="gh-bg" width="${width}" height="${height}" fill="#ffffff"/>`,
    `<g class="gh-ink" fill="currentColor" color="#1f2328"><text x="14" y="22" font-size="14" font-weight="600">${escaped(title)}</text></g>`,
    axes({ plot, atX, atY, xLow, xHigh, yHigh: yHigh / factor, factor, unit: prefix + unit, xUnit, xLabel, xTicks }),
  ];
  for (const level of levels) {
    parts.push(`<path class="gh-s${level.colour}" fill="none" stroke="currentColor" stroke-width="1.8"${dash(level.style)} d="M${plot.left} ${atY(level.y).toFixed(1)}H${plot.right}"/>`);
  }
  for (const line of lines) parts.push(drawn(line, atX, atY));
  parts.push(legend.text, "</svg>");
  return parts.join("");
}

function reduceMax(values) {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

const dash = (style) => (DASHES[style] ? ` stroke-dasharray="${DASHES[style]}"` : "");

function drawn(line, atX, atY) {
  let path = "";
  let isOpen = false;
  line.y.forEach((value, index) => {
    if (value === null) { isOpen = false; return; }
    path += `${isOpen ? "L" : "M"}${atX(line.x[index]).toFixed(1)} ${atY(value).toFixed(1)}`;
    isOpen = true;
  });
  const thickness = line.style === "rate" ? 1 : 1.6;
  let out = `<path class="gh-s${line.colour}" fill="none" stroke="currentColor" stroke-width="${thickness}" stroke-linejoin="round"${dash(line.style)} d="${path}"/>`;
  if (line.markers) {
    const marker = MARKERS[line.colour % MARKERS.length];
    line.y.forEach((value, index) => {
      if (value === null) return;
      const [x, y] = [atX(line.x[index]).toFixed(1), atY(value).toFixed(1)];
      const error = line.error?.[index];
      if (error) out += `<path class="gh-s${line.colour}" fill="none" stroke="currentColor" d="M${x} ${atY(Math.max(0, value - error)).toFixed(1)}V${atY(value + error).toFixed(1)}"/>`;
      out += `<path class="gh-s${line.colour}" fill="currentColor" transform="translate(${x} ${y})" d="${marker}"/>`;
    });
  }
  return out;
}

function axes({ plot, atX, atY, xLow, xHigh, yHigh, factor, unit, xUnit, xLabel, xTicks }) {
  let grid = "";
  let text = "";
  for (const tick of ticks(0, yHigh, 5)) {
    const y = atY(tick * factor).toFixed(1);
    grid += `M${plot.left} ${y}H${plot.right}`;
    text += `<text x="${plot.left - 7}" y="${Number(y) + 4}" text-anchor="end">${digits(tick, 4)}</text>`;
  }
  const named = xTicks?.map((label, index) => [index, label]);
  const step = named ? Math.ceil(named.length / 8) : 1;
  const [xFactor, xPrefix] = xTicks ? [1, ""] : prefixOf(Math.abs(xHigh), xUnit);
  const numbers = named?.filter((_, index) => index % step === 0)
    ?? ticks(xLow / xFactor, xHigh / xFactor, 6).map((tick) => [tick * xFactor, digits(tick, 4)]);
  for (const [at, label] of numbers) {
    const x = atX(at).toFixed(1);
    grid += `M${x} ${plot.bottom}v5`;
    text += `<text x="${x}" y="${plot.bottom + 19}" text-anchor="middle">${escaped(label)}</text>`;
  }
  const below = xUnit || xPrefix ? `${xLabel} in ${xPrefix}${xUnit}` : xLabel;
  return `<path class="gh-grid" fill="none" stroke="currentColor" color="#e4e7eb" d="${grid}"/>`
    + `<g class="gh-weak" fill="currentColor" color="#59636e" font-size="12">${text}`
    + `<text x="${plot.left - 48}" y="${plot.top - 7}">${escaped(unit || "count or ratio")}</text>`
    + `<text x="${(plot.left + plot.right) / 2}" y="${plot.bottom + 36}" text-anchor="middle">${escaped(below)}</text></g>`;
}

/** Entries in two columns below the chart. */
function legendOf(entries, plot) {
  let text = "";
  entries.forEach((entry, index) => {
    const x = 16 + (index % 2) * (plot.right / 2);
    const y = plot.bottom + 54 + Math.floor(index / 2) * 18;
    text += `<path class="gh-s${entry.colour}" stroke="currentColor" stroke-width="2"${dash(entry.style)} d="M${x} ${y - 4}h26"/>`;
    if (entry.markers) text += `<path class="gh-s${entry.colour}" fill="currentColor" transform="translate(${x + 13} ${y - 4})" d="${MARKERS[entry.colour % MARKERS.length]}"/>`;
    text += `<text class="gh-ink" fill="currentColor" x="${x + 33}" y="${y}" font-size="12.5">${escaped(shortened(entry.label, Math.floor(plot.right / 13) - 4))}</text>`;
  });
  return { text, height: Math.ceil(entries.length / 2) * 18 + (entries.length ? 6 : 0) };
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
