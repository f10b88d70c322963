/** Traces of a thousand failures in a process that runs for months: none. */

import { getEventListeners } from "node:events";
import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { until } from "../../world/recorded-log.ts";
import { type StubAnswer, sendJson, sendStatus, startStub } from "./stub-server.ts";

const EVENT = `${JSON.stringify({ type: "ADDED", object: { metadata: { name: "a" } } })}\n`;

/** Ways for an answer to end. */
const ENDS: readonly StubAnswer[] = [
  (response) => response.destroy(),
  (response) => response.write(EVENT, () => response.destroy()),
  (response) => response.writeHead(200, { "content-length": "1000" }).write(EVENT, () => response.destroy()),
  (response) => response.end(`${EVENT}{"type":"ADD`),
  (response) => response.end("<html><body>Bad gateway</body></html>"),
  (response) => response.writeHead(502, { "content-type": "text/html" }).end("<html>".repeat(10_000)),
  (response) => response.end(`{"type":"ERROR","object":{"kind":"Status","code":410}}\n`),
  (response) => sendStatus(response, 401, "Unauthorized"),
  (response) => sendStatus(response, 429, "TooManyRequests"),
  (response) => response.writeHead(302, { location: "/elsewhere" }).end(),
  (response) => response.end(EVENT),
];

const openFiles = () => readdirSync("/proc/self/fd").length;

it("a thousand calls and watches that end in every way leave no connection, no listener and no turn", async () => {
  let count = 0;
  const stub = await startStub((response, request) => {
    if (request.url === "/well") sendJson(response, 200, { name: "well" });
    else ENDS[count++ % ENDS.length]?.(response, request);
  });
  const { client } = stub;
  const { signal } = new AbortController();
  const fail = async (): Promise<void> => {
    await client.call({ method: "POST", path: "/x", body: {}, patienceMs: 0, signal }).catch(() => {});
    await client.watch({ path: "/x", query: {}, onEvent: () => {}, signal }).catch(() => {});
  };
  await fail();
  const before = openFiles();
  for (let turn = 0; turn < 50; turn++) await Promise.all(Array.from({ length: 10 }, fail));
  expect(count).toBeGreaterThanOrEqual(1_002);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
  expect(client.stats).toMatchObject({ calling: 0, waiting: 0, watching: 0 });
  // Both ends of each of the kept connections are here.
  await until(() => openFiles() <= before + 2 * 12, "the connections are gone");
  expect(await client.call({ method: "GET", path: "/well" })).toEqual({ name: "well" });
});
