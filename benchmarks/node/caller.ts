/**
 * The caller (caller/main.go) from TypeScript: pods of a node attached and detached through libcni, as a container
 * runtime does it.
 * Effects: runs plugins in pods of the node; libcni's cache of results in the node's directory.
 */
import { delimiter, join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { defaultCniPath } from "../../test/lab/cnitool.ts";
import { requireCommand } from "../../test/lab/command.ts";
import type { Node } from "../coordinator/node.ts";
import { requireUninterrupted } from "../harness/interruption.ts";

/** `count` pods with the numbers from `first`, `atOnce` of them at any time. */
export interface CallerBatch {
  /** The file of the network list. */
  readonly list: string;
  /** `POD` is both, and the pod's namespace deleted after them. */
  readonly verb: "ADD" | "DEL" | "POD";
  readonly atOnce: number;
  readonly first: number;
  readonly count: number;
}

/** Outcome of a batch: the time of each call, and of the whole batch. */
export interface CallerOutcome {
  readonly addMs: number[];
  readonly delMs: number[];
  wallMs: number;
}

const executable = join(root, "dist", "bench", "caller");
const LIMIT_MS = 300_000;

/** Carries out the batches in their order. Throws the error of a failed call, and after a signal. */
export async function callBatches(node: Node, batches: readonly CallerBatch[]): Promise<CallerOutcome[]> {
  requireUninterrupted();
  const path = defaultCniPath.join(delimiter);
  const argv = node.netns.enter([executable, path, join(node.directory, "cni-cache"), node.pods.path("")]);
  const stdin = batches.map((batch) => `${JSON.stringify(batch)}\n`).join("");
  return decodeOutcomes(await requireCommand(argv, { stdin, env: node.agent.env, timeoutMs: LIMIT_MS }));
}

/**
 * Decodes the output of caller/main.go: a line for each call, `{batch, verb, ns}`, and one for each batch, `{batch,
 * wallNs}`.
 */
export function decodeOutcomes(text: string): CallerOutcome[] {
  const outcomes: CallerOutcome[] = [];
  for (const line of text.trimEnd().split("\n")) {
    const { batch, verb, ns, wallNs } = JSON.parse(line);
    outcomes[batch] ??= { addMs: [], delMs: [], wallMs: Number.NaN };
    const outcome = outcomes[batch];
    if (verb === undefined) outcome.wallMs = wallNs / 1e6;
    else (verb === "ADD" ? outcome.addMs : outcome.delMs).push(ns / 1e6);
  }
  return outcomes;
}
