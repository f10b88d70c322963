/**
 * Compares the coordinator's attachments with the state that their ADDs left in the kernel, and restores it. An
 * attachment is compared by the request of its ADD; after a restart of the agent, by its record and the definition of
 * its network. Without a definition, it is not compared.
 */
import { setImmediate } from "node:timers/promises";
import { CniError } from "../../cni/error.ts";
import { type AttachRequest, decodePodArgs } from "../../cni/request.ts";
import { isSteady, type NodeFacts, type RowFacts } from "../../findings/node/find-damage.ts";
import { type AttachmentDrift, DRIFT_PROBLEMS } from "../../findings/node/find-drift.ts";
import { isFinished } from "../../ipam/leak.ts";
import { ApplyError } from "../../kernel/apply.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { messageOf } from "../../lib/describe.ts";
import { formatOperation } from "../../plan/text.ts";
import type { RepairRecord } from "../../records/check-record.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { OpenCoordinator } from "../coordinator/plugin.ts";
import { type RebuildDeps, rebuildRequest } from "../coordinator/rebuild-request.ts";

/** The coordinator's part of the agent. */
export type CoordinatorState = Pick<OpenCoordinator, "attachments" | "compare" | "repair" | "observeNode">;

interface DriftDeps extends RebuildDeps {
  readonly coordinator: CoordinatorState;
}

/** The registry's facts at one moment. */
type DriftFacts = Pick<NodeFacts, "rows" | "nowMs">;

/** An attachment that can be compared. */
interface Question {
  /** Of CHECK. */
  readonly request: AttachRequest;
  /** Undefined if another IPAM plugin assigned the addresses. */
  readonly row: Allocation | undefined;
  /** This agent has served its ADD, or knows it since its start: a DEL forgets it. */
  readonly isServed: boolean;
}

/** Compares the attachments. `problems`: sentences about those that cannot be compared. */
export async function readDrift(deps: DriftDeps, facts: DriftFacts) {
  const questions = await listQuestions(deps, facts);
  const drifts: AttachmentDrift[] = [];
  const failed = await visit(questions, async ({ request, row }) => {
    const found = await deps.coordinator.compare(request);
    const { containerId, ifName, netns } = request;
    const isDrift = found.operations.length > 0 || found.detour !== undefined;
    if (isDrift) drifts.push({ containerId, ifName, netns, row, ...found });
  });
  const problems = failed.map(({ nic, why }) => `The routes of interface ${nic} cannot be compared: ${why}`);
  return { drifts, compared: questions.length, problems };
}

/** Restores the attachments; what the kernel refuses is undone, and a finding. */
export async function repairDrift(deps: DriftDeps, facts: DriftFacts) {
  const repaired: RepairRecord[] = [];
  const failed = await visit(await listQuestions(deps, facts), async ({ request, row, isServed }) => {
    const operations = await deps.coordinator.repair(request, isServed);
    const { namespace = "", name = "" } = decodePodArgs(request.args);
    const { ifName, netns } = request;
    const about = { namespace: row?.namespace ?? namespace, pod: row?.pod ?? name, interface: ifName, netns };
    if (operations.length > 0) repaired.push({ ...about, operations: operations.map(formatOperation) });
  });
  return { repaired, findings: failed.map((each) => DRIFT_PROBLEMS.notRestored(each)) };
}

/** In order, one in a turn of the event loop. Returns the NICs of those that were refused, and why. */
async function visit(questions: readonly Question[], work: (question: Question) => Promise<void>) {
  const failed: { readonly nic: string; readonly why: string }[] = [];
  for (const question of questions) {
    try {
      await work(question);
    } catch (error) {
      // The namespace is gone, and the attachment with it.
      if (error instanceof NetnsError) continue;
      if (!(error instanceof CniError || error instanceof ApplyError)) throw error;
      const { ifName, netns } = question.request;
      failed.push({ nic: `${ifName} in ${netns}`, why: messageOf(error) });
    }
    await setImmediate();
  }
  return failed;
}

/** Returns the attachments that can be compared. */
async function listQuestions({ coordinator, networks, identifier }: DriftDeps, facts: DriftFacts): Promise<Question[]> {
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
    if (request !== undefined) questions.push({ request: asCheck(request), row, isServed: served.has(key) });
  }
  for (const [key, request] of served) {
    if (!recorded.has(key)) questions.push({ request: asCheck(request), row: undefined, isServed: true });
  }
  return questions;
}

const asCheck = (request: AttachRequest): AttachRequest => ({ ...request, command: "CHECK" });

function keyOf({ containerId, ifName }: Pick<Allocation, "containerId" | "ifName">): string {
  return `${containerId} ${ifName}`;
}

/** Whether the NIC should be as its ADD left it: neither ADD nor DEL is under way. */
function isLive({ row, pod, netns }: RowFacts, facts: DriftFacts): boolean {
  if (row.state !== "Bound" || netns !== "inUse" || !isSteady(row, facts)) return false;
  return pod.kind === "unknown" || (pod.kind === "present" && !pod.pod.deleting && !isFinished(pod.pod));
}
