// A time-sequence diagram on a canvas. Each layer is a list of ranges of the stream over time; where a
// column of pixels has several, their extent is drawn, so that the time of a frame depends on the
// width of the canvas and not on the number of packets.

import { ticks } from "./chart.js";
import { digits, prefixOf } from "./format.js";

/** Ranges that are summarised by one node of the next level. */
const FAN = 16;

/** Space around the diagram, in CSS pixels. */
const MARGIN = { left: 66, right: 14, top: 14, bottom: 38 };

/** Ranges in order of time, with the extent of groups of 16, 256, ... of them. */
export class Ranges {
  constructor(time, start, end) {
    Object.assign(this, { time, start, end });
    this.levels = [{ low: start, high: end }];
    while (this.levels.at(-1).low.length > FAN) this.levels.push(summary(this.levels.at(-1)));
  }

  get length() { return this.time.length; }

  /** Index of the first range at or after a time, which is not before `low`, and probably within `step` of it. */
  indexAt(time, low = 0, step = this.time.length) {
    const count = this.time.length;
    let high = Math.min(low + step, count);
    while (high < count && this.time[high] < time) [low, high] = [high + 1, Math.min(high + 1 + step, count)];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** The lowest start and the highest end of the ranges from `first` to before `end`. */
  extent(first, end) {
    let [lowest, highest] = [Infinity, -Infinity];
    let [from, to, level] = [first, end, 0];
    for (;;) {
      const { low, high } = this.levels[level];
      const isLast = to - from <= 2 * FAN || level + 1 === this.levels.length;
      const inner = isLast ? to : Math.ceil(from / FAN) * FAN;
      const outer = isLast ? to : Math.floor(to / FAN) * FAN;
      for (let index = from; index < inner; index += 1) {
        if (low[index] < lowest) lowest = low[index];
        if (high[index] > highest) highest = high[index];
      }
      for (let index = outer; index < to; index += 1) {
        if (low[index] < lowest) lowest = low[index];
        if (high[index] > highest) highest = high[index];
      }
      if (isLast) return { low: lowest, high: highest };
      from = inner / FAN;
      to = outer / FAN;
      level += 1;
    }
  }
}

function summary({ low, high }) {
  const count = Math.ceil(low.length / FAN);
  const level = { low: new Float64Array(count).fill(Infinity), high: new Float64Array(count).fill(-Infinity) };
  for (let index = 0; index < low.length; index += 1) {
    const group = Math.floor(index / FAN);
    if (low[index] < level.low[group]) level.low[group] = low[index];
    if (high[index] > level.high[group]) level.high[group] = high[index];
  }
  return level;
}

/** Layers by name: colour, heading, and how a range is drawn. */
export const LAYERS = {
  window: { colour: 7, heading: "offered window", dash: [6, 3] },
  first: { colour: 0, heading: "segment" },
  sack: { colour: 3, heading: "SACK", dash: [2, 2] },
  acks: { colour: 2, heading: "acknowledgement" },
  retransmissions: { colour: 1, heading: "retransmission", width: 3 },
  simulated: { colour: 6, heading: "simulated acknowledgement", dash: [8, 3], width: 2 },
  lost: { colour: 6, heading: "marked lost" },
  timeouts: { colour: 4, heading: "timeout" },
  parting: { colour: 6, heading: "simulation parts" },
};

/**
 * The diagram of a trace: `layers` has the ranges by name, `timeouts` and `lost` are events, and
 * `parting` is the time at which a simulation parts from a capture.
 */
export class PacketsChart {
  constructor(layers, events, duration, parting = null) {
    Object.assign(this, { layers, events, duration, parting });
    this.hidden = new Set();
    this.range = [0, duration];
  }

  /** Shows a range of time, within the run. */
  show(from, to) {
    const width = Math.min(Math.max(to - from, 1e-5), this.duration);
    const start = Math.min(Math.max(from, 0), this.duration - width);
    this.range = [start, start + width];
  }

  zoom(factor, at = (this.range[0] + this.range[1]) / 2) {
    const [from, to] = this.range;
    this.show(at - (at - from) * factor, at + (to - at) * factor);
  }

  move(share) {
    const [from, to] = this.range;
    this.show(from + (to - from) * share, to + (to - from) * share);
  }

  /** The area of the diagram. */
  plot(width, height) {
    return { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  }

  /** The geometry of a frame: scales, and the marks of each layer. */
  frame(width, height) {
    const [from, to] = this.range;
    const plot = this.plot(width, height);
    const shown = (name) => this.layers[name] && !this.hidden.has(name);
    let [low, high] = [Infinity, -Infinity];
    for (const name of ["first", "retransmissions", "sack"]) {
      if (!shown(name)) continue;
      const ranges = this.layers[name];
      const found = ranges.extent(ranges.indexAt(from), ranges.indexAt(to));
      [low, high] = [Math.min(low, found.low), Math.max(high, found.high)];
    }
    for (const name of ["acks", "simulated"]) {
      if (!shown(name)) continue;
      const acks = this.layers[name];
      const [first, end] = [Math.max(0, acks.indexAt(from) - 1), acks.indexAt(to)];
      if (end > first) [low, high] = [Math.min(low, acks.start[first]), Math.max(high, acks.start[end - 1])];
    }
    if (!(high >= low)) [low, high] = [0, 1];
    const room = (high - low || 1460) * 0.04;
    [low, high] = [Math.max(0, low - room), high + room];
    const x = (time) => plot.left + (plot.right - plot.left) * (time - from) / (to - from);
    const y = (position) => plot.bottom - (plot.bottom - plot.top) * (position - low) / (high - low);
    const marks = {};
    for (const name of ["first", "sack", "retransmissions"]) if (shown(name)) marks[name] = this.verticals(this.layers[name], plot, x, y);
    if (shown("acks")) marks.acks = this.steps(this.layers.acks, "start", plot, x, y);
    if (shown("window")) marks.window = this.steps(this.layers.window, "end", plot, x, y);
    if (shown("simulated")) marks.simulated = this.steps(this.layers.simulated, "start", plot, x, y);
    return { plot, x, y, low, high, from, to, marks };
  }

  /** A line (x, y, y) for each range, or one for each column of pixels with several. */
  verticals(ranges, plot, x, y) {
    const [from, to] = this.range;
    const [first, end] = [ranges.indexAt(from), ranges.indexAt(to)];
    const columns = Math.max(1, Math.round(plot.right - plot.left));
    const lines = [];
    if (end - first <= 2 * columns) {
      for (let index = first; index < end; index += 1) lines.push(x(ranges.time[index]), y(ranges.start[index]), y(ranges.end[index]));
      return { verticals: lines };
    }
    let at = first;
    const step = Math.ceil((end - first) / columns);
    for (let column = 1; column <= columns && at < end; column += 1) {
      const next = Math.min(end, ranges.indexAt(from + (to - from) * column / columns, at, step));
      if (next > at) {
        const { low, high } = ranges.extent(at, next);
        lines.push(plot.left + column - 1, y(high), y(low));
      }
      at = next;
    }
    return { columns: lines };
  }

  /** A staircase: the position is valid until the next acknowledgement. Points, or a line for each column of pixels. */
  steps(ranges, side, plot, x, y) {
    const [from, to] = this.range;
    const values = ranges[side];
    const [first, end] = [Math.max(0, ranges.indexAt(from) - 1), ranges.indexAt(to)];
    const columns = Math.max(1, Math.round(plot.right - plot.left));
    const clipped = (value) => Math.min(Math.max(y(value), plot.top), plot.bottom);
    if (end - first <= 2 * columns) {
      const points = [];
      for (let index = first; index < end; index += 1) {
        const at = clipped(values[index]);
        if (points.length) points.push(Math.max(plot.left, x(ranges.time[index])), points.at(-1));
        points.push(Math.max(plot.left, x(ranges.time[index])), at);
      }
      if (points.length) points.push(plot.right, points.at(-1));
      return { points };
    }
    const lines = [];
    let [at, previous] = [first, null];
    const step = Math.ceil((end - first) / columns);
    for (let column = 0; column < columns; column += 1) {
      at = Math.min(end, ranges.indexAt(from + (to - from) * (column + 1) / columns, at, step));
      if (at === 0) continue;
      const now = clipped(values[at - 1]);
      const before = previous ?? now;
      lines.push(plot.left + column, Math.min(before, now), Math.max(before, now));
      previous = now;
    }
    return { columns: lines };
  }

  /** Events in the range. */
  visibleEvents() {
    const [from, to] = this.range;
    return this.events.filter(({ time_s: time }) => time >= from && time < to);
  }

  /** Draws a frame with a pen. */
  draw(pen, width, height) {
    const frame = this.frame(width, height);
    drawAxes(pen, frame, width, height);
    for (const [name, { colour, dash, width: thickness = 1.4 }] of Object.entries(LAYERS)) {
      const { verticals, columns, points } = frame.marks[name] ?? {};
      const style = { colour, dash, width: thickness };
      if (verticals) pen.verticals(verticals, style);
      if (columns) pen.columns(columns, style);
      if (points) pen.polyline(points, style);
    }
    this.drawEvents(pen, frame);
  }

  /** Crosses for segments that are marked lost, dashed lines for timeouts; at most one a column. */
  drawEvents(pen, { plot, x, y, low, high, from, to }) {
    const columns = new Set();
    if (this.parting !== null && !this.hidden.has("parting") && this.parting >= from && this.parting <= to) {
      const at = x(this.parting);
      const isLeft = at < plot.right - 150;
      pen.polyline([at, plot.top, at, plot.bottom], { colour: LAYERS.parting.colour, width: 1.6 });
      pen.text("simulation parts", at + (isLeft ? 4 : -4), plot.bottom - 6, isLeft ? "left" : "right");
    }
    for (const event of this.visibleEvents()) {
      const at = x(event.time_s);
      const name = event.event === "segments_lost" ? "lost" : event.event === "timer_expired" ? "timeouts" : null;
      const key = `${name} ${Math.round(at)}`;
      if (!name || this.hidden.has(name) || columns.has(key)) continue;
      columns.add(key);
      if (name === "timeouts") {
        pen.polyline([at, plot.top, at, plot.bottom], { colour: LAYERS.timeouts.colour, dash: [3, 3], width: 1.2 });
        pen.text(event.timer === "retransmission" ? "RTO" : TIMERS[event.timer] ?? "", at + 3, plot.top + 11, "left");
      } else {
        const position = event.first_seq === null ? (low + high) / 2 : Math.min(Math.max(event.first_seq, low), high);
        pen.cross(at, y(position), { colour: LAYERS.lost.colour });
      }
    }
  }
}

/** Names of timers in the diagram. */
const TIMERS = { tail_loss_probe: "TLP", reordering: "RACK", persist: "persist", retransmission_or_probe: "timer" };

function drawAxes(pen, { plot, x, y, low, high, from, to }, width, height) {
  const [bytes, bytesPrefix] = prefixOf(high, "B");
  const [seconds, secondsPrefix] = prefixOf(to - from < 0.2 && to < 10 ? to - from : Math.max(to - from, 1), "s");
  for (const tick of ticks(low / bytes, high / bytes, 6)) {
    const at = y(tick * bytes);
    pen.polyline([plot.left, at, plot.right, at], { colour: "grid", width: 1 });
    pen.text(digits(tick, 6), plot.left - 6, at + 4, "right");
  }
  for (const tick of ticks(from / seconds, to / seconds, Math.max(3, Math.floor(width / 130)))) {
    const at = x(tick * seconds);
    pen.polyline([at, plot.bottom, at, plot.bottom + 5], { colour: "grid", width: 1 });
    pen.text(digits(tick, 7), at, plot.bottom + 18, "center");
  }
  pen.text(`${bytesPrefix}B`, 4, 12, "left");
  pen.text(`time in ${secondsPrefix}s`, (plot.left + plot.right) / 2, height - 5, "center");
}

/** A pen for a canvas, whose context has the scale of CSS pixels. */
export class CanvasPen {
  constructor(context, colours) { Object.assign(this, { context, colours }); }

  stroke({ colour, dash = [], width = 1 }) {
    this.context.strokeStyle = this.colours[colour];
    this.context.setLineDash(dash);
    this.context.lineWidth = width;
    this.context.stroke();
  }

  /** Rectangles are drawn several times faster than lines. */
  verticals(numbers, style) {
    const { context } = this;
    if (!style.dash) {
      context.fillStyle = this.colours[style.colour];
      for (let index = 0; index < numbers.length; index += 3) {
        const [from, to] = [numbers[index + 2], numbers[index + 1]];
        context.fillRect(numbers[index] - style.width / 2, from, style.width, Math.max(2, to - from - 0.5));
      }
      return;
    }
    context.beginPath();
    for (let index = 0; index < numbers.length; index += 3) {
      context.moveTo(numbers[index], numbers[index + 1] + 0.5);
      context.lineTo(numbers[index], numbers[index + 2] - 0.5);
    }
    this.stroke(style);
  }

  /** Extents of columns of pixels: whole pixels need no smoothing, and dashes are columns that are left out. */
  columns(numbers, { colour, dash }) {
    const { context } = this;
    context.fillStyle = this.colours[colour];
    const [on, off] = dash ?? [1, 0];
    for (let index = 0; index < numbers.length; index += 3) {
      const x = Math.round(numbers[index]);
      if (x % (on + off) >= on) continue;
      const top = Math.floor(numbers[index + 1]);
      context.fillRect(x, top, 1, Math.max(2, Math.ceil(numbers[index + 2]) - top));
    }
  }

  polyline(points, style) {
    const { context } = this;
    context.beginPath();
    for (let index = 0; index < points.length; index += 2) context.lineTo(points[index], points[index + 1]);
    this.stroke(style);
  }

  cross(x, y, style) {
    this.context.beginPath();
    for (const [a, b] of [[-4, -4], [-4, 4]]) { this.context.moveTo(x + a, y + b); this.context.lineTo(x - a, y - b); }
    this.stroke({ ...style, width: 1.8 });
  }

  text(text, x, y, align) {
    const { context } = this;
    context.fillStyle = this.colours.weak;
    context.font = "12px Helvetica, Arial, sans-serif";
    context.textAlign = align;
    context.fillText(text, x, y);
  }
}

/** A pen for a file. */
export class SvgPen {
  constructor() { this.parts = []; }

  path(d, { colour, dash = [], width = 1 }) {
    const name = colour === "grid" ? "gh-grid" : `gh-s${colour}`;
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<path class="${name}" fill="none" stroke="currentColor" stroke-width="${width}"${dashes} d="${d}"/>`);
  }

  verticals(numbers, style) {
    let d = "";
    for (let index = 0; index < numbers.length; index += 3) {
      d += `M${numbers[index].toFixed(1)} ${(numbers[index + 1] + 0.5).toFixed(1)}V${(numbers[index + 2] - 0.5).toFixed(1)}`;
    }
    this.path(d, style);
  }

  columns(numbers, { colour, dash }) {
    const [on, off] = dash ?? [1, 0];
    let d = "";
    for (let index = 0; index < numbers.length; index += 3) {
      if (Math.round(numbers[index]) % (on + off) >= on) continue;
      d += `M${(numbers[index] + 0.5).toFixed(1)} ${(numbers[index + 1] - 0.5).toFixed(1)}V${(numbers[index + 2] + 0.5).toFixed(1)}`;
    }
    this.path(d, { colour, width: 1 });
  }

  polyline(points, style) {
    let d = "";
    for (let index = 0; index < points.length; index += 2) d += `${index ? "L" : "M"}${points[index].toFixed(1)} ${points[index + 1].toFixed(1)}`;
    this.path(d, style);
  }

  cross(x, y, style) {
    this.path(`M${(x - 4).toFixed(1)} ${(y - 4).toFixed(1)}l8 8m0 -8l-8 8`, { ...style, width: 1.8 });
  }

  text(text, x, y, align) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    this.parts.push(`<text class="gh-weak" fill="currentColor" font-size="12" x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${text}</text>`);
  }

  document(width, height, title) {
    return `<svg xmlns="http://www.w3.org/2000/svg" class="gh-chart" viewBox="0 0 ${width} ${height}" font-family="Helvetica, Arial, sans-serif">`
      + `<title>${title}</title><rect class="gh-bg" width="${width}" height="${height}" fill="#ffffff"/>${this.parts.join("")}</svg>`;
  }
}
