/**
 * The commands of this folder's transcripts, in which Subnets are divided step by step. A workload is written
 * `namespace.name:uid`, of namespace shop and with its name as UID unless it says otherwise; a pool
 * `workload/Subnet/NIC`, of NIC eth0 unless it says otherwise, or by the name that a transcript gave it.
 */
import { POOL_EVENTS_PER_SECOND, POOL_WRITES_SAVED_MS, PoolWrites } from "../../../../host/controller/pool-writes.ts";
import type { NetworkPlan, OwnerState, PoolTarget, SubnetsPlan } from "../../../../host/controller/subnets/model.ts";
import { changedPart } from "../../../../host/controller/subnets/plan/changed-part.ts";
import { planSubnets } from "../../../../host/controller/subnets/plan/plan-subnets.ts";
import { admitWrites } from "../../../../host/controller/subnets/write-turns.ts";
import type { PoolDemand } from "../../../../host/ipam/subnet-pools.ts";
import { type PoolOwner, poolOwnerKey, type SubnetPoolSpec } from "../../../../host/resources/fields/subnet-pool.ts";
import { PlannedSubnets } from "../../../world/planned-subnets.ts";
import { type CommandLine, type Scenario, testTranscripts } from "../../../world/transcript.ts";

testTranscripts(new URL(".", import.meta.url), () => new Division());

interface PoolSpec {
  readonly ips: readonly string[];
  readonly gateway?: string;
  readonly routes?: readonly Record<"dst" | "gw", string>[];
  readonly generated: SubnetPoolSpec;
}

/** So many pools are written at once. */
const WRITES_AT_ONCE = 10;

class Division implements Scenario {
  readonly #world = new PlannedSubnets();
  /** The demands of each workload. */
  readonly #demands = new Map<string, PoolDemand[]>();
  #networks: readonly NetworkPlan[] = [];
  readonly #writes = new PoolWrites({
    nodes: () => (POOL_EVENTS_PER_SECOND * POOL_WRITES_SAVED_MS) / 1_000 / WRITES_AT_ONCE,
    nowMs: () => this.#nowMs,
  });
  readonly #served = new Set<string>();
  #nowMs = 0;

  readonly commands: Scenario["commands"] = {
    /** The Subnet is like this from now on. */
    subnet: (line) => void this.#world.subnet(line.word(), { subnet: line.word(), ...line.values(...SUBNET_KEYS) }),
    /** A Subnet's status reserves this: `status blue pool=ranges`. */
    status: (line) => this.#setStatus(line),
    /** The Subnet is gone. */
    remove: (line) => void this.#world.subnets.delete(line.word()),
    /** Workloads want this, and nothing that they wanted before. */
    want: (line) => this.#want(line, false),
    also: (line) => this.#want(line, true),
    /** Workloads want nothing any more; `liveness`: their known lives. */
    end: (line) => this.#end(line),
    /** Pods of the first workload, which is gone, are the second one's now. */
    follow: (line) => void this.#world.successors.set(poolOwnerKey(ownerOf(line.word())), ownerOf(line.word())),
    /** Pods have these addresses. */
    held: (line) => void line.words().map((ip) => this.#world.held.add(ip)),
    /** A pod has the address from this pool. */
    stray: (line) => void this.#world.strays.set(line.word(), this.#nameOf(line.word())),
    /** These, or all, are free. */
    free: (line) => this.#free(line.words()),
    set: (line) => void Object.assign(this.#world, line.values<PlannedSubnets>(...SETTINGS)),
    /** A pool that no plan has made, or a copy of one. */
    pool: (line) => this.#addPool(line),
    edit: (line) => this.#edit(line),
    /** The deletion of a pool or a Subnet begins; finalizers keep it. */
    delete: (line) =>
      void Object.assign(this.#find(line.word()).metadata, { deletionTimestamp: "2026-11-20T04:00:00Z" }),
    /** The finalizers of pools in deletion go. */
    finish: () => void this.#world.finish(),
    /** The pools are listed the other way round. */
    reverse: () => this.#reverse(),
    step: (line) => this.#step(line.values<{ times: number }>("times")),
    /** Time passes, and those parts of a plan whose turn it is are carried out. */
    round: (line) => this.#round(line.values<{ ms: number; times: number }>("ms", "times")),
    /** So many pools are written besides. */
    spend: (line) => void this.#writes.spend(Number(line.word())),
    pools: () => [...this.#world.pools.keys()].map((name) => this.#describeSpec(name)).sort(),
    networks: () => this.#networks.map((network) => this.#describeNetwork(network)),
    parts: () => this.#parts(),
  };

  constructor() {
    this.#world.applications.demands = () => ({ demands: [...this.#demands.values()].flat(), faults: [] });
    this.#world.subnet("blue", { subnet: "10.9.0.0/24" });
  }

  #nameOf(label: string): string {
    return [...this.#world.pools.keys()].find((name) => this.#labelOf(name) === label) ?? label;
  }

  #labelOf(name: string): string {
    if (!/-v[46]-[0-9a-f]{10}$/.test(name)) return name;
    const { application, subnet, interface: ifName } = this.#specOf(name).generated;
    return [workloadOf(application), subnet, ...(ifName === "eth0" ? [] : [ifName])].join("/");
  }

  #specOf(name: string): PoolSpec {
    return this.#find(name).spec as unknown as PoolSpec;
  }

  #find(label: string) {
    const { pools, subnets } = this.#world;
    const found = pools.get(label) ?? subnets.get(label) ?? pools.get(this.#nameOf(label));
    if (found === undefined) throw new Error(`There is no ${label}`);
    return found;
  }

  #setStatus(line: CommandLine): undefined {
    const subnet = this.#find(line.word());
    subnet.status = { pools: line.pairs().map(([label, ips]) => ({ name: this.#nameOf(label), ips: ips.split(",") })) };
  }

  #free(ips: readonly string[]): undefined {
    const { held, strays } = this.#world;
    for (const ip of ips.length > 0 ? ips : [...held, ...strays.keys()]) {
      held.delete(ip);
      strays.delete(ip);
    }
  }

  #want(line: CommandLine, isMore: boolean): undefined {
    const kind = line.values<PoolOwner>("kind", "apiVersion");
    const options = { ...DEMAND, ...line.values<PoolDemand>(...DEMAND_KEYS) };
    const reason = `${options.count} ${options.count === 1 ? "pod" : "pods"}`;
    for (const workload of line.words().flatMap(expand)) {
      const others = (isMore && this.#demands.get(workload)) || [];
      const application = { ...ownerOf(workload), ...kind };
      const key = poolOwnerKey(application);
      const all = [...this.#demands.values()].flat().map((demand) => demand.application);
      if (all.some((each) => poolOwnerKey(each) === key && each.name !== application.name))
        throw new Error(`${workload} has the UID of another workload`);
      this.#demands.set(workload, [...others, { application, reason, ...options }]);
    }
  }

  #end(line: CommandLine): undefined {
    const { liveness } = line.values<{ liveness: OwnerState }>("liveness");
    for (const workload of line.words().flatMap(expand)) {
      this.#demands.delete(workload);
      if (liveness !== undefined) this.#world.liveness.set(poolOwnerKey(ownerOf(workload)), liveness);
    }
  }

  #addPool(line: CommandLine): undefined {
    const name = line.word();
    const words = line.values<Record<"of" | "like" | "subnet", string>>("of", "like", "subnet");
    const { of = name, like, subnet = "" } = words;
    const generated = { subnet, application: ownerOf(of), interface: "eth0", reclaim: true, wanted: 1, reason: "" };
    const spec = like === undefined ? { ips: [], generated } : this.#find(like).spec;
    const { network, ...rest } = line.values<Record<string, unknown>>("network", "ips", "addressSpace");
    this.#world.pool(name, { ...spec, ...(network === undefined ? {} : { subnet: network }), ...rest });
  }

  #edit(line: CommandLine): undefined {
    const spec = this.#specOf(this.#nameOf(line.word()));
    Object.assign(spec, line.values("ips"));
    Object.assign(spec.generated.application, line.values("apiVersion"));
  }

  #reverse(): undefined {
    const pools = [...this.#world.pools].reverse();
    this.#world.pools.clear();
    for (const [name, pool] of pools) this.#world.pools.set(name, pool);
  }

  /** Shows each pool, and the last plan. */
  #step({ times = 1 }): string[] {
    let plan = this.#world.step();
    for (let count = 1; count < times; count++) plan = this.#world.step();
    this.#networks = plan.networks;
    const pools = plan.networks.flatMap(({ targets }) => targets.map((target) => this.#describePool(target, plan)));
    const shortfalls = plan.shortfalls.map(
      ({ demand, reason, message, pool, isPassing }) =>
        `${workloadOf(demand.application)} ${reason}${pool === undefined ? ", of no pool" : isPassing ? ", passing" : ""}: ${message}`,
    );
    return [...pools.sort(), ...shortfalls, ...plan.ask.map((owner) => `ask ${workloadOf(owner)}`)];
  }

  /** Shows the pools that the last round writes, its reservations, and the waiting ones. */
  #round({ ms = POOL_WRITES_SAVED_MS, times = 1 }): string[] {
    this.#nowMs += ms;
    const plan = planSubnets(this.#world.view());
    const { networks, remove, held, postponed } = admitWrites(plan, this.#writes, this.#served);
    this.#world.carryOut({ ...plan, networks, remove });
    if (times > 1) return this.#round({ ms, times: times - 1 });
    const targets = networks.flatMap((network) => network.targets);
    const grown = networks.flatMap(({ grows, subnets }) => (grows ? subnets.map((each) => each.subnet.object) : []));
    const lists = {
      create: targets.filter(({ now }) => now === undefined).map(({ name }) => this.#labelOf(name)),
      change: targets.filter(({ now, isChanged }) => now && isChanged).map(({ name }) => this.#labelOf(name)),
      delete: remove.map(({ object }) => this.#labelOf(object.name)),
      "reserve in": grown.map(({ name }) => name),
      postponed: postponed === 0 ? [] : [postponed],
      "new pools wait:": countBySubnet(held),
    };
    const filled = Object.entries(lists).filter(([, list]) => list.length > 0);
    return [filled.map(([title, list]) => `${title} ${list.join(" ")}`).join(" | ") || "nothing"];
  }

  /** `blue 3/254 grows`: the Subnets of a network of the last plan, with the number of reserved addresses. */
  #describeNetwork({ subnets, targets, grows }: NetworkPlan): string {
    const names = subnets.map(
      ({ subnet: { object }, total }) => `${object.name} ${this.#statusOf(object.name)?.assigned}/${total}`,
    );
    const pools = `${targets.length} ${targets.length === 1 ? "pool" : "pools"}`;
    return [...(names.length > 0 ? names : ["no Subnet"]), pools, ...(grows ? ["grows"] : [])].join(" ");
  }

  /** `web/blue 3: 10.9.0.4-10.9.0.6 new`: the pool's wanted number, its addresses, and the plan's words for it. */
  #describePool({ name, now, subnet, isChanged }: PoolTarget, plan: SubnetsPlan): string {
    const { ips, generated } = this.#specOf(name);
    const entry = this.#statusOf(subnet?.object.name)?.pools.find((each) => each.name === name);
    const uid = now?.object.uid ?? "";
    const marks = {
      new: now === undefined,
      written: isChanged,
      removed: plan.remove.some(({ object }) => object.name === name),
      deleting: now?.object.deleting === true,
      excess: plan.excess.has(uid),
      postponed: plan.postponed.has(uid),
      waits: plan.waiting.has(name),
      [`reserved=${entry?.ips.join() ?? "none"}`]: subnet !== undefined && (entry?.ips ?? []).join() !== ips.join(),
    };
    const words = Object.entries(marks).flatMap(([word, holds]) => (holds ? [word] : []));
    return [`${this.#labelOf(name)} ${generated.wanted}:`, ...(ips.length > 0 ? ips : ["none"]), ...words].join(" ");
  }

  #statusOf(subnet = "") {
    const { status } = this.#world.subnets.get(subnet) ?? {};
    return status as
      | { readonly assigned: number; readonly pools: readonly { name: string; ips: string[] }[] }
      | undefined;
  }

  #describeSpec(name: string): string {
    const { gateway, routes = [], generated } = this.#specOf(name);
    const { application, wanted, reason, reclaim } = generated;
    const way = [...(gateway === undefined ? [] : [gateway]), ...routes.map(({ dst, gw }) => `${dst} via ${gw}`)];
    const owner = `${application.apiVersion} ${application.kind}`;
    return `${this.#labelOf(name)}: ${owner}, wants ${wanted} (${reason}), ${reclaim ? "reclaimed" : "kept"}${way.map((each) => `, ${each}`).join("")}`;
  }

  /** `blue green: pools < workloads | red: …`: the plan when one of the Subnets has changed. */
  #parts(): string[] {
    const view = this.#world.view();
    const parts = view.subnets.map(({ object }) => {
      const { subnets, pools, demands } = changedPart(view, new Set([object.name]));
      const namesOf = (all: readonly { object: { name: string } }[]) => all.map(({ object: { name } }) => name);
      const words = [...namesOf(pools), "<", ...demands.map((each) => workloadOf(each.application))];
      return `${namesOf(subnets).join(" ")}: ${words.join(" ")}`;
    });
    return [[...new Set(parts)].sort().join(" | ") || "none"];
  }
}

/** Returns `blue 3` for three new pools of Subnet blue. */
function countBySubnet(pools: ReturnType<typeof admitWrites>["held"]): string[] {
  const created = [...pools].filter((pool) => !("object" in pool) && pool.now === undefined);
  const bySubnet = Map.groupBy(created, ({ generated }) => generated.subnet);
  return [...bySubnet].map(([subnet, all]) => `${subnet} ${all.length}`);
}

const SUBNET_KEYS = ["ips", "excludeIPs", "gateway", "routes", "addressSpace", "namespaceName", "namespaceAffinity"];

const SETTINGS = ["maxPoolSize", "maxPerNamespace", "excessMs", "isRefused", "byHand", "labels"] as const;

const DEMAND_KEYS = ["count", "ifName", "family", "subnets", "reclaim", "isCurrent", "reason"] as const;
const DEMAND = { ifName: "eth0", family: 4, subnets: ["blue"], count: 0, reclaim: true, isCurrent: true } as const;

/** Returns `w1` to `w3` for `w{1..3}`. */
function expand(text: string): string[] {
  const [all, first, last] = /\{(\d+)\.\.(\d+)\}/.exec(text) ?? [];
  if (all === undefined) return [text];
  const count = Number(last) - Number(first) + 1;
  return Array.from({ length: count }, (_, at) => text.replace(all, `${Number(first) + at}`)).flatMap(expand);
}

function ownerOf(workload: string): PoolOwner {
  const [, namespace = "shop", name = "", uid = name] = /^(?:(.+)\.)?([^:]+)(?::(.+))?$/.exec(workload) ?? [];
  return { apiVersion: "apps/v1", kind: "Deployment", namespace, name, uid };
}

function workloadOf({ namespace, name, uid }: PoolOwner): string {
  return `${namespace === "shop" ? "" : `${namespace}.`}${name}${uid === name ? "" : `:${uid}`}`;
}
