/** Figures of a real control plane, and what the simulated one makes of them. calibrate.ts measures them. */
import { formatFigure, formatTable } from "../../lab/statistics.ts";

/** One kind of request, with so many under way. */
export interface RequestCost {
  readonly kind: string;
  readonly atOnce: number;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly perSecond: number;
  /** Processor time of API server and etcd. */
  readonly serverCpuMs: number;
}

/** Writes to a kind that so many watches follow. */
export interface FanOut {
  readonly kind: string;
  readonly watchers: number;
  /** From the answer to the write until one watch has the event. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  readonly cpuMsPerWrite: number;
  readonly burstCpuMsPerWrite: number;
  readonly burstWritesPerSecond: number;
  /** Until the one watch has all of them. */
  readonly burstEventsPerSecond: number;
  readonly bytesPerWatcherAndWrite: number;
  /** Processors that the servers use while nothing is written. */
  readonly idleCpuShare: number;
  readonly serverRssMib: number;
}

export interface Calibration {
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  /** While it was measured: other work on the machine makes times longer, processor time hardly. */
  readonly loadAverage: string;
  readonly requests: readonly RequestCost[];
  readonly fanOut: readonly FanOut[];
  /** Size of one stored object as JSON. */
  readonly bytes: Readonly<Record<string, number>>;
  readonly serverRssMib: number;
  /** The built controller, after so many allocations were listed. */
  readonly controller:
    | {
        readonly allocations: number;
        readonly rssMib: number;
        readonly leadingMs: number;
        readonly startCpuMs: number;
      }
    | undefined;
}

export function describeCalibration({
  machine,
  versions,
  loadAverage,
  requests,
  fanOut,
  bytes,
  controller,
}: Calibration): string {
  const heading = `# Calibration of the simulated API server

Written by \`npm run calibrate\` (calibrate.ts); DO NOT EDIT. Machine: ${machine}; load ${loadAverage}.
${Object.entries(versions)
  .map(([name, version]) => `${name} ${version}`)
  .join(", ")}. etcd does not sync to disk.`;
  const requestTable = formatTable({
    title: "## Requests",
    columns: ["Request", "at once", "p50 ms", "p99 ms", "per second", "server CPU ms"],
    rows: requests.map((each) => [
      each.kind,
      String(each.atOnce),
      ...[each.p50Ms, each.p99Ms, each.perSecond, each.serverCpuMs].map(formatFigure),
    ]),
  });
  const fanTable = formatTable({
    title: "## Watches\n\nWrites one after the other, then a burst of sixteen at once, followed by so many watches.",
    columns: [
      "Kind",
      "watches",
      "delay p50 ms",
      "p99 ms",
      "CPU ms/write",
      "CPU ms/write in a burst",
      "writes/s",
      "events/s",
      "bytes/watch",
      "server MiB",
    ],
    rows: fanOut.map((each) => [
      each.kind,
      String(each.watchers),
      ...[
        each.delayP50Ms,
        each.delayP99Ms,
        each.cpuMsPerWrite,
        each.burstCpuMsPerWrite,
        each.burstWritesPerSecond,
        each.burstEventsPerSecond,
        each.bytesPerWatcherAndWrite,
        each.serverRssMib,
      ].map(formatFigure),
    ]),
  });
  const size = Object.entries(bytes).map(([kind, count]) => `${kind} ${count} bytes`);
  const process =
    controller === undefined
      ? ""
      : ` The controller with ${controller.allocations} allocations: ${formatFigure(controller.rssMib)} MiB resident; it led ${formatFigure(controller.leadingMs / 1000)} s after its start, with ${formatFigure(controller.startCpuMs / 1000)} s of processor time.`;
  const rest = `## Sizes\n\nStored objects as JSON: ${size.join(", ")}.${process}`;
  return `${[heading, requestTable, fanTable, rest].join("\n\n")}\n`;
}
