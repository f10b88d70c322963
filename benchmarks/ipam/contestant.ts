/**
 * What takes part in the comparison: an ADD and a DEL to execute, and the daemon behind them, if any.
 * Implemented by floor.ts, host-local.ts and berth.ts; measured by measure.ts.
 * Effects: none.
 */
import type { Subject } from "../harness/runner.ts";

export interface Contestant {
  readonly name: string;
  readonly add: Subject;
  readonly del: Subject;
  /** The daemon's pid; undefined when there is none. */
  readonly daemonPid: number | undefined;
  /** Ends the daemon and removes what was made. */
  close(): Promise<void>;
}

/** Where a benchmark keeps its files, and the pod's namespace that the calls name. */
export interface Place {
  readonly directory: string;
  readonly netnsPath: string;
}

/** The environment of a plugin's call as kubelet's runtime sets it; {n} makes every run another pod. */
export function callEnvironment(
  command: "ADD" | "CHECK" | "DEL",
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
