/**
 * The results of a check: of one node, as `GET /v1/check` answers it; of one or all nodes, as `berthctl check` prints
 * it and writes it to a report file.
 */
import * as z from "zod";
import { findingRecord } from "./finding.ts";

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
  /** Only with `check --repair`: restored state. */
  repaired: z.array(repair).optional(),
});

/** An address that a pod's NIC has, of one of the pools. */
const usedAddress = z.object({
  /** `10.0.0.7`, `10.0.0.7/lab`. */
  address: z.string(),
  /** `default/web-0, eth0`; where no record names the pod, `eth0 in /run/netns/…`. */
  place: z.string(),
});

export const checkRecord = node.extend({
  /** With `check --record` also the findings about its host. */
  findings: z.array(findingRecord),
  /** Only if asked for: to be compared with other nodes. */
  used: z.array(usedAddress).optional(),
});

export const checkReport = z.object({
  /** When the comparison ended; RFC 3339. */
  time: z.string(),
  /** UID of the namespace kube-system; absent without a cluster. */
  cluster: z.string().optional(),
  /** The nodes that were compared. */
  nodes: z.array(node),
  findings: z.array(findingRecord),
});

export type RepairRecord = z.output<typeof repair>;
export type CheckRecord = z.output<typeof checkRecord>;
export type CheckReport = z.output<typeof checkReport>;
