/**
 * A NIC of two families is answered with both or not at all, what was answered is confirmed, whatever ends in
 * between, and what is known to be another pod's is not answered again.
 */

import { describe, expect, it } from "vitest";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Allocation, ClaimOutcome } from "../../../../host/registry/registry.ts";
import { allocationLines, type ClusterNode, openClusterNode } from "../../../world/node.ts";
import { claim, claimAndRetain, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";
import { COOLDOWN_MS, held, spanOfTen } from "../registry-suite.ts";

const FOUR = "10.0.0.1";
const SIX = "fd00::1";
const BOTH = [proposal(FOUR), proposal(SIX, { prefixLength: 64 })];

/** The agent of the node is killed when its journal has the claim, before the API server has anything of it. */
async function endBeforeTheObjects(node: ClusterNode, proposals = BOTH): Promise<void> {
  const requested = Promise.withResolvers<void>();
  node.gate = () => {
    requested.resolve();
    return new Promise(() => {});
  };
  void node.registry.claim(claim("a", proposals));
  await requested.promise;
  node.gate = async (_call, commit) => commit();
}

/** As the ADD does that finds nothing in place of what is taken. */
async function undoKept(node: ClusterNode, outcome: ClaimOutcome, wanted: readonly string[]): Promise<void> {
  const { created = [] } = (outcome.kind === "taken" && outcome.kept) || {};
  expect([outcome.kind, created.map(({ ip }) => formatIp(ip))]).toEqual(["taken", wanted]);
  await node.registry.undo(created);
}

async function twoNodes(): Promise<[ClusterNode, ClusterNode]> {
  const first = await openClusterNode();
  return [first, await openClusterNode({ server: first.server, name: "n2" })];
}

describe("what was claimed together and never answered", () => {
  it("makes no object before the pod's next ADD, and is undone with that when another node has one of the addresses", async () => {
    const [node, other] = await twoNodes();
    await endBeforeTheObjects(node);
    await other.registry.claim(claim("b", [proposal(FOUR)]));
    await node.open();
    await node.pass(0);
    expect(allocationLines(node.server)).toEqual([`${FOUR} Bound n2`]);
    await undoKept(node, await node.registry.claim(claim("a", BOTH, { keepsRest: true })), [SIX]);
    await node.pass(0);
    expect(await node.registry.findOwner("a")).toEqual([]);
    expect(allocationLines(node.server)).toEqual([`${FOUR} Bound n2`]);
  });

  it("stays for another NIC of the pod", async () => {
    const [node, other] = await twoNodes();
    await endBeforeTheObjects(node, [...BOTH, proposal("10.0.0.9", { ifName: "net1" })]);
    await other.registry.claim(claim("b", [proposal(FOUR)]));
    await node.open();
    await undoKept(node, await node.registry.claim(claim("a", BOTH, { keepsRest: true })), [SIX]);
    const bound = (await node.registry.findOwner("a")).filter(({ state }) => state === "Bound");
    expect(bound).toMatchObject([{ ip: ip("10.0.0.9"), ifName: "net1" }]);
  });
});

it.each([[FOUR], [SIX]])(
  "of a claim of both families that is undone, %s, which another node has, is not reported as free",
  async (taken) => {
    const [node, other] = await twoNodes();
    await other.registry.claim(claim("b", [proposal(taken)]));
    const left = [FOUR, SIX].filter((each) => each !== taken);
    const outcome = await node.registry.claim(claim("a", BOTH, { keepsRest: true }));
    expect(node.freed).toEqual([]);
    await undoKept(node, outcome, left);
    await node.pass(0);
    expect(node.freed).toEqual(left);
  },
);

it("a claim that does not ask for the rest is all or nothing", async () => {
  const [node, other] = await twoNodes();
  await other.registry.claim(claim("b", [proposal(FOUR)]));
  const outcome = await node.registry.claim(claim("a", BOTH));
  expect(outcome.kind === "taken" && outcome.kept).toBeUndefined();
  await node.pass(0);
  expect(node.freed).toEqual([SIX]);
  expect(await node.registry.findOwner("a")).toEqual([]);
  expect(allocationLines(node.server)).toEqual([`${FOUR} Bound n2`]);
});

it("what a lost journal has taken in is still in doubt after a claim that was undone", async () => {
  const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
  const [node, other] = await twoNodes();
  await other.registry.claim(claim("b", [proposal(FOUR)]));
  const six = { ...proposal(SIX, { prefixLength: 64 }), workload: WEB };
  await node.registry.adopt({ ...six, state: "Bound", owner: "a", namespace: "shop", pod: "web-0" });
  const wanted = (address: string) =>
    claim("a", [{ ...proposal(address), workload: WEB }], { workload: WEB, partial: false });
  expect(await node.registry.claim(wanted(FOUR))).toMatchObject({ kind: "taken" });
  const outcome = await node.registry.claim(wanted("10.0.0.2"));
  const fresh = outcome.kind === "bound" ? (outcome.fresh ?? []) : [];
  expect(fresh.map((row) => formatIp(row.ip))).toContain(SIX);
});

it.each([[FOUR], [SIX]])(
  "the same ADD again is answered with both, when another node has had %s since",
  async (taken) => {
    const [node, other] = await twoNodes();
    await endBeforeTheObjects(node);
    await other.registry.claim(claim("b", [proposal(taken)]));
    await node.open();
    const passing = node.pass(0);
    const both = [proposal("10.0.0.2"), proposal("fd00::2", { prefixLength: 64 })];
    let outcome = await node.registry.claim(claim("a", both));
    await passing;
    if (outcome.kind !== "bound") outcome = await node.registry.claim(claim("a", both, { skipOwnCooling: true }));
    expect(held(outcome)).toHaveLength(2);
    const families = (await node.registry.findOwner("a"))
      .filter(({ state }) => state === "Bound")
      .map((row) => row.ip.family);
    expect(families.sort()).toEqual([4, 6]);
  },
);

it("a claim whose row is undone meanwhile is not answered", async () => {
  const node = await openClusterNode();
  await endBeforeTheObjects(node);
  await node.open();
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  node.gate = async (_call, commit) => {
    begun.resolve();
    await go.promise;
    return commit();
  };
  const adding = node.registry.claim(claim("a", BOTH));
  await begun.promise;
  await node.registry.undo(await node.registry.findOwner("a"));
  go.resolve();
  await expect(adding).rejects.toThrow("was released while its addresses were claimed");
});

it("an address is answered when the journal knows that it is confirmed, and not before", async () => {
  const node = await openClusterNode();
  const confirming = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  node.around = (method, _args, run) => {
    if (method !== "confirm") return run();
    confirming.resolve();
    return go.promise.then(run);
  };
  let isAnswered = false;
  const adding = node.registry.claim(claim("a", [proposal(FOUR)])).finally(() => {
    isAnswered = true;
  });
  await confirming.promise;
  await new Promise(setImmediate);
  expect(isAnswered).toBe(false);
  go.resolve();
  expect(held(await adding)).toEqual([FOUR]);
  expect(await node.registry.findOwner("a")).toMatchObject([{ isConfirmed: true }]);
});

it("a claim that cannot be confirmed is taken back", async () => {
  const node = await openClusterNode();
  const refuse = () => Promise.reject(new Error("the disk is full"));
  node.around = (method, _args, run) => (method === "confirm" ? refuse() : run());
  await expect(node.registry.claim(claim("a", BOTH))).rejects.toThrow("the disk is full");
  node.around = (_method, _args, run) => run();
  await node.pass(0);
  expect([allocationLines(node.server), await node.registry.findOwner("a")]).toEqual([[], []]);
});

describe("recreate: the new sandbox of a pod whose address is another pod's by now", () => {
  const both = [proposal("10.0.0.2"), proposal("fd00::2", { prefixLength: 64 })];
  const next = { containerId: "next" };

  async function lose(): Promise<ClusterNode> {
    const node = await openClusterNode();
    await node.registry.claim(claim("a", BOTH));
    const holders = [{ namespace: "shop", pod: "b", podUID: "b", interface: "eth0", node: "n2" }];
    node.server.edit(FOUR, (spec) => ({ ...spec, node: "n2", holders }));
    const [row] = (await node.registry.findOwner("a")).filter((each) => each.ip.family === 4);
    if (row !== undefined) await node.registry.republish(row);
    expect(node.lost).toHaveLength(1);
    return node;
  }

  it("is not answered with it, gets another one, and keeps that of the other family", async () => {
    const node = await lose();
    const refused = await node.registry.claim(claim("a", both, next));
    expect(refused).toMatchObject({ kind: "taken", by: [{ ip: ip(FOUR), owner: "b" }] });
    expect(held(await node.registry.claim(claim("a", both, next))).sort()).toEqual(["10.0.0.2", SIX]);
    expect(allocationLines(node.server)).toContain(`${FOUR} Bound n2`);
  });

  it("is answered with it when the other pod has let go of it", async () => {
    const node = await lose();
    node.server.remove(FOUR);
    expect(held(await node.registry.claim(claim("a", both, next))).sort()).toEqual([FOUR, SIX]);
    expect(allocationLines(node.server)).toContain(`${FOUR} Bound n1`);
  });
});

describe("a member's claim that is undone", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" };
  const tenFour = proposal(FOUR);

  async function undone(
    replaces: (node: ClusterNode) => Promise<number | undefined>,
    first: ClusterNode,
  ): Promise<string[]> {
    const node = await openClusterNode({ server: first.server, name: "n2", poolSize: 256 });
    const version = await replaces(node);
    if (version === undefined) throw new Error("There is nothing to take over");
    const outcome = await node.registry.claim(claim("a", [{ ...tenFour, replaces: version }], { workload }));
    if (outcome.kind !== "bound") throw new Error(outcome.kind);
    await node.registry.undo(outcome.created);
    await node.pass(0);
    return allocationLines(node.server);
  }

  it("leaves what it had taken over cooling, and not kept", async () => {
    const first = await openClusterNode({ poolSize: 256 });
    await first.registry.claim(claim("b", [tenFour]));
    await first.registry.release({ containerId: "c-b", ifName: "eth0" });
    await first.pass(0);
    const cooling = async ({ registry }: ClusterNode) =>
      (await registry.findCooling([spanOfTen()], 1, "blue"))[0]?.version;
    expect(await undone(cooling, first)).toEqual([`${FOUR} Cooling n2`]);
  });

  it("leaves the address of an earlier pod, which a lost journal took in, kept unless it has another in its place", async () => {
    for (const [superseded, left] of [
      [[FOUR], ["fd00-0000-0000-0000-0000-0000-0000-0001 Kept n1"]],
      [[FOUR, SIX], []],
    ] as const) {
      const six = { ...proposal(SIX, { prefixLength: 64 }), workload };
      const first = await openClusterNode({ poolSize: 256 });
      await claimAndRetain(first.registry, claim("b", [six], { workload }));
      const node = await openClusterNode({ poolSize: 256, server: first.server });
      const row = await node.registry.adopt({ ...six, state: "Bound", owner: "b", namespace: "shop", pod: "web-0" });
      const cooling = row && (await node.registry.collect(row));
      if (cooling === undefined) throw new Error("The address was not taken in");
      const outcome = await node.registry.claim(
        claim("a", [tenFour, { ...six, replaces: cooling.version }], { workload }),
      );
      if (outcome.kind !== "bound") throw new Error(outcome.kind);
      const isSuperseded = (each: Allocation): boolean => superseded.some((one) => formatIp(each.ip) === one);
      const given = outcome.created.filter(isSuperseded);
      await node.registry.undo(outcome.created, given);
      await node.registry.settleSuperseded(given, true);
      await node.pass(COOLDOWN_MS);
      expect(allocationLines(node.server)).toEqual(left);
    }
  });

  it("leaves what is kept for it kept", async () => {
    const first = await openClusterNode({ poolSize: 256 });
    await claimAndRetain(first.registry, claim("b", [tenFour], { workload }));
    await first.registry.release({ containerId: "c-b", ifName: "eth0" });
    await first.pass(0);
    const kept = async ({ registry }: ClusterNode) => (await registry.findRetained(workload))[0]?.version;
    expect(await undone(kept, first)).toEqual([`${FOUR} Kept n2`]);
  });
});
