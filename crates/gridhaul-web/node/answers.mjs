// Reads requests as JSON from the standard input, and prints the answers of a new instance of the module to them:
// node answers.mjs MODULE.wasm

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

import { answerOf } from "../page/worker.mjs";

const { instance } = await WebAssembly.instantiate(await readFile(process.argv[2]));
const answers = JSON.parse(await text(process.stdin)).map((request) => {
  const begin = performance.now();
  const { status, body } = answerOf(instance, request);
  return { status, milliseconds: performance.now() - begin, body: Buffer.from(body).toString("base64") };
});
process.stdout.write(JSON.stringify(answers));
