/**
 * The code that one step of the product passes: `node benchmarks/walk/walk.ts [--functions]`.
 *
 * Functions entered and their files by V8's precise coverage, and classes constructed: of a plain pod's ADD on an agent
 * that has served others, and of the reconciliation of a Subnet's new workload. The code of agent and controller is the
 * product's, on an API server in memory behind its own client. The registry's thread is not looked into.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Backend } from "../../host/agent/backend.ts";
import { openEmbeddedBackend } from "../../host/agent/embedded/backend.ts";
import { IpamPlugin } from "../../host/agent/ipam/plugin.ts";
import { Dispatcher } from "../../host/agent/server/dispatcher.ts";
import { openController } from "../../host/controller/controller-process.ts";
import { CONTROLLERS } from "../../host/controller/controllers.ts";
import { openKubeClient } from "../../host/kubernetes/client.ts";
import { ApiError, type KubeApi } from "../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { REGISTRY_KINDS } from "../../host/registry/epoch/kubernetes-epoch.ts";
import { EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { MemoryApiServer } from "../../test/fakes/memory-api-server.ts";
import { openBackend } from "../../test/lab/cluster/in-process.ts";
import {
  CONFIG_MAPS,
  CUSTOM_KINDS,
  DEPLOYMENTS,
  NODES,
  PODS,
  POOLS,
  SERVES,
  SUBNETS,
} from "../../test/simulation/collections.ts";
import { bodyOf, failure } from "../../test/simulation/network.ts";
import { NO_AUDIT } from "../../test/world/no-audit.ts";

const { values } = parseArgs({ options: { functions: { type: "boolean", default: false } } });
const HOST = join(root, "host");
const LOG = openLog("walk", "error");
const UNUSED = { add: fail, check: fail, del: fail, gc: fail, status: fail };
/** Steps before those that count. */
const WARM = 5;
const WALKS = 5;

function fail(): never {
  throw new Error("A walk asks for no other plugin");
}

const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Returns the product's functions that were entered since the last call. */
function takeEntered() {
  let scripts: Profiler.ScriptCoverage[] = [];
  session.post("Profiler.takePreciseCoverage", (_error, answer) => {
    scripts = answer.result;
  });
  return scripts.flatMap(({ url, functions }) => {
    if (!url.startsWith(`file://${HOST}/`)) return [];
    const file = relative(HOST, fileURLToPath(url));
    const text = readFileSync(fileURLToPath(url), "utf8");
    return functions.flatMap(({ functionName: name, ranges: [range] }) => {
      if (range === undefined || range.count === 0 || (range.startOffset === 0 && name === "")) return [];
      return [{ file, name, isConstructor: text.startsWith("constructor(", range.startOffset) }];
    });
  });
}

/** The least of several steps counts: in the others the process did something else, too. */
async function walk(title: string, step: (index: number) => Promise<void>): Promise<void> {
  for (let index = 0; index < WARM; index++) await step(index);
  await sleep(200);
  let least: ReturnType<typeof takeEntered> | undefined;
  for (let index = WARM; index < WARM + WALKS; index++) {
    takeEntered();
    await step(index);
    const entered = takeEntered();
    if (least === undefined || entered.length < least.length) least = entered;
  }
  const byFile = Map.groupBy(least ?? [], ({ file }) => file);
  const classes = least?.filter(({ isConstructor }) => isConstructor).map(({ name }) => name) ?? [];
  console.log(`\n${title}: ${least?.length} functions in ${byFile.size} files`);
  console.log(`  constructs ${classes.length === 0 ? "nothing" : classes.sort().join(", ")}`);
  if (!values.functions) return;
  for (const [file, those] of [...byFile].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`  ${file}: ${those.map(({ name }) => name || "(unnamed)").join(", ")}`);
}

/** Attaches plain pods of namespace shop, `web-0` and so on. */
async function walkAdd(title: string, backend: Backend): Promise<void> {
  await backend.synced(AbortSignal.timeout(10_000));
  const plugins = { berth: new IpamPlugin(backend.ipam, backend), coordinator: UNUSED, ifacer: UNUSED };
  const dispatcher = new Dispatcher(plugins, NO_AUDIT, LOG);
  const conf = { cniVersion: "1.1.0", name: "lan", type: "macvlan", ipam: { type: "berth" } };
  await walk(title, async (index) => {
    const pod = `web-${index}`;
    const headers = {
      ...{ "cni-command": "ADD", "cni-containerid": `c-${pod}`, "cni-netns": `/proc/${sandbox.pid}/ns/net` },
      ...{ "cni-ifname": "eth0", "cni-path": "/bin" },
      "cni-args": `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod};K8S_POD_UID=uid-${pod}`,
    };
    const raw = { plugin: "berth", headers, body: JSON.stringify(conf) };
    const { status, body } = await dispatcher.dispatch(raw, new AbortController().signal);
    if (status !== 200) throw new Error(`The ADD of ${pod} was refused: ${body}`);
  });
}

/** The server behind the product's client: calls become requests and answers, watches are the server's own. */
function clientOf(server: MemoryApiServer): KubeApi {
  const direct = server.client();
  const client = openKubeClient({
    ...{ credentials: { endpoint: undefined, current: fail, refresh: fail }, userAgent: "walk", random: Math.random },
    send: async ({ method, path, query, body, contentType, accept }) => {
      const call = { method, path, query, body, contentType, accept };
      try {
        const answer = await direct.call(JSON.parse(JSON.stringify(call)));
        return { status: method === "POST" ? 201 : 200, retryAfter: undefined, body: bodyOf(JSON.stringify(answer)) };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return { status: error.status, retryAfter: undefined, body: bodyOf(failure(error)) };
      }
    },
  });
  return { call: (call) => client.call(call), watch: (watch) => direct.watch(watch) };
}

function openServer(): MemoryApiServer {
  const server = new MemoryApiServer({ serves: SERVES, isOpen: true, nowMs: Date.now });
  const inSystem = { metadata: { namespace: "kube-system" } };
  server.put(CONFIG_MAPS, "vendor-conf", { ...inSystem, data: { "conf.yml": "enableIPv6: false" } });
  server.put(CONFIG_MAPS, EPOCH_MAP, inSystem);
  for (const kind of REGISTRY_KINDS) server.put(CUSTOM_KINDS, kind, { metadata: { uid: kind } });
  server.put("/api/v1/namespaces", "shop", {});
  server.put(NODES, "n1", { metadata: { uid: "n1" }, status: { nodeInfo: { machineID: "m", bootID: "boot" } } });
  return server;
}

/** The network namespace of all pods, without a NIC. */
const sandbox = spawn("unshare", ["--net", "sh", "-c", "echo; exec sleep 60"]);
await once(sandbox.stdout, "data");
const folder = mkdtempSync(join(tmpdir(), "berth-walk-"));
try {
  const pool = { subnet: "10.6.0.0/24", gateway: "10.6.0.1", ips: ["10.6.0.10-10.6.0.250"], default: true };
  const kind = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: "lan" } };
  writeFileSync(join(folder, "lan.yaml"), JSON.stringify({ ...kind, spec: pool }));
  const cniConfDirectory = join(folder, "net.d");
  mkdirSync(cniConfDirectory);
  const embedded = await openEmbeddedBackend({
    ...{ node: "n1", configDirectory: folder, cniConfDirectory, drivers: [], nodeLabels: {} },
    ...{ stateDirectory: join(folder, "embedded"), bootId: "boot", lockWaitMs: 0, log: LOG, audit: NO_AUDIT },
    coreWasm: readFileSync(join(root, "dist", "core", "berth-core.wasm")),
    nowMs: () => Math.floor(performance.now()),
    faultCounter: createFaultCounter(),
    onDeath: fail,
  });
  await walkAdd("ADD, embedded", embedded);
  await embedded.close();

  const server = openServer();
  server.put(POOLS, "lan", { spec: pool });
  for (let index = 0; index < WARM + WALKS; index++) {
    const metadata = { namespace: "shop", uid: `uid-web-${index}` };
    server.put(PODS, `web-${index}`, { metadata, spec: { nodeName: "n1" }, status: { phase: "Pending" } });
  }
  const cluster = await openBackend({
    ...{ api: clientOf(server), node: "n1", stateDirectory: join(folder, "cluster") },
    ...{ cniConfDirectory, bootId: "boot", log: LOG },
  });
  await walkAdd("ADD, cluster, nothing claimed ahead", cluster);
  await cluster.close();
} finally {
  rmSync(folder, { recursive: true });
  sandbox.kill();
}

const server = openServer();
const controller = openController({
  ...{ api: clientOf(server), controllers: CONTROLLERS, configNamespace: "kube-system", random: Math.random },
  lease: {
    ...{ namespace: "kube-system", name: "berth-controller", identity: "walk_1" },
    timings: { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 },
  },
  clock: { nowMs: () => performance.now(), pause: (waitMs, signal) => sleep(waitMs, undefined, { signal }) },
  now: () => new Date(),
  log: LOG,
});
server.put(SUBNETS, "lan", { spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.250"], gateway: "10.6.0.1" } });
/** A workload that names the Subnet; ends when its pool is there. */
async function addWorkload(index: number): Promise<void> {
  const name = `app-${index}`;
  const before = server.collection(POOLS).size;
  const annotations = { "ipam.vendor.io/subnet": '{"ipv4":["lan"]}', "ipam.vendor.io/ippool-ip-number": "+1" };
  const spec = { replicas: 2, template: { metadata: { annotations } } };
  server.put(DEPLOYMENTS, name, { metadata: { namespace: "shop", uid: `uid-${name}` }, spec });
  for (let turn = 0; server.collection(POOLS).size === before; turn++) {
    if (turn > 1_000) throw new Error(`No pool was generated for ${name}: ${controller.status.problems.join("; ")}`);
    await sleep(10);
  }
}
await walk("Subnet: a workload comes, its pool is generated", addWorkload);
await controller.close();
process.exit();
