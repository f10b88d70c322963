/**
 * Findings: disagreements of objects, records, pods, NICs, neighbours, routes and rules, of one node as `GET
 * /v1/check` answers it; and of one or all nodes, with the faults of their hosts, as `berthctl check` prints it and
 * writes it to a report file.
 */
import * as z from "zod";

/** The kinds of disagreements. docs/diagnostics.md has a row for each. */
const DAMAGE_KINDS = [
  "duplicate",
  "lost-record",
  "lost-object",
  "orphan",
  "leak",
  "missing-address",
  "wrong-pool",
  "drift",
  "leftover",
  "firewall",
] as const;

/** `error`: pods get no network, or lose it, or an address is lost; a warning does not count for the exit code. */
const level = z.enum(["error", "warning"]);

const finding = z.object({
  kind: z.enum(DAMAGE_KINDS),
  /** Absent: an error. */
  level: level.exactOptional(),
  /** `10.0.0.7`, `10.0.0.7/lab`; empty if it is about no address. */
  address: z.string(),
  pool: z.string(),
  /** Empty if no pod is known. */
  namespace: z.string(),
  pod: z.string(),
  interface: z.string(),
  /** Owner in the address's record: pod UID, or container ID; empty without a record. */
  owner: z.string(),
  /** Container in the address's record; empty without one. */
  container: z.string(),
  /** The disagreement: a clause. */
  text: z.string(),
  /** The remedy: a sentence without a full stop, which ends in a colon if commands follow. */
  remedy: z.string(),
  /** For a shell of root on the node, in this order; absent if the remedy needs none. */
  commands: z.array(z.string()).optional(),
  /** Whether `berthctl release --from-report` may release the address. */
  isReleasable: z.boolean(),
});

/** A finding of berthctl about a host or its agent. */
const hostFinding = z.object({
  /** A row of docs/develop/diagnostics.md, such as `plugins`, or `agent`. */
  check: z.string(),
  level,
  text: z.string(),
  remedy: z.string(),
});

/** The operations of `check --repair` on one attachment. */
const repair = z.object({
  namespace: z.string(),
  pod: z.string(),
  interface: z.string(),
  /** Path of the network namespace. */
  netns: z.string(),
  /** In the words of `ip`, `nft` and `sysctl`. */
  operations: z.array(z.string()),
});

const node = z.object({
  node: z.string(),
  /** UID of the namespace kube-system; absent without a cluster. */
  cluster: z.string().optional(),
  /** RFC 3339. */
  time: z.string(),
  /** Number of addresses compared. */
  records: z.int(),
  nics: z.int(),
  /** Absent without a cluster. */
  objects: z.int().optional(),
  /** Number of the coordinator's attachments compared with the kernel. */
  attachments: z.int(),
  /** Only of `check --repair`: what it has restored, and what it could not, as sentences. */
  repaired: z.array(repair).optional(),
  unrepaired: z.array(z.string()).optional(),
  /** State that could not be read: sentences. Nothing is found out about these. */
  problems: z.array(z.string()),
});

/** An address that a pod's NIC has, of one of the pools. */
const usedAddress = z.object({
  /** `10.0.0.7`, `10.0.0.7/lab`. */
  address: z.string(),
  /** `default/web-0, eth0`; where no record names the pod, `eth0 in /run/netns/…`. */
  place: z.string(),
});

/** The check of one node. */
export const checkRecord = node.extend({
  findings: z.array(finding),
  /** Only if asked for: to be compared with other nodes. */
  used: z.array(usedAddress).optional(),
  /** Only of `check --record`. */
  host: z.array(hostFinding).optional(),
});

/** The check of one node or a cluster. */
export const checkReport = z.object({
  /** When the comparison ended; RFC 3339. */
  time: z.string(),
  /** UID of the namespace kube-system; absent without a cluster. */
  cluster: z.string().optional(),
  /** The nodes that were compared. */
  nodes: z.array(node),
  /** Nodes that should have been compared as well, with the reason: a clause. */
  notCompared: z.array(z.object({ node: z.string(), reason: z.string(), remedy: z.string().optional() })),
  /** `kind` is of a disagreement or of a check of the host; `node` is empty if no node is to blame. */
  findings: z.array(finding.extend({ kind: z.string(), level: level.default("error"), node: z.string() })),
  /** State of the API server that could not be read: sentences. */
  problems: z.array(z.string()),
});

export type DamageKind = (typeof DAMAGE_KINDS)[number];
export type HostFinding = z.output<typeof hostFinding>;
export type RepairRecord = z.output<typeof repair>;
export type DamageFinding = z.output<typeof finding>;
export type CheckRecord = z.output<typeof checkRecord>;
export type CheckReport = z.output<typeof checkReport>;
