import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CniResult } from "../../../host/cni/result.ts";
import { decodeResult, formatResult } from "../../../host/cni/result-versions.ts";
import { SUPPORTED_VERSIONS } from "../../../host/cni/version.ts";
import { bitsOf, type Family, type Ip } from "../../../host/net/ip.ts";
import type { Prefix } from "../../../host/net/prefix.ts";

const ipOf = (family: Family): fc.Arbitrary<Ip> =>
  fc.bigInt({ min: 0n, max: (1n << BigInt(bitsOf(family))) - 1n }).map((value) => ({ family, value }));
const prefixOf = (family: Family): fc.Arbitrary<Prefix> =>
  fc.record({ ip: ipOf(family), length: fc.integer({ min: 0, max: bitsOf(family) }) });
const family = fc.constantFrom<Family[]>(4, 6);
const nat = fc.nat();
const name = fc.string({ minLength: 1 });
const optional = { requiredKeys: [] };

const anyResult: fc.Arbitrary<CniResult> = fc.record({
  interfaces: fc.array(
    fc.record(
      { name, mac: name, sandbox: name, mtu: fc.nat(), socketPath: name, pciId: name },
      { requiredKeys: ["name"] },
    ),
  ),
  ips: fc.array(
    family.chain((f) =>
      fc.record({ address: prefixOf(f), gateway: ipOf(f), interface: fc.nat() }, { requiredKeys: ["address"] }),
    ),
  ),
  routes: fc.array(
    family.chain((f) =>
      fc.record(
        { dst: prefixOf(f), gw: ipOf(f), mtu: nat, advmss: nat, priority: nat, table: nat, scope: nat },
        { requiredKeys: ["dst"] },
      ),
    ),
  ),
  dns: fc.option(fc.record({ nameservers: fc.array(name), domain: name, search: fc.array(name) }, optional), {
    nil: undefined,
  }),
});

/** An address names one of the interfaces that are there, or none. */
const result = anyResult.map(({ ips, ...rest }): CniResult => {
  const count = rest.interfaces.length;
  const placed = ips.map(({ interface: index, ...ip }) =>
    index === undefined || count === 0 ? ip : { ...ip, interface: index % count },
  );
  return { ...rest, ips: placed };
});

describe.each(SUPPORTED_VERSIONS)("results in version %s", (version) => {
  it("survive a round trip", () => {
    fc.assert(
      fc.property(result, (original) => {
        const text = JSON.stringify(formatResult(original, version));
        const read = decodeResult(JSON.parse(text));
        expect(JSON.stringify(formatResult(read, version))).toBe(text);
        expect(read).toEqual(original);
      }),
    );
  });
});
