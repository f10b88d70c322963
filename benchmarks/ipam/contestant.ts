/**
 * A contestant of the comparison: an ADD and a DEL, mostly to execute, and the daemon behind them, if any.
 * Implemented by floor.ts, host-local.ts, berth.ts and the cluster's; measured by measure.ts.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { createNetns, type Netns } from "../../test/lab/netns.ts";
import type { Batch, BatchOutcome, Subject } from "../harness/runner.ts";

/** A subject to execute, or a function that does such calls in this process. */
export type Work = Subject | ((batch: Omit<Batch, "subject">) => Promise<BatchOutcome>);

/** `W` is {@link Work} where some of those compared are not executed. */
export interface Contestant<W extends Work = Subject> {
  readonly name: string;
  readonly add: W;
  readonly del: W;
  /** Namespace in which the plugins are executed. Default: the caller's. */
  readonly netns?: Netns;
  /** Prepares the ADDs with the numbers from `first` on; not measured. Returns the first number if it chose others. */
  readonly prepare?: (first: number, count: number) => Promise<number | undefined>;
  /** After their ADDs and before their DELs; not measured. */
  readonly terminate?: (first: number, count: number) => Promise<void>;
  /** After their DELs, and not measured: waits until nothing of them goes on behind the others' backs. */
  readonly finish?: (first: number, count: number) => Promise<void>;
  /** The daemon's pid; undefined when there is none. */
  readonly daemonPid: number | undefined;
  /** Ends the daemon and cleans up. */
  close(): Promise<void>;
}

/** Folder of a benchmark's files, and the pod's namespace that the calls name. */
export interface Place {
  readonly directory: string;
  readonly netnsPath: string;
}

/** Makes them for the benchmark of that name; `stack` removes them. */
export async function openPlace(stack: AsyncDisposableStack, name: string): Promise<Place> {
  const directory = join(root, ".scratch", `bench-${name}-${process.pid}`);
  mkdirSync(directory, { recursive: true });
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const netns = await createNetns(`berth-${name}-${process.pid}`);
  stack.defer(() => netns.delete());
  return { directory, netnsPath: netns.path };
}

/** ADD and DEL of one executable; `more` is added to their environment. */
export function pluginCalls(
  path: string,
  stdinFile: string,
  place: Place,
  more?: Record<string, string>,
): Pick<Contestant, "add" | "del"> {
  const call = (command: "ADD" | "DEL"): Subject => ({ path, stdinFile, env: callEnvironment(command, place, more) });
  return { add: call("ADD"), del: call("DEL") };
}

/** The environment of a plugin's call as kubelet's runtime sets it; {n} makes every run another pod. */
export function callEnvironment(
  command: "ADD" | "DEL",
  place: Place,
  more: Record<string, string> = {},
): Record<string, string> {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "bench-{n}",
    CNI_NETNS: place.netnsPath,
    CNI_IFNAME: "eth0",
    CNI_ARGS:
      "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME=pod-{n};K8S_POD_INFRA_CONTAINER_ID=bench-{n};K8S_POD_UID=uid-{n}",
    CNI_PATH: place.directory,
    ...more,
  };
}
