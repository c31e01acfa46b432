// The page: tabs, and the views of a subject.

import * as address from "./address.js";
import { startCapture } from "./capture.js";
import { startPackets } from "./packets.js";
import { startResults } from "./results.js";
import { startScenario } from "./scenario.js";
import { ask } from "./service.js";

const byId = (id) => document.getElementById(id);
const VIEWS = ["scenario", "packets", "results", "capture"];

function showFailure(message) {
  byId("failure").textContent = message;
  byId("failure").hidden = !message;
}

/** Tabs by the pattern of the ARIA authoring practices: arrows move between them. */
function startTabs(views, state, initial, onSelected) {
  const select = (view, isFocused) => {
    for (const other of VIEWS) {
      const isSelected = other === view;
      byId(`tab-${other}`).setAttribute("aria-selected", isSelected);
      byId(`tab-${other}`).tabIndex = isSelected ? 0 : -1;
      byId(`view-${other}`).hidden = !isSelected;
    }
    if (isFocused) byId(`tab-${view}`).focus();
    state.view = view;
    address.write(state);
    onSelected(view);
  };
  views.forEach((view, index) => {
    const tab = byId(`tab-${view}`);
    tab.hidden = false;
    tab.addEventListener("click", () => select(view, true));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) select(views[(index + step + views.length) % views.length], true);
    });
  });
  const first = views.includes(state.view) ? state.view : initial;
  select(first, false);
}

async function start() {
  const response = await ask("api/subject");
  if (!response.ok) throw new Error(await response.text());
  const subject = await response.json();
  const { scenario, results, capture } = subject;
  byId("program").textContent = `gridhaul ${subject.gridhaul} explore`;
  const setTitle = (title) => {
    document.title = `${title} – gridhaul explore`;
    byId("title").textContent = title;
  };
  if (capture) {
    setTitle(capture.files.join(", "));
    const state = address.read(new Set());
    // The chart of the view needs its width.
    startTabs(["capture"], state, "capture", () => {});
    await startCapture(capture, state, showFailure);
    return;
  }
  setTitle(scenario.title);
  const state = address.read(new Set(scenario.controls.map((control) => control.id)));
  const request = startScenario(scenario, state, showFailure);
  const hasPackets = scenario.flows.some((flow) => flow.has_packets);
  const packets = hasPackets ? startPackets(scenario, state, request, showFailure) : null;
  if (results) await startResults(results, scenario.metrics, state, showFailure);
  const views = VIEWS.filter((view) => view === "scenario" || (view === "packets" && packets) || (view === "results" && results));
  startTabs(views, state, results ? "results" : "scenario", (view) => view === "packets" && packets.show());
}

start().catch((error) => showFailure(String(error.message ?? error)));
