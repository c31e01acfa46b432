// The packets view: segments, acknowledgements, losses and timeouts of one connection of a scenario.

import { SequenceView, counted, decode, layersOf } from "./sequence_view.js";
import { ask } from "./service.js";

const byId = (id) => document.getElementById(id);

/** Starts the view. `request` makes the request for the present values of the scenario. */
export function startPackets(scenario, state, request, showFailure) {
  const view = new PacketsView(scenario, state, request, showFailure);
  window.gridhaul.packets = view;
  return view;
}

class PacketsView {
  constructor(scenario, state, request, showFailure) {
    Object.assign(this, { request, showFailure });
    this.place = `${crypto.randomUUID()}-packets`;
    this.drawnFor = null;
    this.diagram = new SequenceView(byId("packets-diagram"), "packets");
    const names = scenario.flows.filter((flow) => flow.has_packets).map((flow) => flow.name);
    for (const name of names) byId("packets-flow").add(new Option(name, name));
    if (names.includes(state.flow)) byId("packets-flow").value = state.flow;
    byId("packets-flow").addEventListener("change", () => this.load());
  }

  get chart() { return this.diagram.chart; }

  /** Draws the packets of the present values, which may have changed in the scenario view. */
  show() {
    const wanted = JSON.stringify([this.request(), byId("packets-flow").value]);
    if (wanted !== this.drawnFor) this.load();
    else this.diagram.schedule();
  }

  async load() {
    const { settings, seed } = this.request();
    const flow = byId("packets-flow").value;
    this.drawnFor = JSON.stringify([this.request(), flow]);
    byId("packets-status").textContent = "Simulating.";
    const body = { settings, flow, place: this.place, ...seed === undefined ? {} : { seed } };
    const response = await ask("api/packets", { body });
    if (response.status === 409) return;
    if (!response.ok) {
      byId("packets-status").textContent = "";
      this.showFailure(await response.text());
      return;
    }
    this.showFailure("");
    this.take(decode(await response.arrayBuffer()), flow);
  }

  take({ head, arrays }, flow) {
    const layers = layersOf(arrays);
    const count = (kind) => head.events.filter(({ event }) => event === kind).length;
    const timeouts = head.events.filter(({ event, timer }) => event === "timer_expired" && timer === "retransmission").length;
    const status = `${counted(layers.first.length, "segment")}, ${counted(layers.retransmissions.length, "retransmission")}, `
      + `${counted(layers.acks.length, "acknowledgement")}, ${counted(count("segments_lost"), "event")} of detected losses, ${counted(timeouts, "retransmission timeout")}.`;
    const place = `Segments are drawn when they are offered to ${head.forward}, acknowledgements when they are offered to ${head.reverse}.`;
    const texts = { name: `packets of ${flow}`, status, place, command: head.command };
    this.diagram.take({ layers, events: head.events, duration: head.duration_s, texts });
  }
}
