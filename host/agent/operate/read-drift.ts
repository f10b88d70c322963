/**
 * Reads the differences between the coordinator's attachments and the state that their ADDs left in the kernel. An
 * attachment is compared by the request of its ADD; after a restart of the agent, by its record and the definition of
 * its network. Without a definition, it is not compared.
 */
import { setImmediate } from "node:timers/promises";
import { CniError } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { isSteady, type NodeFacts, type RowFacts } from "../../findings/node/find-damage.ts";
import type { AttachmentDrift, ComparedAttachment } from "../../findings/node/find-drift.ts";
import { isFinished } from "../../ipam/leak.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { OpenCoordinator } from "../coordinator/plugin.ts";
import { type RebuildDeps, rebuildRequest } from "../coordinator/rebuild-request.ts";

/** The coordinator's part of the agent. */
export type CoordinatorState = Pick<OpenCoordinator, "attachments" | "compare" | "repair" | "observeNode">;

export interface DriftDeps extends RebuildDeps {
  readonly coordinator: CoordinatorState;
}

/** The registry's facts at one moment. */
export type DriftFacts = Pick<NodeFacts, "rows" | "nowMs">;

interface Question {
  readonly attachment: ComparedAttachment;
  readonly request: AttachRequest;
  /** This agent has served its ADD, or knows it since its start: a DEL forgets it. */
  readonly isServed: boolean;
}

/**
 * Compares the attachments in order, one in a turn of the event loop. `isWanted` leaves attachments out.
 * `uncompared`: containers whose comparison failed.
 */
export async function readDrift(
  deps: DriftDeps,
  facts: DriftFacts,
  isWanted: (attachment: ComparedAttachment) => boolean,
): Promise<{ drifts: AttachmentDrift[]; compared: number; uncompared: string[]; problems: string[] }> {
  const questions = await listQuestions(deps, facts);
  const drifts: AttachmentDrift[] = [];
  const uncompared: string[] = [];
  const problems: string[] = [];
  for (const { attachment, request } of questions) {
    if (!isWanted(attachment)) continue;
    try {
      const found = await deps.coordinator.compare(request);
      if (found.operations.length > 0 || found.detour !== undefined) drifts.push({ attachment, ...found });
    } catch (error) {
      // The namespace is gone, and the attachment with it.
      if (error instanceof NetnsError) continue;
      if (!(error instanceof CniError)) throw error;
      uncompared.push(request.containerId);
      problems.push(
        `The routes of interface ${request.ifName} in ${request.netns} cannot be compared: ${messageOf(error)}`,
      );
    }
    await setImmediate();
  }
  return { drifts, compared: questions.length, uncompared, problems };
}

/** Returns the attachments that can be compared, each with a request of CHECK. */
export async function listQuestions(
  { coordinator, networks, identifier }: DriftDeps,
  facts: DriftFacts,
): Promise<Question[]> {
  const served = new Map(coordinator.attachments.requests.map((request) => [keyOf(request), request]));
  const questions: Question[] = [];
  const recorded = new Set<string>();
  for (const [key, rows] of Map.groupBy(facts.rows, ({ row }) => keyOf(row))) {
    recorded.add(key);
    const [first] = rows;
    if (first === undefined || !rows.every((each) => isLive(each, facts))) continue;
    const { row } = first;
    const request =
      served.get(key) ??
      (await rebuildRequest(
        { networks, identifier },
        rows.map((each) => each.row),
      ));
    if (request !== undefined) questions.push(questionOf(request, { row, isServed: served.has(key) }));
  }
  for (const [key, request] of served) {
    if (!recorded.has(key)) questions.push(questionOf(request, { row: undefined, isServed: true }));
  }
  return questions;
}

function questionOf(
  request: AttachRequest,
  { row, isServed }: { readonly row: Allocation | undefined; readonly isServed: boolean },
): Question {
  const { containerId, ifName, netns } = request;
  return { attachment: { containerId, ifName, netns, row }, request: { ...request, command: "CHECK" }, isServed };
}

function keyOf({ containerId, ifName }: Pick<Allocation, "containerId" | "ifName">): string {
  return `${containerId} ${ifName}`;
}

/** Whether the NIC should be as its ADD left it: neither ADD nor DEL is under way. */
function isLive({ row, pod, netns }: RowFacts, facts: Pick<DriftFacts, "nowMs">): boolean {
  if (row.state !== "Bound" || netns !== "inUse" || !isSteady(row, facts)) return false;
  return pod.kind === "unknown" || (pod.kind === "present" && !pod.pod.deleting && !isFinished(pod.pod));
}
