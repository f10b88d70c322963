/**
 * `kubectl berth check` and `release --from-report` with a kubectl that answers for agents, and an API server that does
 * not: the words about nodes that do not answer.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { INVALID } from "../../host/findings/conditions.ts";
import { AGENT_PROBLEMS } from "../../host/findings/host/check-agent.ts";
import { error, warning } from "../../host/findings/problem.ts";
import type { CheckRecord, CheckReport } from "../../host/records/check-record.ts";
import { runKubectlBerth } from "../lab/berthctl.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const home = temporaryDirectory("berth-kubectl-check-");
let server: Server;
/** Objects by the last part of their collection's path. */
let objects: Record<string, object[]>;
const CONTROLLER = {
  metadata: { namespace: "berth", name: "c-1", labels: { "app.kubernetes.io/component": "controller" } },
  spec: { nodeName: "b", containers: [{}] },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
};

/** In place of the objects of a collection that the server cannot list. */
const UNLISTED: object[] = [];

const LEAK = {
  ...error("leak", "its pod is gone", "Release it")({}),
  ...{ address: "10.6.0.7", pool: "blue", namespace: "shop", pod: "web-0", interface: "eth0" },
  ...{ owner: "u1", container: "c1", isReleasable: true },
};

const record = (node: string, findings: CheckRecord["findings"] = []): CheckRecord => ({
  ...{ node, cluster: "k1", time: new Date().toISOString(), records: 1, nics: 1, objects: 1, attachments: 1 },
  ...{ findings, used: [] },
});

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = new URL(request.url ?? "", "http://server").pathname;
    response.setHeader("content-type", "application/json");
    if (path.endsWith("/namespaces/kube-system")) {
      response.end(JSON.stringify({ metadata: { name: "kube-system", uid: "k1" } }));
      return;
    }
    const items = objects[path.split("/").at(-1) ?? ""];
    if (items === undefined) response.statusCode = 403;
    if (items === UNLISTED) response.statusCode = 400;
    response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items, message: "not permitted" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const cluster = { name: "c", cluster: { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true } };
  const context = { name: "c", context: { cluster: "c", user: "u" } };
  const users = [{ name: "u", user: { token: "t" } }];
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    clusters: [cluster],
    contexts: [context],
    users,
  };
  writeFileSync(join(home, "config"), JSON.stringify(config));
  for (const [name, value] of Object.entries({ HOME: home, KUBECONFIG: join(home, "config") })) vi.stubEnv(name, value);
  vi.stubEnv("PATH", `${home}:${process.env.PATH}`);
});
afterAll(() => {
  vi.unstubAllEnvs();
  server.close();
});
beforeEach(() => {
  objects = { pods: [CONTROLLER], ipallocations: [], ippools: [], nodes: [{ metadata: { name: "a", uid: "n1" } }] };
});

interface Agents {
  /** Lines of `kubectl get pods`. */
  readonly pods: readonly string[];
  /** Shell commands by pod. */
  readonly answers: Readonly<Record<string, string>>;
}

function berth({ pods, answers }: Agents, ...words: string[]) {
  writeFileSync(join(home, "pods"), pods.map((line) => `${line.replaceAll(" ", "\t")}\n`).join(""));
  const cases = Object.entries(answers).map(([pod, command]) => `*" ${pod} "*) ${command} ;;`);
  const script = `#!/bin/sh\ncase "$*" in\n*"get pods"*) cat ${home}/pods ;;\n${cases.join("\n")}\nesac\n`;
  writeFileSync(join(home, "kubectl"), script, { mode: 0o755 });
  return runKubectlBerth(...words);
}

function answer(each: CheckRecord): string {
  const path = join(home, `record-${each.node}`);
  writeFileSync(path, JSON.stringify(each));
  return `cat ${path}`;
}

const A = "berth agent-a a Running ";
const B = "berth agent-b b Running ";

it("joins the agents' records", async () => {
  const answers = { "agent-a": answer(record("a")), "agent-b": answer(record("b", [LEAK])) };
  expect(await berth({ pods: [B, A], answers }, "check")).toEqual({
    code: 1,
    out: [
      "2 nodes: 1 finding; compared 2 records and 2 addresses on NICs, 2 objects, the routes of 2 interfaces",
      "leak: 10.6.0.7 of pool blue of pod shop/web-0, eth0 on node b: its pod is gone",
      "  Release it",
      "",
    ].join("\n"),
    error: "",
  });
});

it("says that no controller leads, unless another takes over, and that one is not ready", async () => {
  const led = (renewTime: string) => {
    const spec = { holderIdentity: "c-1_0a", leaseDurationSeconds: 30, renewTime };
    return [{ metadata: { annotations: { "ipam.vendor.io/notifier": "c-1_0a" } }, spec }];
  };
  const check = () => berth({ pods: [A], answers: { "agent-a": answer(record("a")) } }, "check");
  let ledMs: number | undefined;
  objects = {
    ...objects,
    pods: [{ ...CONTROLLER, status: { phase: "Running" } }],
    get leases() {
      // By default the longest time between two attempts of another one.
      ledMs ??= Date.now() + 2_500;
      return Date.now() < ledMs ? [] : led(new Date().toISOString());
    },
  };
  expect(await check()).toMatchObject({
    code: 0,
    out: expect.stringMatching(/controller: of pod berth\/c-1 on node b/),
  });
  objects = { ...objects, leases: led("2026-01-01T00:00:00Z") };
  expect(await check()).toMatchObject({ code: 1, out: expect.stringContaining("\ncontroller: no controller leads") });
});

it("pools says that no controller leads, to whoever may see it", async () => {
  objects = { ...objects, ippoolusages: [], leases: [] };
  const heading = async () => (await runKubectlBerth("pools")).out.split("\n")[0];
  expect(await heading()).toBe('NO CONTROLLER LEADS: the counts may be old; "kubectl berth status" says more');
  objects = { pods: [CONTROLLER], ippools: [], ippoolusages: [] };
  expect(await heading()).toMatch(/^POOL /);
});

it("takes unread state of an agent of the release before for a finding", async () => {
  const former = { ...record("a"), problems: ["The objects of this node: timeout"] };
  const { code, out } = await berth({ pods: [A], answers: { "agent-a": answer(former) } }, "check");
  expect([code, out]).toEqual([3, expect.stringContaining("not-compared: The objects of this node: timeout\n")]);
});

it("asks the agents to repair, and tells the work of each", async () => {
  const operations = ["pod: ip link set veth0 up"];
  const repaired = [{ namespace: "shop", pod: "web-0", interface: "eth0", netns: "/run/netns/a", operations }];
  const answers = {
    "agent-a": `test "\${*%check --record --repair}" != "$*" && ${answer({ ...record("a"), repaired })}`,
    "agent-b": "echo \"error: unknown option '--repair'\" >&2; exit 2",
  };
  const { code, out } = await berth({ pods: [A, B], answers }, "check", "--repair");
  expect(out.split("\n").slice(0, 3)).toEqual([
    "node a: repaired pod shop/web-0, eth0 in /run/netns/a:",
    "    pod: ip link set veth0 up",
    expect.stringMatching(/^1 node: 1 finding/),
  ]);
  expect(out).toContain("not-compared: on node b: its agent did not answer: error: unknown option '--repair'");
  expect(code).toBe(3);
});

it("joins the findings of the hosts, where the options say", async () => {
  const answers = {
    "agent-a": `test "\${*%check --record --cni-bin-dir=/opt/bin}" != "$*" && ${answer(record("a", [warning("sysctls", "it is so", "Change it")({})]))}`,
    "agent-b": answer(record("b", [error("sysctls", "it is so", "Change it")({})])),
  };
  const called = (...pods: string[]) => berth({ pods, answers }, "check", "--cni-bin-dir", "/opt/bin");
  expect(await called(A, B)).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /^2 nodes: 2 findings; .*\nwarning: sysctls: on node a: it is so\n {2}Change it\nsysctls: on node b: it is so\n {2}Change it\n$/,
    ),
  });
  expect((await called(A)).code).toBe(0);
});

it("says once what agents say about the settings, with their nodes", async () => {
  const said = [AGENT_PROBLEMS.settings({ problem: "Of vendor-conf, it is odd" })];
  const answers = { "agent-a": answer(record("a", said)), "agent-b": answer(record("b", said)) };
  const { code, out } = await berth({ pods: [A, B], answers }, "check");
  const wanted = /^2 nodes: 1 finding;.*\nagent: Of vendor-conf, it is odd \(nodes a, b\)\n {2}Correct it/;
  expect([code, out]).toEqual([1, expect.stringMatching(wanted)]);
});

const FAULT = 'field "spec.subnet": found 3, want text';

it.each([
  ["Refused", 'IPPool "wide" is refused: its subnet overlaps', 'IPPool "wide" is refused: its subnet overlaps'],
  ["InvalidSpecification", `${INVALID}${FAULT}`, `IPPool "wide" cannot be used: ${FAULT}`],
])("says once what a pool's condition says, by its reason %s, and not of one node", async (reason, message, own) => {
  const conditions = [{ type: "Ready", status: "False", reason, message, lastTransitionTime: "" }];
  objects.ippools = [{ metadata: { name: "wide" }, spec: {}, status: { conditions } }];
  const ofOther = `IPPool "other" cannot be used: ${FAULT}`;
  const said = [own, ofOther].map((text) => error("agent", text, "See it")({}));
  const answers = { "agent-a": answer(record("a", said)) };
  const { code, out } = await berth({ pods: [A], answers }, "check");
  expect([code, out]).toEqual([1, expect.stringMatching(/^node a: 2 findings;.*\n(?:.*\n.*\n){2}$/)]);
  expect(out).toContain(`agent: ${ofOther}\n  See it\n${reason}: IPPool wide: ${message}\n`);
  expect((await berth({ pods: [A], answers }, "--node", "a", "check")).out).toContain(`\nagent: ${own}\n`);
});

it.each<[what: string, pods: string[], answers: Record<string, string>, line: string]>([
  ["an agent that fails", [A, B], { "agent-b": "echo gone >&2; exit 3" }, "its agent did not answer: gone"],
  ["an agent that does not run", [A, "berth agent-b b Pending "], {}, "the agent's pod is Pending"],
  ["an agent that is being deleted", [A, "berth agent-b b Running 2026"], {}, "the agent's pod is Terminating"],
])("names %s", async (_what, pods, answers, line) => {
  const { code, out } = await berth({ pods, answers: { "agent-a": answer(record("a")), ...answers } }, "check");
  expect([code, out]).toEqual([3, expect.stringContaining(`not-compared: on node b: ${line}\n`)]);
});

it("asks the running pod of two on a node, and only the named node", async () => {
  const answers = { "agent-a": answer(record("a")), "agent-x": "exit 3", "agent-b": "exit 3" };
  expect((await berth({ pods: ["berth agent-x a Pending ", A], answers }, "check")).code).toBe(0);
  const named = await berth({ pods: [A], answers }, "--node", "a", "check", "-o", "json");
  expect(JSON.parse(named.out)).toMatchObject({ cluster: "k1", nodes: [{ node: "a" }], findings: [] });
});

it("names kinds that the user may not read, or the API server does not list", async () => {
  objects = { ipallocations: [], ippools: [], subnets: UNLISTED };
  const { code, out } = await berth({ pods: [A], answers: { "agent-a": answer(record("a")) } }, "check");
  expect(code).toBe(3);
  expect(out.match(/(?<=^not-compared: )\w+(?= cannot be read: )/gm)).toEqual(["Pods", "Subnets", "Nodes"]);
});

it("says the rest although vendor-conf cannot be decoded", async () => {
  objects["vendor-conf"] = [];
  const agents = { pods: [A], answers: { "agent-a": answer(record("a", [LEAK])) } };
  expect(await berth(agents, "check")).toMatchObject({ code: 1, out: expect.stringContaining(LEAK.text) });
});

it("ends with 3 if there is no agent", async () => {
  const error = expect.stringContaining("No agent is running: no pod has the labels");
  expect(await berth({ pods: [], answers: {} }, "check")).toMatchObject({ code: 3, error });
});

it("ends with 2 if the report cannot be written, and if there is none to read", async () => {
  const agents = { pods: [A], answers: { "agent-a": answer(record("a")) } };
  expect(await berth(agents, "check", "--report", join(home, "none", "r"))).toMatchObject({
    code: 2,
    error: expect.stringContaining("Option --report: ENOENT"),
  });
  writeFileSync(join(home, "no-report"), "{}");
  for (const [words, text] of [
    [["--from-report", join(home, "none"), "-y"], "Option --from-report: ENOENT"],
    [["--from-report", join(home, "no-report"), "-y"], 'is no report of "check --report"'],
    [["10.6.0.7", "--from-report", join(home, "no-report"), "-y"], "not several"],
    [["-y"], "Give an address, a pod, or --from-report"],
  ] as const) {
    expect(await berth(agents, "release", ...words)).toMatchObject({ code: 2, error: expect.stringContaining(text) });
  }
});

it("releases by each node's agent, which gets its own findings only, and tells the failures", async () => {
  const answers = {
    "agent-a": answer(record("a", [LEAK])),
    "agent-b": answer(
      record("b", [
        { ...LEAK, address: "10.6.0.8" },
        { ...LEAK, kind: "drift", isReleasable: false },
      ]),
    ),
  };
  const file = join(home, "report.json");
  await berth({ pods: [A, B], answers }, "check", "--report", file);
  const doing = {
    "agent-a": `cat > ${home}/input; echo "10.6.0.7: released (leak)"`,
    "agent-b": "echo '10.6.0.8: refused: its pod exists'; echo 'command terminated with exit code 1' >&2; exit 1",
  };
  const done = await berth({ pods: [A, B], answers: doing }, "release", "--from-report", file, "--yes");
  expect(done).toMatchObject({
    code: 1,
    out: [
      "Not for release, see their remedies: 1 drift",
      "node a: 10.6.0.7: released (leak)",
      "node b: 10.6.0.8: refused: its pod exists",
      "",
    ].join("\n"),
  });
  const given: CheckReport = JSON.parse(readFileSync(join(home, "input"), "utf8"));
  expect(given).toMatchObject({
    cluster: "k1",
    nodes: [{ node: "a" }],
    findings: [{ address: "10.6.0.7", node: "a" }],
  });
  expect(given.findings).toHaveLength(1);
  const away = await berth({ pods: [A], answers: doing }, "release", "--from-report", file, "--yes");
  expect(away).toMatchObject({
    code: 3,
    out: expect.stringContaining("node b: no agent runs there; not released: 10.6.0.8\n"),
  });
});
