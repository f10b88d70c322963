/**
 * The story of two clusters on one segment: what `npm run demo -- --clusters` tells.
 *
 *   control of east 10.60.0.5, its node1 ──┐
 *                                          ├── segment 0
 *   control of west 10.60.0.6, its node2 ──┘
 *
 * Effects: namespaces, two control planes, agents, controllers; all removed at the end.
 */
import { RANGES, rangeObject } from "../../../test/lab/cluster/hub.ts";
import { LeasingCluster, leasesOf, type StartedPod } from "../../../test/lab/cluster/leasing-cluster.ts";
import { NetnsWorld } from "../../../test/lab/netns/world.ts";
import { eventually } from "../../../test/lab/waiting.ts";
import { formatColumns, type Narrator } from "../narrator.ts";
import { ping } from "../observe.ts";

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
const PATIENCE_MS = 60_000;

interface Stage {
  readonly east: LeasingCluster;
  readonly west: LeasingCluster;
}

type Scene = (stage: Stage, narrator: Narrator) => Promise<void>;

export async function tellClusters(narrator: Narrator): Promise<void> {
  await using world = new NetnsWorld("demos");
  const stage = await open(world, narrator);
  for (const scene of [leaseScene, podsScene, awayScene, fullScene, returnScene]) await scene(stage, narrator);
}

async function open(world: NetnsWorld, narrator: Narrator): Promise<Stage> {
  narrator.scene(
    "Two clusters, one segment",
    `Each has an etcd and an API server of its own, Berth's controller, and a node with Berth's agent. The pods of both have their NICs on
     one segment, ${SUBNET}, and see each other there. Of it 10.60.0.192 to 10.60.0.223 is for pods.`,
  );
  const fabric = await world.addFabric();
  const network = `demos${process.pid}`;
  const openOne = async (name: string, host: number, node: typeof fabric.node1): Promise<LeasingCluster> => {
    const startMs = performance.now();
    const machine = await fabric.addHost(`control-${name}`, host);
    const cluster = await LeasingCluster.open(world, { name, machine, address: `10.60.0.${host}`, node, network });
    narrator.remark(`${name} is up, after ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
    return cluster;
  };
  const [east, west] = await Promise.all([openOne("east", 5, fabric.node1), openOne("west", 6, fabric.node2)]);
  await world.define(network, [{ type: "macvlan", master: "eth0", mode: "bridge", ipam: { type: "berth" } }]);
  return { east, west };
}

const leaseScene: Scene = async ({ east, west }, narrator) => {
  narrator.scene(
    "The range is cut into blocks, and each cluster leases",
    `An AddressRange on the API server of east, which is the hub: eight blocks of four addresses, at most six for each cluster. Whoever
     writes a block's lease first has it. A block rests a minute before its first address is given; here minutes are ${SPEED} times as short.`,
  );
  await east.client.create(RANGES, rangeObject("lan", SPEC, { east: 6, west: 6 }));
  const pool = { subnet: SUBNET, gateway: GATEWAY };
  await Promise.all([east, west].map((cluster) => cluster.lease({ hub: east.plane, pool, speed: SPEED })));
  const leases = await eventually(
    () => leasesOf(east.client),
    (found) => new Set(found.values()).size === 2,
    PATIENCE_MS,
  );
  narrator.lines(formatLeases(leases));
  narrator.claim("both have blocks", new Set(leases.values()).size === 2, describe(leases));
};

const podsScene: Scene = async ({ east, west }, narrator) => {
  narrator.scene("Pods start in both", "Each agent gives addresses of its own cluster's blocks, and asks nobody else.");
  const web = await startPod(narrator, east, "web-0");
  const shop = await startPod(narrator, west, "shop-0");
  const { answered, seen } = await ping(web.netns, shop.address);
  narrator.claim("the pod in east reaches the one in west", answered, seen);
  narrator.remark("west gets nine more pods: more than two blocks have.");
  for (let number = 1; number < 10; number++) await startPod(undefined, west, `shop-${number}`);
  const leases = await leasesOf(east.client);
  narrator.lines(formatLeases(leases));
  narrator.claim("west has leased more blocks", countOf(leases, "west") >= 3, describe(leases));
};

const awayScene: Scene = async ({ east, west }, narrator) => {
  narrator.scene("The hub is away", "The API server of east ends. What west has leased is west's.");
  await east.plane.server.stop();
  await startPod(narrator, west, "shop-10");
  const isUnasked = (problem: string) => problem.includes("cannot be asked");
  const problem = await eventually(async () => (await west.pool()).problem ?? "", isUnasked, PATIENCE_MS);
  narrator.claim("the pool's status says that it cannot grow", isUnasked(problem), problem);
  await east.plane.server.start();
  const problems = await eventually(
    () => Promise.all([east, west].map(async (cluster) => (await cluster.pool()).problem ?? "nothing")),
    (all) => !all.some(isUnasked),
    PATIENCE_MS,
  );
  narrator.claim("it is back, and both ask it again", !problems.some(isUnasked), problems.join("; "));
};

const fullScene: Scene = async ({ east, west }, narrator) => {
  narrator.scene("Until the segment is full", "Pods start in east, and then in west, until an ADD is refused.");
  const refusals: string[] = [];
  for (const cluster of [east, west])
    for (let number = 1; ; number++) {
      const { refusal } = await cluster.start(`more-${number}`);
      if (refusal === undefined) continue;
      refusals.push(refusal);
      narrator.lines([`${cluster.name}: ${cluster.pods.size} pods`]);
      break;
    }
  const addresses = [east, west].flatMap(({ pods }) => [...pods.values()].map(({ address }) => address));
  const isEachOnce = new Set(addresses).size === addresses.length;
  narrator.claim("no address was given twice", isEachOnce, `${addresses.length} pods`);
  narrator.claim("all of the range is used", addresses.length === ADDRESSES, `${ADDRESSES} addresses`);
  const isExplained = refusals.every((text) => /no block is free: this cluster has \d, (?:east|west) \d/.test(text));
  narrator.claim("the refusal says who has what", isExplained, reasonOf(refusals.at(-1) ?? ""));
};

const returnScene: Scene = async ({ east, west }, narrator) => {
  narrator.scene(
    "Blocks come back",
    `All pods of west end. When it has had too many free addresses for an hour (here 15 s), its controller empties a block, claims each
     address of it as a pod would, and returns it. East leases it.`,
  );
  const before = countOf(await leasesOf(east.client), "west");
  for (const name of [...west.pods.keys()]) await west.end(name);
  const leases = await eventually(
    () => leasesOf(east.client),
    (found) => countOf(found, "west") < before,
    PATIENCE_MS,
  );
  narrator.claim("a block of west is back", countOf(leases, "west") < before, describe(leases));
  const pod = await startPod(narrator, east, "late");
  narrator.claim("the pod that was refused in east starts", pod.address !== "", pod.address);
  narrator.lines(formatLeases(await leasesOf(east.client)));
};

async function startPod(narrator: Narrator | undefined, cluster: LeasingCluster, name: string): Promise<StartedPod> {
  const { pod, refusal, tookMs } = await cluster.start(name);
  if (pod === undefined) throw new Error(`ADD of ${name} in ${cluster.name} failed: ${refusal}`);
  const leases = (await cluster.pool()).blocks.map(({ block }) => block).join(", ");
  narrator?.claim(
    `${name} has an address of ${cluster.name}'s`,
    isIn(leases, pod.address),
    `${pod.address} of ${leases} (${tookMs.toFixed(0)} ms)`,
  );
  return pod;
}

/** Blocks have four addresses. */
function isIn(blocks: string, address: string): boolean {
  const last = Number(address.split(".").at(-1));
  return blocks.includes(`10.60.0.${last - (last % 4)}/30`);
}

function countOf(leases: ReadonlyMap<string, string>, member: string): number {
  return [...leases.values()].filter((each) => each === member).length;
}

function describe(leases: ReadonlyMap<string, string>): string {
  return `east ${countOf(leases, "east")}, west ${countOf(leases, "west")}`;
}

function formatLeases(leases: ReadonlyMap<string, string>): string[] {
  return formatColumns([["BLOCK", "CLUSTER"], ...leases]);
}

/** The message of CNI's error. */
function reasonOf(refusal: string): string {
  return /"msg": *"(?<text>(?:[^"\\]|\\.)*)"/.exec(refusal)?.groups?.text ?? refusal;
}
