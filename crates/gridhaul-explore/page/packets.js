// The packets view: segments, acknowledgements, losses and timeouts of one connection.

import { saveCsv, saveSvg } from "./export.js";
import { digits } from "./format.js";
import { CanvasPen, LAYERS, PacketsChart, Ranges, SvgPen } from "./packets_chart.js";
import { cell } from "./scenario.js";

const byId = (id) => document.getElementById(id);

/** Rows of the table of events. */
const EVENTS_MAX = 300;

/** Starts the view. `request` makes the request for the present values of the scenario. */
export function startPackets(scenario, state, request, showFailure) {
  const view = new PacketsView(scenario, state, request, showFailure);
  window.gridhaul.packets = view;
  return view;
}

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

class PacketsView {
  constructor(scenario, state, request, showFailure) {
    Object.assign(this, { scenario, state, request, showFailure });
    this.place = `${crypto.randomUUID()}-packets`;
    this.canvas = byId("packets-canvas");
    this.drawnFor = null;
    this.makeControls();
    new ResizeObserver(() => this.schedule()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.schedule());
  }

  makeControls() {
    const names = this.scenario.flows.filter((flow) => flow.has_packets).map((flow) => flow.name);
    for (const name of names) byId("packets-flow").add(new Option(name, name));
    if (names.includes(this.state.flow)) byId("packets-flow").value = this.state.flow;
    byId("packets-flow").addEventListener("change", () => this.load());
    byId("packets-layers").replaceChildren(...Object.entries(LAYERS).map(([name, layer]) => this.layerBox(name, layer)));
    const act = (id, action) => byId(id).addEventListener("click", () => { action(); this.schedule(); });
    act("packets-in", () => this.chart?.zoom(0.5));
    act("packets-out", () => this.chart?.zoom(2));
    act("packets-left", () => this.chart?.move(-0.5));
    act("packets-right", () => this.chart?.move(0.5));
    act("packets-all", () => this.chart?.show(0, this.chart.duration));
    act("packets-loss", () => this.nextLoss());
    byId("packets-svg").addEventListener("click", () => this.saveSvg());
    byId("packets-csv").addEventListener("click", () => this.saveCsv());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("wheel", (event) => {
      if (!this.chart) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.chart.move(event.deltaX / this.canvas.clientWidth);
      else this.chart.zoom(1.0015 ** event.deltaY, this.timeAt(event.offsetX));
      this.schedule();
    }, { passive: false });
    this.pointers = new Map();
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event.offsetX);
    });
    this.canvas.addEventListener("pointermove", (event) => this.onPointer(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
  }

  layerBox(name, { colour, heading, dash }) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      this.chart?.hidden[box.checked ? "delete" : "add"](name);
      this.schedule();
    });
    const mark = { lost: "M6 2l10 10m0 -10l-10 10", acks: "M1 11h7v-8h13" }[name] ?? (dash && name !== "sack" ? "M1 7h20" : "M11 1v12");
    const dashes = dash || name === "timeouts" ? ` stroke-dasharray="${(dash ?? [3, 3]).join(" ")}"` : "";
    label.innerHTML = `<svg class="gh-chart" viewBox="0 0 22 14" aria-hidden="true"><path class="gh-s${colour}" fill="none" stroke="currentColor" stroke-width="${LAYERS[name].width ?? 2}"${dashes} d="${mark}"/></svg>`;
    label.prepend(box);
    label.append(heading);
    return label;
  }

  /** Draws the packets of the present values, which may have changed in the scenario view. */
  show() {
    const wanted = JSON.stringify([this.request(), byId("packets-flow").value]);
    if (wanted !== this.drawnFor) this.load();
    else this.schedule();
  }

  async load() {
    const { settings, seed } = this.request();
    const flow = byId("packets-flow").value;
    this.drawnFor = JSON.stringify([this.request(), flow]);
    byId("packets-status").textContent = "Simulating.";
    const body = JSON.stringify({ settings, flow, place: this.place, ...seed === undefined ? {} : { seed } });
    const response = await fetch("api/packets", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (response.status === 409) return;
    if (!response.ok) {
      byId("packets-status").textContent = "";
      this.showFailure(await response.text());
      return;
    }
    this.showFailure("");
    this.take(decode(await response.arrayBuffer()));
  }

  take({ head, arrays }) {
    this.head = head;
    const ranges = (name) => new Ranges(arrays[`${name}.time_s`], arrays[`${name}.start`], arrays[`${name}.end`]);
    const acks = ranges("acknowledgements");
    const layers = { first: ranges("first_transmissions"), retransmissions: ranges("retransmissions"), acks, window: acks, sack: ranges("sack") };
    const hidden = this.chart?.hidden;
    this.chart = new PacketsChart(layers, head.events, head.duration_s);
    if (hidden) this.chart.hidden = hidden;
    byId("packets-command").textContent = head.command;
    const count = (kind) => head.events.filter(({ event }) => event === kind).length;
    const timeouts = head.events.filter(({ event, timer }) => event === "timer_expired" && timer === "retransmission").length;
    const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
    const text = `${counted(layers.first.length, "segment")}, ${counted(layers.retransmissions.length, "retransmission")}, `
      + `${counted(acks.length, "acknowledgement")}, ${counted(count("segments_lost"), "event")} of detected losses, ${counted(timeouts, "retransmission timeout")}.`;
    byId("packets-place").textContent = `Segments are drawn when they are offered to ${head.forward}, acknowledgements when they are offered to ${head.reverse}.`;
    byId("packets-status").textContent = text;
    this.canvas.setAttribute("aria-label", `Time-sequence diagram: ${text}`);
    this.schedule();
  }

  timeAt(offset) {
    const [from, to] = this.chart.range;
    const { left, right } = this.frameOf();
    return from + (to - from) * (offset - left) / (right - left);
  }

  frameOf() { return this.chart.frame(this.canvas.clientWidth, this.canvas.clientHeight).plot; }

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
    if (!this.chart) return;
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
    chart.draw(new CanvasPen(context, colours()), width, height);
    clearTimeout(this.listing);
    this.listing = setTimeout(() => this.listEvents(), 120);
  }

  /** The events in the range as a table, which a screen reader can read. */
  listEvents() {
    const head = document.createElement("tr");
    head.append(cell("th", "time in s", "n"), cell("th", "event"), cell("th", "bytes", "n"), cell("th", "cause"));
    const events = this.chart.visibleEvents().slice(0, EVENTS_MAX);
    const rows = events.map((event) => {
      const row = document.createElement("tr");
      const bytes = event.first_seq === null ? "" : `${event.first_seq}–${event.end_seq ?? ""}`;
      const name = event.event.replaceAll("_", " ") + (event.timer ? `: ${event.timer.replaceAll("_", " ")}` : "") + (event.new ? `: ${event.new}` : "");
      row.append(cell("td", digits(event.time_s, 9), "n"), cell("td", name), cell("td", bytes, "n"), cell("td", (event.cause ?? "").replaceAll("_", " ")));
      return row;
    });
    if (!rows.length) {
      const row = document.createElement("tr");
      const none = cell("td", "none");
      none.colSpan = 4;
      row.append(none);
      rows.push(row);
    }
    byId("packets-events").tHead.replaceChildren(head);
    byId("packets-events").tBodies[0].replaceChildren(...rows);
  }

  saveSvg() {
    if (!this.chart) return;
    const pen = new SvgPen();
    this.chart.draw(pen, 1000, 560);
    const name = `packets of ${byId("packets-flow").value}`;
    saveSvg(name, pen.document(1000, 560, name), this.head.command);
  }

  /** The ranges in view, in order of layers. */
  saveCsv() {
    if (!this.chart) return;
    const [from, to] = this.chart.range;
    const columns = ["kind", "time_s", "start_byte", "end_byte"].map((name) => ({ name, values: [] }));
    const kinds = { first: "segment", retransmissions: "retransmission", acks: "acknowledgement_and_window", sack: "sack" };
    for (const [name, kind] of Object.entries(kinds)) {
      const { time, start, end } = this.chart.layers[name];
      const last = this.chart.layers[name].indexAt(to);
      for (let index = this.chart.layers[name].indexAt(from); index < last; index += 1) {
        [kind, time[index], start[index], end[index]].forEach((value, column) => columns[column].values.push(value));
      }
    }
    for (const event of this.chart.visibleEvents()) {
      [event.event, event.time_s, event.first_seq, event.end_seq].forEach((value, column) => columns[column].values.push(value));
    }
    saveCsv(`packets of ${byId("packets-flow").value}`, columns);
  }
}

/** The colours of charts on this page, which may be dark. */
function colours() {
  const style = getComputedStyle(document.querySelector(".gh-chart") ?? document.documentElement);
  const of = (name) => style.getPropertyValue(`--gh-${name}`).trim() || "#59636e";
  const all = { grid: of("grid"), weak: of("weak") };
  for (let index = 0; index < 8; index += 1) all[index] = of(`s${index}`);
  return all;
}
