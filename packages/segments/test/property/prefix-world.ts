/**
 * Clusters that take blocks of one prefix of an IPAM of record, as a system for the breadth-first search: the product
 * decides (host/blocks/prefixes/plan-prefixes.ts), the server does what it is told, late or never, and compares
 * nothing.
 */

import { formatPrefix, prefixesOverlap } from "../../../../host/net/prefix.ts";
import type { Step, System } from "../../../../test/property/registry/search/search.ts";
import { prefix } from "../../../../test/world/values.ts";
import { blockAt } from "../../blocks/blocks-of-range.ts";
import { NO_PREFIXES, type OwnPrefixes } from "../../blocks/prefixes/own-prefixes.ts";
import { lostBlocks, type PrefixPlan, planPrefixes, usablePrefixes } from "../../blocks/prefixes/plan-prefixes.ts";
import type { ChildPrefix } from "../../record-server/child-prefix.ts";
import { heard, sharedBlock, withoutIds } from "./lease-world.ts";
import { Move } from "./move.ts";

/** `at`: the block that the server chose when the request came, if it chooses without a lock. */
type Sent = Extract<PrefixPlan, { kind: "ask" | "make" | "remove" }> & { readonly at?: string };

interface Cluster {
  /** Of two with one name, one is a copy of the other. */
  readonly name: string;
  readonly own: OwnPrefixes;
  /** Blocks in which pods may have addresses. */
  readonly used: readonly string[];
  /** Blocks of which addresses are given. */
  readonly giving: readonly string[];
  /** New ones, each with the clusters that have not finished a pass since. */
  readonly resting: Readonly<Record<string, readonly number[]>>;
  readonly returning: readonly string[];
  readonly wanted: number;
  readonly sent: readonly Sent[];
  readonly isCut: boolean;
}

type Fault = "want" | "serverBackup" | "serverRestore" | "backup" | "restore" | "copy" | "cut" | "person";

export interface PrefixState {
  readonly children: readonly ChildPrefix[];
  readonly serverBackup?: readonly ChildPrefix[];
  readonly clusters: readonly Cluster[];
  readonly backup?: { readonly index: number; readonly own: OwnPrefixes };
  readonly left: Readonly<Partial<Record<Fault, number>>>;
  readonly clock: number;
  readonly ids: number;
}

export interface PrefixScene {
  readonly clusters: readonly string[];
  readonly blocks: 1 | 2;
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Nautobot: the same prefix cannot be there twice. NetBox: it can. */
  readonly isUnique: boolean;
  /** Whether the server chooses a block and makes it in one step. */
  readonly isLocked: boolean;
  /** Whether the server's times go backwards. */
  readonly isClockWrong?: boolean;
  readonly without?: "rest";
}

const BLOCK_SIZE = 28;
const SUBNETS = { 1: "10.6.0.0/28", 2: "10.6.0.0/27" } as const;

function blocksIn({ blocks }: PrefixScene): readonly string[] {
  const subnet = prefix(SUBNETS[blocks]);
  return Array.from({ length: blocks }, (_, index) => formatPrefix(blockAt({ subnet, blockSize: BLOCK_SIZE }, index)));
}

function findFree(scene: PrefixScene, children: readonly ChildPrefix[]): string | undefined {
  return blocksIn(scene).find((block) => !children.some((child) => prefixesOverlap(child.prefix, prefix(block))));
}

class PrefixMove extends Move<PrefixScene, Cluster, PrefixState> {
  /** The cluster asks the server, remembers, and sends the next request. */
  look(index: number): PrefixState {
    const { children } = this.world;
    const cluster = this.world.clusters[index] as Cluster;
    const facts = { children, cluster: cluster.name, blockSize: BLOCK_SIZE };
    const before = usablePrefixes({ ...facts, own: cluster.own });
    const isOpen = lostBlocks({ ...facts, own: cluster.own }).length > 0;
    const idle = Object.keys(before.disputed).filter((block) => !cluster.used.includes(block));
    // Pods leave the blocks that are not given of first.
    const held = [...cluster.used].sort((a, b) => Number(b in before.blocks) - Number(a in before.blocks));
    const spare = [...held, ...Object.keys(before.blocks).filter((block) => !held.includes(block))]
      .filter((block) => !cluster.returning.includes(block))
      .slice(cluster.wanted);
    const returning = [...new Set([...cluster.returning, ...spare, ...idle])];
    let { own } = cluster;
    let isNewPass = true;
    const plan = (): PrefixPlan => {
      const demand = { lease: { pool: cluster.wanted }, giveBack: returning };
      return planPrefixes({ ...facts, name: cluster.name, own, demand, isNewPass, newId: this.newId });
    };
    let next = plan();
    for (; next.kind === "remember"; next = plan()) {
      own = next.own;
      isNewPass = false;
    }
    const { blocks } = usablePrefixes({ ...facts, own });
    const kept = Object.keys(blocks).filter((block) => !returning.includes(block));
    const used = cluster.used.filter((block) => !returning.includes(block));
    const ready = kept.filter((block) => !used.includes(block) && !isOpen && this.hasRested(index, block));
    const others = this.world.clusters.flatMap((_, at) => (at === index ? [] : [at]));
    const resting = kept
      .filter((block) => !used.includes(block) && !ready.includes(block))
      .map((block) => [block, isOpen ? others : (cluster.resting[block] ?? others)] as const);
    const request = next.kind === "rest" || next.kind === "contested" ? undefined : next;
    // By then the others can see what this one has to tell.
    const isTold = request === undefined || request.kind === "ask";
    const changed = this.with(index, {
      own,
      returning: returning.filter((block) => block in own.leases),
      used: [...used, ...ready].sort(),
      giving: [...kept.filter((block) => used.includes(block)), ...ready].sort(),
      resting: Object.fromEntries(resting),
      sent: request === undefined ? cluster.sent : this.#send(cluster.sent, request),
    });
    if (!isTold) return changed;
    return { ...changed, clusters: changed.clusters.map((each) => ({ ...each, resting: heard(each.resting, index) })) };
  }

  #send(sent: readonly Sent[], plan: Sent): readonly Sent[] {
    const at = plan.kind === "ask" && !this.scene.isLocked ? findFree(this.scene, this.world.children) : undefined;
    const next = at === undefined ? plan : { ...plan, at };
    const text = JSON.stringify(next, toText);
    return sent.some((each) => JSON.stringify(each, toText) === text) ? sent : [...sent.slice(-1), next];
  }

  hasRested(index: number, block: string): boolean {
    const missing = this.world.clusters[index]?.resting[block];
    if (missing === undefined) return false;
    return this.scene.without === "rest" || missing.every((other) => this.world.clusters[other]?.isCut === true);
  }

  /** One of the requests reaches the server. */
  land(index: number, at: number): PrefixState {
    const cluster = this.world.clusters[index] as Cluster;
    const request = cluster.sent[at] as Sent;
    const sent = cluster.sent.filter((_, other) => other !== at);
    const { children } = this.world;
    if (request.kind === "remove") {
      const left = children.filter(({ id }) => id !== request.child.id);
      return this.with(index, { sent }, { children: left });
    }
    const block =
      request.kind === "make" ? formatPrefix(request.prefix) : (request.at ?? findFree(this.scene, children));
    const isThere = children.some((each) => formatPrefix(each.prefix) === block);
    if (block === undefined || (isThere && this.scene.isUnique)) return this.with(index, { sent });
    return this.#make(index, block, request.mark, { sent });
  }

  #make(index: number, block: string, mark: ChildPrefix["mark"], change: Partial<Cluster>): PrefixState {
    const { children, clock } = this.world;
    const created = String(this.scene.isClockWrong === true ? 99 - clock : 10 + clock);
    const child = { id: this.newId(), prefix: prefix(block), created, mark };
    return this.with(index, change, { children: [...children, child], clock: clock + 1 });
  }

  /** A person writes down a prefix for something else. */
  person(block: string): PrefixState {
    return this.#make(-1, block, undefined, {});
  }
}

function toText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

function stepsOf(scene: PrefixScene, state: PrefixState): Step<PrefixState>[] {
  const steps: Step<PrefixState>[] = [];
  const move = () => new PrefixMove(scene, state);
  const calm = (label: string, next: PrefixState) => steps.push({ label, next, isCalm: true });
  const fault = (name: Fault, label: string, next: (move: PrefixMove) => PrefixState) => {
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
      for (const at of cluster.sent.keys()) calm(`${name}'s request ${at} lands`, move().land(index, at));
    }
    fault("want", `${name} needs one more`, (each) => each.with(index, { wanted: cluster.wanted + 1 }));
    if (cluster.wanted > 0)
      fault("want", `${name} needs one less`, (each) => each.with(index, { wanted: cluster.wanted - 1 }));
    fault("cut", `${name} is cut off`, (each) => each.with(index, { isCut: true }));
    if (state.backup === undefined)
      fault("backup", `${name} is saved`, (each) => each.with(index, {}, { backup: { index, own: cluster.own } }));
    else if (state.backup.index === index) {
      const past = { own: state.backup.own, used: [], giving: [], resting: {}, returning: [] };
      fault("restore", `${name} is restored`, (each) => each.with(index, past));
      fault("copy", `${name} is copied`, (each) => {
        const copy = { ...cluster, ...past, sent: [], isCut: false };
        return { ...each.with(index, {}), clusters: [...state.clusters, copy] };
      });
    }
  }
  for (const block of blocksIn(scene)) fault("person", `a person takes ${block}`, (each) => each.person(block));
  fault("serverBackup", "the server is saved", (each) => each.with(-1, {}, { serverBackup: state.children }));
  const { serverBackup } = state;
  if (serverBackup !== undefined)
    fault("serverRestore", "the server is restored", (each) => each.with(-1, {}, { children: serverBackup }));
  return steps;
}

/**
 * The same text for states that differ in identifiers and times alone, or in past requests of which nothing can come
 * any more.
 */
function keyOf({ ids: _ids, clock: _clock, clusters, ...rest }: PrefixState): string {
  const all = [...rest.children, ...(rest.serverBackup ?? [])];
  const times = all.map(({ created }) => created).sort();
  const requests = clusters.flatMap(({ sent }) => sent.map((each) => (each.kind === "remove" ? each.child : each)));
  const alive = new Set([...all, ...requests].map(({ mark }) => mark?.request));
  const trimmed = clusters.map(({ own, ...each }) => {
    return { ...each, own: { ...own, past: own.past.filter((request) => alive.has(request)).sort() } };
  });
  return withoutIds(
    JSON.stringify({ ...rest, trimmed }, (key, value) =>
      key === "created" ? times.indexOf(value) : toText(key, value),
    ),
  );
}

const INVARIANTS: System<PrefixState>["invariants"] = {
  "one cluster": ({ clusters }) => sharedBlock(clusters),
  "contested only after a restore or a copy": ({ clusters, children, left, backup }) => {
    const wasPossible = backup !== undefined && (left.restore === 0 || left.copy === 0);
    const contested = clusters.find(({ own, name }) => {
      const demand = { lease: {}, giveBack: [] };
      const inputs = { children, own, cluster: name, name, blockSize: BLOCK_SIZE, demand, isNewPass: true };
      return planPrefixes({ ...inputs, newId: () => "none" }).kind === "contested";
    });
    return contested !== undefined && !wasPossible ? `${contested.name} is contested` : undefined;
  },
};

/** Every need is met, or cannot be, and what is not needed is gone. */
function isAtRest(scene: PrefixScene, { clusters, children }: PrefixState): boolean {
  const isFull = findFree(scene, children) === undefined;
  return clusters.every(({ name, sent, resting, used, giving, wanted, isCut, own }) => {
    const facts = { children, own, cluster: name, blockSize: BLOCK_SIZE };
    const demand = { lease: { pool: wanted }, giveBack: [] };
    const plan = planPrefixes({ ...facts, name, demand, isNewPass: true, newId: () => "none" });
    if (isCut || sent.length > 0) return false;
    if (plan.kind === "contested") return true;
    const isWaiting = plan.kind === "ask" && isFull;
    const hasDispute = Object.keys(usablePrefixes(facts).disputed).length > 0;
    if (plan.kind !== "rest" && !isWaiting) return false;
    return hasDispute || (Object.keys(resting).length === 0 && used.length === giving.length && used.length <= wanted);
  });
}

export function prefixSystem(scene: PrefixScene): System<PrefixState> {
  const clusters = scene.clusters.map((name): Cluster => {
    const nothing = { used: [], giving: [], resting: {}, returning: [], wanted: 0, sent: [], isCut: false };
    return { name, own: NO_PREFIXES, ...nothing };
  });
  return {
    initial: { children: [], clusters, left: scene.faults, clock: 1, ids: 1 },
    steps: async (state) => stepsOf(scene, state),
    key: keyOf,
    invariants: INVARIANTS,
    isAtRest: (state) => isAtRest(scene, state),
  };
}

const NAUTOBOT = { isUnique: true, isLocked: true };
const NETBOX = { isUnique: false, isLocked: true };
const CARELESS = { isUnique: false, isLocked: false };
const RESTORED = { serverBackup: 1, serverRestore: 1 };
const scene = (
  server: Pick<PrefixScene, "isUnique" | "isLocked" | "isClockWrong">,
  faults: PrefixScene["faults"],
  { blocks = 1, clusters = ["a", "b"] }: Partial<Pick<PrefixScene, "blocks" | "clusters">> = {},
): PrefixScene => ({ ...server, clusters, blocks, faults });

/** Small enough for the gate: each is searched to its end. */
export const PREFIX_SCENES = {
  "two clusters want the same block": scene(NAUTOBOT, { want: 3 }),
  "two clusters want the same block of a server that makes both": scene(CARELESS, { want: 2 }),
  "the same, and its clock goes backwards": scene({ ...CARELESS, isClockWrong: true }, { want: 2 }),
  "the server is restored": scene(NAUTOBOT, { want: 2, ...RESTORED }),
  "the server is restored, and takes a prefix twice": scene(NETBOX, { want: 2, ...RESTORED }),
  "a cluster is restored": scene(NAUTOBOT, { want: 2, backup: 1, restore: 1 }),
  "a person takes the block": scene(NETBOX, { want: 2, person: 1 }, { clusters: ["a"] }),
};

/** Too large for the gate. */
export const LARGE_PREFIX_SCENES = {
  "a block comes back, and the server is restored": scene(NAUTOBOT, { want: 3, ...RESTORED }),
  "two blocks, and the server is restored": scene(NETBOX, { want: 3, ...RESTORED }, { blocks: 2 }),
  "two blocks of a server without a lock": scene(CARELESS, { want: 3 }, { blocks: 2 }),
  "a cluster is copied": scene(NAUTOBOT, { want: 3, backup: 1, copy: 1 }, { blocks: 2 }),
  "a cluster and the server are restored": scene(NAUTOBOT, { want: 2, ...RESTORED, backup: 1, restore: 1 }),
  "a cluster is cut off": scene(NAUTOBOT, { want: 3, cut: 1 }),
};
