// The results view: one metric of the points of a sweep over a parameter, filtered and compared.

import * as address from "./address.js";
import { lineChart } from "./chart.js";
import { figure } from "./export.js";
import { withUnit } from "./format.js";
import { ask } from "./service.js";
import { cell, fillTable } from "./table.js";

const byId = (id) => document.getElementById(id);

/** Rows of the table of points: more are not read by anyone, and the export has all. */
const ROWS_MAX = 500;

/** Values of a list of choices: of more values, the axis or the table is the way to choose. */
const VALUES_MAX = 300;

/** Points that are compared at the same time. */
const COMPARED_MAX = 6;

/** Starts the view. */
export async function startResults(results, metrics, state, showFailure) {
  const view = new ResultsView(results, metrics, state, showFailure);
  await view.start();
}

class ResultsView {
  constructor(results, metrics, state, showFailure) {
    Object.assign(this, { results, metrics, state, showFailure });
    this.compared = new Set();
  }

  async start() {
    this.makeChoices();
    for (const warning of this.results.warnings.slice(0, 20)) byId("results-warnings").append(cell("li", warning));
    await this.load();
  }

  get choice() { return this.state.results; }

  /** Lists of choices; the filters follow with the values of the table. */
  makeChoices() {
    const { flow_metrics: flows, link_metrics: links, parameters } = this.results;
    const choice = this.choice;
    if (!["flows", "links"].includes(choice.table)) choice.table = flows.length ? "flows" : "links";
    const metrics = choice.table === "flows" ? flows : links;
    if (!metrics.includes(choice.metric)) [choice.metric] = metrics;
    if (![...parameters, "point"].includes(choice.x)) choice.x = parameters[0] ?? "point";
    const heading = (column) => this.metrics.find((metric) => metric.column === column)?.heading ?? column;
    const lists = [
      ["table", "Rows", [["flows", "flows"], ["links", "directions of links"]]],
      ["metric", "Metric", metrics.map((column) => [column, heading(column)])],
      ["x", "Over", [...parameters, "point"].map((name) => [name, name])],
    ];
    this.lists = lists.map(([name, label, options]) => this.list(name, label, options, choice[name]));
    byId("results-choices").replaceChildren(...this.lists);
    byId("results-choices").addEventListener("submit", (event) => event.preventDefault());
  }

  list(name, label, options, value) {
    const element = document.createElement("label");
    const select = document.createElement("select");
    for (const [text, shown] of options) select.add(new Option(shown, text));
    select.value = value ?? "";
    select.dataset.choice = name;
    select.addEventListener("change", () => this.choose(name, select.value));
    element.append(`${label} `, select);
    return element;
  }

  async choose(name, value) {
    this.choice[name] = value;
    // The rows of the other table are others.
    if (name === "table") this.choice.compared = "";
    address.write(this.state);
    if (name === "table" || name === "metric") {
      this.makeChoices();
      await this.load();
    } else {
      this.draw();
    }
    byId("results-choices").querySelector(`[data-choice="${CSS.escape(name)}"]`)?.focus();
  }

  async load() {
    const query = new URLSearchParams({ table: this.choice.table, only: this.choice.metric });
    const response = await ask(`api/results/table?${query}`);
    if (!response.ok) { this.showFailure(await response.text()); return; }
    const { columns } = await response.json();
    this.columns = new Map(columns.map((column) => [column.name, column.values]));
    const count = this.columns.get("point").length;
    const marked = (this.choice.compared ?? "").split(" ").filter(Boolean).map(Number);
    this.compared = new Set(marked.filter((row) => row < count).slice(0, COMPARED_MAX));
    this.makeFilters();
    this.draw();
    address.write(this.state);
  }

  /** A filter for each column of text with several values. */
  makeFilters() {
    const names = ["answer", "backend", ...this.results.parameters, "name"];
    const distinct = (name) => new Set(this.columns.get(name)).size;
    this.filters = names.filter((name) => distinct(name) > 1);
    const made = this.filters.filter((name) => distinct(name) <= VALUES_MAX).map((name) => {
      const values = [...new Set(this.columns.get(name))];
      const label = name === "name" ? (this.choice.table === "flows" ? "Flow" : "Direction") : name;
      if (!values.map(String).includes(this.choice[`f.${name}`])) this.choice[`f.${name}`] = "";
      return this.list(`f.${name}`, label, [["", "all"], ...values.map((value) => [value, value])], this.choice[`f.${name}`]);
    });
    byId("results-choices").replaceChildren(...this.lists, ...made);
  }

  /** Rows that the filters leave. */
  rows() {
    const count = this.columns.get("point").length;
    const rows = [];
    for (let row = 0; row < count; row += 1) {
      const fits = (name) => !this.choice[`f.${name}`] || String(this.columns.get(name)[row]) === this.choice[`f.${name}`];
      if (this.filters.every(fits)) rows.push(row);
    }
    return rows;
  }

  info() { return this.metrics.find((metric) => metric.column === this.choice.metric); }

  /** Numbers of the chosen axis, or texts that are numbered. */
  axis() {
    const name = this.choice.x;
    if (name === "point") return { values: this.columns.get("point"), unit: "", label: "point" };
    const number = [...this.columns.keys()].find((key) => key.startsWith(`${name.replace(/\[.*$/, "")}_`)
      && this.columns.get(key).some((value) => typeof value === "number"));
    if (number) {
      const unit = number.slice(number.lastIndexOf("_") + 1);
      const shown = { s: "s", byte: "B", ratio: "" }[unit] ?? (number.endsWith("bit_per_s") ? "bit/s" : "");
      return { values: this.columns.get(number), unit: shown, label: name };
    }
    const texts = this.columns.get(name);
    const distinct = [...new Set(texts)];
    return { values: texts.map((text) => distinct.indexOf(text)), unit: "", label: name, names: distinct };
  }

  draw() {
    const rows = this.rows();
    const axis = this.axis();
    const info = this.info();
    const values = this.columns.get(this.choice.metric) ?? [];
    const errors = this.columns.get(`${this.choice.metric}_ci95`) ?? [];
    const others = this.filters.filter((name) => name !== this.choice.x);
    const lines = new Map();
    for (const row of rows) {
      if ((values[row] ?? null) === null || axis.values[row] === null) continue;
      const key = others.map((name) => this.columns.get(name)[row]).join(", ");
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(row);
    }
    const drawn = [...lines].slice(0, 8).map(([label, own], index) => {
      own.sort((a, b) => axis.values[a] - axis.values[b]);
      return {
        label, colour: index, style: "sim", markers: own.length <= 60,
        x: own.map((row) => axis.values[row]), y: own.map((row) => values[row]), error: own.map((row) => errors[row]),
      };
    });
    const title = `${info.heading} over ${axis.label}`;
    const svg = lineChart({
      title, unit: info.unit, xUnit: axis.unit, xLabel: axis.label, xTicks: axis.names ?? null, lines: drawn, width: Math.min(760, Math.max(360, byId("results-chart").clientWidth)),
      description: `${title}: ${drawn.length} series, ${rows.length} rows; the table below has the numbers`,
    });
    const columns = () => [...this.columns].map(([name, all]) => ({ name, values: rows.map((row) => all[row]) }));
    byId("results-chart").replaceChildren(figure(svg, title, columns, () => this.command()));
    const more = lines.size > 8 ? ` The first 8 of ${lines.size} series are drawn: choose values to see others.` : "";
    byId("results-status").textContent = `${rows.length} of ${this.columns.get("point").length} rows.${more}`;
    byId("results-command").textContent = this.command();
    this.drawPoints(rows, info, values, errors);
    this.drawCompared();
  }

  command() {
    const path = this.results.path;
    const quoted = /^[\w./=:+@,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
    return `gridhaul export ${quoted} --table ${this.choice.table} --only ${this.choice.metric} --csv`;
  }

  drawPoints(rows, info, values, errors) {
    const body = rows.slice(0, ROWS_MAX).map((row) => {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = this.compared.has(row);
      box.setAttribute("aria-label", `compare ${this.nameOf(row)}`);
      box.addEventListener("change", () => this.mark(row, box));
      const error = errors[row] ? ` ± ${withUnit(errors[row], info.unit, 2)}` : "";
      const keys = this.filters.map((name) => String(this.columns.get(name)[row]));
      return [box, ...keys, withUnit(values[row], info.unit) + error];
    });
    const headings = ["compare", ...this.filters, [info.heading]];
    fillTable(byId("points"), { headings, rows: body, empty: "no point has these values" });
    const more = rows.length > ROWS_MAX ? `The table has the first ${ROWS_MAX} of ${rows.length} rows: choose values to see others. ` : "";
    byId("points-note").textContent = more;
  }

  /** Marks a row for the comparison, or releases it. */
  mark(row, box) {
    if (box.checked && this.compared.size >= COMPARED_MAX) {
      box.checked = false;
      byId("points-note").textContent = `At most ${COMPARED_MAX} points are compared: release one first.`;
      return;
    }
    this.compared[box.checked ? "add" : "delete"](row);
    this.choice.compared = [...this.compared].join(" ");
    address.write(this.state);
    this.drawCompared();
  }

  nameOf(row) {
    return this.filters.map((name) => String(this.columns.get(name)[row])).join(", ") || `point ${this.columns.get("point")[row]}`;
  }

  /** The marked rows, each with its change relative to the first. */
  drawCompared() {
    const info = this.info();
    const values = this.columns.get(this.choice.metric) ?? [];
    const errors = this.columns.get(`${this.choice.metric}_ci95`) ?? [];
    const marked = [...this.compared];
    const base = values[marked[0]];
    const rows = marked.map((row) => {
      const change = base ? (values[row] / base - 1) * 100 : null;
      const text = row === marked[0] ? "reference" : change === null ? "–" : `${change > 0 ? "+" : ""}${change.toFixed(1)} %`.replace("-", "−");
      const error = errors[row] ? ` ± ${withUnit(errors[row], info.unit, 2)}` : "";
      return [this.nameOf(row), withUnit(values[row], info.unit) + error, text];
    });
    fillTable(byId("compare"), {
      headings: ["point", [info.heading], ["change"]], rows, rowHeading: 0,
      empty: "Mark points in the table below; the first one is the reference.",
    });
  }
}
