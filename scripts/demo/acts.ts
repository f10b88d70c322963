/** The steps of more than one scene: claims about a NIC and about the agent's records, the end of a pod. */
import { parseIp } from "../../host/net/ip.ts";
import { parsePrefix, prefixContains } from "../../host/net/prefix.ts";
import { type PoolName, pools } from "./manifests.ts";
import type { Narrator } from "./narrator.ts";
import { addressesOf, recordsOf, resultAddresses } from "./observe.ts";
import type { Nic, Pod, Stage } from "./stage.ts";

export type Scene = (stage: Stage, narrator: Narrator) => Promise<void>;

/** The plugin's result, the kernel and the pools named in the annotation agree. */
export async function claimNic(
  narrator: Narrator,
  { spec, netns }: Pod,
  nic: Nic,
  wanted: readonly PoolName[],
): Promise<void> {
  const present = await addressesOf(netns, nic.ifName, wanted.length);
  const isPresent = present.join() === [...nic.addresses].sort().join();
  const isOfPools =
    nic.addresses.length === wanted.length && wanted.every((name, index) => lies(nic.addresses[index], name));
  narrator.claim(
    `${spec.name} has its address of ${wanted.join(" and ")}`,
    isPresent && isOfPools,
    `${nic.ifName} ${present.join(", ")}`,
  );
}

function lies(address: string | undefined, pool: PoolName): boolean {
  const ip = parseIp(address?.replace(/\/.*/, "") ?? "");
  const prefix = parsePrefix(pools[pool].subnet);
  return ip !== undefined && prefix !== undefined && prefixContains(prefix, ip);
}

/** Throws when it does not live. */
export function requirePod(stage: Stage, name: string): Pod {
  const pod = stage.pods.get(name);
  if (pod === undefined) throw new Error(`There is no pod ${name}`);
  return pod;
}

/** The bound addresses in the registry are those of the pods that live, no more and no less. */
export async function claimRecords(stage: Stage, narrator: Narrator, what: string): Promise<void> {
  const bound = (await recordsOf(stage)).filter(({ state }) => state === "Bound");
  const recorded = bound.map(({ pod, address }) => `${pod} ${address}`).sort();
  const carried = [...stage.pods.values()].flatMap((pod) =>
    resultAddresses(pod).map((address) => `${pod.spec.name} ${address}`),
  );
  narrator.claim(
    what,
    recorded.join() === carried.sort().join(),
    `${recorded.length} addresses of ${stage.pods.size} pods`,
  );
}

/** DEL of all NICs of a pod, the last first as runtimes do; the namespace goes with it. */
export async function detachAll(stage: Stage, pod: Pod): Promise<boolean> {
  const codes: number[] = [];
  for (const nic of [...pod.nics].reverse()) codes.push((await stage.call("DEL", pod, nic)).exitCode);
  await pod.netns.delete();
  stage.pods.delete(pod.spec.name);
  await stage.agent.remove(`pod-${pod.spec.name}.yaml`);
  return codes.every((code) => code === 0);
}
