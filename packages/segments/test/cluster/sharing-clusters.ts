/**
 * Clusters that share a segment: the first is the hub, each has an agent and the parts of the controller that lease
 * blocks, whose clock is fast.
 */

import { startConditions } from "../../../../host/controller/conditions/conditions-controller.ts";
import type { StartController } from "../../../../host/controller/types.ts";
import type { KubeClient as ProductClient } from "../../../../host/kubernetes/client.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import type { Add, AgentNode } from "../../../../test/lab/cluster/agent-node.ts";
import type { LabController } from "../../../../test/lab/cluster/controller.ts";
import { connectClient } from "../../../../test/lab/cluster/in-process.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { mac } from "../../../../test/world/values.ts";
import { startBlocks } from "../../controllers/blocks-controller.ts";
import type { HubAccess } from "../../types.ts";
import { addMember, applyHubRights, createRange } from "../lab/hub.ts";

const OWN = mac("0a:00:00:00:00:01");

/** Addresses that answered a probe on the segment: a pod of any cluster had them. */
export const answered: string[] = [];
const held = new Set<string>();

const DETECTION: NonNullable<Add["detection"]> = {
  links: {
    observe: () => ({ index: 1, mac: OWN, flags: 0, up: false, addresses: [] }),
    withdraw: () => undefined,
    findParentName: () => "uplink",
    findAskingLink: (link) => link,
  },
  withQuietLink: ({ netnsPath, ifName }, work) => work({ netnsPath, index: 1, name: ifName, mac: OWN }),
  detect: async ({ addresses }) => {
    answered.push(...addresses.map(formatIp).filter((address) => held.has(address)));
    return undefined;
  },
};

export class SharingCluster {
  readonly name: string;
  readonly world: World;
  readonly agent: AgentNode;
  readonly #hub: ProductClient;
  /** The clock of leasing clusters is faster by this factor: conditions rest for a multiple of their duration. */
  readonly #speed: number;

  constructor(parts: Pick<SharingCluster, "name" | "world" | "agent"> & { hub: ProductClient; speed: number }) {
    ({ name: this.name, world: this.world, agent: this.agent, hub: this.#hub, speed: this.#speed } = parts);
  }

  /** `hub`: in place of the whole hub. */
  lead(hub: HubAccess["api"] = this.#hub): Promise<LabController> {
    const clock = { nowMs: () => performance.now() * this.#speed, now: () => new Date() };
    const access = { api: hub, member: this.name, namespace: "kube-system", checkMs: 300 };
    const blocks: StartController = (deps) => startBlocks({ ...deps, clock, hub: access });
    return this.world.lead({ blocks, conditions: startConditions });
  }

  /** Returns the pod's address, or the refusal of its ADD. */
  async start(name: string, pool = "lan"): Promise<string> {
    const pod = await this.world.bindPod({ name, node: "n1", annotations: { ippool: { ipv4: [pool] } } });
    await until("the node knows the pod", () => this.agent.snapshot.pods.get(`shop/${name}`)?.uid === pod.uid);
    return this.agent.add(pod, { detection: DETECTION }).then(
      ({ addresses }) => {
        held.add(addresses);
        return addresses;
      },
      (error: Error) => `refused: ${error.message}`,
    );
  }

  async stop(): Promise<void> {
    await this.world.stop();
    await this.#hub.close();
  }
}

/** `speed`: of the controllers' time. */
export async function openSharing<N extends string>(
  names: readonly N[],
  speed: number,
): Promise<Readonly<Record<N, SharingCluster>>> {
  const worlds = await Promise.all(names.map(() => startWorld({ startPlane: borrowPlane })));
  const [home] = worlds as [World];
  const opened = names.map(async (name, at) => [name, await open(name, { world: worlds[at] as World, home, speed })]);
  return Object.fromEntries(await Promise.all(opened));
}

/** A range of the hub, and a pool of the same name in each cluster of `pools`. */
export async function shareRange(clusters: readonly SharingCluster[], name: string, spec: object, pools = clusters) {
  const members = Object.fromEntries(clusters.map((each) => [each.name, 4]));
  const [home] = clusters as [SharingCluster];
  await createRange(home.world.client, name, spec, members);
  const { subnet, gateway } = spec as { subnet: string; gateway: string };
  for (const { world } of pools) await world.pool(name, { subnet, gateway, source: { range: name } });
}

async function open(
  name: string,
  { world, home, speed }: { world: World; home: World; speed: number },
): Promise<SharingCluster> {
  const token = await addMember(home.client, name);
  const hub = await connectClient(await home.plane.writeKubeconfig(name, { token }));
  await applyHubRights(world.client);
  const agent = await world.openAgent("n1");
  return new SharingCluster({ name, world, agent, hub, speed });
}
