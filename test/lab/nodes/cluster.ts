/**
 * A real cluster on one machine: a control plane with controller manager and scheduler, nodes with containerd,
 * kubelet and Berth's agent, and Berth's controller. Agents and controller have the rights and the policies of
 * deploy/.
 *
 *      node1  node2  node3       machines of their own (machine.ts); the pods' macvlan NICs are on eth0 of their node
 *        │      │      │
 *      ──┴──────┴──────┴── lan   10.99.0.0/16; the control plane is 10.99.0.1
 *
 *   await using cluster = await startRealCluster({ nodes: 3 });
 *   const web = deployment({ name: "web", replicas: 50 });
 *   await cluster.client.create("/apis/apps/v1/namespaces/shop/deployments", web);
 *   await cluster.nodes[0].crash();
 *
 * Effects: namespaces, processes, cgroups and a folder below the system's temporary folder; all gone after `stop`,
 * and after a start that failed.
 */
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { referenceTool, root } from "../../../scripts/setup/paths.mjs";
import { applyObject } from "../apply.ts";
import { applyCrds } from "../cluster/crds.ts";
import { definitionsCrd, nodeObject, settingsObject } from "../cluster/objects.ts";
import type { KubernetesVersion } from "../cluster/plane-parts.ts";
import { applyRights, createToken } from "../cluster/rights.ts";
import { type CommandOptions, type CommandOutcome, runCommand } from "../command.ts";
import { type ControlPlane, startControlPlane } from "../control-plane.ts";
import { type Daemon, startDaemon } from "../daemon.ts";
import { followHistory } from "../history/follow.ts";
import { STORED_AS_JSON } from "../history/stored.ts";
import type { KubeClient, KubeObject } from "../kube-client.ts";
import { createNetns, type Netns } from "../netns.ts";
import { type Observer, startObserver } from "../observer/observer.ts";
import { etcdRecords } from "../observer/records.ts";
import type { Runtime } from "./containerd.ts";
import { writeImages } from "./image.ts";
import { startManagers } from "./kubelet.ts";
import { BERTH_RANGE, LAN, multusRights, type NetworkName } from "./networks.ts";
import { addRealNode, nodeAccount, nodeName, type RealNode, type Site, TOKEN_S } from "./node.ts";

export const NAMESPACE = "shop";

export interface RealClusterOptions {
  readonly nodes: number;
  /** Default: `berth`. */
  readonly network?: NetworkName;
  /** Settings of vendor-conf; added to {@link SETTINGS}. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Number of Berth's controllers, one of which leads. Default: 1. */
  readonly controllers?: number;
  /** Default: `containerd-1`. */
  readonly runtime?: Runtime;
  /**
   * False: nothing of Berth, and each node has its own /opt/cni and /etc/cni; then there is no network by default
   * either. Default: true.
   */
  readonly hasBerth?: boolean;
  /** Archives of further images. */
  readonly images?: readonly string[];
  /** Default: 1.34. */
  readonly kubernetes?: KubernetesVersion;
  /**
   * An observer compares the wire and the pods' NICs with the records, and every write to those is checked; `stop`
   * throws their findings. Default: false.
   */
  readonly isObserved?: boolean;
  /** Added to kube-apiserver's command line. */
  readonly serverArgs?: readonly string[];
}

export interface RealCluster extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly client: KubeClient;
  readonly nodes: readonly RealNode[];
  /** The plugins of all nodes. */
  readonly binDir: string;
  /** Undefined unless the cluster is observed. */
  readonly observer: Observer | undefined;
  /** Where the bridge `lan` is, and the control plane. */
  readonly switch: Netns;
  /** Runs a command where the control plane is, as its administrator. */
  run(argv: readonly string[], options?: CommandOptions): Promise<CommandOutcome>;
  /** The same of a command that does not end by itself; ended by the caller. */
  start(argv: readonly string[]): Promise<Daemon>;
  /** SIGKILL, and a new one. From 0; the first one is the leader as long as it lives. */
  restartController(index: number): Promise<void>;
  /** Throws when there is none. */
  node(name: string): RealNode;
  /**
   * For all nodes. Living pods should not exist: they are detached by the plugins that attached them only without
   * changes.
   */
  setNetwork(network: NetworkName): Promise<void>;
  /** Resolves when these nodes are Ready. Default: all. */
  ready(...names: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** IPv4 only, and everything that waits is short. */
const SETTINGS = { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "2s", grace: "2s" } };
/** Under these settings. */
const MIN_REST_MS = 1_000;
const READY_MS = 60_000;
const PAUSE_MS = 100;

/** The observer's on the wire. */
const SENDERS = { v4: "10.99.0.254", v6: "fd00:99::fffe" };

/** Port on which the first controller serves its health. */
const FIRST_PORT = 9474;

let clusters = 0;

/** Resolves when all nodes are Ready. */
export async function startRealCluster(options: RealClusterOptions): Promise<RealCluster> {
  const stack = new AsyncDisposableStack();
  try {
    return await openCluster(options, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function openCluster(options: RealClusterOptions, stack: AsyncDisposableStack): Promise<RealCluster> {
  const { nodes: count, hasBerth = true } = options;
  const { network = hasBerth ? "berth" : undefined, controllers: controllerCount = hasBerth ? 1 : 0 } = options;
  const { runtime = "containerd-1", kubernetes = "1.34" } = options;
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const directory = await mkdtemp(join(tmpdir(), `berth-nodes-${process.pid}-`));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const wires = await buildSwitch();
  stack.defer(() => wires.delete());
  const accounts = numbers.map(nodeAccount);
  const plane = await startControlPlane({
    machine: wires,
    address: LAN.gateway,
    accounts,
    hasManagers: true,
    // No name server knows the nodes.
    serverArgs: [
      "--kubelet-preferred-address-types=InternalIP",
      ...(options.isObserved ? [STORED_AS_JSON] : []),
      ...(options.serverArgs ?? []),
    ],
    kubernetes,
  });
  stack.defer(() => plane.stop());
  const managers = await startManagers({ kubeconfig: plane.kubeconfig, ...plane.files, machine: wires, kubernetes });
  stack.defer(async () => void (await Promise.all(managers.map((manager) => manager.kill()))));
  await furnish(plane.client, options, numbers);
  const controllers: Daemon[] = [];
  stack.defer(async () => void (await Promise.all(controllers.map((controller) => controller.kill()))));
  const openController = async (index: number): Promise<void> => {
    controllers[index] = await startController(plane, wires, index);
  };
  for (let index = 0; index < controllerCount; index++) await openController(index);
  const restartController = async (index: number): Promise<void> => {
    await controllers[index]?.kill();
    await openController(index);
  };
  const site: Site = {
    plane,
    directory,
    switch: wires,
    binDir: hasBerth ? join(directory, "bin") : "/opt/cni/bin",
    isInstallable: !hasBerth,
    images: [...(await writeImages(directory)), ...(options.images ?? [])],
    multusKubeconfig: await plane.writeKubeconfig("multus", {
      token: await createToken(plane.client, { account: "multus", expirationSeconds: TOKEN_S }),
    }),
    runtime,
    kubernetes,
  };
  const pluginFolders = hasBerth
    ? [site.binDir]
    : numbers.map((number) => join(directory, nodeName(number), site.binDir));
  for (const folder of pluginFolders) await gatherPlugins(folder, hasBerth);
  const started = await Promise.allSettled(numbers.map((number) => addRealNode(site, { number, network })));
  const nodes: RealNode[] = [];
  for (const each of started) {
    if (each.status === "rejected") continue;
    nodes.push(each.value);
  }
  stack.defer(async () => void (await Promise.all(nodes.map((node) => node.remove()))));
  for (const each of started) if (each.status === "rejected") throw each.reason;
  const run: RealCluster["run"] = (argv, { env, ...rest } = {}) =>
    runCommand(wires.enter(argv), { ...rest, env: { ...env, KUBECONFIG: plane.kubeconfig } });
  const start: RealCluster["start"] = ([name = "", ...words]) =>
    startDaemon(name, ["env", `KUBECONFIG=${plane.kubeconfig}`, name, ...words], wires);
  const observer = options.isObserved ? await observeCluster({ plane, nodes }, wires, stack) : undefined;
  if (options.isObserved) await followCluster(plane, wires, stack);
  const parts = { plane, nodes, run, start, restartController, binDir: site.binDir, observer, switch: wires };
  const cluster = clusterOf(parts, stack);
  if (network !== undefined) await cluster.ready();
  return cluster;
}

/** A node's namespaces are elsewhere after a boot. */
async function observeCluster(
  { plane, nodes }: Pick<RealCluster, "plane" | "nodes">,
  wires: Netns,
  stack: AsyncDisposableStack,
): Promise<Observer> {
  const observer = await startObserver({
    ...{ name: wires.name, segment: { path: wires.path, bridge: "lan" }, senders: SENDERS, ranges: [BERTH_RANGE] },
    records: etcdRecords(plane.etcdUrl, wires.path),
  });
  const timer = setInterval(() => {
    for (const node of nodes) readNode(observer, node);
  }, PAUSE_MS);
  stack.defer(async () => {
    clearInterval(timer);
    await observer.stop();
  });
  return observer;
}

/** The answers to runtimes are unknown here. */
async function followCluster({ etcdUrl }: ControlPlane, { path }: Netns, stack: AsyncDisposableStack): Promise<void> {
  const history = await followHistory(etcdUrl, { netnsPath: path, minReuseMs: MIN_REST_MS, minLostMs: MIN_REST_MS });
  stack.defer(async () => {
    await history.caughtUp();
    history.close();
    const { breaches, writes } = history.checker;
    console.log(`${writes} writes to addresses`);
    if (breaches.length > 0) throw new Error(`The history of addresses is not legal:\n${breaches.join("\n")}`);
  });
}

/** The namespaces of its pods, from now until the next boot. */
export function readNode(observer: Observer, node: RealNode): void {
  try {
    observer.read(node.name, `${node.machine.root}/run/netns/*`);
  } catch {
    // It is switched off.
  }
}

type Parts = Omit<RealCluster, "client" | "node" | "setNetwork" | "ready" | "stop" | typeof Symbol.asyncDispose>;

function clusterOf(parts: Parts, stack: AsyncDisposableStack): RealCluster {
  const { nodes } = parts;
  const { client } = parts.plane;
  const all = nodes.map(({ name }) => name);
  return {
    ...parts,
    client,
    node: (name) => {
      const node = nodes.find((each) => each.name === name);
      if (node === undefined) throw new Error(`There is no node "${name}"`);
      return node;
    },
    setNetwork: async (network) => void (await Promise.all(nodes.map((node) => node.setNetwork(network)))),
    ready: (...names) => untilReady(client, names.length > 0 ? names : all),
    stop: () => stack.disposeAsync(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The wire, with the control plane's address on it. */
async function buildSwitch(): Promise<Netns> {
  const wires = await createNetns(`bn${process.pid}-${++clusters}`);
  try {
    await wires.ip("link add lan type bridge mcast_snooping 0");
    await wires.ip(`addr add ${LAN.gateway}/${LAN.lengthBits} dev lan`);
    await wires.ip("link set lan up");
    return wires;
  } catch (error) {
    await wires.delete();
    throw error;
  }
}

/** As one of its pods would run, on the host network of the control plane's machine. */
async function startController(plane: ControlPlane, machine: Netns, index: number): Promise<Daemon> {
  const token = await createToken(plane.client, { account: "berth-controller", expirationSeconds: TOKEN_S });
  const kubeconfig = await plane.writeKubeconfig(`controller-${index}`, { token });
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs")];
  const args = [
    "--kubeconfig",
    kubeconfig,
    "--identity",
    `lab-${index}`,
    "--listen",
    `127.0.0.1:${FIRST_PORT + index}`,
  ];
  return startDaemon("berth-controller", [...program, ...args], machine);
}

/** All plugins in one folder, as on a node. */
async function gatherPlugins(binDir: string, hasBerth: boolean): Promise<void> {
  await mkdir(binDir, { recursive: true });
  const others = (["plugins", "multus"] as const).map((tool) => referenceTool(tool).directory);
  const folders = hasBerth ? [join(root, "dist", "bin"), ...others] : others;
  for (const folder of folders) {
    const names = (await readdir(folder)).filter((name) => !name.startsWith("."));
    await Promise.all(names.map((name) => symlink(join(folder, name), join(binDir, name))));
  }
}

/**
 * Creates a cluster's objects before its nodes come. The nodes are registered here, so that tokens can be bound to
 * them.
 */
async function furnish(
  client: KubeClient,
  { settings, hasBerth = true }: RealClusterOptions,
  numbers: readonly number[],
): Promise<void> {
  const common: KubeObject[] = [
    definitionsCrd(),
    ...["kube-system", NAMESPACE].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
    ...multusRights(),
  ];
  for (const object of common) await applyObject(client, object);
  if (!hasBerth) return;
  await applyCrds(client);
  const objects: KubeObject[] = [
    { ...settingsObject({ ...SETTINGS, ...settings }), metadata: { name: "vendor-conf", namespace: "kube-system" } },
    pool("lan", { ips: [BERTH_RANGE], default: true }),
    ...numbers.map((number) => nodeObject(nodeName(number))),
  ];
  for (const object of objects) await applyObject(client, object);
  await applyRights(client);
}

/** A pool of the nodes' own subnet. */
export function pool(name: string, spec: object): KubeObject {
  const { subnet, gateway } = LAN;
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { subnet, gateway, ...spec } };
}

async function untilReady(client: KubeClient, names: readonly string[]): Promise<void> {
  const deadline = performance.now() + READY_MS;
  for (;;) {
    const nodes: KubeObject[] = (await client.get("/api/v1/nodes")).items;
    const waiting = nodes.filter(({ metadata, status }) => {
      const ready = status.conditions?.find(({ type }: KubeObject) => type === "Ready");
      return names.includes(metadata.name) && ready?.status !== "True";
    });
    if (waiting.length === 0) return;
    if (performance.now() > deadline) {
      const texts = waiting.map(({ metadata, status }) => `${metadata.name}: ${JSON.stringify(status.conditions)}`);
      throw new Error(`Not Ready after ${READY_MS} ms: ${texts.join("\n")}`);
    }
    await sleep(PAUSE_MS);
  }
}
