/**
 * The story of two clusters on one segment.
 *
 *   control of east 10.60.0.5, its node1 ──┐
 *                                          ├── segment 0
 *   control of west 10.60.0.6, its node2 ──┘
 *
 * Effects: namespaces, two control planes, agents, controllers; all removed at the end.
 */

import type { Narrator, Scene, Story } from "../../../scripts/demo/engine.ts";
import { macvlan } from "../../../test/lab/manifests.ts";
import { NetnsWorld } from "../../../test/lab/netns/world.ts";
import { createRange } from "../test/lab/hub.ts";
import { LeasingCluster, leasesOf, type StartedPod } from "../test/lab/leasing-cluster.ts";

const SUBNET = "10.60.0.0/24";
const GATEWAY = "10.60.0.1";
/** Pods of all clusters share 10.60.0.192 to 10.60.0.223: eight blocks of four. */
const SPEC = {
  ...{ subnet: SUBNET, blockSize: 30, gateway: GATEWAY },
  excludeIPs: ["10.60.0.0-10.60.0.191", "10.60.0.224-10.60.0.255"],
};
const ADDRESSES = 32;
/** A block rests a quarter of a second, and an hour lasts 15. */
const SPEED = 240;

interface Place {
  readonly east: LeasingCluster;
  readonly west: LeasingCluster;
}

type Leases = Awaited<ReturnType<typeof leasesOf>>;

async function open(stack: AsyncDisposableStack): Promise<Place> {
  const world = stack.use(new NetnsWorld("demos"));
  const { addHost, node1, node2 } = await world.addFabric();
  const network = `demos${process.pid}`;
  const openOne = async (name: string, host: number, node: typeof node1): Promise<LeasingCluster> => {
    const machine = await addHost(`control-${name}`, host);
    return LeasingCluster.open(world, { name, machine, address: `10.60.0.${host}`, node, network });
  };
  const [east, west] = await Promise.all([openOne("east", 5, node1), openOne("west", 6, node2)]);
  await world.define(network, [macvlan("eth0")]);
  return { east, west };
}

const leaseScene: Scene<Place> = {
  title: "Two clusters, one segment",
  text: `Each has an etcd and an API server of its own, Berth's controller, and a node with Berth's agent. The pods of both have their NICs on
    one segment, ${SUBNET}, and see each other there. An AddressRange on the API server of east, which is the hub, cuts 10.60.0.192 to
    10.60.0.223 into eight blocks of four addresses, at most six for each cluster. Whoever writes a block's lease first has it. A block
    rests a minute before its first address is given; here minutes are ${SPEED} times as short.`,
  act: async ({ east, west }, narrator) => {
    await createRange(east.client, "lan", SPEC, { east: 8, west: 8 });
    const pool = { subnet: SUBNET, gateway: GATEWAY };
    await Promise.all([east, west].map((cluster) => cluster.lease({ hub: east.plane, pool, speed: SPEED })));
    await claimLeases(narrator, "both have blocks", east, (leases) => new Set(leases.values()).size === 2);
  },
};

const podsScene: Scene<Place> = {
  title: "Pods start in both",
  text: "Each agent gives addresses of its own cluster's blocks, and asks no other one.",
  act: async ({ east, west }, narrator) => {
    const web = await startPod(narrator, east, "web-0");
    const shop = await startPod(narrator, west, "shop-0");
    await narrator.reaches("the pod in east reaches the one in west", web.netns, shop.address);
    narrator.remark("west gets nine more pods: more than two blocks have.");
    for (let number = 1; number < 10; number++) await west.start(`shop-${number}`);
    await claimLeases(narrator, "west has leased more blocks", east, (leases) => countOf(leases, "west") >= 3);
  },
};

const awayScene: Scene<Place> = {
  title: "The hub is away",
  text: "The API server of east ends. What west has leased is west's.",
  act: async ({ east, west }, narrator) => {
    const problems = (all: readonly LeasingCluster[]) => async () =>
      (await Promise.all(all.map(async (each) => (await each.pool()).problem ?? "nothing"))).join("; ");
    const isUnasked = (text: string) => text.includes("cannot be asked");
    await east.plane.server.stop();
    await startPod(narrator, west, "shop-10");
    const what = "the pool's status says that it cannot grow";
    await narrator.becomes(what, problems([west]), (text) => [isUnasked(text), text]);
    await east.plane.server.start();
    const both = problems([east, west]);
    await narrator.becomes("it is back, and both ask it again", both, (text) => [!isUnasked(text), text]);
  },
};

const fullScene: Scene<Place> = {
  title: "Until the segment is full",
  text: "Pods start in east, and then in west, until an ADD is refused.",
  act: async ({ east, west }, narrator) => {
    let refusal: string | undefined;
    for (const cluster of [east, west]) {
      refusal = undefined;
      // A kubelet tries again while the API server comes back.
      for (let number = 1; refusal === undefined || /has not answered/.test(refusal); number++)
        ({ refusal } = await cluster.start(`more-${number}`));
      const isExplained = /no block is free: this cluster has \d, (?:east|west) \d/.test(refusal);
      narrator.claim(`${cluster.name} says who has what`, isExplained, `${cluster.pods.size} pods, then: ${refusal}`);
    }
    const addresses = [east, west].flatMap(({ pods }) => [...pods.values()].map(({ address }) => address));
    const isEachOnce = new Set(addresses).size === addresses.length;
    narrator.claim("no address was given twice", isEachOnce, `${addresses.length} pods`);
    narrator.claim("all of the range is used", addresses.length === ADDRESSES, `${ADDRESSES} addresses`);
  },
};

const returnScene: Scene<Place> = {
  title: "Blocks come back",
  text: `All pods of west end. When it has had too many free addresses for an hour (here 15 s), its controller empties a block, claims each
    address of it as a pod would, and returns it. East leases it.`,
  act: async ({ east, west }, narrator) => {
    const before = countOf(await leasesOf(east.client), "west");
    for (const name of [...west.pods.keys()]) await west.end(name);
    await claimLeases(narrator, "a block of west is back", east, (leases) => countOf(leases, "west") < before);
    await startPod(narrator, east, "late");
  },
};

/** Claims that the pod has an address of the cluster's blocks, which have four. */
async function startPod(narrator: Narrator, cluster: LeasingCluster, name: string): Promise<StartedPod> {
  const { pod, refusal, tookMs } = await cluster.start(name);
  if (pod === undefined) throw new Error(`ADD of ${name} in ${cluster.name} failed: ${refusal}`);
  const blocks = (await cluster.pool()).blocks.map(({ block }) => block);
  const last = Number(pod.address.split(".").at(-1));
  const isOwn = blocks.includes(`10.60.0.${last - (last % 4)}/30`);
  const seen = `${pod.address} of ${blocks.join(", ")} (${tookMs.toFixed(0)} ms)`;
  narrator.claim(`${name} has an address of ${cluster.name}'s`, isOwn, seen);
  return pod;
}

function countOf(leases: Leases, member: string): number {
  return [...leases.values()].filter((each) => each === member).length;
}

/** Claims something of the leases that the hub has, and prints them. */
async function claimLeases(
  narrator: Narrator,
  what: string,
  hub: LeasingCluster,
  isSo: (leases: Leases) => boolean,
): Promise<void> {
  const describe = (leases: Leases) => `east ${countOf(leases, "east")}, west ${countOf(leases, "west")}`;
  const leases = await narrator.becomes(
    what,
    () => leasesOf(hub.client),
    (found) => [isSo(found), describe(found)],
  );
  narrator.table("BLOCK CLUSTER", [...leases]);
}

export default {
  open,
  scenes: [leaseScene, podsScene, awayScene, fullScene, returnScene],
} satisfies Story<Place>;
