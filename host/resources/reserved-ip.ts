/** The kind ReservedIP: addresses that no pool of an address space allocates. */
import * as z from "zod";
import { cel } from "../lib/cel.ts";
import type { Family } from "../net/ip.ts";
import type { Range } from "../net/range.ts";
import { addressSpace, ipVersion, ranges } from "./fields/address-spec.ts";
import { berthObject, decodeBerth } from "./fields/metadata.ts";

interface ReservedIpSpec {
  readonly family: Family;
  readonly ranges: readonly Range[];
  /** "" is the default space. */
  readonly addressSpace: string;
}

export interface ReservedIp {
  readonly kind: "ReservedIP";
  readonly name: string;
  readonly spec: ReservedIpSpec;
}

const spec = z
  .strictObject({
    ipVersion: ipVersion.optional().meta({ description: "Address family. Derived from `ips`; must match it." }),
    ips: ranges
      .min(1, { error: "a list of at least one entry" })
      .meta({ description: "Addresses (`a`) and ranges (`a-b`) of one family." }),
    addressSpace: addressSpace.meta({
      description: "Address space whose pools do not allocate these addresses. Immutable.",
    }),
  })
  .meta(
    cel(
      {
        rule: "self.ips.size() == 0 || self.ips.all(entry, entry.contains(':') == self.ips[0].contains(':'))",
        message: "addresses of one family",
        messageExpression: "'IPv' + (self.ips[0].contains(':') ? '6' : '4') + ' addresses, as ips[0] has'",
        fieldPath: ".ips",
      },
      {
        rule: "!has(self.ipVersion) || self.ips.size() == 0 || self.ipVersion == (self.ips[0].contains(':') ? 6 : 4)",
        message: 'the family of "ips"',
        messageExpression: `(self.ips[0].contains(':') ? '6' : '4') + ', the family of "ips"'`,
        fieldPath: ".ipVersion",
      },
    ),
  )
  .transform(({ ipVersion, ips, addressSpace }, context): ReservedIpSpec => {
    const family = ips[0]?.first.family ?? 4;
    const otherFamily = ips.findIndex(({ first }) => first.family !== family);
    if (otherFamily >= 0) {
      context.addIssue({
        code: "custom",
        path: ["ips", otherFamily],
        message: `IPv${family} addresses, as ips[0] has`,
      });
    }
    if ((ipVersion ?? family) !== family) {
      context.addIssue({ code: "custom", path: ["ipVersion"], message: `${family}, the family of "ips"` });
    }
    return { family, ranges: ips, addressSpace };
  });

export const reservedIpSchema = berthObject("ReservedIP", spec);

/** Throws ConfigError. */
export function decodeReservedIp(value: unknown, source: string): ReservedIp {
  const { kind, metadata, spec } = decodeBerth(reservedIpSchema, value, source);
  return { kind, name: metadata.name, spec };
}
