/**
 * The whole chain of a NIC in a cluster, as a runtime executes it, until the pod's first ping is answered: macvlan
 * with each IPAM, and the coordinators behind the two that have one.
 *
 *      segment: switch br0 (10.6.0.1), control plane ═══ node: uplink, agents ── macvlan eth0 of each pod
 *
 * Effects: a control plane, agents and a controller in two namespaces; pods with NICs; Spiderpool's socket at its
 * fixed place.
 */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type Agent, startAgent } from "../../test/lab/agent.ts";
import { berthBin, referenceBin } from "../../test/lab/cnitool.ts";
import { startControlPlane } from "../../test/lab/control-plane.ts";
import { createNetns, type Netns } from "../../test/lab/netns.ts";
import { FIXED_SOCKET, startSpiderpool } from "../../test/lab/peers/spiderpool.ts";
import { until } from "../../test/lab/waiting.ts";
import { type NodePods, openNodePods } from "../cluster/pods.ts";
import { connect, UPLINK } from "../coordinator/node.ts";
import { Pods } from "../coordinator/pods.ts";
import { sayProgress } from "../harness/progress.ts";
import type { Step } from "../harness/runner.ts";
import { type Contestant, callEnvironment, type Place } from "../ipam/contestant.ts";
import { type Course, type Measured, measure } from "../ipam/measure.ts";
import { furnish } from "./cluster.ts";

export const HOST_LOCAL_CHAIN = "macvlan + host-local";
export const SPIDERPOOL_CHAIN = "macvlan + Spiderpool + its coordinator";
export const BERTH_CHAIN = "macvlan + berth + coordinator";

/** All plugins of a NIC; `coordinator` is the executable and configuration of the second one. */
interface ChainSpec {
  readonly name: string;
  readonly ipam: object;
  readonly coordinator?: { readonly path: string; readonly conf: object };
}

/**
 * Names of the node for the API server: one has Berth's agent, the other those of the peers, so that none claims for
 * another's pods.
 */
const NODE = "berth";
const PEERS_NODE = "peers";
const GATEWAY = "10.6.0.1";
const SUBNET = "10.6.0.0/16";
const SERVICES = ["10.96.0.0/16"];

/** After rounds that are not measured; each begins with another chain. */
export async function measureChains(directory: string, course: Course): Promise<Measured[]> {
  await using stack = new AsyncDisposableStack();
  const id = `bp${process.pid}`;
  const segment = await createNetns(`${id}-segment`);
  stack.defer(() => segment.delete());
  const netns = await createNetns(`${id}-node`);
  stack.defer(() => netns.delete());
  await connect(netns, segment);
  const plane = await startControlPlane({ machine: segment, address: GATEWAY });
  stack.defer(() => plane.stop());
  await furnish(plane, [{ subnet: SUBNET, gateway: GATEWAY, ips: ["10.6.200.1-10.6.203.250"] }]);
  await plane.client.create("/apis/spiderpool.spidernet.io/v2beta1/spidercoordinators", SPIDER_COORDINATOR);
  await plane.client.patch("/apis/spiderpool.spidernet.io/v2beta1/spidercoordinators/default/status", {
    status: { phase: "Synced", overlayPodCIDR: [], serviceCIDR: SERVICES },
  });
  await plane.client.create("/apis/spiderpool.spidernet.io/v2beta1/spiderippools", SPIDER_POOL);
  const { kubeconfig } = plane;
  const place: Place = { directory, netnsPath: "" };
  const berthPods = await openNodePods({ plane, place, node: NODE });
  const peersPods = await openNodePods({ plane, place, node: PEERS_NODE });
  const spiderpool = await startSpiderpool({ kubeconfig, node: PEERS_NODE, machine: netns, socket: FIXED_SOCKET });
  stack.defer(() => spiderpool.stop());
  const agent = await startAgent({ config: {}, kubeconfig, node: netns, args: ["--node", NODE] });
  stack.defer(() => agent.delete());
  // As on every node: the agent reads in it which networks it claims for.
  const list = { cniVersion: "1.0.0", name: "lan", plugins: [{ type: "macvlan", ipam: { type: "berth" } }] };
  writeFileSync(join(agent.cniConfDir, "10-lan.conflist"), JSON.stringify(list));
  await until("the agent to be ready", async () => (await agent.request("/v1/health")).status === 200);
  const pods = new Pods(id, netns, UPLINK);
  stack.defer(() => pods.delete());
  const claimed = async (): Promise<number> =>
    (await plane.client.get(`/apis/ipam.vendor.io/v1/ipallocations?fieldSelector=spec.node%3D${NODE}`)).items.length;
  sayProgress("chains");
  return await measure(
    chainsOf({ directory, kubeconfig, agent, netns, pods, berthPods, peersPods, claimed }),
    course,
    0,
  );
}

interface Parts {
  readonly directory: string;
  readonly kubeconfig: string;
  readonly agent: Agent;
  readonly netns: Netns;
  readonly pods: Pods;
  readonly berthPods: NodePods;
  readonly peersPods: NodePods;
  /** Returns the number of addresses that Berth's node has now. */
  readonly claimed: () => Promise<number>;
}

function chainsOf(parts: Parts): Contestant[] {
  const { directory, kubeconfig } = parts;
  const routes = [{ dst: "0.0.0.0/0" }];
  const settings = join(directory, "whereabouts-chain.conf");
  writeFileSync(settings, JSON.stringify({ kubernetes: { kubeconfig } }));
  const range = { subnet: SUBNET, rangeStart: "10.6.240.1", rangeEnd: "10.6.243.250", gateway: GATEWAY };
  const hostLocal = { type: "host-local", dataDir: join(directory, "host-local-chain"), ranges: [[range]], routes };
  const whereabouts = {
    ...{ type: "whereabouts", range: "10.6.110.1-10.6.113.250/16", gateway: GATEWAY, configuration_path: settings },
    routes: [{ dst: "0.0.0.0/0", gw: GATEWAY }],
    ...{ log_file: join(directory, "whereabouts-chain.log"), log_level: "error" },
  };
  const spider = {
    ...{ type: "spiderpool", default_ipv4_ippool: ["chain"], ipam_unix_socket_path: FIXED_SOCKET },
    ...{ log_file_path: join(directory, "spiderpool-chain.log"), log_level: "ERROR" },
  };
  const spiderCoordinator = {
    type: "coordinator",
    logOptions: { logLevel: "ERROR", logFile: join(directory, "coordinator-chain.log") },
  };
  const specs: ChainSpec[] = [
    { name: HOST_LOCAL_CHAIN, ipam: hostLocal },
    { name: "macvlan + whereabouts", ipam: whereabouts },
    { name: "macvlan + Spiderpool", ipam: spider },
    {
      name: SPIDERPOOL_CHAIN,
      ipam: spider,
      coordinator: { path: join(referenceTool("spiderpool").directory, "coordinator"), conf: spiderCoordinator },
    },
    { name: "macvlan + berth", ipam: { type: "berth" } },
    {
      name: BERTH_CHAIN,
      ipam: { type: "berth" },
      coordinator: { path: join(berthBin, "coordinator"), conf: { type: "coordinator", serviceCIDR: SERVICES } },
    },
  ];
  return specs.map((spec, index) => chainOf(spec, index, parts));
}

function chainOf({ name, ipam, coordinator }: ChainSpec, index: number, parts: Parts): Contestant {
  const { directory, agent, netns, pods, claimed } = parts;
  const isBerth = "type" in ipam && ipam.type === "berth";
  const registered = isBerth ? parts.berthPods : parts.peersPods;
  const ready = async (count: number): Promise<void> => {
    if (isBerth) await until("the claims", async () => (await claimed()) === count);
  };
  const frame: Omit<Contestant, "add" | "del"> = {
    ...{ name, netns, daemonPid: undefined },
    prepare: async (_, count) => {
      const first = await pods.make(count, () => ({ kind: "none" }));
      await registered.create(first, count);
      await ready(count);
      return first;
    },
    terminate: registered.terminate,
    finish: async (first, count) => {
      await registered.remove(first, count);
      await ready(0);
    },
    close: async () => {},
  };
  const network = { cniVersion: "1.0.0", name: `chain-${index}` };
  const write = (file: string, text: string): string => {
    const path = join(directory, `chain-${index}-${file}`);
    writeFileSync(path, text);
    return path;
  };
  const tools = [berthBin, referenceBin, ...(["spiderpool", "whereabouts"] as const).map(directoryOf)];
  const env = (command: "ADD" | "DEL"): Record<string, string> =>
    callEnvironment(
      command,
      { directory, netnsPath: pods.path("{n}") },
      {
        ...agent.env,
        ...registered.env,
        NODENAME: PEERS_NODE,
        CNI_PATH: tools.join(":"),
        PATH: process.env.PATH ?? "",
      },
    );
  const macvlanEntry = { type: "macvlan", master: UPLINK, mode: "bridge", ipam };
  const main = write("main.json", JSON.stringify({ ...network, ...macvlanEntry }));
  const plugins = [macvlanEntry, ...(coordinator === undefined ? [] : [coordinator.conf])];
  // As on every node: a coordinator reads the rest of its chain in it. The first definition of the node stays that of
  // its pods' first NIC.
  if (isBerth)
    writeFileSync(join(agent.cniConfDir, `20-chain-${index}.conflist`), JSON.stringify({ ...network, plugins }));
  const step = (command: "ADD" | "DEL", path: string, stdinFile: string): Step => ({
    path,
    stdinFile,
    env: env(command),
  });
  const macvlan = (command: "ADD" | "DEL"): Step => step(command, join(referenceBin, "macvlan"), main);
  const ping = join(directory, "ping.sh");
  writeFileSync(ping, `#!/bin/sh\nexec nsenter --net="$CNI_NETNS" ping -n -q -c 1 -W 2 ${GATEWAY}\n`);
  chmodSync(ping, 0o755);
  const answered = step("ADD", ping, main);
  if (coordinator === undefined) return { ...frame, add: { ...macvlan("ADD"), next: [answered] }, del: macvlan("DEL") };
  const conf = { ...network, ...coordinator.conf };
  const after = write("coordinator.json", JSON.stringify({ ...conf, prevResult: 0 }).replace(":0}", ":{prevResult}}"));
  const alone = write("coordinator-del.json", JSON.stringify(conf));
  return {
    ...frame,
    add: { ...macvlan("ADD"), next: [step("ADD", coordinator.path, after), answered] },
    del: { ...step("DEL", coordinator.path, alone), next: [macvlan("DEL")] },
  };
}

const directoryOf = (tool: "spiderpool" | "whereabouts"): string => referenceTool(tool).directory;

const SPIDER_POOL = {
  ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name: "chain" } },
  spec: {
    ...{ ipVersion: 4, subnet: SUBNET, gateway: GATEWAY, ips: ["10.6.100.1-10.6.103.250"] },
    ...{ default: false, disable: false },
  },
};

const SPIDER_COORDINATOR = {
  ...{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderCoordinator", metadata: { name: "default" } },
  spec: {
    ...{ mode: "underlay", podCIDRType: "none", hijackCIDR: [], tunePodRoutes: true },
    ...{ hostRuleTable: 500, podRPFilter: 0, txQueueLen: 0 },
  },
};
