/**
 * retention: of several recorded addresses of a member the one that it had before; and what a machine has that
 * migrates.
 */

import { describe, expect, it } from "vitest";
import type { HolderStatus } from "../../../../host/ipam/retention.ts";
import type { Adoption } from "../../../../host/registry/journal.ts";
import type { LiveStatus } from "../../../../host/registry/kubernetes/decide.ts";
import type { Claim } from "../../../../host/registry/registry.ts";
import type { StoredObject } from "../../../fakes/memory-api-server.ts";
import { type ClusterNode, decodeStored, observe, openClusterNode } from "../../../world/node.ts";
import { claim, claimAndRetain, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";
import { COOLDOWN_MS } from "../registry-suite.ts";

const NAME = "10.0.0.1";
const OTHER = "10.0.0.2";
const FIRST = { containerId: "c-a", ifName: "eth0" };
const SET = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" };
const MACHINE = { ...SET, kind: "VirtualMachine", member: "db" };

/** Returns the API server's record of each address: its state, and whether it may never have been answered. */
const records = ({ server }: ClusterNode) =>
  [...server.objects.values()].map((object) => {
    const { state, workload } = decodeStored(object).spec;
    return `${object.metadata.name} ${state}${workload?.isFresh === true ? " fresh" : ""}`;
  });

const ofSet = (owner: string, replaces?: number): Claim =>
  claim(owner, [proposal(NAME, replaces === undefined ? {} : { replaces })], { workload: SET });

const kept = async ({ registry }: ClusterNode) => (await registry.findRetained(SET))[0]?.version;

/** Loses the journal of a node, whose agent then takes in the address of a pod that was not answered, and is gone. */
async function lose(node: ClusterNode): Promise<ClusterNode> {
  const after = await openClusterNode({ server: node.server });
  for (const object of [...node.server.objects.values()]) {
    const { ip, pool, prefixLength, holders, workload } = decodeStored(object).spec;
    const { podUid: owner = "", pod = "" } = holders[0] ?? {};
    const adoption: Adoption = {
      ...{ space: "", ip, pool, prefixLength, state: "Bound", owner, ifName: "eth0", namespace: "shop", pod, workload },
    };
    const row = await after.registry.adopt(adoption);
    if (row !== undefined) await after.registry.collect(row);
  }
  await after.pass(COOLDOWN_MS);
  return after;
}

describe("a member's address is fresh", () => {
  it("until a pod that was answered with it is gone", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofSet("a"));
    expect(records(node)).toEqual([`${NAME} Bound fresh`]);
    await node.registry.release(FIRST);
    await node.pass(0);
    expect(records(node)).toEqual([`${NAME} Kept`]);
  });

  it("and its next pod gets it on a node that was asked to probe it, and has not heard that it is the member's again", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofSet("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    const [retained] = [...node.server.objects.values()].map(({ spec }) => spec);
    const quarantine = { reason: "NodeLost" };
    node.server.edit(NAME, (spec) => ({ ...spec, state: "Quarantined", node: "n2", quarantine }));
    const prober = await openClusterNode({ server: node.server, name: "n2" });
    const place = {
      space: "",
      ip: ip(NAME),
      pool: "blue",
      prefixLength: 24,
      owner: "",
      ifName: "",
      namespace: "",
      pod: "",
    };
    const unprobed = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 0 } as const;
    await prober.registry.adopt({ ...place, state: "Quarantined", quarantine: unprobed });
    await prober.registry.idle();
    node.server.edit(NAME, () => ({ ...retained }));
    expect(await prober.registry.claim(ofSet("b", await kept(prober)))).toMatchObject({ kind: "bound" });
    expect(records(prober)).toEqual([`${NAME} Bound`]);
  });

  it("and not for its next pods, whether they are answered or not", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofSet("a"));
    await node.registry.release(FIRST);
    await node.pass(0);
    const other = await openClusterNode({ server: node.server, name: "n2" });
    expect(await other.registry.claim(ofSet("b", await kept(other)))).toMatchObject({ fresh: [] });
    expect(records(other)).toEqual([`${NAME} Bound`]);
    expect(records(await lose(other))).toEqual([`${NAME} Bound`]);
  });

  it("not for the next pod on its node either, which has it before it is retained", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofSet("a"));
    node.gate = () => new Promise(() => {});
    const [cooling] = await node.registry.release(FIRST);
    node.gate = async (_call, commit) => commit();
    const row = await node.registry.findAddress("", ip(NAME));
    expect(cooling).toBeDefined();
    await node.open();
    expect(await node.registry.claim(ofSet("b", row?.version ?? 0))).toMatchObject({ fresh: [] });
    expect(records(node)).toEqual([`${NAME} Bound`]);
  });
});

describe("a journal that was copied between the row of a claim and the take-over of what was retained", () => {
  const NEXT = { owner: "b", ifName: "eth0", containerId: "next" };

  /** Returns the node with that journal. The pod was answered since. `workload`: what the object says of its owner. */
  async function restored(workload: object = SET, podUID = "b"): Promise<ClusterNode> {
    const first = await openClusterNode();
    await claimAndRetain(first.registry, ofSet("a"));
    await first.registry.release(FIRST);
    await first.pass(0);
    const node = await openClusterNode({ server: first.server, poolSize: 256 });
    const version = await kept(node);
    const copied = Promise.withResolvers<void>();
    node.around = (method, _args, run) => {
      if (method !== "retain") return run();
      copied.resolve();
      return new Promise(() => {});
    };
    node.registry.claim(ofSet("b", version)).catch(() => {});
    await copied.promise;
    const holders = [{ namespace: "shop", pod: "db-0", podUID, interface: "eth0", node: "n1" }];
    node.server.edit(NAME, ({ lastHolder: _, ...spec }) => ({
      ...spec,
      state: "Bound",
      holders,
      workload: { ...workload, interface: "eth0" },
    }));
    node.around = (_method, _args, run) => run();
    return node.open();
  }

  const bootLater = (node: ClusterNode): Promise<ClusterNode> => node.open("boot-2");
  const releaseNic = async (node: ClusterNode): Promise<ClusterNode> => {
    await node.registry.release({ containerId: "c-b", ifName: "eth0" });
    return node;
  };

  it.each([
    ["the pod's NIC is detached", releaseNic],
    ["the machine has booted", bootLater],
  ])("does not keep the member from retaining it: %s", async (_, end) => {
    const node = await end(await restored());
    await node.pass(0);
    expect(records(node)).toEqual([`${NAME} Kept`]);
    await node.pass(COOLDOWN_MS);
    expect(records(node)).toEqual([`${NAME} Kept`]);
  });

  it.each([
    ["may never have been answered", { ...SET, fresh: true }, "b", []],
    ["is another pod's", SET, "c", [`${NAME} Bound`]],
  ])("says nothing of the member if the object %s", async (_, workload, podUID, left) => {
    const node = await bootLater(await restored(workload, podUID));
    await node.pass(COOLDOWN_MS);
    expect([records(node), await node.registry.findOwner("b")]).toEqual([left, []]);
  });

  it("is compared before an ADD, for which the address is the member's then", async () => {
    const node = await restored();
    observe(node, node.server.objects.get(NAME));
    const [row] = await node.registry.findOwner("b");
    expect(row).toMatchObject({ state: "Bound", isConfirmed: false, workload: undefined });
    if (row !== undefined) await node.registry.inherit(row);
    expect(await node.registry.findOwner("b")).toMatchObject([{ workload: SET }]);
    expect(await node.registry.claim({ ...ofSet("b"), ...NEXT })).toMatchObject({ kind: "bound", fresh: [] });
    expect(records(node)).toEqual([`${NAME} Bound`]);
  });
});

describe("what was never answered, and a lost journal has retained", () => {
  const opened = async (): Promise<ClusterNode> => {
    const node = await openClusterNode();
    await node.registry.claim(ofSet("a"));
    return lose(node);
  };

  it("stays fresh, as what its node takes in says nothing of an answer", async () => {
    expect(records(await opened())).toEqual([`${NAME} Kept fresh`]);
  });

  it("is given to no pod before the search knows that there is nothing better", async () => {
    const node = await opened();
    const outcome = await node.registry.claim(ofSet("b", await kept(node)));
    expect(outcome).toMatchObject({ fresh: [{ ip: ip(NAME) }] });
    expect(records(node)).toEqual([`${NAME} Bound fresh`]);
  });

  it("is kept again when that claim is undone, and free when the pod gets another one in its place", async () => {
    for (const [isSuperseded, isReplaced, left] of [
      [false, false, [`${NAME} Kept fresh`]],
      [true, false, [`${NAME} Kept fresh`]],
      [true, true, []],
    ] as const) {
      const node = await opened();
      const outcome = await node.registry.claim(ofSet("b", await kept(node)));
      const created = outcome.kind === "bound" ? outcome.created : [];
      await node.registry.undo(created, isSuperseded ? created : []);
      await node.registry.settleSuperseded(created, isReplaced);
      await node.pass(COOLDOWN_MS);
      expect(records(node)).toEqual(left);
    }
  });

  it("is in doubt for the next ADD, if the agent is killed before the search ends", async () => {
    const node = await opened();
    await node.registry.claim(ofSet("b", await kept(node)));
    await node.open();
    const again = await node.registry.claim({ ...ofSet("b"), containerId: "next" });
    expect(again).toMatchObject({ fresh: [{ ip: ip(NAME) }] });
  });

  it("is the member's once a pod was answered with it", async () => {
    const node = await opened();
    await claimAndRetain(node.registry, ofSet("a", await kept(node)));
    await node.registry.release(FIRST);
    await node.pass(0);
    expect(records(node)).toEqual([`${NAME} Kept`]);
  });
});

it("what a pod takes back for a moment when its owner is not known any more is still its owner's", async () => {
  const node = await openClusterNode();
  await claimAndRetain(node.registry, claim("a", [proposal(NAME)], { workload: MACHINE }));
  node.gate = () => new Promise(() => {});
  await node.registry.release(FIRST);
  await node.open();
  node.gate = async (_call, commit) => commit();
  const { version = 0 } = (await node.registry.findAddress("", ip(NAME))) ?? {};
  const outcome = await node.registry.claim(claim("a", [proposal(NAME, { replaces: version })]));
  await node.registry.undo(outcome.kind === "bound" ? outcome.created : []);
  await node.pass(0);
  expect(records(node)).toEqual([`${NAME} Kept`]);
});

it.each([
  ["was the member's before", 2, `${NAME} Kept`],
  ["may never have been answered", 1, `${NAME} Kept fresh`],
])(
  "what a lost journal took in and %s stays so when an ADD of its pod after a reboot is undone",
  async (_, pods, left) => {
    const node = await openClusterNode();
    for (const owner of ["a", "b"].slice(0, pods)) {
      await claimAndRetain(node.registry, ofSet(owner, await kept(node)));
      if (owner === "a" && pods === 2) await node.registry.release(FIRST);
      await node.pass(0);
    }
    const owner = pods === 2 ? "b" : "a";
    const next = await openClusterNode({ server: node.server });
    const row = { ...proposal(NAME), state: "Bound", owner, namespace: "shop", pod: "db-0" } as const;
    const taken = decodeStored([...node.server.objects.values()][0] as StoredObject).spec.workload;
    const adopted = await next.registry.adopt({ ...row, workload: taken });
    // A reboot: rows of the earlier boot cool, and what waits for the API server is not written before the ADD.
    next.gate = () => new Promise(() => {});
    if (adopted !== undefined) await next.registry.collect(adopted);
    await next.open();
    next.gate = async (_call, commit) => commit();
    const { version = 0 } = (await next.registry.findAddress("", ip(NAME))) ?? {};
    const outcome = await next.registry.claim({ ...ofSet(owner, version), containerId: "next" });
    await next.registry.undo(outcome.kind === "bound" ? outcome.created : []);
    await next.pass(COOLDOWN_MS);
    expect(records(next)).toEqual([left]);
  },
);

describe("of several addresses of a machine's NIC a search learns which ones pods of other nodes have that have not ended", () => {
  const machines = async (statuses: Readonly<Record<string, HolderStatus>>, rest: Partial<Claim> = {}) => {
    const read: string[] = [];
    const readHolderStatus: LiveStatus["readHolderStatus"] = async ({ pod }, { podUid }) => {
      read.push(`${podUid} for ${pod}`);
      return statuses[podUid] ?? "gone";
    };
    const source = await openClusterNode({ name: "n2" });
    await claimAndRetain(source.registry, claim("a", [proposal(NAME)], { workload: MACHINE }));
    await claimAndRetain(source.registry, claim("b", [proposal(OTHER, { ifName: "eth0" })], { workload: MACHINE, ...rest })); // biome-ignore format: one row
    const node = await openClusterNode({ server: source.server, readHolderStatus });
    const found = await node.registry.findRetained(MACHINE, { namespace: "shop", pod: "target" });
    return { node, read, found: found.map(({ owner, isInUse }) => `${owner} ${isInUse}`) };
  };

  it.each<[statuses: Readonly<Record<string, HolderStatus>>, found: readonly string[]]>([
    [{ a: "migrating" }, ["a true", "b false"]],
    [{ b: "alive" }, ["a false", "b true"]],
    // Its pod is still there, and finished.
    [{ a: "gone", b: "migrating" }, ["a false", "b true"]],
  ])("%j", async (statuses, wanted) => {
    const { found, read } = await machines(statuses);
    expect([found, read]).toEqual([wanted, ["a for target", "b for target"]]);
  });

  it("and asks for no pod where one NIC has one address", async () => {
    const { found, read } = await machines(
      { a: "alive" },
      { ifName: "net1", proposals: [proposal(OTHER, { ifName: "net1" })] },
    );
    expect([found, read]).toEqual([["a undefined", "b undefined"], []]);
  });

  it("nor where no pod is to have them", async () => {
    const { node } = await machines({});
    expect(await node.registry.findRetained(MACHINE)).not.toContainEqual(expect.objectContaining({ isInUse: false }));
  });
});

describe("what is kept for a machine is presumed to be the address of a pod to which it migrates", () => {
  const target = (containerId: string, replaces?: number): Claim => ({
    ...claim("b", [proposal(NAME, replaces === undefined ? {} : { replaces })], { workload: MACHINE }),
    ...{ containerId, isMigrationTarget: true },
  });
  const PRESUMED = { presumed: [{ ip: ip(NAME), workload: MACHINE }] };

  const ended = async (): Promise<ClusterNode> => {
    const node = await openClusterNode({ isLivePod: async () => true, readHolderStatus: async () => "migrating" });
    await claimAndRetain(node.registry, claim("a", [proposal(NAME)], { workload: MACHINE }));
    await node.registry.release(FIRST);
    await node.pass(0);
    return node;
  };

  it("until the search knows what the machine has where it runs, also if the agent is killed before", async () => {
    const node = await ended();
    expect(await node.registry.claim(target("c-b"))).toMatchObject(PRESUMED);
    await node.open();
    const again = await node.registry.claim(target("next"));
    expect(again).toMatchObject({ ...PRESUMED, created: [{ ip: ip(NAME) }] });
    await node.registry.retain(again.kind === "bound" ? (again.presumed ?? []) : []);
    expect(await node.registry.claim(target("third"))).not.toHaveProperty("presumed");
  });

  it("and kept again when that claim is undone", async () => {
    const node = await ended();
    const outcome = await node.registry.claim(target("c-b"));
    await node.registry.undo(outcome.kind === "bound" ? outcome.created : []);
    await node.pass(0);
    expect(records(node)).toEqual([`${NAME} Kept`]);
  });

  it("and not when the pod shares it with the other one, or when none migrates", async () => {
    const source = await openClusterNode({ name: "n2" });
    await claimAndRetain(source.registry, claim("a", [proposal(NAME)], { workload: MACHINE }));
    const live = { isLivePod: async () => true, readHolderStatus: async () => "migrating" as const };
    const node = await openClusterNode({ server: source.server, ...live });
    expect(await node.registry.claim(target("c-b"))).not.toHaveProperty("presumed");
    const plain = { ...target("c-b"), isMigrationTarget: false };
    expect(await (await ended()).registry.claim(plain)).not.toHaveProperty("presumed");
  });
});
