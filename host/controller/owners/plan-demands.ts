/**
 * The pools that one workload needs, by its own object or else by its ReplicaSets or pods; and those that an earlier
 * version of it still uses.
 */
import { ConfigError } from "../../config/config-error.ts";
import type { PoolNumber } from "../../config/pool-number.ts";
import type { PoolDemand, Turnover } from "../../ipam/subnet-pools.ts";
import type { Demands } from "../types.ts";
import type { NicRequest } from "./plan-nic-requests.ts";
import { findKind } from "./pool-owner-kinds.ts";
import { compareRanks, type Need, type SubnetTemplate, type TrackedObject } from "./tracked-object.ts";

/** All tracked objects of one workload. */
interface Group {
  /** Undefined for a kind that is not followed, and if the current version names no Subnets. */
  readonly own: TrackedObject | undefined;
  /** Its ReplicaSets, Jobs or pods. */
  readonly members: readonly TrackedObject[];
}

type SubnetRequests = Extract<SubnetTemplate, { kind: "requests" }>;

/** Throws ConfigError. */
type PlanNicRequests = (template: SubnetRequests) => readonly NicRequest[];

interface Requested {
  readonly request: NicRequest;
  readonly template: SubnetRequests;
}

/** Members with the same request for one NIC and family. The template is the newest member's. */
interface MemberSum extends Requested {
  readonly need: Need;
  readonly objectCount: number;
}

export function planDemands({ own, members }: Group, planNicRequests: PlanNicRequests): Demands {
  // The newest first.
  const sorted = [...members].sort((a, b) => compareRanks(b.rank, a.rank));
  const [newest] = sorted;
  const head = own ?? newest;
  if (head === undefined) return { demands: [], faults: [] };
  const { application } = head;
  const refusal = refuseUnfollowed(head);
  if (refusal !== undefined) return { demands: [], faults: [{ application, message: refusal }] };
  const sums = sumUp(sorted, planNicRequests);
  // The current template of a followed kind is in its own object only.
  const speaker = own ?? (findKind(application) !== undefined ? undefined : newest);
  const current = speaker === undefined ? NOTHING : readRequests(speaker.template, planNicRequests);
  const wanted = current.requested.map(({ request, template }): PoolDemand => {
    const size = sizeOf(head, sums.get(keyOf(request)), template);
    return { application, ...request, ...size, reclaim: template.reclaim, isCurrent: true };
  });
  const taken = new Set(current.requested.map(({ request }) => keyOf(request)));
  const former = [...sums.entries()].flatMap(([key, { request, need, template, objectCount }]): PoolDemand[] => {
    if (taken.has(key) || need.count === 0) return [];
    const size = planFormerSize(need, template.number, objectCount);
    // Without its own object, only pods show the demand, and any tenant may create those.
    return [{ application, ...request, ...size, reclaim: template.reclaim || own === undefined, isCurrent: false }];
  });
  const faults = current.fault === undefined ? [] : [{ application, message: current.fault }];
  return { demands: [...wanted, ...former], faults };
}

interface Current {
  readonly requested: readonly Requested[];
  readonly fault?: string;
}

const NOTHING: Current = { requested: [] };

/**
 * For a kind that is not followed only pods are known, and their owner may be forged. So its pools are sized by the
 * number of pods, and deleted with them.
 */
function refuseUnfollowed({ application, template }: TrackedObject): string | undefined {
  const { apiVersion, kind } = application;
  if (template.kind === "fault" || findKind(application) !== undefined) return undefined;
  const { number, reclaim } = template;
  const requested = [
    ...(number.kind === "fixed" ? [`ippool-ip-number "${number.count}" (only "+N")`] : []),
    ...(reclaim ? [] : ['ippool-reclaim "false"']),
  ];
  if (requested.length === 0) return undefined;
  return `annotation ${requested.join(" and ")} is for workloads that are looked up; ${kind} of ${apiVersion} is none of them`;
}

function readRequests(template: SubnetTemplate, planNicRequests: PlanNicRequests): Current {
  if (template.kind === "fault") return { requested: [], fault: template.message };
  try {
    return { requested: planNicRequests(template).map((request) => ({ request, template })) };
  } catch (error) {
    if (error instanceof ConfigError) return { requested: [], fault: error.message };
    throw error;
  }
}

/** `head` is the workload itself or, for a kind that is not followed, its newest member: only members are known. */
function sizeOf(head: TrackedObject, sum: MemberSum | undefined, { number }: SubnetRequests): Size {
  const { need, objectCount, isOwner } = head;
  // A CronJob does not count Jobs that were created from it by hand.
  const isSum = sum !== undefined && (!isOwner || (need.unit === "parallelism" && sum.need.count > need.count));
  return isSum ? planSize(sum.need, number, sum.objectCount) : planSize(need, number, objectCount);
}

/** By `keyOf`. A member with invalid annotations has no pods that could use a pool. */
function sumUp(members: readonly TrackedObject[], planNicRequests: PlanNicRequests): Map<string, MemberSum> {
  const sums = new Map<string, MemberSum>();
  for (const { template: read, need, objectCount } of members) {
    for (const { request, template } of readRequests(read, planNicRequests).requested) {
      const key = keyOf(request);
      const sum = sums.get(key);
      if (sum === undefined) sums.set(key, { request, template, need, objectCount });
      else sums.set(key, { ...sum, need: add(sum.need, need), objectCount: sum.objectCount + objectCount });
    }
  }
  return sums;
}

function add(a: Need, b: Need): Need {
  return { ...a, unit: a.unit === b.unit ? a.unit : "pod", count: a.count + b.count };
}

function keyOf({ ifName, family, subnets }: NicRequest): string {
  return `${ifName} ${family} ${subnets.join()}`;
}

interface Size {
  readonly turnover: Turnover | undefined;
  readonly count: number;
  /** A sentence without a full stop. */
  readonly reason: string;
}

/** Returns the size for the current version. `objectCount`: the number of objects behind the need. */
export function planSize(need: Need, number: PoolNumber, objectCount = 1): Size {
  if (number.kind === "fixed") return fixed(need, number.count);
  const { surge } = need;
  const extra = Math.max(number.count, surge);
  const why = surge > number.count ? " while it is rolled out (maxSurge)" : "";
  return flexible(need, extra, `${describeNeed(need, objectCount)}${extra === 0 ? "" : ` and ${extra} more`}${why}`);
}

/** Returns the size for pods of an earlier version, which only become fewer: one spare address replaces them. */
export function planFormerSize(need: Need, number: PoolNumber, objectCount = 1): Size {
  if (number.kind === "fixed" && number.count <= need.count) return fixed(need, number.count);
  const extra = number.kind === "fixed" ? 0 : Math.min(number.count, 1);
  const more = extra === 0 ? "" : ` and ${extra} more`;
  return flexible(need, extra, `${describeNeed(need, objectCount)} of a former version${more}`);
}

function fixed(need: Need, count: number): Size {
  return { count, reason: `${count} as ippool-ip-number says`, turnover: turnoverOf(need, true) };
}

function flexible(need: Need, extra: number, reason: string): Size {
  const count = Math.min(need.count + extra, Number.MAX_SAFE_INTEGER);
  return { count, reason, turnover: turnoverOf(need, false) };
}

function turnoverOf({ count, surge, overlaps }: Need, isFixed: boolean): Turnover | undefined {
  return overlaps ? { needed: count + surge, isFixed } : undefined;
}

function describeNeed({ unit, count, isSuspended }: Need, objectCount: number): string {
  if (isSuspended && count === 0) return "0 while it is suspended";
  if (unit === "parallelism") return `parallelism ${count}${objectCount > 1 ? ` of ${objectCount} Jobs` : ""}`;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
