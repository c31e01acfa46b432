// The capture view: the connections of a capture, what limits each, its packets, and the simulation of the same load.

import * as address from "./address.js";
import { lineChart } from "./chart.js";
import { copy, figure, save } from "./export.js";
import { withUnit } from "./format.js";
import { SequenceView, counted, decode, layersOf } from "./sequence_view.js";
import { ask } from "./service.js";
import { cell, fillTable } from "./table.js";

const byId = (id) => document.getElementById(id);

/** Rows of the list: more are not read by anyone, and the export has all. */
const ROWS_MAX = 500;

/** Starts the view. */
export async function startCapture(capture, state, showFailure) {
  const view = new CaptureView(capture, state, showFailure);
  // For tests.
  window.gridhaul = view;
  await view.start();
}

/** The answer to a request; null if a later one has replaced it. */
async function posted(path, body) {
  const response = await ask(path, { body });
  if (response.status === 409) return null;
  if (!response.ok) throw new Error(await response.text());
  return response;
}

class CaptureView {
  constructor(capture, state, showFailure) {
    Object.assign(this, { capture, state, showFailure });
    this.place = crypto.randomUUID();
    this.diagram = new SequenceView(byId("capture-diagram"), "capture");
    /** The latest comparison, and the request for it. */
    this.comparison = null;
    this.simulation = null;
  }

  get chart() { return this.diagram.chart; }

  async start() {
    const { capture, state } = this;
    byId("capture-summary").textContent = `${counted(capture.count, "TCP connection")} and ${counted(capture.segments, "segment")} in ${withUnit(capture.duration_s, "s")}.`;
    byId("capture-notes").replaceChildren(...capture.notes.map((note) => cell("li", note)));
    byId("capture-command").textContent = capture.command;
    const limits = [...new Set(capture.connections.map((connection) => connection.limit_noun))].sort();
    for (const limit of ["all", ...limits]) byId("capture-limit").add(new Option(limit, limit));
    byId("capture-limit").addEventListener("change", () => this.list());
    byId("capture-address").addEventListener("input", () => this.list());
    byId("capture-csv").addEventListener("click", () => this.saveConnections());
    this.startSimulation();
    this.list();
    const numbers = capture.connections.map((connection) => connection.number);
    const wanted = Number(state.connection);
    const largest = capture.connections.reduce((most, other) => (most && most.payload_byte >= other.payload_byte ? most : other), null);
    if (!largest) return;
    await this.choose(numbers.includes(wanted) ? wanted : largest.number);
    if (state.simulated) await this.simulate();
  }

  /** Connections that the choices leave. */
  list() {
    const [limit, part] = [byId("capture-limit").value, byId("capture-address").value.trim()];
    const found = this.capture.connections.filter((connection) => (limit === "all" || connection.limit_noun === limit)
      && (connection.client.includes(part) || connection.server.includes(part)));
    const points = new Set(this.capture.connections.map((connection) => connection.point));
    const largest = [...found].sort((a, b) => b.payload_byte - a.payload_byte).slice(0, ROWS_MAX);
    const rows = largest.sort((a, b) => a.number - b.number).map((connection) => {
      const { number, client, server, is_upload: isUpload } = connection;
      const button = cell("button", String(number));
      button.type = "button";
      button.setAttribute("aria-pressed", number === this.number);
      button.setAttribute("aria-label", `show connection ${number}`);
      button.addEventListener("click", () => this.choose(number));
      const certainty = connection.confidence === "moderate" ? "probably " : "";
      const row = [
        button, isUpload ? `${client} → ${server}` : `${server} → ${client}`, certainty + connection.limit_noun,
        withUnit(connection.payload_byte, "B"), withUnit(connection.goodput_bit_per_s, "bit/s"), withUnit(connection.start_s, "s"),
      ];
      return points.size > 1 ? [...row, connection.point] : row;
    });
    const headings = ["number", "sender and receiver", "limited by", ["data"], ["goodput"], ["begins at"]];
    if (points.size > 1) headings.push("point");
    fillTable(byId("connections"), { headings, rows, empty: this.capture.count ? "no connection has this limit and address" : "The capture has no TCP connections." });
    const { count } = this.capture;
    const more = rows.length < found.length || this.capture.connections.length < count ? " The list has those with most data; the CSV file has all." : "";
    byId("capture-shown").textContent = `${found.length} of ${counted(count, "connection")}.${more}`;
  }

  async saveConnections() {
    const response = await ask("api/capture/connections.csv");
    if (response.ok) save("connections.csv", "text/csv", await response.text());
    else this.showFailure(await response.text());
  }

  /** Shows a connection: the sentence at once, then its facts and packets. */
  async choose(number) {
    this.number = number;
    this.state.connection = number;
    address.write(this.state);
    for (const button of byId("connections").querySelectorAll("button")) button.setAttribute("aria-pressed", button.textContent === String(number));
    const connection = this.capture.connections.find((other) => other.number === number);
    byId("connection-heading").textContent = `Connection ${number}`;
    byId("connection-sentence").textContent = connection.sentence;
    byId("connection-notes").replaceChildren(...connection.notes.map((note) => cell("li", note)));
    try {
      const response = await ask(`api/capture/connection?number=${number}`);
      if (!response.ok) throw new Error(await response.text());
      const facts = await response.json();
      if (this.number !== number) return;
      byId("connection-command").textContent = facts.command;
      fillTable(byId("connection-details"), { headings: ["fact", "value"], rows: facts.details.map(({ name, value }) => [name, value]), rowHeading: 0 });
      await this.load(number);
      this.showFailure("");
    } catch (error) {
      this.showFailure(error.message);
    }
  }

  /** The packets of a connection, with those of the simulation if there is one. */
  async load(number) {
    const body = { place: `${this.place}-packets`, connection: number, ...this.simulation ? { simulation: this.simulation } : {} };
    const response = await posted("api/capture/packets", body);
    if (!response) return;
    const { head, arrays } = decode(await response.arrayBuffer());
    if (this.number !== number) return;
    const layers = layersOf(arrays, head.has_window);
    const count = (kind) => head.events.filter(({ event }) => event === kind).length;
    const simulated = layers.simulated ? ` The simulation has ${counted(arrays["simulated_retransmissions.time_s"].length, "retransmission")}.` : "";
    const status = `${counted(layers.first.length, "segment")}, ${counted(layers.retransmissions.length, "retransmission")}, `
      + `${counted(layers.acks.length, "acknowledgement")}, ${counted(count("timer_expired"), "timeout")} (or probes), ${counted(count("send_window_closed"), "closed window")}.${simulated}`;
    const window = head.has_window ? "" : " The offered window is unknown, since the capture lacks the SYN of an end.";
    const place = `Segments of ${head.sender} and acknowledgements of ${head.receiver}, at the time of the capture.${window}`;
    const texts = { name: `packets of connection ${number}`, status, place, command: head.command };
    // A range of time ends before its end: the last packet must be within it.
    const duration = head.duration_s * 1.001;
    this.diagram.take({ layers, events: head.events, duration, parting: head.parting?.at_s ?? null, texts });
    byId("simulation-sentence").textContent = head.comparison ?? (this.simulation ? `Connection ${number} is not simulated: it has no data, or carries that of another one behind a proxy.` : "");
    this.drawGoodput(number, head);
  }

  drawGoodput(number, head) {
    const line = (label, colour, style, curve) => ({ label, colour, style, x: curve.time_s, y: curve.goodput_bit_per_s });
    const lines = [];
    if (head.measured_goodput) lines.push(line("capture", 0, "sim", head.measured_goodput));
    if (head.simulated_goodput) lines.push(line("simulation", 6, "model", head.simulated_goodput));
    if (!lines.length) {
      byId("capture-goodput").replaceChildren();
      return;
    }
    const title = `Goodput of connection ${number}`;
    const parts = head.parting ? `; the simulation parts at ${withUnit(head.parting.at_s, "s")}` : "";
    const svg = lineChart({ title, unit: "bit/s", lines, width: Math.min(760, Math.max(320, byId("capture-goodput").clientWidth)), description: `${title} over time${parts}` });
    const columns = () => [{ name: "time_s", values: lines[0].x }, ...lines.map(({ label, y }) => ({ name: `${label} goodput_bit_per_s`, values: y }))];
    const command = () => (this.simulation ? this.comparison.command : head.command);
    byId("capture-goodput").replaceChildren(figure(svg, title, columns, command));
  }

  startSimulation() {
    const { state } = this;
    const inputs = { rate: byId("simulation-rate"), tolerance: byId("simulation-tolerance"), seed: byId("simulation-seed") };
    for (const [name, input] of Object.entries(inputs)) if (state[name]) input.value = state[name];
    byId("simulation").addEventListener("submit", (event) => {
      event.preventDefault();
      this.simulate();
    });
    byId("simulation-csv").addEventListener("click", () => save("comparison.csv", "text/csv", this.comparison.csv));
    byId("simulation-toml").addEventListener("click", (event) => copy(event.target, this.comparison.scenario));
  }

  /** Simulates the load over the estimated link, and draws it over the capture. */
  async simulate() {
    const [rate, tolerance, seed] = ["rate", "tolerance", "seed"].map((name) => byId(`simulation-${name}`).value.trim());
    const request = { place: `${this.place}-simulation`, seed: Number(seed) };
    if (rate) request.rate = rate;
    if (tolerance) request.tolerance = tolerance;
    byId("simulation-status").classList.add("busy");
    byId("simulation-status").textContent = "Simulating.";
    try {
      const response = await posted("api/capture/simulation", request);
      if (!response) return;
      this.comparison = await response.json();
      this.simulation = request;
      Object.assign(this.state, { rate, tolerance, seed, simulated: "1" });
      address.write(this.state);
      this.showComparison();
      await this.load(this.number);
      this.showFailure("");
    } catch (error) {
      byId("simulation-status").textContent = `Not simulated: ${error.message}`;
    }
    byId("simulation-status").classList.remove("busy");
  }

  showComparison() {
    const { headings, connections, command } = this.comparison;
    const parted = connections.filter((connection) => connection.parting).length;
    byId("simulation-status").textContent = `${counted(connections.length, "connection")} simulated; ${parted ? `${parted} ${parted === 1 ? "parts" : "part"}` : "none parts"} from the capture.`;
    fillTable(byId("comparison"), {
      headings: [headings[0], ...headings.slice(1).map((heading) => [heading]), "reason"],
      rows: connections.slice(0, ROWS_MAX).map(({ cells, parting }) => [...cells, parting?.reason ?? ""]), rowHeading: 0,
    });
    byId("simulation-command").textContent = command;
    byId("simulation-answers").hidden = false;
  }
}
