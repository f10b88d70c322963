/** The coordinator's ADD and DEL failing: both namespaces are as they were found, or the rest is told. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFaultCounter, openFaults } from "../../host/lib/fault.ts";
import { gateOrLong } from "../world/long-cases.ts";
import { snapshot } from "./coordinator-snapshot.ts";
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
}

const services = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"], hijackCIDR: ["169.254.20.10"] };
const eth0: Step = { nic: nicOf("eth0", 6), conf: services };
const net1 = nicOf("net1", 7);
const net2 = nicOf("net2", 8, { gateway: false, families: [4] });

const cases: Case[] = [
  { name: "a dual-stack first NIC", before: [], step: { nic: eth0.nic, conf: { ...services, podMACPrefix: "0a:1b" } } },
  { name: "a second NIC", before: [eth0], step: { nic: net1, conf: services } },
  {
    name: "a second NIC that takes the default route",
    before: [eth0],
    step: { nic: net1, conf: { podDefaultRouteNic: "net1", hostRuleTable: 1000 } },
  },
  {
    name: "a third NIC that gives the default route back",
    before: [eth0, { nic: net1, conf: { podDefaultRouteNic: "net1" } }],
    step: { nic: net2, conf: { podDefaultRouteNic: "eth0" } },
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

/** Fails at operation 1, 1 + `STRIDE`, …. */
const STRIDE = gateOrLong(9, 1);

describe("fail", () => {
  beforeAll(async () => {
    names = makeNamespaces("bcf");
    world = await openWorld(names);
  });

  afterAll(async () => {
    await world[Symbol.asyncDispose]();
    deleteNamespaces(names);
  });

  describe.each(cases)("$name", ({ overlay, before, step }) => {
    const all = [...before, step];

    beforeAll(async () => {
      if (overlay !== undefined) makeNic(names, overlay);
      for (const each of before) {
        makeNic(names, each.nic);
        await world.add(each.nic, each.conf);
      }
      makeNic(names, step.nic);
    });

    afterAll(async () => {
      world.setFaults(() => {});
      for (const each of all.toReversed()) {
        await world.del(each.nic, each.conf);
        removeNic(names, each.nic);
      }
      if (overlay !== undefined) removeNic(names, overlay);
    });

    it("an ADD that fails leaves everything as it was", async () => {
      expect(await failEverywhere(() => world.add(step.nic, step.conf), STRIDE)).toBeGreaterThan(10);
      await world.check(step.nic, step.conf);
    });

    it("an ADD whose undo fails reports what is left, and the next ADD succeeds", async () => {
      await world.del(step.nic, step.conf);
      let left = 7;
      world.setFaults((point) => {
        left -= 1;
        if (point === "kernel.apply" && left === 0) throw new Error("enough");
        if (point === "kernel.undo" && left === -1) throw new Error("no way back");
      });
      const failure = await failureOf(world.add(step.nic, step.conf));
      expect(failure?.message).toMatch(/" failed: enough; could not be undone: ".*": no way back$/);
      world.setFaults(() => {});
      await world.add(step.nic, step.conf);
      await world.check(step.nic, step.conf);
    });

    it("a DEL that fails leaves everything as it was, and the next DEL finishes it", async () => {
      // The DEL of a pod's only NIC is one operation.
      const least = before.length === 0 && overlay === undefined ? 1 : 2;
      expect(await failEverywhere(() => world.del(step.nic, step.conf), STRIDE)).toBeGreaterThanOrEqual(least);
    });
  });
});
