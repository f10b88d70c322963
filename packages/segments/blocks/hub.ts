/**
 * Leases on a hub, an API server that several clusters share: each writes its blocks into its own RangeMember, and
 * reads those of all. A write is based on the object's version, and sealed (seal.ts).
 */
import { randomUUID } from "node:crypto";
import { isConflict, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { describeObject } from "../../../host/kubernetes/object-key.ts";
import { collectionPath, statusPath } from "../../../host/kubernetes/paths.ts";
import { ADDRESS_RANGES, RANGE_MEMBERS } from "../../../host/resources/collections.ts";
import type { SourceReason } from "../../../host/resources/pool-source.ts";
import { type AddressRange, decodeAddressRange } from "../address-range.ts";
import { type BlocksChange, decodeRangeMember, memberObject, type RangeMember } from "../range-member.ts";
import { SourceFailure } from "./block-source.ts";
import { hubFailure } from "./hub-failure.ts";
import type { Bar, Change, Child, LeaseServer, Mark, Short } from "./lease-server.ts";
import { Leases } from "./leases.ts";
import { OwnRanges } from "./own-ranges.ts";
import { blocksAfter, chooseFree, exemptOf, type HubParent, leasesOn, recall } from "./range-leases.ts";
import { barOf, sealWrite } from "./seal.ts";

/** Time for which a read of the hub is retried, shorter than its caller's wait: milliseconds. */
const READ_PATIENCE_MS = 5_000;

/** Time for which a command waits for the hub: milliseconds. */
const PATIENCE_MS = 10_000;

type Api = Pick<KubeApi, "call">;

/** The cluster's membership in a range. */
interface Membership {
  readonly range: string;
  /** This cluster's name in it. */
  readonly member: string;
  /** UID of its namespace kube-system. */
  readonly cluster: string;
}

interface HubOptions extends Membership {
  /** The hub's. */
  readonly api: Api;
  readonly own: OwnRanges;
  /** Returns a UUID. */
  readonly newId: () => string;
  readonly now: () => Date;
  /** Whether its first look replaces the cluster's token: that detects a copy, and makes late writes fail. */
  readonly renews: boolean;
}

class Hub implements LeaseServer<HubParent> {
  readonly hasOwnList = true;
  bar: Bar | undefined;
  readonly #options: HubOptions;
  readonly #seen = new Map<string, RangeMember>();
  #isToRenew: boolean;
  /** As of the latest look, or write. */
  #known: RangeMember | undefined;
  #children: readonly Child[] = [];

  constructor(options: HubOptions) {
    this.#options = options;
    this.#isToRenew = options.renews;
  }

  get share(): number {
    return this.#member.spec.maxBlocks;
  }

  get #member(): RangeMember {
    if (this.#known === undefined) throw notFound(`RangeMember "${this.#name}"`, "NotMember");
    return this.#known;
  }

  get #name(): string {
    return memberObject(this.#options.range, this.#options.member);
  }

  async findParent(signal: AbortSignal): Promise<HubParent> {
    const { api, range: name } = this.#options;
    const ranges = new Map((await listRanges(api, signal)).map((each) => [each.name, each]));
    const range = ranges.get(name);
    if (range === undefined) throw notFound(`AddressRange "${name}"`);
    const { subnet, addressSpace, blockSize } = range.spec;
    return { subnet, addressSpace, blockSize, excluded: exemptOf(range), range, ranges };
  }

  async children(parent: HubParent, signal: AbortSignal): Promise<readonly Child[]> {
    const members = await listMembers(this.#options.api, signal);
    this.#known = members.find(({ name }) => name === this.#name);
    this.#children = leasesOn(parent, recall(this.#seen, members, this.#name), this.#name);
    this.bar = await this.#judge(signal);
    if (this.bar === undefined) await this.#renew(signal);
    return this.#children;
  }

  async ask(
    { range }: HubParent,
    wanted: { readonly mark: Mark; readonly count: number },
    signal: AbortSignal,
  ): Promise<Short | undefined> {
    const make = chooseFree(wanted, { range, children: this.#children }, this.#options.cluster);
    return make.length === 0 ? "range" : this.write(range, { remove: [], make }, signal);
  }

  async write(_: unknown, change: Pick<Change, "remove" | "make">, signal: AbortSignal): Promise<"share" | undefined> {
    const blocks = blocksAfter(change, this.#member, this.#options.now().toISOString());
    if (Object.keys(blocks).length === 0) return "share";
    await this.#write(blocks, signal);
    return undefined;
  }

  async addresses() {
    return [];
  }

  /** Ends writes that an earlier process, or the cluster before it was restored, has sent and not seen carried out. */
  async #renew(signal: AbortSignal): Promise<void> {
    if (this.#isToRenew && this.#member.status.writes > 0 && !(await this.#write({}, signal)))
      throw new Error(`RangeMember "${this.#name}" was written by another process meanwhile; trying again later`);
    this.#isToRenew = false;
  }

  /** The mark tells the other one; it ends when an administrator has said which of them goes on. */
  async #judge(signal: AbortSignal): Promise<Bar | undefined> {
    const { own, range, member, cluster } = this.#options;
    const { seal } = (await own.read(range, signal)).own;
    if (seal.member !== "" && seal.member !== member)
      throw notFound(`"${member}", as whom it has no block; its name is "${seal.member}" (--hub-member)`, "NotMember");
    const { status } = this.#member;
    const bar = barOf(seal, status, cluster);
    if (bar?.kind === "contested" && !status.isContested) await this.#patch({ contested: true }, signal);
    return bar;
  }

  /** Does nothing if the object was written since it was read, and returns false. */
  async #write(blocks: BlocksChange, signal: AbortSignal): Promise<boolean> {
    const { own, range, member, cluster, newId } = this.#options;
    const known = await own.read(range, signal);
    const seal = sealWrite(known.own.seal, this.#member.status, { member, newId });
    if (seal !== known.own.seal) await own.write(range, { ...known, own: { ...known.own, seal } }, signal);
    const encoded = Object.entries(blocks).map(([block, written]) => [block, written && { again: null, ...written }]);
    const change = { cluster, token: seal.next, writes: seal.writes + 1, blocks: Object.fromEntries(encoded) };
    return this.#patch(change, signal);
  }

  async #patch(status: object, signal: AbortSignal): Promise<boolean> {
    const { api } = this.#options;
    const { name, uid, resourceVersion } = this.#member;
    const body = { metadata: { uid, resourceVersion }, status };
    try {
      const written = await api.call({ method: "PATCH", path: statusPath(RANGE_MEMBERS, { name }), body, signal });
      this.#known = decodeRangeMember(written, `RangeMember "${name}"`);
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw hubFailure(error);
    }
  }
}

interface OpenedHub {
  readonly hub: Api;
  /** The cluster's own. */
  readonly home: Api;
  /** Where the ConfigMap {@link OwnRanges} is. */
  readonly namespace: string;
  readonly member: Membership;
  readonly clock: { readonly now: () => Date; readonly nowMs: () => number };
  /** Default: no. */
  readonly renews?: boolean;
}

export function openHub({ hub: api, home, namespace, member, clock, renews = false }: OpenedHub): Leases<HubParent> {
  const newId = randomUUID;
  const own = new OwnRanges(home, namespace);
  const server = new Hub({ ...member, api, own, newId, now: clock.now, renews });
  const names = { key: member.range, cluster: memberObject(member.range, member.member), name: member.member };
  return new Leases<HubParent>({ server, own, ...names, newId, nowMs: clock.nowMs });
}

/** A range with its members, as an administrator of the hub sees it. */
export interface SharedRange {
  readonly range: AddressRange;
  readonly members: readonly RangeMember[];
}

/** Rejects with SourceFailure. */
export async function listShared(api: Api, signal = AbortSignal.timeout(PATIENCE_MS)): Promise<readonly SharedRange[]> {
  const members = await listMembers(api, signal);
  const ranges = await listRanges(api, signal);
  return ranges.map((range) => ({ range, members: members.filter(({ spec }) => spec.range === range.name) }));
}

/** Rejects with SourceFailure, also if there is none. */
export async function readShared(api: Api, name: string): Promise<SharedRange> {
  const found = (await listShared(api)).find(({ range }) => range.name === name);
  if (found === undefined) throw notFound(`AddressRange "${name}"`);
  return found;
}

function notFound(what: string, reason: SourceReason = "NoRange"): SourceFailure {
  return new SourceFailure(reason, `${what} is not found`, undefined);
}

const listRanges = (api: Api, signal: AbortSignal) =>
  list(api, collectionPath(ADDRESS_RANGES), signal, decodeAddressRange);

const listMembers = (api: Api, signal: AbortSignal) =>
  list(api, collectionPath(RANGE_MEMBERS), signal, decodeRangeMember);

type Decode<T> = (value: unknown, source: string) => T;

async function list<T>(api: Api, path: string, signal: AbortSignal, decode: Decode<T>): Promise<T[]> {
  try {
    const { items } = await api.call({ method: "GET", path, patienceMs: READ_PATIENCE_MS, signal });
    return ((items ?? []) as KubeObject[]).map((each) => decode(each, `${describeObject(each)} of the hub`));
  } catch (error) {
    throw hubFailure(error);
  }
}
