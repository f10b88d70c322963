/**
 * The steps of more than one scene of the cluster: looking at objects, claims about pods and about the API server's
 * objects of them.
 */
import { attachmentOf } from "../../../test/lab/history/follow.ts";
import type { KubeObject } from "../../../test/lab/kube-client.ts";
import { eventually } from "../../../test/lab/waiting.ts";
import { formatColumns, type Narrator } from "../narrator.ts";
import { addressesOf, ping } from "../observe.ts";
import { ALLOCATIONS, IF_NAME, type Pod, type Stage } from "./stage.ts";

export type Scene = (stage: Stage, narrator: Narrator) => Promise<void>;

export function requirePod(stage: Stage, name: string): Pod {
  const pod = stage.pods.get(name);
  if (pod === undefined) throw new Error(`There is no pod ${name}`);
  return pod;
}

export function nodeOf(stage: Stage, index: number): Stage["nodes"][number] {
  const node = stage.nodes[index];
  if (node === undefined) throw new Error(`There is no node ${index}`);
  return node;
}

/** The objects in the order of their names. */
export async function allocations(stage: Stage): Promise<KubeObject[]> {
  return (await stage.plane.client.get(ALLOCATIONS)).items;
}

/** The objects of a pod's addresses, whatever their state. */
export async function allocationsOf(stage: Stage, { uid }: Pick<Pod, "uid">): Promise<KubeObject[]> {
  return (await allocations(stage)).filter(({ spec }) =>
    (spec.holders ?? []).some(({ podUID }: KubeObject) => podUID === uid),
  );
}

/** Returns the output of `kubectl get ipallocations.ipam.vendor.io`. */
export async function kubectlGetAllocations(stage: Stage): Promise<string[]> {
  const rows = (await allocations(stage)).map(({ metadata, spec }) => {
    const [holder] = spec.holders ?? [];
    return [metadata.name, spec.state, spec.pool, spec.node, holder?.pod ?? spec.workload?.member ?? ""];
  });
  return formatColumns([["NAME", "STATE", "POOL", "NODE", "POD"], ...rows]);
}

/** ADD, and then: the plugin's result, the kernel and the API server agree. */
export async function attach(stage: Stage, narrator: Narrator, pod: Pod): Promise<void> {
  const startMs = performance.now();
  const { exitCode, stderr } = await stage.call("add", pod);
  const tookMs = performance.now() - startMs;
  if (exitCode !== 0) throw new Error(`ADD of ${pod.name} failed: ${stderr.trim()}`);
  const present = (await addressesOf(pod.netns, IF_NAME, pod.addresses.length)).map((each) => each.replace(/\/.*/, ""));
  const objects = (await allocationsOf(stage, pod)).map(({ spec }) => spec.address as string);
  await Promise.all(pod.addresses.map((address) => stage.history.attached(attachmentOf(address, pod.uid))));
  const wanted = [...pod.addresses].sort().join();
  const isSo = wanted !== "" && present.sort().join() === wanted && objects.sort().join() === wanted;
  narrator.claim(
    `${pod.name} on ${pod.node.name} has what the API server says`,
    isSo,
    `${pod.addresses.join(", ")} (${tookMs.toFixed(0)} ms)`,
  );
}

/** DEL; the history hears of it before. */
export async function detach(stage: Stage, pod: Pod): Promise<{ readonly tookMs: number; readonly isDone: boolean }> {
  for (const address of pod.addresses) stage.history.leaving(attachmentOf(address, pod.uid));
  const startMs = performance.now();
  const { exitCode } = await stage.call("del", pod);
  return { tookMs: performance.now() - startMs, isDone: exitCode === 0 };
}

export async function claimPing(narrator: Narrator, from: Pod, to: Pod): Promise<void> {
  for (const address of to.addresses) {
    const { answered, seen } = await ping(from.netns, address, { count: 1 });
    narrator.claim(`${from.name} on ${from.node.name} reaches ${to.name} on ${to.node.name}`, answered, seen);
  }
}

/** Waits until these addresses have no object any more; gives those that have. */
export function awaitFree(stage: Stage, addresses: readonly string[], patienceMs: number): Promise<string[]> {
  return eventually(
    async () => (await allocations(stage)).map(({ spec }) => spec.address).filter((each) => addresses.includes(each)),
    (left) => left.length === 0,
    patienceMs,
  );
}
