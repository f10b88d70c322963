/**
 * Subnets, pools and demands as plain values, and plans carried out on them as by an API server without other writers.
 */
import { deepStrictEqual } from "node:assert/strict";
import { decodeControlledPool, decodeControlledSubnet } from "../../host/controller/objects.ts";
import type { CurrentPool, OwnerState, SubnetsPlan, SubnetsView } from "../../host/controller/subnets/model.ts";
import { changedPart } from "../../host/controller/subnets/plan/changed-part.ts";
import { planSubnets } from "../../host/controller/subnets/plan/plan-subnets.ts";
import { emptyPool, entryOf, poolChange, subnetStatus } from "../../host/controller/subnets/pool-object.ts";
import { faultOf, readSubnet } from "../../host/controller/subnets/view.ts";
import { spansOf } from "../../host/core/spans.ts";
import type { PoolDemand } from "../../host/ipam/subnet-pools.ts";
import { byName } from "../../host/lib/order.ts";
import { type Ip, parseIp } from "../../host/net/ip.ts";
import { parseRange, rangeContains } from "../../host/net/range.ts";
import { type PoolOwner, poolOwnerKey } from "../../host/resources/fields/subnet-pool.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";

interface Stored {
  readonly metadata: Record<string, unknown>;
  readonly spec: Record<string, unknown>;
  status?: object;
}

const controlled = (stored: Stored) =>
  decodeControlledSubnet({ apiVersion: "ipam.vendor.io/v1", kind: "Subnet", ...stored });

export class PlannedSubnets {
  readonly applications = new ScriptedPoolOwners();
  readonly subnets = new Map<string, Stored>();
  readonly pools = new Map<string, Stored>();
  readonly held = new Set<string>();
  /** Addresses in use that left the pool of this name. */
  readonly strays = new Map<string, string>();
  readonly liveness = new Map<string, OwnerState>();
  /** Workloads that have taken over the pods of a deleted one. */
  readonly successors = new Map<string, PoolOwner>();
  /** Pools made by hand, and reserved addresses: ranges of the default space. */
  byHand: readonly string[] = [];
  closedTo: string | undefined;
  maxPoolSize = 1_024;
  maxPerNamespace = 0;
  /** Labels of namespace `shop`. */
  labels: Readonly<Record<string, string>> = {};
  /** For how long every excess has lasted. */
  excessMs = 60_000;
  /** The API server refuses to write existing pools. */
  isRefused = false;

  subnet(name: string, spec: Record<string, unknown>): void {
    const status = this.subnets.get(name)?.status;
    this.subnets.set(name, { metadata: { name, uid: `uid-${name}` }, spec, ...(status && { status }) });
  }

  pool(name: string, spec: Record<string, unknown>, metadata: object = {}): void {
    this.pools.set(name, { metadata: { name, uid: `uid-${name}`, ...metadata }, spec });
  }

  view(): SubnetsView {
    const pools = [...this.pools.values()].map((stored) =>
      decodeControlledPool({ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", ...stored }),
    );
    return {
      demands: this.applications.demands().demands as readonly PoolDemand[],
      subnets: [...this.subnets.values()].flatMap((stored) => readSubnet(controlled(stored)) ?? []),
      pools: pools.flatMap((object): CurrentPool[] => {
        const { spec } = object.value ?? {};
        if (spec?.generated === undefined) throw new Error(`Pool "${object.name}": ${object.fault}`);
        return [{ object, spec, generated: spec.generated }];
      }),
      others: this.byHand.map((text) => {
        const range = parseRange(text);
        if (range === undefined) throw new Error(text);
        return { addressSpace: "", family: range.first.family, spans: spansOf([range]) };
      }),
      poolNames: new Set(this.pools.keys()),
      livenessOf: (application) => this.liveness.get(poolOwnerKey(application)),
      successorOf: (application) => this.successors.get(poolOwnerKey(application)),
      holdersIn: (spans, { addressSpace, family }) => {
        const isIn = (ip: Ip): boolean =>
          ip.family === family && spans.some(({ first, last }) => first <= ip.value && ip.value <= last);
        const own = (ip: Ip) =>
          pools.findLast(
            ({ value: pool }) =>
              pool?.spec.addressSpace === addressSpace && pool.spec.ranges.some((range) => rangeContains(range, ip)),
          );
        const names = new Map([...this.held].map((text) => [text, own(parseIp(text) as Ip)?.name ?? "another"]));
        const all = new Map([...names, ...(addressSpace === "" ? this.strays : [])]);
        return [...all].flatMap(([text, pool]) => {
          const ip = parseIp(text);
          return ip !== undefined && isIn(ip) ? [{ address: ip.value, pool }] : [];
        });
      },
      excessMs: () => this.excessMs,
      isRefused: () => this.isRefused,
      labelsOf: (namespace) => (namespace === "shop" ? this.labels : {}),
      closedTo: this.closedTo,
      maxPoolSize: this.maxPoolSize,
      maxPerNamespace: this.maxPerNamespace,
      faultOf: (name) => {
        const stored = this.subnets.get(name);
        return stored && faultOf(controlled(stored));
      },
    };
  }

  /** Plans once, and carries it out. */
  step(): SubnetsPlan {
    const view = this.view();
    const plan = planSubnets(view);
    for (const { object } of view.subnets) {
      const part = changedPart(view, new Set([object.name]));
      const isIn = inPart(part);
      deepStrictEqual(
        contentOf(planSubnets(part), isIn),
        contentOf(plan, isIn),
        "A part is planned otherwise than the whole",
      );
    }
    this.carryOut(plan);
    return plan;
  }

  carryOut(plan: SubnetsPlan): void {
    for (const { object } of plan.remove) {
      const stored = this.pools.get(object.name);
      if (stored !== undefined) stored.metadata.deletionTimestamp = "2026-11-20T04:00:00Z";
    }
    for (const { targets, subnets } of plan.networks) {
      for (const target of targets) {
        if (target.now === undefined && target.subnet !== undefined) {
          const { metadata, spec } = emptyPool(target, target.subnet) as Stored;
          this.pool(target.name, spec, metadata);
        }
        const stored = this.pools.get(target.name);
        if (stored === undefined || !target.isChanged) continue;
        const { spec } = poolChange(target, { family: (target.subnet ?? target.now)?.spec.family ?? 4, version: "1" });
        const merged = Object.entries({ ...stored.spec, ...spec }).filter(([, value]) => value !== null);
        this.pools.set(target.name, { ...stored, spec: Object.fromEntries(merged) });
      }
      for (const { subnet, total } of subnets) {
        const own = targets.filter((target) => target.subnet === subnet);
        const entries = own.map((target) => entryOf(target, target.spans)).filter(({ spans }) => spans.length > 0);
        const stored = this.subnets.get(subnet.object.name);
        if (stored !== undefined) stored.status = subnetStatus(subnet, total, entries, 0);
      }
    }
  }

  /** The finalizers of pools in deletion go. */
  finish(): void {
    for (const [name, { metadata }] of this.pools)
      if (metadata.deletionTimestamp !== undefined) this.pools.delete(name);
  }
}

interface PlanParts {
  readonly subnets: ReadonlySet<string>;
  readonly demands: ReadonlySet<PoolDemand>;
}

function inPart({ subnets, demands }: SubnetsView): PlanParts {
  return { subnets: new Set(subnets.map(({ object }) => object.name)), demands: new Set(demands) };
}

/** Returns the contents of a plan's part, in one order. */
function contentOf(plan: SubnetsPlan, { subnets, demands }: PlanParts) {
  const targets = plan.networks.flatMap((network) => network.targets);
  const own = targets.filter(({ generated, subnet }) => subnet === undefined || subnets.has(generated.subnet));
  const [names, uids] = [new Set(own.map(({ name }) => name)), new Set(own.map(({ now }) => now?.object.uid ?? ""))];
  return {
    targets: own.map(({ name, spans, generated, isChanged }) => ({ name, spans, generated, isChanged })).sort(byName),
    remove: plan.remove.flatMap(({ object }) => (names.has(object.name) ? [object.name] : [])).sort(),
    shortfalls: plan.shortfalls.flatMap(({ demand, message }) => (demands.has(demand) ? [message] : [])).sort(),
    waiting: [...plan.waiting].filter((name) => names.has(name)).sort(),
    excess: [...plan.excess].filter((uid) => uids.has(uid)).sort(),
    postponed: [...plan.postponed].filter((uid) => uids.has(uid)).sort(),
  };
}
