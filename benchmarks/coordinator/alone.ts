/**
 * The coordinator alone: ADD, CHECK and DEL from exec to exit on pods whose NIC is ready, beside the floors of the
 * same run.
 * Effects: runs plugins in pods that it makes.
 */
import { daemonCpuMs } from "../../test/lab/statistics.ts";
import { runBatch, type Sample, type Subject } from "../harness/runner.ts";
import type { Contestant } from "../ipam/contestant.ts";
import type { Families } from "./configuration.ts";
import type { Node } from "./node.ts";
import { preparePods } from "./pods.ts";

export interface Course {
  /** Rounds that are measured, after `warmUpRounds` that are not. */
  readonly rounds: number;
  readonly warmUpRounds: number;
  readonly podsPerRound: number;
}

/** A verb's samples, and the agent's CPU time per call of each round. */
export interface Calls {
  readonly samples: Sample[];
  readonly agentMs: number[];
}

export interface AloneRow {
  readonly name: string;
  /** Undefined for a floor. */
  readonly families?: Families;
  readonly add: Calls;
  /** Undefined for a floor. */
  readonly check?: Calls;
  readonly del?: Calls;
}

export const FAMILY_CHOICES: readonly Families[] = ["IPv4", "dual stack"];

interface Turn {
  readonly row: AloneRow;
  run(measured: boolean): Promise<void>;
}

const noCalls = (): Calls => ({ samples: [], agentMs: [] });

/** Measures floors and nodes in turn; each round begins with another. */
export async function measureAlone(
  floors: readonly Contestant[],
  nodes: readonly Node[],
  course: Course,
): Promise<AloneRow[]> {
  const turns = [
    ...floors.map((floor) => floorTurn(floor, course)),
    ...nodes.flatMap((node) => FAMILY_CHOICES.map((family) => nodeTurn(node, family, course))),
  ];
  for (let round = 0; round < course.warmUpRounds + course.rounds; round++) {
    for (let index = 0; index < turns.length; index++)
      await turns[(round + index) % turns.length]?.run(round >= course.warmUpRounds);
  }
  return turns.map(({ row }) => row);
}

function floorTurn({ name, add, daemonPid }: Contestant, { podsPerRound: count }: Course): Turn {
  const row = { name, add: noCalls() };
  const run = async (measured: boolean): Promise<void> => {
    const calls = measured ? row.add : noCalls();
    await measureCalls(calls, daemonPid, () => runBatch({ subject: add, atOnce: 1, first: 0, count }));
  };
  return { row, run };
}

function nodeTurn(node: Node, families: Families, { podsPerRound: count }: Course): Turn {
  const row = {
    name: `coordinator, ${families}, ${node.name}`,
    families,
    add: noCalls(),
    check: noCalls(),
    del: noCalls(),
  };
  const run = async (measured: boolean): Promise<void> => {
    const { first, add, check, del } = await preparePods(node, count, { families });
    const call = (calls: Calls, subject: Subject): Promise<void> =>
      measureCalls(measured ? calls : noCalls(), node.agent.pid, () =>
        runBatch({ subject, atOnce: 1, first, count }, node.netns),
      );
    await call(row.add, add);
    await call(row.check, check);
    await call(row.del, del);
    await node.pods.remove(first, count);
  };
  return { row, run };
}

async function measureCalls(
  calls: Calls,
  daemonPid: number | undefined,
  run: () => Promise<{ readonly samples: readonly Sample[] }>,
): Promise<void> {
  const cpuMs = (): number => (daemonPid === undefined ? 0 : daemonCpuMs(daemonPid));
  const beforeMs = cpuMs();
  const { samples } = await run();
  calls.samples.push(...samples);
  calls.agentMs.push((cpuMs() - beforeMs) / samples.length);
}
