import { describe, expect, it } from "vitest";
import type { Claimed } from "../../../../host/agent/ipam/allocate.ts";
import { QUARANTINE_MAX_MS } from "../../../../host/agent/ipam/sources/quarantined.ts";
import { DetectionError } from "../../../../host/coordinator/detection-error.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { ip, pool } from "../../ipam/subjects.ts";
import { conflictOn, type DetectionWorld, withDetection } from "./detection-world.ts";

const BLUE = pool("blue", "10.6.0.0/29", { selection: "ascending" });
const ONE = pool("one", "10.7.0.0/29", { ips: ["10.7.0.1"] });

function addressesOf({ held }: Claimed): string[] {
  return held.map(({ ip: address }) => formatIp(address));
}

/** Binds, quarantines and lets so much time pass that an ADD may take it. */
async function quarantineLongAgo(world: DetectionWorld): Promise<void> {
  conflictOn(world, "10.7.0.1");
  await expect(world.add("old", [["one"]])).rejects.toMatchObject({ code: 104 });
  await world.prober.idle();
  world.questions.length = 0;
  world.clockMs += QUARANTINE_MAX_MS;
}

describe("conflict: an address that has been in quarantine for an hour", () => {
  it("is taken when nothing else is left, and asked for whatever the settings say", () =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      world.options = { detect: false };
      expect(addressesOf(await world.add("a", [["one"]]))).toEqual(["10.7.0.1"]);
      expect(world.questions).toEqual([["eth0", "10.7.0.1"]]);
      const bound = await world.registry.findAddress("", ip("10.7.0.1"));
      expect(bound).toMatchObject({ state: "Bound", owner: "a", quarantine: undefined });
    }));

  it("is free when the ADD that found it silent is undone", () =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      const { created } = await world.add("a", [["one"]]);
      await world.registry.undo(created);
      expect(world.freed).toEqual(["10.7.0.1"]);
    }));

  it("goes back when its machine still answers", () =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 104 });
      expect(await world.states()).toEqual({ Quarantined: ["10.7.0.1"] });
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 101 });
    }));

  it("goes back when it cannot be asked for", () =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.broken = new DetectionError("link", "eth0", "it is down");
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 11 });
      expect(await world.states()).toEqual({ Quarantined: ["10.7.0.1"] });
    }));

  it.each([
    ["there is no NIC to ask on", (world: DetectionWorld) => (world.onNic = undefined)],
    ["the hour is not over", (world: DetectionWorld) => (world.clockMs -= 1)],
  ])("is not taken while %s", (_, change) =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      change(world);
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({ code: 101 });
      expect(world.questions).toEqual([]);
    }),
  );

  it("is not taken while another address is free", () =>
    withDetection([ONE, BLUE], async (world) => {
      await quarantineLongAgo(world);
      expect(addressesOf(await world.add("a", [["one", "blue"]]))).toEqual(["10.6.0.1"]);
    }));

  it("a repeated ADD whose NIC has gone cannot ask, and is refused", () =>
    withDetection([ONE], async (world) => {
      await quarantineLongAgo(world);
      world.answering.clear();
      const [found] = await world.registry.findQuarantined({ limit: 1 });
      const place = { space: "", ip: ip("10.7.0.1"), prefixLength: 29, pool: "one", ifName: "eth0" };
      await world.registry.claim({
        ...{ owner: "a", namespace: "shop", pod: "a", ifName: "eth0", containerId: "c-a", network: "net" },
        proposals: [{ ...place, replaces: found?.version ?? 0 }],
      });
      world.onNic = undefined;
      await expect(world.add("a", [["one"]])).rejects.toMatchObject({
        code: 11,
        message: expect.stringContaining("its quarantined address 10.7.0.1 must be probed before it is used"),
      });
    }));
});
