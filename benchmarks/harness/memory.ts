/**
 * Memory of processes, in megabytes as the targets are.
 * Effects: a process of Node.js, for what Node.js itself takes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { daemonAnonymousMib, daemonRssMib, formatFigure, type Table } from "../../test/lab/statistics.ts";
import type { Target } from "./report.ts";
import { tableOf } from "./table.ts";

/** Time from a process's start, or its first answer, until it is at rest: milliseconds. */
const REST_MS = 2_000;

const MIB = 1024 * 1024;

export interface MemoryFigure {
  readonly name: string;
  readonly rssMb: number;
  readonly anonymousMb: number;
}

/** `of`: whose memory it is. */
export function tabulateMemory(of: string, figures: readonly MemoryFigure[]): Table {
  const columns = [
    ["MB", ({ name }: MemoryFigure) => name],
    ["resident", ({ rssMb }: MemoryFigure) => rssMb],
    ["of it anonymous", ({ anonymousMb }: MemoryFigure) => anonymousMb],
  ] as const;
  return tableOf(`Memory of the ${of}`, columns, figures);
}

/** The target that it is at most `limitMb` resident. */
export function atMostMb({ name, rssMb }: MemoryFigure, limitMb: number): Target {
  return {
    what: `resident memory: ${name}`,
    wanted: `≤ ${limitMb} MB`,
    measured: `${formatFigure(rssMb)} MB`,
    isMet: rssMb <= limitMb,
  };
}

export function readMemory(name: string, pid: number): MemoryFigure {
  const mb = (mib: number): number => (mib * MIB) / 1e6;
  return { name, rssMb: mb(daemonRssMib(pid)), anonymousMb: mb(daemonAnonymousMib(pid)) };
}

/** Returns what Node.js itself takes. */
export async function readEmptyNode(): Promise<MemoryFigure> {
  const child = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1e6)"], { stdio: "ignore" });
  await once(child, "spawn");
  await sleep(REST_MS);
  const figure = readMemory("empty Node.js", child.pid ?? 0);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return figure;
}
