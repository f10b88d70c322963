/** All known facts about one address, as `GET /v1/address` answers them and `berthctl ip` shows them. */
import * as z from "zod";
import { allocationRecord } from "./allocation-record.ts";

export const addressRecord = z.object({
  address: z.string(),
  /** Pools whose subnet has the address. */
  places: z.array(
    z.object({
      pool: z.string(),
      addressSpace: z.string(),
      subnet: z.string(),
      /** Why the pool never allocates it: a clause. */
      excluded: z.string().optional(),
      /** The ReservedIP that has it, its pod, and why the pool gives it to no owner either. */
      reserved: z
        .object({ name: z.string(), owner: z.string().optional(), excluded: z.string().optional() })
        .optional(),
      /** Its block, if the pool leases its addresses: `10.6.0.16/28 of AddressRange "lan", Active`. */
      block: z.string().optional(),
    }),
  ),
  /** Statements about it in conditions of pools and ReservedIPs, which only the API server has. */
  conditions: z.array(z.string()).optional(),
  /** Its records, at most one for each address space. */
  allocations: z.array(allocationRecord),
});

export type AddressRecord = z.output<typeof addressRecord>;
