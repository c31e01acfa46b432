// The requests of the page, which the server of `gridhaul explore` answers. A page without a server has another
// module in the place of this one.

/** The response to a request for a path of the page. `body` is sent as JSON, and `signal` ends the request. */
export function ask(path, { body, signal } = {}) {
  if (body === undefined) return fetch(path, { signal });
  return fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
}
