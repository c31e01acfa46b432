// The form of a scenario: a slider and a text for each quantity, a list for each choice.

import { POSITIONS, positionOf, quantityOf, quantityText, valueAt } from "./format.js";

/** Makes the form. `onChange(id, text)` is called for each change; text is null for the value of the scenario. */
export function makeControls(parent, controls, onChange) {
  const inputs = new Map();
  const groups = Map.groupBy ? Map.groupBy(controls, (control) => control.group) : grouped(controls);
  for (const [name, members] of groups) {
    const group = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = name;
    group.append(legend);
    for (const control of members) {
      const input = control.kind === "choice" ? choice(control, onChange) : slider(control, onChange);
      inputs.set(control.id, input);
      group.append(input.element);
    }
    parent.append(group);
  }
  return {
    /** Shows these values. */
    show(values) {
      for (const control of controls) inputs.get(control.id).show(values[control.id] ?? null);
    },
  };
}

/** The settings of the command line for these values. */
export function settingsOf(controls, values) {
  const changed = controls.filter((control) => values[control.id] !== undefined);
  return changed.flatMap((control) => {
    const text = values[control.id];
    if (control.kind === "choice") return control.options.find((option) => option.value === text)?.settings ?? [];
    return control.settings.map((setting) => setting.replace("{}", text));
  });
}

function grouped(controls) {
  const groups = new Map();
  for (const control of controls) groups.set(control.group, [...(groups.get(control.group) ?? []), control]);
  return groups;
}

function row(control, ...parts) {
  const element = document.createElement("div");
  element.className = "control";
  const label = document.createElement("label");
  label.textContent = control.label;
  label.htmlFor = `c-${control.id}`;
  element.append(label, ...parts);
  return element;
}

function slider(control, onChange) {
  const text = document.createElement("input");
  text.type = "text";
  text.id = `c-${control.id}`;
  text.autocomplete = "off";
  text.spellcheck = false;
  const range = document.createElement("input");
  range.type = "range";
  range.min = 0;
  range.max = POSITIONS;
  range.setAttribute("aria-label", `${control.group}, ${control.label}`);
  text.setAttribute("aria-label", `${control.group}, ${control.label}, as text`);
  const element = row(control, text, range);
  const show = (value) => {
    const shown = value ?? control.text;
    if (document.activeElement !== text) text.value = shown;
    const number = quantityOf(control.quantity, shown);
    if (document.activeElement !== range || value === null) range.value = positionOf(control, number);
    range.setAttribute("aria-valuetext", shown);
    element.classList.toggle("changed", value !== null);
  };
  const change = (shown) => {
    const value = shown === control.text ? null : shown;
    show(value);
    onChange(control.id, value);
  };
  range.addEventListener("input", () => {
    const position = Number(range.value);
    const isOwn = position === positionOf(control, control.value);
    change(isOwn ? control.text : quantityText(control.quantity, valueAt(control, position)));
  });
  text.addEventListener("change", () => change(text.value.trim() || control.text));
  return { element, show };
}

function choice(control, onChange) {
  const select = document.createElement("select");
  select.id = `c-${control.id}`;
  select.setAttribute("aria-label", `${control.group}, ${control.label}`);
  for (const { value } of control.options) select.add(new Option(value, value));
  const element = row(control, select);
  const show = (value) => {
    select.value = value ?? control.value;
    element.classList.toggle("changed", value !== null);
  };
  select.addEventListener("change", () => {
    const value = select.value === control.value ? null : select.value;
    show(value);
    onChange(control.id, value);
  });
  return { element, show };
}
