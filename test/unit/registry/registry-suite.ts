/** Duties of every registry, whatever stores it. Each implementation runs this suite with its own `open`. */
import { describe, expect, it } from "vitest";
import { formatIp } from "../../../host/net/ip.ts";
import {
  type Allocation,
  type Claim,
  type ClaimOutcome,
  type Registry,
  UNATTACHED_MS,
} from "../../../host/registry/registry.ts";
import { claim, proposal } from "../../world/subjects.ts";
import { ip } from "../../world/values.ts";

export interface SuiteWorld {
  readonly registry: Registry;
  /** Addresses reported as free so far, as text. */
  readonly freed: string[];
  /** Moves the clock of the registry. */
  advance(milliseconds: number): void;
  nowMs(): number;
}

export const COOLDOWN_MS = 30_000;

/** 10.0.0.0/8 of the default space. */
export function spanOfTen() {
  return { space: "", family: 4 as const, first: ip("10.0.0.0").value, last: ip("10.255.255.255").value };
}

export function held(outcome: ClaimOutcome): string[] {
  if (outcome.kind !== "bound") throw new Error(`The claim was answered with ${outcome.kind}`);
  return outcome.held.map((allocation) => formatIp(allocation.ip));
}

/** Claims a free address. */
export async function bound(registry: Registry, given: Claim): Promise<Extract<ClaimOutcome, { kind: "bound" }>> {
  const outcome = await registry.claim(given);
  return outcome.kind === "bound" ? outcome : expect.fail(`answered with ${outcome.kind}`);
}

/** The address 10.0.0.1 of owner a, which has released it. */
export async function cooled(registry: Registry, options: Partial<Claim> = {}): Promise<Allocation> {
  await registry.claim(claim("a", [proposal("10.0.0.1")], options));
  await registry.release({ containerId: "c-a", ifName: "eth0" });
  const [cooling] = await registry.findCooling([spanOfTen()], 1);
  return cooling ?? expect.fail("nothing cools");
}

export const TWO_NICS = [proposal("10.0.0.1"), proposal("10.0.0.2", { ifName: "net1" })];

export function describeRegistry(
  name: string,
  withWorld: (test: (world: SuiteWorld) => Promise<void>) => Promise<void>,
) {
  const check = (what: string, test: (world: SuiteWorld) => Promise<void>) => it(what, () => withWorld(test));

  describe(`${name}: claim`, () => {
    check("binds free addresses of both families", async ({ registry }) => {
      const both = [proposal("10.0.0.1"), proposal("fd00::1", { prefixLength: 64 })];
      expect(held(await registry.claim(claim("a", both)))).toEqual(["10.0.0.1", "fd00::1"]);
      const [first] = await registry.findAttachment({ containerId: "c-a", ifName: "eth0" });
      expect(first).toMatchObject({ pool: "blue", state: "Bound", owner: "a", namespace: "shop", prefixLength: 24 });
    });

    check("gives a NIC that has one family the other one, and no second one of the first", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("fd00::1")]));
      const proposals = [proposal("10.0.0.1"), proposal("fd00::2")];
      expect(held(await registry.claim(claim("a", proposals)))).toEqual(["fd00::1", "10.0.0.1"]);
      const next = await registry.claim(claim("a", proposals, { containerId: "next" }));
      expect(held(next)).toEqual(["10.0.0.1", "fd00::1"]);
      expect(await registry.findAttachment({ containerId: "next", ifName: "eth0" })).toHaveLength(2);
      expect(await registry.findAddress("", ip("fd00::2"))).toBeUndefined();
    });

    check("offers the address of the missing family that still cools for the NIC", async ({ registry }) => {
      await cooled(registry);
      await registry.claim(claim("a", [proposal("fd00::1")], { skipOwnCooling: true }));
      const both = [proposal("10.0.0.2"), proposal("fd00::1")];
      const outcome = await registry.claim(claim("a", both));
      expect(outcome).toMatchObject({ kind: "cooling", own: [{ ip: ip("10.0.0.1") }] });
    });

    check("binds nothing when one of the addresses is taken", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("fd00::1")]));
      const outcome = await registry.claim(claim("b", [proposal("10.0.0.1"), proposal("fd00::1")]));
      expect(outcome).toMatchObject({ kind: "taken", by: [{ owner: "a" }] });
      expect(await registry.findAddress("", ip("10.0.0.1"))).toBeUndefined();
    });

    check("gives the same attachment the same address again, and a new sandbox of the pod", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const again = await registry.claim(claim("a", [proposal("10.0.0.2")]));
      expect(held(again)).toEqual(["10.0.0.1"]);
      expect(again).toMatchObject({ created: [] });
      expect(await registry.findAddress("", ip("10.0.0.2"))).toBeUndefined();
      const next = await registry.claim(claim("a", [proposal("10.0.0.9")], { containerId: "second" }));
      expect(held(next)).toEqual(["10.0.0.1"]);
    });

    check("of two claims of one attachment at once, both get one address", async ({ registry }) => {
      const outcomes = await Promise.all([
        registry.claim(claim("a", [proposal("10.0.0.1")])),
        registry.claim(claim("a", [proposal("10.0.0.2")])),
      ]);
      expect(new Set(outcomes.flatMap(held))).toEqual(new Set(["10.0.0.1"]));
      expect(await registry.list(undefined, 10)).toHaveLength(1);
    });

    check("of 40 claims of one address at once, one wins", async ({ registry }) => {
      const owners = Array.from({ length: 40 }, (_, index) => `o${index}`);
      const outcomes = await Promise.all(owners.map((owner) => registry.claim(claim(owner, [proposal("10.0.0.1")]))));
      expect(outcomes.filter(({ kind }) => kind === "bound")).toHaveLength(1);
    });

    check("keeps one address in two address spaces apart", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      expect(held(await registry.claim(claim("b", [proposal("10.0.0.1", { space: "lab" })])))).toEqual(["10.0.0.1"]);
    });

    check("claims all NICs of a pod at once, the second is attached by its own ADD", async ({ registry }) => {
      const both = [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })];
      expect(held(await registry.claim(claim("a", both)))).toEqual(["10.0.0.1"]);
      const second = await registry.claim(claim("a", [proposal("10.0.1.9", { ifName: "net1" })], { ifName: "net1" }));
      expect(held(second)).toEqual(["10.0.1.1"]);
      expect(second).toMatchObject({ created: [] });
    });
  });

  describe(`${name}: one container and interface in two networks`, () => {
    const [lan, wan] = [{ network: "lan" }, { network: "wan" }];
    const attachment = { containerId: "c-a", ifName: "eth0" };

    check("are two attachments, each with addresses of its own", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], lan));
      const other = await registry.claim(claim("a", [proposal("10.0.1.1")], wan));
      expect(other).toMatchObject({ kind: "bound", previous: [], held: [{ ip: ip("10.0.1.1"), network: "wan" }] });
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound", network: "lan" });
      expect(held(await registry.claim(claim("a", [proposal("10.0.0.2")], lan)))).toEqual(["10.0.0.1"]);
      expect(held(await registry.claim(claim("a", [proposal("10.0.0.2")], wan)))).toEqual(["10.0.1.1"]);
      expect(await registry.findAttachment(attachment)).toHaveLength(2);
      expect(await registry.findAttachment({ ...attachment, ...wan })).toMatchObject([{ ip: ip("10.0.1.1") }]);
    });

    check("a DEL in one releases nothing of the other", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], lan));
      expect(await registry.release({ ...attachment, ...wan })).toEqual([]);
      await registry.claim(claim("a", [proposal("10.0.1.1")], wan));
      expect(await registry.release({ ...attachment, ...wan })).toMatchObject([{ ip: ip("10.0.1.1") }]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound" });
      expect(await registry.release({ ...attachment, ...lan })).toMatchObject([{ ip: ip("10.0.0.1") }]);
    });

    check("what was claimed ahead is of the network whose ADD attaches it", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], { ...lan, containerId: "" }));
      expect(held(await registry.claim(claim("a", [proposal("10.0.0.2")], wan)))).toEqual(["10.0.0.1"]);
      expect(await registry.findAttachment({ ...attachment, ...wan })).toHaveLength(1);
    });

    check("an adopted address is of any network: for a new sandbox, and for a DEL", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], { network: "" }));
      expect(await registry.findAttachment({ ...attachment, ...lan })).toHaveLength(1);
      expect(await registry.release({ ...attachment, ...lan })).toMatchObject([{ ip: ip("10.0.0.1") }]);
      await registry.claim(claim("b", [proposal("10.0.0.2")], { network: "" }));
      const next = await registry.claim(claim("b", [proposal("10.0.0.9")], { ...wan, containerId: "next" }));
      expect(held(next)).toEqual(["10.0.0.2"]);
    });

    check("a new sandbox keeps the addresses of its own network alone", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], lan));
      const next = { containerId: "next" };
      expect(held(await registry.claim(claim("a", [proposal("10.0.1.1")], { ...wan, ...next })))).toEqual(["10.0.1.1"]);
      expect(held(await registry.claim(claim("a", [proposal("10.0.0.2")], { ...lan, ...next })))).toEqual(["10.0.0.1"]);
    });
  });

  describe(`${name}: release`, () => {
    check("cools, and then frees, an address", async ({ registry, freed, advance }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const released = await registry.release({ containerId: "c-a", ifName: "eth0" });
      expect(released.map(({ pod }) => pod)).toEqual(["a"]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Cooling" });
      advance(COOLDOWN_MS - 1);
      await registry.expire();
      expect(freed).toEqual([]);
      advance(1);
      await registry.expire();
      expect(freed).toEqual(["10.0.0.1"]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toBeUndefined();
    });

    check("late-del: a late DEL of an old sandbox frees nothing of the new one", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")], { containerId: "old" }));
      await registry.claim(claim("a", [proposal("10.0.0.1")], { containerId: "new" }));
      expect(await registry.release({ containerId: "old", ifName: "eth0" })).toEqual([]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound", containerId: "new" });
    });

    check("twice, or of what never was, is nothing", async ({ registry }) => {
      expect(await registry.release({ containerId: "never", ifName: "eth0" })).toEqual([]);
      await cooled(registry);
      expect(await registry.release({ containerId: "c-a", ifName: "eth0" })).toEqual([]);
    });

    check("of one NIC leaves the other NIC alone", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      await registry.claim(claim("a", [proposal("10.0.1.1", { ifName: "net1" })], { ifName: "net1" }));
      await registry.release({ containerId: "c-a", ifName: "eth0" });
      expect(await registry.findAddress("", ip("10.0.1.1"))).toMatchObject({ state: "Bound" });
    });

    check("unattached: with the last NIC go those that were never attached", async ({ registry, freed }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })]));
      await registry.release({ containerId: "c-a", ifName: "eth0" });
      expect(freed).toEqual(["10.0.1.1"]);
    });

    check("unattached: what was never attached goes after a while", async ({ registry, freed, advance }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1"), proposal("10.0.1.1", { ifName: "net1" })]));
      advance(UNATTACHED_MS);
      await registry.expire();
      expect(freed).toEqual([]);
      advance(1);
      await registry.expire();
      expect(freed).toEqual(["10.0.1.1"]);
      expect(await registry.findAddress("", ip("10.0.0.1"))).toMatchObject({ state: "Bound" });
    });
  });

  describe(`${name}: cooling addresses`, () => {
    check("sandbox-restart: the same pod gets its own back", async ({ registry }) => {
      await cooled(registry);
      const outcome = await registry.claim(claim("a", [proposal("10.0.0.2")], { containerId: "next" }));
      if (outcome.kind !== "cooling") throw new Error(`answered with ${outcome.kind}`);
      const own = outcome.own.map(({ version }) => proposal("10.0.0.1", { replaces: version }));
      expect(held(await registry.claim(claim("a", own, { containerId: "next" })))).toEqual(["10.0.0.1"]);
    });

    check("the same pod may forsake its own", async ({ registry }) => {
      await cooled(registry);
      const other = await registry.claim(claim("a", [proposal("10.0.0.2")], { skipOwnCooling: true }));
      expect(held(other)).toEqual(["10.0.0.2"]);
    });

    check("another pod takes over by compare-and-swap alone, once", async ({ registry }) => {
      await registry.claim(claim("a", [proposal("10.0.0.1")]));
      const [released] = await registry.release({ containerId: "c-a", ifName: "eth0" });
      const plain = await registry.claim(claim("b", [proposal("10.0.0.1")]));
      expect(plain).toMatchObject({ kind: "taken", by: [{ state: "Cooling" }] });
      const [cooling] = await registry.findCooling([spanOfTen()], 8);
      if (cooling === undefined || released === undefined) throw new Error("nothing cools");
      expect(cooling.version).toBeGreaterThan(released.version);
      const taking = [proposal("10.0.0.1", { replaces: cooling.version })];
      expect(held(await registry.claim(claim("b", taking)))).toEqual(["10.0.0.1"]);
      expect(await registry.claim(claim("c", taking))).toMatchObject({ kind: "taken", by: [{ owner: "b" }] });
    });

    check("are found longest released first", async ({ registry, advance }) => {
      for (const owner of ["a", "b", "c"]) {
        await registry.claim(claim(owner, [proposal(`10.0.0.${owner.charCodeAt(0)}`)]));
      }
      for (const owner of ["b", "c", "a"]) {
        advance(10);
        await registry.release({ containerId: `c-${owner}`, ifName: "eth0" });
      }
      expect((await registry.findCooling([spanOfTen()], 2)).map(({ owner }) => owner)).toEqual(["b", "c"]);
    });

    check("cool as long as their pool says", async ({ registry, freed, advance }) => {
      registry.setCooldowns({ defaultMs: COOLDOWN_MS, byPool: new Map([["quick", 5]]) });
      await registry.claim(claim("a", [proposal("10.0.0.1", { pool: "quick" })]));
      await registry.release({ containerId: "c-a", ifName: "eth0" });
      advance(5);
      await registry.expire();
      expect(freed).toEqual(["10.0.0.1"]);
    });

    check("cool as their pool says even when that is heard after the DEL", async ({ registry, freed, advance }) => {
      for (const [at, pool] of ["slow", "quick", "blue"].entries()) {
        await registry.claim(claim(pool, [proposal(`10.0.0.${at + 1}`, { pool })]));
        await registry.release({ containerId: `c-${pool}`, ifName: "eth0" });
      }
      advance(5);
      const byPool = new Map(Object.entries({ slow: 3 * COOLDOWN_MS, quick: 5 }));
      registry.setCooldowns({ defaultMs: COOLDOWN_MS, byPool });
      await registry.expire();
      expect(freed).toEqual(["10.0.0.2"]);
      advance(COOLDOWN_MS);
      await registry.expire();
      expect(freed).toEqual(["10.0.0.2", "10.0.0.3"]);
      advance(2 * COOLDOWN_MS);
      await registry.expire();
      expect(freed).toEqual(["10.0.0.2", "10.0.0.3", "10.0.0.1"]);
    });
  });

  describe(`${name}: reading`, () => {
    check("packs the used addresses of a span", async ({ registry }) => {
      for (const last of [3, 1, 2]) await registry.claim(claim(`o${last}`, [proposal(`10.0.0.${last}`)]));
      await registry.claim(claim("six", [proposal("fd00::1")]));
      const packed = await registry.readUsed({ ...spanOfTen(), first: ip("10.0.0.2").value });
      expect([...packed]).toEqual([10, 0, 0, 2, 10, 0, 0, 3]);
    });

    check("lists in pages and counts by pool and state", async ({ registry }) => {
      for (const last of [1, 2, 3]) await registry.claim(claim(`o${last}`, [proposal(`10.0.0.${last}`)]));
      await registry.release({ containerId: "c-o2", ifName: "eth0" });
      const first = await registry.list(undefined, 2);
      const rest = await registry.list({ space: "", ip: ip("10.0.0.2") }, 2);
      expect([...first, ...rest].map((each) => formatIp(each.ip))).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
      expect(await registry.countUsage()).toEqual([
        { pool: "blue", state: "Bound", count: 2 },
        { pool: "blue", state: "Cooling", count: 1 },
      ]);
    });
  });
}
