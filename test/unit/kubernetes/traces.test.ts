/** Traces of a thousand failures in a process that runs for months: none. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
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

it("calls that are given up while they wait, are under way or pause leave nothing, and are not sent any more", async () => {
  const stub = await startStub((response, { url }) => {
    if (url.startsWith("/busy")) sendStatus(response, 503, "Busy", { "retry-after": "5" });
  });
  const givenUp = new Set<string>();
  const sent: string[] = [];
  const late: string[] = [];
  const note = (message: unknown): void => {
    const { path } = (message as { request: { path: string } }).request;
    (givenUp.has(path) ? late : sent).push(path);
  };
  subscribe("undici:client:sendHeaders", note);
  const giveUp = (index: number): Promise<unknown> => {
    const controller = new AbortController();
    const path = `/${index % 2 === 0 ? "busy" : "silent"}/${index}`;
    setTimeout(
      () => {
        givenUp.add(path);
        controller.abort(new Error("enough"));
      },
      8 * (index % 50),
    );
    return stub.client
      .call({ method: "POST", path, body: {}, signal: controller.signal })
      .catch(({ message }: Error) => message);
  };
  const ends = await Promise.all(Array.from({ length: 200 }, (_, index) => giveUp(index)));
  await new Promise((resolve) => setTimeout(resolve, 100));
  unsubscribe("undici:client:sendHeaders", note);
  expect(new Set(ends)).toEqual(new Set(["enough"]));
  expect(sent.length).toBeGreaterThan(3);
  expect(late).toEqual([]);
  expect(stub.client.stats).toMatchObject({ calling: 0, waiting: 0 });
});
