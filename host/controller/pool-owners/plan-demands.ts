/**
 * What one application wants: as its own object says, or else as its ReplicaSets and its pods do; and what a former version of it still has.
 */
import { ConfigError } from "../../config/config-error.ts";
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import type { Demands } from "../types.ts";
import { findKind } from "./kinds.ts";
import { planFormerSize, planSize, type Size } from "./plan-size.ts";
import type { NicWish } from "./plan-wishes.ts";
import { compareRanks, type Need, type SubnetTemplate, type Tracked } from "./tracked.ts";

/** All that is known of one application. */
export interface Group {
  /** Undefined: of a kind that is not followed, or its current version names no Subnets. */
  readonly own: Tracked | undefined;
  /** Its ReplicaSets and its Jobs, or its pods. */
  readonly members: readonly Tracked[];
}

type Wishes = Extract<SubnetTemplate, { kind: "wishes" }>;

/** Throws ConfigError. */
export type PlanWishes = (template: Wishes) => readonly NicWish[];

/** Members that want the same for one NIC and family, together. */
interface Sum {
  readonly wish: NicWish;
  /** Of the newest of them. */
  readonly template: Wishes;
  readonly need: Need;
  readonly things: number;
}

export function planDemands({ own, members }: Group, planWishes: PlanWishes): Demands {
  // The newest first.
  const sorted = [...members].sort((a, b) => compareRanks(b.rank, a.rank));
  const [newest] = sorted;
  const head = own ?? newest;
  if (head === undefined) return { demands: [], faults: [] };
  const { application } = head;
  const refusal = own === undefined && newest !== undefined ? refuseUnfollowed(newest) : undefined;
  if (refusal !== undefined) return { demands: [], faults: [{ application, message: refusal }] };
  const sums = sumUp(sorted, planWishes);
  // Of a workload that is followed nothing but its own object says what is current.
  const speaker = own ?? (findKind(application) !== undefined ? undefined : newest);
  const current = speaker === undefined ? NOTHING : readWishes(speaker.template, planWishes);
  const wanted = current.wishes.flatMap((wish): PoolDemand[] => {
    const { template } = current;
    if (template === undefined) return [];
    const size = sizeOf(own, sums.get(keyOf(wish)), template);
    return [{ application, ...wish, ...size, reclaim: template.reclaim, isCurrent: true }];
  });
  const taken = new Set(current.wishes.map(keyOf));
  const former = [...sums.entries()].flatMap(([key, { wish, need, template, things }]): PoolDemand[] => {
    if (taken.has(key) || need.count === 0) return [];
    const size = planFormerSize(need, template.number, things);
    // Whose own object does not say so has only its pods to say it, which anybody may make.
    return [{ application, ...wish, ...size, reclaim: template.reclaim || own === undefined, isCurrent: false }];
  });
  const faults = current.fault === undefined ? [] : [{ application, message: current.fault }];
  return { demands: [...wanted, ...former], faults };
}

interface Current {
  readonly wishes: readonly NicWish[];
  readonly template?: Wishes;
  readonly fault?: string;
}

const NOTHING: Current = { wishes: [] };

/**
 * Of a kind that is not followed nothing but its pods is known, and one pod with any owner written into it is enough. So it gets addresses by the number
 * of its pods, and its pools go with them.
 */
function refuseUnfollowed({ application, template }: Tracked): string | undefined {
  const { apiVersion, kind } = application;
  if (template.kind === "fault" || findKind(application) !== undefined) return undefined;
  const { number, reclaim } = template;
  const asked = [
    ...(number.kind === "fixed" ? [`ippool-ip-number "${number.count}" (only "+N")`] : []),
    ...(reclaim ? [] : ['ippool-reclaim "false"']),
  ];
  if (asked.length === 0) return undefined;
  return `annotation ${asked.join(" and ")} is for workloads that are looked up; ${kind} of ${apiVersion} is none of them`;
}

function readWishes(template: SubnetTemplate, planWishes: PlanWishes): Current {
  if (template.kind === "fault") return { wishes: [], fault: template.message };
  try {
    return { wishes: planWishes(template), template };
  } catch (error) {
    if (error instanceof ConfigError) return { wishes: [], fault: error.message };
    throw error;
  }
}

/** `own` is undefined for a kind that is not followed: then the members are all there is. */
function sizeOf(own: Tracked | undefined, sum: Sum | undefined, { number }: Wishes): Size {
  if (own === undefined) return planSize(sum?.need ?? NONE, number, sum?.things);
  // Jobs that were made by hand from a CronJob are not among those that it counts.
  const isMore = own.need.unit === "parallelism" && sum !== undefined && sum.need.count > own.need.count;
  return isMore ? planSize(sum.need, number, sum.things) : planSize(own.need, number, own.things);
}

const NONE: Need = { unit: "pod", count: 0, surge: 0, isSuspended: false };

/** By `keyOf`. A member whose annotations cannot be followed has no pods that could use a pool. */
function sumUp(members: readonly Tracked[], planWishes: PlanWishes): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { template, need, things } of members) {
    if (template.kind === "fault") continue;
    for (const wish of readWishes(template, planWishes).wishes) {
      const key = keyOf(wish);
      const sum = sums.get(key);
      if (sum === undefined) sums.set(key, { wish, template, need, things });
      else sums.set(key, { ...sum, need: add(sum.need, need), things: sum.things + things });
    }
  }
  return sums;
}

function add(a: Need, b: Need): Need {
  return {
    unit: a.unit === b.unit ? a.unit : "pod",
    count: a.count + b.count,
    surge: 0,
    isSuspended: a.isSuspended && b.isSuspended,
  };
}

function keyOf({ ifName, family, subnets }: NicWish): string {
  return `${ifName} ${family} ${subnets.join()}`;
}
