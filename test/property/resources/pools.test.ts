import fc from "fast-check";
import { expect, it } from "vitest";
import { type Ip, parseIp } from "../../../host/net/ip.ts";
import { formatPrefix, maskPrefix, parsePrefix, prefixesOverlap } from "../../../host/net/prefix.ts";
import { formatRange, rangeContains } from "../../../host/net/range.ts";
import { checkPools } from "../../../host/resources/check-pools.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { poolShape } from "../../../host/resources/ip-pool-shape.ts";
import { decodeReservedIp } from "../../../host/resources/reserved-ip.ts";

const frame = (kind: string, name: string, spec: object, creationTimestamp?: string) => ({
  apiVersion: "ipam.vendor.io/v1",
  kind,
  metadata: { name, creationTimestamp },
  spec,
});

/** Subnets so close to one another that they often overlap. */
const subnet = fc
  .record({ family: fc.constantFrom("v4", "v6"), low: fc.nat({ max: 7 }), length: fc.integer({ min: 0, max: 3 }) })
  .map(({ family, low, length }) => {
    const text =
      family === "v4" ? `10.0.${low * 32}.0/${16 + length}` : `fd00:${(low * 0x2000).toString(16)}::/${16 + length}`;
    return formatPrefix(maskPrefix(parsePrefix(text) ?? expect.fail(text)));
  });

const pools = fc
  .array(fc.record({ subnet, addressSpace: fc.constantFrom("", "lab"), second: fc.nat({ max: 9 }) }), { maxLength: 12 })
  .map((specs) =>
    specs.map(({ second, ...spec }, index) =>
      decodeIpPool(frame("IPPool", `p${index}`, spec, `2026-01-01T00:00:0${second}Z`), "x"),
    ),
  );

function clash(a: IpPool, b: IpPool): boolean {
  const isEqual = formatPrefix(a.spec.subnet) === formatPrefix(b.spec.subnet);
  return a.spec.addressSpace === b.spec.addressSpace && !isEqual && prefixesOverlap(a.spec.subnet, b.spec.subnet);
}

it("checkPools accepts the same as a comparison of each pool with each accepted one", () => {
  fc.assert(
    fc.property(pools, (some) => {
      const model: IpPool[] = [];
      for (let second = 0; second < 10; second++)
        for (const pool of some.filter(({ created }) => created?.endsWith(`${second}Z`)))
          if (!model.some((other) => clash(pool, other))) model.push(pool);
      const { accepted, refused } = checkPools(some);
      expect(accepted).toEqual(some.filter((pool) => model.includes(pool)));
      expect(refused.size).toBe(some.length - model.length);
    }),
    { numRuns: 1_000 },
  );
});

const octet = fc.nat({ max: 31 });
const text = fc
  .tuple(octet, octet)
  .map(([a, b]) => (a === b ? `10.0.0.${a}` : `10.0.0.${Math.min(a, b)}-10.0.0.${Math.max(a, b)}`));

it("poolShape masks exactly the addresses that may not be handed out, in sorted and disjoint ranges", () => {
  const spec = fc.record({
    gateway: octet,
    reserved: fc.array(text, { minLength: 1, maxLength: 5 }),
    excluded: text,
    ips: text,
  });
  fc.assert(
    fc.property(spec, ({ gateway, reserved, excluded, ips }) => {
      const subnet = "10.0.0.8/29";
      const clip = (some: string) => (/^10\.0\.0\.(8|9|1[0-5])(-10\.0\.0\.(8|9|1[0-5]))?$/.test(some) ? [some] : []);
      const inside = `10.0.0.${8 + (gateway % 8)}`;
      const pool = decodeIpPool(
        frame("IPPool", "p", { subnet, gateway: inside, ips: clip(ips), excludeIPs: clip(excluded) }),
        "x",
      );
      const blocked = decodeReservedIp(frame("ReservedIP", "r", { ips: reserved }), "x");
      const shape = poolShape(pool, [blocked]);
      for (let last = 0; last < 32; last++) {
        const ip: Ip = parseIp(`10.0.0.${last}`) ?? expect.fail("address");
        const never = [8, 15, 8 + (gateway % 8)].includes(last);
        const isMasked =
          never || [...pool.spec.excluded, ...blocked.spec.ranges].some((range) => rangeContains(range, ip));
        const isInside = last >= 8 && last <= 15;
        expect(shape.masked.some((range) => rangeContains(range, ip))).toBe(isMasked && isInside);
      }
      const ends = shape.masked.flatMap(({ first, last }) => [first.value, last.value]);
      expect(ends.every((value, index) => index % 2 === 1 || index === 0 || value > (ends[index - 1] ?? 0n))).toBe(
        true,
      );
      expect(shape.ranges.map(formatRange)).toEqual(clip(ips).length > 0 ? pool.spec.ranges.map(formatRange) : []);
    }),
  );
});
