/**
 * Asks for quarantined addresses again, through the node's link under the NIC that met the conflict: silence frees an address, an
 * answer postpones it (allocation rule 12). So it asks for those of nodes that are lost, when this one was told to (rule 2).
 * Called by the janitor.
 * Effects: frames on links of the node; those of the registry.
 */
import { DetectionError } from "../../coordinator/detection-error.ts";
import { QUARANTINE_FIRST_PROBE_MS, QUARANTINE_PROBE_MAX_MS } from "../../ipam/limits.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation } from "../../registry/registry.ts";
import { PROBES_AT_ONCE, QUARANTINE_WINDOW_MS } from "../limits.ts";
import type { QuarantineKeeper, QuarantineTools } from "./quarantine-keeper.ts";

/** Asks for all that is due, PROBES_AT_ONCE at a time. Ends early when the keeper is closed. */
export async function probeQuarantined(tools: QuarantineTools, keeper: QuarantineKeeper): Promise<void> {
  const { registry, nowMs } = tools;
  const dueMs = nowMs();
  while (!keeper.signal.aborted) {
    const due = await registry.findQuarantined({ dueMs, limit: PROBES_AT_ONCE });
    await Promise.all(due.map((each) => probe(tools, keeper, each)));
    if (due.length < PROBES_AT_ONCE) return;
  }
}

type Judgement = "silent" | "answered" | "unknown";

async function probe(tools: QuarantineTools, keeper: QuarantineKeeper, allocation: Allocation): Promise<void> {
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
async function judge(tools: QuarantineTools, keeper: QuarantineKeeper, allocation: Allocation): Promise<Judgement> {
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
