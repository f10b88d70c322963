import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { ApiError, type KubeApi, type KubeCall, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { type Plan, planProbes, type TestNode } from "../../connectivity/plan-probes.ts";
import { PROBE_SCRIPT, type ProbeAnswer, type ProbeTarget } from "../../connectivity/probe-script.ts";
import { runTest } from "../../connectivity/run-test.ts";

it("a namespace that stays is named, also when the test was interrupted", async () => {
  const ending = new AbortController();
  const call = async ({ method }: KubeCall): Promise<KubeObject> => {
    if (method === "DELETE") throw new Error("may not delete");
    if (method === "GET") ending.abort();
    return { metadata: { resourceVersion: "1" }, items: [] };
  };
  const of = { images: new Map(), access: {}, progress: () => {}, startMs: 1 };
  const test = runTest({ api: { call } as unknown as KubeApi, signal: ending.signal, ...of });
  await expect(test).rejects.toThrow(/^Namespace berth-test-\w+ is not removed: may not delete$/);
});

it("the time for the pods' start does not end a probe", async () => {
  const bin = temporaryDirectory("berth-probes-", onTestFinished);
  const answers = JSON.stringify([0, 1].map((id) => ({ id, isWell: true, text: "" })));
  writeFileSync(join(bin, "kubectl"), `#!/bin/sh\nsleep 0.3\necho '${answers}'\n`, { mode: 0o755 });
  vi.stubEnv("PATH", `${bin}:${process.env.PATH}`);
  const status = { phase: "Running", podIPs: [{ ip: "10.6.0.9" }] };
  const pods = ["pod-0", "node-0"].map((name) => ({ metadata: { name }, status }));
  const call = async ({ method, path }: KubeCall): Promise<KubeObject> => {
    if (method === "GET" && /namespaces\/[^/]+$/.test(path))
      throw new ApiError({ status: 404, reason: "NotFound", operation: "GET", message: "" });
    return { metadata: { resourceVersion: "1" }, items: path.endsWith("/pods") ? pods : [] };
  };
  const of = { images: new Map([["a", "image"]]), access: { timeoutMs: 50 }, progress: () => {}, startMs: 50 };
  const { signal } = new AbortController();
  const found = await runTest({ api: { call } as unknown as KubeApi, signal, ...of });
  vi.unstubAllEnvs();
  expect(found.map(({ from, to, outcome }) => `${from} ${to}: ${outcome}`)).toEqual([
    "pod gateway: ok",
    "node its pod: ok",
  ]);
});

const node = (name: string, at: number): TestNode => ({
  name,
  ips: [`10.0.0.${at}`, `fd00::${at}`],
  podIps: [`10.6.0.${at}`, `fd06::${at}`],
});

/** By `from node → target` the families that are probed. */
function planned(plan: Partial<Plan>): Record<string, string> {
  const probes = planProbes({ nodes: [], serviceIps: ["10.96.0.9"], serverPort: 8080, servicePort: 80, ...plan });
  expect(probes.map(({ id }) => id)).toEqual([...probes.keys()]);
  const groups = Map.groupBy(probes, (probe) => `${probe.from} ${probe.node} → ${probe.to}`);
  return Object.fromEntries([...groups].map(([key, all]) => [key, all.map(({ family }) => family).join(",")]));
}

describe("probes", () => {
  it("of one node reach the gateway, the node, the pod and the service", () => {
    expect(planned({ nodes: [node("a", 1)] })).toEqual({
      "pod a → gateway": "4,6",
      "pod a → its node": "4,6",
      "pod a → service": "4",
      "node a → its pod": "4,6",
      "node a → service": "4",
    });
  });

  it("of two nodes go both ways, and each once", () => {
    const words = planned({ nodes: [node("a", 1), node("b", 2)] });
    for (const [from, to] of ["ab", "ba"])
      expect(words).toMatchObject({
        [`pod ${from} → pod of ${to}`]: "4,6",
        [`pod ${from} → node ${to}`]: "4,6",
        [`node ${from} → pod of ${to}`]: "4,6",
      });
  });

  it("of many nodes grow with their number only", () => {
    const nodes = Array.from({ length: 100 }, (_, at) => node(`n${at}`, at + 1));
    const words = Object.keys(planned({ nodes })).filter((word) => word.startsWith("pod n0 → pod of"));
    expect(words).toEqual(["pod n0 → pod of n1", "pod n0 → pod of n99"]);
  });

  it("have no family that the pod lacks", () => {
    const words = planned({ nodes: [{ ...node("a", 1), podIps: ["fd06::1"] }] });
    expect(words).toEqual({ "pod a → gateway": "6", "pod a → its node": "6", "node a → its pod": "6" });
  });
});

describe("the program of a probe", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function serve(answer: string): Promise<number> {
    const server = createServer((socket) => socket.on("error", () => {}).on("data", () => socket.end(answer)));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  async function probe(target: Pick<ProbeTarget, "kind" | "port">): Promise<ProbeAnswer> {
    const words = JSON.stringify([{ id: 7, family: 4, host: "127.0.0.1", ...target }]);
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", PROBE_SCRIPT, words, "0"]);
    return JSON.parse(stdout)[0];
  }

  it("wants the answer of a test's server", async () => {
    const port = await serve("berth-test\n");
    expect(await probe({ kind: "server", port })).toEqual({ id: 7, isWell: true, text: "127.0.0.1" });
    expect(await probe({ kind: "server", port: await serve("HTTP/1.1 400\n") })).toMatchObject({
      isWell: false,
      text: "127.0.0.1: something else answers",
    });
  });

  it("takes a refusal for an answer of a machine, and not of a server", async () => {
    const port = await serve("");
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await probe({ kind: "machine", port })).toMatchObject({ isWell: true });
    expect(await probe({ kind: "server", port })).toMatchObject({ isWell: false, text: "127.0.0.1: ECONNREFUSED" });
  });
});
