/**
 * The claiming half of an agent in this process: real inventory, pool cache, search and SQLite registry; only the
 * clock and the segment are the test's. It remembers what was answered, and says when that and the registry and the pool cache disagree.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AddDeadline } from "../../../host/agent/add-deadline.ts";
import type { Claimed } from "../../../host/agent/ipam/allocate.ts";
import { claimVerified } from "../../../host/agent/ipam/claim-verified.ts";
import { cooldownsOf, PoolInventory } from "../../../host/agent/ipam/pool-inventory.ts";
import type { AddressDemand } from "../../../host/agent/ipam/sources/source.ts";
import { CniError } from "../../../host/cni/error.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../../host/config/coordinator-settings.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import type { Allocation, Attachment, Registry } from "../../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../../host/registry/sqlite/registry.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { assembleSnapshot, EMPTY_SNAPSHOT, type Snapshot } from "../../../host/resources/snapshot.ts";
import { openCore } from "../../unit/ipam/subjects.ts";
import { demandOf, type NicRequest } from "./nic-request.ts";
import { faultsOfQuarantine, ScriptedSegment, type SegmentDeps } from "./scripted-segment.ts";

export type Resources = Parameters<typeof assembleSnapshot>[0][number]["resources"];

export interface AddOptions {
  readonly owner: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly nics: readonly NicRequest[];
  readonly requested?: Ip | undefined;
  /** The caller hangs up: before the claim is through, or when the answer is to be written. */
  readonly hangUp?: "early" | "late" | undefined;
  /** What the network's settings say about conflicts. */
  readonly detection: "off" | "fail" | "next";
}

/** What a caller was told. */
interface Answered {
  readonly attachment: Attachment;
  readonly owner: string;
  readonly places: readonly string[];
  readonly ips: readonly Ip[];
}

function placeOf({ space, ip }: Pick<Allocation, "space" | "ip">): string {
  return `${formatIp(ip)}/${space}`;
}

export class IpamWorld {
  readonly #directory = mkdtempSync(join(tmpdir(), "berth-claims-"));
  #clockMs = 1_000_000;
  #boot = 1;
  #snapshot: Snapshot = EMPTY_SNAPSHOT;
  #registry!: Registry;
  #poolCache!: PoolCache;
  #inventory!: PoolInventory;
  #answered: Answered[] = [];
  /** NICs whose addresses something may have released since they were answered. */
  readonly #released = new Set<string>();
  /** NICs with an ADD since the last look. */
  readonly #begun = new Set<string>();
  readonly #deaths: Error[] = [];
  readonly segment = new ScriptedSegment();
  #deps!: SegmentDeps;

  static async open(): Promise<IpamWorld> {
    const world = new IpamWorld();
    await world.start();
    return world;
  }

  async start(): Promise<void> {
    this.#poolCache = new PoolCache(openCore());
    this.#registry = await openSqliteRegistry({
      directory: this.#directory,
      bootId: `boot-${this.#boot}`,
      nowMs: () => this.#clockMs,
      lockWaitMs: 0,
      cooldowns: cooldownsOf(this.#snapshot),
      onFreed: (space, ip) => this.#poolCache.unmark(space, ip),
      onDeath: (error) => this.#deaths.push(error),
      faultCounter: createFaultCounter(),
    });
    this.#inventory = new PoolInventory(this.#poolCache, this.#registry, this.#snapshot);
    this.#inventory.follow(this.#snapshot);
    this.#deps = this.segment.deps(
      { registry: this.#registry, nowMs: () => this.#clockMs, pools: () => this.#snapshot.pools },
      (netns, ifName) =>
        this.#answered
          .filter(({ attachment }) => attachment.containerId === netns && attachment.ifName === ifName)
          .flatMap(({ ips }) => ips),
    );
  }

  async probe(): Promise<void> {
    await this.#deps.prober.probeDue();
  }

  async restart(reboots: boolean): Promise<void> {
    await this.#deps.prober.close();
    await this.#registry.close();
    if (reboots) {
      this.#boot++;
      this.#clockMs = 1_000;
      this.#answered = [];
    }
    await this.start();
  }

  async close(): Promise<void> {
    await this.#registry.close();
    rmSync(this.#directory, { recursive: true });
  }

  edit(resources: Resources): void {
    this.#snapshot = assembleSnapshot([{ source: "test", resources }]);
    this.#inventory.follow(this.#snapshot);
  }

  advance(milliseconds: number): void {
    this.#clockMs += milliseconds;
  }

  async expire(): Promise<void> {
    await this.#registry.expire();
    await this.#registry.releaseUnattached(this.#clockMs - 120_000);
  }

  async add(options: AddOptions): Promise<void> {
    const { owner, containerId, ifName, requested, hangUp, detection } = options;
    this.#begun.add(nicOf({ containerId, ifName }));
    const { pools } = await this.#inventory.loaded();
    const hungUp = new AbortController();
    if (hangUp === "early") setImmediate(() => hungUp.abort());
    const demand: AddressDemand = {
      nics: options.nics.map((nic) => demandOf(nic, pools)),
      requested: requested === undefined ? [] : [{ ip: requested, source: "CNI_ARGS IP" }],
      claimant: { owner, namespace: "shop", pod: owner, ifName, containerId, network: "net", netns: containerId },
      seedText: owner,
      deadline: new AddDeadline({ nowMs: () => this.#clockMs, sleep: this.#sleep }, hungUp.signal),
    };
    const claimed = await this.#claim(demand, detection);
    if (claimed === undefined) return;
    if (hangUp !== undefined) {
      await this.#registry.undo(claimed.created);
      return;
    }
    this.#answered = this.#answered.filter((old) => old.owner !== owner || old.attachment.ifName !== ifName);
    this.#answered.push({
      attachment: { containerId, ifName },
      owner,
      places: claimed.held.map(placeOf),
      ips: claimed.held.map(({ ip }) => ip),
    });
  }

  /** Undefined when it was refused; anything but a refusal is a bug. */
  async #claim(demand: AddressDemand, detection: AddOptions["detection"]): Promise<Claimed | undefined> {
    const { detectOptions } = DEFAULT_COORDINATOR_CONF;
    const onConflict = detection === "next" ? "next" : "fail";
    const settings = {
      detectIPConflict: detection !== "off",
      detectOptions: { ...detectOptions, onConflict },
    } as const;
    try {
      const settingsFor = () => ({ ...DEFAULT_COORDINATOR_CONF, ...settings });
      return await claimVerified(
        {
          registry: this.#registry,
          poolCache: this.#poolCache,
          networks: { settingsFor, isCoordinated: () => false },
          detection: { ...this.#deps, detect: this.#detectFor(demand) },
        },
        demand,
      );
    } catch (error) {
      if (error instanceof CniError || demand.deadline.signal.aborted) return undefined;
      throw error;
    }
  }

  /** What a conflict takes from a later sandbox, an earlier one of the same NIC has no more. */
  #detectFor({ claimant: { containerId, ifName } }: AddressDemand): SegmentDeps["detect"] {
    return async (question) => {
      const found = await this.segment.detect(question);
      if (found !== undefined) this.#released.add(nicOf({ containerId, ifName }));
      return found;
    };
  }

  readonly #sleep = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
    this.#clockMs += milliseconds;
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  };

  /** A later sandbox of the pod may have the address by now: what the DEL of any of them may release is forgotten. */
  async del(attachment: Attachment): Promise<void> {
    this.#released.add(nicOf(attachment));
    await this.#registry.release(attachment);
  }

  /** Keeps the NICs of these attachments, whichever sandbox has them. */
  async collect(kept: readonly Attachment[]): Promise<void> {
    const alive = new Set(kept.map(nicOf));
    for (const { attachment } of this.#answered) {
      if (!alive.has(nicOf(attachment))) this.#released.add(nicOf(attachment));
    }
    const valid = kept.flatMap(({ containerId, ifName }) =>
      SANDBOXES.map((sandbox) => ({ containerId: `${stemOf(containerId)}-${sandbox}`, ifName })),
    );
    for (const nic of this.#begun) if (!alive.has(nic)) this.#released.add(nic);
    await this.#registry.releaseOthers("net", valid, this.#clockMs + 1);
  }

  get attachments(): readonly Attachment[] {
    return this.#answered.map(({ attachment }) => attachment);
  }

  /** Everything that is wrong while nothing is in flight, as sentences. */
  async findFaults(): Promise<string[]> {
    await this.#inventory.loaded();
    await this.#deps.prober.idle();
    const records = await this.#registry.list(undefined, 10_000);
    this.#answered = this.#answered.filter(({ attachment }) => !this.#released.has(nicOf(attachment)));
    this.#released.clear();
    this.#begun.clear();
    return [
      ...this.#faultsOfAnswers(records),
      ...this.#faultsOfPoolCache(records),
      ...faultsOfQuarantine(records),
      ...this.#deaths.map(String),
    ];
  }

  /** I1: no address is two attachments', and every one that was answered and not released is recorded as theirs. */
  #faultsOfAnswers(records: readonly Allocation[]): string[] {
    const holders = new Map<string, string>();
    const recorded = new Map(records.map((record) => [placeOf(record), record]));
    return this.#answered.flatMap(({ owner, attachment, places }) =>
      places.flatMap((place) => {
        const faults: string[] = [];
        const holder = `${owner} ${keyOf(attachment)}`;
        const other = holders.get(place);
        if (other !== undefined) faults.push(`${place} is held by ${other} and by ${holder}`);
        holders.set(place, holder);
        const record = recorded.get(place);
        const isTheirs = record?.state === "Bound" && record.owner === owner && record.ifName === attachment.ifName;
        if (!isTheirs) faults.push(`${place} was answered to ${holder}, recorded is ${describe(record)}`);
        return faults;
      }),
    );
  }

  /** I2: in each pool exactly the recorded addresses are marked. */
  #faultsOfPoolCache(records: readonly Allocation[]): string[] {
    const recorded = new Map(records.map((record) => [placeOf(record), record]));
    return [...this.#snapshot.pools.values()].flatMap((pool) =>
      addressesOf(pool).flatMap((ip) => {
        const space = pool.spec.addressSpace;
        const answer = this.#poolCache.takeExactly(pool, ip);
        if (answer === "claimed") this.#poolCache.unmark(space, ip);
        const record = recorded.get(placeOf({ space, ip }));
        if (answer === "taken" && record === undefined)
          return [`${placeOf({ space, ip })} is free, yet marked in ${pool.name}`];
        if (answer === "claimed" && record !== undefined) {
          return [`${placeOf({ space, ip })} is not marked in ${pool.name}, recorded is ${describe(record)}`];
        }
        return [];
      }),
    );
  }
}

function keyOf({ containerId, ifName }: Attachment): string {
  return `${containerId}/${ifName}`;
}

/** Containers are named after the pod, a dash, and the sandbox's number. */
export const SANDBOXES = [0, 1];

function stemOf(containerId: string): string {
  return containerId.slice(0, containerId.lastIndexOf("-"));
}

function nicOf({ containerId, ifName }: Attachment): string {
  return `${stemOf(containerId)}/${ifName}`;
}

function describe(record: Allocation | undefined): string {
  return record === undefined ? "nothing" : `${record.state} to ${record.owner} ${keyOf(record)}`;
}

function addressesOf({ spec }: IpPool): Ip[] {
  return spec.ranges.flatMap(({ first, last }) =>
    Array.from({ length: Number(last.value - first.value) + 1 }, (_, index) => ({
      family: first.family,
      value: first.value + BigInt(index),
    })),
  );
}
