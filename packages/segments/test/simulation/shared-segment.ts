/**
 * Several clusters on one segment, which lease its addresses in blocks from a hub (docs/clusters.md). Of each cluster
 * there are the product's controller of blocks with its caches, and agents with the product's watch of pools, pool
 * cache and choice of addresses. An agent's registry is a stub: it creates and deletes an object for each address, and
 * nothing of it outlives the agent. The hub compares versions, and has no policy.
 */
import { randomUUID } from "node:crypto";
import { openCaches } from "../../../../host/controller/caches.ts";
import { PoolWrites } from "../../../../host/controller/pool-writes.ts";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import { type Proposal, pickAddresses } from "../../../../host/ipam/pick.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import { encodeIp } from "../../../../host/kernel/netlink/ip-bytes.ts";
import { ApiError, ApiUnavailable, type KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { Reflector } from "../../../../host/kubernetes/reflector.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { rangeContains, rangeOfPrefix } from "../../../../host/net/range.ts";
import { allocationName } from "../../../../host/resources/ip-allocation.ts";
import { decodeIpPool, type IpPool } from "../../../../host/resources/ip-pool.ts";
import { EPOCH_MAP } from "../../../../host/resources/registry-epoch.ts";
import { ADMITS_ALL } from "../../../../test/fakes/admission/admission.ts";
import { ALLOCATIONS, type Gate, MemoryApiServer } from "../../../../test/fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../../../test/lab/cluster/objects.ts";
import { THIS_PRODUCT } from "../../../../test/simulation/product.ts";
import type { Process, SimulatedTime } from "../../../../test/simulation/simulated-time.ts";
import type { Timeline } from "../../../../test/simulation/timeline.ts";
import { requirePrefix } from "../../blocks/blocks-of-range.ts";
import { NO_LEASES, parseOwnLeases } from "../../blocks/own-leases.ts";
import { RANGES_MAP } from "../../blocks/own-ranges.ts";
import { planRejoin } from "../../blocks/plan-rejoin.ts";
import { encodeRelease } from "../../blocks/plan-release.ts";
import { startBlocks } from "../../controllers/blocks-controller.ts";
import { decodeRangeMember, memberObject, type RangeMember } from "../../range-member.ts";
import type { BlocksDeps } from "../../types.ts";

const BERTH = "/apis/ipam.vendor.io/v1";
const POOLS = `${BERTH}/ippools`;
const RANGES = `${BERTH}/addressranges`;
const MEMBERS = `${BERTH}/rangemembers`;
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
const own = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });
const SERVES = {
  [POOLS]: own("IPPool"),
  [ALLOCATIONS]: own("IPAllocation"),
  [RANGES]: own("AddressRange"),
  [MEMBERS]: own("RangeMember"),
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
  [MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
};
const AGENTS = 2;
/** Blocks of eight: sixteen of them. */
const SUBNET = "10.6.0.0/25";
const MAX_BLOCKS = 8;
/** A hub that was restored stays reachable, and all clusters are on, for so long: milliseconds. */
const QUIET_MS = 180_000;
/** An administrator asks the addresses of a cluster for so long before it is declared gone: milliseconds. */
const ASKING_MS = 600_000;
const RETRY_MS = 15_000;
/** An agent marks a pool as exhausted again after so long: milliseconds. */
const WANTED_MS = 60_000;

type Json = Readonly<Record<string, unknown>>;
interface Shares {
  readonly lostRequest: number;
  readonly lostAnswer: number;
  readonly late: number;
}

interface World {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  /** Of the run. */
  readonly faults: number;
}

interface Pod {
  readonly name: string;
  readonly cluster: LeasingCluster;
  address: string | undefined;
  isEnding: boolean;
}

export class SharedSegment {
  readonly world: World;
  readonly hub: MemoryApiServer;
  readonly clusters: LeasingCluster[] = [];
  /** The pod that answers for an address. */
  readonly answering = new Map<string, Pod>();
  readonly problems: string[] = [];
  adds = 0;
  conflicts = 0;
  isHubAway = false;
  shares: Shares;
  /** No cluster is cut off, or off, before. */
  quietUntilMs = 0;
  readonly #wire: Process;
  #backup: ReturnType<MemoryApiServer["snapshot"]> | undefined;

  constructor(world: World, names: readonly string[]) {
    this.world = world;
    this.#wire = world.time.process("wire");
    this.shares = { lostRequest: 0.02 * world.faults, lostAnswer: 0.03 * world.faults, late: 0.01 * world.faults };
    this.hub = new MemoryApiServer({ serves: SERVES, nowMs: () => Date.now(), admission: ADMITS_ALL });
    this.hub.put(RANGES, "lan", { spec: { subnet: SUBNET, blockSize: 29 } });
    for (const member of names) {
      const spec = { range: "lan", member, user: userOf(member), maxBlocks: MAX_BLOCKS };
      this.hub.put(MEMBERS, memberObject("lan", member), { spec });
    }
    for (const name of names) this.clusters.push(new LeasingCluster(this, name));
  }

  start(): void {
    for (const cluster of this.clusters) cluster.powerOn();
  }

  member(name: string): RangeMember {
    return decodeRangeMember(this.hub.collection(MEMBERS).get(memberObject("lan", name)), name);
  }

  /** How the cluster's controllers reach the hub. */
  toHub(cluster: LeasingCluster, process: Process): KubeApi {
    const gate: Gate = async (call, commit) => {
      const { time } = this.world;
      const random = process.random;
      await time.sleep(20 + random.below(200), "to the hub");
      if (this.isHubAway || random.chance(this.shares.lostRequest)) throw away();
      if (call.method !== "GET" && random.chance(this.shares.late)) {
        const arrive = () => {
          try {
            commit();
          } catch {
            // The answer is lost.
          }
        };
        time.schedule(random.below(60_000), "a late write", this.#wire, arrive);
        throw away();
      }
      const answer = this.#refused(cluster, commit);
      await time.sleep(20 + random.below(100), "from the hub");
      if (random.chance(this.shares.lostAnswer)) throw away();
      return answer;
    };
    return this.hub.client(gate);
  }

  /** A write that the schema or the policy refuses is a bug of the product. */
  #refused<T>(cluster: LeasingCluster, commit: () => T): T {
    try {
      return commit();
    } catch (error) {
      if (error instanceof ApiError && error.status !== 409 && error.status !== 404)
        this.problems.push(`a write of ${cluster.name} was refused: ${error.message}`);
      throw error;
    }
  }

  get isQuiet(): boolean {
    return this.world.time.nowMs < this.quietUntilMs;
  }

  copy(cluster: LeasingCluster): LeasingCluster {
    const copy = new LeasingCluster(this, cluster.member, cluster);
    this.clusters.push(copy);
    this.world.timeline.note(`${cluster.name} is copied`);
    return copy;
  }

  discard(copy: LeasingCluster): void {
    copy.powerOff();
    const index = this.clusters.indexOf(copy);
    if (index >= 0) this.clusters.splice(index, 1);
  }

  /** No further faults, and administrators do their part. */
  calm(): void {
    this.isHubAway = false;
    this.shares = { lostRequest: 0, lostAnswer: 0, late: 0 };
    for (const cluster of [...this.clusters]) if (cluster.isCopy) this.discard(cluster);
    for (const cluster of this.clusters) {
      cluster.powerOn();
      if (cluster.controllers === 0) cluster.startController();
      while (cluster.controllers > 1) cluster.endController();
      this.readmit(cluster);
      cluster.scale();
    }
  }

  close(): void {
    for (const cluster of this.clusters) cluster.powerOff();
  }

  saveHub(): void {
    this.#backup = this.hub.snapshot();
  }

  restoreHub(): void {
    const { time } = this.world;
    if (this.#backup === undefined || this.isHubAway || this.clusters.some((each) => !each.isSteady)) return;
    const { version } = this.hub;
    this.hub.restore(this.#backup);
    // As with etcd's --bump-revision: versions are not given out again (docs/clusters.md names it).
    while (this.hub.version <= version) this.hub.put(MAPS, "bump", { data: { at: String(this.hub.version) } });
    this.quietUntilMs = time.nowMs + QUIET_MS;
    this.world.timeline.note("the hub went back in time");
  }

  /** The pod is up with the address. Another member's must not have it. */
  up(pod: Pod, address: string): void {
    const holder = this.answering.get(address);
    if (holder !== undefined && holder.cluster.member !== pod.cluster.member)
      this.problems.push(
        `${address} is given to ${pod.name} of ${pod.cluster.name}, and ${holder.name} of ${holder.cluster.name} has it`,
      );
    this.answering.set(address, pod);
    pod.address = address;
    this.world.timeline.note(`${pod.cluster.name}: ${pod.name} has ${address}`);
  }

  down(pod: Pod): void {
    if (pod.address !== undefined && this.answering.get(pod.address) === pod) this.answering.delete(pod.address);
    pod.address = undefined;
  }

  /** `berthctl blocks release`: of a cluster that was off all the time. */
  release(cluster: LeasingCluster): void {
    const member = this.member(cluster.member);
    if (Object.keys(member.status.blocks).length === 0 || !cluster.isOffFor(ASKING_MS)) return;
    if ([...this.answering.values()].some(({ cluster: each }) => each.member === cluster.member)) return;
    this.edit(cluster.member, { ...encodeRelease(member, randomUUID), blocks: {} });
    this.world.timeline.note(`${cluster.name} is released`);
  }

  /** An administrator lets it in again, or decides that it continues. */
  readmit(cluster: LeasingCluster): void {
    const same = this.clusters.filter(({ member }) => member === cluster.member);
    if (same.length === 1 && this.member(cluster.member).status.isContested) cluster.rejoin();
  }

  edit(member: string, change: object): void {
    const { status, ...rest } = this.hub.collection(MEMBERS).get(memberObject("lan", member)) as unknown as Json;
    this.hub.put(MEMBERS, memberObject("lan", member), { ...rest, status: { ...(status as Json), ...change } });
  }

  get #originals(): readonly LeasingCluster[] {
    return this.clusters.filter(({ isCopy }) => !isCopy);
  }

  /** The states that must never occur, after each step. */
  check(): void {
    for (const { member } of this.#originals)
      if (Object.keys(this.member(member).status.blocks).length > MAX_BLOCKS)
        this.problems.push(`${member} has more blocks than its share`);
  }

  /** The unmet goals some time after all faults have ended. */
  unfinished(): readonly string[] {
    const blocksOf = ({ member }: LeasingCluster) => Object.keys(this.member(member).status.blocks);
    const free = 16 - new Set(this.#originals.flatMap(blocksOf)).size;
    return this.clusters.flatMap((cluster) => {
      const mine = blocksOf(cluster);
      const listed = new Map(cluster.blocks.map(({ block, state }) => [block, state]));
      const leaked = mine.filter((block) => !["New", "Active", "Draining"].includes(listed.get(block) ?? ""));
      const foreign = [...listed.keys()].filter((block) => !mine.includes(block));
      const waiting = cluster.waiting.length;
      const mayGrow = mine.length < MAX_BLOCKS && free > 0;
      return [
        ...leaked.map((block) => `${cluster.name} has ${block}, and it is ${listed.get(block) ?? "in no pool"}`),
        ...foreign.map((block) => `${cluster.name} lists ${block}, and the hub has not leased it`),
        ...(waiting > 0 && mayGrow ? [`${waiting} pods of ${cluster.name} wait, and ${free} blocks are free`] : []),
        ...(waiting > 0 && cluster.freeAddresses > 0
          ? [`${waiting} pods of ${cluster.name} wait, and ${cluster.freeAddresses} of its addresses are free`]
          : []),
      ];
    });
  }
}

function away(): ApiUnavailable {
  return new ApiUnavailable("hub", "no answer");
}

const userOf = (member: string): string => `system:serviceaccount:kube-system:range-${member}`;

export class LeasingCluster {
  readonly segment: SharedSegment;
  readonly name: string;
  /** Of two with one member's name, one is a copy. */
  readonly member: string;
  readonly home: MemoryApiServer;
  readonly pods = new Set<Pod>();
  wanted = 4;
  isOff = true;
  #offSinceMs = 0;
  #processes: Process[] = [];
  #controllers: Process[] = [];
  #agents: Agent[] = [];
  #lives = 0;
  #podNames = 0;
  #backup: ReturnType<MemoryApiServer["snapshot"]> | undefined;

  constructor(segment: SharedSegment, member: string, copied?: LeasingCluster) {
    this.segment = segment;
    this.member = member;
    this.name = copied === undefined ? member : `${member}'s copy`;
    this.home = new MemoryApiServer({ serves: SERVES, isOpen: true, admission: ADMITS_ALL, nowMs: () => Date.now() });
    if (copied === undefined) this.#found(member);
    else this.home.restore(copied.home.snapshot());
  }

  /** Objects of an administrator, and of an agent of a new registry. */
  #found(member: string): void {
    this.home.put("/api/v1/namespaces", "kube-system", { metadata: { uid: `uid-${member}` } });
    this.home.put(MAPS, RANGES_MAP, { metadata: { namespace: "kube-system" } });
    const data = { epoch: "e1", settled: "e1", cause: "first", definition: "d", waitsFor: "" };
    this.home.put(MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" }, data });
    this.home.put(POOLS, "lan", { spec: { subnet: SUBNET, source: { range: "lan" } } });
  }

  get #world(): World {
    return this.segment.world;
  }

  get blocks(): readonly { readonly block: string; readonly state: string }[] {
    const { status } = (this.home.collection(POOLS).get("lan") ?? {}) as { status?: { source?: { blocks?: [] } } };
    return status?.source?.blocks ?? [];
  }

  get waiting(): readonly Pod[] {
    return [...this.pods].filter(({ address, isEnding }) => address === undefined && !isEnding);
  }

  /** As its agents would count them. */
  get freeAddresses(): number {
    return Number(this.#agents[0]?.free ?? 0);
  }

  get isSteady(): boolean {
    return !this.isOff && this.#controllers.length > 0;
  }

  /** `berthctl blocks rejoin`, after pods were deleted whose addresses the hub knows nothing of. */
  rejoin(): void {
    const map = this.home.collection(MAPS).get(RANGES_MAP) as { readonly data?: Readonly<Record<string, string>> };
    const member = this.segment.member(this.member);
    const blocks = Object.keys(member.status.blocks).map((block) => rangeOfPrefix(requirePrefix(block)));
    const isOwn = (address: string) => blocks.some((range) => rangeContains(range, allocationSpec(address).ip));
    for (const pod of this.pods) if (pod.address !== undefined && !isOwn(pod.address)) this.#end(pod);
    const bound = [...this.home.objects].filter(([, { spec }]) => (spec as { state?: string }).state === "Bound");
    const used = bound.map(([name]) => ({ ip: allocationSpec(name).ip, pool: "lan", holder: "" }));
    const text = map.data?.lan;
    const own = text === undefined ? NO_LEASES : parseOwnLeases(text, "memory");
    const cluster = `uid-${this.member}`;
    const plan = planRejoin({ member, own, cluster, used, newId: randomUUID });
    if ("refusal" in plan) {
      this.#world.timeline.note(`${this.name} does not rejoin: ${plan.refusal}`);
      return;
    }
    const data = { lan: JSON.stringify(plan.own) };
    this.home.put(MAPS, RANGES_MAP, { ...map, data });
    this.segment.edit(this.member, { ...plan.status, contested: undefined });
    this.#world.timeline.note(`${this.name} is the one that goes on`);
  }

  get isCopy(): boolean {
    return this.name !== this.member;
  }

  isOffFor(milliseconds: number): boolean {
    return this.isOff && this.#world.time.nowMs - this.#offSinceMs >= milliseconds;
  }

  /** Control plane, nodes and all that runs there. */
  powerOff(): void {
    if (this.isOff) return;
    this.isOff = true;
    this.#offSinceMs = this.#world.time.nowMs;
    for (const process of this.#processes.splice(0)) this.#world.time.end(process);
    this.#controllers = [];
    this.#agents = [];
    for (const pod of this.pods) this.segment.down(pod);
    this.pods.clear();
    this.#world.timeline.note(`${this.name} is off`);
  }

  powerOn(): void {
    // A copy that was off when it was discarded stays so.
    if (!this.isOff || !this.segment.clusters.includes(this)) return;
    this.isOff = false;
    this.#world.timeline.note(`${this.name} is on`);
    // Their sandboxes are gone, and the collector ends their records.
    for (const [name, { spec }] of this.home.objects)
      if ((spec as { state?: string }).state === "Bound") this.home.remove(name);
    for (let index = 0; index < AGENTS; index++) this.startAgent(index);
    this.startController();
    // Kubelets know their pods at once.
    this.scale();
  }

  save(): void {
    if (!this.isOff) this.#backup = this.home.snapshot();
  }

  /** Control plane and nodes return to an earlier state. */
  restore(): void {
    if (this.#backup === undefined) return;
    this.powerOff();
    this.home.restore(this.#backup);
    this.#world.timeline.note(`${this.name} is restored`);
    this.powerOn();
  }

  #start(name: string): Process {
    const process = this.#world.time.process(`${this.name} ${name} ${++this.#lives}`);
    this.#processes.push(process);
    return process;
  }

  /** To the cluster's own API server. */
  #toHome(process: Process): KubeApi {
    const { time } = this.#world;
    const gate: Gate = async (_call, commit) => {
      await time.sleep(1 + process.random.below(20), "to the API server");
      const answer = commit();
      await time.sleep(1 + process.random.below(20), "from the API server");
      return answer;
    };
    let lastMs = 0;
    return this.home.client(gate, (_path, deliver) => {
      // In order.
      lastMs = Math.max(lastMs, time.nowMs + 5 + process.random.below(process.random.chance(0.05) ? 5_000 : 50));
      time.schedule(lastMs - time.nowMs, "an event", process, deliver);
    });
  }

  /** A controller that believes that it leads, whatever others believe. */
  startController(): void {
    const process = this.#start("controller");
    this.#controllers.push(process);
    const { time } = this.#world;
    time.inside(process, () => {
      const api = this.#toHome(process);
      const log = THIS_PRODUCT.openLog("simulation", "silent");
      const random = () => process.random.u32() / 2 ** 32;
      const caches = openCaches({ api, configNamespace: "kube-system", log, random });
      const nowMs = () => time.nowMs;
      const deps = {
        ...{ api, caches, log, random, leading: new AbortController().signal },
        ...{ clock: { nowMs, now: () => new Date() }, poolWrites: new PoolWrites({ nodes: () => AGENTS, nowMs }) },
        hub: { api: this.segment.toHub(this, process), member: this.member, namespace: "kube-system" },
      } as unknown as BlocksDeps;
      void caches.synced().then(() => startBlocks(deps));
    });
  }

  /** The oldest one. */
  endController(): void {
    const process = this.#controllers.shift();
    if (process !== undefined) this.#world.time.end(process);
  }

  get controllers(): number {
    return this.#controllers.length;
  }

  startAgent(index: number): void {
    const process = this.#start("agent");
    this.#world.time.inside(process, () => {
      this.#agents[index] = new Agent({ cluster: this, process, api: this.#toHome(process) });
    });
  }

  /** Its pods run on. */
  restartAgent(index: number): void {
    const agent = this.#agents[index];
    if (agent === undefined) return;
    this.#world.time.end(agent.process);
    this.startAgent(index);
  }

  /** Pods come and go until there are as many as are wanted. */
  scale(wanted = this.wanted): void {
    this.wanted = wanted;
    if (this.isOff) return;
    const running = [...this.pods].filter(({ isEnding }) => !isEnding);
    for (const pod of running.slice(wanted)) this.#end(pod);
    for (let count = running.length; count < wanted; count++) {
      const pod: Pod = { name: `p${++this.#podNames}`, cluster: this, address: undefined, isEnding: false };
      this.pods.add(pod);
    }
    for (const [index, pod] of this.waiting.entries()) {
      const agent = this.#agents[index % AGENTS];
      if (agent !== undefined) this.#inside(agent, () => agent.add(pod));
    }
  }

  #end(pod: Pod): void {
    pod.isEnding = true;
    const address = pod.address;
    this.segment.down(pod);
    this.pods.delete(pod);
    const [agent] = this.#agents;
    if (address !== undefined && agent !== undefined) this.#inside(agent, () => agent.release(address));
  }

  #inside(agent: Agent, work: () => Promise<void>): void {
    const { time } = this.#world;
    time.inside(agent.process, () => void work().catch((error: unknown) => time.uncaught.push(error)));
  }
}

interface AgentParts {
  readonly cluster: LeasingCluster;
  readonly process: Process;
  readonly api: KubeApi;
}

/** The part of an agent that concerns blocks. */
class Agent {
  readonly process: Process;
  readonly #cluster: LeasingCluster;
  readonly #api: KubeApi;
  readonly #cache = new PoolCache(PoolSpace.open(THIS_PRODUCT.coreWasm));
  readonly #pools: Reflector<IpPool>;
  readonly #adding = new Set<Pod>();
  #wantedMs = Number.NEGATIVE_INFINITY;

  constructor({ cluster, process, api }: AgentParts) {
    this.process = process;
    this.#cluster = cluster;
    this.#api = api;
    this.#pools = new Reflector<IpPool>({
      ...{ api, name: "IPPools", path: POOLS, log: THIS_PRODUCT.openLog("simulation", "silent") },
      keyOf: ({ metadata }) => (metadata as { name: string }).name,
      decode: (object) => decodeIpPool(object, "pool"),
      onChange: ({ key }) => this.#cache.apply([[key, this.#pools.items.get(key)]], []),
      random: () => process.random.u32() / 2 ** 32,
    });
    this.#cache.followRegistry(() => ({ epoch: "e1", sinceMs: this.#pools.heardSinceMs }));
    this.#pools.start();
  }

  get free(): bigint {
    this.#refill();
    return this.#cluster.segment.world.time.inside(this.process, () => this.#cache.counts("lan")?.free ?? 0n);
  }

  /** The pool as a list would return it. */
  #refill(): IpPool | undefined {
    const pool = this.#pools.items.get("lan");
    if (pool === undefined) return undefined;
    // The name of an IPv4 address's object.
    const ips = [...this.#cluster.home.objects.keys()].map((name) => allocationSpec(name).ip);
    this.#cache.replaceUsed(pool, Buffer.concat(ips.map((ip) => encodeIp(ip))));
    return pool;
  }

  /** One attempt after the other, as kubelets make them, until the pod has an address or is not there any more. */
  async add(pod: Pod): Promise<void> {
    if (this.#adding.has(pod)) return;
    this.#adding.add(pod);
    const { time } = this.#cluster.segment.world;
    while (this.#cluster.pods.has(pod) && pod.address === undefined) {
      if (await this.#attempt(pod)) break;
      await time.sleep(RETRY_MS, "the kubelet tries again");
    }
    this.#adding.delete(pod);
  }

  async #attempt(pod: Pod): Promise<boolean> {
    const { segment } = this.#cluster;
    const pool = this.#refill();
    if (pool === undefined) return false;
    segment.adds++;
    const candidates = [{ name: "lan", pool }] as never;
    const nic = { ifName: "eth0", rule: "test", cleanGateway: false, families: [{ family: 4 as const, candidates }] };
    const seedOf = () => this.process.random.u32();
    const picked = pickAddresses(this.#cache, { nics: [nic], seedOf, assigned: [] });
    if (picked.kind === "short") {
      await this.#want();
      return false;
    }
    const [pick] = picked.picked;
    return pick !== undefined && (await this.#take(pod, pick));
  }

  async #take(pod: Pod, { ip }: Proposal): Promise<boolean> {
    const { segment } = this.#cluster;
    const address = formatIp(ip);
    const isNew = this.#cache.blockStateOf({ space: "", ip }) === "New";
    const spec = allocationSpec(address, { pool: "lan" });
    const body = allocationObject(spec) as Json;
    try {
      await this.#api.call({ method: "POST", path: ALLOCATIONS, body });
    } catch {
      this.#cache.cancel([{ space: "", ip }]);
      return false;
    }
    this.#cache.cancel([{ space: "", ip }]);
    if (isNew && segment.answering.has(address)) {
      segment.conflicts++;
      segment.world.timeline.note(`${this.#cluster.name}: a machine answers for ${address}`);
      await this.#quarantine(address);
      return false;
    }
    if (!this.#cluster.pods.has(pod) || pod.address !== undefined) {
      await this.release(address);
      return true;
    }
    segment.up(pod, address);
    return true;
  }

  /** Until it is probed again. */
  async #quarantine(address: string): Promise<void> {
    await this.#cluster.segment.world.time.sleep(60_000, "quarantine");
    await this.release(address);
  }

  async release(address: string): Promise<void> {
    const path = `${ALLOCATIONS}/${allocationName(allocationSpec(address).ip, "")}`;
    await this.#api.call({ method: "DELETE", path }).catch(() => undefined);
  }

  async #want(): Promise<void> {
    const { nowMs } = this.#cluster.segment.world.time;
    if (nowMs < this.#wantedMs + WANTED_MS) return;
    this.#wantedMs = nowMs;
    const body = { status: { wanted: `${this.process.name} ${randomUUID()}` } };
    await this.#api.call({ method: "PATCH", path: `${POOLS}/lan/status`, body }).catch(() => undefined);
  }
}
