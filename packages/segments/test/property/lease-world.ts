/**
 * Clusters that lease blocks from one server, as a system for the breadth-first search: the product decides
 * (blocks/plan-leases.ts), the server carries out requests, late or never, and compares nothing between clusters. It is
 * an IPAM of record, or a hub, where a write must be based on the version of the cluster's own object.
 */

import { formatPrefix, prefixesOverlap } from "../../../../host/net/prefix.ts";
import type { Step, System } from "../../../../test/property/registry/search/search.ts";
import { prefix } from "../../../../test/world/values.ts";
import { blockAt } from "../../blocks/blocks-of-range.ts";
import type { Child, Made } from "../../blocks/lease-server.ts";
import { NO_LEASES, type OwnLeases } from "../../blocks/own-leases.ts";
import { type BlockDemand, type LeasePlan, planLeases, usableBlocks } from "../../blocks/plan-leases.ts";
import { blocksAfter, chooseFree, leasesOn, recall } from "../../blocks/range-leases.ts";
import { barOf, sealWrite } from "../../blocks/seal.ts";
import type { BlocksChange, MemberBlock, RangeMember } from "../../range-member.ts";
import { rangeOf } from "../unit/blocks/range-object.ts";
import { Move } from "./move.ts";

/** `at`: the block that the server chose when the request came, if it chooses without a lock. */
type Requested =
  | (Extract<LeasePlan, { kind: "ask" }> & { readonly at?: string })
  | ({ readonly kind: "make" } & Made)
  | { readonly kind: "remove"; readonly child: Child };

/** A write of the own object of a hub. */
interface Write {
  readonly kind: "write";
  readonly version: string;
  readonly status: Partial<Pick<RangeMember["status"], "token" | "writes" | "isContested">>;
  readonly blocks: BlocksChange;
  /** Whether the cluster has something to tell by it. */
  readonly tells: boolean;
}

type Sent = Requested | Write;

interface Cluster {
  /** Of two with one name, one is a copy of the other. */
  readonly name: string;
  readonly own: OwnLeases;
  /** Members that its process has seen on the hub. */
  readonly seen: readonly RangeMember[];
  /** A process has begun that is still to replace the cluster's token: by this one, once it is sent. */
  readonly renewal?: string | undefined;
  /** Blocks in which pods may have addresses. */
  readonly used: readonly string[];
  /** Blocks whose addresses are given. */
  readonly giving: readonly string[];
  /** New ones, each with the clusters that have not finished a pass since. */
  readonly resting: Readonly<Record<string, readonly number[]>>;
  readonly returning: readonly string[];
  /** The records in blocks: a pod's create whose ADD has not read the pool yet, or a pod. */
  readonly records: Readonly<Record<string, "create" | "pod">>;
  /** Blocks that an agent took for usable when it sent a create, which has not landed. */
  readonly creates: readonly string[];
  readonly wanted: number;
  readonly sent: readonly Sent[];
  readonly isCut: boolean;
}

type Fault =
  | ("want" | "create" | "serverBackup" | "serverRestore" | "membersMadeAnew" | "backup" | "restore" | "copy" | "cut")
  | ("person" | "release" | "lostMember" | "restart");

interface Server {
  /** Of an IPAM of record. */
  readonly children: readonly Child[];
  /** Of a hub. */
  readonly members: readonly RangeMember[];
}

export interface LeaseState {
  readonly server: Server;
  readonly serverBackup?: Server;
  readonly clusters: readonly Cluster[];
  readonly backup?: { readonly index: number; readonly own: OwnLeases };
  readonly left: Readonly<Partial<Record<Fault, number>>>;
  /** Why the hub's policy would have refused the last write. */
  readonly refusal?: string;
  readonly clock: number;
  readonly ids: number;
}

export interface LeaseScene {
  readonly clusters: readonly string[];
  readonly blocks: 1 | 2;
  /** How often each may happen. */
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Most blocks of one cluster of a hub. */
  readonly share: number;
  readonly isHub?: boolean;
  /** Nautobot: the same prefix cannot be there twice. NetBox: it can. */
  readonly isUnique?: boolean;
  /** Whether the server chooses a block and makes it in one step. */
  readonly isLocked?: boolean;
  /** Whether recorded times go backwards. */
  readonly isClockWrong?: boolean;
  /** Part of the design that is left out. */
  readonly without?: "rest" | "reading" | "recall";
}

const BLOCK_SIZE = 28;
const SUBNETS = { 1: "10.6.0.0/28", 2: "10.6.0.0/27" } as const;

function parentOf({ blocks }: LeaseScene) {
  const range = rangeOf({ subnet: SUBNETS[blocks] });
  return { range, ranges: new Map([[range.name, range]]) };
}

function blocksIn({ blocks }: LeaseScene): readonly string[] {
  const subnet = prefix(SUBNETS[blocks]);
  return Array.from({ length: blocks }, (_, index) => formatPrefix(blockAt({ subnet, blockSize: BLOCK_SIZE }, index)));
}

/** Whether earlier observations can matter. */
function hasPast({ isHub, faults, without }: LeaseScene): boolean {
  const { serverRestore = 0, membersMadeAnew = 0, lostMember = 0 } = faults;
  return isHub === true && without !== "recall" && serverRestore + membersMadeAnew + lostMember > 0;
}

function findFree(scene: LeaseScene, children: readonly Child[]): string | undefined {
  return blocksIn(scene).find((block) => !children.some((child) => prefixesOverlap(child.prefix, prefix(block))));
}

/** The cluster's view, and its memory. */
function lookAt(scene: LeaseScene, server: Server, { name, own, seen }: Cluster) {
  const known = new Map(seen.map((each) => [each.name, each]));
  const members = hasPast(scene) ? recall(known, server.members, name) : server.members;
  const children = scene.isHub === true ? leasesOn(parentOf(scene), members, name) : server.children;
  const object = server.members.find((each) => each.name === name);
  const bar = object && barOf(own.seal, object.status, `uid-${name}`);
  const facts = { children, own, cluster: name, parent: parentOf(scene).range.spec };
  const plan = (demand: BlockDemand, isNewPass: boolean, newId: () => string, at: OwnLeases = own): LeasePlan =>
    planLeases({
      ...facts,
      own: at,
      name,
      demand,
      isNewPass,
      newId,
      server: { hasOwnList: scene.isHub === true, bar },
    });
  return { children, object, bar, facts, plan, seen: [...known.values()] };
}

class LeaseMove extends Move<LeaseScene, Cluster, LeaseState> {
  /** The cluster asks the server, remembers, and sends the next request. */
  look(index: number): LeaseState {
    const { scene } = this;
    const cluster = this.world.clusters[index] as Cluster;
    const { children, object, bar, facts, plan, seen } = lookAt(scene, this.world.server, cluster);
    // All stays as it is.
    if (scene.isHub === true && object === undefined) return this.with(index, { seen });
    if (object !== undefined && bar === undefined && isToRenew(cluster, object)) return this.#renew(index, object);
    const before = usableBlocks(facts);
    const { records } = cluster;
    const inUse = cluster.returning.filter((block) => records[block] === "create" || records[block] === "pod");
    const idle = Object.keys(before.disputed).filter(
      (block) => !cluster.used.includes(block) && records[block] === undefined,
    );
    const kept = cluster.returning.filter((block) => !inUse.includes(block));
    // Pods leave the blocks that are not given of first.
    const held = [...cluster.used, ...inUse].sort((a, b) => Number(b in before.blocks) - Number(a in before.blocks));
    const spare = [...held, ...Object.keys(before.blocks).filter((block) => !held.includes(block))]
      .filter((block) => !kept.includes(block) && !inUse.includes(block))
      .slice(cluster.wanted);
    const returning = [...new Set([...kept, ...spare, ...idle])];
    // Where creates are late, the records are listed after the pool's status says that the block goes back.
    const claimed = scene.faults.create === undefined ? returning : kept;
    const demand = { lease: { pool: cluster.wanted }, giveBack: bar === undefined ? claimed : [] };
    let { own } = cluster;
    let next = plan(demand, true, this.newId, own);
    for (; next.kind === "remember"; next = plan(demand, false, this.newId, own)) own = next.own;
    const { blocks } = usableBlocks({ ...facts, own });
    const given = Object.keys(blocks).filter((block) => !returning.includes(block));
    const used = [...cluster.used, ...inUse].filter((block) => !returning.includes(block));
    const ready = given.filter((block) => !used.includes(block) && this.hasRested(index, block));
    const others = this.world.clusters.flatMap((_, at) => (at === index ? [] : [at]));
    const resting = given
      .filter((block) => !used.includes(block) && !ready.includes(block))
      .map((block) => [block, cluster.resting[block] ?? others] as const);
    const { seal, write } = this.#write(cluster, { object, children, bar, plan: next });
    own = { ...own, seal };
    const changed = this.with(index, {
      ...{ own, seen, records, renewal: bar === undefined ? undefined : cluster.renewal },
      returning: returning.filter((block) => block in own.leases),
      used: [...used, ...ready].sort(),
      giving: [...given.filter((block) => used.includes(block)), ...ready].sort(),
      resting: Object.fromEntries(resting),
      sent: write === undefined ? cluster.sent : this.#send(cluster.sent, write),
    });
    // By then the others can see this one's message.
    const isTold = write === undefined || (write.kind === "write" ? !write.tells : write.kind === "ask");
    if (!isTold) return changed;
    return { ...changed, clusters: changed.clusters.map((each) => ({ ...each, resting: heard(each.resting, index) })) };
  }

  /** The write, and the memory before it. */
  #write(
    cluster: Cluster,
    {
      object,
      children,
      bar,
      plan,
    }: Pick<ReturnType<typeof lookAt>, "object" | "children" | "bar"> & {
      readonly plan: LeasePlan;
    },
  ): { readonly seal: OwnLeases["seal"]; readonly write?: Sent | undefined } {
    const { seal } = cluster.own;
    if (object === undefined) return { seal, write: requestOf(plan) };
    const { resourceVersion: version, status } = object;
    if (bar?.kind === "contested" && !status.isContested)
      return { seal, write: { kind: "write", version, status: { isContested: true }, blocks: {}, tells: false } };
    const blocks = this.#blocksOf(plan, children, object);
    if (Object.keys(blocks).length === 0) return { seal };
    const sealed = sealWrite(seal, status, { member: cluster.name, newId: this.newId });
    const stamp = { token: sealed.next, writes: sealed.writes + 1 };
    return { seal: sealed, write: { kind: "write", version, status: stamp, blocks, tells: plan.kind !== "ask" } };
  }

  /** Nothing is decided before the token is replaced. */
  #renew(index: number, { resourceVersion: version, status }: RangeMember): LeaseState {
    const cluster = this.world.clusters[index] as Cluster;
    const seal = sealWrite(cluster.own.seal, status, { member: cluster.name, newId: this.newId });
    const stamp = { token: seal.next, writes: seal.writes + 1 };
    const sent = this.#send(cluster.sent, { kind: "write", version, status: stamp, blocks: {}, tells: true });
    return this.with(index, { own: { ...cluster.own, seal }, sent, renewal: seal.next });
  }

  #blocksOf(plan: LeasePlan, children: readonly Child[], member: RangeMember): BlocksChange {
    if (plan.kind === "write") return blocksAfter(plan, member, this.#time());
    if (plan.kind !== "ask") return {};
    const make = chooseFree(plan, { ...parentOf(this.scene), children }, member.name);
    return blocksAfter({ remove: [], make }, member, this.#time());
  }

  #time(): string {
    const { clock } = this.world;
    return String(this.scene.isClockWrong === true ? 99 - clock : 10 + clock);
  }

  #send(sent: readonly Sent[], plan: Sent): readonly Sent[] {
    const { scene, world } = this;
    const at = plan.kind === "ask" && scene.isLocked !== true ? findFree(scene, world.server.children) : undefined;
    const next = at === undefined ? plan : ({ ...plan, at } as Sent);
    const text = JSON.stringify(next, toText);
    const alive = sent.filter((each) => canLand(world.server, each));
    return alive.some((each) => JSON.stringify(each, toText) === text) ? alive : [...alive.slice(-1), next];
  }

  hasRested(index: number, block: string): boolean {
    const missing = this.world.clusters[index]?.resting[block];
    if (missing === undefined) return false;
    return this.scene.without === "rest" || missing.every((other) => this.world.clusters[other]?.isCut === true);
  }

  /** One of the requests reaches the server. */
  land(index: number, at: number): LeaseState {
    const cluster = this.world.clusters[index] as Cluster;
    const request = cluster.sent[at] as Sent;
    const sent = cluster.sent.filter((_, other) => other !== at);
    const { server } = this.world;
    if (request.kind === "write") return this.#landWrite(index, cluster.name, request, sent);
    if (request.kind === "remove") {
      const children = server.children.filter(({ id }) => id !== request.child.id);
      return this.with(index, { sent }, { server: { ...server, children } });
    }
    const block =
      request.kind === "make" ? formatPrefix(request.prefix) : (request.at ?? findFree(this.scene, server.children));
    const isThere = server.children.some((each) => formatPrefix(each.prefix) === block);
    if (block === undefined || (isThere && this.scene.isUnique === true)) return this.with(index, { sent });
    return this.#make(index, block, request.mark, { sent });
  }

  #landWrite(index: number, name: string, { version, status, blocks }: Write, sent: readonly Sent[]): LeaseState {
    const { server, clock } = this.world;
    const object = server.members.find((each) => each.name === name);
    if (object?.resourceVersion !== version) return this.with(index, { sent });
    const merged = Object.entries({ ...object.status.blocks, ...blocks }).filter(([, block]) => block !== null);
    const before = Object.keys(object.status.blocks).length;
    const isRefused = merged.length > object.spec.maxBlocks && merged.length > before;
    const after = { ...object.status, cluster: `uid-${name}`, ...status };
    const written = {
      ...{ ...object, resourceVersion: this.newId() },
      status: { ...after, blocks: Object.fromEntries(merged) as Record<string, MemberBlock> },
    };
    const members = server.members.map((each) => (each === object ? written : each));
    return this.with(
      index,
      { sent },
      { server: { ...server, members }, clock: clock + 1, ...(isRefused && { refusal: `${name} has too many` }) },
    );
  }

  #make(index: number, block: string, mark: Child["mark"], change: Partial<Cluster>): LeaseState {
    const { server, clock } = this.world;
    const child = { id: this.newId(), prefix: prefix(block), created: this.#time(), mark };
    const children = [...server.children, child];
    return this.with(index, change, { server: { ...server, children }, clock: clock + 1 });
  }

  /** A person writes down a prefix for something else. */
  person(block: string): LeaseState {
    return this.#make(-1, block, undefined, {});
  }

  /** A write that is based on the lost history must not land, as versions are not given out again. */
  restore({ children, members }: Server): LeaseState {
    const server = { children, members: members.map((each) => ({ ...each, resourceVersion: this.newId() })) };
    return this.with(-1, {}, { server });
  }

  /** All members of the hub are made anew, and have written nothing. */
  makeAnew(): LeaseState {
    const { server } = this.world;
    const members = server.members.map(({ name, spec: { maxBlocks } }) => newMember(name, maxBlocks, this.newId));
    return this.with(-1, {}, { server: { ...server, members } });
  }

  /** The object of a member is deleted by mistake, and later made again. */
  lose(lost: RangeMember): LeaseState {
    const { server } = this.world;
    const members = server.members.filter((each) => each !== lost);
    return this.with(-1, {}, { server: { ...server, members } });
  }

  makeMember(name: string): LeaseState {
    const { server, clusters } = this.world;
    const all = [...server.members, newMember(name, this.scene.share, this.newId)];
    const order = clusters.map((each) => each.name);
    const members = all.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
    return this.with(-1, {}, { server: { ...server, members } });
  }

  /** An administrator releases the cluster, which is off, and was for long: no pod of it is left. */
  release(index: number): LeaseState {
    const { server, clusters } = this.world;
    const { name } = clusters[index] as Cluster;
    const members = server.members.map((each) => {
      if (each.name !== name) return each;
      const writes = each.status.writes + 1;
      const status = { ...each.status, token: this.newId(), writes, isContested: true, blocks: {} };
      return { ...each, resourceVersion: this.newId(), status };
    });
    const nothing = { used: [], giving: [], resting: {}, records: {}, creates: [] };
    return this.with(index, nothing, { server: { ...server, members } });
  }

  /** The create of an agent lands, and fails if anything is recorded. */
  create(index: number, block: string): LeaseState {
    const { records, creates } = this.world.clusters[index] as Cluster;
    const left = creates.filter((each) => each !== block);
    if (records[block] !== undefined) return this.with(index, { creates: left });
    const recorded = this.scene.without === "reading" ? "pod" : "create";
    return this.with(index, { creates: left, records: { ...records, [block]: recorded } });
  }

  /** The agent reads the pool, and gives the address or undoes its create. */
  read(index: number, block: string): LeaseState {
    const { records, giving } = this.world.clusters[index] as Cluster;
    if (!giving.includes(block)) return this.forget(index, block);
    return this.with(index, { records: { ...records, [block]: "pod" } });
  }

  forget(index: number, block: string): LeaseState {
    const { [block]: _, ...records } = (this.world.clusters[index] as Cluster).records;
    return this.with(index, { records });
  }
}

function isToRenew({ renewal }: Cluster, { status }: RangeMember): boolean {
  return renewal !== undefined && status.writes > 0 && status.token !== renewal;
}

/** A version that is over does not come back. */
function canLand({ members }: Server, request: Sent): boolean {
  return request.kind !== "write" || members.some(({ resourceVersion }) => resourceVersion === request.version);
}

/** An IPAM of record does one thing after the other. */
function requestOf(plan: LeasePlan): Requested | undefined {
  if (plan.kind === "ask") return plan;
  if (plan.kind !== "write") return undefined;
  const [child, made] = [plan.remove[0], plan.make[0]];
  if (child !== undefined) return { kind: "remove", child };
  return made && { kind: "make", ...made };
}

function newMember(name: string, maxBlocks: number, newId: () => string): RangeMember {
  const spec = { range: "lan", member: name, user: `user-${name}`, maxBlocks };
  const status = { cluster: "", token: "", writes: 0, isContested: false, blocks: {} };
  return { name, uid: newId(), resourceVersion: newId(), spec, status };
}

function toText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

function stepsOf(scene: LeaseScene, state: LeaseState): Step<LeaseState>[] {
  const steps: Step<LeaseState>[] = [];
  const move = () => new LeaseMove(scene, state);
  const calm = (label: string, next: LeaseState) => steps.push({ label, next, isCalm: true });
  const fault = (name: Fault, label: string, next: (move: LeaseMove) => LeaseState) => {
    const left = state.left[name] ?? 0;
    if (left === 0) return;
    const after = next(move());
    steps.push({ label, next: { ...after, left: { ...after.left, [name]: left - 1 } }, isCalm: false });
  };
  for (const [index, cluster] of state.clusters.entries()) {
    const name = `${cluster.name}${index}`;
    if (cluster.isCut) calm(`${name} is back`, move().with(index, { isCut: false }));
    else {
      calm(`${name} asks`, move().look(index));
      for (const [at, each] of cluster.sent.entries())
        if (canLand(state.server, each)) calm(`${name}'s request ${at} lands`, move().land(index, at));
    }
    for (const block of cluster.giving)
      if (!cluster.creates.includes(block))
        fault("create", `${name} sends a create for ${block}`, (each) =>
          each.with(index, { creates: [...cluster.creates, block].sort() }),
        );
    for (const block of cluster.creates) calm(`${name}'s create for ${block} lands`, move().create(index, block));
    for (const [block, record] of Object.entries(cluster.records)) {
      if (record === "create") calm(`${name}'s ADD reads the pool of ${block}`, move().read(index, block));
      if (record === "pod") calm(`${name}'s pod of ${block} goes`, move().forget(index, block));
    }
    fault("want", `${name} needs one more`, (each) => each.with(index, { wanted: cluster.wanted + 1 }));
    if (cluster.wanted > 0)
      fault("want", `${name} needs one less`, (each) => each.with(index, { wanted: cluster.wanted - 1 }));
    fault("restart", `${name}'s controller begins anew`, (each) => each.with(index, { seen: [], renewal: "" }));
    fault("cut", `${name} is cut off`, (each) => each.with(index, { isCut: true }));
    if (cluster.isCut) fault("release", `${name} is released`, (each) => each.release(index));
    if (state.backup === undefined)
      fault("backup", `${name} is saved`, (each) => each.with(index, {}, { backup: { index, own: cluster.own } }));
    else if (state.backup.index === index) {
      const { own } = state.backup;
      const nothing = { used: [], giving: [], resting: {}, returning: [], records: {}, creates: [], seen: [] };
      const past = { own, renewal: "", ...nothing };
      fault("restore", `${name} is restored`, (each) => each.with(index, past));
      fault("copy", `${name} is copied`, (each) => {
        const copy = { ...cluster, ...past, sent: [], isCut: false };
        return { ...each.with(index, {}), clusters: [...state.clusters, copy] };
      });
    }
  }
  for (const block of blocksIn(scene)) fault("person", `a person takes ${block}`, (each) => each.person(block));
  fault("serverBackup", "the server is saved", (each) => each.with(-1, {}, { serverBackup: state.server }));
  const { serverBackup } = state;
  if (serverBackup !== undefined)
    fault("serverRestore", "the server is restored", (each) => each.restore(serverBackup));
  for (const member of state.server.members)
    fault("lostMember", `the object of ${member.name} is deleted`, (each) => each.lose(member));
  if (scene.isHub === true)
    for (const name of new Set(scene.clusters))
      if (!state.server.members.some((each) => each.name === name))
        calm(`the object of ${name} is made again`, move().makeMember(name));
  fault("membersMadeAnew", "the hub is made anew", (each) => each.makeAnew());
  return steps;
}

/**
 * The same text for states that differ only in identifiers, times and numbers of writes, or in past requests without
 * late blocks.
 */
function keyOf({ ids: _ids, clock: _clock, clusters: all, server, serverBackup, backup, ...rest }: LeaseState): string {
  const canGoBack = ["serverRestore", "membersMadeAnew", "lostMember"].some(
    (each) => (rest.left[each as Fault] ?? 0) > 0,
  );
  const clusters = all.map(({ sent, seen, ...each }) => ({
    ...{ ...each, sent: sent.filter((request) => canLand(server, request)) },
    seen: canGoBack ? seen : seen.filter((one) => isLost(server, one)),
  }));
  const short = shortWrites({ server, ...(serverBackup && { serverBackup }), clusters, ...(backup && { backup }) });
  const member = (each: RangeMember) => ({
    ...each,
    status: { ...each.status, writes: short(each.name, each.status.writes) },
  });
  const shortOwn = (name: string, { seal, ...own }: OwnLeases) => ({
    ...{ ...own, seal: { ...seal, writes: short(name, seal.writes) } },
  });
  const members = (each: Server | undefined) => each && { ...each, members: each.members.map(member) };
  const shown = {
    ...{ server: members(server), serverBackup: members(serverBackup), ...rest },
    backup: backup && {
      ...{ ...backup, own: shortOwn(all[backup.index]?.name ?? "", backup.own) },
    },
    clusters: clusters.map(({ own, sent, seen, ...each }) => ({
      ...{ ...each, own: shortOwn(each.name, own), seen: seen.map(member) },
      sent: sent.map((request) =>
        request.kind === "write"
          ? { ...request, status: { ...request.status, writes: short(each.name, request.status.writes ?? 0) } }
          : request,
      ),
    })),
  };
  const requests = new Set<string>();
  const times = new Set<string>();
  JSON.stringify(shown, (key, value) => {
    if (key === "past") return undefined;
    if (key === "request" && typeof value === "string") requests.add(value);
    if (key === "created" || key === "since") times.add(value);
    return toText(key, value);
  });
  const sorted = [...times].sort();
  return withoutIds(
    JSON.stringify(shown, (key, value) => {
      if (key === "created" || key === "since") return sorted.indexOf(value);
      if (key === "past") return value.filter((request: string) => requests.has(request)).sort();
      return toText(key, value);
    }),
  );
}

/** Numbers of writes in the same order, each next to the same ones. */
function shortWrites(state: Pick<LeaseState, "server" | "serverBackup" | "clusters" | "backup">) {
  const { server, serverBackup, clusters, backup } = state;
  const found = new Map<string, Set<number>>();
  const note = (name: string, count: number) => found.getOrInsertComputed(name, () => new Set([0])).add(count);
  const noteAll = (members: readonly RangeMember[]) => {
    for (const { name, status } of members) note(name, status.writes);
  };
  for (const each of [server, serverBackup]) noteAll(each?.members ?? []);
  for (const { name, own, sent, seen } of clusters) {
    note(name, own.seal.writes);
    noteAll(seen);
    for (const each of sent) if (each.kind === "write") note(name, each.status.writes ?? 0);
  }
  if (backup !== undefined) note((clusters[backup.index] as Cluster).name, backup.own.seal.writes);
  const short = new Map<string, Map<number, number>>();
  for (const [name, counts] of found) {
    const sorted = [...counts].sort((a, b) => a - b);
    const ranks = new Map<number, number>();
    let rank = 0;
    for (const [at, count] of sorted.entries()) {
      rank += Math.min(2, count - (sorted[at - 1] ?? 0));
      ranks.set(count, rank);
    }
    short.set(name, ranks);
  }
  return (name: string, count: number) => short.get(name)?.get(count) ?? 0;
}

function isLost({ members }: Server, seen: RangeMember): boolean {
  const now = members.find(({ name }) => name === seen.name);
  return now === undefined || now.status.writes < seen.status.writes;
}

/** Identifiers are numbered as they come. */
function withoutIds(text: string): string {
  const names = new Map<string, string>();
  return text.replaceAll(/id\d+/g, (id) => {
    return names.getOrInsertComputed(id, () => `#${names.size}`);
  });
}

/** The resting blocks after the cluster has told the others. */
function heard(resting: Cluster["resting"], by: number): Cluster["resting"] {
  return Object.fromEntries(
    Object.entries(resting).map(([block, missing]) => [block, missing.filter((other) => other !== by)]),
  );
}

/** Says which block is used by two. */
function sharedBlock({ clusters }: LeaseState): string | undefined {
  const users = new Map<string, Set<string>>();
  for (const { name, used, records } of clusters)
    for (const block of [...used, ...Object.keys(records).filter((each) => records[each] === "pod")])
      users.set(block, (users.get(block) ?? new Set()).add(name));
  const shared = [...users].find(([, names]) => names.size > 1);
  return shared && `${shared[0]} is used by ${[...shared[1]].join(" and ")}`;
}

const NOTHING: BlockDemand = { lease: {}, giveBack: [] };
const NO_ID = () => "none";

const invariantsOf = (scene: LeaseScene): System<LeaseState>["invariants"] => ({
  "one cluster": sharedBlock,
  "as the policy allows": ({ refusal }) => refusal,
  "contested only after a restore or a copy": ({ clusters, server, left, backup }) => {
    const wasPossible = (backup !== undefined && (left.restore === 0 || left.copy === 0)) || left.release === 0;
    const contested = clusters.find((each) => lookAt(scene, server, each).plan(NOTHING, true, NO_ID).kind === "barred");
    return contested !== undefined && !wasPossible ? `${contested.name} is contested` : undefined;
  },
  "no more than its share": ({ server: { members } }) =>
    members.some(({ status, spec }) => Object.keys(status.blocks).length > spec.maxBlocks)
      ? "more than its share"
      : undefined,
});

/** Every need is met, or cannot be, and needless blocks are gone. */
function isAtRest(scene: LeaseScene, { clusters, server }: LeaseState): boolean {
  return clusters.every((cluster) => {
    const { name, sent, resting, used, giving, wanted, isCut, records, creates } = cluster;
    const { facts, plan: planFor, children, object } = lookAt(scene, server, cluster);
    const plan = planFor({ lease: { pool: wanted }, giveBack: [] }, true, NO_ID);
    const isLate = sent.some((each) => canLand(server, each)) || (scene.isHub === true && object === undefined);
    if (isCut || isLate || creates.length > 0 || Object.keys(records).length > 0) return false;
    if (plan.kind === "barred") return true;
    if (object !== undefined && isToRenew(cluster, object)) return false;
    const mine = children.filter(({ mark }) => mark?.cluster === name).length;
    const isFull = findFree(scene, children) === undefined || (scene.isHub === true && mine >= scene.share);
    const isWaiting = plan.kind === "ask" && isFull;
    const hasDispute = Object.keys(usableBlocks(facts).disputed).length > 0;
    if (plan.kind !== "rest" && !isWaiting) return false;
    return hasDispute || (Object.keys(resting).length === 0 && used.length === giving.length && used.length <= wanted);
  });
}

export function leaseSystem(scene: LeaseScene): System<LeaseState> {
  const nothing = { used: [], giving: [], resting: {}, returning: [], records: {}, creates: [], wanted: 0, sent: [] };
  const fresh = { own: NO_LEASES, seen: [], isCut: false, ...nothing };
  const clusters = scene.clusters.map((name): Cluster => ({ name, ...fresh }));
  let ids = 1;
  const newId = () => `id${ids++}`;
  const members = scene.isHub === true ? scene.clusters.map((name) => newMember(name, scene.share, newId)) : [];
  return {
    initial: { server: { children: [], members }, clusters, left: scene.faults, clock: 1, ids },
    steps: async (state) => stepsOf(scene, state),
    key: keyOf,
    invariants: invariantsOf(scene),
    isAtRest: (state) => isAtRest(scene, state),
  };
}

const HUB = { isHub: true };
const NAUTOBOT = { isUnique: true, isLocked: true };
const NETBOX = { isUnique: false, isLocked: true };
const CARELESS = { isUnique: false, isLocked: false };
const RESTORED = { serverBackup: 1, serverRestore: 1 };
const scene = (
  server: Partial<LeaseScene>,
  faults: LeaseScene["faults"],
  { blocks = 1, clusters = ["a", "b"], share = 2 }: Partial<Pick<LeaseScene, "blocks" | "clusters" | "share">> = {},
): LeaseScene => ({ ...server, clusters, blocks, faults, share });

/** Small enough for the gate: each is searched to its end. */
export const SCENES = {
  "two clusters want the same block": scene(NAUTOBOT, { want: 3 }),
  "two clusters want the same block of a server that makes both": scene(CARELESS, { want: 2 }),
  "the same, and its clock goes backwards": scene({ ...CARELESS, isClockWrong: true }, { want: 2 }),
  "the server is restored": scene(NAUTOBOT, { want: 2, ...RESTORED }),
  "the server is restored, and takes a prefix twice": scene(NETBOX, { want: 2, ...RESTORED }),
  "a cluster is restored": scene(NAUTOBOT, { want: 2, backup: 1, restore: 1 }),
  "a person takes the block": scene(NETBOX, { want: 2, person: 1 }, { clusters: ["a"] }),
  "hub: two clusters want the same block": scene(HUB, { want: 3 }),
  "hub: two clusters want two blocks at once": scene(HUB, { want: 4 }, { blocks: 2 }),
  "hub: the clusters' clocks differ": scene({ ...HUB, isClockWrong: true }, { want: 2 }),
  "hub: it is restored": scene(HUB, { want: 2, ...RESTORED }),
  "hub: it is made anew": scene(HUB, { want: 2, membersMadeAnew: 1 }),
  "hub: it is made anew, and a controller begins anew": scene(HUB, { want: 2, membersMadeAnew: 1, restart: 1 }),
  "hub: a cluster is cut off": scene(HUB, { want: 2, cut: 1 }),
  "hub: a cluster is restored": scene(HUB, { want: 2, backup: 1, restore: 1 }),
  "hub: a cluster is copied": scene(HUB, { want: 2, backup: 1, copy: 1 }, { clusters: ["a"] }),
  "hub: a member is deleted, and made again": scene(HUB, { want: 2, lostMember: 1 }),
  "hub: a cluster is released": scene(HUB, { want: 2, cut: 1, release: 1 }),
  "hub: a create is late": scene(HUB, { want: 3, create: 1 }),
};

/** Too large for the gate. */
export const LARGE_SCENES = {
  "a block comes back, and the server is restored": scene(NAUTOBOT, { want: 3, ...RESTORED }),
  "two blocks, and the server is restored": scene(NETBOX, { want: 3, ...RESTORED }, { blocks: 2 }),
  "two blocks of a server without a lock": scene(CARELESS, { want: 3 }, { blocks: 2 }),
  "a cluster is copied": scene(NAUTOBOT, { want: 3, backup: 1, copy: 1 }, { blocks: 2 }),
  "a cluster and the server are restored": scene(NAUTOBOT, { want: 2, ...RESTORED, backup: 1, restore: 1 }),
  "a cluster is cut off": scene(NAUTOBOT, { want: 3, cut: 1 }),
  "hub: a block comes back, and it is restored": scene(HUB, { want: 3, ...RESTORED }),
  "hub: a block comes back, and it is made anew": scene(HUB, { want: 3, membersMadeAnew: 1 }),
  "hub: two blocks, and it is restored": scene(HUB, { want: 3, ...RESTORED }, { blocks: 2 }),
  "hub: two clusters want two blocks at once, and fewer": scene(HUB, { want: 6 }, { blocks: 2 }),
  "hub: three clusters, and it is restored": scene(
    HUB,
    { want: 3, ...RESTORED },
    { blocks: 2, clusters: ["a", "b", "c"] },
  ),
  "hub: a cluster and it are restored": scene(HUB, { want: 2, ...RESTORED, backup: 1, restore: 1 }),
  "hub: a share of one of two blocks, and it is restored": scene(
    HUB,
    { want: 4, ...RESTORED },
    { blocks: 2, share: 1 },
  ),
  "hub: a copied cluster beside another": scene(HUB, { want: 3, backup: 1, copy: 1 }, { blocks: 2 }),
  "hub: creates are late, and it is restored": scene(HUB, { want: 3, create: 2, ...RESTORED }),
  "hub: a cluster is restored, and one is cut off": scene(HUB, { want: 3, backup: 1, restore: 1, cut: 1 }),
  "hub: it is restored, and a controller begins anew": scene(HUB, { want: 2, ...RESTORED, restart: 1 }),
  "hub: it is restored twice": scene(HUB, { want: 2, serverBackup: 1, serverRestore: 2 }),
  "hub: a member is deleted, and a cluster is cut off": scene(HUB, { want: 2, lostMember: 1, cut: 1 }),
  "hub: a cluster is cut off while it is restored": scene(HUB, { want: 2, cut: 1, ...RESTORED }),
};

/** The guarantee that does not hold (docs/decisions/0064): two clusters use one block. */
export const BROKEN_SCENES = {
  "hub: a cluster is released, and then it is restored": scene(HUB, { want: 2, cut: 1, release: 1, ...RESTORED }),
};
