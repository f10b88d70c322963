import { describe, expect, it } from "vitest";
import { explainPool } from "../../../../host/agent/operate/explain-pool.ts";
import type { LiveFacts, PoolFacts } from "../../../../host/agent/operate/pool-facts.ts";
import type { SubnetPoolSpec } from "../../../../host/resources/fields/subnet-pool.ts";
import type { PoolUsage } from "../../../../host/resources/ip-pool-usage.ts";
import { leasingPool } from "../../../world/leasing-pool.ts";
import { pool } from "../../../world/subjects.ts";
import { range } from "../../../world/values.ts";

const application = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-1" };
const wanted = { interface: "eth0", reclaim: true, wanted: 5, reason: "4 replicas and 1 more" };
const generated: SubnetPoolSpec = { ...wanted, subnet: "blue", application };
const countsOf = (total: bigint, free: bigint) => ({ total, free }) as NonNullable<PoolFacts["counts"]>;
const counts = countsOf(5n, 2n);
const five = (more: Partial<SubnetPoolSpec> = {}, ips = ["10.6.0.1-10.6.0.5"]) =>
  pool("web", "10.6.0.0/24", { ips, generated: { ...generated, ...more } });

const usage: PoolUsage = {
  ...{ rangesHash: "0", total: 5, free: 1, bound: 3, cooling: 1, kept: 0, quarantined: 0, outside: 0, others: 0 },
};
const blue = {
  ...{ total: 20, revision: 3, deleting: false },
  pools: [
    { name: "web", ips: [range("10.6.0.1-10.6.0.5")], application: "Deployment shop/web" },
    { name: "db", ips: [range("10.6.0.6-10.6.0.20")], application: "StatefulSet shop/db" },
  ],
};
const LIVE: LiveFacts = {
  usage: { kind: "there", value: usage },
  troubles: { kind: "there", value: [] },
  subnet: { kind: "there", value: blue },
};

const says = (type: string, status: "True" | "False", message: string) => {
  return { type, status, reason: "", message, lastTransitionTime: "" };
};

const facts = (more: Partial<PoolFacts>): PoolFacts => {
  return { name: "web", pool: five(), refusal: undefined, counts, exceptions: [], reserved: [], live: LIVE, ...more };
};

function check(name: string, more: Partial<PoolFacts>, wanted: readonly string[]): void {
  it(name, () => expect(explainPool(facts(more))).toEqual(wanted));
}

const line = (more: Partial<PoolFacts>, begin: string) =>
  explainPool(facts(more)).find((each) => each.startsWith(begin));

describe("a pool that leases its addresses", () => {
  const message = "has no block: the share of 4 blocks is used up";
  check(
    "says from where, its blocks, and why there are no more",
    {
      pool: leasingPool("seg", "10.6.0.0/24", ["10.6.0.16/28 Active", "10.6.0.32/28 Resting"], { shortfall: message }),
      name: "seg",
      live: undefined,
    },
    [
      'pool "seg": leases its addresses in blocks of AddressRange "seg"',
      "has: 16 addresses of IPv4 network 10.6.0.0/24: 10.6.0.16-10.6.0.31",
      "in use: 3; 2 of 5 are free, as far as this node knows",
      "blocks: 1 Active, 1 Resting: 10.6.0.16/28 Active, 10.6.0.32/28 Resting",
      `in the way: ${message}`,
    ],
  );

  it("says what it may have, what other clusters have, and since when its hub is silent", () => {
    const leasing = leasingPool("seg", "10.6.0.0/24", ["10.6.0.16/28 Active"]);
    const others = ["north", "west"].map((member) => ({ member, blocks: 2, ranges: [] }));
    const report = { reason: "HubAway", heard: "2026-11-27T00:00:00.000Z", member: "east", share: 4, others };
    const told = { pool: { ...leasing, source: leasing.source && { ...leasing.source, report } }, live: undefined };
    expect(line(told, "blocks")).toBe("blocks: 1 Active: 10.6.0.16/28 Active; the cluster may have 4");
    expect(line(told, "other clusters")).toBe("other clusters: north 2, west 2");
    expect(line(told, "hub")).toBe("hub: answered last at 2026-11-27T00:00:00.000Z");
  });
});

describe("a generated pool", () => {
  check("that has what is wanted", {}, [
    'pool "web": generated from Subnet "blue" for Deployment shop/web, UID u-1',
    "used by: interface eth0 of its pods only",
    "wants: 5 addresses (4 replicas and 1 more)",
    "has: 5 addresses of IPv4 network 10.6.0.0/24: 10.6.0.1-10.6.0.5",
    "in use: 3 by pods, 1 cooling, 0 kept, 0 in quarantine; 1 of 5 are free, at the last count of the controller",
    "in the way: nothing",
    'Subnet "blue": 20 of 20 addresses assigned to 2 pools, 0 not assigned; most have "db" (StatefulSet shop/db, 15), "web" (Deployment shop/web, 5)',
    "when Deployment shop/web is gone: the pool is deleted when its last address is free (ippool-reclaim is true)",
  ]);

  it("says which of its addresses a ReservedIP of its address space has", () => {
    const reserved = [
      ["10.6.0.4-10.6.0.9", ""],
      ["10.6.0.5", "lab"],
      ["10.6.0.6", ""],
    ].map(([ips = "", addressSpace = ""]) => {
      return { kind: "ReservedIP", name: "printer", spec: { family: 4, ranges: [range(ips)], addressSpace } } as const;
    });
    expect(line({ reserved }, "never")).toBe('never allocated: 10.6.0.4-10.6.0.9 (ReservedIP "printer" has it)');
  });

  const inTheWay = (more: Partial<PoolFacts>) => line(more, "in the way");
  it("that lacks some: what its condition says", () => {
    const message =
      'has 5 of 9 addresses wanted (8 replicas and 1 more): Subnet "blue" has 0 free of 20, 20 assigned to 2 pools';
    const unseen = { ...LIVE, troubles: { kind: "unseen", why: "no answer" } } as const;
    const short = { ...five({ wanted: 9 }), shortfall: message };
    expect(inTheWay({ pool: short, live: unseen })).toBe(`in the way: ${message}`);
    expect(line({ live: unseen }, "conditions")).toBe("conditions: cannot be read: no answer");
  });
  it("that lacks some, or has some more, for a moment", () => {
    const [few, many] = [6, 3].map((wanted) => inTheWay({ pool: five({ wanted }) }));
    expect(few).toBe("in the way: nothing is known; 1 more should be added shortly");
    expect(many).toBe("in the way: nothing; 2 addresses more than wanted are removed when they are free");
  });
  it("that stays when the workload is gone", () => {
    expect(line({ pool: five({ reclaim: false }) }, "when")).toBe(
      "when Deployment shop/web is gone: the pool stays for the next Deployment shop/web (ippool-reclaim is false)",
    );
  });
  const subnet = (told: LiveFacts["subnet"]) => line({ live: { ...LIVE, subnet: told } }, "Subnet");
  it("whose Subnet is gone, cannot be read, goes, or has not been counted", () => {
    expect(subnet({ kind: "absent" })).toBe('Subnet "blue": does not exist');
    expect(subnet({ kind: "unseen", why: "403" })).toBe('Subnet "blue": cannot be read: 403');
    const young = { revision: 0, deleting: true, pools: [] };
    const going = 'Subnet "blue": is being deleted; 0 addresses assigned to 0 pools';
    expect(subnet({ kind: "there", value: young })).toBe(going);
  });
  it("of many ranges, and of a Subnet with many pools: a few are named", () => {
    const ips = Array.from({ length: 7 }, (_, index) => `10.6.0.${2 * index + 1}`);
    const some = /: 10.6.0.1, 10.6.0.3, 10.6.0.5, 10.6.0.7, 10.6.0.9 and 2 more$/;
    expect(line({ pool: five({}, ips) }, "has")).toMatch(some);
    expect(line({ pool: five({}, []) }, "has")).toBe("has: 0 addresses of IPv4 network 10.6.0.0/24");
    const pools = Array.from({ length: 9 }, (_, index) => ({ name: `p${index}`, ips: [], application: "X a/b" }));
    expect(subnet({ kind: "there", value: { ...blue, pools } })).toMatch(/"p4" \(X a\/b, 0\) and 4 more$/);
  });
  it("that is being deleted", () => {
    expect(line({ pool: { ...five(), deleting: true } }, "allocates")).toBe(
      "allocates nothing: it is being deleted; it is removed when its last address is free",
    );
  });
});

describe("a pool made by hand", () => {
  const hand = pool("blue", "fd00::/64", {});
  check(
    "of the embedded mode",
    { name: "blue", pool: hand, counts: countsOf(2n ** 64n, 2n ** 64n - 1n), live: undefined },
    [
      'pool "blue": created by hand; its size is fixed',
      "has: 18446744073709551616 addresses of IPv6 network fd00::/64: fd00::-fd00::ffff:ffff:ffff:ffff",
      "in use: 1; 18446744073709551615 of 18446744073709551616 are free, as far as this node knows",
    ],
  );
  const disabled = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.9"], disable: true });
  const message = '2 addresses, from 10.6.0.18 on, are also in IPPools "other"; each address is still given out once';
  const notReady = says("Ready", "False", "spec.disable is true: the pool gives out no addresses");
  check(
    "with conditions, and without a count",
    {
      name: "blue",
      pool: disabled,
      live: {
        ...{ usage: { kind: "absent" }, subnet: undefined },
        troubles: { kind: "there", value: [notReady, says("Overlap", "True", message)] },
      },
    },
    [
      'pool "blue": created by hand; its size is fixed',
      "allocates nothing: spec.disable is true",
      "has: 1 address of IPv4 network 10.6.0.0/24: 10.6.0.9",
      "in use: 3; 2 of 5 are free, as far as this node knows",
      "not ready: spec.disable is true: the pool gives out no addresses",
      `Overlap: ${message}`,
    ],
  );
  check("that cannot be read", { name: "blue", pool: undefined, refusal: "cannot be used: field x", live: undefined }, [
    'pool "blue": created by hand; its size is fixed',
    "allocates nothing: it cannot be used: field x",
  ]);
});
