/**
 * Returns node:http. It is loaded by the first call, not with this file: it takes as long as a tenth of an agent's start. An `import` would read all properties
 * of that module besides, and one of them loads the undici of Node.js, which Berth does not use.
 */
export function loadHttp(): typeof import("node:http") {
  return process.getBuiltinModule("node:http");
}
