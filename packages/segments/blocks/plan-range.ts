/**
 * What a cluster does next with an AddressRange: decided from the hub's object, from what the cluster remembers, and
 * from what it needs (docs/decisions/0055). The same function whatever was interrupted before.
 */
import type { AddressRange, Lease, Membership, RangeStatus } from "../address-range.ts";
import { chooseBlocks } from "./blocks-of-range.ts";
import { newOwnRange, type OwnRange } from "./own-range.ts";

/** Most epochs that a cluster remembers. */
const MAX_EPOCHS = 8;

/** The cluster that decides. */
interface Self {
  /** As the range's members have it. */
  readonly name: string;
  /** UID of its namespace kube-system. */
  readonly cluster: string;
  /** Number of the block at which its search begins. */
  readonly start: number;
}

/** What the cluster needs. */
export interface BlockDemand {
  /** Number of blocks that each pool should have; fewer than it has is as good. */
  readonly lease: Readonly<Record<string, number>>;
  /** Blocks to return, of which no address is in use. */
  readonly giveBack: readonly string[];
  /** Blocks that certain pools should have, all or none. Default: none. */
  readonly claim?: Readonly<Record<string, string>>;
  /** A token that is to be replaced if the cluster still has it: a copy of the cluster then finds another one. */
  readonly stale?: string | undefined;
}

/** A change of the hub's status, as of the version that was read. */
export interface RangeWrite {
  readonly epoch: string;
  readonly isRestored: boolean;
  /** Null: no longer leased. */
  readonly leases: Readonly<Record<string, Lease | null>>;
  /** The writer's own entry. */
  readonly member: Membership;
}

/** Why the cluster neither leases nor returns. */
export type Bar =
  /** The range's spec does not have it. */
  | { readonly kind: "notMember" }
  /** Another cluster has written in its name. */
  | { readonly kind: "otherCluster"; readonly cluster: string }
  /** It is a copy, or was copied, or is older than its last write. */
  | { readonly kind: "contested" }
  /** An administrator has declared it off. */
  | { readonly kind: "gone" }
  /** Other ranges of the hub have some of its addresses. */
  | { readonly kind: "overlaps"; readonly ranges: readonly string[] }
  /** The hub went back in time, and these have not written yet. */
  | { readonly kind: "open"; readonly waitsFor: readonly string[] };

export type Plan =
  /** What it must remember now; then it plans again. */
  | { readonly kind: "remember"; readonly own: OwnRange }
  | { readonly kind: "write"; readonly write: RangeWrite }
  | { readonly kind: "barred"; readonly bar: Bar }
  /** `short`: why a demand for blocks cannot be met; undefined if there was none. */
  | { readonly kind: "rest"; readonly short?: "share" | "range" | undefined };

/** Returns the members, by name, that the range's epoch waits for. */
export function waitedFor({ spec, status }: Pick<AddressRange, "spec" | "status">): readonly string[] {
  return spec.members
    .map(({ name }) => name)
    .filter((name) => {
      const member = status.members[name];
      if (member === undefined) return status.isRestored;
      return !member.isGone && member.epoch !== status.epoch;
    });
}

/** Returns the blocks that the hub has leased to the member, with their pools. */
export function blocksOf({ leases }: RangeStatus, member: string): Readonly<Record<string, string>> {
  const own = Object.entries(leases).filter(([, lease]) => lease.member === member);
  return Object.fromEntries(own.map(([block, { pool }]) => [block, pool]));
}

interface Inputs {
  readonly range: AddressRange;
  readonly own: OwnRange;
  readonly self: Self;
  readonly demand: BlockDemand;
  /** Returns a UUID. */
  readonly newId: () => string;
}

/** Before each write a token for it is remembered: a copy that is made at another time does not have it. */
export function planRange(inputs: Inputs): Plan {
  const plan = decide(inputs);
  if (plan.kind !== "write" || inputs.own.next !== "") return plan;
  return { kind: "remember", own: { ...inputs.own, next: inputs.newId() } };
}

function decide(inputs: Inputs): Plan {
  const { range, own, self } = inputs;
  const member = range.status.members[self.name];
  if (!range.spec.members.some(({ name }) => name === self.name)) return barred({ kind: "notMember" });
  if (member !== undefined) {
    if (member.isGone) return planGone(own);
    if (member.cluster !== self.cluster) return barred({ kind: "otherCluster", cluster: member.cluster });
    if (own.next !== "" && member.token === own.next) return remember(inputs, member);
    if (member.isContested || isNewer(member, own)) return planContested(inputs, member);
  }
  if (own.writes > 0) {
    const begins = hasGoneBack(inputs, member);
    if (begins || member?.epoch !== range.status.epoch) return planRewriting(inputs, begins);
  }
  return planDemand(inputs, member);
}

/**
 * Returns the blocks that the cluster may use, by the hub's answer, with their pools: those that it has and that are
 * not disputed.
 */
export function usableBlocks({
  range,
  own,
  self,
}: Pick<Inputs, "range" | "own" | "self">): Readonly<Record<string, string>> {
  const { status } = range;
  const member = status.members[self.name];
  if (member?.isGone === true || (member !== undefined && member.cluster !== self.cluster)) return {};
  const isOlder = member !== undefined && (member.isContested || isNewer(member, own));
  const disputed = new Set(Object.values(status.members).flatMap((each) => each.disputed));
  const blocks = isOlder ? blocksOf(status, self.name) : own.blocks;
  return Object.fromEntries(
    Object.entries(blocks).filter(([block]) => {
      const holder = status.leases[block]?.member ?? self.name;
      return holder === self.name && !disputed.has(block);
    }),
  );
}

function barred(bar: Bar): Plan {
  return { kind: "barred", bar };
}

/** A copy of this cluster has written, or this one is older than its last write. */
export function isNewer(member: Membership, own: OwnRange): boolean {
  return member.writes > own.writes || (member.writes === own.writes && member.token !== own.token);
}

/** The hub does not know what this cluster has written, or says what it said before. */
function hasGoneBack({ range: { uid, status }, own, self }: Inputs, member: Membership | undefined): boolean {
  // Another member has noticed, or wrote to a range that was made anew as to its first.
  if (!own.epochs.includes(status.epoch)) return !status.isRestored;
  if (uid !== own.uid || member === undefined || member.writes < own.writes) return true;
  if (status.epoch !== own.epochs.at(-1) || status.sequence < own.sequence) return true;
  return Object.keys(own.blocks).some((block) => status.leases[block]?.member !== self.name);
}

/** The last write was carried out. */
function remember({ range: { uid, status }, own, self }: Inputs, member: Membership): Plan {
  const { epoch, sequence } = status;
  const known = { ...own.disputed, ...own.blocks };
  return {
    kind: "remember",
    own: {
      ...{ uid, sequence, token: own.next, next: "", writes: member.writes, isRejoining: false },
      epochs: [...own.epochs.filter((each) => each !== epoch), epoch].slice(-MAX_EPOCHS),
      blocks: blocksOf(status, self.name),
      disputed: Object.fromEntries(member.disputed.map((block) => [block, known[block] ?? ""])),
    },
  };
}

function planGone(own: OwnRange): Plan {
  if (own.writes === 0 && Object.keys(own.blocks).length === 0) return barred({ kind: "gone" });
  return { kind: "remember", own: newOwnRange(own.uid) };
}

/** The mark tells the other one; it ends when an administrator has said which of them goes on. */
function planContested(inputs: Inputs, member: Membership): Plan {
  const { range, own } = inputs;
  if (member.isContested && !own.isRejoining) return barred({ kind: "contested" });
  return {
    kind: "write",
    write: {
      ...{ epoch: range.status.epoch, isRestored: range.status.isRestored, leases: {} },
      member: { ...member, token: own.next, writes: member.writes + 1, isContested: !own.isRejoining },
    },
  };
}

/**
 * Writes what this cluster has to a hub that has lost some of it, or may have, within its share. What came back with
 * the hub's past was returned.
 */
function planRewriting({ range: { spec, status }, own, self, newId }: Inputs, begins: boolean): Plan {
  const had = { ...own.blocks, ...own.disputed };
  const held = Object.keys(blocksOf(status, self.name));
  const kept = held.filter((block) => block in had);
  const lost = Object.keys(had).filter((block) => status.leases[block] === undefined);
  const again = lost.slice(0, Math.max(0, shareOf(spec, self.name) - kept.length));
  const leases = Object.fromEntries<Lease | null>([
    ...held.filter((block) => !(block in had)).map((block) => [block, null] as const),
    ...again.map((block) => [block, { member: self.name, pool: had[block] ?? "" }] as const),
  ]);
  const disputed = Object.keys(had).filter((block) => !kept.includes(block) && !again.includes(block));
  const epoch = begins ? newId() : status.epoch;
  const writes = Math.max(own.writes, status.members[self.name]?.writes ?? 0) + 1;
  const member = { cluster: self.cluster, token: own.next, writes, epoch, isContested: false, isGone: false, disputed };
  return { kind: "write", write: { epoch, isRestored: begins || status.isRestored, leases, member } };
}

function shareOf({ members }: AddressRange["spec"], member: string): number {
  return members.find(({ name }) => name === member)?.maxBlocks ?? 0;
}

function planDemand({ range, own, self, demand, newId }: Inputs, known: Membership | undefined): Plan {
  const { status } = range;
  const held = blocksOf(status, self.name);
  const returned = demand.giveBack.filter((block) => block in held);
  const givenUp = new Set(demand.giveBack);
  const disputed = Object.keys(own.disputed).filter((block) => !givenUp.has(block));
  const waitsFor = waitedFor(range);
  const { leases, short } = waitsFor.length === 0 ? chooseLeases({ range, own, self, demand }, disputed) : NO_LEASES;
  const stillDisputed = disputed.filter((block) => !(block in leases));
  const hasChanged =
    returned.length > 0 ||
    Object.keys(leases).length > 0 ||
    stillDisputed.length < Object.keys(own.disputed).length ||
    (own.token !== "" && own.token === demand.stale) ||
    waitsFor.includes(self.name);
  if (!hasChanged) {
    return isShort(demand, held) && waitsFor.length > 0 ? barred({ kind: "open", waitsFor }) : { kind: "rest", short };
  }
  const epoch = status.epoch === "" ? newId() : status.epoch;
  return {
    kind: "write",
    write: {
      ...{ epoch, isRestored: status.isRestored && waitsFor.length > 0 },
      leases: { ...Object.fromEntries(returned.map((block) => [block, null])), ...leases },
      member: {
        ...{ cluster: self.cluster, token: own.next, writes: (known?.writes ?? 0) + 1, epoch },
        ...{ isContested: false, isGone: false, disputed: stillDisputed },
      },
    },
  };
}

function isShort({ lease, claim = {} }: BlockDemand, held: Readonly<Record<string, string>>): boolean {
  const pools = Object.values(held);
  if (Object.keys(claim).some((block) => !(block in held))) return true;
  return Object.entries(lease).some(([pool, total]) => total > pools.filter((each) => each === pool).length);
}

interface Chosen {
  readonly leases: Readonly<Record<string, Lease>>;
  readonly short?: "share" | "range" | undefined;
}

const NO_LEASES: Chosen = { leases: {} };

/** First what was this cluster's before the hub went back, and no member's now. */
function chooseLeases(
  { range: { spec, status }, own, self, demand }: Pick<Inputs, "range" | "own" | "self" | "demand">,
  disputed: readonly string[],
): Chosen {
  const leases: Record<string, Lease> = {};
  const kept = Object.entries(blocksOf(status, self.name)).filter(([block]) => !demand.giveBack.includes(block));
  const maxBlocks = shareOf(spec, self.name);
  // A memory of the past may not know for which pool a disputed block was.
  const [anyPool = ""] = [...Object.values(own.blocks), ...Object.keys(demand.lease)];
  const free = disputed.filter((block) => status.leases[block] === undefined);
  for (const block of free.slice(0, Math.max(0, maxBlocks - kept.length)))
    leases[block] = { member: self.name, pool: own.disputed[block] || anyPool };
  const contested = new Set(Object.values(status.members).flatMap((member) => member.disputed));
  const isTaken = (block: string): boolean =>
    status.leases[block] !== undefined || block in leases || contested.has(block);
  const pools = [...kept.map(([, pool]) => pool), ...Object.values(leases).map(({ pool }) => pool)];
  let left = maxBlocks - pools.length;
  let short: "share" | "range" | undefined;
  const claimed = Object.entries(demand.claim ?? {}).filter(([block]) => status.leases[block]?.member !== self.name);
  if (claimed.some(([block]) => isTaken(block))) short = "range";
  else if (claimed.length > left) short = "share";
  else {
    for (const [block, pool] of claimed) leases[block] = { member: self.name, pool };
    left -= claimed.length;
  }
  for (const [pool, total] of Object.entries(demand.lease)) {
    const wanted = Math.max(0, total - pools.filter((each) => each === pool).length);
    const count = Math.max(0, Math.min(wanted, left));
    const chosen = chooseBlocks(spec, isTaken, { count, start: self.start });
    for (const block of chosen) leases[block] = { member: self.name, pool };
    left -= chosen.length;
    if (chosen.length < wanted) short = chosen.length < count ? "range" : "share";
  }
  return { leases, short };
}
