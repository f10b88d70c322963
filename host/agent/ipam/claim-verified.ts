/**
 * Claims addresses and asks for them on the NIC before anybody hears of them: the early stage of conflict detection.
 * Effects: theirs.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { addressConflicts } from "../../ipam/conflict.ts";
import { refuseRequested } from "../../ipam/requested-ips.ts";
import { equalIp, type Family, formatIp } from "../../net/ip.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";
import type { VerifiedAttachments } from "../detection/verified-attachments.ts";
import { type EarlyDetection, EarlyStage, type EarlyStageDeps } from "../detection/verify-addresses.ts";
import type { NicReference, NicSettings } from "../nic-definition.ts";
import { type AddressDemand, type AllocateDeps, allocateAddresses, type Claimed } from "./allocate.ts";
import { awaitsLostNode } from "./sources/retained.ts";

/** Most addresses that one ADD with `onConflict: next` asks for, before it ends like one with `fail`. @limit */
export const MAX_CONFLICT_CANDIDATES = 8;

export interface DetectionTools extends EarlyStageDeps, Pick<NicSettings, "settingsFor" | "isCoordinated"> {
  readonly prober: QuarantineProber;
  readonly verified: VerifiedAttachments;
  /** Whether another pod has the address, too, as it may: it is not asked for then. Absent: none ever has. */
  readonly isShared?: ((row: Allocation, signal: AbortSignal) => Promise<boolean>) | undefined;
}

type Tools = AllocateDeps & DetectionTools;

export interface VerifiedDemand extends AddressDemand {
  /** Whose definition says whether to ask. Absent: of the claimant, and nothing is known of its pod. */
  readonly nic?: NicReference;
}

/** Throws what claimAddresses throws, CniError 101 when a repeated ADD asks for another address, 104 on a conflict, 11 when the NIC cannot be asked; then nothing of it is kept. */
export async function claimVerified(tools: Tools, demand: VerifiedDemand): Promise<Claimed> {
  const { claimant } = demand;
  const { netns = "", ifName, network } = claimant;
  const nic = demand.nic ?? { ifName, network, pod: undefined };
  const settings = tools.settingsFor(nic);
  const stage = new EarlyStage(tools, { netns, ifName, settings, isCoordinated: tools.isCoordinated(nic) });
  const seedText = `${demand.seedText}${tools.prober.salt}`;
  const mac = stage.isWanted ? stage.nic?.mac : undefined;
  const randomize = (pool: string): boolean => tools.prober.hasSuspect(pool);
  const first = {
    ...demand,
    seedText,
    randomize,
    claimant: { ...claimant, mac },
    canProbe: () => stage.nic !== undefined,
  };
  let claimed = await allocateAddresses(tools, first);
  try {
    compareAsked(demand, claimed.held);
    const shared = await findShared(tools, claimed.held, demand.signal);
    for (let candidates = 1; ; candidates++) {
      const alone = claimed.held.filter((each) => !shared.includes(each));
      const verdict = await stage.verify({ ...claimed, held: alone }, demand.signal);
      if (verdict.kind !== "conflict") return await accept(tools, claimed, verdict);
      const { allocation, mac } = verdict;
      // Whoever answers for the address of an earlier pod, on a lost node, is taken for that pod, and for no stranger.
      if (allocation.predecessorNode !== undefined) throw awaitsLostNode(allocation, mac);
      const source = demand.requested.find(({ ip }) => equalIp(ip, allocation.ip))?.source;
      const isNextWanted = settings.detectOptions.onConflict === "next" && source === undefined;
      const goesOn = isNextWanted && candidates < MAX_CONFLICT_CANDIDATES;
      const created = goesOn ? [] : claimed.created;
      const fate = await tools.prober.conflict({ allocation, mac, parent: stage.findParentName(), created });
      if (!goesOn || fate !== "quarantined") {
        const { ip, pool } = allocation;
        throw addressConflicts({ ip, pool, mac, ifName: claimant.ifName, source, fate });
      }
      claimed = without(claimed, allocation);
      claimed = join(claimed, await allocateAddresses(tools, completing(first, allocation.ip.family)));
    }
  } catch (error) {
    // What this attempt or another one of the pod took out of quarantine, and nobody has found silent, goes back there.
    const untrusted = claimed.held.filter(({ quarantine }) => quarantine !== undefined);
    const others = untrusted.filter((each) => !claimed.created.some((created) => isSame(created, each)));
    await tools.registry.undo([...claimed.created, ...others]);
    throw error;
  }
}

/** A repeated ADD that asks for another address than the attachment has cannot be honoured. Throws CniError 101. */
function compareAsked({ requested }: AddressDemand, held: readonly Allocation[]): void {
  const refused = requested.find(({ ip }) => !held.some((each) => equalIp(each.ip, ip)));
  if (refused === undefined) return;
  const has = held.map(({ ip }) => formatIp(ip)).join(", ");
  throw refuseRequested(ErrorCode.PoolExhausted, refused.source, `${formatIp(refused.ip)}: the interface has ${has}`);
}

/** The twin of a machine that migrates answers for the address: that is no conflict, and nobody is to be told that the address has moved. */
async function findShared(tools: Tools, held: readonly Allocation[], signal: AbortSignal): Promise<Allocation[]> {
  const shared: Allocation[] = [];
  for (const each of held) if ((await tools.isShared?.(each, signal)) === true) shared.push(each);
  const [first] = shared;
  if (first !== undefined)
    tools.verified.share(
      first,
      shared.map(({ ip }) => ip),
    );
  return shared;
}

/**
 * What was found silent is remembered, and what came out of quarantine is trusted. Asking takes its time: throws CniError 11 when a DEL
 * or GC of the attachment has come meanwhile, so that no address is answered that is not held any more.
 */
async function accept(tools: Tools, claimed: Claimed, verdict: EarlyDetection): Promise<Claimed> {
  if (verdict.kind !== "silent") return claimed;
  const { registry, verified } = tools;
  await requireHeld(registry, claimed.held);
  let accepted = claimed;
  for (const each of verdict.addresses.filter(({ quarantine }) => quarantine !== undefined)) {
    const trusted = await registry.trust(each);
    if (trusted !== undefined) accepted = replace(accepted, trusted);
  }
  const [first] = verdict.addresses;
  if (first !== undefined)
    verified.add(
      first,
      verdict.addresses.map(({ ip }) => ip),
    );
  return accepted;
}

async function requireHeld(registry: Registry, held: readonly Allocation[]): Promise<void> {
  const [first] = held;
  if (first === undefined) return;
  const now = await registry.findAttachment(first);
  const isBound = (each: Allocation): boolean => now.some((other) => other.state === "Bound" && isSame(each, other));
  const lost = held.find((each) => !isBound(each));
  if (lost === undefined) return;
  const text = `Address ${formatIp(lost.ip)} of pool "${lost.pool}" was released while interface "${lost.ifName}" asked for it; try again`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

/** The same demand for one family of its NIC, and nothing by name: that was not in conflict. */
function completing(demand: AddressDemand, family: Family): AddressDemand {
  const nics = demand.nics.filter(({ ifName }) => ifName === demand.claimant.ifName);
  return {
    ...demand,
    nics: nics.map((nic) => ({ ...nic, families: nic.families.filter((each) => each.family === family) })),
    requested: [],
    claimant: { ...demand.claimant, partial: true },
  };
}

function without({ held, created, previous }: Claimed, gone: Allocation): Claimed {
  const isOther = (each: Allocation): boolean => !isSame(each, gone);
  return { held: held.filter(isOther), created: created.filter(isOther), previous: previous.filter(isOther) };
}

function join(before: Claimed, later: Claimed): Claimed {
  const isNew = (each: Allocation): boolean => !before.held.some((other) => isSame(each, other));
  return {
    held: [...before.held, ...later.held.filter(isNew)],
    created: [...before.created, ...later.created],
    previous: [...before.previous, ...later.previous],
  };
}

/** Undo needs the version of now. */
function replace({ held, created, previous }: Claimed, newer: Allocation): Claimed {
  const current = (each: Allocation): Allocation => (isSame(each, newer) ? newer : each);
  return { held: held.map(current), created: created.map(current), previous };
}

function isSame(a: Allocation, b: Allocation): boolean {
  return a.space === b.space && equalIp(a.ip, b.ip);
}
