import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_PROXY_ARP_SUSPECTS } from "../../../host/agent/detection/quarantine-prober.ts";
import { MAX_CONFLICT_CANDIDATES } from "../../../host/agent/ipam/claim-verified.ts";
import { QUARANTINE_MAX_MS } from "../../../host/agent/ipam/sources/released.ts";
import { MIN_COOLING_MS } from "../../../host/agent/request/add-deadline.ts";
import { CniError } from "../../../host/cni/error.ts";
import { DetectionError } from "../../../host/coordinator/detection-error.ts";
import { PROXY_ARP_ADDRESSES } from "../../../host/ipam/conflict.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { leasingPool, seenAt } from "../../world/leasing-pool.ts";
import type { DemandOptions } from "../../world/node.ts";
import { ANY, openSegment, type Segment } from "../../world/segment.ts";
import { pool, snapshotOf } from "../../world/subjects.ts";
import { ip, mac, RIVAL } from "../../world/values.ts";

/** .1 to .6, the lowest first. */
const BLUE = pool("blue", "10.6.0.0/29", { selection: "ascending" });
const SIX = pool("six", "fd00:6::/125", { ips: ["fd00:6::1-fd00:6::6"], selection: "ascending" });
const ONE = pool("one", "10.7.0.0/29", { ips: ["10.7.0.1"] });
const WIDE = pool("wide", "10.8.0.0/22", { selection: "ascending" });

let world: Segment;
beforeEach(async () => {
  world = await openSegment([BLUE, SIX, ONE, WIDE]);
});
afterEach(() => world.close());

const FOUR = [["blue"]];
const BOTH = [["blue"], ["six"]];
const LAST = [["one"]];
const PAIR = "10.6.0.1 fd00:6::1";
const NIC = { containerId: "c-a", ifName: "eth0" };
const IS_DOWN = new DetectionError("link", "eth0", "it is down");
const NO_ARP = new DetectionError("kind", "eth0", "no ARP");

/** The addresses of an ADD of the pod, or its refusal. */
async function add(pools: Parameters<Segment["add"]>[1], options: DemandOptions = {}, pod = "a"): Promise<string> {
  try {
    const { held } = await world.add(pod, pools, options);
    return held.map((row) => formatIp(row.ip)).join(" ");
  } catch (error) {
    return error instanceof CniError ? `${error.code}: ${error.message}` : String(error);
  }
}

/** `Bound 10.6.0.2, Quarantined 10.6.0.1`, or nothing. */
async function states(): Promise<string> {
  return Object.entries(await world.node.states())
    .map(([state, addresses]) => [state, ...addresses].join(" "))
    .sort()
    .join(", ");
}

const rowOf = (address: string) => world.node.registry.findAddress("", ip(address));
const containing = (text: string) => expect.stringContaining(text);
const probed = () => world.questions.map((question) => question.join(" "));
const isVerified = (text: string) => world.verified.has(NIC, ip(text));

/** Does it once, while the first question is under way. */
function once(work: () => Promise<unknown>): void {
  world.meanwhile = async () => {
    world.meanwhile = () => {};
    await work();
  };
}

describe("an ADD that asks before it answers", () => {
  it("asks for both families at once, and remembers that they were silent", async () => {
    expect([await add(BOTH), probed()]).toEqual([PAIR, ["eth0 10.6.0.1 fd00:6::1"]]);
    expect(["10.6.0.1", "fd00:6::1", "10.6.0.2"].map(isVerified)).toEqual([true, true, false]);
  });

  it.each([
    ["detection is off", { detect: false }, []],
    ["the coordinator is disabled", { mode: "disable" as const }, []],
    ["there is no NIC yet", {}, undefined],
    ["the NIC has the address already", {}, [ip("10.6.0.1")]],
  ])("does not probe when %s", async (_, options, onNic) => {
    world.options = { ...world.options, ...options };
    world.onNic = () => onNic;
    world.conflictOn(ANY);
    expect([await add(FOUR), probed(), world.verified.size]).toEqual(["10.6.0.1", [], 0]);
  });

  describe("in a block that is new", () => {
    const SEG = leasingPool("seg", "10.6.0.0/24", ["10.6.0.0/29 New"], { spec: { selection: "ascending" } });
    beforeEach(() => {
      world.node.follow(snapshotOf(SEG));
      world.node.poolCache.followRegistry(() => seenAt("e1"));
      world.options = { detect: false, onConflict: "next" };
    });

    it("asks although detection is off, and takes the next address when a machine answers", async () => {
      world.conflictOn("10.6.0.1");
      expect([await add([["seg"]]), probed()]).toEqual(["10.6.0.2", ["eth0 10.6.0.1", "eth0 10.6.0.2"]]);
      expect(await states()).toBe("Bound 10.6.0.2, Quarantined 10.6.0.1");
    });

    it("leaves an address to the coordinator, where that asks later", async () => {
      world.options = { detect: true, isCoordinated: true };
      world.onNic = () => undefined;
      expect(await add([["seg"]])).toBe("10.6.0.1");
    });

    it("is refused where there is no NIC to ask on, and keeps nothing", async () => {
      world.onNic = () => undefined;
      expect(await add([["seg"]])).toMatch(
        /^11: .* is missing, and its address of a new block 10\.6\.0\.1 must be probed/,
      );
      expect(await states()).not.toContain("Bound");
    });
  });

  describe("in an epoch that is probed", () => {
    beforeEach(() => {
      world.isProbed = true;
      world.options = { detect: false, onConflict: "next" };
    });

    it("asks for addresses new to the pod although detection is off, and takes the next where a machine answers", async () => {
      world.conflictOn("10.6.0.1");
      expect([await add(FOUR), await states()]).toEqual(["10.6.0.2", "Bound 10.6.0.2, Quarantined 10.6.0.1"]);
      expect([await add(FOUR), probed()]).toEqual(["10.6.0.2", ["eth0 10.6.0.1", "eth0 10.6.0.2"]]);
    });

    it.each([
      ["there is no NIC", () => (world.onNic = () => undefined)],
      ["its NIC cannot ask", () => (world.broken = NO_ARP)],
    ])("gives an address unasked where %s", async (_, act) => {
      act();
      expect([await add(FOUR), await states()]).toEqual(["10.6.0.1", "Bound 10.6.0.1"]);
    });
  });

  it("a repeated ADD asks only for addresses that are not on the NIC", async () => {
    await add(BOTH);
    world.onNic = () => [ip("10.6.0.1")];
    world.conflictOn("10.6.0.1", mac("0a:00:00:00:00:01"));
    await add(BOTH);
    expect([probed()[1], isVerified("10.6.0.1")]).toEqual(["eth0 fd00:6::1", true]);
  });

  it("retention: does not probe an address that it shares with a migrating pod, which answers; probes the other family", async () => {
    world.conflictOn("10.6.0.1");
    world.shared.add("10.6.0.1");
    const workload = { kind: "VirtualMachine", namespace: "shop", name: "db", uid: "v-1", member: "db" };
    expect([await add(BOTH, { workload }), probed()]).toEqual([PAIR, ["eth0 fd00:6::1"]]);
    const isShared = (text: string) => world.verified.isShared(NIC, ip(text));
    expect(["10.6.0.1", "fd00:6::1"].map(isShared)).toEqual([true, false]);
    expect(isVerified("10.6.0.1")).toBe(true);
    world.verified.delete(NIC);
    expect([isShared("10.6.0.1"), isVerified("10.6.0.1")]).toEqual([false, false]);
  });

  it("conflict: a conflict has its outcome: quarantine, code 104, all else undone", async () => {
    world.conflictOn("10.6.0.1");
    expect(await add(BOTH)).toBe(
      '104: Address 10.6.0.1 of pool "blue" is in use by 02:11:22:33:44:55 on the segment of interface "eth0"; ' +
        "it is quarantined until that machine is silent; the next attempt gets another address if the pool has one",
    );
    expect([await states(), world.node.freed]).toEqual(["Quarantined 10.6.0.1", ["fd00:6::1"]]);
    expect(world.verified.size).toBe(0);
    const quarantine = { reason: "Conflict", mac: RIVAL, parent: "uplink" };
    expect(await rowOf("10.6.0.1")).toMatchObject({ quarantine });
  });

  it("conflict: the next attempt of the same pod gets another address, whatever DEL came between", async () => {
    world.conflictOn("10.6.0.1");
    expect(await add(FOUR)).toMatch(/^104: /);
    await world.node.registry.release(NIC);
    expect(await add(FOUR, { containerId: "second" })).toBe("10.6.0.2");
    expect(await states()).toBe("Bound 10.6.0.2, Quarantined 10.6.0.1");
  });

  it("node-lost: a machine that answers for the address of an earlier pod on a lost node is that pod: code 11, and no quarantine", async () => {
    const { registry } = world.node;
    const claim = registry.claim.bind(registry);
    Object.assign(registry, {
      claim: async (...given: Parameters<typeof claim>) => {
        const outcome = await claim(...given);
        if (outcome.kind !== "bound") return outcome;
        return { ...outcome, held: outcome.held.map((row) => ({ ...row, predecessorNode: "n9" })) };
      },
    });
    world.conflictOn("10.6.0.1");
    const why = /^11: .*on node "n9", which is lost, and 02:11:22:33:44:55 still answers for it/;
    expect(await add(FOUR)).toMatch(why);
    expect([await states(), world.node.freed]).toEqual(["", ["10.6.0.1"]]);
  });

  it("an address asked for by name is quarantined, and refused from then on", async () => {
    world.options = { ...world.options, onConflict: "next" };
    world.conflictOn("10.6.0.3");
    const asking = () => add(FOUR, { requested: "10.6.0.3" });
    expect(await asking()).toMatch(/^104: .*it is quarantined; let CNI_ARGS IP ask for another address/);
    expect(await asking()).toMatch(/^101: .*it is quarantined, because 02:11:22:33:44:55 answers for it/);
  });

  it.each([
    ["cannot be probed", IS_DOWN, /^11: .* 10\.6\.0\.1: .*"eth0": it is down; try again/],
    ["is of a kind that cannot be", NO_ARP, /^106: .*"eth0": no ARP; set "detectIPConflict"/],
    ["fails otherwise", new TypeError("a bug"), /^TypeError: a bug$/],
  ])("of a NIC that %s nothing is kept", async (_what, broken, refusal) => {
    world.broken = broken;
    expect(await add(FOUR)).toMatch(refusal);
    expect([await states(), world.node.freed]).toEqual(["", ["10.6.0.1"]]);
  });
});

describe("onConflict: next", () => {
  beforeEach(() => {
    world.options = { detect: true, onConflict: "next" };
  });
  const conflictOnEach = (from: string, first: number, last: number) => {
    for (let at = first; at <= last; at++)
      world.conflictOn(`${from}.${at}`, mac(`02:00:00:00:00:${String(at).padStart(2, "0")}`));
  };

  it("goes on with another address in the same ADD, and asks for kept ones again: a conflict ended the question early", async () => {
    conflictOnEach("10.6.0", 1, 2);
    expect((await add(BOTH)).split(" ").sort()).toEqual(["10.6.0.3", "fd00:6::1"]);
    expect(world.questions.map((question) => question.slice(1).toSorted())).toEqual(
      ["10.6.0.1", "10.6.0.2", "10.6.0.3"].map((four) => [four, "fd00:6::1"]),
    );
    expect(await states()).toBe("Bound 10.6.0.3 fd00:6::1, Quarantined 10.6.0.1 10.6.0.2");
  });

  it("undo takes back all that the ADD kept, not only its last claim", async () => {
    world.conflictOn("10.6.0.1");
    const { created } = await world.add("a", BOTH);
    await world.node.registry.undo(created);
    expect(await states()).toBe("Quarantined 10.6.0.1");
  });

  it("without another address it is refused as exhausted, and nothing is kept", async () => {
    conflictOnEach("10.6.0", 1, 6);
    expect([await add(BOTH), await states()]).toEqual([containing("101: "), expect.stringMatching(/^Quarantined /)]);
  });

  it("ends after so many addresses", async () => {
    conflictOnEach("10.8.0", 1, 98);
    expect([await add([["wide"]]), await states()]).toEqual([
      containing("104: "),
      expect.stringMatching(/^Quarantined /),
    ]);
    expect(world.questions).toHaveLength(MAX_CONFLICT_CANDIDATES);
  });
});

describe("conflict: earlier attachments of our own", () => {
  const FIRST = { containerId: "first", netns: "/run/first" };
  const SECOND = { containerId: "second", netns: "/run/second" };

  it("an old sandbox's MAC is no conflict, and its NIC loses the address", async () => {
    await add(FOUR, FIRST);
    expect(await rowOf("10.6.0.1")).toMatchObject({ netns: "/run/first", mac: "0a:00:00:00:00:01" });
    expect([await add(FOUR, SECOND), world.withdrawn]).toEqual(["10.6.0.1", ["10.6.0.1 in /run/first"]]);
  });

  it("loses the address, too, when only the coordinator can ask", async () => {
    world.onNic = () => undefined;
    for (const sandbox of [FIRST, SECOND]) await add(FOUR, sandbox);
    expect([world.withdrawn, probed()]).toEqual([["10.6.0.1 in /run/first"], []]);
  });

  it("nor is the MAC on record, when its NIC cannot be found any more", async () => {
    await world.node.bind("10.6.0.1", "a", { ...FIRST, mac: RIVAL });
    world.conflictOn("10.6.0.1");
    expect(await add(FOUR, { containerId: "second" })).toBe("10.6.0.1");
  });

  it("so for the pod from which a cooling address is taken over", async () => {
    await add(LAST);
    await world.node.registry.release(NIC);
    world.node.clock.ms += MIN_COOLING_MS;
    await add(LAST, {}, "b");
    expect(world.withdrawn).toEqual(["10.7.0.1 in /run/a"]);
  });

  it("a conflict with an attachment that took the address over meanwhile quarantines nothing", async () => {
    world.conflictOn("10.6.0.1");
    once(async () => {
      world.options = { detect: false };
      await add(FOUR, { containerId: "second" });
    });
    expect(await add(FOUR, { containerId: "first" })).toMatch(/^11: /);
    expect(await rowOf("10.6.0.1")).toMatchObject({ containerId: "second" });
  });
});

describe("while the NIC is asking", () => {
  it("a DEL ends the ADD with code 11: its addresses have no owner by now", async () => {
    once(() => world.node.registry.release(NIC));
    const why = /^11: .*Address 10\.6\.0\.1 of pool "blue" was released while it was probed on interface "eth0"/;
    expect(await add(BOTH)).toMatch(why);
    expect([await states(), world.verified.size]).toEqual(["Cooling 10.6.0.1 fd00:6::1", 0]);
  });

  it("a registry that goes away is the error, and the conflict is in the log", async () => {
    world.conflictOn("10.6.0.1");
    once(() => world.node.registry.close());
    expect(await add(FOUR)).toContain("The registry is closed");
    expect(world.node.lines).toContain("warn Quarantining an address that another machine answers for failed");
  });
});

it("a machine with ever new MACs is not remembered without end", async () => {
  for (let machine = 0; machine < MAX_PROXY_ARP_SUSPECTS + 5; machine++) {
    world.conflictOn(ANY, mac(`02:00:00:00:00:${machine.toString(16).padStart(2, "0")}`));
    for (let number = 0; number < PROXY_ARP_ADDRESSES; number++) expect(await add([["wide"]])).toMatch(/^104: /);
  }
  expect(world.prober.problems).toHaveLength(MAX_PROXY_ARP_SUSPECTS);
  expect([world.prober.problems.at(-1), await states()]).toEqual([containing("02:00:00:00:00:24"), ""]);
});

describe("conflict: an address that has been in quarantine for an hour", () => {
  /** Binds, quarantines and lets so much time pass that an ADD may take it. */
  beforeEach(async () => {
    world.conflictOn("10.7.0.1");
    expect(await add(LAST, {}, "old")).toMatch(/^104: /);
    await world.prober.idle();
    world.questions.length = 0;
    world.node.clock.ms += QUARANTINE_MAX_MS;
  });

  it("is taken when nothing else is left, and asked for whatever the settings say", async () => {
    world.answering.clear();
    world.options = { detect: false };
    expect([await add(LAST), probed()]).toEqual(["10.7.0.1", ["eth0 10.7.0.1"]]);
    expect(await rowOf("10.7.0.1")).toMatchObject({ state: "Bound", owner: "uid-a", quarantine: undefined });
  });

  it("is free when the ADD that found it silent is undone", async () => {
    world.answering.clear();
    const { created } = await world.add("a", LAST);
    await world.node.registry.undo(created);
    expect(world.node.freed).toEqual(["10.7.0.1"]);
  });

  it("goes back when its machine still answers", async () => {
    expect([await add(LAST), await states()]).toEqual([containing("104: "), "Quarantined 10.7.0.1"]);
    expect(await add(LAST)).toMatch(/^101: /);
  });

  it("goes back when it cannot be asked for", async () => {
    world.broken = IS_DOWN;
    expect([await add(LAST), await states()]).toEqual([containing("11: "), "Quarantined 10.7.0.1"]);
  });

  it.each([
    ["there is no NIC to ask on", () => (world.onNic = () => undefined)],
    ["the hour is not over", () => (world.node.clock.ms -= 1)],
  ])("is not taken while %s", async (_, change) => {
    world.answering.clear();
    change();
    expect([await add(LAST), probed()]).toEqual([containing("101: "), []]);
  });

  it("is not taken while another address is free", async () => expect(await add([["one", "blue"]])).toBe("10.6.0.1"));

  it("a repeated ADD whose NIC has gone cannot ask, and is refused", async () => {
    world.answering.clear();
    const [found] = await world.node.registry.findQuarantined({ limit: 1 });
    await world.node.bind("10.7.0.1", "a", { pool: "one", replaces: found?.version ?? 0 });
    world.onNic = () => undefined;
    expect(await add(LAST)).toMatch(/^11: .*its quarantined address 10\.7\.0\.1 must be probed before it is used/);
  });
});
