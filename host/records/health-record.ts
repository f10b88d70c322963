/** The state of an agent, as `GET /v1/health` answers it. */
import * as z from "zod";

export const healthRecord = z.object({
  status: z.string(),
  version: z.string(),
  mode: z.string().optional(),
  node: z.string().optional(),
  problems: z.array(z.string()).readonly(),
  spool: z.object({ waiting: z.int(), rejected: z.int() }),
  socketRestored: z.int().optional(),
});

export type HealthRecord = z.output<typeof healthRecord>;
