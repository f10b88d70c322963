/** The answer that an ADD of a pod would get now, or the known facts about a pool, as `GET /v1/explain` answers it. */
import * as z from "zod";

const address = z.object({
  address: z.string(),
  prefixLength: z.int(),
  pool: z.string(),
  /** The source of the address (docs/audit-log.md). */
  source: z.string(),
  /** The reason for this address: a clause. */
  reason: z.string(),
});

/** A pool that the rule names. Counts are text: an IPv6 pool has more addresses than a JSON number can count. */
const candidate = z.object({
  name: z.string(),
  family: z.union([z.literal(4), z.literal(6)]),
  /** Why it is passed over; absent: it fits. */
  refusal: z.string().optional(),
  free: z.string().optional(),
  total: z.string().optional(),
});

const nic = z.object({
  interface: z.string(),
  /** Absent if it is unknown. */
  network: z.string().optional(),
  /** `foreign`: another IPAM plugin serves the NIC. */
  outcome: z.enum(["allocated", "refused", "foreign"]),
  /** Code of a refusal, as the runtime would get it (docs/errors.md). */
  code: z.int().optional(),
  message: z.string().optional(),
  details: z.string().optional(),
  addresses: z.array(address),
  /** The rule that names the pools; absent if none does. */
  rule: z.string().optional(),
  pools: z.array(candidate),
  /** Time that the ADD would wait: milliseconds. */
  waitedMs: z.number().optional(),
});

export const explanationRecord = z.object({
  /** Whether an ADD of every NIC would succeed. True for a pool. */
  succeeds: z.boolean(),
  /** For a person. The first lines say what an ADD of each NIC would get; in agents before 0.5 the last lines do. */
  lines: z.array(z.string()),
  /** Empty for a pool. */
  nics: z.array(nic),
});

export type AddressRecord = z.output<typeof address>;
export type CandidateRecord = z.output<typeof candidate>;
export type NicRecord = z.output<typeof nic>;
export type ExplanationRecord = z.output<typeof explanationRecord>;

/** Returns the line that tells how an ADD of the NIC would end. */
export function describeOutcome({
  interface: ifName,
  network,
  outcome,
  code,
  message,
  addresses,
  waitedMs = 0,
}: NicRecord): string {
  if (outcome === "foreign")
    return `an ADD of ${ifName} does not come to Berth: network "${network}" has another IPAM plugin`;
  if (outcome === "refused") return `an ADD of ${ifName} now would be refused with code ${code}: ${message}`;
  const got = addresses.map(({ address, pool, reason }) => `${address} of pool "${pool}", ${reason}`).join("; and ");
  const wait = waitedMs > 0 ? `, after a wait of ${(waitedMs / 1_000).toFixed(1)} s` : "";
  return `an ADD of ${ifName} now would get ${got}${wait}`;
}

/** Returns the explanation that an agent answered; an error becomes its lines. Undefined for anything else. */
export function decodeExplanation(answer: unknown): ExplanationRecord | undefined {
  const decoded = explanationRecord.safeParse(answer);
  if (decoded.success) return decoded.data;
  const { error, msg = error, details = "" } = Object(answer) as { error?: string; msg?: string; details?: string };
  if (msg === undefined) return undefined;
  return { succeeds: false, lines: details === "" ? [msg] : [msg, ...details.split("\n")], nics: [] };
}
