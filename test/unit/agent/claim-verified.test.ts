import { describe, expect, it } from "vitest";
import { MAX_PROXY_ARP_SUSPECTS } from "../../../host/agent/detection/quarantine-prober.ts";
import type { Claimed } from "../../../host/agent/ipam/allocate.ts";
import { MAX_CONFLICT_CANDIDATES } from "../../../host/agent/ipam/claim-verified.ts";
import { QUARANTINE_MAX_MS } from "../../../host/agent/ipam/sources/quarantined.ts";
import { MIN_COOLING_MS } from "../../../host/agent/request/add-deadline.ts";
import { DetectionError } from "../../../host/coordinator/detection-error.ts";
import { PROXY_ARP_ADDRESSES } from "../../../host/ipam/conflict.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { leasingPool, seenAt } from "../../world/leasing-pool.ts";
import { ANY, type Segment, withSegment } from "../../world/segment.ts";
import { pool } from "../../world/subjects.ts";
import { ip, mac, RIVAL } from "../../world/values.ts";

/** .1 to .6, the lowest first. */
const BLUE = pool("blue", "10.6.0.0/29", { selection: "ascending" });
const SIX = pool("six", "fd00:6::/125", { ips: ["fd00:6::1-fd00:6::6"], selection: "ascending" });
const ONE = pool("one", "10.7.0.0/29", { ips: ["10.7.0.1"] });

function addressesOf({ held }: Claimed): string[] {
  return held.map(({ ip: address }) => formatIp(address));
}

const FOUR = [["blue"]];
const BOTH = [["blue"], ["six"]];

describe("an ADD that asks before it answers", () => {
  it("asks for both families at once, and remembers that they were silent", () =>
    withSegment([BLUE, SIX], async (world) => {
      const claimed = await world.add("a", BOTH);
      expect(addressesOf(claimed)).toEqual(["10.6.0.1", "fd00:6::1"]);
      expect(world.questions).toEqual([["eth0", "10.6.0.1", "fd00:6::1"]]);
      const verified = (text: string) => world.verified.has({ containerId: "c-a", ifName: "eth0" }, ip(text));
      expect(["10.6.0.1", "fd00:6::1", "10.6.0.2"].map(verified)).toEqual([true, true, false]);
    }));

  it.each([
    ["detection is off", { detect: false }, []],
    ["the coordinator is disabled", { mode: "disable" as const }, []],
    ["there is no NIC yet", {}, undefined],
    ["the NIC has the address already", {}, [ip("10.6.0.1")]],
  ])("does not probe when %s", (_, options, onNic) =>
    withSegment([BLUE], async (world) => {
      world.options = { ...world.options, ...options };
      world.onNic = () => onNic;
      world.conflictOn(ANY);
      expect(addressesOf(await world.add("a", FOUR))).toEqual(["10.6.0.1"]);
      expect([world.questions, world.verified.size]).toEqual([[], 0]);
    }),
  );

  describe("in a block that is new", () => {
    const SEG = leasingPool("seg", "10.6.0.0/24", ["10.6.0.0/29 New"], { spec: { selection: "ascending" } });
    const inNew = (test: (world: Segment) => Promise<void>) =>
      withSegment([SEG], (world) => {
        world.node.poolCache.followRegistry(() => seenAt("e1"));
        world.options = { detect: false, onConflict: "next" };
        return test(world);
      });

    it("asks although detection is off, and takes the next address when a machine answers", () =>
      inNew(async (world) => {
        world.conflictOn("10.6.0.1");
        expect(addressesOf(await world.add("a", [["seg"]]))).toEqual(["10.6.0.2"]);
        expect(world.questions).toEqual([
          ["eth0", "10.6.0.1"],
          ["eth0", "10.6.0.2"],
        ]);
        expect(await world.node.states()).toEqual({ Bound: ["10.6.0.2"], Quarantined: ["10.6.0.1"] });
      }));

    it("leaves an address to the coordinator, where that asks later", () =>
      inNew(async (world) => {
        world.options = { detect: true, isCoordinated: true };
        world.onNic = () => undefined;
        expect(addressesOf(await world.add("a", [["seg"]]))).toEqual(["10.6.0.1"]);
      }));

    it("is refused where there is no NIC to ask on, and keeps nothing", () =>
      inNew(async (world) => {
        world.onNic = () => undefined;
        const message = expect.stringMatching(/is missing, and its address of a new block 10\.6\.0\.1 must be probed/);
        await expect(world.add("a", [["seg"]])).rejects.toMatchObject({ code: 11, message });
        expect((await world.node.states()).Bound).toBeUndefined();
      }));
  });

  it("a repeated ADD asks only for what is not on the NIC", () =>
    withSegment([BLUE, SIX], async (world) => {
      await world.add("a", BOTH);
      world.onNic = () => [ip("10.6.0.1")];
      world.conflictOn("10.6.0.1", mac("0a:00:00:00:00:01"));
      await world.add("a", BOTH);
      expect(world.questions[1]).toEqual(["eth0", "fd00:6::1"]);
      expect(world.verified.has({ containerId: "c-a", ifName: "eth0" }, ip("10.6.0.1"))).toBe(true);
    }));

  it("retention: does not probe an address that it shares with a migrating pod, which answers; probes the other family", () =>
    withSegment([BLUE, SIX], async (world) => {
      world.conflictOn("10.6.0.1");
      world.shared.add("10.6.0.1");
      expect(addressesOf(await world.add("a", BOTH))).toEqual(["10.6.0.1", "fd00:6::1"]);
      expect(world.questions).toEqual([["eth0", "fd00:6::1"]]);
      const nic = { containerId: "c-a", ifName: "eth0" };
      const isShared = (text: string) => world.verified.isShared(nic, ip(text));
      expect(["10.6.0.1", "fd00:6::1"].map(isShared)).toEqual([true, false]);
      expect(world.verified.has(nic, ip("10.6.0.1"))).toBe(true);
      world.verified.delete(nic);
      expect([isShared("10.6.0.1"), world.verified.has(nic, ip("10.6.0.1"))]).toEqual([false, false]);
    }));

  it("conflict: takes a conflict for what it is: quarantine, code 104, all else undone", () =>
    withSegment([BLUE, SIX], async (world) => {
      world.conflictOn("10.6.0.1");
      await expect(world.add("a", BOTH)).rejects.toMatchObject({
        code: 104,
        message:
          'Address 10.6.0.1 of pool "blue" is in use by 02:11:22:33:44:55 on the segment of interface "eth0"; ' +
          "it is quarantined, and the next attempt gets another address",
      });
      expect(await world.node.states()).toEqual({ Quarantined: ["10.6.0.1"] });
      expect([world.node.freed, world.verified.size]).toEqual([["fd00:6::1"], 0]);
      expect(await world.node.registry.findAddress("", ip("10.6.0.1"))).toMatchObject({
        quarantine: { reason: "Conflict", mac: RIVAL, parent: "uplink" },
      });
    }));

  it("conflict: the next attempt of the same pod gets another address, whatever DEL came between", () =>
    withSegment([BLUE], async (world) => {
      world.conflictOn("10.6.0.1");
      await expect(world.add("a", FOUR)).rejects.toMatchObject({ code: 104 });
      await world.node.registry.release({ containerId: "c-a", ifName: "eth0" });
      expect(addressesOf(await world.add("a", FOUR, { containerId: "second" }))).toEqual(["10.6.0.2"]);
      expect(await world.node.states()).toEqual({ Bound: ["10.6.0.2"], Quarantined: ["10.6.0.1"] });
    }));

  it("node-lost: what answers for the address of an earlier pod on a lost node is that pod: code 11, and no quarantine", () =>
    withSegment([BLUE], async (world) => {
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
      await expect(world.add("a", FOUR)).rejects.toMatchObject({
        code: 11,
        message: expect.stringContaining('on node "n9", which is lost, and 02:11:22:33:44:55 still answers for it'),
      });
      expect([await world.node.states(), world.node.freed]).toEqual([{}, ["10.6.0.1"]]);
    }));

  it("an address asked for by name is quarantined, and refused from then on", () =>
    withSegment([BLUE], async (world) => {
      world.options = { ...world.options, onConflict: "next" };
      world.conflictOn("10.6.0.3");
      const asking = () => world.add("a", FOUR, { requested: "10.6.0.3" });
      await expect(asking()).rejects.toMatchObject({
        code: 104,
        message: expect.stringContaining("it is quarantined; let CNI_ARGS IP ask for another address"),
      });
      await expect(asking()).rejects.toMatchObject({
        code: 101,
        message: expect.stringContaining("it is quarantined, because 02:11:22:33:44:55 answers for it"),
      });
    }));

  it("a NIC that cannot be probed is code 11, and nothing is kept", () =>
    withSegment([BLUE], async (world) => {
      world.broken = new DetectionError("link", "eth0", "it is down");
      await expect(world.add("a", FOUR)).rejects.toMatchObject({
        code: 11,
        message: expect.stringMatching(/detection failed for 10\.6\.0\.1: .*"eth0": it is down; try again/),
      });
      expect([await world.node.states(), world.node.freed]).toEqual([{}, ["10.6.0.1"]]);
    }));

  it("a NIC of a kind that cannot be probed is code 106, for which no runtime need try again", () =>
    withSegment([BLUE], async (world) => {
      world.broken = new DetectionError("kind", "eth0", "it has no ARP");
      await expect(world.add("a", FOUR)).rejects.toMatchObject({
        code: 106,
        message: expect.stringMatching(
          /detection failed for 10\.6\.0\.1: .*"eth0": it has no ARP; set "detectIPConflict"/,
        ),
      });
      expect([await world.node.states(), world.node.freed]).toEqual([{}, ["10.6.0.1"]]);
    }));

  it("whatever else fails, nothing is kept", () =>
    withSegment([BLUE], async (world) => {
      world.broken = new TypeError("a bug");
      await expect(world.add("a", FOUR)).rejects.toThrow("a bug");
      expect(await world.node.states()).toEqual({});
    }));

  it("undo: a caller that hangs up meanwhile leaves nothing behind", () =>
    withSegment([BLUE], async (world) => {
      const hungUp = new AbortController();
      world.meanwhile = () => hungUp.abort();
      await expect(world.add("a", FOUR, { signal: hungUp.signal })).rejects.toThrow("aborted");
      expect([await world.node.states(), world.verified.size]).toEqual([{}, 0]);
    }));
});

describe("onConflict: next", () => {
  const next = (test: (world: Segment) => Promise<void>) => () =>
    withSegment([BLUE, SIX], (world) => {
      world.options = { detect: true, onConflict: "next" };
      return test(world);
    });

  it(
    "goes on with another address in the same ADD, and asks for what it keeps again: a conflict ended the question early",
    next(async (world) => {
      world.conflictOn("10.6.0.1");
      world.conflictOn("10.6.0.2", mac("02:00:00:00:00:09"));
      expect(addressesOf(await world.add("a", BOTH)).toSorted()).toEqual(["10.6.0.3", "fd00:6::1"]);
      expect(world.questions.map((question) => question.slice(1).toSorted())).toEqual([
        ["10.6.0.1", "fd00:6::1"],
        ["10.6.0.2", "fd00:6::1"],
        ["10.6.0.3", "fd00:6::1"],
      ]);
      expect(await world.node.states()).toEqual({
        Quarantined: ["10.6.0.1", "10.6.0.2"],
        Bound: ["10.6.0.3", "fd00:6::1"],
      });
    }),
  );

  it(
    "undo takes back all that the ADD kept, not only its last claim",
    next(async (world) => {
      world.conflictOn("10.6.0.1");
      const { created } = await world.add("a", BOTH);
      await world.node.registry.undo(created);
      expect(await world.node.states()).toEqual({ Quarantined: ["10.6.0.1"] });
    }),
  );

  it(
    "without another address it is refused as exhausted, and nothing is kept",
    next(async (world) => {
      for (let last = 1; last <= 6; last++) world.conflictOn(`10.6.0.${last}`, mac(`02:00:00:00:00:0${last}`));
      await expect(world.add("a", BOTH)).rejects.toMatchObject({ code: 101 });
      expect((await world.node.states()).Bound).toBeUndefined();
    }),
  );

  it("ends after so many addresses", () =>
    withSegment([pool("wide", "10.8.0.0/24", { selection: "ascending" })], async (world) => {
      world.options = { detect: true, onConflict: "next" };
      for (let last = 1; last < 99; last++) {
        world.conflictOn(`10.8.0.${last}`, mac(`02:00:00:00:00:${String(last).padStart(2, "0")}`));
      }
      await expect(world.add("a", [["wide"]])).rejects.toMatchObject({ code: 104 });
      expect([world.questions.length, Object.keys(await world.node.states())]).toEqual([
        MAX_CONFLICT_CANDIDATES,
        ["Quarantined"],
      ]);
    }));
});

describe("conflict: earlier attachments of our own", () => {
  it("an old sandbox's MAC is no conflict, and its NIC loses the address", () =>
    withSegment([BLUE], async (world) => {
      await world.add("a", FOUR, { containerId: "first", netns: "/run/first" });
      const own = await world.node.registry.findAddress("", ip("10.6.0.1"));
      expect([own?.netns, own?.mac]).toEqual(["/run/first", "0a:00:00:00:00:01"]);
      expect(addressesOf(await world.add("a", FOUR, { containerId: "second", netns: "/run/second" }))).toEqual([
        "10.6.0.1",
      ]);
      expect(world.withdrawn).toEqual(["10.6.0.1 in /run/first"]);
    }));

  it("loses the address, too, when only the coordinator can ask", () =>
    withSegment([BLUE], async (world) => {
      world.onNic = () => undefined;
      await world.add("a", FOUR, { containerId: "first", netns: "/run/first" });
      await world.add("a", FOUR, { containerId: "second", netns: "/run/second" });
      expect([world.withdrawn, world.questions]).toEqual([["10.6.0.1 in /run/first"], []]);
    }));

  it("nor is the MAC on record, when its NIC cannot be found any more", () =>
    withSegment([BLUE], async (world) => {
      await world.node.bind("10.6.0.1", "a", { containerId: "first", netns: "/run/first", mac: RIVAL });
      world.conflictOn("10.6.0.1");
      expect(addressesOf(await world.add("a", FOUR, { containerId: "second" }))).toEqual(["10.6.0.1"]);
    }));

  it("so for the pod from which a cooling address is taken over", () =>
    withSegment([ONE], async (world) => {
      await world.add("a", [["one"]]);
      await world.node.registry.release({ containerId: "c-a", ifName: "eth0" });
      world.node.clock.ms += MIN_COOLING_MS;
      await world.add("b", [["one"]]);
      expect(world.withdrawn).toEqual(["10.7.0.1 in /run/a"]);
    }));

  it("a conflict with an attachment that took the address over meanwhile quarantines nothing", () =>
    withSegment([BLUE], async (world) => {
      world.conflictOn("10.6.0.1");
      world.meanwhile = async () => {
        world.meanwhile = () => {};
        world.options = { detect: false };
        await world.add("a", FOUR, { containerId: "second" });
      };
      await expect(world.add("a", FOUR, { containerId: "first" })).rejects.toMatchObject({ code: 11 });
      expect(await world.node.registry.findAddress("", ip("10.6.0.1"))).toMatchObject({ containerId: "second" });
    }));
});

const WIDE = pool("wide", "10.8.0.0/22", { selection: "ascending" });

/** Does it once, while the first question is under way. */
function once(world: Segment, work: () => Promise<unknown>): void {
  world.meanwhile = async () => {
    world.meanwhile = () => {};
    await work();
  };
}

describe("while the NIC is asking", () => {
  it.each([
    ["DEL", (world: Segment) => world.node.registry.release({ containerId: "c-a", ifName: "eth0" })],
    ["GC", (world: Segment) => world.node.registry.releaseOthers("net", [], world.node.clock.ms + 1)],
  ])("a %s ends the ADD with code 11: its addresses have no owner by now", (_, release) =>
    withSegment([BLUE, SIX], async (world) => {
      once(world, () => release(world));
      await expect(world.add("a", BOTH)).rejects.toMatchObject({
        code: 11,
        message: expect.stringContaining(
          'Address 10.6.0.1 of pool "blue" was released while it was probed on interface "eth0"',
        ),
      });
      expect([await world.node.states(), world.verified.size]).toEqual([{ Cooling: ["10.6.0.1", "fd00:6::1"] }, 0]);
    }),
  );

  it("a registry that goes away is the error, and the conflict is in the log", () =>
    withSegment([BLUE], async (world) => {
      world.conflictOn("10.6.0.1");
      once(world, () => world.node.registry.close());
      await expect(world.add("a", [["blue"]])).rejects.toThrow("The registry is closed");
      expect(world.node.lines).toContain("warn Quarantining an address that another machine answers for failed");
    }));

  it("the same ADD again is answered like the first", () =>
    withSegment([BLUE, SIX], async (world) => {
      const answers: string[][] = [];
      const add = async () => void answers.push((await world.add("a", BOTH)).held.map((each) => formatIp(each.ip)));
      once(world, add);
      await add();
      expect(answers).toEqual([
        ["10.6.0.1", "fd00:6::1"],
        ["10.6.0.1", "fd00:6::1"],
      ]);
      expect(await world.node.states()).toEqual({ Bound: ["10.6.0.1", "fd00:6::1"] });
    }));
});

it("a machine with ever new MACs is not remembered without end", () =>
  withSegment([WIDE], async (world) => {
    for (let machine = 0; machine < MAX_PROXY_ARP_SUSPECTS + 5; machine++) {
      world.conflictOn(ANY, mac(`02:00:00:00:00:${machine.toString(16).padStart(2, "0")}`));
      for (let number = 0; number < PROXY_ARP_ADDRESSES; number++) {
        await expect(world.add("a", [["wide"]])).rejects.toMatchObject({ code: 104 });
      }
    }
    expect(world.prober.problems).toHaveLength(MAX_PROXY_ARP_SUSPECTS);
    expect(world.prober.problems.at(-1)).toContain("02:00:00:00:00:24");
    expect(await world.node.states()).toEqual({});
  }));

/** Binds, quarantines and lets so much time pass that an ADD may take it. */
async function quarantineLongAgo(world: Segment): Promise<void> {
  world.conflictOn("10.7.0.1");
  await expect(world.add("old", [["one"]])).rejects.toMatchObject({ code: 104 });
  await world.prober.idle();
  world.questions.length = 0;
  world.node.clock.ms += QUARANTINE_MAX_MS;
}

describe("conflict: an address that has been in quarantine for an hour", () => {
  it("is taken when nothing else is left, and asked for whatever the settings say", () =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      world.options = { detect: false };
      expect(addressesOf(await world.add("a", [["one"]]))).toEqual(["10.7.0.1"]);
      expect(world.questions).toEqual([["eth0", "10.7.0.1"]]);
      const bound = await world.node.registry.findAddress("", ip("10.7.0.1"));
      expect(bound).toMatchObject({ state: "Bound", owner: "uid-a", quarantine: undefined });
    }));

  it("is free when the ADD that found it silent is undone", () =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      const { created } = await world.add("a", [["one"]]);
      await world.node.registry.undo(created);
      expect(world.node.freed).toEqual(["10.7.0.1"]);
    }));

  it("goes back when its machine still answers", () =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 104 });
      expect(await world.node.states()).toEqual({ Quarantined: ["10.7.0.1"] });
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 101 });
    }));

  it("goes back when it cannot be asked for", () =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.broken = new DetectionError("link", "eth0", "it is down");
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 11 });
      expect(await world.node.states()).toEqual({ Quarantined: ["10.7.0.1"] });
    }));

  it.each([
    ["there is no NIC to ask on", (world: Segment) => (world.onNic = () => undefined)],
    ["the hour is not over", (world: Segment) => (world.node.clock.ms -= 1)],
  ])("is not taken while %s", (_, change) =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      change(world);
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 101 });
      expect(world.questions).toEqual([]);
    }),
  );

  it("is not taken while another address is free", () =>
    withSegment([ONE, BLUE], async (world) => {
      await quarantineLongAgo(world);
      expect(addressesOf(await world.add("a", [["one", "blue"]]))).toEqual(["10.6.0.1"]);
    }));

  it("a repeated ADD whose NIC has gone cannot ask, and is refused", () =>
    withSegment([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      const [found] = await world.node.registry.findQuarantined({ limit: 1 });
      await world.node.bind("10.7.0.1", "a", { pool: "one", replaces: found?.version ?? 0 });
      world.onNic = () => undefined;
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({
        code: 11,
        message: expect.stringContaining("its quarantined address 10.7.0.1 must be probed before it is used"),
      });
    }));
});
