// A time-sequence diagram with its buttons and keys, and a table of the events in view.

import { saveCsv, saveSvg } from "./export.js";
import { digits } from "./format.js";
import { CanvasPen, LAYERS, PacketsChart, Ranges, SvgPen } from "./packets_chart.js";
import { fillTable } from "./table.js";

/** Rows of the table of events. */
const EVENTS_MAX = 300;

/** Kinds of the ranges in a saved table, as `gridhaul explain --format packets` names them. */
const KINDS = {
  first: "segment", retransmissions: "retransmission", acks: "acknowledgement_and_window", sack: "sack",
  simulated: "simulated_acknowledgement",
};

/** The head and the arrays of an answer. */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  let offset = 4 + length;
  for (const { name, length: count } of head.arrays) {
    arrays[name] = new Float64Array(buffer, offset, count);
    offset += 8 * count;
  }
  return { head, arrays };
}

/** The layers of the arrays of an answer. */
export function layersOf(arrays, hasWindow = true) {
  const ranges = (name) => new Ranges(arrays[`${name}.time_s`], arrays[`${name}.start`], arrays[`${name}.end`]);
  const acks = ranges("acknowledgements");
  const layers = { first: ranges("first_transmissions"), retransmissions: ranges("retransmissions"), acks, sack: ranges("sack") };
  if (hasWindow) layers.window = acks;
  if (arrays["simulated_acknowledgements.time_s"]) layers.simulated = ranges("simulated_acknowledgements");
  return layers;
}

/** A number with its noun. */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export class SequenceView {
  /** Adds the diagram to a container; identifiers of its parts begin with `prefix`. */
  constructor(container, prefix) {
    container.replaceChildren(document.getElementById("sequence-template").content.cloneNode(true));
    this.parts = {};
    for (const element of container.querySelectorAll("[data-part]")) {
      element.id = `${prefix}-${element.dataset.part}`;
      this.parts[element.dataset.part] = element;
    }
    const { canvas, keys, events } = this.parts;
    canvas.setAttribute("aria-describedby", keys.id);
    events.parentElement.setAttribute("aria-labelledby", this.parts["events-heading"].id);
    this.canvas = canvas;
    this.name = prefix;
    this.command = "";
    this.hidden = new Set();
    this.makeButtons();
    this.makePointers();
    new ResizeObserver(() => this.schedule()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = null;
      this.schedule();
    });
  }

  makeButtons() {
    const act = (part, action) => this.parts[part].addEventListener("click", () => {
      if (this.chart) action();
      this.schedule();
    });
    act("in", () => this.chart.zoom(0.5));
    act("out", () => this.chart.zoom(2));
    act("left", () => this.chart.move(-0.5));
    act("right", () => this.chart.move(0.5));
    act("all", () => this.chart.show(0, this.chart.duration));
    act("loss", () => this.nextLoss());
    act("svg", () => this.saveSvg());
    act("csv", () => this.saveCsv());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  makePointers() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      if (!this.chart) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.chart.move(event.deltaX / canvas.clientWidth);
      else this.chart.zoom(1.0015 ** event.deltaY, this.timeAt(event.offsetX));
      this.schedule();
    }, { passive: false });
    this.pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event.offsetX);
    });
    canvas.addEventListener("pointermove", (event) => this.onPointer(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
  }

  /** Draws these layers. `texts`: name of files, status, place, and the command that makes the packets. */
  take({ layers, events, duration, parting = null, texts }) {
    this.chart = new PacketsChart(layers, events, duration, parting);
    this.chart.hidden = this.hidden;
    this.name = texts.name;
    this.command = texts.command;
    this.parts.command.textContent = texts.command;
    this.parts.place.textContent = texts.place;
    this.parts.status.textContent = texts.status;
    this.canvas.setAttribute("aria-label", `Time-sequence diagram: ${texts.status}`);
    const names = Object.keys(LAYERS).filter((name) => layers[name] || name === "lost" || name === "timeouts" || (name === "parting" && parting));
    this.parts.layers.replaceChildren(...names.map((name) => this.layerBox(name, LAYERS[name])));
    this.schedule();
  }

  layerBox(name, { colour, heading, dash, width = 2 }) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !this.hidden.has(name);
    box.addEventListener("change", () => {
      this.hidden[box.checked ? "delete" : "add"](name);
      this.schedule();
    });
    const isLine = dash && name !== "sack";
    const mark = { lost: "M6 2l10 10m0 -10l-10 10", acks: "M1 11h7v-8h13" }[name] ?? (isLine ? "M1 7h20" : "M11 1v12");
    const dashes = dash || name === "timeouts" ? ` stroke-dasharray="${(dash ?? [3, 3]).join(" ")}"` : "";
    label.innerHTML = `<svg class="gh-chart" viewBox="0 0 22 14" aria-hidden="true"><path class="gh-s${colour}" fill="none" stroke="currentColor" stroke-width="${width}"${dashes} d="${mark}"/></svg>`;
    label.prepend(box);
    label.append(heading);
    return label;
  }

  timeAt(offset) {
    const [from, to] = this.chart.range;
    const { left, right } = this.chart.plot(this.canvas.clientWidth, this.canvas.clientHeight);
    return from + (to - from) * (offset - left) / (right - left);
  }

  onPointer(event) {
    if (!this.chart || !this.pointers.has(event.pointerId)) return;
    const before = [...this.pointers.values()];
    const moved = event.offsetX - this.pointers.get(event.pointerId);
    this.pointers.set(event.pointerId, event.offsetX);
    const after = [...this.pointers.values()];
    if (after.length === 1) {
      this.chart.move(-moved / this.canvas.clientWidth);
    } else if (after.length === 2) {
      const gap = ([a, b]) => Math.max(20, Math.abs(a - b));
      this.chart.zoom(gap(before) / gap(after), this.timeAt((after[0] + after[1]) / 2));
    }
    this.schedule();
  }

  onKey(event) {
    if (!this.chart || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => this.chart.move(-0.2), ArrowRight: () => this.chart.move(0.2),
      "+": () => this.chart.zoom(0.5), "=": () => this.chart.zoom(0.5), "-": () => this.chart.zoom(2),
      0: () => this.chart.show(0, this.chart.duration), n: () => this.nextLoss(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    this.schedule();
  }

  /** Shows two seconds around the next loss or timeout after the middle of the view. */
  nextLoss() {
    const [from, to] = this.chart.range;
    const isWhole = to - from >= this.chart.duration * 0.999;
    const middle = isWhole ? -1 : (from + to) / 2 + 1e-6;
    const marks = this.chart.events.filter(({ event }) => event === "segments_lost" || event === "timer_expired");
    const next = marks.find(({ time_s: time }) => time > middle) ?? marks[0];
    if (next) this.chart.show(next.time_s - 1, next.time_s + 1);
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.drawFrame();
    });
  }

  drawFrame() {
    const { canvas, chart } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!chart || !width) return;
    const scale = devicePixelRatio;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    this.colours ??= chartColours();
    chart.draw(new CanvasPen(context, this.colours), width, height);
    clearTimeout(this.listing);
    this.listing = setTimeout(() => this.listEvents(), 120);
  }

  /** The events in the range as a table, which a screen reader can read. */
  listEvents() {
    const rows = this.chart.visibleEvents().slice(0, EVENTS_MAX).map((event) => {
      const bytes = event.first_seq === null ? "" : `${event.first_seq}–${event.end_seq ?? ""}`;
      const more = [event.timer, event.new].filter(Boolean).map((text) => `: ${text.replaceAll("_", " ")}`);
      return [digits(event.time_s, 9), event.event.replaceAll("_", " ") + more.join(""), bytes, (event.cause ?? "").replaceAll("_", " ")];
    });
    fillTable(this.parts.events, { headings: [["time in s"], "event", ["bytes"], "cause"], rows });
  }

  saveSvg() {
    const pen = new SvgPen();
    this.chart.draw(pen, 1000, 560);
    saveSvg(this.name, pen.document(1000, 560, this.name), this.command);
  }

  /** The ranges in view, in order of layers. */
  saveCsv() {
    const [from, to] = this.chart.range;
    const columns = ["kind", "time_s", "start_byte", "end_byte"].map((name) => ({ name, values: [] }));
    const push = (row) => row.forEach((value, column) => columns[column].values.push(value));
    for (const [name, kind] of Object.entries(KINDS)) {
      const layer = this.chart.layers[name];
      if (!layer) continue;
      const hasEnd = name !== "acks" || this.chart.layers.window;
      const last = layer.indexAt(to);
      for (let index = layer.indexAt(from); index < last; index += 1) {
        push([kind, layer.time[index], layer.start[index], hasEnd ? layer.end[index] : null]);
      }
    }
    for (const event of this.chart.visibleEvents()) push([event.event, event.time_s, event.first_seq, event.end_seq]);
    saveCsv(this.name, columns);
  }
}

/** The colours of charts on this page, which may be dark. */
function chartColours() {
  const style = getComputedStyle(document.querySelector(".gh-chart") ?? document.documentElement);
  const of = (name) => style.getPropertyValue(`--gh-${name}`).trim() || "#59636e";
  const all = { grid: of("grid"), weak: of("weak") };
  for (let index = 0; index < 8; index += 1) all[index] = of(`s${index}`);
  return all;
}
