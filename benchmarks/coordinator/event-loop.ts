/**
 * Whether the agent answers others while DELs have the kernel delete veths: questions for its health, one after the other, with nothing
 * else under way and beside DELs. What an answer takes longer then is what the event loop was held, and what the CPU was taken away.
 * Effects: attaches and detaches pods; questions on the agent's socket.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { runBatch } from "../harness/runner.ts";
import type { Node } from "./node.ts";
import { preparePods } from "./pods.ts";

export interface HealthRow {
  readonly name: string;
  readonly answerMs: readonly number[];
}

/** Between an answer and the next question: enough for the agent to do something else. */
const PAUSE_MS = 2;

/** Detaches `count` pods, one after the other. */
export async function measureHealth(node: Node, count: number): Promise<HealthRow[]> {
  const { first, add, del } = await preparePods(node, count, { families: "dual stack" });
  await runBatch({ subject: add, atOnce: 1, first, count }, node.netns);
  const startMs = performance.now();
  const beside = await askBeside(node, runBatch({ subject: del, atOnce: 1, first, count }, node.netns));
  const idle = await askBeside(node, sleep(performance.now() - startMs));
  await node.pods.remove(first, count);
  return [
    { name: `nothing else, ${node.name}`, answerMs: idle },
    { name: `beside DELs, ${node.name}`, answerMs: beside },
  ];
}

/** Asks until `work` is done. */
async function askBeside(node: Node, work: Promise<unknown>): Promise<number[]> {
  const state = { isOver: false };
  const ended = work.finally(() => {
    state.isOver = true;
  });
  ended.catch(() => {}); // awaited below
  const answers: number[] = [];
  while (!state.isOver) {
    const startMs = performance.now();
    await node.agent.request("/v1/health");
    answers.push(performance.now() - startMs);
    await sleep(PAUSE_MS);
  }
  await ended;
  return answers;
}
