import { once } from "node:events";
import { statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import type { ControllerProcess } from "../../../host/controller/controller-process.ts";
import { listenForQuestions } from "../../../host/controller/status-server.ts";
import type { HttpListener, ListenAddress } from "../../../host/metrics/listen.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

const status: ControllerProcess["status"] = {
  ...{ identity: "one_1", isLeading: true, leader: "one_1", unread: [], problems: [], parts: ["usage"], caches: {} },
};
const metrics = { render: async () => "berth_controller_leader 1\n" };
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface State {
  readonly stuck?: string;
  readonly waiting?: string;
}

async function listen(address: ListenAddress, { stuck, waiting }: State = {}): Promise<HttpListener> {
  const controller = { status, stuck, waiting };
  const server = await listenForQuestions({ address, controller, version: "1.2.3", metrics });
  closing.push(() => server.close());
  return server;
}

const LOOPBACK: ListenAddress = { kind: "loopback", host: "127.0.0.1", port: 0 };

async function ask(address: ListenAddress, path: string, options: State & { method?: string } = {}) {
  const { url } = await listen(address, options);
  const answer = await fetch(`${url}${path}`, { method: options.method ?? "GET" });
  return { status: answer.status, type: answer.headers.get("content-type"), body: await answer.text() };
}

const SERVED = "GET /v1/status, GET /healthz, GET /readyz, GET /metrics";

describe("questions to a controller", () => {
  it("returns its status", async () => {
    const { body, type } = await ask(LOOPBACK, "/v1/status?pretty");
    expect([JSON.parse(body), type]).toEqual([{ version: "1.2.3", ...status }, "application/json"]);
  });

  it.each([
    ["/healthz", {}, 200, "ok\n"],
    ["/healthz", { stuck: "The controllers have not stopped" }, 503, "The controllers have not stopped\n"],
    ["/healthz", { waiting: "Not listed yet: pools" }, 200, "ok\n"],
    ["/readyz", {}, 200, "ok\n"],
    ["/readyz", { waiting: "Not listed yet: pools" }, 503, "Not listed yet: pools\n"],
    ["/readyz", { stuck: "The controllers have not stopped" }, 503, "The controllers have not stopped\n"],
    ["/metrics", {}, 200, "berth_controller_leader 1\n"],
    ["/healthz", { method: "POST" }, 405, '{"error":"POST is not served; there is only GET"}\n'],
    ["/v1/pools", {}, 404, `{"error":"/v1/pools is not served; there are ${SERVED}"}\n`],
  ])("%s %j: %i", async (path, options, expected, body) =>
    expect(await ask(LOOPBACK, path, options)).toMatchObject({ status: expected, body }),
  );

  it("tells other machines only its health", async () => {
    const { url } = await listen({ kind: "network", host: undefined, port: 0 });
    const port = new URL(url).port;
    const statuses = ["/healthz", "/readyz", "/v1/status", "/metrics"].map(
      async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 404, 404]);
  });

  it("answers on a unix socket that only its user may open, in the place of one that was left", async () => {
    const directory = temporaryDirectory("berth-status-", onTestFinished);
    const path = join(directory, "c.sock");
    await listen({ kind: "unix", path });
    const { url } = await listen({ kind: "unix", path });
    expect([url, statSync(path).mode & 0o777]).toEqual([`unix:${path}`, 0o600]);
    const [answer] = await once(request({ socketPath: path, path: "/healthz" }).end(), "response");
    expect(await text(answer)).toBe("ok\n");
  });
});
