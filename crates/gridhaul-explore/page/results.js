// The results view: one metric of the points of a sweep over a parameter, filtered and compared.

import * as address from "./address.js";
import { lineChart } from "./chart.js";
import { figure } from "./export.js";
import { withUnit } from "./format.js";
import { cell } from "./scenario.js";

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
    const response = await fetch(`api/results/table?${query}`);
    if (!response.ok) { this.showFailure(await response.text()); return; }
    const { columns } = await response.json();
    this.columns = new Map(columns.map((column) => [column.name, column.values]));
    this.compared.clear();
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
    this.drawCompared(info, values);
  }

  command() {
    const path = this.results.path;
    const quoted = /^[\w./=:+@,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
    return `gridhaul export ${quoted} --table ${this.choice.table} --only ${this.choice.metric} --csv`;
  }

  drawPoints(rows, info, values, errors) {
    const head = document.createElement("tr");
    head.append(cell("th", "compare"), ...this.filters.map((name) => cell("th", name)), cell("th", info.heading, "n"));
    const body = rows.slice(0, ROWS_MAX).map((row) => {
      const line = document.createElement("tr");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = this.compared.has(row);
      box.setAttribute("aria-label", `compare ${this.nameOf(row)}`);
      box.addEventListener("change", () => {
        if (box.checked && this.compared.size >= COMPARED_MAX) { box.checked = false; return; }
        this.compared[box.checked ? "add" : "delete"](row);
        this.drawCompared(info, values);
      });
      const first = document.createElement("td");
      first.append(box);
      const error = errors[row] ? ` ± ${withUnit(errors[row], info.unit, 2)}` : "";
      line.append(first, ...this.filters.map((name) => cell("td", String(this.columns.get(name)[row]))), cell("td", withUnit(values[row], info.unit) + error, "n"));
      return line;
    });
    byId("points").tHead.replaceChildren(head);
    byId("points").tBodies[0].replaceChildren(...body);
  }

  nameOf(row) {
    return this.filters.map((name) => String(this.columns.get(name)[row])).join(", ") || `point ${this.columns.get("point")[row]}`;
  }

  /** The marked rows, each with its change relative to the first. */
  drawCompared(info, values) {
    const rows = [...this.compared];
    const head = document.createElement("tr");
    head.append(cell("th", "point"), cell("th", info.heading, "n"), cell("th", "change", "n"));
    const base = values[rows[0]];
    const body = rows.map((row) => {
      const line = document.createElement("tr");
      const change = base ? (values[row] / base - 1) * 100 : null;
      const text = row === rows[0] ? "reference" : change === null ? "–" : `${change > 0 ? "+" : ""}${change.toFixed(1)} %`.replace("-", "−");
      const name = cell("th", this.nameOf(row));
      name.scope = "row";
      line.append(name, cell("td", withUnit(values[row], info.unit), "n"), cell("td", text, "n"));
      return line;
    });
    if (!rows.length) {
      const line = document.createElement("tr");
      const empty = cell("td", "Mark points in the table below; the first one is the reference.");
      empty.colSpan = 3;
      line.append(empty);
      body.push(line);
    }
    byId("compare").tHead.replaceChildren(head);
    byId("compare").tBodies[0].replaceChildren(...body);
  }
}
