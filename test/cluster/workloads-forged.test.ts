/**
 * A hostile namespace, `evil`, whose pods claim to belong to a workload of the namespace `shop`: a tenant who may
 * create pods may write any owner, with any UID. None of them gets, frees or holds up an address of the workload
 * (retention, docs/security.md, "Forged owners").
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import * as lab from "../lab/cluster/objects.ts";
import { INSTANCES, instance, MACHINES, machine, SETS, statefulSet } from "../lab/cluster/workload-kinds.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { add, claimAhead, openAgents } from "./workloads.ts";

/** The victim is on n1. On n1 and n2 addresses are claimed by the ADD, on the others ahead of it. */
const NODES = ["n1", "n2", "ahead"] as const;
type NodeName = (typeof NODES)[number];

let world: World;
let ownerOf: Readonly<Record<"set" | "machine", (namespace: string) => Partial<lab.PodSpec>>>;

beforeAll(async () => {
  world = await openAgents(NODES);
  const { client } = world;
  await client.create(lab.NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "evil" } });
  await client.create(
    lab.POOLS,
    lab.poolObject({ name: "guarded", subnet: "10.9.0.0/24", default: false, namespaceName: ["shop"] }),
  );
  const set = (await client.create(SETS, statefulSet("db", 1))).metadata.uid;
  const vm = (await client.create(MACHINES, machine("db"))).metadata.uid;
  const runs = new Map<string, string>();
  for (const namespace of ["shop", "evil"]) {
    const path = INSTANCES.replace("/shop/", `/${namespace}/`);
    runs.set(namespace, (await client.create(path, instance("db", vm))).metadata.uid);
  }
  ownerOf = {
    set: () => ({ owner: { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: set } }),
    machine: (namespace) => ({
      owner: {
        ...{ apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", name: "db" },
        uid: runs.get(namespace) ?? "",
      },
      labels: { "kubevirt.io": "virt-launcher" },
    }),
  };
});

afterEach(() => world.clear());

afterAll(() => world?.stop());

const ROWS = (["set", "machine"] as const).flatMap((kind) =>
  (["lives", "is away"] as const).flatMap((victim) =>
    (["blue", "guarded"] as const).flatMap((pool) =>
      (["same node", "other node"] as const).flatMap((where) =>
        (["by the ADD", "ahead", "by its address"] as const).map((how) => ({ kind, victim, pool, where, how })),
      ),
    ),
  ),
);

describe("a pod of another namespace that names the workload as its owner", () => {
  it.each(ROWS)(
    "retention: a $kind of pool $pool that $victim, $where, $how: leaves its address alone",
    async (row) => {
      const { kind, pool } = row;
      const home: NodeName = row.where === "same node" && row.how === "ahead" ? "ahead" : "n1";
      const there: NodeName = row.how === "ahead" ? "ahead" : row.where === "same node" ? "n1" : "n2";
      const annotated = { annotations: { ippool: { ipv4: [pool] } } };
      const own = (node: NodeName): Promise<lab.LabPod> =>
        world.createPod({ name: "db-0", node, ...ownerOf[kind]("shop"), ...annotated });
      const victim = await own(home);
      const [ip = ""] = await add(world, victim);
      if (row.victim === "is away") {
        await world.endPod(victim);
        await world.untilStates([`${ip} Kept ${home}`]);
      }
      const before = await read(ip);

      const endAhead = row.how === "ahead" ? claimAhead(world.agent("ahead")) : async () => {};
      const thief = await world.createPod({ name: "db-0", namespace: "evil", node: there, ...ownerOf[kind]("evil") });
      if (row.how === "ahead") {
        const { prefetcher } = world.agent(there).cluster;
        await until("an address is claimed ahead", () => prefetcher.claimedFor(thief.uid, "eth0").length > 0);
        expect(await read(ip)).toEqual(before);
      }
      if (row.how === "by its address") await expect(add(world, thief, { requested: ip })).rejects.toThrow(ip);
      else expect(await add(world, thief)).not.toContain(ip);
      await endAhead();
      await world.agent(there).registry.idle();

      expect(await read(ip)).toEqual(before);
      const back = row.victim === "lives" ? victim : await own(there === "ahead" ? "n2" : there);
      expect(await add(world, back)).toEqual([ip]);
      const [held] = await world.agent(back.node).registry.findOwner(back.uid);
      expect(held).toMatchObject({ state: "Bound", namespace: "shop" });
    },
  );
});

/** All that is written in the object of the address, with its version. */
async function read(address: string): Promise<object> {
  const { metadata, spec } = await world.client.get(`${lab.ALLOCATIONS}/${address}`);
  return { uid: metadata.uid, version: metadata.resourceVersion, spec };
}
