// The scenario view: runs the changed scenario after each move, and draws it.

import * as address from "./address.js";
import { lineChart } from "./chart.js";
import { makeControls, settingsOf } from "./controls.js";
import { copy, figure } from "./export.js";
import { withUnit } from "./format.js";
import { ask } from "./service.js";
import { cell, fillTable } from "./table.js";

const byId = (id) => document.getElementById(id);

/** A run that takes longer is cancelled by the next one; a shorter one is drawn first. */
const PATIENCE_MS = 250;

/** Metrics of the table, in this order, if they are known. */
const FLOW_METRICS = [
  "goodput_bit_per_s", "completion_time_s", "delay_mean_s", "delay_p98_s", "message_loss_ratio", "rtt_mean_s",
  "cwnd_mean_byte", "segment_loss_ratio", "retransmission_ratio", "fast_retransmits_count", "timeouts_count",
  "deadline_met_ratio", "connections_failed_count",
];
const LINK_METRICS = ["utilisation_ratio", "queue_mean_packets", "link_delay_mean_s", "loss_ratio", "drops_queue_count", "drops_loss_count"];

/** Charts: table, column, unit, and the metric that the equations answer. */
const CHARTS = [
  { title: "Throughput", table: "throughput", column: "throughput_bit_per_s", unit: "bit/s", of: "direction" },
  { title: "Congestion window", table: "windows", column: "cwnd_byte", unit: "B", of: "flow", level: "cwnd_mean_byte" },
  { title: "Queue", table: "queues", column: "queue_packets", unit: "packets", of: "direction", level: "queue_mean_packets" },
  { title: "Round-trip time", table: "windows", column: "srtt_s", unit: "s", of: "flow", level: "rtt_mean_s" },
];
const MESSAGES = { title: "Message delay", table: "delays", column: "delay_s", unit: "s", of: "flow", level: "delay_mean_s" };

/** One of the two variants that are drawn: its latest result, and the request in progress. */
class Variant {
  constructor(place, runAfter) {
    this.place = `${crypto.randomUUID()}-${place}`;
    this.result = null;
    this.runAfter = runAfter;
    this.wanted = null;
    this.isRunning = false;
  }

  /** Runs this request, or after the one in progress if that is young. */
  request(body) {
    this.wanted = { body, at: performance.now() };
    if (!this.isRunning) this.next();
    else if (!this.cancelIfLong()) setTimeout(() => this.cancelIfLong(), PATIENCE_MS);
  }

  /** Takes the result of another variant, or none, in the place of that of a request in progress. */
  replace(result) {
    this.result = result;
    this.wanted = null;
    if (!this.isRunning) return;
    this.dropped = this.runningBody;
    this.abort.abort();
  }

  /** Cancels the run in progress if it takes long and another one is wanted. */
  cancelIfLong() {
    const isLong = this.isRunning && this.wanted && performance.now() - this.startedAt >= PATIENCE_MS;
    if (isLong) this.abort.abort();
    return isLong;
  }

  async next() {
    const { body, at } = this.wanted;
    this.wanted = null;
    this.isRunning = true;
    this.runningBody = body;
    this.startedAt = performance.now();
    this.abort = new AbortController();
    let outcome = null;
    try {
      const response = await ask("api/run", { body: { ...body, place: this.place }, signal: this.abort.signal });
      if (response.ok) outcome = { result: { ...await response.json(), body }, at };
      else if (response.status !== 409) outcome = { failure: await response.text() };
    } catch (error) {
      if (error.name !== "AbortError") outcome = { failure: `No answer: ${error.message}` };
    }
    this.isRunning = false;
    // The variant was removed or replaced meanwhile.
    if (this.dropped === body) outcome = null;
    if (outcome?.result) this.result = outcome.result;
    if (outcome) this.runAfter(outcome);
    if (this.wanted) this.next();
  }
}

/** Starts the view. Returns a function that makes the request for the present values. */
export function startScenario(scenario, state, showFailure) {
  const view = new ScenarioView(scenario, state, showFailure);
  view.start();
  // For tests: the time from the last move to the drawn charts.
  window.gridhaul = view;
  return () => view.request(state.values);
}

class ScenarioView {
  constructor(scenario, state, showFailure) {
    Object.assign(this, { scenario, state, showFailure });
    this.current = new Variant("b", (outcome) => this.onOutcome(outcome));
    this.kept = new Variant("a", (outcome) => this.onOutcome(outcome));
    this.redraws = 0;
    this.redrawMs = null;
  }

  start() {
    const { scenario, state } = this;
    const note = scenario.is_first_point ? "The sweep of the file is left out: this is its first point. " : "";
    byId("description").textContent = note + scenario.description.split("\n\n")[0].replaceAll("`", "");
    this.controls = makeControls(byId("groups"), scenario.controls, (id, text) => {
      if (text === null) delete state.values[id];
      else state.values[id] = text;
      this.onChange();
    });
    this.controls.show(state.values);
    for (const { name } of scenario.flows) byId("flow").add(new Option(name, name));
    byId("seed").value = state.seed ?? scenario.seed;
    byId("replications").value = state.replications ?? 1;
    for (const id of ["seed", "replications"]) {
      byId(id).addEventListener("change", () => {
        if (!byId(id).checkValidity()) { byId(id).reportValidity(); return; }
        state[id] = byId(id).value;
        this.onChange(true);
      });
    }
    for (const id of ["flow", "direction"]) {
      byId(id).addEventListener("change", () => {
        state[id] = byId(id).value;
        address.write(state);
        this.draw();
      });
    }
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    byId("pin").addEventListener("click", () => this.keep());
    byId("reset").addEventListener("click", () => {
      state.values = {};
      this.controls.show({});
      this.onChange();
    });
    byId("copy-toml").addEventListener("click", (event) => copy(event.target, this.current.result?.toml ?? ""));
    byId("copy-link").addEventListener("click", (event) => copy(event.target, location.href));
    byId("copy-command").addEventListener("click", (event) => copy(event.target, this.current.result?.command ?? ""));
    this.showKept();
    this.onChange(true);
  }

  /** Keeps the present values as variant A, or releases it. */
  keep() {
    this.state.kept = this.state.kept ? null : { ...this.state.values };
    this.showKept();
    this.kept.replace(null);
    address.write(this.state);
    if (this.state.kept) {
      // The drawn result may be that of earlier values, if a run is in progress or was refused.
      const body = this.request(this.state.kept);
      const isDrawn = JSON.stringify(this.current.result?.body) === JSON.stringify(body);
      if (isDrawn) this.kept.replace(this.current.result);
      else this.kept.request(body);
    }
    this.draw();
  }

  showKept() {
    const isKept = this.state.kept !== null;
    byId("pin").setAttribute("aria-pressed", isKept);
    byId("pin").textContent = isKept ? "Remove variant A" : "Keep as variant A";
  }

  request(values) {
    const body = { settings: settingsOf(this.scenario.controls, values) };
    if (this.state.seed) body.seed = Number(this.state.seed);
    if (this.state.replications) body.replications = Number(this.state.replications);
    return body;
  }

  /** Both variants are run with the same seed, so that they differ by their values only. */
  onChange(isForBoth = false) {
    address.write(this.state);
    byId("status").classList.add("busy");
    this.current.request(this.request(this.state.values));
    if (isForBoth && this.state.kept) this.kept.request(this.request(this.state.kept));
  }

  onOutcome({ result, failure, at }) {
    this.showFailure(failure ?? "");
    byId("status").classList.toggle("busy", this.current.isRunning);
    if (!result) return;
    this.draw();
    // The charts are laid out and painted before the next frame begins.
    requestAnimationFrame(() => setTimeout(() => {
      this.redrawMs = performance.now() - at;
      this.redraws += 1;
      this.announce();
    }));
  }

  announce() {
    clearTimeout(this.announcement);
    this.announcement = setTimeout(() => {
      if (!this.current.result) return;
      const flow = this.flowName();
      const of = (variant) => {
        const [sim, model] = ["sim", "model"].map((backend) => value(variant.result, backend, "flows", flow, "goodput_bit_per_s"));
        const equations = model === null ? "" : `, ${withUnit(model, "bit/s")} by equations`;
        return `${withUnit(sim, "bit/s")} simulated${equations}`;
      };
      const kept = this.state.kept && this.kept.result ? ` Variant A: ${of(this.kept)}.` : "";
      byId("status").textContent = `Goodput of ${flow}: ${of(this.current)}.${kept}`;
      byId("drawn").textContent = `drawn in ${Math.round(this.redrawMs)} ms`;
    }, 150);
  }

  flowName() {
    const names = this.scenario.flows.map((flow) => flow.name);
    return names.includes(this.state.flow) ? this.state.flow : names[0];
  }

  /** The chosen direction, or else the one with the highest utilisation. */
  directionName() {
    const rows = pointOf(this.current.result, "sim")?.links ?? [];
    const names = rows.map((row) => row.name);
    if (names.includes(this.state.direction)) return this.state.direction;
    const load = (row) => row.metrics.utilisation_ratio?.mean ?? 0;
    return rows.length ? rows.reduce((most, row) => (load(row) > load(most) ? row : most)).name : "";
  }

  draw() {
    if (!this.current.result) return;
    const selection = { flow: this.flowName(), direction: this.directionName() };
    const names = (pointOf(this.current.result, "sim")?.links ?? []).map((row) => row.name);
    const select = byId("direction");
    if ([...select.options].map((option) => option.value).join() !== names.join()) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
    }
    select.value = selection.direction;
    byId("flow").value = selection.flow;
    const variants = [{ label: "B", colour: 0, result: this.current.result }];
    if (this.state.kept && this.kept.result) variants.unshift({ label: "A", colour: 1, result: this.kept.result });
    if (variants.length === 1) variants[0].label = "";
    const has = (chart) => variants.some(({ result }) => seriesOf(result, chart, selection));
    const charts = [...CHARTS, MESSAGES].filter((chart) => has(chart));
    byId("charts").replaceChildren(...charts.map((chart) => this.chart(chart, variants, selection)));
    this.drawNumbers(variants, selection);
    byId("command").textContent = this.current.result.command;
    const reason = this.current.result.model_failure;
    byId("model-failure").textContent = reason ? `No answer by equations: ${reason}` : "";
  }

  chart(chart, variants, selection) {
    const name = selection[chart.of];
    const lines = [];
    const levels = [];
    for (const { label, colour, result } of variants) {
      const variant = label ? `${label}, ` : "";
      const series = seriesOf(result, chart, selection);
      if (series) {
        lines.push({ label: `${variant}simulator`, colour, style: "sim", x: series.time_s, y: series[chart.column] });
      }
      const scope = chart.of === "flow" ? "flows" : "links";
      const level = chart.level && value(result, "model", scope, name, chart.level);
      if (level) levels.push({ label: `${variant}equations, mean`, colour, style: "model", y: level });
      if (chart.table === "throughput") levels.push(...goodputs(result, selection, variant, colour));
    }
    const title = `${chart.title} of ${name}`;
    const draw = { title, unit: chart.unit, lines, levels, description: `${title} over time` };
    const columns = () => lines.flatMap((line) => [
      { name: `${line.label} time_s`, values: line.x }, { name: `${line.label} ${chart.column}`, values: line.y },
    ]);
    return figure(lineChart(draw), title, columns, () => this.current.result.series_command);
  }

  drawNumbers(variants, { flow, direction }) {
    const columns = variants.flatMap(({ label, result }) => ["sim", "model"]
      .filter((backend) => pointOf(result, backend))
      .map((backend) => ({ result, backend, heading: `${label ? `${label}, ` : ""}${backend === "sim" ? "simulator" : "equations"}` })));
    const rows = [];
    for (const [scope, name, metrics] of [["flows", flow, FLOW_METRICS], ["links", direction, LINK_METRICS]]) {
      for (const column of metrics) {
        const info = this.scenario.metrics.find((metric) => metric.column === column);
        const found = columns.map(({ result, backend }) => estimate(result, backend, scope, name, column));
        if (!info || found.every((one) => (one?.mean ?? null) === null)) continue;
        const heading = cell("span", `${info.heading}${scope === "links" ? ` of ${direction}` : ""}`);
        heading.title = info.doc;
        rows.push([heading, ...found.map((one) => estimateText(one, info.unit))]);
      }
    }
    const headings = ["metric", ...columns.map(({ heading }) => [heading])];
    fillTable(byId("numbers"), { headings, rows, rowHeading: 0 });
  }
}

/** Mean goodput of the flow in a chart of throughput, simulated and by equations, and the rate of the direction. */
function goodputs(result, { flow, direction }, variant, colour) {
  const level = (label, style, y) => (y ? [{ label: `${variant}${label}`, colour, style, y }] : []);
  const rate = result.rates_bit_per_s.find(([name]) => name === direction)?.[1];
  return [
    ...level("equations, goodput", "model", value(result, "model", "flows", flow, "goodput_bit_per_s")),
    ...level("rate of the link", "rate", rate),
  ];
}

const pointOf = (result, backend) => result?.answers.find((answer) => answer.backend === backend)?.points[0];

const estimate = (result, backend, scope, name, column) => pointOf(result, backend)?.[scope].find((row) => row.name === name)?.metrics[column];

const value = (...place) => estimate(...place)?.mean ?? null;

function seriesOf(result, chart, selection) {
  const name = selection[chart.of];
  return result.series.find((series) => series.table === chart.table && series.name === name)?.columns;
}

export function estimateText(found, unit) {
  if (!found) return "–";
  const text = withUnit(found.mean, unit);
  return found.ci95 ? `${text} ± ${withUnit(found.ci95, unit, 2)}` : text;
}
