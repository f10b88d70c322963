/**
 * Where the time of a pod's start goes, by the log of the node's containerd (1.6, level debug).
 *
 *   created ─ scheduler, kubelet ─▶ RunPodSandbox ─ namespaces ─▶ plugins ─▶ pause container ─▶ RunPodSandbox returns
 *           ─ container created and started ─▶ StartContainer returns ─ kubelet reports ─▶ Ready
 */
import type { MeasuredPod } from "../../test/lab/nodes/measure.ts";

export const STAGES = [
  "until the runtime is asked: scheduler, kubelet, volumes",
  "the sandbox's namespaces",
  "network plugins",
  "the sandbox's container",
  "the pod's container",
  "until Ready is seen: kubelet, API server",
] as const;

/** Unix milliseconds of what containerd did for a pod. */
export interface SandboxTimes {
  readonly asked: number;
  readonly pluginsBegan: number;
  readonly pluginsEnded: number;
  readonly sandboxReady: number;
  readonly containerStarted: number;
}

const LINE = /^time="([^"]+)" level=\w+ msg="((?:[^"\\]|\\.)*)"(?: podsandboxid=(\w+))?/;
const SANDBOX =
  /^RunPodSandbox for &PodSandboxMetadata\{Name:[^,]*,Uid:([^,]+),.*\}(?: returns sandbox id \\"(\w+)\\")?$/;
const CREATED = /^CreateContainer within sandbox \\"(\w+)\\" for .* returns container id \\"(\w+)\\"$/;
const STARTED = /^StartContainer for \\"(\w+)\\" returns successfully$/;

/** By the pod's UID; a pod whose start is not complete in the log is missing. */
export function parseSandboxTimes(log: string): Map<string, SandboxTimes> {
  const asked = new Map<string, number>();
  const sandboxes = new Map<string, { readonly id: string; readonly ready: number }>();
  const began = new Map<string, number>();
  const ended = new Map<string, number>();
  const containers = new Map<string, string>();
  const started = new Map<string, number>();
  for (const line of log.split("\n")) {
    const [, time = "", text = "", id] = LINE.exec(line) ?? [];
    const ms = Date.parse(time);
    const [, uid, sandbox] = SANDBOX.exec(text) ?? [];
    if (uid !== undefined && sandbox === undefined) asked.set(uid, ms);
    if (uid !== undefined && sandbox !== undefined) sandboxes.set(uid, { id: sandbox, ready: ms });
    if (id !== undefined && text === "begin cni setup") began.set(id, ms);
    if (id !== undefined && text.startsWith("cni result: ")) ended.set(id, ms);
    const [, of, container] = CREATED.exec(text) ?? [];
    if (of !== undefined && container !== undefined) containers.set(container, of);
    const [, running] = STARTED.exec(text) ?? [];
    const owner = running === undefined ? undefined : containers.get(running);
    if (owner !== undefined) started.set(owner, ms);
  }
  const times = new Map<string, SandboxTimes>();
  for (const [uid, { id, ready }] of sandboxes) {
    const [askedMs, beganMs, endedMs, startedMs] = [asked.get(uid), began.get(id), ended.get(id), started.get(id)];
    if (askedMs === undefined || beganMs === undefined || endedMs === undefined || startedMs === undefined) continue;
    times.set(uid, {
      ...{ asked: askedMs, pluginsBegan: beganMs, pluginsEnded: endedMs },
      ...{ sandboxReady: ready, containerStarted: startedMs },
    });
  }
  return times;
}

/** Milliseconds of each of {@link STAGES}; together the time from created to Ready. */
export function stagesOf({ createdMs, readyMs }: MeasuredPod, times: SandboxTimes): number[] {
  const { asked, pluginsBegan, pluginsEnded, sandboxReady, containerStarted } = times;
  const moments = [createdMs, asked, pluginsBegan, pluginsEnded, sandboxReady, containerStarted, readyMs];
  return STAGES.map((_, index) => (moments[index + 1] ?? 0) - (moments[index] ?? 0));
}
