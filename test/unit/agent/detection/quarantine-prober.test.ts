import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  PROBES_AT_ONCE,
  PROXY_ARP_MEMORY_MS,
  QUARANTINE_FIRST_PROBE_MS,
  QUARANTINE_PROBE_MAX_MS,
} from "../../../../host/agent/detection/quarantine-prober.ts";
import { DetectionError } from "../../../../host/coordinator/detection-error.ts";
import { PROXY_ARP_ADDRESSES } from "../../../../host/ipam/conflict.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { ANY, openSegment, type Segment } from "../../../world/segment.ts";
import { pool } from "../../../world/subjects.ts";
import { ip, mac } from "../../../world/values.ts";

const BLUE = pool("blue", "10.6.0.0/29", { selection: "ascending" });
const GREEN = pool("green", "10.7.0.0/29", { gatewayIp: "10.7.0.6", excludeIPs: ["10.7.0.6"] });
const WIDE = pool("wide", "10.8.0.0/24", { selection: "ascending" });

let world: Segment;
beforeEach(async () => {
  world = await openSegment([BLUE, GREEN, WIDE]);
});
afterEach(() => world.close());

async function collide(name = "blue", pod = "a"): Promise<string> {
  const error: unknown = await world.add(pod, [[name]]).catch((thrown: unknown) => thrown);
  if (!(error instanceof Error)) throw new Error("there was no conflict");
  return error.message;
}

describe("a machine that answers for several addresses", () => {
  it("conflict: the third ends the quarantine of all, and nothing is quarantined any more", async () => {
    world.conflictOn(ANY);
    const texts: string[] = [];
    for (let number = 1; number <= 6; number++) texts.push(await collide());
    expect(texts.map((text) => text.includes("ProxyArpSuspected"))).toEqual([false, false, true, true, true, true]);
    expect(await world.node.states()).toEqual({});
    expect(world.node.poolCache.counts("blue")).toMatchObject({ free: 6n });
    expect(world.prober.problems).toEqual([
      'ProxyArpSuspected: 02:11:22:33:44:55 answers for addresses of pool "blue"; none is quarantined for it; switch its proxy ARP off',
    ]);
    expect(world.node.lines.filter((line) => line.includes("ProxyArpSuspected"))).toHaveLength(1);
  });

  it("and has the first addresses of an ascending pool does not keep pods from the others", async () => {
    for (let last = 1; last <= 3; last++) world.conflictOn(`10.6.0.${last}`);
    for (let number = 1; number <= 3; number++) await collide();
    const got = new Set<string>();
    for (let number = 0; number < 20; number++) {
      const claimed = await world.add(`p${number}`, [["blue"]]).catch(() => undefined);
      for (const each of claimed?.held ?? []) got.add(formatIp(each.ip));
    }
    expect([...got].sort()).toEqual(["10.6.0.4", "10.6.0.5", "10.6.0.6"]);
  });

  it("conflict: at once as well", async () => {
    world.conflictOn(ANY);
    await Promise.all(Array.from({ length: 40 }, (_, index) => collide("wide", `p${index}`)));
    expect(await world.node.states()).toEqual({});
    expect(world.node.poolCache.counts("wide")?.used).toBe(0);
    const quarantined = world.node.lines.filter((line) => line.includes("Quarantined an address"));
    expect(quarantined).toHaveLength(PROXY_ARP_ADDRESSES);
  });

  it("of different pools, or several machines, are conflicts like any other", async () => {
    for (let last = 1; last <= 4; last++) world.conflictOn(`10.6.0.${last}`, mac(`02:00:00:00:00:0${last}`));
    for (let number = 1; number <= 4; number++) await collide();
    world.conflictOn(ANY, mac("02:00:00:00:00:01"));
    await collide("green");
    await world.prober.idle();
    expect((await world.node.states()).Quarantined?.slice(0, 4)).toEqual([1, 2, 3, 4].map((last) => `10.6.0.${last}`));
  });

  it("goes on no further with onConflict: next", async () => {
    world.options = { detect: true, onConflict: "next" };
    world.conflictOn(ANY);
    expect(await collide()).toContain("ProxyArpSuspected");
    expect(world.questions).toHaveLength(PROXY_ARP_ADDRESSES);
    expect(await world.node.states()).toEqual({});
  });

  it("sends the next search elsewhere, and is forgotten after an hour of quiet", async () => {
    world.conflictOn(ANY);
    expect(world.prober.salt).toBe("");
    for (let number = 1; number <= 3; number++) await collide();
    const third = world.prober.salt;
    world.node.clock.ms += PROXY_ARP_MEMORY_MS;
    await collide();
    expect(world.prober.salt).not.toBe(third);
    world.node.clock.ms += PROXY_ARP_MEMORY_MS + 1;
    expect([world.prober.salt, world.prober.problems]).toEqual(["", []]);
    expect(await collide()).toContain("it is quarantined");
  });
});

describe("the gateway", () => {
  it("conflict: that answers for an address is asked for after the refusal, and ends the quarantine", async () => {
    world.conflictOn(ANY);
    expect(await collide("green")).toContain("it is quarantined");
    await world.prober.idle();
    expect(world.questions.at(-1)).toEqual(["uplink", "10.7.0.6"]);
    expect(await world.node.states()).toEqual({});
    expect(world.prober.problems[0]).toContain("02:11:22:33:44:55, the gateway 10.7.0.6, answers");
    expect(await collide("green")).toContain("ProxyArpSuspected");
  });

  it("is not asked for before the ADD is answered", async () => {
    const answered = Promise.withResolvers<void>();
    world.answer = () => answered.promise;
    world.conflictOn(ANY);
    await collide("green");
    expect(world.questions.map(([link]) => link)).toEqual(["eth0"]);
    answered.resolve();
    await world.prober.idle();
    expect(world.questions.at(-1)).toEqual(["uplink", "10.7.0.6"]);
  });

  it.each([
    ["with another MAC", () => world.conflictOn("10.7.0.6", mac("02:00:00:00:00:99"))],
    ["that is silent", () => {}],
    ["that cannot be asked: no link", () => world.nodeLinks.pop()],
  ])("%s leaves the quarantine", async (_, prepare) => {
    for (let last = 1; last <= 5; last++) world.conflictOn(`10.7.0.${last}`);
    prepare();
    await collide("green");
    await world.prober.idle();
    expect([(await world.node.states()).Quarantined?.length, world.prober.problems]).toEqual([1, []]);
  });

  it("whose link fails leaves the quarantine, and a line in the log", async () => {
    world.conflictOn(ANY);
    world.meanwhile = () => {
      if (world.questions.length === 2) world.broken = new DetectionError("link", "uplink", "it is down");
    };
    await collide("green");
    await world.prober.idle();
    expect((await world.node.states()).Quarantined).toHaveLength(1);
    expect(world.node.lines).toContain("warn Probing the gateway of a pool failed");
  });
});

describe("asking again", () => {
  const inQuarantine = async (): Promise<void> => {
    world.conflictOn("10.6.0.1");
    await collide();
    world.questions.length = 0;
  };

  it("begins after a while, through the node's link", async () => {
    await inQuarantine();
    world.node.clock.ms += QUARANTINE_FIRST_PROBE_MS - 1;
    await world.prober.probeDue();
    expect(world.questions).toEqual([]);
    world.node.clock.ms += 1;
    await world.prober.probeDue();
    expect(world.questions).toEqual([["uplink", "10.6.0.1"]]);
  });

  it("silence frees the address", async () => {
    await inQuarantine();
    world.answering.clear();
    world.node.clock.ms += QUARANTINE_FIRST_PROBE_MS;
    await world.prober.probeDue();
    expect([await world.node.states(), world.node.freed]).toEqual([{}, ["10.6.0.1"]]);
  });

  it.each([
    ["an answer", () => {}],
    ["a link that is gone", () => world.nodeLinks.pop()],
    ["a link that is down", () => (world.broken = new DetectionError("link", "uplink", "down"))],
  ])("%s postpones it by as long as it has lasted, up to a limit", async (_, prepare) => {
    await inQuarantine();
    prepare();
    const waits: number[] = [];
    for (let number = 0; number < 8; number++) {
      const [found] = await world.node.registry.findQuarantined({ limit: 1 });
      const waitMs = (found?.quarantine?.nextProbeAtMs ?? 0) - world.node.clock.ms;
      waits.push(waitMs);
      world.node.clock.ms += waitMs;
      await world.prober.probeDue();
    }
    const first = QUARANTINE_FIRST_PROBE_MS;
    const doubling = [1, 1, 2, 4, 8, 16, 32, 64].map((times) => Math.min(times * first, QUARANTINE_PROBE_MAX_MS));
    expect(waits).toEqual(doubling);
    expect(await world.node.states()).toEqual({ Quarantined: ["10.6.0.1"] });
  });

  it("takes all that is due, so many at once", async () => {
    const many = PROBES_AT_ONCE + 3;
    for (let last = 1; last <= many; last++) {
      world.conflictOn(`10.8.0.${last}`, mac(`02:00:00:00:00:${String(last).padStart(2, "0")}`));
      await collide("wide");
    }
    world.answering.clear();
    world.questions.length = 0;
    world.node.clock.ms += QUARANTINE_FIRST_PROBE_MS;
    let [underWay, most] = [0, 0];
    world.meanwhile = async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    };
    await world.prober.probeDue();
    expect([world.questions.length, most, await world.node.states()]).toEqual([many, PROBES_AT_ONCE, {}]);
  });

  it("a bug is told, and ends with the keeper", async () => {
    await inQuarantine();
    world.node.clock.ms += QUARANTINE_FIRST_PROBE_MS;
    world.broken = new TypeError("a bug");
    await expect(world.prober.probeDue()).rejects.toThrow("a bug");
    world.broken = undefined;
    world.meanwhile = () => world.prober.close();
    await world.prober.probeDue();
    expect((await world.node.registry.findAddress("", ip("10.6.0.1")))?.quarantine?.nextProbeAtMs).toBeLessThanOrEqual(
      world.node.clock.ms,
    );
  });
});
