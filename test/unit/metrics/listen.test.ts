import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it, onTestFinished, vi } from "vitest";
import { type ListenAddress, listenHttp, parseListenAddress } from "../../../host/metrics/listen.ts";

it.each<[string, ListenAddress | undefined]>([
  ["off", { kind: "off" }],
  ["127.0.0.1:9474", { kind: "loopback", host: "127.0.0.1", port: 9474 }],
  ["[::1]:80", { kind: "loopback", host: "::1", port: 80 }],
  ["unix:/run/berth/controller.sock", { kind: "unix", path: "/run/berth/controller.sock" }],
  ["0.0.0.0:80", { kind: "network", host: "0.0.0.0", port: 80 }],
  ["*:80", { kind: "network", host: undefined, port: 80 }],
  ["[fd00::1]:80", { kind: "network", host: "fd00::1", port: 80 }],
  ["[10.0.0.1]:80", { kind: "network", host: "10.0.0.1", port: 80 }],
  ["fd00::1:80", undefined],
  ["127.0.0.300:80", undefined],
  ["127.0.0.1", undefined],
  ["localhost:80", undefined],
  ["unix:relative", undefined],
  ["", undefined],
])("listens on %s", (text, expected) => expect(parseListenAddress(text)).toEqual(expected));

type Answer = Parameters<typeof listenHttp>[0]["answer"];

async function listen(answer: Answer = () => ({ status: 200, type: "text/plain", body: "" })) {
  const server = await listenHttp({ address: { kind: "loopback", host: "127.0.0.1", port: 0 }, answer });
  onTestFinished(() => server.close());
  return server;
}

it.each<[hosts: readonly string[], status: number]>([
  [["LOCALHOST:9474"], 200],
  [["127.0.0.1:9474"], 200],
  [["[::1]:80"], 200],
  [["attacker.example:9474"], 421],
  [["127.0.0.1.attacker.example"], 421],
  [["127.999.1.1"], 421],
  [["10.0.0.1:9474"], 421],
])("answers %s on loopback with %i", async ([host = ""], expected) => {
  const server = await listen();
  const status = await new Promise((resolve, reject) => {
    get(server.url, { headers: { host } }, ({ statusCode }) => resolve(statusCode)).on("error", reject);
  });
  expect(status).toBe(expected);
});

it("begins no stream for a caller that has left: it would not hear of its end", async () => {
  const body = vi.fn();
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const server = await listen(async (_, { signal }) => {
    request.destroy();
    await once(signal, "abort");
    setImmediate(resolve);
    return { status: 200, type: "text/plain", body };
  });
  const request = get(server.url).on("error", () => {});
  await answered;
  expect(body.mock.calls).toEqual([]);
});

it("answers no call that names two hosts", async () => {
  const server = await listen();
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.end("GET / HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\nConnection: close\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 4\d\d /);
});
