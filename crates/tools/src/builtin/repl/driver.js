"use strict";
const fs = require("fs"), util = require("util"), vm = require("vm");
const mark = process.argv[1];
globalThis.require = require;
let bytes = Buffer.alloc(0), busy = false;
const say = (fd, text) => {
  let left = Buffer.from(text);
  while (left.length) {
    try { left = left.subarray(fs.writeSync(fd, left)); } catch (error) { if (error.code !== "EAGAIN") return; }
  }
};
async function evaluate(code) {
  let value;
  try {
    value = vm.runInThisContext(code, { filename: "repl" });
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/\bawait\b/.test(code)) throw error;
    value = vm.runInThisContext(`(async () => { ${code}\n})()`, { filename: "repl" });
  }
  value = await value;
  if (value !== undefined) say(1, util.inspect(value) + "\n");
}
async function next() {
  if (busy) return;
  const line = bytes.indexOf(10);
  if (line < 0) return;
  const length = Number(bytes.subarray(0, line).toString());
  if (bytes.length < line + 1 + length) return;
  const code = bytes.subarray(line + 1, line + 1 + length).toString();
  bytes = bytes.subarray(line + 1 + length);
  busy = true;
  let word = "ok";
  try { await evaluate(code); } catch (error) { word = "error"; say(2, (error && error.stack || String(error)) + "\n"); }
  busy = false;
  say(2, mark + "\n");
  say(1, mark + word + "\n");
  next();
}
process.on("uncaughtException", (error) => say(2, (error && error.stack || String(error)) + "\n"));
process.stdin.on("data", (chunk) => { bytes = Buffer.concat([bytes, chunk]); next(); });
process.stdin.on("end", () => process.exit(0));
