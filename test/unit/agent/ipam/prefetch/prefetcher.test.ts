/** The rule prefetch: what is claimed ahead of an ADD, and what becomes of it. */

import { describe, expect, it } from "vitest";
import { PREFETCHES_AT_ONCE, UNATTACHED_MS } from "../../../../../host/agent/ipam/prefetch/prefetcher.ts";
import {
  nic,
  POOLS,
  type Prefetching,
  type PrefetchTest,
  podOf,
  withPrefetching,
} from "../../../../world/prefetching.ts";
import { until } from "../../../../world/recorded-log.ts";
import { ipPool } from "../../../../world/subjects.ts";

const web = podOf("web-0");

function check(name: string, test: PrefetchTest, options?: Parameters<typeof withPrefetching>[1]): void {
  it(name, () => withPrefetching(test, options));
}

/** Until nothing is queued or under way. */
function waitUntilIdle({ prefetcher }: Prefetching): Promise<void> {
  return until(() => {
    const { wanted, claimed, found, late, withdrawn, failed } = prefetcher.stats();
    return wanted <= claimed + found + late + withdrawn + failed;
  }, "every claim ahead has ended");
}

async function watched(world: Prefetching, ...pods: ReturnType<typeof podOf>[]): Promise<void> {
  for (const pod of pods) world.prefetcher.podChanged(pod);
  await waitUntilIdle(world);
}

describe("a pod that was bound to the node", () => {
  check("prefetch: has its address before its ADD comes, and the ADD takes just that", async (world) => {
    await watched(world, web);
    const [row = ""] = await world.rows();
    expect(row).toMatch(/^web-0 eth0 \S+ Bound$/);
    const claimed = world.prefetcher.claimedFor("uid-web-0", "eth0");
    expect(claimed).toHaveLength(1);
    const address = await world.add(web);
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
    expect(row).toContain(` ${address} `);
    expect(world.prefetcher.claimedFor("uid-web-0", "eth0")).toEqual([]);
    const stats = world.prefetcher.stats();
    expect(stats).toMatchObject({ wanted: 1, claimed: 1, adds: 1, used: 1, waited: 0, late: 0 });
  });

  check("is claimed for once, however often its object changes", async (world) => {
    const labelled = podOf("web-0", { metadata: { labels: { a: "b" } } });
    await watched(world, web, labelled, web);
    await world.add(web);
    await watched(world, labelled);
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 1, claimed: 1 });
    expect(await world.rows()).toHaveLength(1);
  });

  check("static-pods: a mirror pod has nothing, whose pod may be another node's", async (world) => {
    const hash = "0123456789abcdef0123456789abcdef";
    const mirror = podOf("web-0", {
      metadata: { annotations: { "kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash } },
    });
    await watched(world, mirror);
    expect(await world.rows()).toEqual([]);
    await world.add(mirror);
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 0, claimed: 0 });
    expect(await world.rows()).toHaveLength(1);
  });

  check("a repeated ADD is no second hit, and gets the same address", async (world) => {
    await watched(world, web);
    const first = await world.add(web);
    expect(await world.add(web)).toBe(first);
    expect(world.prefetcher.stats()).toMatchObject({ adds: 1, used: 1 });
  });
});

describe("nothing is claimed", () => {
  check("for hostNetwork pods", async (world) => {
    await watched(world, podOf("web-0", { spec: { hostNetwork: true } }));
    expect([world.door.claims, world.prefetcher.stats().wanted]).toEqual([[], 0]);
  });

  check("for running pods after an agent start", async (world) => {
    const running = podOf("web-0", { status: { phase: "Running", podIPs: [{ ip: "10.6.0.9" }] } });
    const starting = podOf("web-1", { status: { phase: "Pending", podIPs: [{ ip: "10.6.0.8" }] } });
    await watched(world, running, starting);
    expect([world.door.claims, world.prefetcher.stats().wanted]).toEqual([[], 0]);
    await world.add(running);
    expect(world.prefetcher.stats()).toMatchObject({ adds: 0, late: 0 });
  });

  check(
    "for pods that might exceed maxAddressesPerPod: their ADDs come one after another",
    async (world) => {
      const two = podOf("web-0", { networks: "lab" });
      world.follow(POOLS, "{ enableIPv6: false, maxAddressesPerPod: 4 }");
      await watched(world, two);
      expect(world.door.claims).toEqual([]);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 2, failed: 2 });
      world.follow(POOLS, "{ enableIPv6: false, maxAddressesPerPod: 5 }");
      await watched(world, podOf("web-1", { networks: "lab" }));
      expect(world.door.claims).toHaveLength(2);
      expect([await world.add(two), await world.add(two, "net1")]).toHaveLength(2);
    },
    { nics: () => [nic("eth0"), nic("net1")] },
  );

  check(
    "for NICs of other IPAMs",
    async (world) => {
      await watched(world, web);
      expect(world.door.claims.map(({ ifName }) => ifName)).toEqual(["net1"]);
      expect(await world.rows()).toEqual([expect.stringMatching(/^web-0 net1 \S+ Bound$/)]);
    },
    { nics: () => [nic("eth0", { ipamConf: undefined }), nic("net1")] },
  );

  check(
    "for a pod that no pool fits, whose annotation is wrong, or whose pool is full: its ADD says why",
    async (world) => {
      world.follow([...POOLS, ipPool("tiny", "10.8.0.0/30", { ips: [] })]);
      const pods = [{ ipv4: ["none"] }, { ipv5: ["blue"] }, { ipv4: ["tiny"] }].map((ippool, index) =>
        podOf(`web-${index}`, { annotations: { ippool } }),
      );
      await watched(world, ...pods);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 3, claimed: 0, failed: 3 });
      expect(world.node.lines.filter((line) => !line.startsWith("debug"))).toEqual([]);
      const codes = await Promise.all(pods.map((pod) => world.add(pod).catch(({ name, code }) => code ?? name)));
      expect(codes).toEqual([100, "ConfigError", 101]);
    },
  );

  check(
    "for a pod whose NICs are unknown",
    async (world) => {
      await watched(world, web);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 0 });
      expect(world.node.lines).toEqual(["debug Addresses of a pod are left to its ADD"]);
      expect(await world.add(web)).toMatch(/^10\.6\.0\./);
    },
    {
      nics: () => {
        throw new Error('annotation "k8s.v1.cni.cncf.io/networks" is wrong');
      },
    },
  );

  check(
    "for a NIC that asks for an address by name; its ADD gets what it asks for",
    async (world) => {
      await watched(world, web);
      expect(await world.rows()).toEqual([]);
      expect(await world.add(web, "eth0", { body: { args: { cni: { ips: ["10.6.0.77"] } } } })).toBe("10.6.0.77");
    },
    { nics: () => [nic("eth0", { isAsking: true })] },
  );

  check("by waiting for an address that cools: only an ADD waits", async (world) => {
    world.follow([ipPool("blue", "10.6.0.0/30", { default: true, ips: ["10.6.0.1"] })]);
    await world.add(web);
    await world.node.registry.release({ containerId: "c-web-0", ifName: "eth0" });
    await watched(world, podOf("web-1"));
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 1, failed: 1 });
    expect(world.node.clock.sleepers.size).toBe(0);
    const adding = world.add(podOf("web-1"));
    await until(() => world.node.clock.sleepers.size === 1, "the ADD waits");
    await world.node.clock.advance(2_000);
    expect(await adding).toBe("10.6.0.1");
  });
});

describe("several NICs", () => {
  const ippools = ["eth0", "net1", "net2"].map((name) => ({ interface: name, ipv4: ["blue"] }));
  const three = podOf("web-0", { annotations: { ippools }, networks: "lab,lab" });
  const all = () => ["eth0", "net1", "net2"].map((name) => nic(name));

  check(
    "with ippools all are claimed at once, and each ADD is a hit",
    async (world) => {
      await watched(world, three);
      expect(world.door.claims).toHaveLength(1);
      const addresses = [await world.add(three), await world.add(three, "net1"), await world.add(three, "net2")];
      expect(new Set(addresses).size).toBe(3);
      expect(await world.rows()).toHaveLength(3);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 3, claimed: 3, adds: 3, used: 3 });
    },
    { nics: all },
  );

  check(
    "with ippools nothing is claimed for a NIC of another IPAM that it names",
    async (world) => {
      await watched(world, three);
      expect((await world.rows()).map((row) => row.split(" ")[1]).sort()).toEqual(["eth0", "net2"]);
    },
    { nics: () => all().map((each) => (each.ifName === "net1" ? { ...each, ipamConf: undefined } : each)) },
  );

  check(
    "without it each has its own claim: an ADD of the first keeps none of the second back",
    async (world) => {
      await watched(world, web);
      expect(world.door.claims.map(({ ifName }) => ifName).sort()).toEqual(["eth0", "net1"]);
      await world.add(web);
      expect(world.prefetcher.claimedFor("uid-web-0", "net1")).toHaveLength(1);
    },
    { nics: () => [nic("eth0"), nic("net1")] },
  );
});

describe("many pods at once", () => {
  const pods = Array.from({ length: 110 }, (_, index) => podOf(`web-${index}`));

  check("are claimed for a few at a time, all of them, each another address", async (world) => {
    await watched(world, ...pods);
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 110, claimed: 110 });
    expect(world.door.mostAtOnce).toBeLessThanOrEqual(PREFETCHES_AT_ONCE);
    expect(new Set((await world.rows()).map((row) => row.split(" ")[2])).size).toBe(110);
  });
});

describe("prefetch: it goes back at once, without a cooldown", () => {
  check("what does not fit when the ADD comes, because the pod's annotation has changed", async (world) => {
    await watched(world, web);
    const [before] = world.prefetcher.claimedFor("uid-web-0", "eth0");
    const changed = podOf("web-0", { annotations: { ippool: { ipv4: ["green"] } } });
    expect(await world.add(changed)).toMatch(/^10\.7\.0\./);
    expect((await world.rows()).map((row) => row.split(" ").at(-1))).toEqual(["c-web-0"]);
    expect(before && (await world.node.registry.findAddress("", before.ip))).toBeUndefined();
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 1, used: 0, discarded: 1 });
  });

  check("what does not fit and cannot be given back at the first try", async (world) => {
    await watched(world, web);
    const changed = podOf("web-0", { annotations: { ippool: { ipv4: ["green"] } } });
    world.door.isFull = true;
    await expect(world.add(changed)).rejects.toThrow("the disk is full");
    world.door.isFull = false;
    expect(await world.add(changed)).toMatch(/^10\.7\.0\./);
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 1, used: 0, discarded: 1 });
  });

  check("what the ADD contradicts with an address asked for by name", async (world) => {
    await watched(world, web);
    expect(await world.add(web, "eth0", { body: { args: { cni: { ips: ["10.6.0.77"] } } } })).toBe("10.6.0.77");
    expect(await world.rows()).toEqual(["web-0 eth0 10.6.0.77 Bound c-web-0"]);
    expect(world.prefetcher.stats()).toMatchObject({ used: 0, discarded: 1 });
  });

  check("what lies in a pool that was disabled meanwhile", async (world) => {
    await watched(world, web);
    world.follow([ipPool("blue", "10.6.0.0/24", { disable: true }), ipPool("green", "10.7.0.0/24", { default: true })]);
    expect(await world.add(web)).toMatch(/^10\.7\.0\./);
    expect(await world.rows()).toHaveLength(1);
  });

  check("what a pod had that was deleted before its ADD", async (world) => {
    await watched(world, web);
    world.prefetcher.podGone(web);
    await until(async () => (await world.rows()).length === 0, "it is free");
    expect(world.node.poolCache.counts("blue")?.used).toBe(0);
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 1, returned: 1 });
  });

  it.each([
    ["is being deleted", { metadata: { deletionTimestamp: "2026-11-20T04:00:00Z" } }],
    ["was evicted", { status: { phase: "Failed", reason: "Evicted" } }],
  ])("what a pod had that %s before its ADD", (_, parts) =>
    withPrefetching(async (world) => {
      await watched(world, web);
      world.prefetcher.podChanged(podOf("web-0", parts));
      await until(async () => (await world.rows()).length === 0, "it is free");
      world.prefetcher.podChanged(web);
      expect(world.prefetcher.stats()).toMatchObject({ wanted: 1, returned: 1 });
    }),
  );

  check("what a pod had that was replaced by another one of its name", async (world) => {
    await watched(world, web);
    await watched(world, podOf("web-0", { uid: "uid-other" }));
    await until(async () => (await world.rows()).length === 1, "one is left");
    expect(world.prefetcher.stats()).toMatchObject({ claimed: 2, returned: 1 });
    expect(world.prefetcher.claimedFor("uid-other", "eth0")).toHaveLength(1);
  });

  check("but not what its ADD has attached meanwhile", async (world) => {
    await watched(world, web);
    const claimed = world.prefetcher.claimedFor("uid-web-0", "eth0");
    const address = await world.add(web);
    await world.node.registry.undo(claimed);
    world.prefetcher.podGone(web);
    expect(await world.rows()).toEqual([`web-0 eth0 ${address} Bound c-web-0`]);
  });
});

describe("a pod that never comes gives its address back", () => {
  check("unattached: two minutes after it was claimed; when it comes later, it claims anew", async (world) => {
    await watched(world, web);
    await world.later(UNATTACHED_MS);
    expect(await world.rows()).toHaveLength(1);
    await world.later(1);
    expect([await world.rows(), world.node.poolCache.counts("blue")?.used]).toEqual([[], 0]);
    await watched(world, web);
    expect(world.prefetcher.stats()).toMatchObject({ wanted: 1, claimed: 1, timedOut: 1 });
    expect(await world.add(web)).toMatch(/^10\.6\.0\./);
    expect(world.prefetcher.stats()).toMatchObject({ adds: 1, used: 0, late: 0 });
  });
});
