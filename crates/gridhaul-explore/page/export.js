// Files and the clipboard.

import { ask } from "./service.js";

let chartStyle = null;

/** A chart as a file of its own: with the style sheet of charts, and the command that makes its numbers. */
export async function saveSvg(name, svg, command) {
  chartStyle ??= await (await ask("chart.css")).text();
  const style = `<desc>${command.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`)}</desc><style>${chartStyle}</style>`;
  save(`${name}.svg`, "image/svg+xml", svg.replace(/>/, `>${style}`));
}

/** Columns as CSV (RFC 4180). */
export function csvOf(columns) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((column) => cell(column.name)).join(",")];
  const count = Math.max(0, ...columns.map((column) => column.values.length));
  for (let row = 0; row < count; row += 1) lines.push(columns.map((column) => cell(column.values[row])).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

export function saveCsv(name, columns) {
  save(`${name}.csv`, "text/csv", csvOf(columns));
}

export function save(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Copies a text, and says so in the button for a moment. */
export async function copy(button, text) {
  const label = button.dataset.label ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser refuses to copy";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

/** A figure with a chart and the buttons that export it. */
export function figure(svg, name, columns, command) {
  const element = document.createElement("figure");
  element.innerHTML = svg;
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  const button = (label, action) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.setAttribute("aria-label", `${label} of ${name}`);
    made.addEventListener("click", action);
    buttons.append(made);
  };
  button("SVG", () => saveSvg(name, element.querySelector("svg").outerHTML, command()));
  button("CSV", () => saveCsv(name, columns()));
  element.append(buttons);
  return element;
}
