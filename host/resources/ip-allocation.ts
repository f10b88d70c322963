/**
 * The kind IPAllocation: one address that is not free. Its name is the address, so that creating the object locks the
 * address (docs/develop/allocation.md). Unknown keys are accepted: newer agents may have written them.
 */

import { hash } from "node:crypto";
import * as z from "zod";
import { isDnsLabel } from "../config/fields/names.ts";
import { MAX_ADDRESS_LENGTH, parseAddress } from "../config/fields/network.ts";
import { type CelRule, cel, IMMUTABLE } from "../lib/cel.ts";
import { parsedText, wholeNumber } from "../lib/schema.ts";
import { formatIp, type Ip, parseIp } from "../net/ip.ts";
import { addressSpace, routerNames } from "./fields/address-spec.ts";
import { API_VERSION, decodeBerth, isDeleting, metadata } from "./fields/metadata.ts";
import { MAX_ALLOCATION_TEXT, MAX_UID_LENGTH, type Member, memberKey, type Workload } from "./member.ts";

interface AllocationRule {
  readonly field: string;
  readonly wanted: string;
  /** In CEL; `self` is the spec. */
  readonly rule: string;
  readonly holds: (spec: IpAllocationSpec) => boolean;
}

const IS_FOUR = "!self.address.contains(':')";
const HELD = "has(self.holders) && self.holders.size() > 0";
const TWO_PODS = "has(self.workload) && self.holders[0].podUID != self.holders[1].podUID";

const ALLOCATION_RULES: readonly AllocationRule[] = [
  {
    field: "prefixLength",
    wanted: "a length from 0 to 32 with an IPv4 address",
    rule: `!(${IS_FOUR}) || self.prefixLength <= 32`,
    holds: ({ ip, prefixLength }) => ip.family === 6 || prefixLength <= 32,
  },
  {
    field: "holders",
    wanted: "at least one with the state Bound, none with any other state",
    rule: `(self.state == 'Bound') == (${HELD})`,
    holds: ({ state, holders }) => (state === "Bound") === holders.length > 0,
  },
  {
    field: "holders",
    wanted: "one, or two different pods of one workload",
    rule: `!(${HELD}) || self.holders.size() < 2 || (${TWO_PODS})`,
    holds: ({ holders: [first, second], workload }) =>
      second === undefined || (workload !== undefined && first?.podUid !== second.podUid),
  },
  {
    field: "node",
    wanted: "the node of a holder",
    rule: `!(${HELD}) || self.holders.exists(holder, holder.node == self.node)`,
    holds: ({ node, holders }) => holders.length === 0 || holders.some((holder) => holder.node === node),
  },
  {
    field: "workload",
    wanted: "a workload with the state Kept",
    rule: "self.state != 'Kept' || has(self.workload)",
    holds: ({ state, workload }) => state !== "Kept" || workload !== undefined,
  },
  {
    field: "quarantine",
    wanted: "a reason with the state Quarantined, none with Cooling and Kept",
    rule: "self.state == 'Bound' || (self.state == 'Quarantined') == has(self.quarantine)",
    holds: ({ state, quarantine }) => state === "Bound" || (state === "Quarantined") === (quarantine !== undefined),
  },
  {
    field: "lastHolder",
    wanted: "a last holder only with the state Kept",
    rule: "!has(self.lastHolder) || self.state == 'Kept'",
    holds: ({ state, lastHolder }) => lastHolder === undefined || state === "Kept",
  },
];

/**
 * The workload's namespace is unchanged. If an older agent did not write it, the old holder's namespace is compared;
 * without either, the rule fails. CEL reserves the word `namespace`, so the field is escaped as `__namespace__`.
 */
const SAME_NAMESPACE =
  "has(self.workload.__namespace__) && (has(oldSelf.workload.__namespace__) ? self.workload.__namespace__ == oldSelf.workload.__namespace__ : " +
  "has(oldSelf.holders) && oldSelf.holders.size() > 0 && self.workload.__namespace__ == oldSelf.holders[0].__namespace__)";

/**
 * The nodes that may take over an address, as far as the API server can check them (node-rights and retention in
 * docs/develop/allocation.md).
 */
const TAKE_OVER: CelRule = {
  rule:
    "self.node == oldSelf.node || oldSelf.state in ['Cooling', 'Quarantined'] || (has(self.workload) && has(oldSelf.workload) && " +
    `${SAME_NAMESPACE} && ` +
    "self.workload.uid == oldSelf.workload.uid && self.workload.member == oldSelf.workload.member)",
  message:
    "the same node; another node may take over only an address that is Cooling or Quarantined, or of the same member of a workload",
  fieldPath: ".node",
};

const SPEC_RULES: readonly CelRule[] = [
  ...ALLOCATION_RULES.map(({ field, wanted, rule }) => ({ rule, message: wanted, fieldPath: `.${field}` })),
  TAKE_OVER,
];

const NAME_FORM = "the address, followed by a dot and the address space if there is one";

const NAME = "self.metadata.name";
const IS_FOUR_NAME = `${NAME} == self.spec.address + ending`;
const IS_SIX_NAME =
  `${NAME}.matches('^[0-9a-f]{4}(-[0-9a-f]{4}){7}([.]|$)') && ${NAME}.substring(39) == ending && ` +
  // Kubernetes 1.31 takes the cost of comparing two addresses with == for unlimited.
  `cidr(${NAME}.substring(0, 39).replace('-', ':') + '/128').containsIP(self.spec.address)`;
const ENDING = "(self.spec.addressSpace == '' ? '' : '.' + self.spec.addressSpace)";

/** Rule of the whole object: the name is the address, so that creating it locks the address. Mirrors allocationName. */
export const NAME_RULE: CelRule = {
  rule: `!isIP(self.spec.address) || (self.spec.address.contains(':') ? ${IS_SIX_NAME} : ${IS_FOUR_NAME})`.replaceAll(
    "ending",
    ENDING,
  ),
  message: NAME_FORM,
  fieldPath: ".metadata.name",
};

/** Highest number of a claim: more than a member ever has. */
const MAX_CLAIM_NUMBER = 2_147_483_647;

/** Most holders of one address: two while a virtual machine migrates. */
export const MAX_HOLDERS = 2;

/**
 * The node of records of a Node's, the API server's or a Service's own address, and of one that a workload names before
 * a pod has it. No Node can have this name, so it has no agent. Only the controller may write it
 * (deploy/policies.yaml).
 */
export const NO_NODE = "-";

/** Whether it records an address that a Node, the API server or a Service has itself. */
export function isMachines({ node, workload }: { node?: string | undefined; workload?: { kind: string } | undefined }) {
  return node === NO_NODE && (workload?.kind === "Node" || workload?.kind === "Service");
}

/** The states of docs/develop/allocation.md; an absent object is a free address. */
export type AllocationState = "Bound" | "Cooling" | "Kept" | "Quarantined";

export interface Holder {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly ifName: string;
  readonly node: string;
  /** UUID of the claim by which the NIC has the address. Undefined in objects of older writers, which drop it. */
  readonly claim?: string | undefined;
  /** The machine that had the node's name ({@link machineOf}); undefined in objects of older writers. */
  readonly machine?: string | undefined;
}

interface AllocationQuarantine {
  readonly reason: "Conflict" | "NodeLost";
  /** MAC address of the machine that answered for the address; "" if unknown. */
  readonly mac: string;
  /** The node's link on which that machine can be probed; "" if unknown. */
  readonly parent: string;
  /**
   * With `NodeLost`: the NIC that had the address on the lost node. `spec.node` differs if another node was told to
   * probe the address.
   */
  readonly holder?: Holder | undefined;
}

export interface IpAllocationSpec {
  readonly ip: Ip;
  /** "" is the default space; immutable. */
  readonly addressSpace: string;
  /** Prefix length of the pool's subnet at the claim. The pool may be gone by now. */
  readonly prefixLength: number;
  readonly pool: string;
  /** The pool's routers at the claim, which are its pod's next hops. Undefined in older objects. */
  readonly routers?: readonly string[] | undefined;
  readonly state: AllocationState;
  /** The node whose agent is responsible for the object. The API server can select by this field. */
  readonly node: string;
  /** Empty unless Bound; two while a virtual machine migrates. */
  readonly holders: readonly Holder[];
  /** With `Kept`: the last NIC that had the address. Undefined in objects of older writers. */
  readonly lastHolder?: Holder | undefined;
  readonly workload?: Workload | undefined;
  /**
   * Orders the addresses of one member of the workload, NIC and family: the highest is the member's (retention). 0 if
   * the address was claimed before its member's other addresses were read. Undefined without a workload.
   */
  readonly number?: number | undefined;
  readonly quarantine?: AllocationQuarantine | undefined;
  /** Time of the last transition, RFC 3339. Informational only. */
  readonly since?: string | undefined;
}

export interface IpAllocation {
  readonly kind: "IPAllocation";
  readonly name: string;
  readonly uid: string;
  /** Opaque; a number of at most 2^53 in decimals with etcd below. */
  readonly resourceVersion: string;
  /** When the API server created it, RFC 3339. */
  readonly createdAt?: string | undefined;
  readonly deleting: boolean;
  readonly spec: IpAllocationSpec;
}

/** Returns `10.6.0.21`; for IPv6 eight groups of four digits with dashes; in a named space `<address>.<space>`. */
export function allocationName(ip: Ip, addressSpace: string): string {
  const address = ip.family === 4 ? formatIp(ip) : ip.value.toString(16).padStart(32, "0").match(/.{4}/g)?.join("-");
  return addressSpace === "" ? `${address}` : `${address}.${addressSpace}`;
}

const ALLOCATION_NAME =
  /^(?:(?<v4>[0-9]+(?:\.[0-9]+){3})|(?<v6>[0-9a-f]{4}(?:-[0-9a-f]{4}){7}))(?:\.(?<space>[a-z0-9-]+))?$/;

/** The inverse of {@link allocationName}. Returns undefined if `name` is not such a name. */
export function parseAllocationName(name: string): { readonly ip: Ip; readonly addressSpace: string } | undefined {
  const { v4, v6, space = "" } = ALLOCATION_NAME.exec(name)?.groups ?? {};
  const ip = parseIp(v4 ?? v6?.replaceAll("-", ":") ?? "");
  return ip === undefined || !(space === "" || isDnsLabel(space)) ? undefined : { ip, addressSpace: space };
}

/** Annotation without which only Berth's own accounts may delete an address in use (deploy/policies.yaml): `true`. */
export const FORCE_DELETE = "ipam.vendor.io/force-delete";

/** Label that selects the objects of a pod. */
export const POD_UID_LABEL = "ipam.vendor.io/pod-uid";

/** Label that selects the objects of one member of an owner; its value is {@link ownerLabelOf}. */
export const OWNER_LABEL = "ipam.vendor.io/owner";

/** Returns a hash of workload and member that fits into a label's value: 32 hexadecimal digits. */
export function ownerLabelOf(member: Member): string {
  return hash("sha256", memberKey(member), "hex").slice(0, 32);
}

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
  podUID: uid.meta({ description: "The pod's UID. For a static pod, the hash of its manifest." }),
  interface: name.meta({ description: "The NIC's name in the pod." }),
  node: name.meta({ description: "The node on which the pod runs." }),
  claim: uid.optional().meta({ description: "UUID of the claim. Absent if an older version wrote the object." }),
  machine: name.optional().meta({
    description:
      "The machine that has the node's name: a digest of the `systemUUID` and `machineID` that its Node reports. Absent if an older version wrote it.",
  }),
});

function decodeHolder({ podUID, interface: ifName, ...names }: z.output<typeof holder>): Holder {
  return { ...names, podUid: podUID, ifName };
}

const workload = z.object({
  kind: text.meta({
    description:
      "`StatefulSet`, `VirtualMachine`, `VirtualMachineInstance`, `IPAMClaim`; `KIND.GROUP` if `retainByName` of vendor-conf lists it; `Node` or `Service` if that has the address itself.",
  }),
  namespace: name.optional().meta({ description: "Its namespace." }),
  name: text.meta({ description: "Its name." }),
  uid: uid.meta({ description: "Its UID." }),
  member: text.meta({ description: "One of its pods: the pod's name or the machine's name." }),
  interface: name.optional().meta({ description: "The NIC for which the address is retained." }),
  fresh: z.boolean().optional().meta({ description: "True if `number` is 0, for older versions." }),
});

const quarantine = z.object({
  holder: holder.optional().meta({ description: "With `NodeLost`: the NIC that had the address on the lost node." }),
  reason: z.enum(["Conflict", "NodeLost"]).meta({
    description:
      "`Conflict`: another machine answers for the address. `NodeLost`: its node never confirmed the release.",
  }),
  mac: text.default("").meta({ description: "MAC address of the machine that answered." }),
  parent: text.default("").meta({ description: "The node's link on which that machine can be probed." }),
});

function decodeQuarantine({ holder, ...rest }: z.output<typeof quarantine>): AllocationQuarantine {
  return holder === undefined ? rest : { ...rest, holder: decodeHolder(holder) };
}

const spec = z
  .object({
    address: parsedText(parseCanonicalIp, CANONICAL_FORM, MAX_ADDRESS_LENGTH).meta({
      ...cel({ rule: "isIP(self) && ip.isCanonical(self)", message: CANONICAL_FORM }, IMMUTABLE),
      title: "address",
      description: "The address in canonical form. Immutable.",
    }),
    addressSpace: addressSpace.meta({ description: "Address space. Immutable." }),
    prefixLength: wholeNumber(0, 128).meta({ description: "Prefix length of the pool's subnet." }),
    pool: name.meta({ description: "The pool that the address was allocated from." }),
    routers: routerNames.optional().meta({
      description:
        "The pool's gateway and next hops when the pod got the address. Absent if an older version wrote it.",
    }),
    state: z.enum(["Bound", "Cooling", "Kept", "Quarantined"]).meta({
      description:
        "`Bound`: in use by a pod. `Cooling`: released, free after the cooldown. `Kept`: retained for a workload without a pod at the moment. `Quarantined`: must not be used.",
    }),
    node: name.meta({
      description:
        "The node whose agent is responsible for the object. `-`: none, as a Node or a Service has the address, or no pod has had it yet.",
    }),
    holders: z.array(holder).max(MAX_HOLDERS).default([]).meta({
      description: "The NICs that have a Bound address: one, or two while a virtual machine migrates.",
    }),
    lastHolder: holder
      .optional()
      .meta({ description: "The NIC that had a Kept address last. Absent if an older version retained it." }),
    workload: workload
      .optional()
      .meta({ description: "The workload that retains the address when the pod is deleted." }),
    number: wholeNumber(0, MAX_CLAIM_NUMBER).optional().meta({
      description:
        "Of several addresses of one pod of the workload, NIC and family the one with the highest number is the pod's. 0: claimed before the others were read.",
    }),
    quarantine: quarantine.optional().meta({ description: "Why the address must not be used." }),
    since: z
      .string()
      .regex(TIME, { error: "a time such as 2026-11-20T04:00:00Z" })
      .optional()
      .meta({ description: "Time of the last state transition. Informational only." }),
  })
  .meta(cel(...SPEC_RULES))
  .transform(
    ({ address, holders, lastHolder, workload, number, quarantine, ...rest }): IpAllocationSpec => ({
      ...rest,
      ip: address,
      holders: holders.map(decodeHolder),
      ...(lastHolder === undefined ? {} : { lastHolder: decodeHolder(lastHolder) }),
      ...(quarantine === undefined ? {} : { quarantine: decodeQuarantine(quarantine) }),
      ...(workload === undefined
        ? {}
        : {
            workload: decodeWorkload(workload, (holders[0] ?? quarantine?.holder)?.namespace),
            number: number ?? (workload.fresh === true ? 0 : 1),
          }),
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

/** A workload is in its pods' namespace; the holder's namespace replaces one that an older agent did not write. */
function decodeWorkload(
  { interface: ifName, namespace, fresh: _, ...names }: z.output<typeof workload>,
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

/** Decodes an IPAllocation; `source` names it in the error. Throws ConfigError. */
export function decodeIpAllocation(value: unknown, source: string): IpAllocation {
  const { kind, metadata, spec } = decodeBerth(named, value, source);
  const { name, uid = "", resourceVersion = "", creationTimestamp: createdAt } = metadata;
  const created = createdAt === undefined ? {} : { createdAt };
  return { kind, name, uid, resourceVersion, ...created, deleting: isDeleting(metadata), spec };
}

/** Returns the object in the API's form. `more`: further metadata, such as the version that an update expects. */
export function encodeIpAllocation(spec: IpAllocationSpec, more: object = {}) {
  const { ip, holders, lastHolder, workload, number, quarantine, ...rest } = spec;
  return {
    apiVersion: API_VERSION,
    kind: "IPAllocation",
    metadata: { name: allocationName(ip, spec.addressSpace), labels: allocationLabels(spec), ...more },
    spec: {
      address: formatIp(ip),
      ...rest,
      holders: holders.map(encodeHolder),
      ...(lastHolder === undefined ? {} : { lastHolder: encodeHolder(lastHolder) }),
      ...(quarantine === undefined ? {} : { quarantine: encodeQuarantine(quarantine) }),
      ...(workload === undefined ? {} : { workload: encodeWorkload(workload, number === 0), number }),
    },
  };
}

function encodeWorkload({ ifName, namespace, ...names }: Workload, isFirst: boolean): object {
  return {
    ...(namespace === "" ? {} : { namespace }),
    ...names,
    ...(ifName === undefined ? {} : { interface: ifName }),
    ...(isFirst ? { fresh: true } : {}),
  };
}

function encodeHolder({ podUid, ifName, ...names }: Holder): object {
  return { ...names, podUID: podUid, interface: ifName };
}

function encodeQuarantine({ holder, ...rest }: AllocationQuarantine): object {
  return holder === undefined ? rest : { ...rest, holder: encodeHolder(holder) };
}
