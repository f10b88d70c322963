/** The agent killed at operations of the coordinator: the request again succeeds, and the last DEL leaves nothing. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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

interface Case {
  readonly name: string;
  readonly prefix: string;
  readonly nics: readonly Nic[];
  /** Configuration of the NIC at the same place; a first NIC of an overlay network has none. */
  readonly confs: readonly (object | undefined)[];
}

const services = { serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };

const cases: Case[] = [
  { name: "an underlay pod", prefix: "bck", nics: [nicOf("eth0", 6)], confs: [services] },
  {
    name: "a second NIC that takes the default route",
    prefix: "bckm",
    nics: [nicOf("eth0", 6), nicOf("net1", 7)],
    confs: [services, { ...services, podDefaultRouteNic: "net1" }],
  },
  {
    name: "a second NIC over an overlay",
    prefix: "bcko",
    nics: [nicOf("eth0", 244, { kind: "bridge" }), nicOf("net1", 7)],
    confs: [undefined, { ...services, podDefaultRouteNic: "net1" }],
  },
];

/** All operations, one after the other, on a machine that has much else to do. */
const WALK_MS = 200_000;
/** Does the work of an agent until it is killed: all before the operation of this number, and nothing is taken back. */
async function cutOff(world: World, number: number, request: () => Promise<void>): Promise<boolean> {
  let left = number;
  world.setFaults((point) => {
    if (point === "kernel.undo" || --left === 0) throw new Error("cut off");
  });
  const failure: unknown = await request().then(
    () => undefined,
    (error: unknown) => error,
  );
  world.setFaults(() => {});
  if (failure !== undefined) expect(String(failure)).toContain("failed: cut off");
  return failure !== undefined;
}

/** Cut off at operation 1, 1 + `STRIDE`, …; `STRIDE` is odd, since every other ADD is finished. */
const STRIDE = gateOrLong(9, 1);

describe("kill", () => {
  describe.each(cases)("$name", ({ prefix, nics, confs }) => {
    const last = nics.at(-1) ?? expect.unreachable();
    const conf = confs.at(-1) ?? expect.unreachable();
    let names: Names;
    let world: World;
    let found: Snapshot;

    /** One life of the last NIC: made, attached or nearly so, detached, removed. */
    async function live(work: () => Promise<boolean>): Promise<boolean> {
      makeNic(names, last);
      const goesOn = await work();
      await world.del(last, conf);
      removeNic(names, last);
      return goesOn;
    }

    async function attachAndCheck(): Promise<void> {
      await world.add(last, conf);
      await world.check(last, conf);
    }

    beforeAll(async () => {
      names = makeNamespaces(prefix);
      world = await openWorld(names);
      for (const [at, each] of nics.slice(0, -1).entries()) {
        makeNic(names, each);
        const own = confs[at];
        if (own !== undefined) await world.add(each, own);
      }
      await live(async () => {
        await attachAndCheck();
        return true;
      });
      found = await snapshot(names);
    });

    afterAll(async () => {
      await world[Symbol.asyncDispose]();
      deleteNamespaces(names);
    });

    it("an ADD cut off is finished by the next ADD, or taken away by a DEL", { timeout: WALK_MS }, async () => {
      let number = 1;
      const cut = async (): Promise<boolean> => {
        const isCut = await cutOff(world, number, () => world.add(last, conf));
        if (number % 2 === 0) await attachAndCheck();
        return isCut;
      };
      for (; await live(cut); number += STRIDE) expect(await snapshot(names), `cut off at ${number}`).toEqual(found);
      expect(number).toBeGreaterThan(15);
    });

    it("a DEL cut off is finished by the next one", { timeout: WALK_MS }, async () => {
      let number = 1;
      const cut = async (): Promise<boolean> => {
        await attachAndCheck();
        return cutOff(world, number, () => world.del(last, conf));
      };
      for (; await live(cut); number += STRIDE) expect(await snapshot(names), `cut off at ${number}`).toEqual(found);
      expect(number).toBeGreaterThan(nics.length === 1 ? 1 : 2); // the DEL of a pod's only NIC is one operation
    });
  });
});
