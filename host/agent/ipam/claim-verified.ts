/** Claims addresses and probes them on the NIC before the ADD is answered: the early stage of conflict detection. */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import { addressConflicts } from "../../ipam/conflict.ts";
import { refuseRequested } from "../../ipam/requested-ips.ts";
import { equalIp, type Family, formatIp } from "../../net/ip.ts";
import type { Allocation, Registry } from "../../registry/registry.ts";
import type { Detection } from "../detection/open-detection.ts";
import { EarlyStage, type EarlyStageDeps } from "../detection/verify-addresses.ts";
import type { NicDefinition } from "../request/nic-definition.ts";
import { allocateAddresses, type Claimed } from "./allocate.ts";
import type { ClusterAddresses, ClusterIpam } from "./cluster-ipam.ts";
import { claimFirst } from "./first-claims.ts";
import { awaitsLostNode } from "./predecessor.ts";
import { type AddressDemand, type AllocateDeps, isSameAddress, workloadOf } from "./sources/source.ts";

/** Most addresses that one ADD with `onConflict: next` probes. @limit */
export const MAX_CONFLICT_CANDIDATES = 8;

interface ClaimVerifiedDeps extends AllocateDeps {
  readonly cluster?: (ClusterAddresses & Pick<ClusterIpam, "isShared">) | undefined;
  readonly isBlind?: boolean;
  readonly detection: Pick<Detection, keyof EarlyStageDeps | "prober" | "answered">;
}

interface VerifiedDemand extends AddressDemand {
  /** Says whether to probe. */
  readonly definition: Pick<NicDefinition, "settings" | "isCoordinated">;
}

/**
 * Throws the errors of allocateAddresses, CniError 101 when a repeated ADD requests another address, 104 on a conflict,
 * 11 when the NIC cannot probe; then nothing of it is kept.
 */
export function claimVerified(deps: ClaimVerifiedDeps, demand: VerifiedDemand): Promise<Claimed> {
  const { detection, registry, poolCache, cluster: { epoch } = {} } = deps;
  const { netns = "", ifName } = demand.claimant;
  const { settings, isCoordinated } = demand.definition;
  const isWanted = settings.detectIPConflict && settings.mode !== "disable";
  let stage: EarlyStage | undefined;
  const openStage = (): EarlyStage => {
    stage ??= new EarlyStage(detection, { netns, ifName, settings, isWanted, isCoordinated });
    return stage;
  };
  const probing = { isWanted, onConflict: settings.detectOptions.onConflict, openStage };
  if (epoch === undefined) return claimAndVerify(deps, demand, probing);
  const ask: EarlyStage["ask"] = (ips, signal) => openStage().ask(ips, signal);
  return claimFirst({ epoch, registry, poolCache, ask }, demand, (admitted) => claimAndVerify(deps, admitted, probing));
}

interface Probing {
  readonly isWanted: boolean;
  readonly onConflict: CoordinatorConf["detectOptions"]["onConflict"];
  readonly openStage: () => EarlyStage;
}

async function claimAndVerify(
  deps: ClaimVerifiedDeps,
  demand: AddressDemand,
  { isWanted, onConflict, openStage }: Probing,
): Promise<Claimed> {
  const { detection, poolCache, cluster, isBlind } = deps;
  const { claimant } = demand;
  const mac = isWanted ? openStage().nic?.mac : undefined;
  const first = { ...demand, claimant: { ...claimant, mac }, canProbe: () => openStage().nic !== undefined };
  let claimed = await allocateAddresses(deps, first);
  try {
    if (demand.requested.length > 0) compareRequested(demand, claimed.held);
    const shared = cluster === undefined ? [] : await findShared(deps, claimed.held, demand.deadline.signal);
    for (let candidates = 1; ; candidates++) {
      const possible = isBlind || cluster?.epoch?.isProbed === true ? claimed.created : [];
      const [wanted, needed]: [Allocation[], Allocation[]] = [[], []];
      for (const each of claimed.held) {
        if (shared.includes(each)) continue;
        const isNeeded = each.quarantine !== undefined || poolCache.blockStateOf(each) === "New";
        if (isNeeded) needed.push(each);
        if (isNeeded || isWanted || possible.includes(each)) wanted.push(each);
      }
      if (wanted.length === 0) return claimed;
      const question = { wanted, needed, previous: claimed.previous };
      const detected = await openStage().verify(question, demand.deadline.signal);
      if (detected.kind === "unasked") return claimed;
      if (detected.kind === "silent") return await accept(deps, claimed, detected.addresses);
      const { allocation, mac } = detected;
      // A machine that answers for the address of an earlier pod on a lost node is taken for that pod. The row gets an
      // owner when the address is silent.
      if (allocation.predecessorNode !== undefined)
        throw awaitsLostNode({ ...allocation, workload: workloadOf(demand, allocation.ifName) }, mac);
      const source = bindingRequests(demand).find(({ ip }) => equalIp(ip, allocation.ip))?.source;
      const isNextWanted = onConflict === "next" && source === undefined;
      const goesOn = isNextWanted && candidates < MAX_CONFLICT_CANDIDATES;
      const created = goesOn ? [] : claimed.created;
      const parent = detection.links.findParentName(claimant.netns ?? "", claimant.ifName);
      const action = await detection.prober.conflict({ allocation, mac, parent, created });
      if (action === "quarantined") claimed = without(claimed, [allocation, ...created]);
      if (!goesOn || action !== "quarantined") {
        const { ip, pool } = allocation;
        throw addressConflicts({ ip, pool, mac, ifName: claimant.ifName, source, action });
      }
      claimed = join(claimed, await allocateAddresses(deps, completing(first, allocation.ip.family)));
    }
  } catch (error) {
    // An address that this or another attempt of the pod took out of quarantine, and that was not found silent, goes
    // back there.
    const untrusted = claimed.held.filter(({ quarantine }) => quarantine !== undefined);
    const others = untrusted.filter((each) => !claimed.created.some((created) => isSameAddress(created, each)));
    const left = [...claimed.created, ...others];
    if (left.length > 0) await deps.registry.undo(left);
    throw error;
  }
}

function bindingRequests({ requested }: AddressDemand): AddressDemand["requested"] {
  return requested.filter(({ isPreference }) => isPreference !== true);
}

/** A repeated ADD that requests another address than the attachment has cannot be honoured. Throws CniError 101. */
function compareRequested(demand: AddressDemand, held: readonly Allocation[]): void {
  const refused = bindingRequests(demand).find(({ ip }) => !held.some((each) => equalIp(each.ip, ip)));
  if (refused === undefined) return;
  const has = held.map(({ ip }) => formatIp(ip)).join(", ");
  throw refuseRequested(ErrorCode.PoolExhausted, refused.source, `${formatIp(refused.ip)}: the interface has ${has}`);
}

/** A migrating machine answers for its address on the other node: no conflict, and no announcement here. */
async function findShared(
  deps: ClaimVerifiedDeps,
  held: readonly Allocation[],
  signal: AbortSignal,
): Promise<Allocation[]> {
  const shared: Allocation[] = [];
  for (const each of held)
    if (each.workload !== undefined && (await deps.cluster?.isShared(each, signal))) shared.push(each);
  const [first] = shared;
  if (first !== undefined)
    deps.detection.answered.share(
      first,
      shared.map(({ ip }) => ip),
    );
  return shared;
}

/**
 * Remembers silent addresses, and trusts those from quarantine. Throws CniError 11 when a DEL or GC of the attachment
 * came meanwhile, so that no lost address is answered.
 */
async function accept(
  { registry, detection }: ClaimVerifiedDeps,
  claimed: Claimed,
  addresses: readonly Allocation[],
): Promise<Claimed> {
  let accepted = claimed;
  for (const each of addresses.filter(({ quarantine }) => quarantine !== undefined)) {
    const trusted = await registry.endQuarantine(each);
    if (trusted !== undefined) accepted = replace(accepted, trusted);
  }
  await requireHeld(registry, claimed.held);
  for (const each of addresses) detection.answered.add(each, [each.ip]);
  return accepted;
}

async function requireHeld(registry: Registry, held: readonly Allocation[]): Promise<void> {
  const [first] = held;
  if (first === undefined) return;
  const now = await registry.findAttachment(first);
  const isBound = (each: Allocation): boolean =>
    now.some((other) => other.state === "Bound" && isSameAddress(each, other));
  const lost = held.find((each) => !isBound(each));
  if (lost === undefined) return;
  const text = `Address ${formatIp(lost.ip)} of pool "${lost.pool}" was released while it was probed on interface "${lost.ifName}"; try again`;
  throw new CniError(ErrorCode.TryAgainLater, text);
}

/** The same demand for one family of its NIC, without requested addresses: those were not in conflict. */
function completing(demand: AddressDemand, family: Family): AddressDemand {
  const nics = demand.nics.filter(({ ifName }) => ifName === demand.claimant.ifName);
  return {
    ...demand,
    nics: nics.map((nic) => ({ ...nic, families: nic.families.filter((each) => each.family === family) })),
    requested: [],
    claimant: { ...demand.claimant, partial: true },
  };
}

function without({ held, created, previous, picked }: Claimed, gone: readonly Allocation[]): Claimed {
  const isOther = (each: Allocation): boolean => !gone.some((one) => isSameAddress(each, one));
  return { held: held.filter(isOther), created: created.filter(isOther), previous: previous.filter(isOther), picked };
}

function join(before: Claimed, later: Claimed): Claimed {
  const isNew = (each: Allocation): boolean => !before.held.some((other) => isSameAddress(each, other));
  return {
    held: [...before.held, ...later.held.filter(isNew)],
    created: [...before.created, ...later.created],
    previous: [...before.previous, ...later.previous],
    picked: [...before.picked, ...later.picked],
  };
}

/** Undo needs the version of now. */
function replace({ held, created, previous, picked }: Claimed, newer: Allocation): Claimed {
  const current = (each: Allocation): Allocation => (isSameAddress(each, newer) ? newer : each);
  return { held: held.map(current), created: created.map(current), previous, picked };
}
