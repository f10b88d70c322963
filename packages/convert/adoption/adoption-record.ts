/** Addresses that a node's agent has adopted, or would adopt, from another IPAM (docs/migration.md). */
import * as z from "zod";

export const adoptionRecord = z.object({
  node: z.string(),
  addresses: z.array(
    z.object({
      address: z.string(),
      /** "" if it is unknown. */
      namespace: z.string(),
      pod: z.string(),
      interface: z.string(),
      /** "" if the address is refused. */
      pool: z.string(),
      /** Types of the IPAM plugins that gave it; empty if the runtime has not recorded that. */
      ipams: z.array(z.string()),
      outcome: z.enum(["adoptable", "adopted", "recorded", "refused", "released", "releasable"]),
      /** Why it is refused: a clause. */
      reason: z.string().optional(),
    }),
  ),
  /** Files and namespaces that could not be read: sentences. */
  problems: z.array(z.string()),
});

export type AdoptionRecord = z.output<typeof adoptionRecord>;
export type AdoptedAddress = AdoptionRecord["addresses"][number];
