/** `kubectl berth status`: one screen about a cluster, and with --wait whether it is ready by then. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Call, type CommandLine, type OutputFlags, withRecordOutput } from "../command-line.ts";
import { ExitCode, UsageError } from "../exit-code.ts";
import type { StatusRecord } from "../status/read-status.ts";
import { parseSpan } from "../times.ts";

interface StatusFlags extends OutputFlags {
  /** True: without a time. */
  readonly wait?: string | true;
}

/** Longest time that --wait waits without a time. */
const WAIT = "5m";

/** Between two looks: milliseconds. */
const LOOK_MS = 2_000;

export function addStatus(cli: CommandLine): void {
  withRecordOutput(
    cli.command(
      "status",
      "Show a cluster on one screen: agents, controllers, versions, pools, conflicts, repairs, pods that wait",
      ["status", "status --wait 10m"],
    ),
  )
    .option("--wait [duration]", `until agents and controller are ready, at most this long; alone ${WAIT}`)
    .action((flags: StatusFlags) => cli.run(flags, (call) => showStatus(cli, call, flags)));
}

async function showStatus(cli: CommandLine, call: Call, { wait }: StatusFlags): Promise<ExitCode> {
  if (!cli.isCluster)
    throw new UsageError("status is about a cluster: give --kubeconfig or --context; of this host: berthctl check");
  const limitMs = wait === undefined ? 0 : parseSpan("--wait", wait === true ? WAIT : wait);
  const source = await cli.openCluster();
  try {
    const { readStatus } = await import("../status/read-status.ts");
    const look = () => readStatus({ api: source.api, source, now: new Date() });
    const status = await lookUntilReady(look, { limitMs, cli, signal: call.signal });
    const { describeStatus } = await import("../status/describe-status.ts");
    await call.out.report(describeStatus(status, cli.self), status);
    if (!status.isReady && limitMs > 0) call.note(`Not ready after ${limitMs / 1_000} s`);
    return status.isReady ? ExitCode.Success : ExitCode.Problem;
  } finally {
    await source.close();
  }
}

interface Waiting {
  readonly limitMs: number;
  readonly cli: CommandLine;
  readonly signal: AbortSignal;
}

/** Rejects if the last look fails, and when the signal ends. */
async function lookUntilReady(
  look: () => Promise<StatusRecord>,
  { limitMs, cli, signal }: Waiting,
): Promise<StatusRecord> {
  const endMs = performance.now() + limitMs;
  const { progress = () => {} } = cli.place;
  try {
    for (;;) {
      const isLast = performance.now() + LOOK_MS >= endMs;
      const status = await look().catch((error: unknown) => {
        if (isLast) throw error;
      });
      if (status !== undefined && (status.isReady || isLast)) return status;
      const { agents, controllers } = status ?? {};
      progress(
        `${agents?.ready ?? 0} of ${agents?.wanted ?? "?"} agents, ${controllers?.ready ?? 0} controllers are ready`,
      );
      await sleep(LOOK_MS, undefined, { signal });
    }
  } finally {
    progress("");
  }
}
