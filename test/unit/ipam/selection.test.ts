import { describe, expect, it } from "vitest";
import type { IfName } from "../../../host/cni/names.ts";
import { DEFAULT_VENDOR_CONF } from "../../../host/config/vendor-conf.ts";
import type { Belonging, Subject } from "../../../host/ipam/model.ts";
import { PoolCache } from "../../../host/ipam/pool-cache.ts";
import { describeDemand } from "../../../host/ipam/refusal.ts";
import { assignRequested } from "../../../host/ipam/requested-ips.ts";
import { findUnservable, selectPools } from "../../../host/ipam/selection.ts";
import { PoolShortage } from "../../../host/ipam/subnet-capacity.ts";
import type { PoolOwner } from "../../../host/resources/fields/subnet-pool.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { PoolTable } from "../../../host/resources/pools-by-name.ts";
import { cases } from "../../world/rows.ts";
import { openCore, type PoolOptions, pool, poolsByName, subject } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

const POOLS = poolsByName(
  pool("blue", "10.1.0.0/24"),
  pool("green", "10.2.0.0/24"),
  pool("red-2", "10.4.0.0/24"),
  pool("red-1", "10.3.0.0/24"),
  pool("six", "fd00::/64"),
  pool("fallback", "10.9.0.0/24", { default: true }),
);
const DUAL = DEFAULT_VENDOR_CONF;

type Annotations = NonNullable<Subject["pod"]>["annotations"];

function withPod(annotations: Annotations, options: Partial<Subject> = {}): Subject {
  return subject({ pod: { namespace: "shop", name: "web-0", labels: {}, annotations }, ...options });
}

function namespaceDefaults(ipv4: string[]): Partial<Subject> {
  return { namespace: { labels: {}, annotations: { "ipam.vendor.io/default-ipv4-ippool": JSON.stringify(ipv4) } } };
}

/** `eth0: blue,green | six` */
function summarize(given: Subject, pools: PoolTable): string {
  return selectPools(given, pools)
    .nics.map(({ ifName, families }) => {
      const lists = families.map(({ candidates }) =>
        candidates.map(({ name, refusal }) => (refusal === undefined ? name : `${name} ${refusal}`)).join(","),
      );
      return `${ifName}: ${lists.join(" | ")}`;
    })
    .join("; ");
}

const summary = (given: Subject): string => summarize(given, POOLS);

it("selection looks at the default pools, not at all pools for them", () => {
  class Table extends PoolTable {
    override values(): MapIterator<IpPool> {
      return expect.fail("All pools were looked at");
    }
  }
  const pools = new Table();
  for (const each of [...POOLS.values(), pool("alternate", "10.8.0.0/24", { default: true })])
    pools.set(each.name, each);
  const [nic] = selectPools(subject(), pools).nics;
  expect(nic?.families[0]?.candidates.map(({ name }) => name)).toEqual(["alternate", "fallback"]);
});

const configuration: Partial<Subject> = { ipamConf: { type: "berth", default_ipv4_ippool: ["red-1"] } };
it.each(cases<Subject>`
  default pools when nothing else is said ${subject()} => eth0: fallback
  the CNI configuration over default pools ${subject(configuration)} => eth0: red-1
  namespace defaults over the configuration ${subject({ ...configuration, ...namespaceDefaults(["green"]) })}
    => eth0: green
  ippool over namespace defaults ${withPod({ ippool: { ipv4: ["blue"] } }, namespaceDefaults(["green"]))}
    => eth0: blue
  ippools over ippool ${withPod({ ippool: { ipv4: ["blue"] }, ippools: [{ ipv4: ["green"], cleangateway: false }] })}
    => eth0: green
  no pod at all ${subject({ pod: undefined })} => eth0: fallback
`)("selection takes the first rule that is present: %s", (_what, given, wanted) => expect(summary(given)).toBe(wanted));

describe("selection of ippools", () => {
  const unnamed = (name: string) => ({ ipv4: [name], cleangateway: false });
  const entry = (ifName: string, name: string) => ({ interface: ifName as IfName, ...unnamed(name) });

  it("moves the default route only for an entry that says so", () => {
    const ippools = [entry("eth0", "blue"), { ...entry("net1", "green"), cleangateway: true }];
    const moves = (given: Subject) => selectPools(given, POOLS).nics.map(({ cleanGateway }) => cleanGateway);
    expect(moves(withPod({ ippools }))).toEqual([false, true]);
    expect(moves(withPod({ ippool: { ipv4: ["blue"] } }))).toEqual([false]);
  });

  it("without names goes by the order of the NICs", () => {
    const ippools = ["blue", "green", "red-1"].map(unnamed);
    expect(summary(withPod({ ippools }))).toBe("eth0: blue; net1: green; net2: red-1");
  });

  it("without names takes the names of the pod's networks", () => {
    const ippools = ["blue", "green"].map(unnamed);
    const networks = [{ name: "lab", interface: "store" as IfName }];
    expect(summary(withPod({ ippools, networks }))).toBe("eth0: blue; store: green");
  });
});

describe("selection of families", () => {
  it("lets a pod take one family when allowSingleFamily is set", () => {
    const given = withPod({ ippool: { ipv4: ["blue"] } }, { vendorConf: { ...DUAL, allowSingleFamily: true } });
    expect(summary(given)).toBe("eth0: blue");
  });

  it("lower rules serve the families that they name, with a warning", () => {
    const { nics, warnings } = selectPools(subject({ ...namespaceDefaults(["green"]), vendorConf: DUAL }), POOLS);
    expect(nics[0]?.families.map(({ family }) => family)).toEqual([4]);
    expect(warnings).toEqual([
      'namespace annotation "ipam.vendor.io/default-ipv4-ippool" names no IPv6 pool: the NIC gets no IPv6 address',
    ]);
  });

  it("ignores a disabled family with a warning", () => {
    const ips = [{ ipv4: ip("10.6.0.5"), ipv6: ip("fd00::5") }];
    const { nics, warnings } = selectPools(withPod({ ips, ippool: { ipv4: ["blue"], ipv6: ["six"] } }), POOLS);
    expect(nics[0]?.families).toHaveLength(1);
    expect(warnings).toEqual([
      'annotation "ipam.vendor.io/ips" names IPv6 addresses, which are ignored because enableIPv6 is false',
      'annotation "ipam.vendor.io/ippool" names IPv6 pools, which are ignored because enableIPv6 is false',
    ]);
  });

  it.each([
    ["default_ipv6_ippool", "six", { ...DUAL, enableIPv6: false }, "enableIPv6"],
    ["default_ipv4_ippool", "blue", { ...DUAL, enableIPv4: false }, "enableIPv4"],
  ])("refuses a rule that names disabled families only: %s", (key, name, vendorConf, setting) => {
    const given = subject({ ipamConf: { type: "berth", [key]: [name] }, vendorConf });
    const message =
      'No pool is selected for interface "eth0": the CNI configuration names pools of disabled families only; ' +
      `name pools of another family, or set ${setting}: true in vendor-conf`;
    expect(() => selectPools(given, POOLS)).toThrow(expect.objectContaining({ message }));
  });
});

describe("selection of names and patterns", () => {
  it.each<[names: string[], wanted: string]>([
    [["green", "blue"], "eth0: green,blue"],
    [["red-*"], "eth0: red-1,red-2"],
    [["red-2", "red-*"], "eth0: red-2,red-1"],
    [["?lue", "green"], "eth0: blue,green"],
    [["red-[1]"], "eth0: red-1"],
  ])("%j", (ipv4, wanted) => expect(summary(withPod({ ippool: { ipv4 } }))).toBe(wanted));

  it("compares a pattern with the pools once, for however many NICs and lists", () => {
    const seen = { compared: 0, evaluated: 0 };
    const counting = new Proxy(pool("blue", "10.1.0.0/24"), {
      get: (target, key) => {
        seen.compared++;
        if (key === "deleting") seen.evaluated++;
        return Reflect.get(target, key);
      },
    });
    const once = (lists: readonly string[][]) => {
      Object.assign(seen, { compared: 0, evaluated: 0 });
      const nameOf = (at: number) => (at === 0 ? "eth0" : `n${at}`) as IfName;
      const ippools = lists.map((ipv4, at) => ({ interface: nameOf(at), ipv4, cleangateway: false }));
      const { nics: found } = selectPools(withPod({ ippools }), poolsByName(counting));
      expect(new Set(found.map(({ families }) => families[0]?.candidates)).size).toBe(new Set(lists.map(String)).size);
      return { ...seen };
    };
    expect(once(Array(32).fill(Array(64).fill("b*")))).toEqual(once([["b*"]]));
    expect(once([["b*"], ["bl*"], ["b*", "*"]]).evaluated).toBe(once([["b*"]]).evaluated);
  });

  it("says which candidates a pattern has matched: one that is named before the pattern is not", () => {
    const [nic] = selectPools(withPod({ ippool: { ipv4: ["red-2", "red-*"] } }), POOLS).nics;
    const matched = nic?.families[0]?.candidates.map(({ name, isMatched }) => `${name} ${isMatched}`);
    expect(matched).toEqual(["red-2 undefined", "red-1 true"]);
  });

  it("keeps a pool that was refused as a candidate, without the reason for the pod's owner", () => {
    const refused = new Map([["bad", 'overlaps pool "blue"']]);
    const [nic] = selectPools(withPod({ ippool: { ipv4: ["bad"] } }), POOLS, refused).nics;
    const candidate = { name: "bad", refusal: 'overlaps pool "blue"', brief: "cannot be used" };
    expect(nic?.families[0]?.candidates).toEqual([candidate]);
  });

  it("keeps a name that does not exist as a candidate with its reason", () => {
    const [nic] = selectPools(withPod({ ippool: { ipv4: ["ghost", "blue"] } }), POOLS).nics;
    expect(nic?.families[0]?.candidates[0]).toEqual({ name: "ghost", refusal: "does not exist" });
  });
});

const twice = { ippools: [{ ipv4: ["blue"] }, { ipv4: ["green"] }], networks: [{ name: "lab", interface: "eth0" }] };
it.each(cases<[annotations: object, more?: Partial<Subject>]>`
  networks that give one name to two NICs ${[twice]}
    => Annotation "ipam.vendor.io/ippools" has two entries for interface "eth0"
  an interface that the list lacks ${[{ ippools: [{ interface: "eth0", ipv4: ["blue"] }] }, { ifName: "net7" }]}
    => Annotation "ipam.vendor.io/ippools" has no entry for interface "net7"; it lists eth0
  a missing family that is enabled ${[{ ippool: { ipv4: ["blue"] } }, { vendorConf: DUAL }]}
    => annotation "ipam.vendor.io/ippool": field "ipv6" is required because enableIPv6 is true
  one that an entry of ippools leaves out ${[{ ippools: [{ ipv4: ["blue"] }] }, { vendorConf: DUAL }]}
    => annotation "ipam.vendor.io/ippools": field "[0].ipv6" is required because enableIPv6 is true
  a pattern that matches pools of the other family only ${[{ ippool: { ipv4: ["six*"] } }]}
    => Pattern "six*" in annotation "ipam.vendor.io/ippool" matches no IPv4 pool
`)("selection refuses %s", (_what, [annotations, more], message) => {
  expect(() => selectPools(withPod(annotations, more), POOLS)).toThrow(message);
});

it("selection without an answer names the missing sources", () => {
  expect(() => selectPools(subject(), poolsByName())).toThrow(
    'No pool is selected for interface "eth0": no annotation, namespace default or CNI configuration names one, ' +
      "and no IPPool has spec.default: true",
  );
});

describe("of pods that name Subnets", () => {
  const WEB: PoolOwner = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-web" };
  const DB: PoolOwner = { apiVersion: "apps/v1", kind: "StatefulSet", namespace: "shop", name: "db", uid: "u-db" };

  function made(name: string, cidr: string, subnet: string, more: PoolOptions & { of?: PoolOwner; nic?: string } = {}) {
    const { of = WEB, nic = "eth0", ...options } = more;
    const owner = { subnet, application: of, interface: nic, reclaim: true };
    const generated = { ...owner, wanted: 3, reason: "2 replicas and 1 more" };
    return pool(name, cidr, { generated, ...options });
  }

  const POOLS = poolsByName(
    pool("hand", "10.9.0.0/24", { default: true }),
    made("web-b", "10.1.0.0/24", "blue"),
    made("web-g", "10.2.0.0/24", "green"),
    made("web-n", "10.1.0.0/24", "blue", { nic: "net1" }),
    made("web-6", "fd00::/64", "six"),
    made("db-b", "10.1.0.0/24", "blue", { of: DB }),
    made("db-d", "10.3.0.0/24", "blue", { of: DB, default: true }),
  );

  const WEBS: Belonging = { kind: "application", application: WEB };
  const DBS: Belonging = { kind: "application", application: DB };

  function withPod(annotations: Annotations, options: Partial<Subject> & { application?: Belonging } = {}): Subject {
    const { application, ...rest } = { application: WEBS, ...options };
    return subject({ pod: { namespace: "shop", name: "web-0", labels: {}, annotations, application }, ...rest });
  }

  const summary = (given: Subject, pools = POOLS): string => summarize(given, pools);
  const eth0 = "eth0" as IfName;
  const net1 = "net1" as IfName;

  describe("a pod that names Subnets gets the pools", () => {
    const entry = { ipv4: ["blue"] };
    const both = [eth0, net1].map((nic) => ({ interface: nic, ...entry }));
    it.each(cases<Subject>`
      of its workload, NIC and Subnet ${withPod({ subnet: entry })} => eth0: web-b
      of its other NIC ${withPod({ subnet: entry }, { ifName: "net1" })} => net1: web-n
      in the order of the Subnets ${withPod({ subnet: { ipv4: ["green", "blue"] } })} => eth0: web-g,web-b
      of both families ${withPod({ subnet: { ipv4: ["blue"], ipv6: ["six"] } }, { vendorConf: DUAL })}
        => eth0: web-b | web-6
      and not what ippools names ${withPod({ subnet: entry, ippools: [{ ipv4: ["hand"], cleangateway: false }] })}
        => eth0: web-b
      and not what ippool names ${withPod({ subnet: entry, ippool: { ipv4: ["hand"] } })} => eth0: web-b
      of all NICs at once with subnets, which beats subnet ${withPod({ subnet: { ipv4: ["green"] }, subnets: both })}
        => eth0: web-b; net1: web-n
      of another workload when it belongs there ${withPod({ subnet: entry }, { application: DBS })}
        => eth0: db-b,db-d
    `)("%s", (_what, given, wanted) => expect(summary(given)).toBe(wanted));
    it("of no pod in a Subnet where it has none", () =>
      expect(summary(withPod({ subnet: { ipv4: ["six"] } }))).toBe("eth0: "));

    it("but none that is going away or tied to others", () => {
      const pools = poolsByName(
        made("web-a", "10.1.0.0/24", "blue", { deleting: true }),
        made("web-b", "10.1.0.0/24", "blue", { nodeName: ["n2"] }),
      );
      expect(summary(withPod({ subnet: entry }), pools)).toBe(
        'eth0: web-a is being deleted,web-b nodeName is "n2", this node is "n1"',
      );
    });
  });

  const foreign = "is generated for Deployment shop/web";
  const configured: Partial<Subject> = { ipamConf: { type: "berth", default_ipv4_ippool: ["web-b"] } };
  it.each<[what: string, subject: Subject, wanted: string]>([
    ["by its name", withPod({ ippool: { ipv4: ["web-b"] } }), `eth0: web-b ${foreign}`],
    ["by a pattern", withPod({ ippool: { ipv4: ["web-[bg]"] } }), `eth0: web-b ${foreign},web-g ${foreign}`],
    ["by the configuration", subject(configured), `eth0: web-b ${foreign}`],
    ["by spec.default", subject(), "eth0: db-d is generated for StatefulSet shop/db,hand"],
    ["by the namespace", subject(namespaceDefaults(["web-b"])), `eth0: web-b ${foreign}`],
  ])("a generated pool serves no other workload: %s", (_what, given, wanted) => expect(summary(given)).toBe(wanted));

  describe("a pod that names Subnets is refused", () => {
    const subnet = { ipv4: ["blue"] };
    const name = 'name pools with "ipam.vendor.io/ippool"';
    const annotations = { subnets: [{ interface: eth0, ...subnet }] };
    const application: Belonging = { kind: "none", reason: 'pod "shop/web-0" has no controller' };
    it.each(cases<Subject>`
      without a controller ${withPod({ subnet }, { application })}
        => Annotation "ipam.vendor.io/subnet" cannot be followed: generated pools belong to workloads, and pod "shop/web-0" has no controller; INSTEAD
      in the embedded mode ${subject({ pod: { namespace: "shop", name: "w", labels: {}, annotations } })}
        => Annotation "ipam.vendor.io/subnets" cannot be followed: generated pools need cluster mode (berth-agent --kubeconfig or --in-cluster), in which a controller makes them; INSTEAD
      when subnets lacks the NIC ${withPod(annotations, { ifName: "net7" })}
        => Annotation "ipam.vendor.io/subnets" has no entry for interface "net7"; it lists eth0
    `)("%s", (_what, given, text) => {
      const message = text.replace("INSTEAD", name);
      expect(() => selectPools(given, POOLS)).toThrow(expect.objectContaining({ code: 102, message }));
    });

    it("when it leaves a family out", () => {
      expect(() => selectPools(withPod({ subnet }, { vendorConf: DUAL }), POOLS)).toThrow(
        'annotation "ipam.vendor.io/subnet": field "ipv6" is required because enableIPv6 is true',
      );
      const entries = [
        { interface: eth0, ipv4: ["blue"], ipv6: ["six"] },
        { interface: net1, ...subnet },
      ];
      expect(() => selectPools(withPod({ subnets: entries }, { vendorConf: DUAL }), POOLS)).toThrow(
        'annotation "ipam.vendor.io/subnets": field "[1].ipv6" is required because enableIPv6 is true',
      );
    });
  });

  describe("settings", () => {
    const ipv4 = ["blue"];
    it("enableSubnet false lets the next rule decide, with a warning", () => {
      const vendorConf = { ...DUAL, enableIPv6: false, enableSubnet: false };
      const given = withPod({ subnet: { ipv4 }, ippool: { ipv4: ["hand"] } }, { vendorConf });
      expect(summary(given)).toBe("eth0: hand");
      expect(selectPools(given, POOLS).warnings).toEqual([
        'annotation "ipam.vendor.io/subnet" is ignored because enableSubnet is false',
      ]);
    });

    it("a family without a Subnet is left out where one suffices, with a warning, and no default route moves", () => {
      const vendorConf = { ...DUAL, allowSingleFamily: true };
      const { nics, warnings } = selectPools(withPod({ subnet: { ipv4 } }, { vendorConf }), POOLS);
      expect(nics.map(({ cleanGateway }) => cleanGateway)).toEqual([false]);
      expect(warnings).toEqual([
        'annotation "ipam.vendor.io/subnet" names no IPv6 Subnet: the NIC gets no IPv6 address',
      ]);
    });

    it("Subnets of a family that is off are ignored, with a warning", () => {
      const { nics, warnings } = selectPools(withPod({ subnet: { ipv4, ipv6: ["six"] } }), POOLS);
      expect(nics[0]?.families.map(({ family }) => family)).toEqual([4]);
      expect(warnings).toEqual([
        'annotation "ipam.vendor.io/subnet" names IPv6 Subnets, which are ignored because enableIPv6 is false',
      ]);
    });
  });

  it("an address asked for by name out of a pool that is still to come is a shortage, for which an ADD waits", () => {
    const [nic] = selectPools(withPod({ subnet: { ipv4: ["red"] } }), POOLS).nics;
    const requested = [{ ip: ip("10.1.0.7"), source: "args.cni.ips" } as const];
    expect(() => assignRequested(new PoolCache(openCore()), nic ?? expect.fail(), requested)).toThrow(PoolShortage);
  });

  describe("the words about a demand", () => {
    it("a pool that is not there yet has no name, but a reason", () => {
      const { nics } = selectPools(withPod({ subnet: { ipv4: ["red", "grey"] } }), POOLS);
      expect(nics.map((nic) => describeDemand(nic, new Map()))).toEqual([
        'eth0: by annotation "ipam.vendor.io/subnet"\n' +
          'eth0 IPv4: no pool has been generated for Deployment shop/web out of Subnet "red" or "grey" yet',
      ]);
      expect(findUnservable(nics)?.demand.generated?.subnets).toEqual(["red", "grey"]);
    });

    it("a pool says its wanted size, and the obstacle", () => {
      const small = made("web-b", "10.1.0.0/24", "blue", { ips: ["10.1.0.1"] });
      const lines = (given = small) =>
        selectPools(withPod({ subnet: { ipv4: ["blue"] } }), poolsByName(given))
          .nics.map((nic) => describeDemand(nic, new Map([["web-b", "fits, but its only address is not free"]])))
          .join("")
          .split("\n")
          .slice(1);
      const fits = 'eth0 IPv4 pool "web-b": fits, but its only address is not free, ';
      expect(lines()).toEqual([`${fits}has 1 of 3 addresses wanted (2 replicas and 1 more)`]);
      const shortfall = 'has 1 of 3 addresses wanted (2 replicas and 1 more): Subnet "blue" has 0 free of 254';
      expect(lines({ ...small, shortfall })).toEqual([fits + shortfall]);
      const whole = made("web-b", "10.1.0.0/24", "blue", { ips: ["10.1.0.1-10.1.0.3"] });
      expect(lines({ ...whole, shortfall })).toEqual([`${fits}has 3 of 3 addresses wanted (2 replicas and 1 more)`]);
    });
  });

  it("a pod that names a foreign workload's UID as its owner gets nothing of another namespace", () => {
    const thief: Belonging = { kind: "application", application: { ...WEB, namespace: "attack" } };
    const vendorConf = { ...DUAL, enableIPv6: false };
    const named = { subnet: { ipv4: ["blue"] } };
    expect(summary(withPod(named, { application: thief, vendorConf }))).toBe("eth0: ");
    expect(summary(withPod(named, { vendorConf }))).toBe("eth0: web-b");
  });
});
