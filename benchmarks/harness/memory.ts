/** Memory of processes, in megabytes as the targets are. */
import { daemonAnonymousMib, daemonRssMib, formatFigure, type Table } from "../../test/lab/statistics.ts";
import type { Target } from "./report.ts";
import { tableOf } from "./table.ts";

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
