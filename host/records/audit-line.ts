/**
 * One line of the audit log (docs/audit-log.md): the pod, the addresses that it got or lost, the time, and the reason.
 * The schema is the decoder of the reader, the type of the writers, and the table of the page.
 */
import * as z from "zod";

export const AUDIT_EVENTS = {
  ADD: "a NIC got its addresses, or was refused",
  DEL: "a NIC released its addresses",
  CHECK: "a CHECK failed",
  GC: "a CNI GC released the addresses of a NIC",
  STATUS: "a STATUS failed: the agent could not serve",
  REQUEST: "a request that could not be understood",
  ADOPT: "addresses of another IPAM became a running pod's own",
  UNDO: "an ADD's answer was not delivered, so its addresses were released",
  COLLECT: "the agent released the addresses of a pod that is gone",
  QUARANTINE: "another machine answers for an address, or its node is lost",
  RELEASE: "an address left quarantine, or the controller released it",
  HELD: "the agent has started; a NIC has these addresses",
  START: "the agent has started; the addresses in use follow as HELD",
} as const;

export type AuditName = keyof typeof AUDIT_EVENTS;

/** The sources of an address, in the order in which an ADD asks them. */
export const ADDRESS_SOURCES = {
  own: "the NIC had it already, or had it until just now",
  prefetched: "claimed ahead of the ADD",
  requested: "requested by the runtime, the pod or its IPAMClaim",
  retained: "retained for the pod's address owner",
  free: "free",
  cooling: "released on this node a short while ago",
  "others-cooling": "released on another node a short while ago",
  quarantined: "in quarantine for long, and found silent",
} as const;

export type SourceName = keyof typeof ADDRESS_SOURCES;

/** Longest of the {@link LONG_TEXTS} of a line: UTF-16 units. */
const MAX_AUDIT_MESSAGE = 2_048;

const LONG_TEXTS = ["message", "details", "names"];

/** Longest other text of a line: UTF-16 units. */
const MAX_AUDIT_TEXT = 256;

/** Most addresses that one line names. */
const MAX_AUDIT_ADDRESSES = 32;

const names = <T extends string>(texts: Readonly<Record<T, string>>) => Object.keys(texts) as [T, ...T[]];

/** Keys in the order of writing. Texts and lists are empty where nothing is known. */
export const auditLineSchema = z.object({
  time: z.string().meta({ description: "End of the request, or of the change: RFC 3339, UTC" }),
  level: z.string().meta({ description: "`info`; `warn` for a refusal and a quarantine" }),
  audit: z.enum(names(AUDIT_EVENTS)).meta({ title: "text", description: "The event" }),
  plugin: z.string().meta({ description: "`berth`, `coordinator`, `ifacer`; `controller` for its releases" }),
  node: z.string().meta({ description: "Node of the NIC" }),
  namespace: z.string().meta({ description: "Namespace of the pod" }),
  pod: z.string().meta({ description: "Name of the pod" }),
  uid: z.string().meta({ description: "Its UID; the container's ID if no pod is known" }),
  interface: z.string().meta({ description: "NIC of the pod" }),
  network: z.string().meta({ description: "`name` of the network's configuration" }),
  addresses: z.array(z.string()).meta({ description: "Addresses, without prefix length" }),
  pools: z.array(z.string()).meta({ description: "Pool of each address" }),
  sources: z.array(z.string()).meta({ description: "Of an ADD: where each address came from" }),
  rule: z.string().meta({ description: "Of an ADD: the rule that named the pools. Of a release by Berth: why" }),
  container: z.string().meta({ description: "Container ID of the sandbox" }),
  code: z.int().meta({ description: "0, or the code of the refusal ([errors](errors.md))" }),
  ms: z.number().meta({ description: "Milliseconds of the request" }),
  repeats: z.int().optional().meta({ description: "How many equal refusals have no line" }),
  message: z.string().optional().meta({ description: "Text of the refusal, as the runtime has it" }),
  details: z.string().optional().meta({ description: "Its details, such as pools that were passed over" }),
  names: z.string().optional().meta({
    description: "The text with names that the pod's owner does not get",
  }),
});

export type AuditLine = z.output<typeof auditLineSchema>;

/** The answer to GET /v1/history: the oldest lines that match, or the newest, from the agent's own files. */
export const historyPageSchema = z.object({
  node: z.string(),
  lines: z.array(auditLineSchema),
  /** Time of the oldest line in the files; absent if there is none. */
  from: z.string().optional(),
  /** Number of lines missing in the part that was searched, at most. */
  missing: z.int(),
  /** Of the newest lines: whether older ones may exist. */
  hasOlder: z.boolean().optional(),
  /** The query of the next page, in place of the same keys of this one; absent on the last. */
  next: z.object({ since: z.string(), skip: z.int() }).optional(),
});

export type HistoryPage = z.output<typeof historyPageSchema>;

/** Returns undefined if the text holds no line. */
export function parseAuditLine(text: string): AuditLine | undefined {
  try {
    const found = auditLineSchema.safeParse(JSON.parse(text));
    return found.success ? found.data : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the line with texts and lists of bounded length. */
export function boundLine(line: AuditLine): AuditLine {
  const bounded = Object.entries(line).map(([key, value]) => {
    const most = LONG_TEXTS.includes(key) ? MAX_AUDIT_MESSAGE : MAX_AUDIT_TEXT;
    if (Array.isArray(value)) return [key, value.slice(0, MAX_AUDIT_ADDRESSES).map((each) => cut(each, most))];
    return [key, typeof value === "string" ? cut(value, most) : value];
  });
  return Object.fromEntries(bounded.filter(([, value]) => value !== undefined));
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
