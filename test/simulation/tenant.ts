/**
 * A hostile tenant: it may create any pod and IPAMClaim, and a Deployment, in its own namespace, and tries to get
 * others' addresses, or more than its share (docs/security.md, "What a tenant can do"). It sees the objects of the API
 * server alone, and so do its invariants.
 */
import type { StoredObject } from "../fakes/memory-api-server.ts";
import type { Seeded } from "../world/seeded.ts";
import type { Cluster } from "./cluster.ts";
import { CLAIMS, DEPLOYMENTS, inNamespace, PODS, REPLICA_SETS, TENANT } from "./collections.ts";
import type { PodObject } from "./kubelet.ts";
import { controllerOf, networksOf, uidOf, type Workload } from "./workload.ts";

/** Pools, Subnets and NICs that only others may use have names that begin so. */
const GUARDED = /^(?:vault|guarded)/;
/**
 * Agents learn of a full namespace within this time, 6 s (docs/security.md, "What one tenant may hold") and the lag of
 * a watch: milliseconds.
 */
const HEARD_MS = 14_500;
/** UIDs of sets that never were begin so. */
const GHOST = "ghost-";
/** Most pods of the tenant at a time. */
const MOST_PODS = 28;

/** As in vendor-conf. */
export interface TenantLimits {
  readonly maxAddressesPerPod: number;
  readonly maxAddressesPerNamespace: number;
  readonly maxGeneratedAddressesPerNamespace: number;
  readonly maxGeneratedPoolSize: number;
}

interface Attack {
  readonly name?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly owner?: object | undefined;
  readonly nics?: PodObject["nics"];
}

interface Spec {
  readonly state: string;
  readonly pool: string;
  readonly holders?: readonly { readonly namespace: string; readonly pod: string; readonly podUID: string }[];
  readonly workload?: { readonly namespace: string; readonly member: string; readonly uid: string };
  readonly quarantine?: { readonly holder?: { readonly namespace: string } };
}

const OWN_PODS = inNamespace(PODS, TENANT);
const OWN_CLAIMS = inNamespace(CLAIMS, TENANT);
const BERTH = "ipam.vendor.io";
const OTHERS_POOLS = [
  { ipv4: ["vault4"], ipv6: ["vault6"] },
  { ipv4: ["vault4"], ipv6: ["six*"] },
  { ipv4: ["blue*"], ipv6: ["vault6"] },
] as const;
const ONE: PodObject["nics"] = [["eth0", "lan"]];
const TWO: PodObject["nics"] = [...ONE, ["net1", "lan2"]];

export class Tenant {
  readonly #cluster: Cluster;
  readonly #limits: TenantLimits;
  #lastPod = 0;
  #lastClaim = 0;
  /** Addresses of the tenant's namespace. */
  readonly #own = new Set<string>();
  /** By UID of a pod of the tenant. */
  readonly #ofPod = new Map<string, Set<string>>();
  /** Names of all pools that were ever generated for it. */
  readonly #pools = new Map<string, number>();
  /** Since when the namespace has had as many addresses as it may, while a controller led. */
  #fullSinceMs: number | undefined;

  constructor(cluster: Cluster, limits: TenantLimits) {
    this.#cluster = cluster;
    this.#limits = limits;
  }

  /** Pods of others. */
  get #victims(): readonly PodObject[] {
    return [...this.#cluster.pods, ...this.#cluster.staticPods];
  }

  /** One pod, or a few at once. */
  attack(random: Seeded): void {
    const { server } = this.#cluster;
    const count = random.pick([1, 2, 6]);
    for (let each = 0; each < count && server.collection(OWN_PODS).size < MOST_PODS; each++)
      this.#create(random, this.#pickAttack(random));
  }

  /**
   * Pods that together want more addresses than its namespace may have; `more`: so many, beside those that there are.
   */
  flood(random: Seeded, more?: number): void {
    const { server } = this.#cluster;
    const limits = this.#limits;
    const nics = manyNics(Math.floor(limits.maxAddressesPerPod / 2));
    const count = more ?? Math.ceil(limits.maxAddressesPerNamespace / (2 * nics.length)) + 1;
    const most = MOST_PODS + (more ?? 0);
    for (let each = 0; each < count && server.collection(OWN_PODS).size < most; each++) this.#create(random, { nics });
  }

  /** A Deployment that wants far more than there is. */
  demand(random: Seeded): void {
    const { server } = this.#cluster;
    const { number, subnets } = {
      number: random.pick(["1000", "+500", "7"]),
      subnets: random.pick([
        { ipv4: ["tight4"], ipv6: ["tight6"] },
        { ipv4: ["tight4", "guarded4"], ipv6: ["guarded6", "tight6"] },
        { ipv4: ["tight4"], ipv6: ["none6"] },
      ]),
    };
    const annotations = subnetAnnotations(subnets, number);
    const metadata = { uid: "greed", namespace: TENANT, generation: 1 };
    const template = { metadata: { annotations } };
    server.put(inNamespace(DEPLOYMENTS, TENANT), "greed", { metadata, spec: { replicas: 2, template }, status: {} });
    const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "greed", uid: "greed", controller: true };
    const set = { uid: "greed-1", namespace: TENANT, ownerReferences: [owner] };
    server.put(inNamespace(REPLICA_SETS, TENANT), "greed-1", {
      metadata: set,
      spec: { replicas: 2, template },
      status: {},
    });
    const member = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "greed-1", uid: "greed-1" };
    this.#create(random, { annotations, owner: member });
  }

  /** Each new pod is the only member of a set that never was; the former ones are deleted. */
  haunt(random: Seeded, count: number): void {
    const { server } = this.#cluster;
    for (const { metadata } of [...server.collection(OWN_PODS).values()])
      if (metadata.name.startsWith("ghost-")) this.#delete(metadata.name);
    for (let each = 0; each < count; each++) {
      const uid = `${GHOST}${++this.#lastPod}`;
      const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "ghost", uid };
      this.#create(random, { name: `ghost-${this.#lastPod}`, owner });
    }
  }

  /** Some of its pods go. */
  retreat(random: Seeded): void {
    const { server } = this.#cluster;
    for (const { metadata } of server.collection(OWN_PODS).values())
      if (random.chance(0.3)) this.#delete(metadata.name);
  }

  /** Creates nothing: deletes pods that do not run, and claims, which would retain addresses. */
  rest(isRunning: (uid: string) => boolean): void {
    const { server } = this.#cluster;
    for (const name of [...server.collection(OWN_CLAIMS).keys()]) server.remove(name, OWN_CLAIMS);
    for (const { metadata } of [...server.collection(OWN_PODS).values()])
      if (!isRunning(metadata.uid)) this.#delete(metadata.name);
  }

  #delete(name: string): void {
    const { server } = this.#cluster;
    void server
      .client()
      .call({ method: "DELETE", path: `${OWN_PODS}/${name}` })
      .catch(() => {});
  }

  #create(random: Seeded, { name, annotations, labels, owner, nics = ONE }: Attack): void {
    const { server } = this.#cluster;
    const nodes = [...new Set(this.#victims.map(({ node }) => node))].sort();
    const podName = name ?? `x-${++this.#lastPod}`;
    if (nodes.length === 0 || server.collection(OWN_PODS).has(podName)) return;
    server.put(OWN_PODS, podName, {
      metadata: {
        uid: this.#cluster.newUid(),
        namespace: TENANT,
        // A mirror never runs.
        finalizers: annotations?.["kubernetes.io/config.mirror"] === undefined ? ["simulation/kubelet"] : [],
        annotations: { ...networksOf({ nics }), ...annotations },
        ...(labels === undefined ? {} : { labels }),
        ...(owner === undefined ? {} : { ownerReferences: [{ ...owner, controller: true }] }),
      },
      spec: { nodeName: random.pick(nodes), nics },
      status: { phase: "Pending" },
    });
  }

  #pickAttack(random: Seeded): Attack {
    const { workloads } = this.#cluster;
    const workload = random.pick(workloads);
    const victim = random.pick(this.#victims);
    const owner = controllerOf(workload);
    const kinds: readonly (() => Attack)[] = [
      () => ({ nics: manyNics(3) }),
      () => ({ nics: manyNics(3) }),
      // More than a pod may have.
      () => ({ nics: manyNics(8) }),
      // A member of another owner's set.
      () => ({ name: victim?.name ?? "db-0", owner: controllerOf(ownerOf(workloads, victim) ?? workload), nics: TWO }),
      // Pools that are for others, by name, by pattern, and for NICs that it has not.
      () => ({ annotations: { [`${BERTH}/ippool`]: JSON.stringify(random.pick(OTHERS_POOLS)) } }),
      () => ({ annotations: { [`${BERTH}/ippool`]: JSON.stringify({ ipv4: ["*"], ipv6: ["*"] }) } }),
      () => ({ annotations: { [`${BERTH}/ippools`]: allNics(32) } }),
      // Generated pools of others, by the UID of their owner.
      () => ({
        owner: owner ?? { apiVersion: "made.up/v1", kind: "Thing", name: workload.name, uid: uidOf(workload) },
        annotations: subnetAnnotations({ ipv4: ["guarded4"], ipv6: ["tight6"] }, "+1"),
      }),
      () => ({
        owner: { apiVersion: "made.up/v1", kind: "Thing", name: "greed", uid: uidOf(workload) },
        annotations: subnetAnnotations({ ipv4: ["tight4"], ipv6: ["tight6"] }, random.pick(["+1", "+900"])),
      }),
      // Addresses of others, by an IPAMClaim of its own.
      () => ({ annotations: this.#claim(random), nics: TWO }),
      // More than a pod may have.
      () => ({ nics: manyNics(8) }),
      // The mirror of another owner's static pod, which never runs itself.
      () => {
        const hash = victim?.isStatic === true ? victim.uid : "0".repeat(32);
        const mirror = { "kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash };
        return { ...(victim === undefined ? {} : { name: victim.name }), annotations: mirror };
      },
    ];
    return random.pick(kinds)();
  }

  /** A claim that names another owner's address. */
  #claim(random: Seeded): Readonly<Record<string, string>> {
    const { server } = this.#cluster;
    const all = [...server.objects.values()].map(({ spec }) => String(spec.address));
    const wanted = all.length === 0 ? "10.8.0.1" : random.pick(all);
    const name = `claim-${++this.#lastClaim}`;
    const asked = random.pick([wanted, "10.8.0.1", "fd08::1"]);
    server.put(OWN_CLAIMS, name, {
      metadata: { uid: `claim-uid-${this.#lastClaim}`, namespace: TENANT },
      spec: { network: "lan2", interface: "net1", ipRequests: [asked] },
      ...(random.chance(0.5) ? { status: { ips: [asked], ownerPod: "db-0" } } : {}),
    });
    const selection = [{ name: "lan2", interface: "net1", "ipam-claim-reference": name }];
    return { "k8s.v1.cni.cncf.io/networks": JSON.stringify(selection) };
  }

  /** After each write of an allocation. */
  allocationWritten(address: string, before: StoredObject | undefined, after: StoredObject | undefined): void {
    const [was, is] = [before, after].map((object) => object?.spec as Spec | undefined);
    this.#requireOwnNamespace(address, was, is);
    if (is?.state === "Kept" && is.workload?.uid.startsWith(GHOST) === true)
      this.#problem(`${address} is retained for ${is.workload.member} of a set that never was`);
    if (isOfTenant(is)) this.#requireAllowedPool(address, is);
    this.#countPod(address, is);
    this.#countNamespace(address, isOfTenant(is));
  }

  #requireOwnNamespace(address: string, was: Spec | undefined, is: Spec | undefined): void {
    const [holder] = is?.holders ?? [];
    const { workload } = is ?? {};
    if (holder !== undefined && workload !== undefined && holder.namespace !== workload.namespace)
      this.#problem(
        `${address} is of pod ${holder.namespace}/${holder.pod} as ${workload.namespace}/${workload.member}`,
      );
    if (holder?.namespace !== TENANT || was?.workload === undefined || was.workload.namespace === TENANT) return;
    if (was.state === "Kept")
      this.#problem(`${address} was retained for ${was.workload.member}, and ${holder.pod} of ${TENANT} has it`);
  }

  #requireAllowedPool(address: string, { pool }: Spec): void {
    if (/^(?:blue|six)(?:-|$)/.test(pool) || this.#pools.has(pool)) return;
    this.#problem(`${address} of pool ${pool} is a pod's of ${TENANT}, which may not use that pool`);
  }

  #countPod(address: string, is: Spec | undefined): void {
    for (const [uid, had] of this.#ofPod) if (had.delete(address) && had.size === 0) this.#ofPod.delete(uid);
    for (const { namespace, podUID } of is?.state === "Bound" ? (is.holders ?? []) : []) {
      if (namespace !== TENANT) continue;
      const has = (this.#ofPod.get(podUID) ?? new Set()).add(address);
      this.#ofPod.set(podUID, has);
      const { maxAddressesPerPod: most } = this.#limits;
      if (has.size > most)
        this.#problem(
          `pod ${podUID} of ${TENANT} has ${has.size} addresses, and may have ${most}: ${[...has].join(" ")}`,
        );
    }
  }

  #countNamespace(address: string, isOwn: boolean): void {
    const { nowMs } = this.#cluster;
    const limits = this.#limits;
    const had = this.#own.delete(address);
    if (isOwn) this.#own.add(address);
    if (this.#own.size < limits.maxAddressesPerNamespace) this.#fullSinceMs = undefined;
    else this.#fullSinceMs ??= nowMs;
    if (!isOwn || had || this.#fullSinceMs === undefined || nowMs - this.#fullSinceMs < HEARD_MS) return;
    const most = limits.maxAddressesPerNamespace;
    this.#problem(`${TENANT} has ${this.#own.size} addresses, may have ${most}, and still gets ${address}`);
  }

  /** Called every now and then: without a controller a namespace's addresses are not counted. */
  check(): void {
    if (!this.#cluster.hasLeader && this.#fullSinceMs !== undefined) this.#fullSinceMs = this.#cluster.nowMs;
  }

  /** After each write of a generated pool; `size`: its number of addresses. */
  poolWritten(
    name: string,
    pool: { readonly namespace: string; readonly subnet: string; readonly size: number } | undefined,
  ): void {
    if (pool === undefined && this.#pools.has(name)) this.#pools.set(name, 0);
    if (pool?.namespace !== TENANT) return;
    const { maxGeneratedPoolSize, maxGeneratedAddressesPerNamespace: most } = this.#limits;
    this.#pools.set(name, pool.size);
    if (GUARDED.test(pool.subnet) && pool.size > 0)
      this.#problem(`pool ${name} is generated for ${TENANT} out of Subnet ${pool.subnet}, which is for others`);
    if (pool.size > maxGeneratedPoolSize)
      this.#problem(`pool ${name} has ${pool.size} addresses, and may have ${maxGeneratedPoolSize}`);
    const all = [...this.#pools.values()].reduce((sum, size) => sum + size, 0);
    if (all > most) this.#problem(`pools for ${TENANT} have ${all} addresses together, and may have ${most}`);
  }

  #problem(text: string): void {
    this.#cluster.ledger.problems.push(text);
  }
}

function ownerOf(workloads: readonly Workload[], victim: PodObject | undefined): Workload | undefined {
  return workloads.find(({ name }) => victim?.name.startsWith(`${name}-`));
}

function isOfTenant(spec: Spec | undefined): spec is Spec {
  const namespace = spec?.holders?.[0]?.namespace ?? spec?.workload?.namespace ?? spec?.quarantine?.holder?.namespace;
  return namespace === TENANT;
}

function subnetAnnotations(names: object, number: string): Readonly<Record<string, string>> {
  return { [`${BERTH}/subnet`]: JSON.stringify(names), [`${BERTH}/ippool-ip-number`]: number };
}

function manyNics(count: number): PodObject["nics"] {
  return [...ONE, ...Array.from({ length: count - 1 }, (_, index) => [`net${index + 1}`, "lan2"] as const)];
}

function allNics(count: number): string {
  const names = ["eth0", ...Array.from({ length: count - 1 }, (_, index) => `net${index + 1}`)];
  return JSON.stringify(names.map((each) => ({ interface: each, ipv4: ["blue*"], ipv6: ["six*"] })));
}
