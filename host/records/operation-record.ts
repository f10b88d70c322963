/** Operations of an agent, planned or done, on addresses that an administrator releases or quarantines. */
import * as z from "zod";

export const operationRecord = z.object({
  steps: z.array(
    z.object({
      /** As on the command line: `10.0.0.7`, `10.0.0.7/lab`. */
      address: z.string(),
      /** The operation on the address: a clause. */
      what: z.string(),
      /** Why it is not done: a clause. */
      refusal: z.string().optional(),
      /** Whether the refusal gives way to `--force`. */
      isForceable: z.boolean().optional(),
      /** Refused because nothing is left to do: the finding of the report no longer holds. */
      isOver: z.boolean().optional(),
    }),
  ),
  /** False if a step was refused, and in a dry run. */
  isDone: z.boolean(),
});

export type OperationRecord = z.output<typeof operationRecord>;
