/**
 * Writes of each account to allocations under deploy/policies.yaml: agents have those that the life of an address
 * needs, the controller those that are no agent's, and administrators all but the deletion of an address in use. On a
 * real API server (test/cluster/rights-accounts.test.ts), and on the fake (test/unit/fakes/admission/policies.test.ts).
 */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ALLOCATIONS } from "../../lab/cluster/objects.ts";
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

type Row = readonly [what: string, address: Address, change: Change | "delete"];

const attempt = (client: KubeClient, address: Address, change: Change | "delete"): Promise<unknown> =>
  change === "delete" ? client.delete(pathOf(address)) : rewrite(client, address, change);

const quarantine = { reason: "Conflict", mac: "02:00:00:00:00:07", parent: "eth0" };
const MACHINE = { ...WORKLOAD, kind: "VirtualMachine", member: "db" };
/** Without the NIC, as an older agent writes it. */
const FRESHLESS = { ...WORKLOAD, ifName: undefined };
const RECREATED = { ...WORKLOAD, uid: "recreated" };
const without = { quarantine: undefined };
const OF_DB = { workload: WORKLOAD };

export function describeAccounts(clients: () => RightsClients & { readonly controller: KubeClient }): void {
  let admin: KubeClient;
  let agent: KubeClient;
  let controller: KubeClient;
  beforeAll(() => {
    ({ admin, agent, controller } = clients());
  });
  beforeEach(() => placeObjects(admin));

  describe("node-rights: the agent of a node", () => {
    it.each<Row>([
      ["lets its own cool", "10.6.0.11", become("Cooling", "b")],
      ["keeps its own", "10.6.0.17", become("Kept", "b", { ...OF_DB, lastHolder: holderOn("b") })],
      ["keeps its own and does not say whose it was", "10.6.0.17", become("Kept", "b", { workload: FRESHLESS })],
      [
        "keeps what it had when lost",
        "10.6.0.19",
        become("Kept", "b", { ...without, ...OF_DB, lastHolder: holderOn("b") }),
      ],
      ["lets its own cool that was a member's", "10.6.0.17", become("Cooling", "b", { workload: undefined })],
      [
        "binds what a set names to the set's pod",
        "10.6.0.21",
        become("Bound", "b", { ...OF_DB, holders: [holderOn("b")] }),
      ],
      ["binds its own to the pod of a recreated set", "10.6.0.17", become("Bound", "b", { workload: RECREATED })],
      ["lets a kept address cool", "10.6.0.13", become("Cooling", "b", OF_DB)],
      ["puts its own into quarantine", "10.6.0.11", become("Quarantined", "b", { quarantine })],
      ["binds its own to the next pod", "10.6.0.11", become("Bound", "b")],
      ["deletes its own in use", "10.6.0.11", "delete"],
      ["binds a cooling address again", "10.6.0.12", become("Bound", "b")],
      ["deletes a cooled address", "10.6.0.12", "delete"],
      ["binds a kept address", "10.6.0.13", become("Bound", "b", OF_DB)],
      ["ends a quarantine of its own", "10.6.0.14", become("Cooling", "b", without)],
      ["deletes an address that was in quarantine", "10.6.0.14", "delete"],
      ["takes over an address that cools elsewhere", "10.6.0.2", become("Bound", "b")],
      ["takes over an address kept for the member", "10.6.0.3", become("Bound", "b", OF_DB)],
      ["lets an address cool that is kept for the member", "10.6.0.3", become("Cooling", "b", OF_DB)],
      ["takes over the address of an earlier pod of the member", "10.6.0.6", become("Bound", "b", OF_DB)],
      ["takes over an address that an agent bound without a namespace", "10.6.0.15", become("Bound", "b", OF_DB)],
      [
        "shares the address of a machine that migrates here",
        "10.6.0.6",
        (spec) => Object.assign(spec, { node: "b", holders: [...spec.holders, holderOn("b", "u9")] }),
      ],
      ["leaves it to the other", "10.6.0.7", (spec) => Object.assign(spec, { node: "a", holders: [spec.holders[0]] })],
      ["binds its address from before it was taken for lost", "10.6.0.10", become("Bound", "b", without)],
      ["binds its own to a pod of a set", "10.6.0.12", become("Bound", "b", OF_DB)],
      ["takes over a lost node's address of the member", "10.6.0.9", become("Bound", "b", { ...without, ...OF_DB })],
    ])("%s (%s)", async (_, address, change) => {
      expect(await outcomeOf(attempt(agent, address, change))).toBe("done");
    });

    it("makes Bound and Quarantined objects of its own", async () => {
      const made = [
        objectOf("10.6.0.50", { node: "b" }),
        objectOf("10.6.0.51", { node: "b", state: "Quarantined", holders: [], quarantine }),
        objectOf("10.6.0.52", { node: "b", workload: WORKLOAD, holders: [holderOn("b")] }),
        objectOf("10.6.0.53", { node: "b", workload: MACHINE, holders: [holderOn("b")] }),
      ];
      for (const object of made) expect(await outcomeOf(agent.create(ALLOCATIONS, object))).toBe("done");
    });

    it("deletes nothing that another node shares", async () => {
      expect(await outcomeOf(agent.delete(pathOf("10.6.0.7")))).toMatch(/^403 .*may not delete it/);
    });
  });

  describe("the controller", () => {
    const NO_HAND_OUT =
      /^403 .*the controller ends allocations, records what Nodes and Services have and workloads name, and never/;
    const OF_DB_KEPT = { ...OF_DB, state: "Kept" };
    const lost = (pod: object) => ({ ...without, quarantine: { reason: "NodeLost", ...pod } });
    const itsHolder = { ...holderOn("a"), pod: "web-0" };

    it.each<Row>([
      ["quarantines a lost node's address", "10.6.0.1", become("Quarantined", "a", lost({ holder: itsHolder }))],
      ["keeps the address of a node that is off", "10.6.0.6", become("Kept", "a", OF_DB)],
      ["and says whose it was", "10.6.0.17", become("Kept", "b", { ...OF_DB, lastHolder: holderOn("b") })],
      ["keeps an address that an agent bound without a namespace", "10.6.0.15", become("Kept", "a", OF_DB)],
      ["names the set that was made again", "10.6.0.6", (spec) => Object.assign(spec, { workload: RECREATED })],
      ["frees the address of a node that is off", "10.6.0.1", "delete"],
      ["lets one kept without a workload cool", "10.6.0.3", become("Cooling", "a", { workload: undefined })],
      ["tells another node to probe", "10.6.0.5", become("Quarantined", "b", lost({}))],
      ["keeps a quarantined address", "10.6.0.9", become("Kept", "a", { ...without, ...OF_DB })],
      ["deletes a cooled address", "10.6.0.2", "delete"],
      ["deletes a quarantined address", "10.6.0.5", "delete"],
      ["records a Service's address that cools", "10.6.0.2", become("Kept", "-", { workload: FRONT })],
      ["records that it is a Node's now", "10.6.0.20", become("Kept", "-", { workload: { ...FRONT, kind: "Node" } })],
      ["lets it cool", "10.6.0.20", become("Cooling", "-", { workload: undefined })],
      ["records that it is of the set that was made again", "10.6.0.21", become("Kept", "-", { workload: RECREATED })],
      ["lets an address cool that a set names no longer", "10.6.0.21", become("Cooling", "-", { workload: undefined })],
    ])("%s (%s)", async (_, address, change) => {
      expect(await outcomeOf(attempt(controller, address, change))).toBe("done");
    });

    it("records Services' and sets' addresses and free ones, and makes nothing else", async () => {
      const make = (spec: object, address = "10.6.0.99") =>
        outcomeOf(controller.create(ALLOCATIONS, objectOf(address, { node: "-", holders: [], ...spec } as never)));
      const kept = { state: "Kept", workload: FRONT };
      const lastHolder = holderOn("a");
      for (const other of [
        { state: "Bound", node: "a", holders: [holderOn("a")] },
        { ...kept, node: "a" },
      ])
        expect(await make(other)).toMatch(NO_HAND_OUT);
      expect(await make({ ...OF_DB_KEPT, lastHolder })).toMatch(NO_HAND_OUT);
      expect(await make(kept)).toBe("done");
      expect(await make(OF_DB_KEPT, "10.6.0.98")).toBe("done");
    });

    it("sends a notice to a node's agent, and another one, and removes it", async () => {
      for (const value of ["1 10.6.0.1", "2 *", null]) {
        const annotations = { "ipam.vendor.io/read-allocations": value };
        expect(await outcomeOf(controller.patch("/api/v1/nodes/a", { metadata: { annotations } }))).toBe("done");
      }
    });

    const KIND = /^422 .*another node may take over only an address that is Cooling/;
    const NEVER_HAD = /^403 .*would name a former holder that it never had/;
    const OTHER_WORKLOAD_OF = /^403 .*would get another workload .*the controller retains an address for the workload/;
    it.each<[...Row, wanted: RegExp]>([
      ["binds a cooling address", "10.6.0.2", become("Bound", "a"), NO_HAND_OUT],
      ["binds a quarantined address", "10.6.0.5", become("Bound", "a", without), NO_HAND_OUT],
      ["binds a kept address", "10.6.0.3", become("Bound", "a", OF_DB), NO_HAND_OUT],
      ["gives an address another holder", "10.6.0.1", become("Bound", "a"), NO_HAND_OUT],
      ["lets an address in use cool", "10.6.0.1", become("Cooling", "a"), NO_HAND_OUT],
      ["deletes a kept address", "10.6.0.3", "delete", NO_HAND_OUT],
      ["gives a Service a pod's address", "10.6.0.1", become("Kept", "-", { workload: FRONT }), KIND],
      ["gives a Service a kept address", "10.6.0.3", become("Kept", "-", { workload: FRONT }), KIND],
      ["keeps a cooling address for a set", "10.6.0.2", become("Kept", "-", OF_DB), NO_HAND_OUT],
      ["gives a Service a set's address", "10.6.0.21", become("Kept", "-", { workload: FRONT }), NO_HAND_OUT],
      ["reserves for another set", "10.6.0.21", become("Kept", "-", { workload: OTHER_WORKLOAD }), NO_HAND_OUT],
      ["takes a cooling address for a conflict", "10.6.0.2", become("Quarantined", "a", { quarantine }), NO_HAND_OUT],
      ["keeps an address that is no workload's", "10.6.0.1", become("Kept", "a", OF_DB), OTHER_WORKLOAD_OF],
      [
        "puts it into quarantine for a pod that never had it",
        "10.6.0.1",
        become("Quarantined", "a", lost({ holder: holderOn("a") })),
        NEVER_HAD,
      ],
      ["keeps a set's for another", "10.6.0.6", become("Kept", "a", { workload: RECREATED }), OTHER_WORKLOAD_OF],
      [
        "names another member of the set",
        "10.6.0.6",
        (spec) => Object.assign(spec, { workload: { ...RECREATED, member: "db-1" } }),
        NO_HAND_OUT,
      ],
      [
        "names a set made again, and another pod",
        "10.6.0.6",
        become("Bound", "a", { workload: RECREATED }),
        NO_HAND_OUT,
      ],
      [
        "says that another pod had it",
        "10.6.0.6",
        become("Kept", "a", { ...OF_DB, lastHolder: holderOn("a", "u9") }),
        NEVER_HAD,
      ],
      [
        "moves what is kept",
        "10.6.0.3",
        become("Cooling", "b", OF_DB),
        /^403 .*from node "a" to "b"; the controller hands only what is in quarantine/,
      ],
    ])("never %s (%s)", async (_, address, change, wanted) => {
      const before = await snapshot(admin);
      expect(await outcomeOf(attempt(controller, address, change))).toMatch(wanted);
      expect(await snapshot(admin)).toEqual(before);
    });
  });

  describe("recreate: an administrator", () => {
    const BOUND =
      /^403 .*IPAllocation 10\.6\.0\.1 is Bound to pod shop\/web-0 on node "a"; delete the pod.*kubectl annotate ipallocations\.ipam\.vendor\.io 10\.6\.0\.1 ipam\.vendor\.io\/force-delete=true/;

    it("cannot delete an address in use, nor all addresses at once", async () => {
      expect(await outcomeOf(admin.delete(pathOf("10.6.0.1")))).toMatch(BOUND);
      expect(await outcomeOf(admin.delete(pathOf("10.6.0.1"), { gracePeriodSeconds: 0 }))).toMatch(BOUND);
      expect(await outcomeOf(admin.delete(ALLOCATIONS))).toMatch(/^403 .*is Bound to pod/);
      const { items } = await admin.get(ALLOCATIONS);
      const bound = items.filter(({ spec }: KubeObject) => spec.state === "Bound");
      expect(bound.map(({ metadata }: KubeObject) => metadata.name)).toEqual([
        "10.6.0.1",
        "10.6.0.11",
        "10.6.0.15",
        "10.6.0.17",
        "10.6.0.6",
        "10.6.0.7",
      ]);
    });

    it("can when it was said first", async () => {
      const say = (value: string) =>
        admin.patch(pathOf("10.6.0.1"), { metadata: { annotations: { [FORCE_DELETE]: value } } });
      await say("yes");
      expect(await outcomeOf(admin.delete(pathOf("10.6.0.1")))).toMatch(BOUND);
      await say("true");
      expect(await outcomeOf(admin.delete(pathOf("10.6.0.1")))).toBe("done");
      expect(await outcomeOf(admin.get(pathOf("10.6.0.1")))).toMatch(/^404 /);
    });

    it.each<Address>(["10.6.0.2", "10.6.0.3", "10.6.0.4", "10.6.0.5"])(
      "deletes %s, which no pod uses",
      async (address) => {
        expect(await outcomeOf(admin.delete(pathOf(address)))).toBe("done");
      },
    );
  });
}
