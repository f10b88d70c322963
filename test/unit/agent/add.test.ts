import { describe, expect, it } from "vitest";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import { UNATTACHED_MS } from "../../../host/agent/ipam/prefetch/prefetcher.ts";
import type { Addition } from "../../../host/agent/request/plugin.ts";
import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import type { Registry } from "../../../host/registry/registry.ts";
import type { Snapshot } from "../../../host/resources/snapshot.ts";
import { TestClock } from "../../world/clock.ts";
import { addRequest, openNode, type TestNode } from "../../world/node.ts";
import { decodedSnapshot, ipPool, vendorConf } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

interface World extends Pick<TestNode, "registry" | "poolCache" | "bind"> {
  add(ifName: string, body?: object): Promise<Addition>;
  /** Time passes, and what then is to be freed is freed. */
  later(milliseconds: number): Promise<void>;
}

const BOTH_FAMILIES = vendorConf("enableIPv6: true");

/** A pod that announces one NIC beside the first, unless `networks` says otherwise. */
function podOf(own: Record<string, unknown>, networks = "lab"): object {
  const texts = Object.entries(own).map(([key, value]) => [`ipam.vendor.io/${key}`, JSON.stringify(value)]);
  const annotations = { ...Object.fromEntries(texts), "k8s.v1.cni.cncf.io/networks": networks };
  const metadata = { namespace: "shop", name: "web-0", uid: "uid-1", annotations };
  return { apiVersion: "v1", kind: "Pod", metadata };
}

async function withPlugin(
  manifests: readonly object[],
  test: (world: World) => Promise<void>,
  more: Partial<Snapshot> = {},
): Promise<void> {
  const conf = manifests.includes(BOTH_FAMILIES) ? [] : [vendorConf("enableIPv6: false")];
  const snapshot = { ...decodedSnapshot(...conf, ...manifests), ...more };
  const node = await openNode({ snapshot, clock: new TestClock({ isHasty: true }) });
  const { registry, poolCache, clock } = node;
  const deps = node.ipam();
  await test({
    ...{ registry, poolCache, bind: node.bind.bind(node) },
    add: (ifName, body = {}) => addAddresses(deps, addRequest(ifName, { body }), new AbortController().signal),
    later: async (milliseconds) => {
      clock.jump(milliseconds);
      await registry.releaseUnattached(clock.ms - UNATTACHED_MS);
      await registry.expire();
    },
  });
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
  const six = { owner: "uid-1", network: "lab", prefixLength: 125, pool: "six" };
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
        async ({ add, registry, bind }) => {
          await bind("fd00::1", "web-0", { ...six, containerId });
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
      async ({ add, bind }) => {
        const message =
          'Pods and workloads of namespace "shop" have 100 addresses, and may have 100 (maxAddressesPerNamespace of vendor-conf)';
        await expect(add("eth0")).rejects.toMatchObject({ code: 101, message });
        const nic = { owner: "uid-1", ifName: "net1", containerId: "c1", network: "lab", pool: "wide" };
        await bind("10.6.0.9", "web-0", nic);
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
      async ({ add, registry, bind }) => {
        await add("eth0");
        await registry.release({ containerId: "c1", ifName: "eth0" });
        const free = ["10.6.0.1", "10.6.0.2"].map(ip);
        const [cooling] = await registry.list(undefined, 1);
        const other = free.find((each) => each.value !== cooling?.ip.value) ?? ip("::");
        await bind(formatIp(other), "x", { prefixLength: 30 });
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
    withPlugin([ipPool("blue", "10.6.0.0/29", { ips: ["10.6.0.1"] }), pod], async ({ add, registry, bind }) => {
      await bind("10.6.0.1", "x", { containerId: "x", prefixLength: 29 });
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
  it("undoes all NICs of a claim whose answer was not delivered", () =>
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
      async ({ add, registry, poolCache, bind }) => {
        await expect(add("eth0")).resolves.toBeDefined();
        await registry.release({ containerId: "c1", ifName: "eth0" });
        const [cooling] = await registry.list(undefined, 1);
        const place = { space: "a", prefixLength: 30, pool: "a", replaces: cooling?.version ?? 0 };
        await bind("10.0.0.1", "x", place);
        poolCache.unmark("a", ip("10.0.0.1"));
        await expect(add("eth0")).rejects.toMatchObject({ code: 101 });
        expect([poolCache.counts("a")?.used, poolCache.counts("b")?.used]).toEqual([1, 0]);
      },
    ));
});
