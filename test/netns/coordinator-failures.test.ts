/**
 * The coordinator's ADD and DEL failing: both namespaces are as they were found, or the rest is told; and the agent
 * killed in them: the request again succeeds, and the last DEL leaves nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFaultCounter, openFaults } from "../../host/lib/fault.ts";
import { gateOrLong } from "../world/long-cases.ts";
import { type Snapshot, snapshot } from "./coordinator-snapshot.ts";
import {
  deleteNamespaces,
  makeNamespaces,
  makeNic,
  type Names,
  type Nic,
  nicOf,
  openWorld,
  removeNic,
  type World,
} from "./coordinator-world.ts";

interface Step {
  readonly nic: Nic;
  readonly conf: object;
}

interface Case {
  readonly name: string;
  /** The first NIC of an overlay pod, which is not the coordinator's. */
  readonly overlay?: Nic;
  /** Done before, without faults. */
  readonly before: readonly Step[];
  readonly step: Step;
  /** Whether the agent is killed, too. */
  readonly isCut?: boolean;
}

const services = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"], hijackCIDR: ["169.254.20.10"] };
const eth0: Step = { nic: nicOf("eth0", 6), conf: services };
const net1 = nicOf("net1", 7);

const cases: Case[] = [
  {
    name: "a dual-stack first NIC",
    before: [],
    step: { nic: eth0.nic, conf: { ...services, podMACPrefix: "0a:1b" } },
    isCut: true,
  },
  { name: "a second NIC", before: [eth0], step: { nic: net1, conf: services } },
  {
    name: "a second NIC that takes the default route",
    before: [eth0],
    step: { nic: net1, conf: { podDefaultRouteNic: "net1", hostRuleTable: 1000 } },
    isCut: true,
  },
  {
    name: "a third NIC that gives the default route back",
    before: [eth0, { nic: net1, conf: { podDefaultRouteNic: "net1" } }],
    step: { nic: nicOf("net2", 8, { gateway: false, families: [4] }), conf: { podDefaultRouteNic: "eth0" } },
  },
  {
    name: "a second NIC over a ptp overlay",
    overlay: nicOf("eth0", 244, { kind: "ptp" }),
    before: [],
    step: { nic: net1, conf: services },
  },
  {
    name: "a second NIC over a bridged overlay that takes the default route",
    overlay: nicOf("eth0", 244, { kind: "bridge" }),
    before: [],
    step: { nic: net1, conf: { ...services, podDefaultRouteNic: "net1" } },
    isCut: true,
  },
];

let names: Names;
let world: World;

async function failureOf(work: Promise<void>): Promise<Error | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/**
 * Fails at operation 1, 1 + `STRIDE`, …, and sees that nothing is left behind, until the request succeeds. Returns how
 * many operations there were, at most.
 */
async function failEverywhere(request: () => Promise<void>, STRIDE: number): Promise<number> {
  const found = await snapshot(names);
  for (let number = 1; ; number += STRIDE) {
    world.setFaults(openFaults({ action: "fail", number, point: "kernel.apply" }, createFaultCounter()));
    const failure = await failureOf(request());
    world.setFaults(() => {});
    if (failure === undefined) return number - 1;
    expect(failure.message).toContain(`failed: Effect ${number} (kernel.apply)`);
    expect(failure.message).not.toContain("could not be undone");
    expect(await snapshot(names), failure.message).toEqual(found);
  }
}

/**
 * Does the work of an agent until it is killed: all before the operation of this number, and nothing is taken back.
 * Returns whether it was killed.
 */
async function cutOff(number: number, request: () => Promise<void>): Promise<boolean> {
  let left = number;
  world.setFaults((point) => {
    if (point === "kernel.undo" || --left === 0) throw new Error("cut off");
  });
  const failure = await failureOf(request());
  world.setFaults(() => {});
  if (failure !== undefined) expect(failure.message).toContain("failed: cut off");
  return failure !== undefined;
}

/** Operation 1, 1 + `STRIDE`, …; it is odd, since every other ADD that is cut off is finished. */
const STRIDE = gateOrLong(9, 1);
/** All operations, one after the other, on a machine that has much else to do. */
const WALK_MS = 200_000;

beforeAll(async () => {
  names = makeNamespaces("bcf");
  world = await openWorld(names);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  deleteNamespaces(names);
});

describe.each(cases)("$name", ({ overlay, before, step: { nic, conf }, isCut = false }) => {
  /** The DEL of a pod's only NIC is one operation. */
  const least = before.length === 0 && overlay === undefined ? 1 : 2;
  const attachAndCheck = async (): Promise<void> => {
    await world.add(nic, conf);
    await world.check(nic, conf);
  };

  beforeAll(async () => {
    if (overlay !== undefined) makeNic(names, overlay);
    for (const each of before) {
      makeNic(names, each.nic);
      await world.add(each.nic, each.conf);
    }
  });

  afterAll(async () => {
    for (const each of before.toReversed()) {
      await world.del(each.nic, each.conf);
      removeNic(names, each.nic);
    }
    if (overlay !== undefined) removeNic(names, overlay);
  });

  describe("a failure", () => {
    beforeAll(() => makeNic(names, nic));

    afterAll(async () => {
      world.setFaults(() => {});
      await world.del(nic, conf);
      removeNic(names, nic);
    });

    it("of an ADD leaves everything as it was", async () => {
      expect(await failEverywhere(() => world.add(nic, conf), STRIDE)).toBeGreaterThan(10);
      await world.check(nic, conf);
    });

    it("of an ADD's undo reports the objects that are left, and the next ADD succeeds", async () => {
      await world.del(nic, conf);
      let left = 7;
      world.setFaults((point) => {
        left -= 1;
        if (point === "kernel.apply" && left === 0) throw new Error("enough");
        if (point === "kernel.undo" && left === -1) throw new Error("no way back");
      });
      const failure = await failureOf(world.add(nic, conf));
      expect(failure?.message).toMatch(/" failed: enough; could not be undone: ".*": no way back$/);
      world.setFaults(() => {});
      await attachAndCheck();
    });

    it("of a DEL leaves everything as it was, and the next DEL finishes it", async () => {
      expect(await failEverywhere(() => world.del(nic, conf), STRIDE)).toBeGreaterThanOrEqual(least);
    });
  });

  if (isCut)
    describe("cut off", () => {
      let found: Snapshot;

      /** One life of the NIC: made, attached or nearly so, detached, removed. */
      async function live(work: () => Promise<boolean>): Promise<boolean> {
        makeNic(names, nic);
        const goesOn = await work();
        await world.del(nic, conf);
        removeNic(names, nic);
        return goesOn;
      }

      beforeAll(async () => {
        await live(() => attachAndCheck().then(() => true));
        found = await snapshot(names);
      });

      it("an ADD is finished by the next ADD, or taken away by a DEL", { timeout: WALK_MS }, async () => {
        let number = 1;
        const cut = async (): Promise<boolean> => {
          const isReached = await cutOff(number, () => world.add(nic, conf));
          if (number % 2 === 0) await attachAndCheck();
          return isReached;
        };
        for (; await live(cut); number += STRIDE) expect(await snapshot(names), `cut off at ${number}`).toEqual(found);
        expect(number).toBeGreaterThan(15);
      });

      it("a DEL is finished by the next one", { timeout: WALK_MS }, async () => {
        let number = 1;
        const cut = () => attachAndCheck().then(() => cutOff(number, () => world.del(nic, conf)));
        for (; await live(cut); number += STRIDE) expect(await snapshot(names), `cut off at ${number}`).toEqual(found);
        expect(number).toBeGreaterThan(least);
      });
    });
});
