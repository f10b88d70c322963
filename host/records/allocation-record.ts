/** One address that is not free, as the status API answers it and berthctl shows it. */
import * as z from "zod";

/** Address, and address space unless it is the default, as on the command line: `10.0.0.7`, `10.0.0.7/lab`. */
export function formatAddressName(address: string, space: string): string {
  return space === "" ? address : `${address}/${space}`;
}

const holder = z.object({
  namespace: z.string(),
  pod: z.string(),
  interface: z.string(),
  node: z.string(),
});

/** Newer agents may add keys. Texts are empty if they do not apply: a Cooling address has no pod in a cluster. */
export const allocationRecord = z.object({
  address: z.string(),
  prefixLength: z.int().optional(),
  addressSpace: z.string().default(""),
  pool: z.string(),
  state: z.string(),
  namespace: z.string(),
  pod: z.string(),
  /** UID of the pod, or the container ID if no pod is known. */
  owner: z.string().optional(),
  interface: z.string(),
  /** Only the node knows it. */
  containerId: z.string().optional(),
  /** MAC address of the NIC, if the node's agent has seen it: its ADD probed, or `berthctl recover` found it. */
  mac: z.string().optional(),
  network: z.string().optional(),
  /** The node whose agent is responsible; absent outside of a cluster. */
  node: z.string().optional(),
  /** The other NIC that has the address while a virtual machine migrates. */
  second: holder.optional(),
  /** The member of a workload that the address is retained for. */
  workload: z.object({ kind: z.string(), namespace: z.string(), name: z.string(), member: z.string() }).optional(),
  /** Time of the last transition, RFC 3339. */
  since: z.string().optional(),
  /** The cursor that continues a page of the status API; {@link formatAddressName}. */
  cursor: z.string(),
  quarantine: z
    .object({ reason: z.string().optional(), mac: z.string().optional(), parent: z.string().default("") })
    .optional(),
});

export type AllocationRecord = z.output<typeof allocationRecord>;
