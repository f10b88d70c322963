/** Where objects, records, pods and NICs of a node disagree, as `GET /v1/check` answers it, and as `berthctl check` writes it to a report file. */
import { z } from "zod";

/** What is wrong, by kind. docs/diagnostics.md has a row for each. */
const DAMAGE_KINDS = [
  "duplicate",
  "lost-record",
  "lost-object",
  "orphan",
  "leak",
  "missing-address",
  "wrong-pool",
] as const;

const finding = z.object({
  kind: z.enum(DAMAGE_KINDS),
  /** `10.0.0.7`, `10.0.0.7/lab`. */
  address: z.string(),
  pool: z.string(),
  /** Empty if no pod is known. */
  namespace: z.string(),
  pod: z.string(),
  interface: z.string(),
  /** What disagrees: a clause. */
  text: z.string(),
  /** What to do about it: a sentence without a full stop. */
  remedy: z.string(),
  /** Whether `berthctl release --from-report` may release the address. */
  isReleasable: z.boolean(),
});

export const checkRecord = z.object({
  node: z.string(),
  /** RFC 3339. */
  time: z.string(),
  /** How many addresses were compared. */
  records: z.int(),
  nics: z.int(),
  /** Absent without a cluster. */
  objects: z.int().optional(),
  findings: z.array(finding),
  /** What could not be read: sentences. Nothing is found out about these. */
  problems: z.array(z.string()),
});

export type DamageKind = (typeof DAMAGE_KINDS)[number];
export type DamageFinding = z.output<typeof finding>;
export type CheckRecord = z.output<typeof checkRecord>;
