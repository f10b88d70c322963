import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDetection } from "../../../host/agent/detection/open-detection.ts";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import { openManifestIdentifier } from "../../../host/agent/ipam/pod-identity.ts";
import { cooldownsOf, PoolInventory } from "../../../host/agent/ipam/pool-inventory.ts";
import type { Addition } from "../../../host/agent/plugin.ts";
import { UNATTACHED_MS } from "../../../host/agent/prefetch/prefetcher.ts";
import { decodeRequest } from "../../../host/cni/request.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import type { Registry } from "../../../host/registry/registry.ts";
import { openSqliteRegistry } from "../../../host/registry/sqlite/registry.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { assembleSnapshot, type Snapshot } from "../../../host/resources/snapshot.ts";
import { ip, openCore } from "../ipam/subjects.ts";
import { nicSettings } from "./nic-settings.ts";
import { recordLog } from "./recorded-log.ts";

interface World {
  readonly registry: Registry;
  readonly poolCache: PoolCache;
  add(ifName: string, body?: object): Promise<Addition>;
  /** Time passes, and what then is to be freed is freed. */
  later(milliseconds: number): Promise<void>;
}

const CONF = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "vendor-conf" },
  data: { "conf.yml": "enableIPv6: false" },
};

const BOTH_FAMILIES = { ...CONF, data: { "conf.yml": "enableIPv6: true" } };

function ipPool(name: string, subnet: string, spec: object = {}): object {
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { subnet, ...spec } };
}

/** A pod that announces one NIC beside the first, unless `networks` says otherwise. */
function podOf(own: Record<string, unknown>, networks = "lab"): object {
  const texts = Object.entries(own).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)]);
  const annotations = { ...Object.fromEntries(texts), "k8s.v1.cni.cncf.io/networks": networks };
  const metadata = { namespace: "shop", name: "web-0", uid: "uid-1", annotations };
  return { apiVersion: "v1", kind: "Pod", metadata };
}

function snapshotOf(manifests: readonly object[]): Snapshot {
  const conf = manifests.includes(BOTH_FAMILIES) ? [] : [CONF];
  const resources = [...conf, ...manifests].flatMap((manifest) => decodeManifests(JSON.stringify(manifest), "test"));
  return assembleSnapshot([{ source: "test", resources }]);
}

async function withPlugin(
  manifests: readonly object[],
  test: (world: World) => Promise<void>,
  more: Partial<Snapshot> = {},
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "berth-add-"));
  const snapshot = { ...snapshotOf(manifests), ...more };
  const poolCache = new PoolCache(openCore());
  let clockMs = 1_000_000;
  const nowMs = (): number => clockMs;
  const registry = await openSqliteRegistry({
    ...{ directory, bootId: "b", nowMs, lockWaitMs: 0, cooldowns: cooldownsOf(snapshot) },
    ...{
      onFreed: (space, freed) => poolCache.unmark(space, freed),
      onDeath: () => {},
      faultCounter: createFaultCounter(),
    },
  });
  const inventory = new PoolInventory(poolCache, registry, snapshot);
  inventory.follow(snapshot);
  const sleep = async (milliseconds: number): Promise<void> => {
    clockMs += milliseconds;
  };
  const { log } = recordLog();
  const detection = openDetection({ registry, pools: () => snapshot.pools, nowMs, log });
  const deps = {
    detection,
    networks: nicSettings,
    identifier: openManifestIdentifier(() => snapshot),
    inventory,
    clock: { nowMs, sleep },
    node: { name: "n1", labels: {} },
    log,
  };
  const add: World["add"] = (ifName, body = {}) => {
    const headers = {
      ...{ "cni-command": "ADD", "cni-containerid": "c1", "cni-netns": "/run/netns/x", "cni-ifname": ifName },
      ...{ "cni-path": "/bin", "cni-args": "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0" },
    };
    const conf = { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth" }, ...body };
    const request = decodeRequest("berth", headers, JSON.stringify(conf));
    if (request.command !== "ADD") throw new Error("no ADD");
    return addAddresses(deps, request, new AbortController().signal);
  };
  const later = async (milliseconds: number): Promise<void> => {
    clockMs += milliseconds;
    await registry.releaseUnattached(clockMs - UNATTACHED_MS);
    await registry.expire();
  };
  try {
    await test({ registry, poolCache, add, later });
  } finally {
    await registry.close();
    rmSync(directory, { recursive: true });
  }
}

function addressesOf({ result }: Addition): string[] {
  return result.ips.map(({ address }) => formatPrefix(address));
}

async function boundTo(registry: Registry): Promise<string[]> {
  const all = await registry.list(undefined, 100);
  return all.filter(({ state }) => state === "Bound").map((each) => `${each.ifName}=${formatIp(each.ip)}`);
}

const TWO_NICS = [
  { interface: "eth0", ipv4: ["blue"] },
  { interface: "net1", ipv4: ["green"] },
];
const POOLS = [ipPool("blue", "10.6.0.0/30"), ipPool("green", "10.7.0.0/30")];

describe("a NIC that has one family of two", () => {
  const pod = podOf({ ippool: { ipv4: ["blue"], ipv6: ["six"] } });
  const six = { space: "", ip: ip("fd00::1"), prefixLength: 125, pool: "six", ifName: "eth0" };
  const claimant = { owner: "uid-1", namespace: "shop", pod: "web-0", ifName: "eth0", network: "lab" };
  const rows = [
    ["the same sandbox", "c1", "10.6.0.0/30", { ips: ["10.6.0.1"] }, ["10.6.0.1/30", "fd00::1/125"]],
    ["a new sandbox", "c0", "10.6.0.0/30", { ips: ["10.6.0.1"] }, ["10.6.0.1/30", "fd00::1/125"]],
    ["the same sandbox, and no address for it", "c1", "10.6.0.0/30", { ips: [] }, 101],
    ["a new sandbox, and no address for it", "c0", "10.6.0.0/30", { ips: [] }, 101],
  ] as const;
  for (const sixes of [["fd00::1"], ["fd00::1-fd00::6"]])
    it.each(rows)(`gets the other one, or nothing: %s (%s; ${sixes})`, (_what, containerId, subnet, spec, expected) =>
      withPlugin(
        [BOTH_FAMILIES, ipPool("blue", subnet, spec), ipPool("six", "fd00::/125", { ips: sixes }), pod],
        async ({ add, registry }) => {
          await registry.claim({ ...claimant, containerId, proposals: [six] });
          if (expected === 101) await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
          else expect(addressesOf(await add("eth0")).sort()).toEqual(expected);
          expect(await boundTo(registry)).toHaveLength(expected === 101 ? 1 : 2);
        },
      ),
    );
});

describe("a NIC that comes late or never", () => {
  const routed = podOf({ ippools: TWO_NICS, routes: [{ dst: "172.16.0.0/12", gw: "10.7.0.2" }] });

  it("its route is no error for the first NIC's repeated ADD, long after its address was taken back", () =>
    withPlugin([...POOLS, routed], async ({ add, later, registry, poolCache }) => {
      const first = addressesOf(await add("eth0"));
      await later(UNATTACHED_MS + 1);
      expect(await boundTo(registry)).toHaveLength(1);
      expect(addressesOf(await add("eth0"))).toEqual(first);
      expect(await boundTo(registry)).toHaveLength(2);
      await later(UNATTACHED_MS + 1);
      expect(poolCache.counts("green")?.used).toBe(0);
      const second = await add("net1");
      expect(second.result.routes.map(({ dst }) => formatPrefix(dst))).toEqual(["172.16.0.0/12"]);
    }));

  it("all NICs or none: a full pool of the second leaves nothing of the first", () =>
    withPlugin(
      [
        ...POOLS,
        ipPool("none", "10.8.0.0/30", { ips: [] }),
        podOf({ ippools: [TWO_NICS[0], { interface: "net1", ipv4: ["none"] }] }),
      ],
      async ({ add, registry, poolCache }) => {
        await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
        expect([await boundTo(registry), poolCache.counts("blue")?.used]).toEqual([[], 0]);
      },
    ));
});

describe("a list of 32 NICs, of which the pod has some", () => {
  const nics = ["eth0", ...Array.from({ length: 31 }, (_, index) => `net${index + 1}`)];
  const pod = (networks: string) =>
    podOf({ ippools: nics.map((each) => ({ interface: each, ipv4: ["wide"] })) }, networks);
  const wide = ipPool("wide", "10.6.0.0/24");
  const nicsOf = async (registry: Registry) => (await boundTo(registry)).map((text) => text.split("=")[0]).sort();

  it("claims nothing for NICs that the pod does not announce", () =>
    withPlugin([wide, pod("")], async ({ add, registry }) => {
      await add("eth0");
      expect(await nicsOf(registry)).toEqual(["eth0"]);
    }));

  it("claims for those that it announces, under the names that it gives them", () =>
    withPlugin([wide, pod("lab,lab,lab@net9,lab@other")], async ({ add, registry }) => {
      await add("eth0");
      expect(await nicsOf(registry)).toEqual(["eth0", "net1", "net2", "net9"]);
    }));

  it("serves one that it does not announce when that comes", () =>
    withPlugin([wide, pod("lab")], async ({ add, registry }) => {
      await add("net7");
      expect(await nicsOf(registry)).toEqual(["eth0", "net1", "net7"]);
    }));
});

describe("what one tenant may hold", () => {
  const wide = ipPool("wide", "10.6.0.0/24", { default: true });
  const vendorConf = decodeVendorConf({ enableIPv6: false, maxAddressesPerPod: 3, maxAddressesPerNamespace: 100 }, "x");
  const coordinator = (addresses: number): Snapshot["coordinator"] => ({
    ...{ kind: "Coordinator", name: "default", spec: { podCIDRType: "auto", warnings: [] } },
    fullNamespaces: new Map([["shop", addresses]]),
  });

  it("is of one pod maxAddressesPerPod, NIC by NIC", () =>
    withPlugin(
      [wide, podOf({}, "lab,lab,lab,lab")],
      async ({ add, registry }) => {
        for (const ifName of ["eth0", "net1", "net2", "net1"]) await add(ifName);
        const message =
          "Pod shop/web-0 has 3 addresses and wants 1 more, and may have 3 (maxAddressesPerPod of vendor-conf)";
        await expect(add("net3")).rejects.toMatchObject({ code: 101, message });
        expect(await boundTo(registry)).toHaveLength(3);
      },
      { vendorConf },
    ));

  it("is of one pod maxAddressesPerPod, all NICs at once", () =>
    withPlugin(
      [
        wide,
        podOf(
          { ippools: ["eth0", "net1", "net2", "net3"].map((nic) => ({ interface: nic, ipv4: ["wide"] })) },
          "lab,lab,lab",
        ),
      ],
      async ({ add, registry }) => {
        const message =
          "Pod shop/web-0 has 0 addresses and wants 4 more, and may have 3 (maxAddressesPerPod of vendor-conf)";
        await expect(add("eth0")).rejects.toMatchObject({ code: 101, message });
        expect(await boundTo(registry)).toEqual([]);
      },
      { vendorConf },
    ));

  it("is of one namespace what the controller counted; what a NIC has it keeps", async () => {
    const full = { vendorConf, coordinator: coordinator(100) };
    await withPlugin(
      [wide, podOf({})],
      async ({ add, registry }) => {
        const message =
          'Pods and workloads of namespace "shop" have 100 addresses, and may have 100 (maxAddressesPerNamespace of vendor-conf)';
        await expect(add("eth0")).rejects.toMatchObject({ code: 101, message });
        const claimant = {
          owner: "uid-1",
          namespace: "shop",
          pod: "web-0",
          ifName: "net1",
          containerId: "c1",
          network: "lab",
        };
        await registry.claim({
          ...claimant,
          proposals: [{ space: "", ip: ip("10.6.0.9"), prefixLength: 24, pool: "wide", ifName: "net1" }],
        });
        expect(addressesOf(await add("net1"))).toEqual(["10.6.0.9/24"]);
      },
      full,
    );
    for (const more of [
      { vendorConf, coordinator: coordinator(99) },
      { ...full, vendorConf: { ...vendorConf, maxAddressesPerNamespace: 0 } },
    ]) {
      await withPlugin([wide, podOf({})], async ({ add }) => void (await add("eth0")), more);
    }
  });
});

describe("two NICs of one full pool", () => {
  it("the pod's own cooling address is not taken over for its other NIC", () =>
    withPlugin(
      [ipPool("blue", "10.6.0.0/30"), podOf({ ippools: TWO_NICS.map((nic) => ({ ...nic, ipv4: ["blue"] })) })],
      async ({ add, registry }) => {
        await add("eth0");
        await registry.release({ containerId: "c1", ifName: "eth0" });
        const free = ["10.6.0.1", "10.6.0.2"].map(ip);
        const [cooling] = await registry.list(undefined, 1);
        const other = free.find((each) => each.value !== cooling?.ip.value) ?? ip("::");
        const claimant = { owner: "x", namespace: "", pod: "x", ifName: "eth0", containerId: "x", network: "n" };
        await registry.claim({
          ...claimant,
          proposals: [{ space: "", ip: other, prefixLength: 30, pool: "blue", ifName: "eth0" }],
        });
        await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
        expect(await boundTo(registry)).toHaveLength(1);
      },
    ));
});

describe("two NICs of one pool, and an address that was asked for while it cools", () => {
  const pod = podOf({ ippools: TWO_NICS.map((nic) => ({ ...nic, ipv4: ["blue"] })) });
  const asking = (address: string): object => ({ args: { cni: { ips: [address] } } });
  const plain = ({ result }: Addition): string => formatIp(result.ips[0]?.address.ip ?? ip("::"));

  it("that was the other NIC's: the other NIC gets another one", () =>
    withPlugin([ipPool("blue", "10.6.0.0/30"), pod], async ({ add, registry }) => {
      const [first, second] = [plain(await add("eth0")), plain(await add("net1"))];
      for (const ifName of ["eth0", "net1"]) await registry.release({ containerId: "c1", ifName });
      expect(plain(await add("eth0", asking(second)))).toBe(second);
      expect(plain(await add("net1"))).toBe(first);
    }));

  it("that is the last one: it is not taken over for the other NIC as well", () =>
    withPlugin([ipPool("blue", "10.6.0.0/29", { ips: ["10.6.0.1"] }), pod], async ({ add, registry }) => {
      const claimant = { owner: "x", namespace: "", pod: "x", ifName: "eth0", containerId: "x", network: "n" };
      const place = { space: "", ip: ip("10.6.0.1"), prefixLength: 29, pool: "blue", ifName: "eth0" };
      await registry.claim({ ...claimant, proposals: [place] });
      await registry.release({ containerId: "x", ifName: "eth0" });
      await expect(add("eth0", asking("10.6.0.1"))).rejects.toMatchObject({ code: 101 });
      expect(await boundTo(registry)).toEqual([]);
    }));
});

describe("one NIC in two networks", () => {
  it("has addresses of each, and is asked for nothing that its other NICs have", () =>
    withPlugin([...POOLS, podOf({ ippools: TWO_NICS })], async ({ add, registry }) => {
      const lan = addressesOf(await add("eth0"));
      const wan = addressesOf(await add("eth0", { name: "wan" }));
      expect(wan).not.toEqual(lan);
      expect([addressesOf(await add("eth0")), addressesOf(await add("eth0", { name: "wan" }))]).toEqual([lan, wan]);
      expect((await boundTo(registry)).map((text) => text.split("=")[0]).sort()).toEqual(["eth0", "eth0", "net1"]);
    }));
});

describe("routes of the pod", () => {
  it("one that no NIC can carry is refused with the last NIC, and its addresses go back", () =>
    withPlugin(
      [...POOLS, podOf({ ippools: TWO_NICS, routes: [{ dst: "172.16.0.0/12", gw: "10.9.0.1" }] })],
      async ({ add, registry, poolCache }) => {
        await expect(add("eth0")).rejects.toMatchObject({
          code: 102,
          message: expect.stringContaining("no NIC of the pod can carry the route to 172.16.0.0/12"),
        });
        expect([await boundTo(registry), poolCache.counts("blue")?.used, poolCache.counts("green")?.used]).toEqual([
          [],
          0,
          0,
        ]);
      },
    ));
});

describe("routes of a pod whose NICs are listed and not announced", () => {
  const listed = (gw: string) => podOf({ ippools: TWO_NICS, routes: [{ dst: "172.16.0.0/12", gw }] }, "");

  it("wait for the NIC that carries them", () =>
    withPlugin([...POOLS, listed("10.7.0.2")], async ({ add }) => {
      expect((await add("eth0")).result.routes).toEqual([]);
      expect((await add("net1")).result.routes.map(({ dst }) => formatPrefix(dst))).toEqual(["172.16.0.0/12"]);
    }));

  it("are refused with the last of them when none carries them", () =>
    withPlugin([...POOLS, listed("10.9.0.1")], async ({ add }) => {
      await add("eth0");
      await expect(add("net1")).rejects.toMatchObject({ code: 102 });
    }));
});

describe("undo", () => {
  it("takes back all NICs of a claim that nobody heard of", () =>
    withPlugin([...POOLS, podOf({ ippools: TWO_NICS })], async ({ add, registry, poolCache }) => {
      const { undo } = await add("eth0");
      await undo();
      expect([await boundTo(registry), poolCache.counts("blue")?.used, poolCache.counts("green")?.used]).toEqual([
        [],
        0,
        0,
      ]);
    }));

  it("leaves the NIC that has been attached since", () =>
    withPlugin([...POOLS, podOf({ ippools: TWO_NICS })], async ({ add, registry }) => {
      const { undo } = await add("eth0");
      await add("net1");
      await undo();
      expect((await boundTo(registry)).map((text) => text.split("=")[0])).toEqual(["net1"]);
    }));
});

describe("one address in two spaces", () => {
  it("what one space's pod has does not keep the other space's address away for ever", () =>
    withPlugin(
      [
        ipPool("a", "10.0.0.0/30", { addressSpace: "a", ips: ["10.0.0.1"] }),
        ipPool("b", "10.0.0.0/30", { addressSpace: "b", ips: ["10.0.0.1"] }),
        podOf({
          ippools: [
            { interface: "eth0", ipv4: ["a"] },
            { interface: "net1", ipv4: ["b"] },
          ],
        }),
      ],
      async ({ add, registry, poolCache }) => {
        const place = {
          space: "a",
          prefixLength: 30,
          pool: "a",
          ifName: "eth0",
          ip: { family: 4, value: 0x0a000001n },
        } as const;
        const other = { owner: "x", namespace: "", pod: "x", ifName: "eth0", containerId: "x", network: "n" };
        await expect(add("eth0")).resolves.toBeDefined();
        await registry.release({ containerId: "c1", ifName: "eth0" });
        const [cooling] = await registry.list(undefined, 1);
        expect(
          await registry.claim({ ...other, proposals: [{ ...place, replaces: cooling?.version ?? 0 }] }),
        ).toMatchObject({ kind: "bound" });
        poolCache.unmark("a", place.ip);
        await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
        expect([poolCache.counts("a")?.used, poolCache.counts("b")?.used]).toEqual([1, 0]);
      },
    ));
});
