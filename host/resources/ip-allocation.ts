/**
 * The resource IPAllocation: one address that is not free. Its name is the address, so that creating it is the lock
 * (docs/allocation.md). Unknown keys pass: an agent reads what a newer one wrote.
 */

import { createHash } from "node:crypto";
import { z } from "zod";
import { isDnsLabel } from "../config/fields/names.ts";
import { MAX_ADDRESS_LENGTH, parseAddress } from "../config/fields/network.ts";
import { cel, IMMUTABLE } from "../lib/cel.ts";
import { parsedText, wholeNumber } from "../lib/schema.ts";
import { formatIp, type Ip, parseIp } from "../net/ip.ts";
import { addressSpace } from "./fields/address-spec.ts";
import { ALLOCATION_RULES, NAME_FORM, SPEC_RULES } from "./fields/allocation-rules.ts";
import { API_VERSION, decodeBerth, isDeleting, metadata } from "./fields/metadata.ts";

/** Most holders of one address: a virtual machine that migrates has two. @limit */
export const MAX_HOLDERS = 2;

/** Longest UID of a pod or a workload: characters. It is a label's value. @limit */
export const MAX_UID_LENGTH = 63;

/** Longest name of an object or a link in an IPAllocation: characters. @limit */
export const MAX_ALLOCATION_TEXT = 253;

/** The states of docs/allocation.md; an absent object is a free address. */
export type AllocationState = "Bound" | "Cooling" | "Kept" | "Quarantined";

/** What outlives its pods and keeps their addresses (allocation rule 8). */
export interface Workload {
  /** `StatefulSet`, `VirtualMachine`, `VirtualMachineInstance`, `IPAMClaim` */
  readonly kind: string;
  /** Of the workload and of its pods. "" in a Kept object of an agent that did not write it: nothing can be told of that workload, and it has no member. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Which of the workload's pods: the pod's name, which has the ordinal in it, or the machine's. */
  readonly member: string;
  /** For which of the member's NICs an address is kept; absent where that does not matter, and in objects of older agents. */
  readonly ifName?: string | undefined;
}

/** A NIC that has the address. */
export interface Holder {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly ifName: string;
  readonly node: string;
}

export interface AllocationQuarantine {
  readonly reason: "Conflict" | "NodeLost";
  /** Of the machine that answered for the address; "" when unknown. */
  readonly mac: string;
  /** The node's link through which that machine can be asked; "" when unknown. */
  readonly parent: string;
  /** Of `NodeLost`: who had the address, on the node that was lost. `spec.node` is another one when that one was told to ask for it. */
  readonly holder?: Holder | undefined;
}

export interface IpAllocationSpec {
  readonly ip: Ip;
  /** "" is the default space; immutable. */
  readonly addressSpace: string;
  /** Of the pool's subnet when the address was claimed; outlives the pool. */
  readonly prefixLength: number;
  readonly pool: string;
  readonly state: AllocationState;
  /** Whose agent answers for the object; a field of its own, as the API server selects by it. */
  readonly node: string;
  /** None unless Bound; two while a virtual machine migrates. */
  readonly holders: readonly Holder[];
  readonly workload?: Workload | undefined;
  readonly quarantine?: AllocationQuarantine | undefined;
  /** Of the last transition, RFC 3339; for people: nothing is decided by it. */
  readonly since?: string | undefined;
}

export interface IpAllocation {
  readonly kind: "IPAllocation";
  readonly name: string;
  readonly uid: string;
  /** Opaque; a number of at most 2^53 in decimals with etcd below. */
  readonly resourceVersion: string;
  readonly deleting: boolean;
  readonly spec: IpAllocationSpec;
}

/** `10.6.0.21`; IPv6 in eight groups of four digits with dashes; in a named space `<address>.<space>`. */
export function allocationName(ip: Ip, addressSpace: string): string {
  const address = ip.family === 4 ? formatIp(ip) : ip.value.toString(16).padStart(32, "0").match(/.{4}/g)?.join("-");
  return addressSpace === "" ? `${address}` : `${address}.${addressSpace}`;
}

const NAME = /^(?:(?<v4>[0-9]+(?:\.[0-9]+){3})|(?<v6>[0-9a-f]{4}(?:-[0-9a-f]{4}){7}))(?:\.(?<space>[a-z0-9-]+))?$/;

/** What {@link allocationName} was made of. Undefined for a text that it does not make. */
export function parseAllocationName(name: string): { readonly ip: Ip; readonly addressSpace: string } | undefined {
  const { v4, v6, space = "" } = NAME.exec(name)?.groups ?? {};
  const ip = parseIp(v4 ?? v6?.replaceAll("-", ":") ?? "");
  return ip === undefined || !(space === "" || isDnsLabel(space)) ? undefined : { ip, addressSpace: space };
}

/** The label by which the objects of a pod are found. */
export const POD_UID_LABEL = "ipam.vendor.io/pod-uid";

/** The label by which the objects of a kept identity are found; its value is {@link ownerLabelOf}. */
export const OWNER_LABEL = "ipam.vendor.io/owner";

type Member = Pick<Workload, "namespace" | "uid" | "member">;

/**
 * Whether both are the same member of the same workload (allocation rule 8). Whoever may create pods may write any UID into their owner references,
 * but only in namespaces of their own: the namespace is what tells a forged owner from the real one.
 */
export function isSameMember(one: Member | undefined, other: Member | undefined): boolean {
  if (one === undefined || one.namespace === "") return false;
  return one.namespace === other?.namespace && one.uid === other.uid && one.member === other.member;
}

/** Of one member alone: where the search for its addresses starts. */
export function memberKey({ namespace, uid, member }: Member): string {
  return `${namespace}/${uid}/${member}`;
}

/** A workload and its member as a label's value: 32 hexadecimal digits. */
export function ownerLabelOf(member: Member): string {
  return createHash("sha256").update(memberKey(member)).digest("hex").slice(0, 32);
}

/** The labels that an allocation has. */
export function allocationLabels({ holders: [holder], workload }: IpAllocationSpec): Record<string, string> {
  return {
    ...(holder === undefined ? {} : { [POD_UID_LABEL]: holder.podUid }),
    ...(workload === undefined ? {} : { [OWNER_LABEL]: ownerLabelOf(workload) }),
  };
}

const CANONICAL_FORM = "an address in its canonical form";

/** RFC 3339 in UTC. */
const TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,9})?Z$/;

const text = z.string().max(MAX_ALLOCATION_TEXT);
const name = text.min(1);
const uid = z.string().min(1).max(MAX_UID_LENGTH);

const holder = z.object({
  namespace: text.meta({ description: "The pod's namespace." }),
  pod: text.meta({ description: "The pod's name." }),
  podUID: uid.meta({ description: "The pod's UID; of a static pod the hash of its manifest." }),
  interface: name.meta({ description: "The NIC's name in the pod." }),
  node: name.meta({ description: "The node on which the pod runs." }),
});

function decodeHolder({ podUID, interface: ifName, ...names }: z.output<typeof holder>): Holder {
  return { ...names, podUid: podUID, ifName };
}

const workload = z.object({
  kind: text.meta({ description: "`StatefulSet`, `VirtualMachine`, `VirtualMachineInstance`, `IPAMClaim`." }),
  namespace: name.optional().meta({ description: "Its namespace." }),
  name: text.meta({ description: "Its name." }),
  uid: uid.meta({ description: "Its UID." }),
  member: text.meta({ description: "Which of its pods: the pod's name, or the machine's." }),
  interface: name.optional().meta({ description: "The NIC for which the address is kept." }),
});

const quarantine = z.object({
  holder: holder
    .optional()
    .meta({ description: "Of `NodeLost`: the NIC that had the address, on the node that was lost." }),
  reason: z.enum(["Conflict", "NodeLost"]).meta({
    description:
      "`Conflict`: another machine answers for the address. `NodeLost`: its node never confirmed the release.",
  }),
  mac: text.default("").meta({ description: "MAC address of the machine that answered." }),
  parent: text.default("").meta({ description: "The node's link through which that machine can be asked." }),
});

function decodeQuarantine({ holder, ...rest }: z.output<typeof quarantine>): AllocationQuarantine {
  return holder === undefined ? rest : { ...rest, holder: decodeHolder(holder) };
}

const spec = z
  .object({
    address: parsedText(parseCanonicalIp, CANONICAL_FORM, MAX_ADDRESS_LENGTH).meta({
      ...cel({ rule: "isIP(self) && ip.isCanonical(self)", message: CANONICAL_FORM }, IMMUTABLE),
      title: "address",
      description: "The address in canonical form; immutable.",
    }),
    addressSpace: addressSpace.meta({ description: "The space of the address; immutable." }),
    prefixLength: wholeNumber(0, 128).meta({ description: "Length of the prefix of the pool's subnet." }),
    pool: name.meta({ description: "The pool that the address was taken from." }),
    state: z.enum(["Bound", "Cooling", "Kept", "Quarantined"]).meta({
      description:
        "`Bound`: pods have it. `Cooling`: free soon. `Kept`: of a workload whose pod is away. `Quarantined`: not to be used.",
    }),
    node: name.meta({ description: "The node whose agent answers for the object." }),
    holders: z.array(holder).max(MAX_HOLDERS).default([]).meta({
      description:
        "The NICs that have the address: one or, while a virtual machine migrates, two. Only of a Bound address.",
    }),
    workload: workload.optional().meta({ description: "What keeps the address when the pod goes." }),
    quarantine: quarantine.optional().meta({ description: "Why the address must not be used." }),
    since: z
      .string()
      .regex(TIME, { error: "a time such as 2026-11-20T04:00:00Z" })
      .optional()
      .meta({ description: "Time of the last transition; for people." }),
  })
  .meta(cel(...SPEC_RULES))
  .transform(
    ({ address, holders, workload, quarantine, ...rest }): IpAllocationSpec => ({
      ...rest,
      ip: address,
      holders: holders.map(decodeHolder),
      ...(quarantine === undefined ? {} : { quarantine: decodeQuarantine(quarantine) }),
      ...(workload === undefined
        ? {}
        : { workload: decodeWorkload(workload, (holders[0] ?? quarantine?.holder)?.namespace) }),
    }),
  )
  .transform((spec, context) => {
    for (const { field, wanted, holds } of ALLOCATION_RULES) {
      if (!holds(spec)) context.addIssue({ code: "custom", path: [field], message: wanted });
    }
    return spec;
  });

export const ipAllocationSchema = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("IPAllocation"),
  metadata,
  spec,
});

/** A workload is in the namespace of its pods: that of the holder counts where an older agent did not write it. */
function decodeWorkload(
  { interface: ifName, namespace, ...names }: z.output<typeof workload>,
  ofHolder = "",
): Workload {
  return { ...names, namespace: namespace ?? ofHolder, ...(ifName === undefined ? {} : { ifName }) };
}

const named = ipAllocationSchema.transform((object, context) => {
  const { metadata, spec } = object;
  if (metadata.name !== allocationName(spec.ip, spec.addressSpace)) {
    context.addIssue({ code: "custom", path: ["metadata", "name"], message: NAME_FORM });
  }
  return object;
});

function parseCanonicalIp(text: string): Ip | undefined {
  const ip = parseAddress(text);
  return ip !== undefined && formatIp(ip) === text ? ip : undefined;
}

/** Throws ConfigError. */
export function decodeIpAllocation(value: unknown, source: string): IpAllocation {
  const { kind, metadata, spec } = decodeBerth(named, value, source);
  const { name, uid = "", resourceVersion = "" } = metadata;
  return { kind, name, uid, resourceVersion, deleting: isDeleting(metadata), spec };
}

export interface AllocationMetadata {
  /** {@link allocationName} of the spec. */
  readonly name: string;
  /** {@link allocationLabels} of the spec. */
  readonly labels: Readonly<Record<string, string>>;
  /** Both: preconditions of an update. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** The object as the API server takes it. */
export function encodeIpAllocation(spec: IpAllocationSpec, metadata: AllocationMetadata): object {
  const { ip, holders, workload, quarantine, ...rest } = spec;
  return {
    apiVersion: API_VERSION,
    kind: "IPAllocation",
    metadata,
    spec: {
      address: formatIp(ip),
      ...rest,
      holders: holders.map(encodeHolder),
      ...(quarantine === undefined ? {} : { quarantine: encodeQuarantine(quarantine) }),
      ...(workload === undefined ? {} : { workload: encodeWorkload(workload) }),
    },
  };
}

function encodeWorkload({ ifName, namespace, ...names }: Workload): object {
  return {
    ...(namespace === "" ? {} : { namespace }),
    ...names,
    ...(ifName === undefined ? {} : { interface: ifName }),
  };
}

function encodeHolder({ podUid, ifName, ...names }: Holder): object {
  return { ...names, podUID: podUid, interface: ifName };
}

function encodeQuarantine({ holder, ...rest }: AllocationQuarantine): object {
  return holder === undefined ? rest : { ...rest, holder: encodeHolder(holder) };
}
