/**
 * The end of a release in a cluster, before Helm deletes its objects: refuses while addresses are in use, stops agents
 * and controller, cleans the nodes, and removes Berth's objects. Every wait has a deadline: unreachable nodes and
 * objects are reported, and the rest goes on.
 */
import { callIfThere, type KubeApi } from "../kubernetes/kube-api.ts";
import { collectionPath, LEASES, objectPath, PODS, type Resource } from "../kubernetes/paths.ts";
import {
  ADDRESS_RANGES,
  COORDINATORS,
  IP_ALLOCATIONS,
  IP_POOL_USAGES,
  IP_POOLS,
  RANGE_MEMBERS,
  RESERVED_IPS,
  SUBNETS,
} from "../resources/collections.ts";
import { FORCE_DELETE } from "../resources/ip-allocation.ts";
import { type ListedObject, listObjects, pollUntil } from "./cluster-api.ts";
import { DAEMON_SETS, type DaemonSet, runOnNodes } from "./node-pods.ts";
import { InstallError } from "./step.ts";

const DEPLOYMENTS: Resource = { apiVersion: "apps/v1", plural: "deployments" };

/** Pools first: while they exist, an agent that still runs could allocate. */
const OWN_KINDS = [
  IP_POOLS,
  SUBNETS,
  IP_ALLOCATIONS,
  IP_POOL_USAGES,
  RESERVED_IPS,
  COORDINATORS,
  ADDRESS_RANGES,
  RANGE_MEMBERS,
];

/** Longest wait for the pods of agents and controller to end, but at most a quarter of the limit: milliseconds. */
const STOP_WAIT_MS = 60_000;

/** Most addresses in use that a refusal lists. */
const MAX_LISTED_ADDRESSES = 100;

interface UninstallOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** Names of the DaemonSet and the Deployment, which is also its Lease's, and of both in the labels' selector. */
  readonly agent: string;
  readonly controller: string;
  readonly selector: string;
  /** Its pods are Ready when their node is clean. */
  readonly cleaner: DaemonSet;
  readonly force: boolean;
  readonly keepState: boolean;
  /** Limit of all steps together. */
  readonly limitMs: number;
  readonly print: (line: string) => void;
}

/** Throws InstallError, with nothing changed, while addresses are in use, or clusters lease from here. */
export async function uninstallFromCluster(options: UninstallOptions): Promise<void> {
  const deadlineMs = performance.now() + options.limitMs;
  if (!options.force) await refuseIfUsed(options);
  await stopPods(options);
  await cleanNodes(options, deadlineMs);
  const { api, namespace, controller, keepState, print } = options;
  await callIfThere(api, { method: "DELETE", path: objectPath(LEASES, { namespace, name: controller }) });
  if (keepState) print("Kept all objects of Berth, and the state of the nodes");
  else for (const kind of OWN_KINDS) await deleteAll(options, kind);
}

async function refuseIfUsed({ api, print }: UninstallOptions): Promise<void> {
  for await (const { metadata, status } of listObjects(api, collectionPath(RANGE_MEMBERS))) {
    const blocks = Object.keys(status?.blocks ?? {}).length;
    if (blocks > 0)
      throw new InstallError(
        `Refused, nothing was changed: RangeMember "${metadata.name}" has ${blocks} blocks, and clusters would use each other's without it. Move it to another hub first`,
      );
  }
  let used = 0;
  for await (const { spec } of listObjects(api, collectionPath(IP_ALLOCATIONS))) {
    if (spec?.state !== "Bound") continue;
    if (used === 0) print("Addresses in use:");
    if (used < MAX_LISTED_ADDRESSES) print(`  ${describe(spec)}`);
    used += 1;
  }
  if (used === 0) return;
  if (used > MAX_LISTED_ADDRESSES) print(`  and ${used - MAX_LISTED_ADDRESSES} more`);
  throw new InstallError(
    `Refused, nothing was changed: ${used} addresses are in use. Delete their pods first. To uninstall nevertheless: helm rollback to the last revision, helm upgrade with uninstall.force=true, helm uninstall`,
  );
}

function describe(spec: ListedObject["spec"] = {}): string {
  const holders = Array.isArray(spec.holders) ? spec.holders : [];
  const pods = holders.map(({ namespace, pod, node }) => `pod ${namespace}/${pod} on node ${node}`);
  return [`${spec.address}`, ...pods].join(", ");
}

/** Running agents would claim their addresses again, and the controller would add finalizers. */
async function stopPods(options: UninstallOptions): Promise<void> {
  const { api, namespace, agent, controller, selector, limitMs, print } = options;
  const query = { propagationPolicy: "Background" };
  await callIfThere(api, { method: "DELETE", path: objectPath(DEPLOYMENTS, { namespace, name: controller }), query });
  await callIfThere(api, { method: "DELETE", path: objectPath(DAEMON_SETS, { namespace, name: agent }), query });
  let left: ListedObject[] = [];
  const areGone = async (): Promise<boolean> => {
    left = await Array.fromAsync(listObjects(api, collectionPath(PODS, namespace), selector));
    return left.length === 0;
  };
  const waitMs = Math.min(STOP_WAIT_MS, limitMs / 4);
  if (await pollUntil(performance.now() + waitMs, areGone)) print("Agents and controller have stopped");
  else
    for (const pod of left) print(`Pod ${pod.metadata.name} on node ${pod.spec?.nodeName} has not stopped; going on`);
}

/** Leaves a quarter of the time for the objects. */
async function cleanNodes({ api, cleaner, limitMs, print }: UninstallOptions, deadlineMs: number): Promise<void> {
  const { isComplete, late, absent } = await runOnNodes(api, cleaner, deadlineMs - limitMs / 4);
  if (isComplete) print("All nodes are clean");
  for (const node of late) print(`Node ${node} was not cleaned in time; run "berth-agent uninstall" there`);
  for (const line of absent) print(line);
}

async function deleteAll({ api, print }: UninstallOptions, kind: Resource): Promise<void> {
  const path = collectionPath(kind);
  let count = 0;
  const held: string[] = [];
  for await (const { metadata, spec } of listObjects(api, path)) {
    count += 1;
    if (metadata.finalizers !== undefined || spec?.state === "Bound") held.push(metadata.name);
  }
  const body = { metadata: { finalizers: null, annotations: { [FORCE_DELETE]: "true" } } };
  for (const name of held) await callIfThere(api, { method: "PATCH", path: objectPath(kind, { name }), body });
  if (count === 0) return;
  await callIfThere(api, { method: "DELETE", path });
  print(`Deleted ${count} ${kind.plural}`);
}
