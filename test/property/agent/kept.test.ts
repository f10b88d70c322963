/**
 * A workload's member gets its own addresses back, NIC by NIC and family by family, however full the pool is and
 * however little the node knows of it, and nothing beside them is kept for it (retention).
 */
import { expect, it } from "vitest";
import { evictPredecessor, readHolderStatus } from "../../../host/agent/cluster/address-owners.ts";
import { allocateAddresses } from "../../../host/agent/ipam/allocate.ts";
import type { AllocateDeps } from "../../../host/agent/ipam/sources/source.ts";
import { CniError } from "../../../host/cni/error.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { memberKey, type Workload } from "../../../host/resources/member.ts";
import { decodePod, type Pod } from "../../../host/resources/pod.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";
import { TestClock } from "../../world/clock.ts";
import { times } from "../../world/long-cases.ts";
import { type ClusterNode, type DemandOptions, openClusterNode } from "../../world/node.ts";
import { Seeded } from "../../world/seeded.ts";
import { pool, snapshotOf } from "../../world/subjects.ts";

/** A member, of which a pod is one life. */
interface Member {
  readonly name: string;
  readonly workload: Workload | undefined;
  /** For a machine: the UID of its instance, which two pods of it share while it migrates. */
  readonly run?: string | undefined;
}

interface LivePod {
  readonly member: Member;
  readonly pod: Pod;
  readonly node: ClusterNode;
  /** `eth0/4 10.6.0.7` by NIC and family. */
  readonly addresses: ReadonlyMap<string, string>;
}

interface StartOptions extends Pick<DemandOptions, "requested" | "source"> {
  /** All NICs are claimed with the first ADD, as with `ippools`. */
  readonly isAtOnce?: boolean;
  /** The machine migrates to the pod. */
  readonly isMigrationTarget?: boolean;
}

/** Members of workloads and plain pods that come and go on several nodes of a cluster. */
class World {
  readonly server = new MemoryApiServer();
  readonly #pools: readonly IpPool[];
  readonly #nics: readonly string[];
  readonly #pods = new Map<string, Pod>();
  readonly #nodes: ClusterNode[] = [];
  readonly #clock = new TestClock();
  #count = 0;

  /** Each NIC wants an address of each pool. */
  constructor(pools: readonly IpPool[], nics: readonly string[]) {
    this.#pools = pools;
    this.#nics = nics;
  }

  /** An agent that knows nothing of the pools but that they are there. */
  async node(): Promise<ClusterNode> {
    const readPod = async (of: { namespace: string; name: string }) => this.#find(of.namespace, of.name);
    const node = await openClusterNode({
      ...{ name: `n${++this.#count}`, clock: this.#clock, server: this.server, snapshot: snapshotOf(...this.#pools) },
      isLivePod: async (namespace, pod, uid) => this.#find(namespace, pod)?.uid === uid,
      isPodGone: this.#isPodGone,
      readHolderStatus: (row, holder) => readHolderStatus(readPod, row, holder),
      onLost: (row) => {
        throw new Error(`${formatIp(row.ip)} of ${row.pod} is lost`);
      },
    });
    this.#nodes.push(node);
    return node;
  }

  readonly #isPodGone = async (row: Allocation): Promise<boolean> =>
    this.#find(row.namespace, row.pod)?.uid !== row.owner;

  #depsOf({ registry, poolCache }: ClusterNode): AllocateDeps {
    const deps = { registry, isPodGone: this.#isPodGone, endOrphan: (row: Allocation) => registry.collect(row) };
    return {
      ...{ registry, poolCache },
      cluster: {
        releaseRetained: (retained) => registry.releaseRetained(retained),
        evictPredecessor: (former, claimant) => evictPredecessor(deps, former, claimant),
        awaitChange: async () => false,
      },
    };
  }

  /**
   * Its pod starts there: an ADD for each NIC. Rejects as the first ADD that is refused; then the pod is gone again.
   */
  async start(member: Member, node: ClusterNode, options: StartOptions = {}): Promise<LivePod> {
    const { isAtOnce = false, isMigrationTarget = false, requested, source } = options;
    const pod = this.#podOf(member);
    this.#pods.set(`${pod.namespace}/${pod.name}`, pod);
    // An ADD that waits lets time pass for all.
    const clock = { nowMs: this.#clock.nowMs, sleep: (milliseconds: number) => this.pass(milliseconds) };
    const addresses = new Map<string, string>();
    const pools = this.#pools.map(({ name }) => [name]);
    try {
      for (const [index, ifName] of this.#nics.entries()) {
        const nics = (isAtOnce ? this.#nics : [ifName]).map((each) => ({ ifName: each, pools }));
        const { held } = await allocateAddresses(
          this.#depsOf(node),
          node.demand(pod.name, nics, {
            ...{ owner: `${pod.uid}`, ifName, containerId: `${pod.uid}-${index}`, workload: member.workload, clock },
            isMigrationTarget,
            ...(index > 0 ? {} : { requested, source }),
            seedText: member.workload ? memberKey(member.workload) : pod.name,
            coversPod: isAtOnce || this.#nics.length === 1,
          }),
        );
        for (const { ip } of held) addresses.set(`${ifName}/${ip.family}`, formatIp(ip));
      }
    } catch (error) {
      await this.end({ member, pod, node, addresses });
      throw error;
    }
    return { member, pod, node, addresses };
  }

  /** As a kubelet ends a pod: DEL, then its object goes. */
  async end({ pod, node }: LivePod): Promise<void> {
    const key = `${pod.namespace}/${pod.name}`;
    for (const [index, ifName] of this.#nics.entries())
      await node.registry.release({ containerId: `${pod.uid}-${index}`, ifName });
    await node.registry.idle();
    if (this.#pods.get(key) === pod) this.#pods.delete(key);
  }

  /** Time goes on, and each node's maintenance runs. */
  async pass(milliseconds: number): Promise<void> {
    this.#clock.jump(milliseconds);
    for (const node of this.#nodes) await node.pass(0);
  }

  /** As an earlier version left it: what is kept at `from` is kept there, too. */
  async keepAlso(from: string, address: string): Promise<void> {
    const { metadata, spec } = this.server.objects.get(from) ?? expect.fail(`There is no ${from}`);
    this.server.put(ALLOCATIONS, address, {
      metadata: { ...metadata, uid: `uid-${address}` },
      spec: { ...spec, address },
    });
  }

  /**
   * Returns the addresses Bound to or kept for each NIC and family of a workload's members, beyond one: `web-0/eth0/4
   * 10.6.0.7 10.6.0.9`.
   */
  surplus(): string[] {
    const found = new Map<string, string[]>();
    for (const { spec } of this.server.objects.values()) {
      const { address, state, workload } = Object(spec);
      if (workload === undefined || (state !== "Kept" && state !== "Bound")) continue;
      const key = `${workload.uid}/${workload.member}/${workload.interface}/${address.includes(":") ? 6 : 4}`;
      found.set(key, [...(found.get(key) ?? []), address]);
    }
    return [...found].flatMap(([key, addresses]) => (addresses.length > 1 ? [`${key} ${addresses.join(" ")}`] : []));
  }

  #find(namespace: string, name: string): Pod | undefined {
    return this.#pods.get(`${namespace}/${name}`);
  }

  #podOf({ name, run }: Member): Pod {
    const uid = `u${++this.#count}`;
    const owner = { apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name, uid: run, controller: true };
    const metadata = {
      ...{ namespace: "shop", name: run === undefined ? name : `${name}-${uid}`, uid, resourceVersion: "1" },
      ...(run === undefined ? {} : { ownerReferences: [owner], labels: { "kubevirt.io": "virt-launcher" } }),
    };
    return decodePod({ kind: "Pod", metadata, spec: {}, status: {} }, "the test");
  }
}

/** Returns a member of a StatefulSet. */
function memberOf(set: string, ordinal: number): Member {
  const member = `${set}-${ordinal}`;
  return { name: member, workload: { kind: "StatefulSet", namespace: "shop", name: set, uid: `uid-${set}`, member } };
}

function machineOf(name: string): Member {
  return {
    ...{ name, run: `run-${name}` },
    workload: { kind: "VirtualMachine", namespace: "shop", name, uid: `uid-${name}`, member: name },
  };
}

/**
 * The same each time, so that the gate says of a commit what it said before; others with BERTH_SEED, and more with
 * BERTH_RUNS.
 */
const SEED = Number(process.env.BERTH_SEED ?? 1);
const RUNS = Number(process.env.BERTH_RUNS ?? times(5));
const RESTARTS = Number(process.env.BERTH_RUNS ?? 4);
const STEPS = 60;

/** Failures of members that had addresses before. */
class Tally {
  readonly refused: string[] = [];
  readonly changed: string[] = [];
  readonly left: string[] = [];
  restarts = 0;
  readonly #had = new Map<Member, ReadonlyMap<string, string>>();

  started({ member, addresses }: LivePod, what: string): void {
    if (member.workload === undefined) return;
    const had = this.#had.get(member);
    if (had === undefined) {
      this.#had.set(member, addresses);
      return;
    }
    this.restarts++;
    const [before, now] = [had, addresses].map((each) => [...each].sort().join());
    if (before !== now) this.changed.push(`${what}: ${member.name} had ${before}, has ${now}`);
    this.#had.set(member, addresses);
  }

  failed(member: Member, error: unknown, what: string): void {
    if (!(error instanceof CniError)) throw error;
    if (this.#had.has(member)) this.refused.push(`${what}: ${member.name} ${error.message}`);
  }

  see(world: World, what: string): void {
    this.left.push(...world.surplus().map((line) => `${what}: ${line}`));
  }

  get all(): object {
    return { refused: this.refused, changed: this.changed, left: this.left };
  }
}

const NOTHING = { refused: [], changed: [], left: [] };

it.each<[title: string, members: number, selection: "hash" | "ascending", machines: boolean]>([
  ["5 on 5", 5, "hash", false],
  ["20 on 20", 20, "hash", false],
  ["10 on 10 in ascending order", 10, "ascending", false],
  ["5 machines on 5", 5, "hash", true],
])("retention: restarts on nodes that know nothing: %s addresses", async (_, count, selection, machines) => {
  const world = new World([pool("blue", "10.6.0.0/24", { ips: [`10.6.0.1-10.6.0.${count}`], selection })], ["eth0"]);
  const tally = new Tally();
  const members = Array.from({ length: count }, (_, at) => (machines ? machineOf(`m${at}`) : memberOf("db", at)));
  const live: LivePod[] = [];
  for (const member of members) {
    const started = await world.start(member, await world.node());
    tally.started(started, "first");
    live.push(started);
  }
  for (let restart = 0; restart < RESTARTS; restart++) {
    for (const [at, pod] of live.entries()) {
      const what = `restart ${restart}`;
      await world.end(pod);
      try {
        const started = await world.start(pod.member, await world.node());
        tally.started(started, what);
        live[at] = started;
      } catch (error) {
        tally.failed(pod.member, error, what);
      }
      tally.see(world, what);
    }
  }
  expect(tally.all).toEqual(NOTHING);
  expect(tally.restarts).toBe(RESTARTS * count);
});

it.each<[title: string, at: number, source: StartOptions["source"], left: number]>([
  ["that it had before", 0, "CNI_ARGS IP", 0],
  ["that is kept for it, too", 1, "runtimeConfig.ips", 0],
  ["that no pod had", 2, "args.cni.ips", 0],
  // A list of all for each start of a machine would be too dear.
  ["that its claim names", 0, "IPAMClaim shop/db", 1],
])("retention: what is left beside an address that a member asks for by name, %s", async (_, at, source, left) => {
  const world = new World([pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.40"] })], ["eth0"]);
  const member = memberOf("db", 0);
  const first = await world.start(member, await world.node());
  const own = first.addresses.get("eth0/4") ?? expect.fail("It has none");
  await world.end(first);
  const others = ["10.6.0.7", "10.6.0.8", "10.6.0.9"].filter((address) => address !== own);
  await world.keepAlso(own, `${others[0]}`);
  expect(world.surplus()).toHaveLength(1);
  const requested = `${[own, ...others][at]}`;
  const again = await world.start(member, await world.node(), { requested, source });
  expect([...again.addresses.values()]).toEqual([requested]);
  expect(world.surplus()).toHaveLength(left);
});

it("retention: a machine migrates with the address that it has, although another one is kept where the search for it starts", async () => {
  const world = new World([pool("blue", "10.6.0.0/24", { ips: ["10.6.0.1-10.6.0.40"] })], ["eth0"]);
  const machine = machineOf("m");
  const first = await world.start(machine, await world.node());
  await world.end(first);
  const kept = `${first.addresses.get("eth0/4")}`;
  const record = world.server.objects.get(kept) ?? expect.fail(`There is no ${kept}`);
  const requested = kept === "10.6.0.7" ? "10.6.0.8" : "10.6.0.7";
  const source = await world.start(machine, await world.node(), { requested });
  await world.pass(31_000);
  // A node that was lost and is back has retained it.
  world.server.put(ALLOCATIONS, kept, record);
  expect(world.surplus()).toEqual([`uid-m/m/eth0/4 ${requested} ${kept}`]);
  const target = await world.start(machine, await world.node(), { isMigrationTarget: true });
  expect(target.addresses).toEqual(source.addresses);
});

const BLUE = (last: number, selection: "hash" | "ascending"): IpPool =>
  pool("blue", "10.6.0.0/24", { ips: [`10.6.0.1-10.6.0.${last}`], selection });
const SIX = (last: number): IpPool => pool("six", "fd00::/64", { ips: [`fd00::1-fd00::${last.toString(16)}`] });

/** Sets and machines among plain pods, on three nodes with a memory and on new ones; NICs one by one or all at once. */
async function fuzz(seed: number): Promise<Tally> {
  const random = new Seeded(seed);
  const nics = random.chance(0.5) ? ["eth0"] : ["eth0", "net1"];
  const members = [0, 1, 2, 3].map((at) => memberOf("db", at)).concat([machineOf("a"), machineOf("b")]);
  const others = [0, 1].map((at): Member => ({ name: `plain-${at}`, workload: undefined }));
  const needed = (members.length + others.length) * nics.length;
  const size = needed + random.pick([0, 1, 4, 40]);
  const selection = random.pick(["hash", "ascending"] as const);
  const pools = random.chance(0.5) ? [BLUE(size, selection)] : [BLUE(size, selection), SIX(size)];
  const world = new World(pools, nics);
  const nodes = [await world.node(), await world.node(), await world.node()];
  const live = new Map<Member, LivePod>();
  const tally = new Tally();
  const isAtOnce = random.chance(0.3);

  const begin = async (member: Member, what: string, source?: ClusterNode): Promise<LivePod | undefined> => {
    const others = nodes.filter((node) => node !== source);
    const node = random.chance(0.3) ? await world.node() : random.pick(others);
    try {
      const started = await world.start(member, node, { isAtOnce, isMigrationTarget: source !== undefined });
      tally.started(started, what);
      live.set(member, started);
      return started;
    } catch (error) {
      tally.failed(member, error, what);
      return undefined;
    }
  };

  for (let step = 0; step < STEPS; step++) {
    const what = `seed ${seed}, step ${step}`;
    const member = random.chance(0.8) ? random.pick(members) : random.pick(others);
    const pod = live.get(member);
    if (random.chance(0.2)) await world.pass(random.pick([10, 500, 2_100, 31_000]));
    else if (pod === undefined) await begin(member, what);
    else if (member.run !== undefined && random.chance(0.4)) {
      // The machine migrates: both have its addresses until one of them ends.
      const target = await begin(member, what, pod.node);
      const isUndone = target === undefined || random.chance(0.3);
      if (target !== undefined) await world.end(isUndone ? target : pod);
      if (isUndone) live.set(member, pod);
    } else {
      await world.end(pod);
      live.delete(member);
      if (random.chance(0.7)) await begin(member, what);
    }
    tally.see(world, what);
  }
  return tally;
}

it(`retention: members that come and go among others have their addresses and no more (seed ${SEED})`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) expect((await fuzz(seed)).all).toEqual(NOTHING);
});
