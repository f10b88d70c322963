/** The faults that the simulation has to notice: each rule of docs/allocation.md switched off, and what reviews have found before. */
import type { Edit, Fault, TestedFault } from "./fault.ts";

const NOTICES = "host/controller/notices/notice-controller.ts";
const STORE = "host/registry/sqlite/store.ts";
const DECIDE = "host/registry/kubernetes/decide.ts";
const CLAIMS = "host/registry/kubernetes/claim-publisher.ts";
const REGISTRY = "host/registry/kubernetes/kubernetes-registry.ts";
const KNOWN = "host/registry/kubernetes/known-object.ts";
const FIND_RETAINED = "host/agent/ipam/sources/find-retained.ts";
const RETAINED = "host/agent/ipam/sources/retained.ts";
const COLLECTION = "host/controller/gc/plan-collection.ts";
const LOSS = "host/registry/sqlite/find-loss.ts";
const LEAK = "host/ipam/leak.ts";
const LIMITS = "host/agent/ipam/tenant-limits.ts";
const PLAN_SUBNETS = "host/controller/subnets/plan/plan-subnets.ts";

function edit(file: string, text: string, replacement: string): Edit {
  return { file, text, replacement };
}

export const FAULTS: readonly Fault[] = [
  {
    name: "the row keeps the container of the first sandbox",
    breaks: "late-del",
    profile: "runtimes",
    limit: 60_000,
    edits: [edit(STORE, "wanted.map((each) => this.#attach(each, claim, nowMs))", "wanted")],
  },
  {
    name: "a GC releases what is missing from its list",
    breaks: "late-del",
    profile: "runtimes",
    limit: 60_000,
    edits: [
      edit(
        REGISTRY,
        "(await orRegistryError(this.#options.isPodGone(row))) && (await this.collect(row)) !== undefined",
        "(await this.collect(row)) !== undefined",
      ),
    ],
  },
  {
    name: "the addresses of a silent node are freed",
    breaks: "node-lost",
    profile: "silence",
    limit: 400_000,
    edits: [
      edit(
        COLLECTION,
        `action: "quarantine",\n    why: "its pod is gone, and its node is not ready`,
        `action: "free",\n    why: "its pod is gone, and its node is not ready`,
      ),
    ],
  },
  {
    name: "the addresses of live pods are quarantined when their node is not ready",
    breaks: "node-lost",
    profile: "partition",
    violation: "is quarantined for a lost node",
    limit: 400_000,
    edits: [
      edit(COLLECTION, `{ state: "Bound", pod: ["alive"], action: "keep", why: "its pod exists" },`, ""),
      edit(
        COLLECTION,
        `pod: ENDED,\n    after: "grace",\n    action: "quarantine",\n    why: "its pod is gone, and its node is not ready`,
        `after: "grace",\n    action: "quarantine",\n    why: "its pod is gone, and its node is not ready`,
      ),
    ],
  },
  {
    name: "a record is written again although it is right",
    breaks: "sandbox-restart",
    profile: "calm",
    violation: "was written more than",
    limit: 60_000,
    edits: [edit(DECIDE, `if (object.node === node && !isUnanswered) return { kind: "synced" };`, "")],
  },
  {
    name: "the address of a pod on a lost node is taken over without a probe",
    breaks: "node-lost",
    profile: "conflicts",
    violation: " is on ",
    limit: 100_000,
    edits: [edit(DECIDE, `needsProbe ||= status === "lost" && !isProbed;`, "")],
  },
  {
    name: "a claim is answered before its object exists",
    breaks: "sandbox-restart",
    profile: "calm",
    limit: 20_000,
    edits: [
      edit(
        CLAIMS,
        "if (rows.length === 0) return",
        "if (rows.length >= 0) for (const row of rows) this.#objectSync.syncLater(row);\n    if (rows.length >= 0) return",
      ),
    ],
  },
  {
    name: "a claim that failed is not undone",
    breaks: "undo",
    profile: "faults",
    faults: 4,
    limit: 2_000_000,
    edits: [edit(CLAIMS, "await this.#undoAll(undone, failed === undefined);\n    await", "await")],
  },
  {
    name: "a record that vanished is not created again",
    breaks: "recreate",
    profile: "calm",
    limit: 20_000,
    edits: [
      edit(
        "host/agent/gc/plan-reconciliation.ts",
        "return object === undefined || !isObjectOf(row, object, node);",
        "return false;",
      ),
    ],
  },
  {
    name: "a notice is lost",
    breaks: "recreate",
    profile: "calm",
    limit: 20_000,
    edits: [edit(NOTICES, "for (const suspicion of planNotices(change.before, after))", "for (const suspicion of [])")],
  },
  {
    name: "an agent does not act on notices",
    breaks: "recreate",
    profile: "calm",
    limit: 20_000,
    edits: [edit("host/agent/gc/own-allocations.ts", "this.hasten(parseNotice(notice));", "parseNotice(notice);")],
  },
  {
    name: "a pod that was deleted is not fenced",
    breaks: "retention",
    profile: "partition",
    limit: 60_000,
    edits: [edit(DECIDE, `status === "there" || `, "")],
  },
  {
    name: "what is retained is not looked for",
    breaks: "retention",
    profile: "statefulsets",
    limit: 60_000,
    edits: [
      edit(
        FIND_RETAINED,
        "const all = await registry.findRetained(member, target, deadline.signal);",
        "const all: readonly Allocation[] = [];",
      ),
    ],
  },
  {
    name: "an address is a member's before its claim is answered",
    breaks: "retention",
    profile: "statefulsets",
    limit: 200_000,
    edits: [
      edit(
        "host/registry/sqlite/journal.ts",
        "before === undefined || !isSameMember(workload, before)) return undefined;",
        "before === undefined || !isSameMember(workload, before)) return workload;",
      ),
    ],
  },
  {
    name: "no record says that its address is new to the member",
    breaks: "retention",
    profile: "statefulsets",
    violation: " had ",
    faults: 3,
    steps: 10_000,
    limit: 400_000,
    edits: [
      edit(
        "host/resources/member.ts",
        "return isFresh ? { ...workload, isFresh } : workload;",
        "return isFresh === undefined ? { ...workload, isFresh } : workload;",
      ),
    ],
  },
  {
    name: "another pod takes over what a member has just released",
    breaks: "retention",
    profile: "statefulsets",
    limit: 400_000,
    edits: [
      edit(
        "host/agent/ipam/sources/take-overs.ts",
        "!isChosen(each) && !isRetained(each)",
        "!isChosen(each) && isRetained !== undefined",
      ),
    ],
  },
  {
    name: "a NIC has what is retained for another NIC of the member",
    breaks: "review of correctness, 3",
    profile: "statefulsets",
    limit: 100_000,
    edits: [edit(KNOWN, " && (nic === undefined || nic === ifName)", ' && nic !== "-" && ifName !== "-"')],
  },
  {
    name: "nothing is collected",
    breaks: "leak",
    profile: "faults",
    limit: 100_000,
    edits: [
      edit(
        LEAK,
        `return isConfirmed ? { kind: "collect", reason } : { kind: "observe" };`,
        `return { kind: isConfirmed && reason === undefined ? "observe" : "observe" };`,
      ),
    ],
  },
  {
    name: "an older journal of this boot is believed",
    breaks: "clocks-and-boots",
    profile: "restores",
    limit: 200_000,
    edits: [edit(LOSS, "if (point.generation >= witness.generation) return undefined;", "return undefined;")],
  },
  {
    name: "rows of another boot keep their times",
    breaks: "clocks-and-boots",
    profile: "restores",
    limit: 400_000,
    edits: [
      edit(
        "host/registry/sqlite/memory-store.ts",
        "this.#transact(() => this.#store.coolDeadBoots(openedAtMs));",
        "void openedAtMs;",
      ),
    ],
  },
  {
    name: "a DEL of another network releases",
    breaks: "late-del; review of abuse, P8",
    profile: "runtimes",
    limit: 60_000,
    edits: [
      edit(
        STORE,
        'return network === undefined ? found : found.filter((each) => each.network === network || each.network === "");',
        "return found;",
      ),
    ],
  },
  {
    name: "a pod's own cooling address is not given back to it",
    breaks: "sandbox-restart",
    profile: "runtimes",
    limit: 60_000,
    edits: [
      edit(STORE, "if (!claim.skipOwnCooling && cooling.some(", "if (claim.skipOwnCooling && cooling.some("),
      edit(
        "host/agent/ipam/sources/own.ts",
        "if (!this.skipCooling) this.#assignCooling",
        "if (this.skipCooling) this.#assignCooling",
      ),
    ],
  },
  {
    name: "addresses are claimed for NICs of other plugins",
    breaks: "prefetch",
    profile: "runtimes",
    limit: 20_000,
    edits: [
      edit(
        "host/ipam/plan-prefetch.ts",
        "ipamConf !== undefined && !isAsking);",
        "!isAsking).map((nic) => ({ ...nic, ipamConf: nic.ipamConf ?? { ...nics[0]?.ipamConf } as IpamConf }));",
      ),
    ],
  },
  {
    name: "a static pod is not known under its hash",
    breaks: "static-pods",
    profile: "runtimes",
    limit: 200_000,
    edits: [edit(LEAK, "(uid === owner || configHash === owner)", "(uid === owner || configHash === undefined)")],
  },
  {
    name: "cooling addresses are not shown to other nodes",
    breaks: "cooling-visibility",
    profile: "scarce",
    limit: 200_000,
    edits: [
      edit(
        DECIDE,
        `if (!isPublic || object.state === "Cooling") return { kind: "wait" };`,
        `if (!isPublic || object.node === node) return { kind: "wait" };`,
      ),
    ],
  },
  {
    name: "other nodes' cooling addresses are not taken over",
    breaks: "cooling-visibility",
    profile: "scarce",
    limit: 60_000,
    edits: [
      edit(
        REGISTRY,
        "const foreign = await orRegistryError(this.#foreign.findCooling(spans, pool, FOR_POD));",
        "const foreign: readonly Allocation[] = [];",
      ),
    ],
  },
  {
    name: "a cooling address is aged by its node's wall clock",
    breaks: "cooling-visibility",
    profile: "scarce",
    limit: 100_000,
    edits: [
      edit(
        "host/registry/kubernetes/foreign-objects.ts",
        "sinceMs: this.#options.nowMs() };",
        `sinceMs: this.#options.nowMs() - (Date.now() - Date.parse(object.spec.since ?? "")) };`,
      ),
    ],
  },
  {
    name: "a cooling address is taken over at once",
    breaks: "cooling-visibility",
    profile: "scarce",
    limit: 60_000,
    edits: [edit("host/agent/add-deadline.ts", "MIN_COOLING_MS = 2_000", "MIN_COOLING_MS = 0")],
  },
  {
    name: "an address that another machine answers for is used",
    breaks: "conflict",
    profile: "conflicts",
    limit: 60_000,
    edits: [
      edit(
        "host/agent/detection/verify-addresses.ts",
        `if (conflict === undefined) return { kind: "silent", addresses };`,
        `if (conflict !== null) return { kind: "silent", addresses };`,
      ),
    ],
  },
  {
    name: "a machine that answers for all empties the pool",
    breaks: "conflict",
    profile: "conflicts",
    limit: 100_000,
    edits: [
      edit(
        "host/agent/detection/quarantine-prober.ts",
        "return mac !== undefined && this.#known().some((each) => each.pool === pool && each.mac === mac);",
        `return mac === "" && this.#known().some((each) => each.pool === pool);`,
      ),
    ],
  },
  {
    name: "a quarantine does not end",
    breaks: "conflict",
    profile: "conflicts",
    limit: 60_000,
    edits: [
      edit(
        "host/agent/detection/quarantine-prober.ts",
        `if (outcome === "silent") {`,
        `if (outcome === "silent" && this.#closed.signal.aborted) {`,
      ),
    ],
  },
  {
    name: "addresses of a NIC that never comes stay",
    breaks: "unattached",
    profile: "runtimes",
    limit: 100_000,
    edits: [
      edit(
        "host/agent/maintenance.ts",
        "registry.releaseUnattached(nowMs() - UNATTACHED_MS),",
        "Promise.resolve(nowMs() - UNATTACHED_MS),",
      ),
    ],
  },
  {
    name: "a full disk refuses an ADD for good",
    breaks: "full-disk",
    profile: "faults",
    limit: 300_000,
    edits: [
      edit(
        CLAIMS,
        "const outcome = await this.#journal.claim(claim);",
        "const outcome = await (this.#full ?? this.#journal.claim(claim).catch((error) => (this.#full = Promise.reject(error))));",
      ),
      edit(
        CLAIMS,
        "  readonly #open = new Set<OpenClaim>();",
        "  readonly #open = new Set<OpenClaim>();\n  #full: Promise<never> | undefined;",
      ),
    ],
  },
  {
    name: "reserved addresses are given to pods",
    breaks: "pool-changes",
    profile: "pools",
    limit: 200_000,
    edits: [
      edit("host/ipam/pool-cache.ts", "poolShape(pool, this.#reserved", "poolShape(pool, this.#reserved.slice(0, 0)"),
    ],
  },
  {
    name: "what is retained is looked for only after a claim",
    breaks: "review of correctness, 1",
    profile: "statefulsets",
    limit: 400_000,
    edits: [edit("host/agent/ipam/allocate.ts", "[this.#own, this.#retained, this.#free,", "[this.#own, this.#free,")],
  },
  {
    name: "a cooling address is taken over before what is retained is looked for",
    breaks: "review of correctness, 2",
    profile: "statefulsets",
    limit: 100_000,
    edits: [
      edit(
        "host/agent/ipam/allocate.ts",
        "[this.#own, this.#retained, this.#free, cooling, othersCooling, quarantined]",
        "[this.#own, this.#free, cooling, this.#retained, othersCooling, quarantined]",
      ),
      edit(
        RETAINED,
        "if (this.#found === undefined && isUnsure)",
        "if (this.#found === undefined && fresh.length === created.length && isUnsure)",
      ),
    ],
  },
  {
    name: "an address that another pool's pod uses stays in a pool",
    breaks: "[life of a pool](subnets.md#life-of-a-generated-pool)",
    profile: "subnets",
    steps: 12_000,
    violation: "in use by others",
    limit: 2_000_000,
    edits: [edit(PLAN_SUBNETS, "if (pool.name !== origin) pool.drop(address);", "")],
  },
  {
    name: "a Subnet gives an address to two pools",
    breaks: "[lock of a Subnet](subnets.md#why-no-address-is-in-two-pools)",
    profile: "subnets",
    violation: "is in two pools",
    limit: 60_000,
    edits: [
      edit("host/controller/subnets/plan/capacity.ts", "    this.network.gave(taken);\n", ""),
      edit(
        "host/controller/subnets/plan/free-spans.ts",
        "for (const span of spansOfAddresses(addresses)) this.remove(span);",
        "for (const span of spansOfAddresses(addresses)) if (span.last < 0n) this.remove(span);",
      ),
    ],
  },
  {
    name: "a pool gets addresses before its Subnet has assigned them",
    breaks: "[lock of a Subnet](subnets.md#why-no-address-is-in-two-pools)",
    profile: "subnets",
    violation: "has not assigned it",
    limit: 60_000,
    edits: [edit("host/controller/subnets/apply-plan.ts", "if (grows && !(await this.#reserve(all))) return;", "")],
  },
  {
    name: "a pool keeps what it no longer needs",
    breaks: "[life of a pool](subnets.md#life-of-a-generated-pool)",
    profile: "subnets",
    violation: "without use",
    limit: 200_000,
    edits: [
      edit(PLAN_SUBNETS, "if (spare <= 0 || pool.now === undefined) continue;", "if (pools.length >= 0) continue;"),
    ],
  },
  {
    name: "a pool gives back addresses in use",
    breaks: "[life of a pool](subnets.md#life-of-a-generated-pool)",
    profile: "subnets",
    violation: "was taken out of pool",
    limit: 400_000,
    edits: [
      edit(
        PLAN_SUBNETS,
        "giveBack(pool.target, spare, draft.isHeldIn(pool));",
        "giveBack(pool.target, spare, () => false);",
      ),
    ],
  },
  {
    name: "a pod has addresses of another workload's generated pool",
    breaks: "[owner of a pool](subnets.md#which-workload-owns-a-pool)",
    profile: "subnets",
    violation: "which is in ",
    limit: 60_000,
    edits: [
      edit("host/ipam/subnet-pools.ts", "pools.ofOwner?.(application) ?? pools.values()", "pools.values()"),
      edit("host/ipam/subnet-pools.ts", "poolOwnerKey(generated.application) === key &&", 'key !== "" &&'),
    ],
  },
  {
    name: "a pool serves namespaces that it is not for",
    breaks: "[tenants](security.md#what-a-tenant-can-do)",
    profile: "tenants",
    violation: "may not use that pool",
    limit: 60_000,
    edits: [edit("host/ipam/filters.ts", "spec.namespaceName.includes(name)) return", "name.length > 0) return")],
  },
  {
    name: "a Subnet serves namespaces that it is not for",
    breaks: "[tenants](security.md#what-a-tenant-can-do)",
    profile: "tenants",
    violation: "which is for others",
    limit: 60_000,
    edits: [
      edit("host/resources/subnet.ts", "if (spec.namespaceName.length > 0)", "if (spec.namespaceName.length > 9)"),
    ],
  },
  {
    name: "a pod has no limit of addresses",
    breaks: "[limits](security.md#what-one-tenant-may-hold)",
    profile: "tenants",
    violation: "addresses, and may have",
    limit: 60_000,
    edits: [edit(LIMITS, "perPod === 0 || most <= perPod ?", "perPod === 0 || most >= 0 ?")],
  },
  {
    name: "a namespace has no limit of addresses",
    breaks: "[limits](security.md#what-one-tenant-may-hold)",
    profile: "tenants",
    violation: "and still gets",
    limit: 200_000,
    edits: [edit(LIMITS, "limit === 0 || addresses < limit ?", "limit === 0 || addresses >= 0 ?")],
  },
  {
    name: "claims ahead for several NICs of a pod do not see one another",
    breaks: "[limits](security.md#what-one-tenant-may-hold)",
    profile: "tenants",
    violation: "addresses, and may have",
    limit: 60_000,
    edits: [
      edit("host/agent/prefetch/claim-ahead.ts", "if (demand.limits?.perPod !== undefined) throw leftToAdds();", ""),
    ],
  },
  {
    name: "a namespace's generated pools have no limit",
    breaks: "[limits](security.md#what-one-tenant-may-hold)",
    profile: "tenants",
    violation: "addresses together",
    limit: 60_000,
    edits: [
      edit(
        PLAN_SUBNETS,
        "Math.min(missing(), maxPoolSize - pool.size, draft.budgetOf(namespace))",
        "Math.min(missing(), maxPoolSize - pool.size)",
      ),
    ],
  },
  {
    name: "the target of a migration does not share the address",
    breaks: "retention",
    profile: "machines",
    violation: "has not migrated",
    limit: 400_000,
    edits: [edit("host/ipam/retention.ts", '? "migrating" : "alive"', '? "alive" : "alive"')],
  },
  {
    name: "the end of one of two launchers releases the address",
    breaks: "retention",
    profile: "machines",
    violation: "its record is Kept",
    limit: 100_000,
    edits: [
      edit(DECIDE, 'if (others !== undefined && object.deleting !== true) return { kind: "leave", others };', ""),
    ],
  },
  {
    name: "the address of an IPAMClaim is not retained for it",
    breaks: "[IPAMClaim](workloads.md#ipamclaim)",
    profile: "machines",
    limit: 100_000,
    edits: [edit("host/agent/ipam/demand.ts", "workloads.set(nic.ifName, workloadOfClaim(claim));", "")],
  },
];

/** Faults that a test notices: in what the simulation leaves out (sockets, files, admission, the coordinator), or too rare in it. */
export const TESTED_FAULTS: readonly TestedFault[] = [
  {
    name: "a missing mirror pod proves that its static pod has ended",
    breaks: "static-pods",
    test: ["unit", "test/unit/ipam/leak.test.ts"],
    edits: [edit(LEAK, "if (isStaticOwner(row.owner) && !isStaticGone(pod, netns)) return KEEP;", "")],
  },
  {
    name: "an object that a lost write may still change is believed",
    breaks: "sandbox-restart",
    test: ["unit", "test/unit/registry/kubernetes/late-writes.test.ts"],
    edits: [
      edit(
        DECIDE,
        `if (object.node === node && !isUnanswered) return { kind: "synced" };`,
        `if (object.node === node) return { kind: "synced" };`,
      ),
    ],
  },
  {
    name: "a claim is answered before the journal has confirmed it",
    breaks: "review of correctness, 5",
    test: ["unit", "test/unit/registry/kubernetes/whole-nics.test.ts"],
    edits: [edit(CLAIMS, "await this.#confirm(rows, results);", "void this.#confirm(rows, results).catch(() => {});")],
  },
  {
    name: "two agents open one registry",
    breaks: "single-agent",
    test: ["unit", "test/unit/registry/sqlite"],
    edits: [edit("host/registry/sqlite/lock.ts", "PRAGMA locking_mode = exclusive; ", "")],
  },
  {
    name: "an agent that ends breaks connections that it has not accepted",
    breaks: "single-agent; review of abuse, P3",
    test: ["unit", "test/unit/agent/server/socket-server.test.ts"],
    edits: [edit("host/agent/server/socket-server.ts", "  socket.acceptWaiting();\n  socket", "  socket")],
  },
  {
    name: "a registry that vanished is not missed",
    breaks: "review of abuse, P2",
    test: ["unit", "test/unit/registry/registry-loss.test.ts"],
    edits: [edit("host/registry/sqlite/find-loss.ts", "  if (isNew) return", '  if (isNew && file === "") return')],
  },
  {
    name: "a DEL does not get the reserve",
    breaks: "full-disk",
    test: ["unit", "test/unit/registry"],
    edits: [edit("host/registry/sqlite/batch.ts", "    this.#reserve.spend();\n", "")],
  },
  {
    name: "a container without a pod has no owner",
    breaks: "unknown-container",
    test: ["unit", "test/unit/agent/pod-identity.test.ts"],
    edits: [
      edit(
        "host/agent/ipam/pod-identity.ts",
        "hints.uid ?? known?.uid ?? hints.containerId",
        'hints.uid ?? known?.uid ?? ""',
      ),
    ],
  },
  {
    name: "a member is known without its namespace",
    breaks: "retention; review of security, C1",
    test: ["unit", "test/unit/resources/ip-allocation.test.ts"],
    edits: [
      edit(
        "host/resources/member.ts",
        "return one.namespace === other?.namespace && one.uid === other.uid &&",
        "return one.uid === other?.uid &&",
      ),
    ],
  },
  {
    name: "an agent writes objects of other nodes",
    breaks: "node-rights",
    test: ["cluster", "test/cluster/rights.test.ts"],
    edits: [
      edit(
        "deploy/policies.yaml",
        "variables.isOwn || variables.change == 'Cooling to Bound' || variables.isReturned ||",
        "true || variables.isOwn || variables.change == 'Cooling to Bound' || variables.isReturned ||",
      ),
    ],
  },
  {
    name: "an agent retains addresses for another node's pods",
    breaks: "node-rights; review of security, M3",
    test: ["cluster", "test/cluster/rights.test.ts"],
    edits: [
      edit(
        "deploy/policies.yaml",
        "!variables.isOfWorkload || variables.holders.all(holder, holder.namespace == variables.ofNamespace &&",
        "true || variables.holders.all(holder, holder.namespace == variables.ofNamespace &&",
      ),
    ],
  },
  {
    name: "a deleted pool loses its finalizer while addresses are in use",
    breaks: "pool-changes",
    test: ["unit", "test/unit/controller/finalizers"],
    edits: [
      edit(
        "host/controller/finalizers/plan-finalizers.ts",
        "if (waitMs <= 0 && !isHeld(pool.name))",
        "if (waitMs <= 0)",
      ),
      edit(
        "host/controller/finalizers/finalizer-controller.ts",
        "if (items.length > 0) return false;",
        "if (items.length < 0) return false;",
      ),
    ],
  },
  {
    name: "an address that is known to be another pod's is answered",
    breaks: "recreate; review of correctness, 6",
    test: ["unit", "test/unit/registry"],
    edits: [edit(CLAIMS, "row.isConfirmed !== true || this.#isLost(row)", "row.isConfirmed !== true")],
  },
  {
    name: "a deleted Subnet that cannot be decoded keeps its finalizer",
    breaks: "review of correctness, 7",
    test: ["unit", "test/unit/controller/subnets"],
    edits: [
      edit(
        "host/controller/subnets/release-unreadable.ts",
        "if (leaving.length === 0) return;",
        "if (leaving.length >= 0) return;",
      ),
    ],
  },
  {
    name: "a wake between the end of a pass and its bookkeeping is lost",
    breaks: "review of correctness, 8",
    test: ["unit", "test/unit/lib/periodic.test.ts"],
    edits: [
      edit(
        "host/lib/periodic.ts",
        "this.#running = this.#run().finally(() => {",
        "this.#running = this.#run().then(() => this.#scheduleWoken()).finally(() => {",
      ),
      edit(
        "host/lib/periodic.ts",
        "        // Not at the end of #run: a wake between that and here would be lost.\n        this.#scheduleWoken();\n",
        "",
      ),
    ],
  },
  {
    name: "cooling addresses of a former pool's name are not found",
    breaks: "cooling-visibility; review of real nodes, 3",
    test: ["unit", "test/unit/registry"],
    edits: [
      edit(
        "host/registry/kubernetes/foreign-objects.ts",
        "return ofPool.length > 0 ? ofPool : this.#listCooling(spans, {}, terms);",
        "return ofPool;",
      ),
    ],
  },
  {
    name: "a pool is full when the cache says so",
    breaks: "exhaustion",
    test: ["unit", "test/unit/agent/cluster/claims.test.ts"],
    edits: [
      edit(
        "host/agent/ipam/sources/free.ts",
        "return this.#usage.refresh(pools);",
        "return this.#usage === undefined && pools.length > 0;",
      ),
    ],
  },
  {
    name: "one family of two is undone",
    breaks: "undo; review of correctness, 4",
    test: ["unit", "test/unit/registry/kubernetes/whole-nics.test.ts"],
    edits: [
      edit(
        CLAIMS,
        "await this.undo(left.map(({ row }) => row));",
        'await this.undo(left.flatMap(({ row, outcome }) => (outcome.kind === "published" ? [] : [row])));',
      ),
    ],
  },
  {
    name: "the earlier pod of a member counts as another machine",
    breaks: "conflict; review of real nodes, 1",
    test: ["unit", "test/unit/agent/claim-verified.test.ts"],
    edits: [
      edit(
        "host/agent/ipam/claim-verified.ts",
        "if (allocation.predecessorNode !== undefined) throw awaitsLostNode(allocation, mac);",
        "",
      ),
    ],
  },
  {
    name: "a NIC of the pod itself counts as another machine",
    breaks: "conflict; review of real nodes, 2",
    test: ["unit", "test/unit/coordinator/probe.test.ts"],
    edits: [edit("host/coordinator/probe.ts", "context.ownMacs.has(mac) ||", "")],
  },
  {
    name: "what was never answered becomes the address of an IPAMClaim",
    breaks: "[IPAMClaim](workloads.md#ipamclaim)",
    test: ["unit", "test/unit/controller/owners/claim-status.test.ts"],
    edits: [edit("host/controller/owners/plan-claim-status.ts", "ofFamily.find(isSaid) ?? ofFamily[0]", "ofFamily[0]")],
  },
];
