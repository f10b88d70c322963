/** Questions to agents go to no program without the agents' certificate, and an agent that does not answer is named. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { issueCertificate, makeAuthority, type Pair } from "../../../../host/controller/certificates/certificate.ts";
import type { KubeApi, KubeCall, KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { openAgentQuestions } from "../../server/agent-questions.ts";
import { createMapApi } from "../../server/map-api.ts";
import { historyAnswer } from "../../server/map-records.ts";
import { UsageSamples } from "../../server/usage-samples.ts";
import type { Viewer } from "../../server/viewer.ts";

const directory = temporaryDirectory("berth-questions-");

const span = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 3_600_000) };
const NAME = "berth-agent.kube-system.svc";

async function makeFiles(name: string, authority: Pair, names: readonly string[]) {
  const files = { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
  const { cert, key } = await issueCertificate(authority, names, span);
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  return files;
}

const authority = await makeAuthority("own", span);
const caFile = join(directory, "ca.crt");
writeFileSync(caFile, authority.cert);
const own = await makeFiles("own", authority, [NAME]);
const foreign = await makeFiles("foreign", await makeAuthority("own", span), [NAME]);
const misnamed = await makeFiles("misnamed", authority, ["berth-controller.kube-system.svc"]);
const signal = new AbortController().signal;
const tokenFile = join(directory, "token");
writeFileSync(tokenFile, "secret\n");
const ADDRESS = { family: 4, value: 0x0a060015n } as const;

const line = (time: string, audit: string, pool = "blue") => ({
  ...{ time, level: "info", audit, plugin: "berth", node: "n1", namespace: "shop", pod: "web-0", uid: "u" },
  ...{ interface: "eth0", network: "lan", addresses: ["fd06::7", "10.6.0.7"], pools: ["six", pool], sources: [] },
  ...{ rule: "", container: "c" },
  ...{ code: 0, ms: 1 },
});

/** A cluster of one node at 127.0.0.1. */
const api = {
  call: async ({ path }: KubeCall): Promise<KubeObject> => {
    const node = { metadata: { name: "n1" }, status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }] } };
    if (path === "/api/v1/nodes") return { kind: "NodeList", metadata: { resourceVersion: "1" }, items: [node] };
    return path === "/api/v1/nodes/n1" ? node : { spec: { nodeName: "n1" } };
  },
} as unknown as KubeApi;

/** An agent that shows the certificate, and the tokens that it is sent. */
async function serve({ certFile, keyFile }: typeof own, answer: object) {
  const tokens: string[] = [];
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
    tokens.push(request.headers.authorization ?? "");
    response.end(JSON.stringify(answer));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { questions: openAgentQuestions(api, { caFile, name: NAME, tokenFile, port }), tokens };
}

describe("an agent", () => {
  it("with the agents' certificate gets the token, and its lines come in order", async () => {
    const lines = [line("2026-01-01T00:00:02Z", "DEL"), line("2026-01-01T00:00:01Z", "ADD")];
    const start = { ...line("2026-01-01T00:00:00Z", "START"), addresses: [] };
    const page = { node: "n1", lines: [start, ...lines], missing: 2, next: { since: "2026-01-02T00:00:00Z", skip: 0 } };
    const { questions, tokens } = await serve(own, page);
    const history = await questions.history(ADDRESS, signal);
    expect([history.lines.map(({ audit }) => audit), tokens]).toEqual([["ADD", "DEL"], ["Bearer secret"]]);
    expect(history.problems).toEqual([
      'Node n1 has more lines; "berthctl history" shows them.',
      "At most 2 lines of node n1's audit log are missing.",
    ]);
  });

  it.each([
    ["of another authority", foreign],
    ["for another name", misnamed],
  ])("with a certificate %s gets no token", async (_, files) => {
    const { questions, tokens } = await serve(files, {});
    const { problems } = await questions.history(ADDRESS, signal);
    expect([problems, tokens]).toEqual([[expect.stringMatching(/^The agent of node n1 does not answer: /)], []]);
    const { succeeds, lines } = await questions.explain({ namespace: "shop", name: "web-0" }, signal);
    expect([succeeds, lines.length, tokens]).toEqual([false, 1, []]);
  });

  it("that refuses an ADD is quoted", async () => {
    const { questions } = await serve(own, { code: 101, msg: "No address is free", details: "a\nb" });
    const { succeeds, lines } = await questions.explain({ namespace: "shop", name: "web-0" }, signal);
    expect([succeeds, lines]).toEqual([false, ["No address is free", "a", "b"]]);
  });

  it("has lines of former namespaces and of other address spaces, which not every question gets", async () => {
    const times = ["2026-01-01T00:00:01.200Z", "2026-01-01T00:00:02.100Z", "2026-01-01T00:00:03Z"];
    const lines = times.map((time, at) => line(time, "ADD", ["blue", "lab", "gone"][at]));
    const { questions } = await serve(own, { node: "n1", lines, missing: 1 });
    const pools = () => ["", "lab"].map((addressSpace) => ({ name: addressSpace || "blue", addressSpace }));
    const source = { refresh: async () => {}, pools, questions, namespaceSince: () => "2026-01-01T00:00:02Z" };
    const ask = createMapApi({ source: source as never, samples: new UsageSamples(), version: "1" });
    const seen = async (viewer: Viewer, pool = "") => {
      const query = new URLSearchParams({ address: "10.6.0.7", pool });
      const { body } = await ask("/api/v1/history", { query, viewer, user: "", signal });
      const { lines, problems } = historyAnswer.parse(JSON.parse(String(body)));
      return { times: lines.map(({ time }) => time), problems };
    };
    expect(await seen("all")).toMatchObject({ times, problems: [expect.stringContaining("n1")] });
    expect(await seen(new Set(["shop"]))).toEqual({ times: times.slice(1), problems: ["Lines may be missing."] });
    expect((await seen("all", "blue")).times).toEqual([times[0], times[2]]);
  });
});
