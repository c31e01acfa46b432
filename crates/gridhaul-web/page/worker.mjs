// The module in a worker, so that a run does not block the page. Node.js imports the function for the comparison with
// the native code.

/** The answer of an instance of the module to a request: status and content. */
export function answerOf({ exports }, { method, path, body }) {
  const encoder = new TextEncoder();
  const content = encoder.encode(body);
  const head = encoder.encode(`${method} /${path} HTTP/1.1\r\nContent-Length: ${content.length}\r\n\r\n`);
  const place = exports.input(head.length + content.length) >>> 0;
  const request = new Uint8Array(exports.memory.buffer, place);
  request.set(head);
  request.set(content, head.length);
  const status = exports.answer();
  const start = exports.output() >>> 0;
  const end = start + (exports.output_length() >>> 0);
  // A view of the memory before the answer is not valid if the memory has grown.
  return { status, body: new Uint8Array(exports.memory.buffer).slice(start, end) };
}

if (globalThis.WorkerGlobalScope) {
  let instance = null;
  self.onmessage = async ({ data: { module, request } }) => {
    instance ??= await WebAssembly.instantiate(module);
    const answer = answerOf(instance, request);
    self.postMessage(answer, [answer.body.buffer]);
  };
}
