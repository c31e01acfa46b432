// The requests of the page, which the module answers in workers: this page has no server.

const text = (id) => document.getElementById(id).textContent;
const workerAddress = URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" }));
const compiled = compile();

async function compile() {
  const packed = new Blob([Uint8Array.from(atob(text("module")), (c) => c.charCodeAt(0))]);
  const bytes = new Response(packed.stream().pipeThrough(new DecompressionStream("gzip")));
  return WebAssembly.compile(await bytes.arrayBuffer());
}

/** Workers without a request, each with an instance of the module. */
const idle = [];

/** Functions that end the request in progress of a place of the page. */
const ends = new Map();

const SCENARIO = "gridhaul.scenario";

/** The scenario file that a user has opened in this tab: name and text. */
export function openedScenario() {
  return JSON.parse(sessionStorage.getItem(SCENARIO));
}

/** Opens a scenario file in the next page; null for the built-in scenario. Returns the error of a file that is not valid. */
export async function openScenario(scenario) {
  if (!scenario) {
    sessionStorage.removeItem(SCENARIO);
    return null;
  }
  const worker = newWorker();
  const { status, body } = await exchange(worker, opening(scenario));
  worker.terminate();
  if (status !== 200) return new TextDecoder().decode(body);
  sessionStorage.setItem(SCENARIO, JSON.stringify(scenario));
  return null;
}

const opening = ({ name, text: body }) => ({ method: "POST", path: `scenario?name=${encodeURIComponent(name)}`, body });

/** The response to a request for a path of the page, as that of the server. */
export async function ask(path, { body, signal } = {}) {
  const worker = idle.pop() ?? await startWorker();
  signal?.throwIfAborted();
  const request = { method: body === undefined ? "GET" : "POST", path, body: body === undefined ? "" : JSON.stringify(body) };
  return new Promise((resolve, reject) => {
    const place = body?.place;
    const forget = () => { if (ends.get(place) === replaced) ends.delete(place); };
    // A run cannot be interrupted from within: its worker ends with it.
    const end = (settle) => {
      forget();
      worker.terminate();
      settle();
    };
    const replaced = () => end(() => resolve(new Response("a later request has replaced this one\n", { status: 409 })));
    const aborted = () => end(() => reject(signal.reason));
    ends.get(place)?.();
    if (place) ends.set(place, replaced);
    signal?.addEventListener("abort", aborted);
    exchange(worker, request).then((answer) => {
      forget();
      signal?.removeEventListener("abort", aborted);
      idle.push(worker);
      resolve(new Response(answer.body, { status: answer.status }));
    }, (error) => end(() => reject(error)));
  });
}

function newWorker() {
  return new Worker(workerAddress);
}

async function startWorker() {
  const worker = newWorker();
  const scenario = openedScenario();
  if (scenario) await exchange(worker, opening(scenario));
  return worker;
}

async function exchange(worker, request) {
  const module = await compiled;
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(`the module has failed: ${event.message}`));
    worker.onmessageerror = () => reject(new Error("the browser cannot send the module to a worker"));
    worker.postMessage({ module, request });
  });
}
