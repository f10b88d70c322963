/** The faults that the simulation has to notice: each rule of docs/allocation.md switched off, and what reviews have found before. */
import type { Edit, Fault } from "./fault.ts";

const STORE = "host/registry/sqlite/store.ts";
const DECIDE = "host/registry/kubernetes/decide.ts";
const SYNC = "host/registry/kubernetes/object-sync.ts";
const CLAIMS = "host/registry/kubernetes/claim-publisher.ts";
const REGISTRY = "host/registry/kubernetes/kubernetes-registry.ts";
const KNOWN = "host/registry/kubernetes/known-object.ts";
const RETAINED = "host/agent/ipam/sources/retained.ts";
const COLLECTION = "host/controller/gc/plan-collection.ts";
const LEAK = "host/ipam/leak.ts";

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
    profile: "partition",
    limit: 60_000,
    edits: [
      edit(
        COLLECTION,
        `action: "quarantine",\n    why: "its pod is gone, and its node is not ready`,
        `action: "free",\n    why: "its pod is gone, and its node is not ready`,
      ),
    ],
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
    name: "an object that a lost write may still change is believed",
    breaks: "sandbox-restart",
    profile: "faults",
    faults: 4,
    limit: 200_000,
    edits: [
      edit(
        DECIDE,
        `return object.node === node && !isUnanswered ? { kind: "synced" } : bind;`,
        `return object.node === node ? { kind: "synced" } : bind;`,
      ),
    ],
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
    limit: 200_000,
    edits: [edit(CLAIMS, "await this.#undoAll(results, failed === undefined);\n    await", "await")],
  },
  {
    name: "a record that vanished is not created again",
    breaks: "recreate",
    profile: "calm",
    limit: 200_000,
    edits: [
      edit(SYNC, "if (address === undefined || !this.#states.noteEnd(change.name, change.uid)) return;", "return;"),
      edit(
        SYNC,
        "this.syncLater({ space: address.addressSpace, ip: address.ip });",
        "if (address !== undefined) this.syncLater({ space: address.addressSpace, ip: address.ip });",
      ),
      edit(
        "host/agent/gc/plan-reconciliation.ts",
        "return object === undefined || !isObjectOf(row, object, node);",
        "return false;",
      ),
    ],
  },
  {
    name: "a pod that was deleted is not fenced",
    breaks: "retention",
    profile: "partition",
    limit: 60_000,
    edits: [edit(DECIDE, `if (status === "there") return { kind: "taken", predecessorNode: holder.node };`, "")],
  },
  {
    name: "what is retained is not looked for",
    breaks: "retention",
    profile: "statefulsets",
    limit: 60_000,
    edits: [
      edit(
        RETAINED,
        "const all = await registry.findRetained(member, demand.deadline.signal);",
        "const all: readonly Allocation[] = [];",
      ),
    ],
  },
  {
    name: "that an address is new to a member is learned after the answer",
    breaks: "retention",
    profile: "statefulsets",
    limit: 200_000,
    edits: [edit(CLAIMS, "(isNew ? this.#noteNew(row) : this.#noteRetained(row))", "undefined")],
  },
  {
    name: "another pod takes over what a member has just released",
    breaks: "retention",
    profile: "statefulsets",
    limit: 200_000,
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
    name: "rows of another boot keep their times",
    breaks: "clocks-and-boots",
    profile: "partition",
    limit: 200_000,
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
    breaks: "late-del",
    profile: "runtimes",
    limit: 60_000,
    edits: [
      edit(
        STORE,
        "return network === undefined ? found : found.filter((each) => each.network === network);",
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
    name: "a missing mirror pod proves that its static pod has ended",
    breaks: "static-pods",
    profile: "runtimes",
    steps: 30_000,
    limit: 400_000,
    edits: [edit(LEAK, "if (isStaticOwner(row.owner) && !isStaticGone(pod, netns)) return KEEP;", "")],
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
    limit: 60_000,
    edits: [
      edit(
        DECIDE,
        `if (!isPublic || (object.state === "Cooling" && object.node === node)) return { kind: "wait" };`,
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
    name: "what is retained is looked for only after a claim",
    breaks: "review of correctness, 1",
    profile: "statefulsets",
    limit: 100_000,
    edits: [
      edit(
        "host/agent/ipam/allocate.ts",
        "[this.#own, this.#requested, this.#retained, this.#free,",
        "[this.#own, this.#requested, this.#free,",
      ),
    ],
  },
  {
    name: "a cooling address is taken over before what is retained is looked for",
    breaks: "review of correctness, 2",
    profile: "statefulsets",
    limit: 100_000,
    edits: [
      edit(
        "host/agent/ipam/allocate.ts",
        "[this.#own, this.#requested, this.#retained, this.#free, cooling, othersCooling, quarantined]",
        "[this.#own, this.#requested, this.#free, cooling, this.#retained, othersCooling, quarantined]",
      ),
      edit(
        RETAINED,
        "if (this.#found === undefined && (fresh.length > 0 || this.#isMovedByRequest(created))) {",
        "if (this.#found === undefined && fresh.length === created.length && (fresh.length > 0 || this.#isMovedByRequest(created))) {",
      ),
    ],
  },
  {
    name: "a claim is answered before the journal has confirmed it",
    breaks: "review of correctness, 5",
    profile: "partition",
    limit: 300_000,
    edits: [edit(CLAIMS, "await this.#confirm(rows, results);", "void this.#confirm(rows, results).catch(() => {});")],
  },
];
