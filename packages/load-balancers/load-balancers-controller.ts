/**
 * Gives addresses to Services of the class: first the record, which is the claim, then MetalLB's objects, then the
 * status. Whatever ends it in between, the next pass finds the record, or the collection ends it.
 */

import { setImmediate } from "node:timers/promises";
import { CniError } from "../../host/cni/error.ts";
import { decodePodAnnotations, isEnabled, refuseUnknown } from "../../host/config/annotations.ts";
import { ConfigError } from "../../host/config/config-error.ts";
import type { CachedAllocation } from "../../host/controller/cached-allocation.ts";
import { firstNicOf, hasEveryRecord, settingsOf } from "../../host/controller/caches.ts";
import { claimedBy, recordOf } from "../../host/controller/claimants.ts";
import { followObjects } from "../../host/controller/follow-objects.ts";
import { patchIfSame } from "../../host/controller/patch.ts";
import { startReconciling } from "../../host/controller/reconcile-loop.ts";
import type { Caches, ControllerDeps, StartController } from "../../host/controller/types.ts";
import { writeRecord } from "../../host/controller/write-record.ts";
import { describePassedOver } from "../../host/ipam/refusal.ts";
import { selectPools } from "../../host/ipam/selection.ts";
import { isConflict } from "../../host/kubernetes/kube-api.ts";
import { collectionPath, SERVICES, statusPath } from "../../host/kubernetes/paths.ts";
import { RefusalsOf } from "../../host/kubernetes/refused-writes.ts";
import { describeValue } from "../../host/lib/describe.ts";
import { equalIp, type Family, formatIp, type Ip, parseIp } from "../../host/net/ip.ts";
import { createAllocation } from "../../host/registry/kubernetes/allocation-objects.ts";
import { allocationName, NO_NODE } from "../../host/resources/ip-allocation.ts";
import type { IpPool } from "../../host/resources/ip-pool.ts";
import { findExclusion, type PoolSurroundings } from "../../host/resources/locate-address.ts";
import { NONE_OCCUPIED } from "../../host/resources/occupied-ips.ts";
import { type PoolsByName, PoolTable } from "../../host/resources/pools-by-name.ts";
import { type Kept, openMetallb } from "./metallb.ts";
import { type AddressPlan, type AddressWorld, keptBy, planAddress, type ServiceRecord } from "./plan-address.ts";
import { Questions } from "./questions.ts";
import { ANNOTATIONS, type BalancedService, IPS_ANNOTATION, POOL_ANNOTATION, readBalanced } from "./service.ts";

/** Shortest time between two passes: milliseconds. */
const BALANCERS_REST_MS = 250;

/** Time after which a Service that was refused is looked at again, whatever has changed: milliseconds. */
const REFUSED_RETRY_MS = 5_000;

const CONDITION = "ipam.vendor.io/AddressAssigned";

/** Reason of a refusal where the settings disable the family. */
const DISABLED = "FamilyDisabled";

type Refusal = Pick<Extract<AddressPlan, { kind: "refused" }>, "reason" | "message">;

/** Records that this process has made, by name, until the watch has them. */
type Made = Map<string, CachedAllocation>;

/** `metallbNamespace`: where MetalLB's objects are kept; undefined: nothing of MetalLB. */
export const startLoadBalancers =
  (metallbNamespace?: string): StartController =>
  (deps) => {
    const { caches } = deps;
    const wake = (): void => loop.wake();
    const services = followObjects(deps, wake, {
      ...{ name: "Services of type LoadBalancer", path: collectionPath(SERVICES) },
      ...{ decode: readBalanced, budgeted: { budget: caches.budget } },
    });
    const metallb = metallbNamespace === undefined ? undefined : openMetallb(deps, metallbNamespace, wake);
    const made: Made = new Map();
    const questions = new Questions(caches, deps.clock.nowMs);
    const work = async (): Promise<number | undefined> => {
      if (!services.isSynced || !hasEveryRecord(caches)) return undefined;
      const all = [...services.items.values()];
      const view = viewOf(caches, made);
      view.records.push(...questions.begin(new Set(all.map(({ uid }) => uid))));
      const refusals = new RefusalsOf();
      const assigned: Assigned[] = [];
      const own = { ...deps, made, questions, view };
      // One after the other, since each sees the claims of those before it.
      for (const service of all) {
        // The pools that a tenant lists take long to select.
        await setImmediate();
        const world = worldOf(own, service, all);
        const found = await refusals.attempt(() => assign(own, service, world));
        assigned.push({ ...UNASSIGNED, ...found, service, stays: keptBy(service, world).map(formatIp) });
      }
      deps.promised.clear();
      const given = new Set(assigned.flatMap(({ ips = [] }) => ips));
      for (const { ip, addressSpace } of view.records)
        if (given.has(formatIp(ip))) deps.promised.add(allocationName(ip, addressSpace));
      const announced = assigned.flatMap(({ ips = [], stays }) => [...ips, ...stays]);
      const kept = (await metallb?.keep(announced.flatMap((text) => parseIp(text) ?? []))) ?? "kept";
      if (kept === "outdated") return BALANCERS_REST_MS;
      let nextMs: number | undefined;
      const recorded = new Set(view.records.map(({ ip }) => formatIp(ip)));
      for (const each of assigned) {
        const isLost = each.ips?.some((text) => !recorded.has(text));
        const dueMs = isLost ? BALANCERS_REST_MS : await refusals.attempt(() => tell(own, each, kept));
        if (dueMs !== undefined) nextMs = Math.min(nextMs ?? dueMs, dueMs);
      }
      return refusals.require(nextMs);
    };
    const loop = startReconciling(deps, {
      failure: "Giving addresses to Services failed",
      work,
      restMs: () => BALANCERS_REST_MS,
      follow: () => [
        ...[caches.pools, caches.reserved, caches.epoch, caches.vendorConf].map((cache) => cache.subscribe(wake)),
        caches.allocations.subscribe(({ key, before }) => {
          made.delete(key);
          if (before?.spec.node === NO_NODE) wake();
        }),
      ],
    });
    return {
      get problems() {
        return [services, loop, metallb].flatMap((each) => each?.problems ?? []);
      },
      close: async () => {
        await loop.close();
        await Promise.all([services.close(), metallb?.close()]);
      },
    };
  };

interface ServeDeps extends Pick<ControllerDeps, "api" | "caches" | "events" | "clock" | "log" | "leading"> {
  readonly made: Made;
  readonly questions: Questions;
  readonly view: View;
}

interface Assigned {
  readonly service: BalancedService;
  /** All have records; undefined if not all could be claimed yet. */
  readonly ips: readonly string[] | undefined;
  /** Those of its status that stay, and are announced, until it is told others. */
  readonly stays: readonly string[];
  /** It is refused, or a sentence about its other family, of which it has no address; "" if it has, or wants none. */
  readonly why: Refusal | string;
  /** Time after which it is to be looked at again, whatever has changed: milliseconds. */
  readonly dueMs: number | undefined;
}

const UNASSIGNED = { ips: undefined, why: "", dueMs: undefined };

async function assign(
  deps: ServeDeps,
  service: BalancedService,
  world: AddressWorld,
): Promise<Pick<Assigned, keyof typeof UNASSIGNED>> {
  const plans = planService(deps, service, world);
  const main = plans.find((plan) => plan.kind !== "refused" || plan.reason !== DISABLED) ?? plans[0];
  const refusal = [main, ...plans].find((plan) => plan?.kind === "refused");
  const isRefused = refusal !== undefined && (service.needsAll || main?.kind === "refused");
  const wanted = isRefused ? [] : plans.filter((plan) => plan.kind !== "refused");
  for (const plan of wanted)
    if (!(await (plan.kind === "claim" ? claim(deps, service, plan) : confirm(deps, service, plan.ip))))
      return { ...UNASSIGNED, dueMs: BALANCERS_REST_MS };
  const dueMs = refusal && REFUSED_RETRY_MS;
  const ips = isRefused ? keptBy(service, world) : wanted.map(({ ip }) => ip);
  return { ips: ips.map(formatIp), why: isRefused ? refusal : (refusal?.message ?? ""), dueMs };
}

/** Returns when to look at it again: milliseconds; undefined if it has all that it wants. */
async function tell(deps: ServeDeps, { service, ips, stays, why, dueMs }: Assigned, kept: Exclude<Kept, "outdated">) {
  if (ips === undefined) return dueMs;
  const isHeld = kept !== "kept" && ips.some((text) => !service.ingress.includes(text));
  const held = isHeld && { reason: "NotAnnounced", message: kept.refusal };
  const isWritten = await report(deps, service, held ? stays : ips, held || why);
  return isWritten && !held ? dueMs : REFUSED_RETRY_MS;
}

/** Objects that one pass over all Services reads once; it adds the records that it makes. */
interface View {
  readonly around: PoolSurroundings;
  /** Those that may serve a Service: blocks are leased for pods. */
  readonly pools: PoolsByName;
  /** Why others may not: clauses, by name. */
  readonly refused: ReadonlyMap<string, string>;
  /** The UIDs of those that say that they have an address, by its text. */
  readonly claimed: ReturnType<typeof claimedBy>;
  /** Those of Services. */
  readonly records: ServiceRecord[];
}

function viewOf(caches: Caches, made: Made): View {
  const reserved = [...caches.reserved.items.values()].flatMap(({ value }) => value ?? []);
  const siblings = [...caches.pools.items.values()].flatMap(({ value }) => value ?? []);
  const pools = new PoolTable();
  const refused = new Map<string, string>();
  for (const [pool, { value }] of caches.pools.items)
    if (value === undefined) refused.set(pool, "is invalid");
    else if (value.source === undefined) pools.set(pool, value);
    else refused.set(pool, "leases its addresses");
  const records: ServiceRecord[] = [];
  for (const all of [caches.allocations.items, made])
    for (const { spec } of all.values())
      if (spec.node === NO_NODE && spec.state === "Kept" && spec.workload?.kind === "Service") records.push(spec);
  const around = { reserved, occupied: NONE_OCCUPIED, siblings };
  return { around, pools, refused, claimed: claimedBy(caches), records };
}

function worldOf(
  { caches, made, view: { around, claimed, records } }: ServeDeps,
  { uid }: BalancedService,
  services: readonly BalancedService[],
): AddressWorld {
  const { items } = caches.allocations;
  return {
    ...{ records, services },
    isTaken: (name) => items.has(name) || made.has(name),
    macOf: (name) => items.get(name)?.spec.quarantine?.mac || undefined,
    exclusionOf: (pool, ip) => findExclusion(ip, pool, around, true),
    isClaimed: (ip) =>
      [...(claimed.get(formatIp(ip)) ?? [])].some((other) => other !== uid) ||
      records.some((each) => equalIp(each.ip, ip) && each.workload?.uid !== uid),
  };
}

function planService(deps: ServeDeps, service: BalancedService, world: AddressWorld): AddressPlan[] {
  if (service.requested === undefined) {
    const found = describeValue(service.annotations[IPS_ANNOTATION]);
    const families = service.families.map((family) => `IPv${family}`).join(", ");
    const message = `annotation "${IPS_ANNOTATION}": found ${found}, want one address of each family (${families}), separated by a comma`;
    return [{ kind: "refused", reason: "InvalidAnnotation", message }];
  }
  let first: Ip | undefined;
  return service.families.map((family) => {
    const found = poolsFor(deps, service, family);
    const plan: AddressPlan =
      "reason" in found ? { kind: "refused", ...found } : planAddress(service, family, found, { ...world, first });
    // An address that it has stays its own.
    const stays = plan.kind !== "refused" && service.ingress.includes(formatIp(plan.ip));
    if (!isEnabled(family, settingsOf(deps.caches)) && !stays) return { kind: "refused", ...disabled(family) };
    if (plan.kind !== "refused") first ??= plan.ip;
    return plan;
  });
}

function disabled(family: Family): Refusal {
  const words = `IPv${family} is disabled, as enableIPv${family} is false in vendor-conf`;
  const other = family === 4 ? 6 : 4;
  return { reason: DISABLED, message: `${words}; enable it, or name IPv${other} alone in spec.ipFamilies` };
}

/** As for a pod of the namespace with that annotation alone. */
function poolsFor(
  { caches, view: { pools, refused } }: Pick<ServeDeps, "caches" | "view">,
  service: BalancedService,
  family: Family,
): readonly IpPool[] | Refusal {
  const { namespace, name, annotations } = service;
  const vendorConf = { ...settingsOf(caches), enableIPv4: family === 4, enableIPv6: family === 6 };
  try {
    refuseUnknown(annotations, ANNOTATIONS);
    const named = annotations[POOL_ANNOTATION];
    const own = named === undefined ? {} : { [POOL_ANNOTATION]: named };
    const subject = {
      ...{ node: undefined, ifName: firstNicOf(caches), network: "", firstNic: firstNicOf(caches) },
      pod: { namespace, name, labels: {}, annotations: decodePodAnnotations(own, vendorConf) },
      namespace: caches.namespaces.items.get(namespace),
      ...{ ipamConf: { type: "berth" as const }, vendorConf },
    };
    const candidates = selectPools(subject, pools, refused).nics.flatMap(({ families }) =>
      families.flatMap((each) => each.candidates),
    );
    const usable = candidates.flatMap((each) => (each.refusal === undefined ? [each.pool] : []));
    if (usable.length > 0) return usable;
    const none = (): string => "gives none";
    const reasons = describePassedOver(candidates, "owner", { separator: " ", reasonOf: none, shortReasonOf: none });
    return {
      reason: "NoPool",
      message: `No pool gives IPv${family} addresses to this Service: ${reasons.join("; ") || "none is named"}`,
    };
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof CniError)) throw error;
    return { reason: error instanceof ConfigError ? "InvalidAnnotation" : "NoPool", message: error.message };
  }
}

/**
 * Returns false if the address must be probed first, or another was faster: the next pass tries again, or chooses
 * another address. An address in its status was its own before.
 */
async function claim(
  { api, caches, clock, log, leading, made, questions, view }: ServeDeps,
  service: BalancedService,
  { ip, pool }: Pick<Extract<AddressPlan, { kind: "claim" }>, "ip" | "pool">,
) {
  const record = { ...recordOf(service, ip, pool), since: clock.now().toISOString() };
  const isKnown = questions.find(ip) !== undefined || service.ingress.includes(formatIp(ip));
  const question = isKnown ? undefined : questions.ask(record, pool);
  const spec = question ?? record;
  try {
    const object = await createAllocation(api, spec, { lane: "background", signal: leading });
    // The watch may be faster than the answer.
    if (!caches.allocations.items.has(object.name)) made.set(object.name, object);
    view.records.push(record);
    if (question !== undefined) return false;
    questions.end(ip, isKnown);
    log.info(
      { address: formatIp(ip), pool: pool.name },
      `Service ${service.namespace}/${service.name} gets an address`,
    );
    return true;
  } catch (error) {
    if (question !== undefined) questions.end(ip, true);
    if (!isConflict(error)) throw error;
    return false;
  }
}

/** Returns whether the Service, which is to hold the address, may be told it: it was probed, or cannot be. */
async function confirm(deps: ServeDeps, service: BalancedService, ip: Ip): Promise<boolean> {
  const { caches, clock, made, questions } = deps;
  const question = questions.find(ip);
  if (question === undefined) return true;
  if (question.workload.uid !== service.uid) return false;
  const { pool } = question;
  const name = allocationName(ip, pool.spec.addressSpace);
  const { spec } = caches.allocations.items.get(name) ?? made.get(name) ?? {};
  // The agent has found it silent.
  if (spec === undefined) return claim(deps, service, { ip, pool });
  const isGiven = spec.workload?.uid === service.uid;
  if (isGiven || spec.state !== "Quarantined" || spec.quarantine?.mac !== "") questions.end(ip, !isGiven);
  else if (clock.nowMs() > question.untilMs)
    await writeRecord(deps, recordOf(service, ip, pool), (found) => found.spec.quarantine?.mac === "");
  return isGiven;
}

/** Writes the status if it says something else. Returns false if the Service has changed since. */
async function report(deps: ServeDeps, service: BalancedService, ips: readonly string[], why: Refusal | string) {
  const [refusal, lack] = typeof why === "string" ? [undefined, why] : [why, ""];
  const { namespace, name, uid, resourceVersion, conditions, ingress } = service;
  const unprobed = deps.questions.unprobed(ips).map((text) => `${text} was not probed`);
  const assigned = [ips.join(", "), ...unprobed, lack].filter((text) => text !== "").join("; ");
  const { reason, message } = refusal ?? { reason: "Assigned", message: assigned };
  const status = refusal === undefined ? "True" : "False";
  const before = conditions.find(({ type }) => type === CONDITION);
  const isTold = ingress.join() === ips.join();
  // The condition tells about unprobed addresses when it is first written.
  const lasting = (text: unknown): string => String(text).replaceAll(/; \S+ was not probed/g, "");
  const isSame = before?.status === status && before.reason === reason && lasting(before.message) === lasting(message);
  if (isSame && isTold) return true;
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : deps.clock.now().toISOString();
  const own = { type: CONDITION, status, reason, message, lastTransitionTime };
  const body = {
    status: {
      loadBalancer: { ingress: ips.map((ip) => ({ ip })) },
      conditions: [...conditions.filter(({ type }) => type !== CONDITION), own],
    },
  };
  const path = statusPath(SERVICES, { namespace, name });
  if ((await patchIfSame(deps.api, { path, uid, resourceVersion, body, signal: deps.leading })) === undefined)
    return false;
  if (refusal !== undefined && !isSame)
    deps.events.emit({
      regarding: { kind: "Service", apiVersion: "v1", namespace, name, uid },
      ...{ reason: "AddressRefused", note: message, type: "Warning", action: "AssignAddress" },
    });
  return true;
}
