// The state of the page in its address, so that a view can be shared and returned to.

const OWN = ["view", "seed", "replications", "flow", "direction", "connection", "rate", "tolerance", "simulated"];

/** The state in the address. `values` and `kept` have a text for each control that was changed. */
export function read(ids) {
  const query = new URLSearchParams(location.search);
  const state = { values: {}, kept: null, results: {} };
  for (const name of OWN) state[name] = query.get(name);
  if (query.has("a")) state.kept = {};
  for (const [name, text] of query) {
    if (ids.has(name)) state.values[name] = text;
    else if (name.startsWith("a.") && ids.has(name.slice(2)) && state.kept) state.kept[name.slice(2)] = text;
    else if (name.startsWith("r.")) state.results[name.slice(2)] = text;
  }
  return state;
}

/** Writes the state into the address, without a new entry in the history. */
export function write(state) {
  const query = new URLSearchParams();
  for (const name of OWN) if (state[name]) query.set(name, state[name]);
  for (const [id, text] of Object.entries(state.values)) query.set(id, text);
  if (state.kept) query.set("a", "1");
  for (const [id, text] of Object.entries(state.kept ?? {})) query.set(`a.${id}`, text);
  for (const [name, text] of Object.entries(state.results)) if (text) query.set(`r.${name}`, text);
  const text = query.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}
