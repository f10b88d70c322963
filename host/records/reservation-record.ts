/** One ReservedIP, as `GET /v1/reservations` answers it. `berthctl reservations` adds its outcome. */
import * as z from "zod";

export const reservationRecord = z.object({
  name: z.string(),
  /** Addresses and ranges. */
  ips: z.array(z.string()),
  addressSpace: z.string(),
  /** The pod that gets the address. */
  owner: z.object({ namespace: z.string(), name: z.string(), interface: z.string().optional() }).optional(),
  /** RFC 3339; absent outside of a cluster. */
  since: z.string().optional(),
  /** RFC 3339; absent: until it is deleted. */
  until: z.string().optional(),
  hasEnded: z.boolean(),
  /** The pool that gives the address. */
  pool: z.string().optional(),
  /** Why no pool gives it: a clause. */
  why: z.string().optional(),
});

export type ReservationRecord = z.output<typeof reservationRecord>;
