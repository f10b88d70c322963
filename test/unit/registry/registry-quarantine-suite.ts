/** Duties of every registry about addresses that another machine answers for; part of registry-suite.ts. */

import { describe, expect, it } from "vitest";
import type { Proposal } from "../../../host/ipam/pick.ts";
import { formatIp } from "../../../host/net/ip.ts";
import {
  type Allocation,
  type Claim,
  type Quarantine,
  type Registry,
  UNATTACHED_MS,
} from "../../../host/registry/registry.ts";
import { claim, proposal } from "../../world/subjects.ts";
import { ip, mac, RIVAL } from "../../world/values.ts";
import { bound, COOLDOWN_MS, cooled, held, type SuiteWorld, spanOfTen, TWO_NICS } from "./registry-suite.ts";

export const CONFLICT: Quarantine = { reason: "Conflict", mac: RIVAL, parent: "uplink", nextProbeAtMs: 5 };

/** Claims, and gives the one address that was bound. */
export const bind = async (registry: Registry, given: Claim): Promise<Allocation> =>
  (await bound(registry, given)).held[0] ?? expect.fail("nothing is held");

/** Claims the address for `owner` and quarantines it. */
async function quarantine(registry: Registry, address: string, options: Partial<Proposal & Quarantine> = {}) {
  const { mac: foreign = RIVAL, parent = "uplink", nextProbeAtMs = 5, ...proposed } = options;
  const row = await bind(registry, claim(`of-${address}`, [proposal(address, proposed)]));
  const found = await registry.quarantine(row, { reason: "Conflict", mac: foreign, parent, nextProbeAtMs });
  return found ?? expect.fail("the row was changed");
}

export function describeQuarantine(
  name: string,
  withWorld: (test: (world: SuiteWorld) => Promise<void>) => Promise<void>,
) {
  const check = (what: string, test: (world: SuiteWorld) => Promise<void>) => it(what, () => withWorld(test));

  describe(`${name}: quarantine`, () => {
    check("conflict: keeps the reason, the machine, the link and the time, and forgets the owner", async (world) => {
      const row = await bind(world.registry, claim("a", [proposal("10.0.0.1")], { netns: "/run/a", mac: RIVAL }));
      world.advance(7);
      await world.registry.quarantine(row, CONFLICT);
      const found = await world.registry.findAddress("", ip("10.0.0.1"));
      expect(found).toMatchObject({
        ...{ state: "Quarantined", quarantine: CONFLICT, pool: "blue", sinceMs: world.nowMs() },
        ...{ owner: "", containerId: "", ifName: "", pod: "", namespace: "", network: "" },
      });
      expect([found?.netns, found?.mac]).toEqual([undefined, undefined]);
    });

    check("conflict: a DEL after the conflict leaves it", async ({ registry, advance, freed }) => {
      await quarantine(registry, "10.0.0.1");
      expect(await registry.release({ containerId: "c-of-10.0.0.1", ifName: "eth0" })).toEqual([]);
      advance(COOLDOWN_MS);
      await registry.expire();
      expect(freed).toEqual([]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Quarantined" });
    });

    check("node-lost: bound in doubt: trusted when it was asked for, else in quarantine", async ({ registry }) => {
      const inDoubt = (of: string, at: string) => bind(registry, claim(of, [proposal(at, { needsProbe: true })]));
      const row = await inDoubt("a", "10.0.0.1");
      expect([row.quarantine?.parent, (await registry.endQuarantine(row))?.quarantine]).toEqual(["", undefined]);
      await inDoubt("b", "10.0.0.2");
      await registry.release({ containerId: "c-b", ifName: "eth0" });
      expect(await registry.findAddress("", ip("10.0.0.2"))).toMatchObject({ state: "Quarantined" });
    });

    check("conflict: neither undo nor the end of what was never attached takes it", async (world) => {
      const { registry } = world;
      const { created } = await bound(registry, claim("a", [proposal("10.0.0.1")]));
      for (const each of created) await registry.quarantine(each, CONFLICT);
      await registry.undo(created);
      world.advance(UNATTACHED_MS + 1);
      await registry.expire();
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Quarantined" });
    });

    check("conflict: the same owner's next claim does not get it back", async ({ registry }) => {
      await quarantine(registry, "10.0.0.1");
      const again = await registry.claim(claim("of-10.0.0.1", [proposal("10.0.0.2")]));
      expect(held(again)).toEqual(["10.0.0.2"]);
      const plain = await registry.claim(claim("b", [proposal("10.0.0.1")]));
      expect(plain).toMatchObject({ kind: "taken", by: [{ state: "Quarantined" }] });
    });

    check("leaves a row that was written since", async ({ registry }) => {
      const row = await bind(registry, claim("a", [proposal("10.0.0.1")]));
      await registry.claim(claim("a", [], { containerId: "second" }));
      expect(await registry.quarantine(row, CONFLICT)).toBeUndefined();
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound", containerId: "second" });
    });

    check("undo: takes back what was claimed with it, in one write", async ({ registry, freed }) => {
      const { held, created } = await bound(registry, claim("a", TWO_NICS));
      await registry.quarantine(held[0] ?? expect.fail(), CONFLICT, created);
      expect(freed).toEqual(["10.0.0.2"]);
      expect(await registry.list(undefined, 9)).toMatchObject([{ state: "Quarantined" }]);
    });

    check("leaves what was claimed with it if that was written since", async ({ registry, freed }) => {
      const { held, created } = await bound(registry, claim("a", TWO_NICS));
      await registry.claim(claim("a", [], { containerId: "second" }));
      expect(await registry.quarantine(held[0] ?? expect.fail(), CONFLICT, created)).toBeUndefined();
      expect(freed).toEqual([]);
    });

    check("is for Bound rows: a cooling address is on no NIC", async ({ registry }) => {
      expect(await registry.quarantine(await cooled(registry), CONFLICT)).toBeUndefined();
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Cooling" });
    });

    check("is in use for the address book, and counted", async ({ registry }) => {
      await quarantine(registry, "10.0.0.1");
      expect([...(await registry.readUsed(spanOfTen()))]).toEqual([10, 0, 0, 1]);
      expect(await registry.countUsage()).toEqual([{ pool: "blue", state: "Quarantined", count: 1 }]);
    });

    check("is found by time, pool, machine and place", async ({ registry, advance, nowMs }) => {
      const other = mac("02:00:00:00:00:02");
      await quarantine(registry, "10.0.0.1", { nextProbeAtMs: 30 });
      await quarantine(registry, "10.0.0.2", { nextProbeAtMs: 10, mac: other });
      advance(5);
      await quarantine(registry, "10.0.0.3", { nextProbeAtMs: 20, pool: "green" });
      const find = async (query: object) =>
        (await registry.findQuarantined({ limit: 9, ...query })).map((each) => formatIp(each.ip));
      const two = { ...spanOfTen(), last: ip("10.0.0.2").value };
      expect(await find({})).toEqual(["10.0.0.2", "10.0.0.3", "10.0.0.1"]);
      expect(await find({ limit: 1 })).toEqual(["10.0.0.2"]);
      expect(await find({ dueMs: 20 })).toEqual(["10.0.0.2", "10.0.0.3"]);
      expect(await find({ untilMs: nowMs() - 5 })).toEqual(["10.0.0.2", "10.0.0.1"]);
      expect(await find({ pool: "green" })).toEqual(["10.0.0.3"]);
      expect(await find({ mac: RIVAL })).toEqual(["10.0.0.3", "10.0.0.1"]);
      expect(await find({ spans: [two] })).toEqual(["10.0.0.2", "10.0.0.1"]);
      expect(await find({ spans: [{ ...two, space: "lab" }] })).toEqual([]);
    });

    check("a postponed probe changes the time and nothing else", async ({ registry, advance }) => {
      const found = await quarantine(registry, "10.0.0.1");
      advance(3);
      await registry.quarantine(found, { ...CONFLICT, nextProbeAtMs: 99 });
      await registry.quarantine(found, { ...CONFLICT, nextProbeAtMs: 1_000 });
      const later = await registry.findAddress("", ip("10.0.0.1"));
      expect(later).toEqual({ ...found, version: later?.version, quarantine: { ...CONFLICT, nextProbeAtMs: 99 } });
    });

    check("an answer to a probe says which machine has it", async ({ registry }) => {
      const found = await quarantine(registry, "10.0.0.1");
      const other = mac("02:00:00:00:00:99");
      await registry.quarantine(found, { ...CONFLICT, mac: other, nextProbeAtMs: 99 });
      const later = await registry.findAddress("", ip("10.0.0.1"));
      expect(later?.quarantine).toEqual({ ...CONFLICT, mac: other, nextProbeAtMs: 99 });
    });

    check("its end frees the address, unless the row was written since", async ({ registry, freed }) => {
      const found = await quarantine(registry, "10.0.0.1");
      await registry.quarantine(found, { ...CONFLICT, nextProbeAtMs: 99 });
      await registry.endQuarantine(found);
      expect(freed).toEqual([]);
      const [later] = await registry.findQuarantined({ limit: 1 });
      await registry.endQuarantine(later ?? expect.fail("it is gone"));
      expect(freed).toEqual(["10.0.0.1"]);
    });
  });

  describe(`${name}: an address out of quarantine`, () => {
    const takeOver = async (registry: Registry): Promise<Allocation> => {
      const { version } = await quarantine(registry, "10.0.0.1");
      return bind(registry, claim("b", [proposal("10.0.0.1", { replaces: version })]));
    };

    check("conflict: is bound by compare-and-swap, and says that it is not to be trusted", async ({ registry }) => {
      const row = await takeOver(registry);
      expect(row).toMatchObject({ state: "Bound", owner: "b", quarantine: CONFLICT });
      const again = await registry.claim(claim("b", []));
      expect(again).toMatchObject({ held: [{ state: "Bound", quarantine: CONFLICT }], previous: [] });
    });

    check("is Bound like any other once it was found silent", async ({ registry }) => {
      const row = await takeOver(registry);
      const trusted = await registry.endQuarantine(row);
      expect(trusted).toMatchObject({ state: "Bound", owner: "b", quarantine: undefined });
      expect(await registry.endQuarantine(row)).toBeUndefined();
      await registry.release({ containerId: "c-b", ifName: "eth0" });
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Cooling" });
    });

    check("conflict: an unverified address goes back to quarantine with the DEL", async ({ registry, nowMs }) => {
      await takeOver(registry);
      await registry.release({ containerId: "c-b", ifName: "eth0" });
      const back = { state: "Quarantined", owner: "", quarantine: { ...CONFLICT, nextProbeAtMs: nowMs() } };
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject(back);
    });

    check("conflict: an unverified address goes back with the undone ADD", async ({ registry, freed }) => {
      await registry.undo([await takeOver(registry)]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Quarantined", owner: "" });
      expect(freed).toEqual([]);
    });

    check(
      "that was trusted and is undone is free, also if it was cooling before the conflict",
      async ({ registry, freed }) => {
        const again = proposal("10.0.0.1", { replaces: (await cooled(registry)).version });
        const found = await registry.quarantine(await bind(registry, claim("b", [again])), CONFLICT);
        const taken = await bind(registry, claim("c", [proposal("10.0.0.1", { replaces: found?.version ?? 0 })]));
        const trusted = await registry.endQuarantine(taken);
        await registry.undo([trusted ?? expect.fail("the row was changed")]);
        expect(freed).toEqual(["10.0.0.1"]);
      },
    );

    check("that was trusted and conflicts is quarantined like any other", async ({ registry }) => {
      const row = await takeOver(registry);
      const again = { ...CONFLICT, parent: "other" };
      expect(await registry.quarantine(row, again)).toMatchObject({ state: "Quarantined", quarantine: again });
    });
  });

  describe(`${name}: the rows that an attachment replaces`, () => {
    const given = { netns: "/run/first", mac: RIVAL };

    check("conflict: a new sandbox learns where the old one is", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], given));
      const next = { containerId: "second", netns: "/run/second" };
      const outcome = await registry.claim(claim("a", [], next));
      expect(outcome).toMatchObject({ held: [next], previous: [{ ...given, containerId: "c-a" }] });
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ ...next, mac: undefined });
    });

    check("conflict: so does who takes over what cools", async ({ registry }) => {
      const { version } = await cooled(registry, given);
      const wish = [proposal("10.0.0.1", { replaces: version })];
      expect(await registry.claim(claim("b", wish))).toMatchObject({ previous: [{ ...given, owner: "a" }] });
    });

    check("nothing, when it is new, the same, or another NIC's", async ({ registry }) => {
      const both = [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })];
      expect(await registry.claim(claim("a", both, given))).toMatchObject({ previous: [] });
      expect(await registry.claim(claim("a", [], given))).toMatchObject({ previous: [] });
      expect(await registry.claim(claim("a", [], { ...given, ifName: "net1" }))).toMatchObject({ previous: [] });
      expect(await registry.findAddress("", ip("10.0.1.1"))).toMatchObject(given);
    });
  });

  describe(`${name}: a claim that completes a NIC`, () => {
    check("claims the family that is missing and keeps the other", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1"), proposal("fd00::1", { prefixLength: 64 })]));
      const four = await registry.findAddress("", ip("10.0.0.1"));
      if (four !== undefined) await registry.quarantine(four, CONFLICT);
      const proposals = [proposal("10.0.0.2"), proposal("fd00::2", { prefixLength: 64 })];
      expect(held(await registry.claim(claim("a", proposals, { partial: true })))).toEqual(["fd00::1", "10.0.0.2"]);
    });

    check("writes nothing to what the NIC has: undo still takes it back", async ({ registry, freed }) => {
      const { created } = await bound(registry, claim("a", [proposal("10.0.0.1")]));
      await registry.claim(claim("a", [proposal("fd00::1")], { partial: true }));
      await registry.undo(created);
      expect(freed).toEqual(["10.0.0.1"]);
    });

    check("claims nothing when another sandbox has the NIC's addresses by now", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const late = claim("a", [proposal("fd00::1")], { containerId: "late", partial: true });
      expect(await registry.claim(late)).toMatchObject({ kind: "taken", by: [{ containerId: "c-a" }] });
      expect(await registry.findAddress("", ip("fd00::1"))).toBeUndefined();
    });
  });
}
