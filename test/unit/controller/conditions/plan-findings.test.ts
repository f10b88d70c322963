import { describe, expect, it } from "vitest";
import { DEFAULT_VENDOR_CONF } from "../../../../host/config/vendor-conf.ts";
import type { ConditionType, Finding } from "../../../../host/controller/conditions/plan-conditions.ts";
import { type FindingsInput, planFindings } from "../../../../host/controller/conditions/plan-findings.ts";
import type { AllocationState } from "../../../../host/resources/ip-allocation.ts";
import { allocation, DELETED, generatedPool, pool, reserved, subnet } from "./judged.ts";

function look(world: Partial<FindingsInput>): ReturnType<typeof planFindings> {
  const settings = DEFAULT_VENDOR_CONF;
  return planFindings({ pools: [], subnets: [], reserved: [], allocations: [], settings, ...world });
}

function of(findings: readonly Finding[] | undefined, type: ConditionType) {
  const found = findings?.find((each) => each.type === type) ?? expect.fail(`Nothing is said about ${type}`);
  return { isTrue: found.isTrue, reason: found.reason, message: found.message };
}

const BORN = (second: number) => ({ metadata: { creationTimestamp: `2026-01-01T00:00:0${second}Z` } });
const NOTHING = { isTrue: false, message: "" };
const blue = pool("blue", { subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.19"] });

it("all kinds of findings are judged, and no others", () => {
  const made = subnet("s", { subnet: "10.6.0.0/24" });
  const { pools, subnets } = look({ pools: [blue], subnets: [made] });
  const kinds = (findings: readonly Finding[] | undefined) => findings?.map(({ type, isTrue }) => [type, isTrue]);
  expect(kinds(pools.get("blue"))).toEqual([
    ["Ready", true],
    ["InvalidValues", false],
    ["Overlap", false],
    ["OutsideSubnet", false],
    ["InUseOutsideRange", false],
    ["DeletedWithHolders", false],
    ["ProxyArpSuspected", false],
  ]);
  expect(kinds(subnets.get("s"))).toEqual([
    ["Ready", true],
    ["InvalidValues", false],
    ["Overlap", false],
    ["Full", false],
  ]);
});

describe("Ready of a pool", () => {
  const readyOf = (one: typeof blue) => of(look({ pools: [one] }).pools.get(one.name), "Ready");
  it("is true when the pool gives out addresses", () => {
    expect(readyOf(blue)).toEqual({ isTrue: true, reason: "Ready", message: "" });
  });
  it("is false with the fault of a specification that cannot be used", () => {
    const bad = pool("bad", { subnet: "10.6.0.0/24", ips: ["10.6.0.9-10.6.0.1"] });
    expect(readyOf(bad)).toEqual({
      isTrue: false,
      reason: "InvalidSpecification",
      message: expect.stringMatching(/^The specification is invalid: field "spec.ips\[0\]": found "10.6.0.9-10.6.0.1"/),
    });
  });
  it.each([
    ["Terminating", false, pool("p", { subnet: "10.6.0.0/24" }, DELETED)],
    // As it was asked for.
    ["Disabled", true, pool("p", { subnet: "10.6.0.0/24", disable: true })],
    ["Empty", true, pool("p", { subnet: "10.6.0.0/24", ips: [] })],
    ["Empty", true, pool("p", { subnet: "10.6.0.0/24", source: { range: "seg" } })],
  ])("of a pool that is %s is %s", (reason, isTrue, one) => {
    expect(readyOf(one)).toMatchObject({ isTrue, reason });
  });
});

describe("an event is sent", () => {
  const isWanted = (findings: readonly Finding[] | undefined) =>
    findings?.find(({ type }) => type === "Ready")?.isWanted;
  it.each([
    ["is being deleted", pool("p", { subnet: "10.6.0.0/24" }, DELETED), true],
    ["is refused", pool("p", { subnet: "10.6.0.0/16" }), false],
  ])("not for a pool that %s, unless that was not requested", (_, one, wanted) => {
    const before = pool("a", { subnet: "10.6.1.0/24", ips: [] });
    expect(isWanted(look({ pools: [before, one] }).pools.get("p"))).toBe(wanted);
  });
  it("not for a Subnet that is being deleted", () => {
    const { subnets } = look({ subnets: [subnet("s", { subnet: "10.6.0.0/24" }, DELETED)] });
    expect(of(subnets.get("s"), "Ready")).toEqual({ ...NOTHING, reason: "Terminating" });
    expect(isWanted(subnets.get("s"))).toBe(true);
  });
});

describe("InvalidValues", () => {
  const edge = { subnet: "10.7.0.0/24", gateway: "10.7.0.255" };
  const text =
    'The specification has values that new objects cannot have: field "spec.gateway": found "10.7.0.255", ' +
    "want another address than the first and the last one of 10.7.0.0/24";

  it("names what a pool or a Subnet has had since an earlier release, which is ready", () => {
    const { pools, subnets } = look({ pools: [pool("edge", edge)], subnets: [subnet("edge", edge)] });
    for (const findings of [pools.get("edge"), subnets.get("edge")]) {
      expect(of(findings, "InvalidValues")).toEqual({ isTrue: true, reason: "AcceptedBefore", message: text });
      expect(of(findings, "Ready").isTrue).toBe(true);
    }
  });

  it("a pool that has no other addresses is refused, and overlaps nothing", () => {
    const { pools } = look({ pools: [pool("loop", { subnet: "127.0.0.0/8" }), pool("wide", { subnet: "0.0.0.0/0" })] });
    expect(of(pools.get("loop"), "Ready")).toMatchObject({
      reason: "Refused",
      message: expect.stringMatching(
        /^IPPool "loop" is refused: field "spec.subnet": found "127.0.0.0\/8", want unicast/,
      ),
    });
    expect(of(pools.get("loop"), "Overlap").isTrue).toBe(false);
    expect(of(pools.get("wide"), "Ready").isTrue).toBe(true);
    expect(of(pools.get("wide"), "InvalidValues").isTrue).toBe(false);
  });
});

describe("Overlap of pools", () => {
  const other = pool("other", { subnet: "10.6.0.0/24", ips: ["10.6.0.18-10.6.0.30"] });
  it("is false when ranges do not meet", () => {
    const far = pool("far", { subnet: "10.6.0.0/24", ips: ["10.6.0.20"] });
    expect(of(look({ pools: [blue, far] }).pools.get("blue"), "Overlap")).toEqual({ ...NOTHING, reason: "NoOverlap" });
  });
  it("is false for the same ranges in another address space", () => {
    const lab = pool("lab", { subnet: "10.6.0.0/24", addressSpace: "lab" });
    expect(of(look({ pools: [blue, lab] }).pools.get("blue"), "Overlap")).toMatchObject({ isTrue: false });
  });
  it("says how many addresses are shared, from where on, and with whom; the pools stay ready", () => {
    const { pools } = look({ pools: [blue, other] });
    expect(of(pools.get("blue"), "Overlap")).toEqual({
      ...{ isTrue: true, reason: "SharedAddresses" },
      message: '2 addresses, from 10.6.0.18 on, are also in IPPools "other"; each address is still given out once',
    });
    expect(of(pools.get("other"), "Overlap").message).toMatch(
      /^2 addresses, from 10.6.0.18 on, are also in IPPools "blue"/,
    );
    expect(of(pools.get("blue"), "Ready").isTrue).toBe(true);
  });
  it("of one address is told in the singular", () => {
    const last = pool("last", { subnet: "10.6.0.0/24", ips: ["10.6.0.19-10.6.0.30"] });
    expect(of(look({ pools: [blue, last] }).pools.get("blue"), "Overlap").message).toMatch(
      /^1 address, from 10.6.0.19 on, is also in/,
    );
  });
  it("names others by name, wherever they begin", () => {
    const parts = ["c", "a", "b"].map((name, at) => pool(name, { subnet: "10.6.0.0/24", ips: [`10.6.0.${at + 1}0`] }));
    const whole = pool("whole", { subnet: "10.6.0.0/24" });
    expect(of(look({ pools: [whole, ...parts] }).pools.get("whole"), "Overlap").message).toMatch(
      /^3 addresses, from 10.6.0.10 on, are also in IPPools "a", "b", "c";/,
    );
  });
  it("names a few of many", () => {
    const many = Array.from({ length: 9 }, (_, index) => pool(`p${index}`, { subnet: "10.6.0.0/24" }));
    const { pools } = look({ pools: many });
    expect(of(pools.get("p0"), "Overlap").message).toContain(
      '256 addresses, from 10.6.0.0 on, are also in IPPools "p1", "p2", "p3" and others',
    );
  });
  it.each([
    ["the later of two of one second", blue, {}],
    ["the younger one, whatever its name", pool("zoo", { subnet: "10.6.0.0/24" }, BORN(1)), BORN(2)],
  ])("of subnets in part refuses %s in the words of the agents", (_, other, born) => {
    const wide = pool("wide", { subnet: "10.6.0.0/16" }, born);
    const { pools } = look({ pools: [wide, other] });
    const message = `IPPool "wide" is refused: its subnet 10.6.0.0/16 partly overlaps 10.6.0.0/24 of IPPool "${other.name}"; make them equal or disjoint`;
    expect(of(pools.get("wide"), "Overlap")).toEqual({ isTrue: true, reason: "SubnetsOverlap", message });
    expect(of(pools.get("wide"), "Ready")).toEqual({ isTrue: false, reason: "Refused", message });
    expect(of(pools.get(other.name), "Overlap").isTrue).toBe(false);
    expect(of(pools.get(other.name), "Ready").isTrue).toBe(true);
  });
  it("of 1,000 pools that all overlap is found within two seconds", () => {
    const many = Array.from({ length: 1_000 }, (_, index) => {
      const ips = [`10.6.${index % 200}.0-10.6.255.254`];
      return pool(`p${index}`, { subnet: "10.6.0.0/16", ips });
    });
    const began = performance.now();
    const { pools } = look({ pools: many });
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(of(pools.get("p199"), "Overlap").isTrue).toBe(true);
  });
});

describe("Overlap of Subnets", () => {
  const wide = subnet("wide", { subnet: "10.7.0.0/16" });
  it("says what they share", () => {
    const { subnets } = look({ subnets: [wide, subnet("part", { subnet: "10.7.3.0/24" })] });
    expect(of(subnets.get("part"), "Overlap")).toEqual({
      ...{ isTrue: true, reason: "SharedAddresses" },
      message: '256 addresses, from 10.7.3.0 on, are also in Subnets "wide"',
    });
  });
  it("is false for those that share nothing", () => {
    const { subnets } = look({ subnets: [wide, subnet("part", { subnet: "10.8.3.0/24" })] });
    expect(of(subnets.get("wide"), "Overlap").isTrue).toBe(false);
    expect(of(subnets.get("wide"), "Ready").isTrue).toBe(true);
  });
  it("of one that cannot be used is not checked, and the fault is reported", () => {
    const bad = subnet("bad", { subnet: "10.7.0.0/16", ips: ["10.7.0.9-10.7.0.1"] });
    expect(of(look({ subnets: [bad] }).subnets.get("bad"), "Ready").reason).toBe("InvalidSpecification");
  });
});

describe("OutsideSubnet", () => {
  const cover = (spec: object) => look({ pools: [blue], subnets: [subnet("s", spec)] }).pools.get("blue");
  it("is false where no Subnet covers the pool's network, and where the pool lies inside", () => {
    expect(of(cover({ subnet: "10.9.0.0/16" }), "OutsideSubnet").reason).toBe("NoSubnet");
    expect(of(cover({ subnet: "10.6.0.0/24", addressSpace: "lab" }), "OutsideSubnet").reason).toBe("NoSubnet");
    expect(of(cover({ subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.99"] }), "OutsideSubnet").reason).toBe("Inside");
  });
  it("says how many addresses lie outside", () => {
    const found = cover({ subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.16"], excludeIPs: ["10.6.0.12"] });
    expect(of(found, "OutsideSubnet")).toEqual({
      ...{ isTrue: true, reason: "PartlyInside" },
      message: `4 of 10 addresses, from 10.6.0.12 on, are not in Subnet "s", whose network the pool's overlaps`,
    });
  });
  it("distinguishes a pool that is not inside at all from one that is in part", () => {
    expect(of(cover({ subnet: "10.6.0.0/24", ips: ["10.6.0.1"] }), "OutsideSubnet").reason).toBe("NotInside");
  });
  it("of a pool that cannot be used is not judged", () => {
    const bad = pool("bad", { subnet: "10.6.0.0/24", ips: ["10.6.0.9-10.6.0.1"] });
    const { pools } = look({ pools: [bad], subnets: [subnet("s", { subnet: "10.6.0.0/24" })] });
    expect(of(pools.get("bad"), "OutsideSubnet").reason).toBe("NoSubnet");
  });
  it("names a few of many Subnets, by name", () => {
    const many = ["d", "c", "b", "a"].map((name) => subnet(name, { subnet: "10.6.0.0/24", ips: [] }));
    expect(of(look({ pools: [blue], subnets: many }).pools.get("blue"), "OutsideSubnet").message).toContain(
      `are not in Subnet "a", "b", "c" and 1 more, whose network the pool's overlaps`,
    );
  });
});

describe("OutsideSubnet of a generated pool", () => {
  const made = generatedPool("web", { ips: ["10.6.0.10-10.6.0.19"], wanted: 10 });
  const outside = (...subnets: ReturnType<typeof subnet>[]) =>
    of(look({ pools: [made], subnets }).pools.get("web"), "OutsideSubnet");
  const other = subnet("other", { subnet: "10.6.0.0/24" });
  it("is about its own Subnet, whatever others of the network have", () => {
    const edited = subnet("blue", { subnet: "10.6.0.0/24", ips: ["10.6.0.1-10.6.0.16"] });
    expect(outside(edited, other)).toEqual({
      ...{ isTrue: true, reason: "PartlyInside" },
      message: `3 of 10 addresses, from 10.6.0.17 on, are not in Subnet "blue", whose network the pool's overlaps`,
    });
    expect(outside(subnet("blue", { subnet: "10.6.0.0/24" })).reason).toBe("Inside");
  });
  it("is nothing when its Subnet is gone", () => {
    expect(outside(other).reason).toBe("NoSubnet");
  });
});

describe("a generated pool in the making", () => {
  const room = subnet("blue", { subnet: "10.6.0.0/24" });
  const findings = (one: typeof blue, at = room) => look({ pools: [one], subnets: [at] }).pools.get("web") ?? [];
  it("is not judged before it has addresses", () => {
    expect(findings(generatedPool("web", { ips: [], wanted: 10 }))).toEqual([]);
    expect(of(findings(generatedPool("web", { ips: ["10.6.0.1"], wanted: 10 })), "Ready").isTrue).toBe(true);
  });
  it("is judged when something is in the way, when nothing is wanted of it, and when it is deleted", () => {
    const gone = subnet("blue", { subnet: "10.6.0.0/24" }, DELETED);
    const lacking = findings(generatedPool("web", { ips: [], wanted: 10 }), gone);
    expect(of(lacking, "Ready").reason).toBe("Empty");
    expect(of(lacking, "Supplied").reason).toBe("SubnetTerminating");
    expect(of(findings(generatedPool("web", { ips: [], wanted: 0 })), "Ready").reason).toBe("Empty");
    expect(of(findings(generatedPool("web", { ips: [], wanted: 10 }, DELETED)), "Ready").reason).toBe("Terminating");
  });
  it("that is made by hand is judged at once", () => {
    expect(of(findings(pool("web", { subnet: "10.6.0.0/24", ips: [] })), "Ready").reason).toBe("Empty");
  });
});

describe("pool-changes: InUseOutsideRange", () => {
  const outside = (...allocations: ReturnType<typeof allocation>[]) =>
    of(look({ pools: [blue], allocations }).pools.get("blue"), "InUseOutsideRange");
  it("is false while all is inside, and for what is about to be free", () => {
    expect(outside(allocation("10.6.0.10", "blue"), allocation("10.6.0.99", "blue", "Cooling")).isTrue).toBe(false);
  });
  it("names addresses and their pods, the lowest first", () => {
    const found = outside(
      ...[99, 98, 97, 96, 10].map((last) => allocation(`10.6.0.${last}`, "blue")),
      allocation("10.6.0.30", "blue", "Quarantined"),
    );
    expect(found).toEqual({
      ...{ isTrue: true, reason: "AddressesOutside" },
      message:
        "5 addresses of the pool are in use and not among those that it gives out now: 10.6.0.30 (in quarantine), 10.6.0.96 (pod shop/web-96), 10.6.0.97 (pod shop/web-97) and 2 more; each goes when it is released",
    });
  });
  it("counts an address of another space than the pool has now", () => {
    expect(outside(allocation("10.6.0.10", "blue", "Bound", { addressSpace: "lab" })).message).toMatch(
      /^1 address of the pool is in use and not among those that it gives out now: 10.6.0.10 /,
    );
  });
  it("counts excluded addresses and the gateway", () => {
    const gated = pool("blue", { subnet: "10.6.0.0/24", gateway: "10.6.0.1", excludeIPs: ["10.6.0.5"] });
    const allocations = [
      allocation("10.6.0.1", "blue"),
      allocation("10.6.0.5", "blue"),
      allocation("10.6.0.6", "blue"),
    ];
    expect(of(look({ pools: [gated], allocations }).pools.get("blue"), "InUseOutsideRange").message).toMatch(
      /^2 addresses/,
    );
  });
});

describe("pool-changes: DeletedWithHolders", () => {
  const gone = pool("blue", { subnet: "10.6.0.0/24" }, DELETED);
  const workload = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "w", member: "db-0" };
  it("is false for a pool that is not being deleted, and for one without holders", () => {
    const allocations = [allocation("10.6.0.10", "blue")];
    expect(of(look({ pools: [blue], allocations }).pools.get("blue"), "DeletedWithHolders").reason).toBe("NotDeleted");
    expect(of(look({ pools: [gone] }).pools.get("blue"), "DeletedWithHolders").reason).toBe("NoHolders");
  });
  it("names who holds the pool, in every state", () => {
    const allocations = [
      allocation("10.6.0.10", "blue"),
      allocation("10.6.0.9", "blue", "Cooling"),
      allocation("10.6.0.11", "blue", "Kept", { workload }),
    ];
    expect(of(look({ pools: [gone], allocations }).pools.get("blue"), "DeletedWithHolders")).toEqual({
      ...{ isTrue: true, reason: "HoldersRemain" },
      message:
        "The pool goes when 3 addresses are free: 10.6.0.9 (cooling), 10.6.0.10 (pod shop/web-10), 10.6.0.11 (kept for StatefulSet db, db-0)",
    });
  });
  it("waits for the last address in the singular", () => {
    const allocations = [allocation("10.6.0.10", "blue")];
    expect(of(look({ pools: [gone], allocations }).pools.get("blue"), "DeletedWithHolders").message).toBe(
      "The pool goes when its last address is free: 10.6.0.10 (pod shop/web-10)",
    );
  });
  it("an allocation of a pool that has vanished is reported", () => {
    const { problems } = look({ pools: [], allocations: [allocation("10.6.0.10", "blue")] });
    expect(problems).toEqual(['There is no IPPool "blue", but 1 address of it is in use: 10.6.0.10 (pod shop/web-10)']);
  });
  it("only pools that are gone are, by name, each with its addresses", () => {
    const allocations = ["z", "blue", "a", "m", "z"].map((name, last) => allocation(`10.6.0.${last + 10}`, name));
    expect(look({ pools: [blue], allocations }).problems).toEqual([
      'There is no IPPool "a", but 1 address of it is in use: 10.6.0.12 (pod shop/web-12)',
      'There is no IPPool "m", but 1 address of it is in use: 10.6.0.13 (pod shop/web-13)',
      'There is no IPPool "z", but 2 addresses of it are in use: 10.6.0.10 (pod shop/web-10), 10.6.0.14 (pod shop/web-14)',
    ]);
  });
  it("of many vanished pools a few are named", () => {
    const allocations = [1, 2, 3, 4, 5].map((last) => allocation(`10.6.0.${last}`, `p${last}`));
    expect(look({ allocations }).problems).toHaveLength(4);
    expect(look({ allocations }).problems[3]).toBe("There are 2 more pools that are gone and have addresses in use");
  });
});

describe("conflict: ProxyArpSuspected", () => {
  const answered = (last: number, mac: string, state: AllocationState, reason: "Conflict" | "NodeLost" = "Conflict") =>
    allocation(`10.6.0.${last}`, "blue", state, { quarantine: { reason, mac, parent: "eth0" } });
  const quarantined = (last: number, mac: string, reason?: "NodeLost") => answered(last, mac, "Quarantined", reason);
  const suspected = (...allocations: ReturnType<typeof allocation>[]) =>
    of(look({ pools: [blue], allocations }).pools.get("blue"), "ProxyArpSuspected");
  it("is false for two addresses of one machine, for three machines, and for lost nodes", () => {
    const some = [
      quarantined(10, "02:00:00:00:00:01"),
      quarantined(11, "02:00:00:00:00:01"),
      quarantined(12, "02:00:00:00:00:02"),
    ];
    expect(suspected(...some).isTrue).toBe(false);
    expect(suspected(...[13, 14, 15].map((last) => quarantined(last, ""))).isTrue).toBe(false);
    expect(suspected(...[13, 14, 15].map((last) => quarantined(last, "02:00:00:00:00:01", "NodeLost"))).isTrue).toBe(
      false,
    );
  });
  it("is false for addresses that pods have got all the same", () => {
    const bound = [13, 14, 15].map((last) => answered(last, "02:00:00:00:00:01", "Bound"));
    expect(suspected(...bound).isTrue).toBe(false);
  });
  it("of two machines names the first by its address", () => {
    const found = [13, 14, 15, 10, 11, 12].map((last) => quarantined(last, `02:00:00:00:00:0${last > 12 ? 2 : 1}`));
    expect(suspected(...found).message).toMatch(/^The machine 02:00:00:00:00:01 answers for 3 addresses/);
  });
  it("is true when one machine answers for three", () => {
    const found = suspected(...[12, 11, 10].map((last) => quarantined(last, "02:00:00:00:00:01")));
    expect(found).toEqual({
      ...{ isTrue: true, reason: "SameMachineAnswers" },
      message:
        "The machine 02:00:00:00:00:01 answers for 3 addresses of the pool: 10.6.0.10 (in quarantine), 10.6.0.11 (in quarantine), 10.6.0.12 (in quarantine); it may be a switch or router with proxy ARP",
    });
  });
});

describe("ReservedInUse", () => {
  const held = (one: ReturnType<typeof reserved>, ...allocations: ReturnType<typeof allocation>[]) =>
    of(look({ pools: [blue], reserved: [one], allocations }).reserved.get(one.name), "ReservedInUse");
  const ten = reserved("ten", { ips: ["10.6.0.10-10.6.0.12"] });
  it("is false for addresses without a pod, of another space, or about to be free", () => {
    expect(held(ten, allocation("10.6.0.13", "blue")).reason).toBe("NoneInUse");
    expect(held(ten, allocation("10.6.0.10", "blue", "Bound", { addressSpace: "lab" })).isTrue).toBe(false);
    expect(held(ten, allocation("10.6.0.10", "blue", "Cooling")).isTrue).toBe(false);
    expect(held(ten, allocation("10.6.0.10", "blue", "Quarantined")).isTrue).toBe(false);
  });
  it("says how many are in use, and names pods", () => {
    expect(held(ten, allocation("10.6.0.12", "blue"), allocation("10.6.0.10", "blue"))).toEqual({
      ...{ isTrue: true, reason: "AddressesInUse" },
      message:
        "Pods hold 2 addresses of these: 10.6.0.10 (pod shop/web-10), 10.6.0.12 (pod shop/web-12); each stays until it is released, and is not given out again",
    });
  });
  it("of a reservation that cannot be used is not reported; the fault is", () => {
    const bad = reserved("bad", { ips: ["10.6.0.9-10.6.0.1"] });
    expect(of(look({ reserved: [bad] }).reserved.get("bad"), "Ready").reason).toBe("InvalidSpecification");
  });
});
