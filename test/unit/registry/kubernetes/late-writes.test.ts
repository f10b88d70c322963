/**
 * Findings of the walks of test/property/registry, each as a row of its own: late writes, late events, edits by hand,
 * lists that expire.
 */

import { describe, expect, it } from "vitest";
import { ApiError, ApiUnavailable, type KubeCall, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../../../host/kubernetes/list.ts";
import { LATE_WRITE_MS } from "../../../../host/registry/kubernetes/address-states.ts";
import { LIST_ATTEMPTS } from "../../../../host/registry/kubernetes/allocation-objects.ts";
import { RETRY_FIRST_MS, RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import { DELETING_RETRY_MS } from "../../../../host/registry/kubernetes/object-sync.ts";
import type { Allocation, Claim, ClaimOutcome } from "../../../../host/registry/registry.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { allocationLines, type ClusterNode, observe, openClusterNode } from "../../../world/node.ts";
import { claim, claimAndRetain, proposal } from "../../../world/subjects.ts";
import { ip } from "../../../world/values.ts";
import { COOLDOWN_MS, held, spanOfTen } from "../registry-suite.ts";

const NAME = "10.0.0.1";
const FIRST = { containerId: "c-a", ifName: "eth0" };

/** The next call of the method has no answer; it is carried out when the test says so. */
function delay(node: ClusterNode, method: KubeCall["method"]) {
  const late: { run: () => KubeObject } = { run: () => ({}) };
  node.gate = async (call, commit) => {
    if (call.method !== method) return commit();
    node.gate = async (_call, next) => next();
    late.run = commit;
    throw new ApiUnavailable(method, "the connection broke");
  };
  return late;
}

const DB = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0", ifName: "eth0" };

/** Returns a node whose pod, a member of a StatefulSet, has released the address. */
async function retainAddress(): Promise<ClusterNode> {
  const node = await openClusterNode();
  await claimAndRetain(node.registry, claim("a", [proposal(NAME)], { workload: DB }));
  await node.registry.release(FIRST);
  return node;
}

async function bindAgain(node: ClusterNode): Promise<string[]> {
  const row = await node.registry.findAddress("", ip(NAME));
  const wanted = row === undefined ? proposal(NAME) : proposal(NAME, { replaces: row.version });
  return held(await node.registry.claim(claim("a", [wanted], { containerId: "next" })));
}

describe.each([
  ["large", "DELETE", 1_000, COOLDOWN_MS],
  ["small", "PUT", 256, 0],
] as const)("sandbox-restart: in a %s pool a %s", (_size, method, poolSize, waitMs) => {
  it("that is carried out after the next ADD finds the object changed", async () => {
    const node = await openClusterNode({ poolSize });
    await node.registry.claim(claim("a", [proposal(NAME)]));
    const late = delay(node, method);
    await node.registry.release(FIRST);
    await node.pass(waitMs);
    expect(await bindAgain(node)).toEqual([NAME]);
    expect(late.run).toThrow("Conflict");
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
  });

  it("of an agent that has ended since finds the object changed", async () => {
    const node = await openClusterNode({ poolSize });
    await node.registry.claim(claim("a", [proposal(NAME)]));
    const late = delay(node, method);
    await node.registry.release(FIRST);
    await node.pass(waitMs);
    await node.open();
    expect(await bindAgain(node)).toEqual([NAME]);
    expect(late.run).toThrow("Conflict");
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
  });
});

it.each([["at once"], ["after what was taken in is known to be right"]])(
  "sandbox-restart: of an agent whose journal is lost finds the object changed, when the next ADD comes %s",
  async (when) => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, claim("a", [proposal(NAME)], { workload: DB }));
    const late = delay(node, "PUT");
    await node.registry.release(FIRST);
    await node.registry.idle();
    const next = await openClusterNode({ server: node.server });
    const row = { ...proposal(NAME), state: "Bound", owner: "a", namespace: "shop", pod: "web-0" } as const;
    observe(next, node.server.objects.get(NAME));
    await next.registry.adopt({ ...row, workload: DB });
    if (when !== "at once") await next.registry.idle();
    const add = claim("a", [proposal(NAME)], { workload: DB, containerId: "next" });
    expect(held(await next.registry.claim(add))).toEqual([NAME]);
    expect(late.run).toThrow("Conflict");
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
  },
);

it("sandbox-restart: an ADD is not answered by what was read before the deletion", async () => {
  const node = await openClusterNode();
  await node.registry.claim(claim("a", [proposal(NAME)]));
  const seen = node.server.objects.get(NAME);
  await node.registry.release(FIRST);
  await node.pass(COOLDOWN_MS);
  expect([allocationLines(node.server), node.freed]).toEqual([[], [NAME]]);
  observe(node, seen);
  expect(await bindAgain(node)).toEqual([NAME]);
  expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
});

it("sandbox-restart: an ADD is not answered by what was read of what was made late and deleted without an answer", async () => {
  const node = await openClusterNode();
  const late = delay(node, "POST");
  await expect(node.registry.claim(claim("a", [proposal(NAME)]))).rejects.toThrow("did not record");
  late.run();
  const seen = node.server.objects.get(NAME);
  delay(node, "DELETE");
  await node.pass(0);
  node.server.remove(NAME);
  await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
  expect(node.freed).toEqual([NAME]);
  observe(node, seen);
  expect(await bindAgain(node)).toEqual([NAME]);
  expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
});

it("retention: an ADD is not answered by what a list says that was read before the address was retained", async () => {
  const node = await openClusterNode();
  const add = claim("a", [proposal(NAME)], { workload: DB });
  await claimAndRetain(node.registry, add);
  const seen = node.server.objects.get(NAME);
  delay(node, "PUT");
  await node.registry.release(FIRST);
  await node.pass(RETRY_FIRST_MS);
  const row = await node.registry.findAddress("", ip(NAME));
  expect([row?.state, allocationLines(node.server)]).toEqual(["Cooling", [`${NAME} Kept n1`]]);
  observe(node, seen);
  await node.registry.idle();
  const again = { ...add, containerId: "next", proposals: [proposal(NAME, { replaces: row?.version ?? 0 })] };
  expect(held(await node.registry.claim(again))).toEqual([NAME]);
  expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
});

/**
 * The next creation is attempted twice; the attempt that had no answer is carried out when the returned function is
 * called.
 */
function repeatCreation(node: ClusterNode): () => unknown {
  let runLate = (): unknown => undefined;
  node.gate = async ({ method, onUnanswered }, commit) => {
    if (method !== "POST") return commit();
    onUnanswered?.();
    runLate = commit;
    return commit();
  };
  return () => runLate();
}

describe("an object that a foreign finalizer holds", () => {
  async function heldNode(): Promise<ClusterNode> {
    const node = await openClusterNode({ poolSize: 256 });
    await node.registry.claim(claim("a", [proposal(NAME)]));
    await node.registry.release(FIRST);
    await node.registry.idle();
    const object = node.server.objects.get(NAME);
    if (object === undefined) throw new Error("There is no object");
    node.server.objects.set(NAME, { ...object, metadata: { ...object.metadata, finalizers: ["acme.example/hold"] } });
    await node.pass(COOLDOWN_MS);
    return node;
  }

  it("is not free before it is gone", async () => {
    const node = await heldNode();
    expect([allocationLines(node.server), node.freed]).toEqual([[`${NAME} Cooling n1`], []]);
    node.server.remove(NAME);
    await node.pass(DELETING_RETRY_MS);
    expect(node.freed).toEqual([NAME]);
  });

  it("is not asked for again and again", async () => {
    const node = await heldNode();
    node.calls.length = 0;
    for (let round = 0; round < 3; round++) await node.pass(RETRY_MAX_MS);
    expect(node.calls).toEqual([]);
  });

  it("is nothing that another node takes over, nor the same pod again", async () => {
    const node = await heldNode();
    const other = await openClusterNode({ server: node.server, poolSize: 256, name: "n2" });
    expect(await other.registry.findCooling([spanOfTen()], 10, "blue")).toEqual([]);
    const row = await node.registry.findAddress("", ip(NAME));
    const outcome = await node.registry.claim(claim("a", [proposal(NAME, { replaces: row?.version ?? 0 })]));
    expect(outcome.kind).toBe("taken");
  });
});

it("an unreadable object counts as taken: the claim continues with another address", async () => {
  const node = await openClusterNode();
  await node.registry.claim(claim("b", [proposal(NAME)]));
  node.server.edit(NAME, (spec) => ({ ...spec, address: "odd" }));
  const other = await openClusterNode({ server: node.server, name: "n2" });
  expect(await other.registry.claim(claim("a", [proposal(NAME)]))).toMatchObject({
    kind: "taken",
    by: [{ state: "Bound" }],
  });
  expect(await other.registry.list(undefined, 10)).toEqual([]);
});

describe("recreate: an object that is edited by hand", () => {
  it.each([
    ["state", { state: "Cooling", holders: [] }],
    ["holders", { holders: [{ namespace: "shop", pod: "b", podUID: "b", interface: "eth0", node: "n1" }] }],
  ])("in its %s is written again, or told of, at once", async (what, change) => {
    const node = await openClusterNode();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    node.server.edit(NAME, (spec) => ({ ...spec, ...change }));
    observe(node, node.server.objects.get(NAME));
    await node.registry.idle();
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
    expect(node.lost.map(({ owner }) => owner)).toEqual(what === "holders" ? ["a"] : []);
  });

  it("node-lost: is left alone where this node was taken for lost", async () => {
    const node = await openClusterNode();
    await node.registry.claim(claim("a", [proposal(NAME)]));
    const quarantine = { reason: "NodeLost", mac: "", parent: "" };
    node.server.edit(NAME, (spec) => ({ ...spec, state: "Quarantined", holders: [], quarantine }));
    observe(node, node.server.objects.get(NAME));
    await node.registry.idle();
    expect(allocationLines(node.server)).toEqual([`${NAME} Quarantined n1`]);
  });
});

describe("a list", () => {
  const expired = (call: KubeCall) =>
    new ApiError({
      status: 410,
      reason: "Expired",
      operation: call.method,
      message: "The continue parameter is too old",
    });

  /** In pages of one; the second page of the first `failures` lists is gone. */
  function pageByOne(node: ClusterNode, failures: number): void {
    let left = failures;
    node.server.maxPage = 1;
    node.gate = async (call, commit) => {
      if (call.query?.continue !== undefined && left-- > 0) throw expired(call);
      return commit();
    };
  }

  async function withCooling(): Promise<ClusterNode> {
    const other = await openClusterNode({ poolSize: 256, name: "n2" });
    for (const [index, owner] of ["a", "b"].entries()) {
      await other.registry.claim(claim(owner, [proposal(`10.0.0.${index + 1}`)]));
      await other.registry.release({ containerId: `c-${owner}`, ifName: "eth0" });
    }
    await other.registry.idle();
    return openClusterNode({ server: other.server, poolSize: 256 });
  }

  it("begins again when its later pages are compacted away, and has each object once", async () => {
    const node = await withCooling();
    pageByOne(node, 1);
    expect(await node.registry.findCooling([spanOfTen()], 10, "blue")).toHaveLength(2);
  });

  it("gives up after LIST_ATTEMPTS", async () => {
    const node = await withCooling();
    pageByOne(node, LIST_ATTEMPTS);
    await expect(node.registry.findCooling([spanOfTen()], 10, "blue")).rejects.toThrow("too old");
  });

  it("cooling-visibility: finds by the address what cools under the name that the pool had before", async () => {
    const node = await withCooling();
    expect(await node.registry.findCooling([spanOfTen()], 10, "renamed")).toHaveLength(2);
    const elsewhere = { ...spanOfTen(), space: "lab" };
    expect(await node.registry.findCooling([elsewhere], 10, "renamed")).toEqual([]);
  });

  it("leaves out what cannot be understood", async () => {
    const node = await withCooling();
    node.server.edit(NAME, (spec) => ({ ...spec, address: "odd" }));
    expect(await node.registry.findCooling([spanOfTen()], 10, "blue")).toHaveLength(1);
  });
});

describe("retention: of an address that is new to a member of a workload", () => {
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w-1", member: "web-0" };
  const ofWeb = (ifName: string): Claim => claim("a", [proposal(NAME, { ifName })], { ifName, pod: "web-0", workload });

  it("nothing is kept when the creation had no answer and is carried out late", async () => {
    const node = await openClusterNode();
    const late = delay(node, "POST");
    await expect(node.registry.claim(ofWeb("eth0"))).rejects.toThrow("did not record");
    late.run();
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([]);
  });

  it("nothing is kept when the creation had no answer and is carried out after a second claim was undone", async () => {
    const node = await openClusterNode();
    const late = delay(node, "POST");
    await expect(node.registry.claim(ofWeb("eth0"))).rejects.toThrow("did not record");
    const row = await node.registry.findAddress("", ip(NAME));
    const again = await node.registry.claim({
      ...ofWeb("eth0"),
      proposals: [proposal(NAME, { replaces: row?.version ?? 0 })],
    });
    await node.registry.undo(again.kind === "bound" ? again.created : []);
    await node.registry.idle();
    expect(allocationLines(node.server)).toEqual([]);
    late.run();
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([]);
  });

  it("nothing is kept when an attempt to create it is carried out after a later one was undone", async () => {
    const node = await openClusterNode();
    const runLate = repeatCreation(node);
    const claimed = await node.registry.claim(ofWeb("eth0"));
    await node.registry.undo(claimed.kind === "bound" ? claimed.created : []);
    await node.registry.idle();
    expect(allocationLines(node.server)).toEqual([]);
    runLate();
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([]);
  });

  it("the comparison is told when an attempt to create it may have been carried out after another pod had the address", async () => {
    const orphans: string[] = [];
    const other = await openClusterNode({ name: "n2" });
    await other.registry.claim(claim("b", [proposal(NAME)], { containerId: "c-b" }));
    const node = await openClusterNode({ server: other.server, onOrphan: (name) => orphans.push(name) });
    const runLate = repeatCreation(node);
    expect(await node.registry.claim(ofWeb("eth0"))).toMatchObject({ kind: "taken" });
    await other.registry.release({ containerId: "c-b", ifName: "eth0" });
    await other.pass(COOLDOWN_MS);
    runLate();
    expect([allocationLines(node.server), orphans]).toEqual([[`${NAME} Bound n1`], []]);
    await node.pass(LATE_WRITE_MS);
    expect(orphans).toEqual([NAME]);
  });

  it("nothing is kept when the caller hangs up while it is created", async () => {
    const node = await openClusterNode();
    const [reached, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    node.gate = async ({ method }, commit) => {
      if (method !== "POST") return commit();
      reached.resolve();
      const made = commit();
      await answer.promise;
      return made;
    };
    const caller = new AbortController();
    const claimed = node.registry.claim(ofWeb("eth0"), caller.signal);
    await reached.promise;
    caller.abort(new Error("hung up"));
    await expect(claimed).rejects.toThrow("hung up");
    answer.resolve();
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([]);
  });

  it("nothing is kept when the agent ends before the search for what is retained", async () => {
    const node = await openClusterNode();
    await node.registry.claim(ofWeb("eth0"));
    await node.open();
    await node.registry.release(FIRST);
    await node.pass(COOLDOWN_MS);
    expect(allocationLines(node.server)).toEqual([]);
  });

  it("the next ADD looks for what is retained when the agent ended before that", async () => {
    const node = await openClusterNode();
    await node.registry.claim(ofWeb("eth0"));
    await node.open();
    const again = await node.registry.claim({ ...ofWeb("eth0"), containerId: "next" });
    expect(again).toMatchObject({ fresh: [{ ip: ip(NAME), isConfirmed: false }] });
  });

  it("what was retained stays so when the answer says that it was changed already, and the next read has none", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofWeb("eth0"));
    await node.registry.release(FIRST);
    await node.registry.idle();
    const retained = (await node.registry.findRetained(workload))[0]?.version;
    node.gate = async ({ method }, commit) => {
      if (method === "GET") throw new ApiUnavailable(method, "the connection broke");
      const made = commit();
      return method === "PUT" ? commit() : made;
    };
    const again = claim("a", [proposal(NAME, { replaces: retained ?? 0 })], { pod: "web-0", workload });
    await expect(node.registry.claim(again)).rejects.toThrow("did not record");
    node.gate = async (_call, commit) => commit();
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
  });

  it("what was retained stays so when it is changed late, after the undone claim has read it", async () => {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, ofWeb("eth0"));
    await node.registry.release(FIRST);
    await node.registry.idle();
    const retained = (await node.registry.findRetained(workload))[0]?.version;
    const late = delay(node, "PUT");
    const again = claim("b", [proposal(NAME, { replaces: retained ?? 0 })], { pod: "web-0", workload });
    await expect(node.registry.claim(again)).rejects.toThrow("did not record");
    await node.pass(LATE_WRITE_MS - 1_000);
    expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
    late.run();
    expect(allocationLines(node.server)).toEqual([`${NAME} Bound n1`]);
    await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
    expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
  });

  it.each(["POST", "PUT"] as const)(
    "what was retained stays so when the caller hangs up during its %s",
    async (held) => {
      const [first, node] = [await openClusterNode(), await openClusterNode({ name: "n2" })];
      await claimAndRetain(first.registry, ofWeb("eth0"));
      await first.registry.release(FIRST);
      await first.registry.idle();
      for (const [name, object] of first.server.objects) node.server.objects.set(name, object);
      expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
      const [reached, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      node.gate = async ({ method, signal }, commit) => {
        if (method !== held) return commit();
        reached.resolve();
        const ended = new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
        // The server is slow: it carries the call out although its caller has gone.
        const carriedOut = answer.promise.then(commit);
        carriedOut.catch(() => {});
        return Promise.race([carriedOut, ended]);
      };
      const caller = new AbortController();
      const claimed = node.registry.claim({ ...ofWeb("eth0"), owner: "b", containerId: "c-b" }, caller.signal);
      await reached.promise;
      caller.abort(new Error("hung up"));
      await expect(claimed).rejects.toThrow("hung up");
      answer.resolve();
      await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
      await node.pass(COOLDOWN_MS + LATE_WRITE_MS);
      expect(allocationLines(node.server)).toEqual([expect.stringContaining(`${NAME} Kept`)]);
    },
  );

  it("the claim says so, whatever is synced while it is under way", async () => {
    const node = await openClusterNode();
    const first = await node.registry.claim(ofWeb("eth0"));
    const journalled = Promise.withResolvers<void>();
    const again: Promise<ClaimOutcome>[] = [];
    // The sync that deletes the object of an undone claim reads the row once more, and finds that of the next claim.
    node.around = async (method, _args, run) => {
      if (method === "findAddress" && again.length > 0) await journalled.promise;
      const result = await run();
      if (method === "forget") again.push(node.registry.claim(ofWeb("net1")));
      if (method === "claim") journalled.resolve();
      return result;
    };
    await node.registry.undo(first.kind === "bound" ? first.created : []);
    await node.pass(COOLDOWN_MS);
    expect(await Promise.all(again)).toMatchObject([{ kind: "bound", fresh: [{ ip: ip(NAME), ifName: "net1" }] }]);
  });
});

it("what can be deleted is deleted, whatever many others cannot", async () => {
  const node = await openClusterNode({ poolSize: 100_000 });
  for (let at = 0; at <= LIST_PAGE; at++) {
    const owner = `p${at}`;
    await node.registry.claim(claim(owner, [proposal(`10.0.${at >> 8}.${at & 255}`)]));
    await node.registry.release({ containerId: `c-${owner}`, ifName: "eth0" });
    node.clock.ms++;
  }
  const last = `10.0.${LIST_PAGE >> 8}.${LIST_PAGE & 255}`;
  node.gate = async (call, commit) => {
    const isRefused = call.method === "DELETE" && !call.path.endsWith(last);
    if (isRefused)
      throw new ApiError({ status: 403, reason: "Forbidden", operation: "DELETE", message: "denied by a policy" });
    return commit();
  };
  await node.pass(COOLDOWN_MS);
  expect(node.freed).toEqual([last]);
  node.gate = async (_call, commit) => commit();
  await node.pass(RETRY_MAX_MS + LATE_WRITE_MS);
  expect(allocationLines(node.server)).toEqual([]);
});

it("retention: a surplus address that this node itself had retained is free when it has cooled", async () => {
  const node = await retainAddress();
  await node.pass(0);
  expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
  await node.registry.releaseRetained(await node.registry.findRetained(DB));
  await node.pass(0);
  expect(allocationLines(node.server)).toEqual([`${NAME} Cooling n1`]);
  await node.pass(COOLDOWN_MS);
  expect(allocationLines(node.server)).toEqual([]);
});

it("retention: the address that a member's pod has released is reported as free, so that the next one finds it without a lookup", async () => {
  const node = await retainAddress();
  await node.pass(COOLDOWN_MS);
  expect(await node.registry.findAddress("", ip(NAME))).toBeUndefined();
  expect([allocationLines(node.server), node.freed]).toEqual([[`${NAME} Kept n1`], [NAME]]);
});

it("retention: what was retained on this node, and freed since without its knowledge, is new to the member", async () => {
  const node = await retainAddress();
  await node.pass(COOLDOWN_MS);
  expect(allocationLines(node.server)).toEqual([`${NAME} Kept n1`]);
  node.server.remove(NAME);
  const next = await node.registry.claim(claim("b", [proposal(NAME)], { containerId: "c-b", workload: DB }));
  expect(next).toMatchObject({ kind: "bound", fresh: [{ ip: ip(NAME) }] });
});

it("retention: what was retained on this node for another member, and freed since without its knowledge, is to be had", async () => {
  const node = await retainAddress();
  await node.pass(COOLDOWN_MS);
  node.server.remove(NAME);
  expect(await bindAgain(node)).toEqual([NAME]);
});

it("retention: what a lookup has just found retained is taken over without another one", async () => {
  const { server } = await retainAddress();
  const node = await openClusterNode({ name: "n2", server });
  const [retained] = await node.registry.findRetained(DB);
  const methods: string[] = [];
  node.gate = async (call, commit) => {
    methods.push(call.method);
    return commit();
  };
  const wanted = proposal(NAME, { replaces: retained?.version ?? 0 });
  expect(held(await node.registry.claim(claim("b", [wanted], { containerId: "c-b", workload: DB })))).toEqual([NAME]);
  expect(methods).toEqual(["PUT"]);
});

it("exhaustion: what an old journal says of another node's address is forgotten, and the address not reported as free", async () => {
  const other = await openClusterNode({ name: "n2" });
  await other.registry.claim(claim("b", [proposal(NAME)]));
  const node = await openClusterNode({ server: other.server });
  await node.registry.adopt({
    ...proposal(NAME),
    state: "Cooling",
    ifName: "eth0",
    namespace: "shop",
    pod: "web-0",
    owner: "a",
  });
  await node.pass(COOLDOWN_MS);
  expect(await node.registry.findAddress("", ip(NAME))).toBeUndefined();
  expect([allocationLines(node.server), node.freed]).toEqual([[`${NAME} Bound n2`], []]);
});

it("retention: a restored journal's row of an earlier pod does not hide what the member has had since", async () => {
  const node = await openClusterNode();
  await claimAndRetain(node.registry, claim("b", [proposal(NAME)], { workload: DB }));
  const restored = await openClusterNode({ server: node.server });
  restored.gate = () => new Promise(() => {});
  const row = { ...proposal(NAME), state: "Cooling", ifName: "eth0", namespace: "shop", pod: "db-0" } as const;
  await restored.registry.adopt({ ...row, owner: "a" });
  restored.gate = async (_call, commit) => commit();
  expect(await restored.registry.findRetained(DB)).toMatchObject([{ ip: ip(NAME), owner: "b" }]);
});

describe("retention: what a lost journal had taken in, and its pod gives up for another address", () => {
  const TEXT = `${NAME} Bound n1`;

  /** Returns the node whose journal was lost, and what the ADD has given up. */
  async function giveUp(workload: Workload = DB): Promise<{ next: ClusterNode; fresh: readonly Allocation[] }> {
    const node = await openClusterNode();
    await claimAndRetain(node.registry, claim("a", [proposal(NAME)], { workload: DB }));
    const next = await openClusterNode({ server: node.server });
    const row = { ...proposal(NAME), state: "Bound", owner: "a", namespace: "shop", pod: "web-0" } as const;
    await next.registry.adopt({ ...row, workload });
    const outcome = await next.registry.claim(claim("a", [proposal(NAME)], { workload: DB, containerId: "next" }));
    const { fresh = [] } = outcome.kind === "bound" ? outcome : {};
    expect(fresh.map((each) => each.ip)).toEqual([ip(NAME)]);
    await next.registry.undo(fresh, fresh);
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([TEXT]);
    return { next, fresh };
  }

  it("rests when the pod has the other one, because a NIC may have had it", async () => {
    const { next, fresh } = await giveUp();
    await next.registry.settleSuperseded(fresh, true);
    await next.pass(COOLDOWN_MS - 1);
    expect([allocationLines(next.server).length, next.freed]).toEqual([1, []]);
    await next.pass(2);
    expect([allocationLines(next.server), next.freed]).toEqual([[], [NAME]]);
  });

  it("is retained when the pod is refused the other one", async () => {
    const { next, fresh } = await giveUp();
    await next.registry.settleSuperseded(fresh, false);
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([`${NAME} Kept n1`]);
  });

  it("stays recorded until then, however long that takes, and is released then", async () => {
    const { next, fresh } = await giveUp();
    await next.pass(COOLDOWN_MS);
    expect(allocationLines(next.server)).toEqual([TEXT]);
    await next.registry.settleSuperseded(fresh, true);
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([]);
  });

  it("is the pod's again that claims it meanwhile, and stays that", async () => {
    const { next, fresh } = await giveUp();
    expect(await bindAgain(next)).toEqual([NAME]);
    await next.registry.settleSuperseded(fresh, true);
    await next.pass(COOLDOWN_MS);
    expect(allocationLines(next.server)).toEqual([TEXT]);
    expect(await next.registry.findOwner("a")).toMatchObject([{ state: "Bound", workload: DB }]);
  });

  it("is retained when the agent is killed before", async () => {
    const { next } = await giveUp();
    await next.open();
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([`${NAME} Kept n1`]);
  });

  it("is not settled by an ADD that gave it up before the pod claimed it again", async () => {
    const { next, fresh } = await giveUp({ ...DB, isFresh: true });
    const row = await next.registry.findAddress("", ip(NAME));
    const own = proposal(NAME, { replaces: row?.version ?? 0 });
    const outcome = await next.registry.claim(claim("a", [own], { workload: DB, containerId: "third" }));
    const again = outcome.kind === "bound" ? (outcome.fresh ?? []) : [];
    expect(again).toHaveLength(1);
    await next.registry.undo(again, again);
    await next.registry.settleSuperseded(fresh, false);
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([TEXT]);
    await next.registry.settleSuperseded(again, false);
    await next.pass(0);
    expect(allocationLines(next.server)).toEqual([`${NAME} Kept n1`]);
  });
});
