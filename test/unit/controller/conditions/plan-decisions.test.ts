import { describe, expect, it } from "vitest";
import type { ConditionType, Decision } from "../../../../host/controller/conditions/plan-conditions.ts";
import { type DecisionsInput, planDecisions } from "../../../../host/controller/conditions/plan-decisions.ts";
import { endingOf } from "../../../../host/controller/objects.ts";
import type { AllocationState } from "../../../../host/resources/ip-allocation.ts";
import { cases } from "../../../world/rows.ts";
import { allocation, DELETED, generatedPool, pool, reserved, shortfall, subnet } from "./judged.ts";

type Decisions = readonly Decision[] | undefined;

function look(world: Partial<DecisionsInput>): ReturnType<typeof planDecisions> {
  const none = { pools: [], subnets: [], reserved: [], allocations: [], others: [], isIncomplete: false };
  return planDecisions({ ...none, contested: new Map(), unrecorded: new Set(), shortfalls: [], ...world });
}

const find = (decisions: Decisions, type: ConditionType) =>
  decisions?.find((each) => each.type === type) ?? { isTrue: undefined, isWanted: undefined, reason: "", message: "" };

/** `+Reason message` of a condition that holds, `-Reason message` of one that does not, `nothing` where all is well. */
function of(decisions: Decisions, type: ConditionType): string {
  const { isTrue, reason, message } = find(decisions, type);
  return isTrue === undefined ? "nothing" : `${isTrue ? "+" : "-"}${reason} ${message}`.trimEnd();
}

/** The decision about the first pool of the world. */
const ofPool = (type: ConditionType, world: Partial<DecisionsInput>) =>
  of(look(world).pools.get(world.pools?.[0]?.name ?? ""), type);
const ofSubnet = (type: ConditionType, ...subnets: ReturnType<typeof subnet>[]) =>
  of(look({ subnets }).subnets.get(subnets[0]?.name ?? ""), type);

/** An ellipsis stands for the rest. */
function check(said: string, wanted: string): void {
  const start = wanted.replace(/…$/, "");
  expect(start === wanted ? said : said.slice(0, start.length)).toBe(start);
}

const BORN = (second: number) => ({ metadata: { creationTimestamp: `2026-01-01T00:00:0${second}Z` } });
const NET = "10.6.0.0/24";
const ips = (name: string, ...list: string[]) => pool(name, { subnet: NET, ips: list });
const blue = ips("blue", "10.6.0.10-10.6.0.19");
const bad = ips("bad", "10.6.0.9-10.6.0.1");
const range = (name: string, ...list: string[]) => subnet(name, { subnet: NET, ips: list });

it.each(cases`
  gives out addresses ${blue} => +Ready
  cannot be used ${bad}
    => -InvalidSpecification The specification is invalid: field "spec.ips[0]": found "10.6.0.9-10.6.0.1"…
  is Terminating ${pool("p", { subnet: NET }, DELETED)} => -Terminating…
  is disabled, as it was asked for ${pool("p", { subnet: NET, disable: true })} => +Disabled…
  is empty, as it was asked for ${ips("p")} => +Empty…
  has a source and no block yet ${pool("p", { subnet: NET, source: { range: "seg" } })} => +Empty…
`)("Ready of a pool that %s", (_, one, wanted) => check(ofPool("Ready", { pools: [one] }), wanted));

it("Ready of a generation is not said while an address of a Node or a Service lacks a record", () => {
  const said = (generation: number, unrecorded: string[]) => {
    const conditions = [{ type: "Ready", status: "True" as const, observedGeneration: 1, lastTransitionTime: "" }];
    const one = { ...blue, generation, conditions: conditions.map((each) => ({ ...each, reason: "", message: "" })) };
    return ofPool("Ready", { pools: [one], unrecorded: new Set(unrecorded) });
  };
  expect([said(2, ["blue"]), said(2, []), said(1, ["blue"]), said(2, ["red"])]).toEqual([
    "nothing",
    "+Ready",
    "+Ready",
    "+Ready",
  ]);
});

it.each([
  ["is being deleted", pool("p", { subnet: NET }, DELETED), true],
  ["is refused", pool("p", { subnet: "10.6.0.0/16" }), false],
])("an event is not sent for a pool that %s, unless that was not requested", (_, one, wanted) => {
  const { pools } = look({ pools: [ips("a"), one] });
  expect(find(pools.get("p"), "Ready").isWanted).toBe(wanted);
});

describe("InvalidValues", () => {
  it("names old values of a pool or a Subnet from an earlier release, which is ready", () => {
    const edge = { subnet: "10.7.0.0/24", gateway: "10.7.0.255" };
    const { pools, subnets } = look({ pools: [pool("edge", edge)], subnets: [subnet("edge", edge)] });
    for (const [kind, all] of Object.entries({ IPPool: pools, Subnet: subnets })) {
      const start = `+AcceptedBefore ${kind} "edge" has values that new ${kind}s cannot have: field "spec.gateway": found`;
      const end = '"10.7.0.255", want another address than the first and the last one of 10.7.0.0/24';
      expect([of(all.get("edge"), "InvalidValues"), of(all.get("edge"), "Ready")]).toEqual([
        `${start} ${end}`,
        "+Ready",
      ]);
    }
  });

  it("a pool that has no other addresses is refused, and overlaps nothing", () => {
    const { pools } = look({ pools: [pool("loop", { subnet: "127.0.0.0/8" }), pool("wide", { subnet: "0.0.0.0/0" })] });
    const refusal = '-Refused IPPool "loop" is refused: field "spec.subnet": found "127.0.0.0/8", want unicast…';
    check(of(pools.get("loop"), "Ready"), refusal);
    expect(of(pools.get("loop"), "Overlap")).toBe("nothing");
    const ofWide = (["Ready", "InvalidValues"] as const).map((type) => of(pools.get("wide"), type));
    expect(ofWide).toEqual(["+Ready", "nothing"]);
  });
});

describe("Overlap of pools", () => {
  const parts = ["c", "a", "b"].map((name, at) => ips(name, `10.6.0.${at + 1}0`));
  const many = Array.from({ length: 9 }, (_, index) => pool(`p${index}`, { subnet: NET }));
  it.each(cases`
    ranges that do not meet ${[blue, ips("far", "10.6.0.20")]} => nothing
    the same ranges in another address space ${[blue, pool("lab", { subnet: NET, addressSpace: "lab" })]} => nothing
    how many addresses are shared, from where on, and with whom ${[blue, ips("other", "10.6.0.18-10.6.0.30")]}
      => +SharedAddresses 2 addresses, from 10.6.0.18 on, are also in IPPools "other"; each address is still given out once
    others by name, wherever they begin ${[pool("whole", { subnet: NET }), ...parts]}
      => +SharedAddresses 3 addresses, from 10.6.0.10 on, are also in IPPools "a", "b", "c";…
    a few of many ${many} => +SharedAddresses 256 addresses, from 10.6.0.0 on, are also in IPPools "p1", "p2", "p3" and others…
  `)("%s", (_, pools, wanted) => {
    check(ofPool("Overlap", { pools }), wanted);
    expect(ofPool("Ready", { pools })).toBe("+Ready");
  });

  it.each([
    ["the later of two of one second", blue, {}],
    ["the younger one, whatever its name", pool("zoo", { subnet: NET }, BORN(1)), BORN(2)],
  ])("of subnets in part refuses %s in the words of the agents", (_, other, born) => {
    const { pools } = look({ pools: [pool("wide", { subnet: "10.6.0.0/16" }, born), other] });
    const message = `IPPool "wide" is refused: its subnet 10.6.0.0/16 partly overlaps 10.6.0.0/24 of IPPool "${other.name}"; make them equal or disjoint`;
    expect(of(pools.get("wide"), "Overlap")).toBe(`+SubnetsOverlap ${message}`);
    expect(of(pools.get("wide"), "Ready")).toBe(`-Refused ${message}`);
    const ofOther = (["Overlap", "Ready"] as const).map((type) => of(pools.get(other.name), type));
    expect(ofOther).toEqual(["nothing", "+Ready"]);
  });

  it("of 1,000 pools that all overlap is found within two seconds", () => {
    const all = Array.from({ length: 1_000 }, (_, index) =>
      pool(`p${index}`, { subnet: "10.6.0.0/16", ips: [`10.6.${index % 200}.0-10.6.255.254`] }),
    );
    const began = performance.now();
    const { pools } = look({ pools: all });
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(find(pools.get("p199"), "Overlap").isTrue).toBe(true);
  });
});

it("Overlap of Subnets names the shared addresses, and not of one that cannot be used, whose fault is reported", () => {
  const wide = subnet("wide", { subnet: "10.7.0.0/16" });
  const part = (subnetOf: string) => subnet("part", { subnet: subnetOf });
  const shared = '+SharedAddresses 256 addresses, from 10.7.3.0 on, are also in Subnets "wide"';
  expect(ofSubnet("Overlap", part("10.7.3.0/24"), wide)).toBe(shared);
  expect(ofSubnet("Overlap", wide, part("10.8.3.0/24"))).toBe("nothing");
  expect(ofSubnet("Ready", wide, part("10.8.3.0/24"))).toBe("+Ready");
  check(ofSubnet("Ready", range("bad", "10.6.0.9-10.6.0.1")), "-InvalidSpecification…");
});

describe("OutsideSubnet", () => {
  const made = generatedPool("web", { ips: ["10.6.0.10-10.6.0.19"], wanted: 10 });
  const some = ["d", "c", "b", "a"].map((name) => range(name));
  const excluding = subnet("s", { subnet: NET, ips: ["10.6.0.1-10.6.0.16"], excludeIPs: ["10.6.0.12"] });
  const other = subnet("other", { subnet: NET });
  it.each(cases<[pool: typeof blue, ...subnets: ReturnType<typeof subnet>[]]>`
    where no Subnet covers the pool's network ${[blue, subnet("s", { subnet: "10.9.0.0/16" })]} => nothing
    where that is of another space ${[blue, subnet("s", { subnet: NET, addressSpace: "lab" })]} => nothing
    where the pool lies inside ${[blue, range("s", "10.6.0.1-10.6.0.99")]} => nothing
    where some addresses lie outside ${[blue, excluding]}
      => +PartlyInside 4 of 10 addresses, from 10.6.0.12 on, are not in Subnet "s", whose network the pool's overlaps
    where all do ${[blue, range("s", "10.6.0.1")]} => +NotInside…
    of a pool that cannot be used ${[bad, subnet("s", { subnet: NET })]} => nothing
    of many Subnets, by name ${[blue, ...some]}
      => +NotInside 10 of 10 addresses, from 10.6.0.10 on, are not in Subnet "a", "b", "c" and 1 more, whose network the pool's overlaps…
    of a generated pool, whatever others of the network have ${[made, range("blue", "10.6.0.1-10.6.0.16"), other]}
      => +PartlyInside 3 of 10 addresses, from 10.6.0.17 on, are not in Subnet "blue", whose network the pool's overlaps
    of one that is inside of its own ${[made, subnet("blue", { subnet: NET })]} => nothing
    of one whose own is gone ${[made, other]} => nothing
  `)("%s", (_, [one, ...subnets], wanted) => check(ofPool("OutsideSubnet", { pools: [one], subnets }), wanted));
});

it("before the first division a Subnet is judged, and stays full", () => {
  const full = { type: "Full", status: "True" as const, reason: "PoolsWait", message: "m", lastTransitionTime: "" };
  const judge = (conditions: (typeof full)[]) => {
    const world = { subnets: [{ ...subnet("blue", { subnet: NET }), conditions }], shortfalls: undefined };
    const found = look(world).subnets.get("blue");
    return [of(found, "Ready"), of(found, "Full")];
  };
  expect(judge([full])).toEqual(["+Ready", "+PoolsWait m"]);
  expect(judge([])).toEqual(["+Ready", "-NobodyWaits"]);
});

it("a generated pool in the making is judged when something is in the way, nothing is wanted of it, or it goes", () => {
  const making = (has: string[], wanted: number, extra = {}) => generatedPool("web", { ips: has, wanted }, extra);
  const findings = (one: typeof blue, extra = {}) => look({ pools: [one], ...extra }).pools.get("web");
  const reasonOf = (found: Decisions, type: ConditionType) => find(found, type).reason;
  expect(findings(making([], 10))).toEqual([]);
  expect(of(findings(making(["10.6.0.1"], 10)), "Ready")).toBe("+Ready");
  const short = shortfall("web");
  const lacking = findings(making([], 10), {
    shortfalls: [{ ...short, pool: short.pool && { ...short.pool, has: 0 } }],
  });
  expect([reasonOf(lacking, "Ready"), reasonOf(lacking, "Supplied")]).toEqual(["Empty", "SubnetFull"]);
  expect(reasonOf(findings(making([], 0)), "Ready")).toBe("Empty");
  expect(reasonOf(findings(making([], 10, DELETED)), "Ready")).toBe("Terminating");
  expect(reasonOf(findings(ips("web")), "Ready")).toBe("Empty");
});

const at = (last: number, ...more: [state?: AllocationState, spec?: object]) =>
  allocation(`10.6.0.${last}`, "blue", ...more);
const lab = { addressSpace: "lab" };

const gated = pool("blue", { subnet: NET, gateway: "10.6.0.1", excludeIPs: ["10.6.0.5"] });
it.each(cases<[pool: typeof blue, ...allocations: ReturnType<typeof allocation>[]]>`
  is false while all is inside, and for what is about to be free ${[blue, at(10), at(99, "Cooling")]} => nothing
  names addresses and their pods, the lowest first ${[blue, ...[99, 98, 97, 96, 10].map((last) => at(last)), at(30, "Quarantined")]}
    => +AddressesOutside 5 addresses of the pool are in use and not among those that it gives out now: 10.6.0.30 (in quarantine), 10.6.0.96 (pod shop/web-96), 10.6.0.97 (pod shop/web-97) and 2 more; each goes when it is released
  counts an address of another space than the pool has now ${[blue, at(10, "Bound", lab)]}
    => +AddressesOutside 1 address of the pool is in use and not among those that it gives out now: 10.6.0.10 …
  counts excluded addresses and the gateway ${[gated, at(1), at(5), at(6)]} => +AddressesOutside 2 addresses…
`)("pool-changes: InUseOutsideRange: %s", (_, [one, ...allocations], wanted) =>
  check(ofPool("InUseOutsideRange", { pools: [one], allocations }), wanted),
);

const moved = (...routers: string[]) => pool("blue", { subnet: NET, gateway: "10.6.0.9" }, { status: { routers } });
const by = (last: number, ...routers: string[]) => at(last, "Bound", { routers });
const both = ["10.6.0.9", "10.6.0.254"];
it.each(cases<[pool: typeof blue, routers: readonly string[], ...allocations: ReturnType<typeof allocation>[]]>`
  is false while no pod has another router ${[moved(...both), ["10.6.0.9"], by(10, "10.6.0.9"), by(11)]} => nothing
  is false for what a pod has had ${[moved(...both), ["10.6.0.9"], at(10, "Cooling", { routers: ["10.6.0.254"] })]} => nothing
  names pods with a former router ${[moved(...both), both, by(10, "10.6.0.254"), by(11, "10.6.0.9")]}
    => +PodsWithOtherGateway Pods with 1 address of the pool route by 10.6.0.254, which it does not name any more: 10.6.0.10 (pod shop/web-10); …
  counts pods of older agents, which may have it ${[moved(...both), both, at(10)]} => +PodsWithOtherGateway Pods with 1 address…
  lists a router that is found first in a record ${[moved(), both, by(10, "10.6.0.254")]} => nothing
`)("pool-changes: OtherGateway, and the routers in the status: %s", (_, [one, routers, ...allocations], wanted) => {
  check(ofPool("OtherGateway", { pools: [one], allocations }), wanted);
  expect(look({ pools: [one], allocations }).routers.get("blue")).toEqual(routers.toSorted());
  // While an epoch is open records may be missing.
  const held = look({ pools: [moved(...both)], allocations, isIncomplete: true }).routers.get("blue");
  expect(held).toEqual(both.toSorted());
});

const gone = pool("blue", { subnet: NET }, DELETED);
const workload = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "w", member: "db-0" };
it.each(cases<[pool: typeof blue, ...allocations: ReturnType<typeof allocation>[]]>`
  is false for a pool that is not being deleted ${[blue, at(10)]} => nothing
  is false for one without holders ${[gone]} => nothing
  names who holds the pool, in every state ${[gone, at(10), at(9, "Cooling"), at(11, "Kept", { workload })]}
    => +HoldersRemain The pool goes when 3 addresses are free: 10.6.0.9 (cooling), 10.6.0.10 (pod shop/web-10), 10.6.0.11 (kept for StatefulSet shop/db, member db-0)
  waits for the last address in the singular ${[gone, at(10)]}
    => +HoldersRemain The pool goes when its last address is free: 10.6.0.10 (pod shop/web-10)
`)("pool-changes: DeletedWithHolders: %s", (_, [one, ...allocations], wanted) =>
  check(ofPool("DeletedWithHolders", { pools: [one], allocations }), wanted),
);

describe("conflict: ProxyArpSuspected", () => {
  const ONE = "02:00:00:00:00:01";
  const answered = (last: number, mac = ONE, state: AllocationState = "Quarantined", reason = "Conflict") =>
    at(last, state, { quarantine: { reason, mac, parent: "eth0" } });
  const three = [12, 11, 10].map((last) => answered(last));
  const late = [13, 14, 15];
  it.each(cases<ReturnType<typeof allocation>[]>`
    two addresses of one machine, and one of another's ${[...three.slice(1), answered(12, "02:00:00:00:00:02")]} => nothing
    three that no machine is named for ${late.map((last) => answered(last, ""))} => nothing
    lost nodes ${late.map((last) => answered(last, ONE, "Quarantined", "NodeLost"))} => nothing
    addresses that pods have got all the same ${late.map((last) => answered(last, ONE, "Bound"))} => nothing
    two machines: the first by its address is named ${[...late.map((last) => answered(last, "02:00:00:00:00:02")), ...three]}
      => +SameMachineAnswers The machine 02:00:00:00:00:01 answers for 3 addresses…
    one machine that answers for three ${three}
      => +SameMachineAnswers The machine 02:00:00:00:00:01 answers for 3 addresses of the pool: 10.6.0.10 (in quarantine), 10.6.0.11 (in quarantine), 10.6.0.12 (in quarantine); it may be a switch or router with proxy ARP
  `)("of %s", (_, allocations, wanted) => check(ofPool("ProxyArpSuspected", { pools: [blue], allocations }), wanted));
});

it.each(cases`
  no pool has it in its subnet ${["10.7.0.1"]} => +NoPoolGivesIt No pod gets the address: no pool has it in its subnet
  its pool does not give it ${["10.6.0.30"]} => +NoPoolGivesIt No pod gets the address: pool blue: spec.ips does not have it
  another owner has it ${["10.6.0.12"]}
    => +NoPoolGivesIt No pod gets the address: pool blue: ReservedIP "first" has it for shop/db-1
  a reservation without an owner has it as well ${["10.6.0.13"]} => nothing
`)("Unavailable where %s", (_, ips, wanted) => {
  const owned = (name: string, at: readonly string[], of: string) =>
    reserved(name, { ips: at, owner: { namespace: "shop", name: of } });
  const others = [reserved("range", { ips: ["10.6.0.13-10.6.0.15"] }), owned("first", ["10.6.0.12"], "db-1")];
  const found = look({ pools: [blue], reserved: [owned("one", ips, "db-0"), ...others] }).reserved;
  expect(of(found.get("one"), "Unavailable")).toBe(wanted);
});

const kept = (kind: string, name: string, more: object = {}) => {
  const namespace = kind === "Node" ? "" : "shop";
  return at(10, "Kept", { workload: { kind, namespace, name, uid: name, member: name }, ...more });
};
const machine = (kind: string) => kept(kind, "front", { node: "-" });

const holders = new Map([
  ...([
    ["pod", at(10)],
    ["member", kept("StatefulSet", "db")],
  ] as const),
  ...["Service", "Node"].map((kind) => [kind, machine(kind)] as const),
]);
// A Service may have the address of a Node, or share another's: planRecords contests neither.
it.each(cases`
  pod ${"Node"} => pool InUseElsewhere 10.6.0.10 (pod shop/web-10): Node late has it as well
  pod ${"Service"} => pool InUseElsewhere 10.6.0.10 (pod shop/web-10): Service evil/late has it as well
  pod ${"ReservedIP"} => late ReservedInUse Others hold 1 address of these: 10.6.0.10 (pod shop/web-10)
  member ${"Node"} => pool InUseElsewhere 10.6.0.10 (kept for StatefulSet shop/db): Node late has it as well
  member ${"Service"} => pool InUseElsewhere 10.6.0.10 (kept for StatefulSet shop/db): Service evil/late has it as well
  member ${"ReservedIP"} => late ReservedInUse Others hold 1 address of these: 10.6.0.10 (kept for StatefulSet shop/db)
  Service ${"ReservedIP"} => late ReservedInUse Others hold 1 address of these: 10.6.0.10 (kept for Service shop/front)
  Node ${"ReservedIP"} => late ReservedInUse Others hold 1 address of these: 10.6.0.10 (kept for Node front)
`)("of two that have an address, both are named: %s and %s", (holder, other, wanted) => {
  const claimant = {
    kind: other as "Node",
    namespace: other === "Node" ? "" : "evil",
    name: "late",
    uid: "l",
    addresses: [],
  };
  const owner = { namespace: "shop", name: "late" };
  const found = look({
    ...{ pools: [blue], allocations: [holders.get(holder) ?? at(99)] },
    ...(other === "ReservedIP"
      ? { reserved: [reserved("late", { ips: ["10.6.0.10"], owner })] }
      : { contested: new Map([["10.6.0.10", claimant]]) }),
  });
  const [where = "", type, ...text] = wanted.split(" ");
  const said = where === "pool" ? found.pools.get("blue") : found.reserved.get(where);
  expect(of(said, type as ConditionType)).toContain(text.join(" "));
});

describe("ReservedInUse", () => {
  const ten = reserved("ten", { ips: ["10.6.0.10-10.6.0.12"] });
  const held = (...allocations: ReturnType<typeof allocation>[]) =>
    of(look({ pools: [blue], reserved: [ten], allocations }).reserved.get("ten"), "ReservedInUse");
  it("is false for addresses without a pod, of another space, or about to be free", () => {
    for (const one of [at(13), at(10, "Bound", lab), at(10, "Cooling"), at(10, "Quarantined")])
      check(held(one), "nothing");
  });
  it("says how many are in use, and names pods", () => {
    const names = "10.6.0.10 (pod shop/web-10), 10.6.0.12 (pod shop/web-12)";
    const message = `Others hold 2 addresses of these: ${names}; each stays until it is released, and is not given out again`;
    expect(held(at(12), at(10))).toBe(`+AddressesInUse ${message}`);
  });
  it("is false while its owner has the address", () => {
    const mine = reserved("mine", { ips: ["10.6.0.10"], owner: { namespace: "shop", name: "web-10" } });
    const found = look({ pools: [blue], reserved: [ten, mine], allocations: [at(10)] }).reserved;
    for (const name of ["ten", "mine"])
      for (const type of ["ReservedInUse", "Unavailable"] as const) check(of(found.get(name), type), "nothing");
    const other = reserved("mine", { ips: ["10.6.0.10"], owner: { namespace: "shop", name: "web-11" } });
    const contested = look({ pools: [blue], reserved: [other], allocations: [at(10)] }).reserved;
    check(of(contested.get("mine"), "ReservedInUse"), "+AddressesInUse Others hold 1 address of these: …");
  });
  it("is false for a Node or a Service that has an address reserved for no pod", () => {
    for (const kind of ["Node", "Service"]) check(held(machine(kind)), "nothing");
  });
  it("ends with the time of the reservation, which says so", () => {
    const ended = reserved("old", { ips: ["10.6.0.10"], until: "2026-01-31T18:00:00+01:00" });
    const found = look({ pools: [blue], reserved: [endingOf(ended)?.left ?? ended], allocations: [at(10)] }).reserved;
    const said = (["Ready", "ReservedInUse", "Expired"] as const).map((type) => of(found.get("old"), type));
    const message = "Its time ended at 2026-01-31T17:00:00Z: it keeps no address from any pod; delete it";
    expect(said).toEqual(["+Ready", "nothing", `+TimeIsOver ${message}`]);
  });
  it("of a reservation that cannot be used is not reported; the fault is", () => {
    const faulty = reserved("bad", { ips: ["10.6.0.9-10.6.0.1"] });
    check(of(look({ reserved: [faulty] }).reserved.get("bad"), "Ready"), "-InvalidSpecification…");
  });
});
