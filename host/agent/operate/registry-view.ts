/** The registry as an explanation sees it: reads go to the registry, the writes of its ADDs stay here. */
import type { Proposal } from "../../ipam/pick.ts";
import { claimOver, numberOf, planClaim, rowOf } from "../../registry/claims.ts";
import { nameOf, PROBE_FIRST } from "../../registry/kubernetes/known-object.ts";
import {
  type Allocation,
  type Claim,
  type ClaimOutcome,
  type PublishOutcome,
  type Registry,
  RegistryError,
} from "../../registry/registry.ts";
import { isSameMember } from "../../resources/member.ts";
import type { SharedRecords } from "../ipam/cluster-ipam.ts";
import type { ForeseenRows } from "../ipam/sources/source.ts";

/** Versions of rows that only the view has begin here: no store counts as far. */
const FIRST_VERSION = 2 ** 52;

const refuse = (): Promise<never> => Promise.reject(new Error("A view of the registry changes nothing"));

interface Given {
  /** In a cluster. */
  readonly records: Pick<SharedRecords, "foresee"> | undefined;
  /** As in {@link RegistryHealth}. */
  readonly trouble: string | undefined;
  readonly signal: AbortSignal;
}

export class RegistryView implements Registry, ForeseenRows {
  readonly #live: Registry;
  readonly #given: Given;
  /** By address: the rows that would be other ones; undefined for those that would be gone. */
  readonly #changed = new Map<string, Allocation | undefined>();
  #lastVersion = FIRST_VERSION;

  constructor(live: Registry, given: Given) {
    this.#live = live;
    this.#given = given;
  }

  get foreseen(): readonly Allocation[] {
    return [...this.#changed.values()].filter((row) => row !== undefined);
  }

  /** The row would be this one. */
  note(row: Allocation): void {
    this.#changed.set(nameOf(row), row);
  }

  /** Returns whether the row would be gone. */
  isGone(row: Allocation): boolean {
    return this.#changed.has(nameOf(row)) && this.#changed.get(nameOf(row)) === undefined;
  }

  async claim(claim: Claim): Promise<ClaimOutcome> {
    const { trouble } = this.#given;
    if (trouble !== undefined) throw new RegistryError(trouble);
    const { proposals, containerId, network } = claim;
    const own = await this.findOwner(claim.owner);
    const present = await Promise.all(proposals.map(({ space, ip }) => this.findAddress(space, ip)));
    const plan = planClaim(claim, own, (proposal) => present[proposals.indexOf(proposal)]);
    if (plan.kind !== "write") return plan;
    const results = await Promise.all(plan.needed.map(({ proposal, idle }) => this.#foresee(proposal, idle, claim)));
    const by = results.flatMap(({ outcome }) => (outcome.kind === "taken" ? [outcome.by] : []));
    if (by.length > 0) return { kind: "taken", by };
    for (const row of plan.unwanted) this.#changed.set(nameOf(row), undefined);
    const created = results.map(({ row }) => row);
    const attached = plan.wanted.map((row) => ({ ...row, containerId, network }));
    const held = [...attached, ...created.filter(({ ifName }) => ifName === claim.ifName)];
    for (const row of [...attached, ...created]) this.note(row);
    const open = results.filter(({ row, workload }) => workload !== undefined && isOpen(row)).map(({ row }) => row);
    const added = results.filter(({ outcome }) => outcome.kind === "published" && outcome.isNew).map(({ row }) => row);
    return { kind: "bound", held, created, previous: [], added, open };
  }

  async undo(rows: readonly Allocation[]): Promise<void> {
    for (const row of rows)
      if (row.version > FIRST_VERSION) this.#changed.delete(nameOf(row));
      else this.#changed.set(nameOf(row), undefined);
  }

  /** The row would be as it is. */
  async endQuarantine(): Promise<undefined> {}

  /** The registry does this by itself, each second. */
  async expire(): Promise<void> {}

  /** The rows of the ADDs. */
  async findAttachment(): Promise<readonly Allocation[]> {
    return this.foreseen;
  }

  async findAddress(space: string, ip: Allocation["ip"]): Promise<Allocation | undefined> {
    const name = nameOf({ space, ip });
    return this.#changed.has(name) ? this.#changed.get(name) : this.#live.findAddress(space, ip);
  }

  async findOwner(owner: string): Promise<readonly Allocation[]> {
    const foreseen = this.foreseen.filter((row) => row.owner === owner);
    return [...(await this.#unchanged(this.#live.findOwner(owner))), ...foreseen];
  }

  readonly findCooling: Registry["findCooling"] = (...of) => this.#unchanged(this.#live.findCooling(...of));
  readonly findQuarantined: Registry["findQuarantined"] = (of) => this.#unchanged(this.#live.findQuarantined(of));
  readonly readUsed: Registry["readUsed"] = (span) => this.#live.readUsed(span);

  readonly release = refuse;
  readonly collect = refuse;
  readonly quarantine = refuse;
  readonly countUsage = refuse;
  readonly list = refuse;
  readonly setCooldowns = refuse;

  async #unchanged(rows: Promise<readonly Allocation[]>): Promise<readonly Allocation[]> {
    return (await rows).filter((row) => !this.#changed.has(nameOf(row)));
  }

  /** Returns the row that the proposal would become, and the API server's answer to it. */
  async #foresee(proposal: Proposal, idle: Allocation | undefined, claim: Claim) {
    const { needsProbe, replaces } = proposal;
    const { workload, ...claimed } = rowOf(proposal, claim);
    const blank: Allocation = {
      ...claimed,
      state: "Bound",
      // Its object would be the newest of its member.
      ...{ sinceMs: 0, isConfirmed: false, version: ++this.#lastVersion, createdAt: new Date().toISOString() },
      workload: isSameMember(workload, idle?.workload) ? workload : undefined,
      quarantine: needsProbe === true ? PROBE_FIRST : idle?.quarantine,
    };
    const row = { ...blank, claim: claimOver(blank, idle, { number: claim.number ?? 0, id: "" }) };
    const { records, signal } = this.#given;
    const published: PublishOutcome = { kind: "published", isNew: false };
    const outcome = (await records?.foresee({ ...row, workload }, replaces, signal)) ?? published;
    const taken = outcome.kind === "published" && outcome.claim !== undefined ? { workload, claim: outcome.claim } : {};
    return { row: { ...row, ...taken }, workload, outcome };
  }
}

/** Returns whether it is not known whether the row comes first of those of its member. */
function isOpen(row: Allocation): boolean {
  return row.workload === undefined || numberOf(row) === 0;
}
