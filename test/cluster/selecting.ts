/** One node's agent and its ADDs as the plugins of any network make them, for the tests of selection. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import type { AddCall } from "../lab/cluster/in-process.ts";
import { berthObject, type LabPod, NODES, nodeObject, POOLS } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const NODE = "n1";

export interface AddOptions extends Pick<AddCall, "ifName" | "network" | "args"> {
  readonly ipam?: object;
  /** Default: the pod's; "": the runtime gives none. */
  readonly uid?: string;
}

export interface Selecting {
  readonly world: World;
  readonly node: AgentNode;
  /** Resolves when the agent knows them. */
  settings(settings: { readonly enableIPv6?: boolean; readonly enableSubnet?: boolean }): Promise<void>;
  /** Makes the pool, or makes it so. */
  pool(name: string, spec: object): Promise<void>;
  /** Rejects as the plugin would be refused; gives the pools and the owner of the addresses, IPv4 first. */
  add(pod: Pick<LabPod, "namespace" | "name" | "uid">, options?: AddOptions): Promise<Selected>;
}

export interface Selected {
  readonly pools: readonly string[];
  readonly addresses: readonly string[];
  readonly owner: string;
}

export async function openSelecting(): Promise<Selecting> {
  const world = await startWorld({ startPlane: borrowPlane, namespaces: ["shop", "infra"] });
  const { client } = world;
  await world.settings({ enableIPv6: false });
  await client.create(NODES, nodeObject(NODE, { zone: "a" }));
  const node = await world.openAgent(NODE);
  return {
    world,
    node,
    settings: async (settings) => {
      const wanted = { enableIPv6: false, enableSubnet: true, ...settings };
      await world.settings(wanted);
      await expect.poll(() => node.snapshot.vendorConf, { timeout: 30_000 }).toMatchObject(wanted);
    },
    pool: async (name, spec) => {
      await client.apply(`${POOLS}/${name}`, berthObject("IPPool", name, { default: false, ...spec }));
    },
    add: async (pod, { uid = pod.uid, ipam, ...call } = {}) => {
      const containerId = randomUUID();
      const conf = { ipam: { type: "berth", ...ipam } };
      const { ips } = await node.add({ ...pod, uid }, { ...call, containerId, conf });
      const rows = await node.registry.findAttachment({ containerId, ifName: call.ifName ?? "eth0" });
      const held = [...rows].sort((a, b) => a.ip.family - b.ip.family);
      return { pools: held.map(({ pool }) => pool), addresses: ips, owner: held[0]?.owner ?? "" };
    },
  };
}
