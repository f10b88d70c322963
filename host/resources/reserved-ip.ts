/** The kind ReservedIP: addresses that no pool of an address space allocates, except to their owner, if any. */
import * as z from "zod";
import { namespaceName, objectName } from "../config/fields/names.ts";
import { ifName } from "../config/fields/network.ts";
import { cel, matchRule } from "../lib/cel.ts";
import { byName } from "../lib/order.ts";
import { parsedText } from "../lib/schema.ts";
import { equalIp, type Family, type Ip } from "../net/ip.ts";
import { type Range, rangeContains } from "../net/range.ts";
import { addressSpace, ipVersion, ranges } from "./fields/address-spec.ts";
import { berthObject, decodeBerth } from "./fields/metadata.ts";

/** The pod that gets a reserved address, by name: it need not exist yet (docs/decisions/0065). */
const owner = z.strictObject({
  namespace: namespaceName.meta({ description: "The pod's namespace." }),
  name: objectName.meta({ description: "Name of the pod, of its virtual machine or IPAMClaim, or of its Deployment." }),
  interface: ifName.optional().meta({ description: "Its NIC. Default: its first." }),
});

const A_TIME = 'a time such as "2026-12-31T18:00:00Z"';

const TIME = z.regexes.datetime({ offset: true });

/** In milliseconds of the wall clock. */
const until = parsedText((text) => (TIME.test(text) ? Date.parse(text) : undefined), A_TIME, 40).meta(
  cel(matchRule(TIME, A_TIME)),
);

interface ReservedIpSpec {
  readonly family: Family;
  readonly ranges: readonly Range[];
  /** "" is the default space. */
  readonly addressSpace: string;
  /** With one address only. */
  readonly owner?: z.output<typeof owner> | undefined;
  /** By the wall clock: milliseconds. Absent: until its deletion. */
  readonly until?: number | undefined;
}

export interface ReservedIp {
  readonly kind: "ReservedIP";
  readonly name: string;
  /** RFC 3339; undefined outside of a cluster. */
  readonly created?: string | undefined;
  readonly spec: ReservedIpSpec;
}

const ONE_ADDRESS = "one address, as it has an owner";

const spec = z
  .strictObject({
    ipVersion: ipVersion.optional().meta({ description: "Address family. Derived from `ips`; must match it." }),
    ips: ranges
      .min(1, { error: "a list of at least one entry" })
      .meta({ description: "Addresses (`a`) and ranges (`a-b`) of one family." }),
    addressSpace: addressSpace.meta({
      description: "Address space whose pools do not allocate these addresses. Immutable.",
    }),
    owner: owner
      .optional()
      .meta({ description: "The only pod that gets the address, which may come later. With one address in `ips`." }),
    until: until.optional().meta({
      description: "When it ends, as in `2026-12-31T18:00:00Z`. Default: when it is deleted.",
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
      {
        rule: "!has(self.owner) || self.ips.size() == 1 && !self.ips[0].contains('-')",
        message: ONE_ADDRESS,
        fieldPath: ".ips",
      },
    ),
  )
  .transform(({ ipVersion, ips, addressSpace, ...rest }, context): ReservedIpSpec => {
    const family = ips[0]?.first.family ?? 4;
    const fail = (path: PropertyKey[], message: string) => context.addIssue({ code: "custom", path, message });
    const otherFamily = ips.findIndex(({ first }) => first.family !== family);
    if (otherFamily >= 0) fail(["ips", otherFamily], `IPv${family} addresses, as ips[0] has`);
    if ((ipVersion ?? family) !== family) fail(["ipVersion"], `${family}, the family of "ips"`);
    const isOne = ips.length === 1 && ips.every(({ first, last }) => equalIp(first, last));
    if (rest.owner !== undefined && !isOne) fail(["ips"], ONE_ADDRESS);
    return { family, ranges: ips, addressSpace, ...rest };
  });

export const reservedIpSchema = berthObject("ReservedIP", spec);

/** Throws ConfigError. */
export function decodeReservedIp(value: unknown, source: string): ReservedIp {
  const { kind, metadata, spec } = decodeBerth(reservedIpSchema, value, source);
  return { kind, name: metadata.name, created: metadata.creationTimestamp, spec };
}

/** Returns whether its time is over. `nowMs`: by the wall clock. */
export function hasEnded({ spec: { until } }: ReservedIp, nowMs: number): boolean {
  return until !== undefined && until <= nowMs;
}

/** The names by which an address can be reserved for a pod, in its namespace. */
export interface OwnNames {
  readonly namespace: string;
  readonly names: readonly string[];
}

/** The ending that a ReplicaSet and its Deployment give to a pod's name (SafeEncodeString of k8s.io/apimachinery). */
const GENERATED_ENDING = /-[bcdfghjklmnpqrstvwxz2456789]{1,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** The pod of a virtual machine; a long name of the machine is cut in it. */
const LAUNCHER = /^virt-launcher-(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** Returns the names of the pod, its Deployment or machine, and its workload's `member`: a machine, or an IPAMClaim. */
export function ownNames(namespace: string, pod: string, member: string = pod): OwnNames {
  const above = [pod.replace(GENERATED_ENDING, ""), pod.replace(LAUNCHER, "$1")];
  return { namespace, names: [...new Set([pod, member, ...above])] };
}

/** `shop/db-0` */
export function describeOwner({ namespace, name }: Pick<z.output<typeof owner>, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}

/** Returns whether the reservation is for a NIC of this pod. */
export function isReservedFor({ spec: { owner } }: ReservedIp, { namespace, names }: OwnNames): boolean {
  return owner !== undefined && owner.namespace === namespace && names.includes(owner.name);
}

/** Returns the ReservedIP of the address: one with an owner before others, and the same one everywhere. */
export function findReserved(
  reserved: readonly ReservedIp[],
  { space, ip }: { readonly space: string; readonly ip: Ip },
): ReservedIp | undefined {
  const all = reserved.filter(
    ({ spec }) => spec.addressSpace === space && spec.ranges.some((range) => rangeContains(range, ip)),
  );
  return all.filter(({ spec }) => spec.owner !== undefined).toSorted(byName)[0] ?? all[0];
}
