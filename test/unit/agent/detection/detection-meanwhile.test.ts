import { describe, expect, it } from "vitest";
import { MAX_PROXY_ARP_SUSPECTS } from "../../../../host/agent/detection/quarantine-prober.ts";
import { PROXY_ARP_ADDRESSES } from "../../../../host/ipam/conflict.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import { pool } from "../../ipam/subjects.ts";
import { mac } from "../../registry/registry-quarantine-suite.ts";
import { ANY, conflictOn, type DetectionWorld, withDetection } from "./detection-world.ts";

const BLUE = pool("blue", "10.6.0.0/29", { selection: "ascending" });
const SIX = pool("six", "fd00:6::/125", { ips: ["fd00:6::1-fd00:6::6"], selection: "ascending" });
const WIDE = pool("wide", "10.8.0.0/22", { selection: "ascending" });
const BOTH = [["blue"], ["six"]];

/** Does it once, while the first question is under way. */
function once(world: DetectionWorld, work: () => Promise<unknown>): void {
  world.meanwhile = async () => {
    world.meanwhile = () => {};
    await work();
  };
}

describe("while the NIC is asking", () => {
  it.each([
    ["DEL", (world: DetectionWorld) => world.registry.release({ containerId: "c-a", ifName: "eth0" })],
    ["GC", (world: DetectionWorld) => world.registry.releaseOthers("net", [], world.clockMs + 1)],
  ])("a %s ends the ADD with code 11: its addresses belong to nobody by now", (_, release) =>
    withDetection([BLUE, SIX], async (world) => {
      once(world, () => release(world));
      await expect(world.add("a", BOTH)).rejects.toMatchObject({
        code: 11,
        message: expect.stringContaining(
          'Address 10.6.0.1 of pool "blue" was released while it was probed on interface "eth0"',
        ),
      });
      expect([await world.states(), world.verified.size]).toEqual([{ Cooling: ["10.6.0.1", "fd00:6::1"] }, 0]);
    }),
  );

  it("a registry that goes away is the error, and the conflict is in the log", () =>
    withDetection([BLUE], async (world) => {
      conflictOn(world, "10.6.0.1");
      once(world, () => world.registry.close());
      await expect(world.add("a", [["blue"]])).rejects.toThrow("The registry is closed");
      expect(world.log.lines).toContain("warn Quarantining an address that another machine answers for failed");
    }));

  it("the same ADD again is answered like the first", () =>
    withDetection([BLUE, SIX], async (world) => {
      const answers: string[][] = [];
      const add = async () => void answers.push((await world.add("a", BOTH)).held.map((each) => formatIp(each.ip)));
      once(world, add);
      await add();
      expect(answers).toEqual([
        ["10.6.0.1", "fd00:6::1"],
        ["10.6.0.1", "fd00:6::1"],
      ]);
      expect(await world.states()).toEqual({ Bound: ["10.6.0.1", "fd00:6::1"] });
    }));
});

it("a machine with ever new MACs is not remembered without end", () =>
  withDetection([WIDE], async (world) => {
    for (let machine = 0; machine < MAX_PROXY_ARP_SUSPECTS + 5; machine++) {
      conflictOn(world, ANY, mac(`02:00:00:00:00:${machine.toString(16).padStart(2, "0")}`));
      for (let number = 0; number < PROXY_ARP_ADDRESSES; number++) {
        await expect(world.add("a", [["wide"]])).rejects.toMatchObject({ code: 104 });
      }
    }
    expect(world.prober.problems).toHaveLength(MAX_PROXY_ARP_SUSPECTS);
    expect(world.prober.problems.at(-1)).toContain("02:00:00:00:00:24");
    expect(await world.states()).toEqual({});
  }));
