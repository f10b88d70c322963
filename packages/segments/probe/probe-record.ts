/** Which machines of a segment answer for addresses, as an agent on it has found. */
import * as z from "zod";

export const probeRecord = z.object({
  /** The node's link to the segment; absent: no pod of the node has an address of it, and nothing was probed. */
  link: z.string().optional(),
  answered: z.array(
    z.object({
      address: z.string(),
      /** Absent if the answer has none. */
      mac: z.string().optional(),
    }),
  ),
});

export type ProbeRecord = z.output<typeof probeRecord>;
