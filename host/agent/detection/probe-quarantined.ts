/**
 * Asks for quarantined addresses again, through the node's link under the NIC that met the conflict: silence frees an address, an
 * answer postpones it (conflict). So it asks for those of nodes that are lost, when this one was told to (node-lost).
 * Effects: frames on links of the node; those of the registry.
 */
import { DetectionError } from "../../coordinator/detection-error.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { QuarantineProber, QuarantineTools } from "./quarantine-prober.ts";

/** How long silence must last before an address leaves quarantine: milliseconds. Nobody waits for it. @limit */
export const QUARANTINE_WINDOW_MS = 1_000;

/** A quarantined address is asked again after this, and then each time after as long as it has been in quarantine: milliseconds. @limit */
export const QUARANTINE_FIRST_PROBE_MS = 5_000;

/** Most quarantined addresses that are asked for at once; each has sockets of its own. @limit */
export const PROBES_AT_ONCE = 32;

/** A quarantined address is asked at least this often: milliseconds. @limit */
export const QUARANTINE_PROBE_MAX_MS = 300_000;

/** Asks for all that is due, PROBES_AT_ONCE at a time. Ends early when the keeper is closed. */
export async function probeQuarantined(tools: QuarantineTools, keeper: QuarantineProber): Promise<void> {
  const { registry, nowMs } = tools;
  const dueMs = nowMs();
  while (!keeper.signal.aborted) {
    const due = await registry.findQuarantined({ dueMs, limit: PROBES_AT_ONCE });
    await Promise.all(due.map((each) => probe(tools, keeper, each)));
    if (due.length < PROBES_AT_ONCE) return;
  }
}

type Judgement = "silent" | "answered" | "unknown";

async function probe(tools: QuarantineTools, keeper: QuarantineProber, allocation: Allocation): Promise<void> {
  const { registry, nowMs, log } = tools;
  const judgement = await judge(tools, keeper, allocation);
  if (keeper.signal.aborted) return;
  if (judgement === "silent") {
    await registry.endQuarantine(allocation);
    log.info({ address: formatIp(allocation.ip), pool: allocation.pool }, "Out of quarantine");
    return;
  }
  const inQuarantineMs = nowMs() - allocation.sinceMs;
  const waitMs = Math.min(Math.max(inQuarantineMs, QUARANTINE_FIRST_PROBE_MS), QUARANTINE_PROBE_MAX_MS);
  await registry.postponeProbe(allocation, nowMs() + waitMs);
}

/** A link that is gone, off or without a carrier says nothing about the address. */
async function judge(tools: QuarantineTools, keeper: QuarantineProber, allocation: Allocation): Promise<Judgement> {
  const { detect, findNodeLink, findPoolLink, random } = tools;
  const { parent = "" } = allocation.quarantine ?? {};
  // Of an address of a lost node no link is known here: any that its pool's NICs hang on.
  const link = parent === "" ? await findPoolLink?.(allocation) : findNodeLink(parent);
  if (link === undefined) return "unknown";
  const question = { link, addresses: [allocation.ip], windowMs: QUARANTINE_WINDOW_MS, random, signal: keeper.signal };
  try {
    return (await detect(question)) === undefined ? "silent" : "answered";
  } catch (error) {
    if (error instanceof DetectionError) return "unknown";
    throw error;
  }
}
