/**
 * Clusters that lease blocks from one range, as a system for the breadth-first search: the product decides
 * (host/blocks/plan-range.ts), the hub takes a write if it is based on the version it has, and writes may land late.
 */

import type { Step, System } from "../../../../test/property/registry/search/search.ts";
import { type AddressRange, decodeAddressRange, type RangeStatus } from "../../address-range.ts";
import { newOwnRange, type OwnRange } from "../../blocks/own-range.ts";
import { planRange, type RangeWrite, usableBlocks, waitedFor } from "../../blocks/plan-range.ts";
import { applyWrite, refuseWrite } from "./hub-rules.ts";
import { Move } from "./move.ts";

interface Hub {
  readonly uid: string;
  readonly version: number;
  readonly status: RangeStatus;
}

interface Sent {
  readonly uid: string;
  readonly version: number;
  readonly write: RangeWrite;
}

interface Cluster {
  /** Of two with one name, one is a copy of the other. */
  readonly member: string;
  readonly own: OwnRange;
  /** Blocks that pods may have. */
  readonly usable: readonly string[];
  /** New ones, each with the clusters that have not asked the hub since. */
  readonly resting: Readonly<Record<string, readonly number[]>>;
  /** Blocks that go back: no address of them is given, and all are claimed. */
  readonly returning: readonly string[];
  /**
   * What is recorded of blocks: the claims by which one is returned, a pod's create whose ADD has not read the pool
   * yet, or a pod.
   */
  readonly records: Readonly<Record<string, "claims" | "create" | "pod">>;
  /** Blocks that an agent took for usable when it sent a create, which has not landed. */
  readonly creates: readonly string[];
  /** How many blocks its pods need. */
  readonly wanted: number;
  /** The token with which it began, as after each start of a controller. */
  readonly stale?: string;
  /** Writes that have had no answer. */
  readonly sent: readonly Sent[];
  readonly isCut: boolean;
}

type Fault = "want" | "create" | "hubBackup" | "hubRestore" | "hubMadeAnew" | "backup" | "restore" | "copy" | "cut";

export interface World {
  readonly hub: Hub;
  readonly hubBackup?: Hub;
  readonly clusters: readonly Cluster[];
  readonly backup?: { readonly index: number; readonly own: OwnRange };
  readonly left: Readonly<Partial<Record<Fault, number>>>;
  /** Why the hub's policy would have refused the last write. */
  readonly refusal?: string;
  /** Number of identifiers given out. */
  readonly ids: number;
}

export interface LeaseScene {
  readonly members: readonly string[];
  readonly blocks: number;
  /** Most blocks of one member. */
  readonly share: number;
  /** How often each may happen. */
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Part of the design that is left out. */
  readonly without?: "rest" | "reading";
}

const SIZE = { 1: 28, 2: 27, 4: 26 } as const;

function rangeOf(scene: LeaseScene, { uid, version, status }: Hub): AddressRange {
  const members = scene.members.map((name) => ({ name, user: `user-${name}`, maxBlocks: scene.share }));
  const subnet = `10.6.0.0/${SIZE[scene.blocks as keyof typeof SIZE]}`;
  const object = {
    apiVersion: "ipam.vendor.io/v1",
    kind: "AddressRange",
    metadata: { name: "lan", uid, resourceVersion: String(version) },
    spec: { subnet, blockSize: 28, members },
  };
  return { ...decodeAddressRange(object, "lan"), status };
}

class LeaseMove extends Move<LeaseScene, Cluster, World> {
  spend(fault: Fault, next: World): World {
    return { ...next, left: { ...next.left, [fault]: (next.left[fault] ?? 0) - 1 } };
  }

  can(fault: Fault): boolean {
    return (this.world.left[fault] ?? 0) > 0;
  }

  /** The cluster asks the hub, remembers what was carried out, and sends the next write. */
  look(index: number): World {
    const cluster = this.world.clusters[index] as Cluster;
    const range = rangeOf(this.scene, this.world.hub);
    const self = { name: cluster.member, cluster: `uid-${cluster.member}`, start: 0 };
    let { own, returning, records } = cluster;
    const inUse = returning.filter((block) => records[block] === "create" || records[block] === "pod");
    returning = returning.filter((block) => !inUse.includes(block));
    records = { ...records, ...Object.fromEntries(returning.map((block) => [block, "claims"])) };
    const claimed = returning;
    const newId = this.newId;
    const had = new Set([...cluster.usable, ...Object.keys(cluster.resting)]);
    let plan = planRange({ range, own, self, demand: { lease: {}, giveBack: [] }, newId });
    if (plan.kind === "remember" && plan.own.next === "") own = plan.own;
    const blocks = Object.keys(usableBlocks({ range, own, self }));
    // What others say is theirs too is given up at once while it rests.
    const given = Object.keys(own.blocks).filter((block) => !blocks.includes(block) && !cluster.usable.includes(block));
    const surplus = blocks.filter((block) => !returning.includes(block)).slice(cluster.wanted);
    returning = [...new Set([...returning, ...surplus, ...given])].filter(
      (block) => block in own.blocks || block in own.disputed,
    );
    const kept = blocks.filter((block) => !returning.includes(block));
    const demand = { lease: { pool: cluster.wanted }, giveBack: claimed, stale: cluster.stale };
    plan = planRange({ range, own, self, demand, newId });
    while (plan.kind === "remember") {
      own = plan.own;
      plan = planRange({ range, own, self, demand, newId });
    }
    const isOpen = waitedFor(range).length > 0;
    const others = this.world.clusters.flatMap((_, at) => (at === index ? [] : [at]));
    const resting = kept
      .filter((block) => ![...cluster.usable, ...inUse].includes(block))
      .map((block) => [block, isOpen || !had.has(block) ? others : (cluster.resting[block] ?? others)] as const);
    const sent =
      plan.kind === "write"
        ? [...cluster.sent.slice(-1), { uid: range.uid, version: this.world.hub.version, write: plan.write }]
        : cluster.sent;
    const isLeft = (block: string): boolean => records[block] !== "claims" || returning.includes(block);
    if (this.scene.faults.create === undefined)
      records = Object.fromEntries(Object.entries(records).filter(([block]) => isLeft(block)));
    const next = this.with(index, {
      ...{ own, returning, records, sent: isSameSent(cluster.sent, sent) ? cluster.sent : sent },
      usable: [...cluster.usable, ...inUse].filter((block) => kept.includes(block)).sort(),
      resting: Object.fromEntries(resting),
    });
    return { ...next, clusters: next.clusters.map((each) => ({ ...each, resting: heard(each.resting, index) })) };
  }

  /** One of the writes reaches the hub. */
  land(index: number, at: number): World {
    const { hub, clusters } = this.world;
    const cluster = clusters[index] as Cluster;
    const { uid, version, write } = cluster.sent[at] as Sent;
    const sent = cluster.sent.filter((_, other) => other !== at);
    if (uid !== hub.uid || version !== hub.version) return this.with(index, { sent });
    const refusal = refuseWrite(rangeOf(this.scene, hub), cluster.member, write);
    const status = applyWrite(hub.status, cluster.member, write);
    return this.with(index, { sent }, { hub: { ...hub, version: version + 1, status }, ...(refusal && { refusal }) });
  }

  /** The create of an agent lands, and fails if anything is recorded. */
  create(index: number, block: string): World {
    const { records, creates } = this.world.clusters[index] as Cluster;
    const left = creates.filter((each) => each !== block);
    if (records[block] !== undefined) return this.with(index, { creates: left });
    const recorded = this.scene.without === "reading" ? "pod" : "create";
    return this.with(index, { creates: left, records: { ...records, [block]: recorded } });
  }

  /** The agent reads the pool, and gives the address or undoes its create. */
  read(index: number, block: string): World {
    const { records, usable } = this.world.clusters[index] as Cluster;
    if (!usable.includes(block)) return this.forget(index, block);
    return this.with(index, { records: { ...records, [block]: "pod" } });
  }

  forget(index: number, block: string): World {
    const { [block]: _, ...records } = (this.world.clusters[index] as Cluster).records;
    return this.with(index, { records });
  }

  rest(index: number): World {
    const { resting, usable } = this.world.clusters[index] as Cluster;
    const ready = Object.keys(resting).filter((block) => this.hasRested(index, block));
    const left = Object.entries(resting).filter(([block]) => !ready.includes(block));
    return this.with(index, { usable: [...usable, ...ready].sort(), resting: Object.fromEntries(left) });
  }

  hasRested(index: number, block: string): boolean {
    const { resting } = this.world.clusters[index] as Cluster;
    if (this.scene.without === "rest") return true;
    return (resting[block] ?? []).every((other) => this.world.clusters[other]?.isCut === true);
  }
}

function isSameSent(a: readonly Sent[], b: readonly Sent[]): boolean {
  const last = b.at(-1);
  return last === undefined || a.some((each) => each.uid === last.uid && each.version === last.version);
}

/** What rests when the cluster has told the others. */
export function heard(resting: Cluster["resting"], by: number): Cluster["resting"] {
  return Object.fromEntries(
    Object.entries(resting).map(([block, missing]) => [block, missing.filter((other) => other !== by)]),
  );
}

function stepsOf(scene: LeaseScene, world: World): Step<World>[] {
  const steps: Step<World>[] = [];
  const move = () => new LeaseMove(scene, world);
  const calm = (label: string, next: World) => steps.push({ label, next, isCalm: true });
  const fault = (name: Fault, label: string, next: (move: LeaseMove) => World) => {
    const each = move();
    if (each.can(name)) steps.push({ label, next: each.spend(name, next(each)), isCalm: false });
  };
  const { hub, clusters } = world;
  for (const [index, cluster] of clusters.entries()) {
    const name = `${cluster.member}${index}`;
    if (cluster.isCut) calm(`${name} is back`, move().with(index, { isCut: false }));
    else {
      calm(`${name} asks`, move().look(index));
      for (const at of cluster.sent.keys()) calm(`${name}'s write ${at} lands`, move().land(index, at));
    }
    if (Object.keys(cluster.resting).some((block) => move().hasRested(index, block)))
      calm(`${name}'s blocks have rested`, move().rest(index));
    for (const block of cluster.usable)
      if (!cluster.creates.includes(block))
        fault("create", `${name} sends a create for ${block}`, (each) =>
          each.with(index, { creates: [...cluster.creates, block].sort() }),
        );
    for (const block of cluster.creates) calm(`${name}'s create for ${block} lands`, move().create(index, block));
    for (const [block, record] of Object.entries(cluster.records)) {
      if (record === "create") calm(`${name}'s ADD reads the pool of ${block}`, move().read(index, block));
      if (record === "pod") calm(`${name}'s pod of ${block} goes`, move().forget(index, block));
      if (record === "claims" && !cluster.returning.includes(block))
        calm(`${name} deletes its claims of ${block}`, move().forget(index, block));
    }
    fault("want", `${name} needs one more`, (each) => each.with(index, { wanted: cluster.wanted + 1 }));
    if (cluster.wanted > 0)
      fault("want", `${name} needs one less`, (each) => each.with(index, { wanted: cluster.wanted - 1 }));
    fault("cut", `${name} is cut off`, (each) => each.with(index, { isCut: true }));
    if (world.backup === undefined)
      fault("backup", `${name} is saved`, (each) => each.with(index, {}, { backup: { index, own: cluster.own } }));
    else if (world.backup.index === index) {
      const { own } = world.backup;
      const past = { own, stale: own.token, usable: [], resting: {}, returning: [], records: {}, creates: [] };
      fault("restore", `${name} is restored`, (each) => each.with(index, past));
      fault("copy", `${name} is copied`, (each) => {
        const copy = { ...cluster, ...past, sent: [], isCut: false };
        return { ...each.with(index, {}), clusters: [...clusters, copy] };
      });
    }
  }
  fault("hubBackup", "the hub is saved", (each) => ({ ...each.with(-1, {}), hubBackup: hub }));
  const { hubBackup } = world;
  if (hubBackup !== undefined)
    // A write that is based on the lost history must not land, as versions are not given out again.
    fault("hubRestore", "the hub is restored", (each) =>
      each.with(-1, {}, { hub: { ...hubBackup, version: hub.version + 1 } }),
    );
  fault("hubMadeAnew", "the range is made anew", (each) => {
    const status = { sequence: 0, epoch: "", isRestored: false, leases: {}, members: {} };
    return { ...each.with(-1, {}, { hub: { uid: each.newId(), version: hub.version + 1, status } }), ids: each.ids };
  });
  return steps;
}

/** The same text for worlds that differ in identifiers alone. */
function keyOf(world: World): string {
  const { ids: _ids, ...rest } = world;
  const { hub, clusters } = world;
  const text = JSON.stringify(rest, (key, value) => (key === "version" || key === "sequence" ? undefined : value))
    .concat(JSON.stringify(clusters.map(({ sent }) => sent.map(({ version }) => version === hub.version))))
    .concat(JSON.stringify(clusters.map(({ own }) => Math.sign(own.sequence - hub.status.sequence))));
  return withoutIds(text);
}

/** Identifiers are numbered as they come. */
export function withoutIds(text: string): string {
  const names = new Map<string, string>();
  return text.replaceAll(/id\d+/g, (id) => {
    return names.getOrInsertComputed(id, () => `#${names.size}`);
  });
}

/** Says which block is used by two. */
export function sharedBlock(clusters: readonly { readonly name: string; readonly used: readonly string[] }[]) {
  const users = new Map<string, Set<string>>();
  for (const { name, used } of clusters)
    for (const block of used) users.set(block, (users.get(block) ?? new Set()).add(name));
  const shared = [...users].find(([, names]) => names.size > 1);
  return shared && `${shared[0]} is used by ${[...shared[1]].join(" and ")}`;
}

export const INVARIANTS: System<World>["invariants"] = {
  "one cluster": ({ clusters }) =>
    sharedBlock(
      clusters.map(({ member: name, usable, records }) => {
        return { name, used: [...usable, ...Object.keys(records).filter((each) => records[each] === "pod")] };
      }),
    ),
  "as the policy allows": ({ refusal }) => refusal,
  "contested only after a restore or a copy": ({ hub, left, backup }) => {
    const isContested = Object.values(hub.status.members).some((member) => member.isContested);
    const had = backup !== undefined && (left.restore === 0 || left.copy === 0);
    return isContested && !had ? "a member is contested" : undefined;
  },
  "no more than its share": ({ hub }) => {
    const counts = Object.groupBy(Object.values(hub.status.leases), ({ member }) => member);
    return Object.values(counts).some((leases) => (leases?.length ?? 0) > 2) ? "more than its share" : undefined;
  },
};

/** Every need is met, or cannot be. */
function isAtRest(scene: LeaseScene, { hub, clusters }: World): boolean {
  const range = rangeOf(scene, hub);
  const isFull = Object.keys(hub.status.leases).length >= scene.blocks;
  const isOpen = waitedFor(range).length > 0;
  return clusters.every(({ member, sent, resting, usable, wanted, isCut, own, records, creates }) => {
    const entry = hub.status.members[member];
    if (isCut || sent.some(({ version }) => version === hub.version)) return false;
    if (entry?.isContested === true || entry?.isGone === true) return true;
    if (isOpen || Object.keys(resting).length > 0 || creates.length > 0 || Object.keys(records).length > 0)
      return false;
    const mine = Object.values(hub.status.leases).filter((lease) => lease.member === member).length;
    return (
      mine === usable.length &&
      Object.keys(own.disputed).length === 0 &&
      (usable.length === wanted || (usable.length < wanted && (isFull || wanted > scene.share)))
    );
  });
}

export function leaseSystem(scene: LeaseScene): System<World> {
  const status = { sequence: 0, epoch: "", isRestored: false, leases: {}, members: {} };
  const clusters = scene.members.map((member): Cluster => {
    const own = newOwnRange("id0");
    const nothing = { usable: [], resting: {}, returning: [], records: {}, creates: [], sent: [] };
    return { member, own, wanted: 0, isCut: false, ...nothing };
  });
  return {
    initial: { hub: { uid: "id0", version: 1, status }, clusters, left: scene.faults, ids: 1 },
    steps: async (world) => stepsOf(scene, world),
    key: keyOf,
    invariants: INVARIANTS,
    isAtRest: (world) => isAtRest(scene, world),
  };
}

const scene = (faults: LeaseScene["faults"], blocks = 1, members = ["a", "b"], share = 2): LeaseScene => ({
  ...{ members, blocks, faults, share },
});
const HUB_RESTORED = { hubBackup: 1, hubRestore: 1 };

/** Small enough for the gate: each is searched to its end. */
export const SCENES = {
  "two clusters want the same block": scene({ want: 3 }),
  "a cluster is cut off": scene({ want: 2, cut: 1 }),
  "the hub is restored": scene({ want: 2, ...HUB_RESTORED }),
  "a cluster is restored": scene({ want: 2, backup: 1, restore: 1 }),
  "a create is late": scene({ want: 3, create: 1 }),
  "a cluster is copied": scene({ want: 2, backup: 1, copy: 1 }, 1, ["a"]),
};

/** Too large for the gate. */
export const LARGE_SCENES = {
  "a block comes back, and the hub is restored": scene({ want: 3, ...HUB_RESTORED }),
  "the range is made anew": scene({ want: 3, hubMadeAnew: 1 }),
  "two blocks, and the hub is restored": scene({ want: 3, ...HUB_RESTORED }, 2),
  "three clusters, and the hub is restored": scene({ want: 3, ...HUB_RESTORED }, 2, ["a", "b", "c"]),
  "a cluster and the hub are restored": scene({ want: 2, backup: 1, restore: 1, ...HUB_RESTORED }),
  "a share of one of two blocks, and the hub is restored": scene({ want: 4, ...HUB_RESTORED }, 2, ["a", "b"], 1),
  "a copied cluster beside another": scene({ want: 3, backup: 1, copy: 1 }, 2),
};

/** What the protocol does not hold (docs/decisions/0055-clusters-lease-blocks.md): two clusters use one block. */
export const BROKEN_SCENES = {
  "creates are late, and the hub is restored": scene({ want: 3, create: 2, ...HUB_RESTORED }),
  "the hub is restored twice": scene({ want: 2, hubBackup: 1, hubRestore: 2 }),
  "a restored cluster and one that is cut off": scene({ want: 3, backup: 1, restore: 1, cut: 1 }),
};
