/**
 * Attacks with the token of an agent, stolen from node b: on the addresses of node a, only a take-over succeeds, and
 * nothing is changed by an attempt that is refused. Policies alone refuse: on a real API server
 * (test/cluster/rights.test.ts), and on the fake (test/unit/fakes/admission/policies.test.ts).
 */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ALLOCATIONS, POOLS } from "../../lab/cluster/objects.ts";
import { FORCE_DELETE } from "../../lab/cluster/rights.ts";
import type { KubeClient, KubeObject } from "../../lab/kube-client.ts";
import {
  type Address,
  become,
  type Change,
  holderOn,
  OTHER_WORKLOAD,
  objectOf,
  outcomeOf,
  pathOf,
  placeObjects,
  type RightsClients,
  rewrite,
  snapshot,
  WORKLOAD,
} from "../rights-objects.ts";

type UpdateRow = readonly [what: string, address: Address, change: Change, wanted: RegExp];

/** As the policy says it. */
const ONLY_TAKE_OVER =
  /^403 .*belongs to node "a" .*the agent of node "b" may only take over what cools, what is of the same member of a workload, and what it had when it was taken for lost/;
const FOREIGN_HOLDER =
  /^403 .*would get a holder on node "a"; the agent of node "b" may only write pods of its own node/;
/** A pod of the namespace `evil`, and the set of `shop` as such a pod would name it. */
const EVIL_HOLDER = { ...holderOn("b", "u9"), namespace: "evil" };
const FORGED_WORKLOAD = { ...WORKLOAD, namespace: "evil" };
const FORGED =
  /^403 .*would be of \w+ \w*\/db, member db-[01], and of pod \w+\/db-0; a workload keeps addresses for pods of its namespace/;
/** A member of another set of the same namespace, of which no pod has the address. */
const INVENTED =
  /^403 .*would get another workload and go from \w+ to \w+; the agent of node "b" may only write a workload/;
const NEVER_HAD = /^403 .*would name a former holder that it never had/;
const LOST = { reason: "NodeLost" };
const OWN_NODE = /^403 .*would name node "\w+"; the agent of node "b" must name its own/;
/** As the kind's own rules say it, before any policy is asked. */
const KIND = /^422 .*another node may take over only an address that is Cooling/;

const UPDATES: readonly UpdateRow[] = [
  ["frees it", "10.6.0.1", (spec) => Object.assign(spec, { state: "Cooling", holders: [] }), ONLY_TAKE_OVER],
  ["frees it and names its own node", "10.6.0.1", become("Cooling", "b"), KIND],
  [
    "puts it into quarantine",
    "10.6.0.1",
    (spec) => Object.assign(spec, { state: "Quarantined", holders: [], quarantine: { reason: "NodeLost" } }),
    ONLY_TAKE_OVER,
  ],
  [
    "keeps it for a workload",
    "10.6.0.1",
    (spec) => Object.assign(spec, { state: "Kept", holders: [], workload: WORKLOAD }),
    ONLY_TAKE_OVER,
  ],
  ["changes its holder", "10.6.0.1", (spec) => Object.assign(spec.holders[0], { podUID: "u9" }), ONLY_TAKE_OVER],
  [
    "makes a pod of its own the holder",
    "10.6.0.1",
    (spec) => Object.assign(spec, { holders: [holderOn("b", "u9")] }),
    /^422 .*the node of a holder/,
  ],
  ["takes it over", "10.6.0.1", become("Bound", "b"), KIND],
  ["gives it a workload", "10.6.0.1", (spec) => Object.assign(spec, { workload: WORKLOAD }), ONLY_TAKE_OVER],
  ["moves it to another pool", "10.6.0.1", (spec) => Object.assign(spec, { pool: "red" }), ONLY_TAKE_OVER],
  ["changes its address", "10.6.0.1", (spec) => Object.assign(spec, { address: "10.6.0.99" }), /^422 .*immutable/],
  ["labels it", "10.6.0.1", (_, { metadata }) => Object.assign(metadata, { labels: { x: "y" } }), ONLY_TAKE_OVER],
  [
    "annotates it",
    "10.6.0.1",
    (_, { metadata }) => Object.assign(metadata, { annotations: { [FORCE_DELETE]: "true" } }),
    ONLY_TAKE_OVER,
  ],
  [
    "gives it a finalizer",
    "10.6.0.1",
    (_, { metadata }) => Object.assign(metadata, { finalizers: ["x.io/y"] }),
    ONLY_TAKE_OVER,
  ],
  [
    "gives it an owner that is gone",
    "10.6.0.1",
    (_, { metadata }) =>
      Object.assign(metadata, { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }] }),
    ONLY_TAKE_OVER,
  ],
  ["ends the cooling of what cools there", "10.6.0.2", become("Cooling", "b"), ONLY_TAKE_OVER],
  [
    "makes what cools younger",
    "10.6.0.2",
    (spec) => Object.assign(spec, { since: "2026-11-20T04:00:00Z" }),
    ONLY_TAKE_OVER,
  ],
  ["keeps what cools", "10.6.0.2", become("Kept", "b", { workload: WORKLOAD }), ONLY_TAKE_OVER],
  [
    "binds what cools to a pod of another node",
    "10.6.0.2",
    (spec) => Object.assign(spec, { state: "Bound", holders: [holderOn("a", "u9")] }),
    OWN_NODE,
  ],
  [
    "takes what is kept for a member over for another",
    "10.6.0.3",
    become("Bound", "b", { workload: OTHER_WORKLOAD }),
    KIND,
  ],
  [
    "takes what is kept over for the member of another namespace",
    "10.6.0.3",
    become("Bound", "b", { workload: FORGED_WORKLOAD }),
    KIND,
  ],
  [
    "takes what a workload has for that of another namespace",
    "10.6.0.6",
    become("Bound", "b", { workload: FORGED_WORKLOAD }),
    KIND,
  ],
  [
    "takes what a lost node had for the member of another namespace",
    "10.6.0.9",
    become("Bound", "b", { quarantine: undefined, workload: FORGED_WORKLOAD }),
    ONLY_TAKE_OVER,
  ],
  [
    "takes what an agent bound that wrote no namespace, for a workload of another one",
    "10.6.0.15",
    become("Bound", "b", { workload: FORGED_WORKLOAD, holders: [EVIL_HOLDER] }),
    KIND,
  ],
  ["takes what an agent kept that wrote no namespace", "10.6.0.16", become("Bound", "b", { workload: WORKLOAD }), KIND],
  [
    "takes what is kept over for a pod of another namespace",
    "10.6.0.3",
    become("Bound", "b", { workload: WORKLOAD, holders: [EVIL_HOLDER] }),
    FORGED,
  ],
  [
    "binds its own object for a workload of another namespace",
    "10.6.0.12",
    become("Bound", "b", { workload: FORGED_WORKLOAD }),
    FORGED,
  ],
  [
    "binds its own object for another member of the set",
    "10.6.0.12",
    become("Bound", "b", { workload: { ...WORKLOAD, member: "db-1" } }),
    FORGED,
  ],
  [
    "binds its own object for a workload of no namespace",
    "10.6.0.12",
    become("Bound", "b", { workload: { ...WORKLOAD, namespace: undefined } }),
    FORGED,
  ],
  [
    "keeps its own for a workload that it is not of",
    "10.6.0.11",
    become("Kept", "b", { workload: WORKLOAD }),
    INVENTED,
  ],
  ...(["kind", "namespace", "name", "uid", "member"] as const).map(
    (key): UpdateRow => [
      `keeps its own for a workload of another ${key}`,
      "10.6.0.17",
      become("Kept", "b", { workload: { ...WORKLOAD, [key]: "other" } }),
      INVENTED,
    ],
  ),
  ["keeps what cools", "10.6.0.12", become("Kept", "b", { workload: WORKLOAD }), INVENTED],
  [
    "keeps what cools after it was retained",
    "10.6.0.18",
    become("Kept", "b", { workload: WORKLOAD }),
    /^403 .*what cools is retained for no workload/,
  ],
  [
    "keeps what is in quarantine",
    "10.6.0.14",
    become("Kept", "b", { workload: WORKLOAD, quarantine: undefined }),
    INVENTED,
  ],
  [
    "keeps what it had when it was taken for lost, for another workload",
    "10.6.0.19",
    become("Kept", "b", { workload: OTHER_WORKLOAD, quarantine: undefined }),
    INVENTED,
  ],
  ["gives what cools a workload", "10.6.0.12", become("Cooling", "b", { workload: WORKLOAD }), INVENTED],
  ["gives what starts to cool a workload", "10.6.0.11", become("Cooling", "b", { workload: WORKLOAD }), INVENTED],
  [
    "gives what is in quarantine a workload",
    "10.6.0.14",
    become("Quarantined", "b", { workload: WORKLOAD, quarantine: LOST }),
    INVENTED,
  ],
  [
    "gives what goes into quarantine a workload",
    "10.6.0.11",
    become("Quarantined", "b", { workload: WORKLOAD, quarantine: LOST }),
    INVENTED,
  ],
  [
    "keeps what is kept, for another workload",
    "10.6.0.13",
    become("Kept", "b", { workload: OTHER_WORKLOAD }),
    INVENTED,
  ],
  [
    "lets what is kept cool, for another workload",
    "10.6.0.13",
    become("Cooling", "b", { workload: OTHER_WORKLOAD }),
    INVENTED,
  ],
  [
    "binds what is kept, for another workload",
    "10.6.0.13",
    become("Bound", "b", { workload: { ...WORKLOAD, uid: "other" } }),
    INVENTED,
  ],
  ["binds what is kept, for none", "10.6.0.13", become("Bound", "b", { workload: undefined }), INVENTED],
  [
    "leaves a shared address without its workload to the other",
    "10.6.0.7",
    (spec) => Object.assign(spec, { node: "a", holders: [spec.holders[0]], workload: undefined }),
    KIND,
  ],
  [
    "says that a pod of another node had it last",
    "10.6.0.17",
    become("Kept", "b", { workload: WORKLOAD, lastHolder: holderOn("a") }),
    NEVER_HAD,
  ],
  [
    "says that another pod of its own had it last",
    "10.6.0.17",
    become("Kept", "b", { workload: WORKLOAD, lastHolder: holderOn("b", "u9") }),
    NEVER_HAD,
  ],
  [
    "says that a pod of another node had what goes into quarantine",
    "10.6.0.11",
    become("Quarantined", "b", { quarantine: { ...LOST, holder: holderOn("a") } }),
    NEVER_HAD,
  ],
  ["takes over what is kept, without a workload", "10.6.0.3", become("Bound", "b", { workload: undefined }), KIND],
  ["lets what is kept cool and forgets for whom", "10.6.0.3", become("Cooling", "b", { workload: undefined }), KIND],
  [
    "lets what is kept cool in the name of its node",
    "10.6.0.3",
    (spec) => Object.assign(spec, { state: "Cooling" }),
    OWN_NODE,
  ],
  ["ends a quarantine", "10.6.0.4", become("Cooling", "b", { quarantine: undefined }), ONLY_TAKE_OVER],
  ["takes what is in quarantine", "10.6.0.4", become("Bound", "b", { quarantine: undefined }), ONLY_TAKE_OVER],
  ["ends the quarantine of a lost node", "10.6.0.5", become("Cooling", "b", { quarantine: undefined }), ONLY_TAKE_OVER],
  ["takes the address of a lost node", "10.6.0.5", become("Bound", "b", { quarantine: undefined }), ONLY_TAKE_OVER],
  [
    "takes what a lost node had",
    "10.6.0.8",
    become("Bound", "b", { quarantine: undefined }),
    /^403 .*belongs to node "c" .*may only take over/,
  ],
  [
    "frees what a lost node had",
    "10.6.0.10",
    become("Cooling", "b", { quarantine: undefined }),
    /^403 .*belongs to node "c" .*may only take over/,
  ],
  ["frees what a workload has", "10.6.0.6", become("Cooling", "b", { workload: WORKLOAD }), ONLY_TAKE_OVER],
  ["takes what a workload has for another", "10.6.0.6", become("Bound", "b", { workload: OTHER_WORKLOAD }), KIND],
  [
    "writes a second pod of that node beside it",
    "10.6.0.6",
    (spec) => spec.holders.push(holderOn("a", "u9")),
    OWN_NODE,
  ],
  [
    "frees a migrating machine's address",
    "10.6.0.7",
    become("Cooling", "b"),
    /^403 .*would lose its holder on node "a"/,
  ],
  [
    "adds a pod of that node to its own object",
    "10.6.0.11",
    (spec) => Object.assign(spec, { workload: WORKLOAD, holders: [holderOn("b"), holderOn("a", "u9")] }),
    FOREIGN_HOLDER,
  ],
  ["hands its own object to that node", "10.6.0.12", (spec) => Object.assign(spec, { node: "a" }), OWN_NODE],
  [
    "adds a finalizer to its own object",
    "10.6.0.12",
    (_, { metadata }) => Object.assign(metadata, { finalizers: ["x.io/y"] }),
    /^403 .*would get a finalizer or an owner reference/,
  ],
  [
    "gives its own object an owner",
    "10.6.0.12",
    (_, { metadata }) =>
      Object.assign(metadata, { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }] }),
    /^403 .*would get a finalizer or an owner reference/,
  ],
];

export function describeTheft(clients: () => RightsClients): void {
  describe("node-rights: with the token of another node's agent an attacker never", () => {
    let admin: KubeClient;
    let thief: KubeClient;
    beforeAll(() => {
      ({ admin, agent: thief } = clients());
    });
    beforeEach(() => placeObjects(admin));

    it.each(UPDATES)("%s (%s)", async (_, address, change, wanted) => {
      const before = await snapshot(admin);
      expect(await outcomeOf(rewrite(thief, address, change))).toMatch(wanted);
      expect(await outcomeOf(rewrite(thief, address, change, "?dryRun=All"))).toMatch(wanted);
      expect(await snapshot(admin)).toEqual(before);
    });

    it.each<[address: Address, wanted: RegExp]>([
      ["10.6.0.1", /^403 .*IPAllocation 10\.6\.0\.1 belongs to node "a"; the agent of node "b" may not delete it/],
      ["10.6.0.2", /^403 .*belongs to node "a"/],
      ["10.6.0.3", /^403 .*belongs to node "a"/],
      ["10.6.0.4", /^403 .*belongs to node "a"/],
      ["10.6.0.5", /^403 .*belongs to node "a"/],
      ["10.6.0.6", /^403 .*belongs to node "a"/],
      ["10.6.0.7", /^403 .*the agent of node "b" may not delete it/],
      ["10.6.0.13", /^403 .*is Kept for a member of a workload/],
    ])("deletes %s", async (address, wanted) => {
      const before = await snapshot(admin);
      for (const options of [{}, { gracePeriodSeconds: 0 }, { dryRun: ["All"] }, { propagationPolicy: "Orphan" }]) {
        expect(await outcomeOf(thief.delete(pathOf(address), options))).toMatch(wanted);
      }
      expect(await snapshot(admin)).toEqual(before);
    });

    it.each<[what: string, object: () => KubeObject, wanted: RegExp]>([
      [
        "in the name of that node",
        () => objectOf("10.6.0.50", { node: "a" }),
        /^403 .*names node "a"; the agent of node "b" makes objects of its own node alone/,
      ],
      [
        "with a pod of that node",
        () => objectOf("10.6.0.50", { node: "b", workload: WORKLOAD, holders: [holderOn("b"), holderOn("a", "u2")] }),
        FOREIGN_HOLDER,
      ],
      [
        "for another node's workload, with a pod of its own",
        () => objectOf("10.6.0.50", { node: "b", workload: WORKLOAD, holders: [EVIL_HOLDER] }),
        FORGED,
      ],
      [
        "for another member of its pod's set",
        () => objectOf("10.6.0.50", { node: "b", workload: { ...WORKLOAD, member: "db-1" }, holders: [holderOn("b")] }),
        FORGED,
      ],
      [
        "for a machine of another namespace",
        () =>
          objectOf("10.6.0.50", {
            node: "b",
            workload: { ...FORGED_WORKLOAD, kind: "VirtualMachine" },
            holders: [holderOn("b")],
          }),
        FORGED,
      ],
      [
        "for a workload of no namespace",
        () =>
          objectOf("10.6.0.50", {
            node: "b",
            workload: { ...WORKLOAD, namespace: undefined },
            holders: [holderOn("b")],
          }),
        FORGED,
      ],
      [
        "that cools",
        () => objectOf("10.6.0.50", { node: "b", state: "Cooling", holders: [] }),
        /^403 .*would begin as Cooling/,
      ],
      [
        "that is in quarantine, for a workload",
        () =>
          objectOf("10.6.0.50", { node: "b", state: "Quarantined", holders: [], workload: WORKLOAD, quarantine: LOST }),
        /^403 .*would be of StatefulSet shop\/db without a holder/,
      ],
      [
        "that is in quarantine because of a pod of that node",
        () =>
          objectOf("10.6.0.50", {
            node: "b",
            state: "Quarantined",
            holders: [],
            quarantine: { ...LOST, holder: holderOn("a") },
          }),
        NEVER_HAD,
      ],
      [
        "that is kept",
        () => objectOf("10.6.0.50", { node: "b", state: "Kept", holders: [], workload: WORKLOAD }),
        /^403 .*would begin as Kept/,
      ],
      [
        "with a finalizer",
        () => ({ ...objectOf("10.6.0.50", { node: "b" }), metadata: { name: "10.6.0.50", finalizers: ["x.io/y"] } }),
        /^403 .*would get a finalizer/,
      ],
      [
        "under another name",
        () => ({ ...objectOf("10.6.0.50", { node: "b" }), metadata: { name: "10.6.0.51" } }),
        /^422 .*the address/,
      ],
      ["where there is one", () => objectOf("10.6.0.1", { node: "b" }), /^409 /],
    ])("makes an object %s", async (_, object, wanted) => {
      const before = await snapshot(admin);
      for (const query of ["", "?dryRun=All"]) {
        expect(await outcomeOf(thief.create(`${ALLOCATIONS}${query}`, object()))).toMatch(wanted);
      }
      expect(await snapshot(admin)).toEqual(before);
    });

    it("gets further with a holder that is no pod than to its member, in its own name", async () => {
      const invented = holderOn("b", "no-pod");
      const made = objectOf("10.6.0.50", { node: "b", workload: WORKLOAD, holders: [invented] });
      await thief.create(ALLOCATIONS, made);
      const keep = (change: object): Promise<string> =>
        outcomeOf(rewrite(thief, "10.6.0.50", become("Kept", "b", { workload: WORKLOAD, ...change })));
      expect(await keep({ workload: OTHER_WORKLOAD })).toMatch(INVENTED);
      expect(await keep({ lastHolder: holderOn("b", "u1") })).toMatch(NEVER_HAD);
      expect(await keep({ lastHolder: invented })).toBe("done");
    });

    it("says anything of a pool but that it is wanted", async () => {
      await admin.patch(`${POOLS}/blue/status`, {
        status: {
          wanted: null,
          conditions: [
            { type: "Ready", status: "True", reason: "R", message: "", lastTransitionTime: "2026-11-20T04:00:00Z" },
          ],
        },
      });
      const say = (status: object) => outcomeOf(thief.patch(`${POOLS}/blue/status`, { status }));
      const refused =
        /^403 .*IPPool blue: the agent of node "b" may change status\.wanted and status\.waiting, and nothing else/;
      expect(await say({ conditions: [] })).toMatch(refused);
      expect(await say({ conditions: null })).toMatch(refused);
      expect(await say({ wanted: "2026-11-20T04:00:00Z", conditions: [] })).toMatch(refused);
      expect(await say({ wanted: "2026-11-20T04:00:00Z", waiting: 3 })).toBe("done");
      const { status } = await admin.get(`${POOLS}/blue`);
      expect([status.wanted, status.conditions.length]).toEqual(["2026-11-20T04:00:00Z", 1]);
    });
  });
}
