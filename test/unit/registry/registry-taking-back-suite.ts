/**
 * Duties of every registry about claims that come to nothing, and about NICs that come late; part of
 * registry-suite.ts.
 */

import { describe, expect, it } from "vitest";
import { claim, proposal } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";
import { bound, COOLDOWN_MS, cooled, held, type SuiteWorld, spanOfTen } from "./registry-suite.ts";

export function describeTakingBack(
  name: string,
  withWorld: (test: (world: SuiteWorld) => Promise<void>) => Promise<void>,
) {
  const check = (what: string, test: (world: SuiteWorld) => Promise<void>) => it(what, () => withWorld(test));

  describe(`${name}: undo`, () => {
    check("undo: frees what was not answered, without a cooldown, once", async ({ registry, freed }) => {
      const { created } = await bound(registry, claim("a", [proposal("10.0.0.1")]));
      await registry.undo(created);
      expect(freed).toEqual(["10.0.0.1"]);
      // A later holder of the freed address has nothing to do with it.
      await registry.claim(claim("b", [proposal("10.0.0.1")]));
      await registry.undo(created);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ owner: "b" });
    });

    check("leaves a row that was written since", async ({ registry }) => {
      const { created } = await bound(registry, claim("a", [proposal("10.0.0.1")]));
      await registry.claim(claim("a", [], { containerId: "second" }));
      await registry.undo(created);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound", containerId: "second" });
    });

    check("leaves an address to a repeated ADD of the same attachment", async ({ registry, freed }) => {
      const { created } = await bound(registry, claim("a", [proposal("10.0.0.1")]));
      expect(held(await registry.claim(claim("a", [])))).toEqual(["10.0.0.1"]);
      await registry.undo(created);
      expect(freed).toEqual([]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound" });
    });

    check("of an address that was cooling lets it cool on", async ({ registry, freed, advance, nowMs }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const [released] = await registry.release({ containerId: "c-a", ifName: "eth0" });
      advance(COOLDOWN_MS - 10);
      const [cooling] = await registry.findCooling([spanOfTen()], 1);
      const taken = await bound(registry, claim("b", [proposal("10.0.0.1", { replaces: cooling?.version ?? 0 })]));
      await registry.undo(taken.created);
      expect([released?.owner, freed]).toEqual(["a", []]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Cooling", sinceMs: nowMs() });
      advance(10);
      await registry.expire();
      expect(freed).toEqual(["10.0.0.1"]);
    });
  });

  describe(`${name}: NICs that come late`, () => {
    check("what was never attached gives way to the address that its own NIC asks for", async ({ registry, freed }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })]));
      const requested = proposal("10.0.1.7", { ifName: "net1", requested: true });
      await registry.claim(claim("b", [{ ...requested, ifName: "eth0" }]));
      const options = { ifName: "net1" };
      const taken = await registry.claim(claim("a", [requested], options));
      expect(taken).toMatchObject({ kind: "taken", by: [{ owner: "b" }] });
      expect(freed).toEqual([]);
      const free = { ...requested, ip: ip("10.0.1.8") };
      expect(held(await registry.claim(claim("a", [free], options)))).toEqual(["10.0.1.8"]);
      expect(freed).toEqual(["10.0.1.1"]);
    });

    check("a cooling address goes to one NIC only, whatever is proposed", async ({ registry }) => {
      const again = proposal("10.0.0.1", { replaces: (await cooled(registry)).version });
      await expect(registry.claim(claim("b", [again, { ...again, ifName: "net1" }]))).rejects.toThrow("twice");
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Cooling", owner: "a" });
    });

    check("an attached address gives way to nothing", async ({ registry, freed }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const outcome = await registry.claim(claim("a", [proposal("10.0.0.2", { requested: true })]));
      expect([held(outcome), freed]).toEqual([["10.0.0.1"], []]);
    });

    check("a NIC that has none yet gets one with another NIC's repeated ADD", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const both = [proposal("10.0.0.9"), proposal("10.0.1.1", { ifName: "net1" })];
      expect(held(await registry.claim(claim("a", both)))).toEqual(["10.0.0.1"]);
      expect(await registry.findAddress("", ip("10.0.0.9"))).toBeUndefined();
      expect(await registry.findAddress("", ip("10.0.1.1"))).toMatchObject({ ifName: "net1", containerId: "" });
    });
  });
}
