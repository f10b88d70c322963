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
  FRONT,
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

/** `last`: of 10.6.0.0/24. */
type UpdateRow = readonly [what: string, last: Last, change: Change, wanted: RegExp];
type LastOf<A> = A extends `10.6.0.${infer Last extends number}` ? Last : never;
type Last = LastOf<Address>;

/** As the policy says it. */
const ONLY_TAKE_OVER =
  /^403 .*belongs to node "a" .*the agent of node "b" may only take over what cools, what is of the same member of a workload, and what it had when it was taken for lost/;
const FOREIGN_HOLDER =
  /^403 .*would get a holder on node "a"; the agent of node "b" may only write pods of its own node/;
/** A pod of the namespace `evil`, and the set of `shop` as such a pod would name it. */
const EVIL_HOLDER = { ...holderOn("b", "u9"), namespace: "evil" };
const FORGED =
  /^403 .*would be of \w+ \w*\/db, member db-[01], and of pod \w+\/db-0; a workload keeps addresses for pods of its namespace/;
/** A member of another set of the same namespace, of which no pod has the address. */
const INVENTED =
  /^403 .*would get another workload and go from \w+ to \w+; the agent of node "b" may only write a workload/;
const NEVER_HAD = /^403 .*would name a former holder that it never had/;
const LOST = { reason: "NodeLost" };
const OF_A_SERVICE = /^403 .*belongs to node "-" .*may only take over/;
const OWN_NODE = /^403 .*would name node "\w+"; the agent of node "b" must name its own/;
/** As the kind's own rules say it, before any policy is asked. */
const KIND = /^422 .*another node may take over only an address that is Cooling/;

const A = holderOn("a", "u2");
const ON_B = { holders: [holderOn("b")] };
const ENDED = { quarantine: undefined };
const OF_DB = { workload: WORKLOAD };
const OF_OTHER = { workload: OTHER_WORKLOAD };
const OF_EVIL = { workload: { ...WORKLOAD, namespace: "evil" } };
const ofDb = (change: object) => ({ workload: { ...WORKLOAD, ...change } });
const OF_C = /^403 .*belongs to node "c" .*may only take over/;
const FINALIZER = /^403 .*would get a finalizer or an owner reference/;
const OWNERS = { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "x", uid: "x" }] };

const set =
  (change: object): Change =>
  (spec) =>
    Object.assign(spec, change);
const mark =
  (change: object): Change =>
  (_, { metadata }) =>
    Object.assign(metadata, change);
const take = (state: string, change?: object): Change => become(state, "b", change);

const UPDATES: readonly UpdateRow[] = [
  ["frees it", 1, set({ state: "Cooling", holders: [] }), ONLY_TAKE_OVER],
  ["frees it and names its own node", 1, take("Cooling"), KIND],
  ["puts it into quarantine", 1, set({ state: "Quarantined", holders: [], quarantine: LOST }), ONLY_TAKE_OVER],
  ["keeps it for a workload", 1, set({ state: "Kept", holders: [], ...OF_DB }), ONLY_TAKE_OVER],
  ["changes its holder", 1, (spec) => Object.assign(spec.holders[0], { podUID: "u9" }), ONLY_TAKE_OVER],
  ["makes a pod of its own the holder", 1, set({ holders: [holderOn("b", "u9")] }), /^422 .*the node of a holder/],
  ["takes it over", 1, take("Bound"), KIND],
  ["gives it a workload", 1, set(OF_DB), ONLY_TAKE_OVER],
  ["moves it to another pool", 1, set({ pool: "red" }), ONLY_TAKE_OVER],
  ["changes its address", 1, set({ address: "10.6.0.99" }), /^422 .*immutable/],
  ["labels it", 1, mark({ labels: { x: "y" } }), ONLY_TAKE_OVER],
  ["annotates it", 1, mark({ annotations: { [FORCE_DELETE]: "true" } }), ONLY_TAKE_OVER],
  ["gives it a finalizer", 1, mark({ finalizers: ["x.io/y"] }), ONLY_TAKE_OVER],
  ["gives it an owner that is gone", 1, mark(OWNERS), ONLY_TAKE_OVER],
  ["ends the cooling of an address there", 2, take("Cooling"), ONLY_TAKE_OVER],
  ["makes a cooling address younger", 2, set({ since: "2026-11-20T04:00:00Z" }), ONLY_TAKE_OVER],
  ["keeps a cooling address", 2, take("Kept", OF_DB), ONLY_TAKE_OVER],
  ["binds one that cools to another node's pod", 2, set({ state: "Bound", holders: [holderOn("a", "u9")] }), OWN_NODE],
  ["takes an address kept for a member over for another", 3, take("Bound", OF_OTHER), KIND],
  ["takes a kept address over for the member of another namespace", 3, take("Bound", OF_EVIL), KIND],
  ["takes a workload's address for that of another namespace", 6, take("Bound", OF_EVIL), KIND],
  ["takes a lost node's address, for another namespace", 9, take("Bound", { ...ENDED, ...OF_EVIL }), ONLY_TAKE_OVER],
  ["takes one without a namespace, for another", 15, take("Bound", { ...OF_EVIL, holders: [EVIL_HOLDER] }), KIND],
  ["takes an address that an agent kept without a namespace", 16, take("Bound", OF_DB), KIND],
  ["takes a kept address, for another namespace's pod", 3, take("Bound", { ...OF_DB, holders: [EVIL_HOLDER] }), FORGED],
  ["binds its own object for a workload of another namespace", 12, take("Bound", OF_EVIL), FORGED],
  ["binds its own object for another member of the set", 12, take("Bound", ofDb({ member: "db-1" })), FORGED],
  ["binds its own object for a workload of no namespace", 12, take("Bound", ofDb({ namespace: undefined })), FORGED],
  [
    "takes what a Service has for its pod",
    20,
    take("Bound", { holders: [holderOn("b")], workload: FRONT }),
    OF_A_SERVICE,
  ],
  ["lets a Service's address cool", 20, take("Cooling", { workload: FRONT }), OF_A_SERVICE],
  ["lets an address cool that a set names", 21, take("Cooling", OF_DB), OF_A_SERVICE],
  ["takes an address that a set names for its other pod", 21, take("Bound", OF_OTHER), KIND],
  ["keeps its own for a workload that it is not of", 11, take("Kept", OF_DB), INVENTED],
  ...(["kind", "namespace", "name", "uid", "member"] as const).map(
    (key): UpdateRow => [`keeps its own for another ${key}`, 17, take("Kept", ofDb({ [key]: "other" })), INVENTED],
  ),
  ["keeps a cooling address", 12, take("Kept", OF_DB), INVENTED],
  ["keeps a cooling one that was retained", 18, take("Kept", OF_DB), /^403 .*what cools is retained for no workload/],
  ["keeps a quarantined address", 14, take("Kept", { ...OF_DB, ...ENDED }), INVENTED],
  ["keeps its former one for another workload", 19, take("Kept", { ...OF_OTHER, ...ENDED }), INVENTED],
  ["gives a cooling address a workload", 12, take("Cooling", OF_DB), INVENTED],
  ["gives an address that starts to cool a workload", 11, take("Cooling", OF_DB), INVENTED],
  ["gives a quarantined address a workload", 14, take("Quarantined", { ...OF_DB, quarantine: LOST }), INVENTED],
  ["gives one to be quarantined a workload", 11, take("Quarantined", { ...OF_DB, quarantine: LOST }), INVENTED],
  ["keeps a kept address, for another workload", 13, take("Kept", OF_OTHER), INVENTED],
  ["lets a kept address cool, for another workload", 13, take("Cooling", OF_OTHER), INVENTED],
  ["binds a kept address, for another workload", 13, take("Bound", ofDb({ uid: "other" })), INVENTED],
  ["binds a kept address, for none", 13, take("Bound", { workload: undefined }), INVENTED],
  [
    "leaves a shared address without its workload to the other",
    7,
    (spec) => Object.assign(spec, { node: "a", holders: [spec.holders[0]], workload: undefined }),
    KIND,
  ],
  ["says that a pod of another node had it last", 17, take("Kept", { ...OF_DB, lastHolder: holderOn("a") }), NEVER_HAD],
  ["says that its other pod had it last", 17, take("Kept", { ...OF_DB, lastHolder: holderOn("b", "u9") }), NEVER_HAD],
  ["quarantines it as that node's", 11, take("Quarantined", { quarantine: { ...LOST, holder: A } }), NEVER_HAD],
  ["takes over a kept address, without a workload", 3, take("Bound", { workload: undefined }), KIND],
  ["lets a kept address cool and forgets its workload", 3, take("Cooling", { workload: undefined }), KIND],
  ["lets a kept address cool in the name of its node", 3, set({ state: "Cooling" }), OWN_NODE],
  ["ends a quarantine", 4, take("Cooling", ENDED), ONLY_TAKE_OVER],
  ["takes a quarantined address", 4, take("Bound", ENDED), ONLY_TAKE_OVER],
  ["ends the quarantine of a lost node", 5, take("Cooling", ENDED), ONLY_TAKE_OVER],
  ["takes the address of a lost node", 5, take("Bound", ENDED), ONLY_TAKE_OVER],
  ["takes a lost node's address", 8, take("Bound", ENDED), OF_C],
  ["frees a lost node's address", 10, take("Cooling", ENDED), OF_C],
  ["frees a workload's address", 6, take("Cooling", OF_DB), ONLY_TAKE_OVER],
  ["takes a workload's address for another", 6, take("Bound", OF_OTHER), KIND],
  ["writes a second pod of that node beside it", 6, (spec) => spec.holders.push(holderOn("a", "u9")), OWN_NODE],
  ["frees a migrating machine's address", 7, take("Cooling"), /^403 .*would lose its holder on node "a"/],
  ["adds a pod of that node to its own", 11, set({ ...OF_DB, holders: [holderOn("b"), A] }), FOREIGN_HOLDER],
  ["hands its own object to that node", 12, set({ node: "a" }), OWN_NODE],
  ["adds a finalizer to its own object", 12, mark({ finalizers: ["x.io/y"] }), FINALIZER],
  ["gives its own object an owner", 12, mark(OWNERS), FINALIZER],
];

/** An object of node b, Bound unless the specification says otherwise. */
function ownObject(spec: object, metadata: object = { name: "10.6.0.50" }): KubeObject {
  return { ...objectOf("10.6.0.50", { node: "b", ...spec }), metadata };
}

export function describeTheft(clients: () => RightsClients): void {
  describe("node-rights: with the token of another node's agent an attacker never", () => {
    let admin: KubeClient;
    let thief: KubeClient;
    beforeAll(() => {
      ({ admin, agent: thief } = clients());
    });
    beforeEach(() => placeObjects(admin));

    it.each(UPDATES)("%s (10.6.0.%i)", async (_, last, change, wanted) => {
      const address: Address = `10.6.0.${last}`;
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

    it.each<[what: string, object: KubeObject, wanted: RegExp]>([
      [
        "in the name of that node",
        ownObject({ node: "a" }),
        /^403 .*names node "a"; the agent of node "b" makes objects of its own node alone/,
      ],
      ["with a pod of that node", ownObject({ ...OF_DB, holders: [holderOn("b"), A] }), FOREIGN_HOLDER],
      ["for another node's workload, with a pod of its own", ownObject({ ...OF_DB, holders: [EVIL_HOLDER] }), FORGED],
      ["for another member of its pod's set", ownObject({ ...ofDb({ member: "db-1" }), ...ON_B }), FORGED],
      ["for another namespace's machine", ownObject({ ...ofDb({ namespace: "evil", kind: "VM" }), ...ON_B }), FORGED],
      ["for a workload of no namespace", ownObject({ ...ofDb({ namespace: undefined }), ...ON_B }), FORGED],
      ["that cools", ownObject({ state: "Cooling", holders: [] }), /^403 .*would begin as Cooling/],
      [
        "that is in quarantine, for a workload",
        ownObject({ state: "Quarantined", holders: [], ...OF_DB, quarantine: LOST }),
        /^403 .*would be of StatefulSet shop\/db without a holder/,
      ],
      [
        "that is in quarantine because of a pod of that node",
        ownObject({ state: "Quarantined", holders: [], quarantine: { ...LOST, holder: holderOn("a") } }),
        NEVER_HAD,
      ],
      ["that is kept", ownObject({ state: "Kept", holders: [], ...OF_DB }), /^403 .*would begin as Kept/],
      ["with a finalizer", ownObject({}, { name: "10.6.0.50", finalizers: ["x.io/y"] }), FINALIZER],
      ["under another name", ownObject({}, { name: "10.6.0.51" }), /^422 .*the address/],
      ["where there is one", objectOf("10.6.0.1", { node: "b" }), /^409 /],
    ])("makes an object %s", async (_, object, wanted) => {
      const before = await snapshot(admin);
      for (const query of ["", "?dryRun=All"]) {
        expect(await outcomeOf(thief.create(`${ALLOCATIONS}${query}`, object))).toMatch(wanted);
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
