/**
 * Berth's accounts and policies in an API server, and tokens as a DaemonSet's agents have them: bound to a pod, so
 * that they name its node.
 *
 *   await applyRights(plane.client);                              // after applyCrds
 *   const token = await requestNodeToken(plane.client, "n1");     // for a proxy or a client
 *   const kubeconfig = await writeAgentKubeconfig(plane, "n1");   // for an agent
 *   const controller = await openAsController(plane);             // for pools that are generated
 *
 * Effects: writes the accounts of deploy/rbac.yaml and deploy/controller.yaml and the policies, and waits until these
 * are in force; pods in kube-system.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../../scripts/setup/paths.mjs";
import { applyFile, applyObject, readDocuments } from "../apply.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type KubeClient, KubeError, type KubeObject } from "../kube-client.ts";
import { ALLOCATIONS, boundObject, NAMESPACES, namespaceObject, POOLS, SYSTEM } from "./objects.ts";

export const FORCE_DELETE = "ipam.vendor.io/force-delete";

/** Address of TEST-NET-1: in no pool. */
const PROBE = "192.0.2.1";
const IN_FORCE_MS = 20_000;
const PAUSE_MS = 20;

/** Rejects when the API server does not apply the policies within 20 seconds. */
export async function applyRights(client: KubeClient): Promise<void> {
  await client.apply(`${NAMESPACES}/${SYSTEM}`, namespaceObject(SYSTEM));
  await applyFile(client, join(root, "deploy", "rbac.yaml"));
  // No controller here creates pods of a Deployment.
  const controller = await readDocuments(join(root, "deploy", "controller.yaml"));
  for (const object of controller.filter(({ kind }) => kind !== "Deployment")) await applyObject(client, object);
  await applyPolicies(client);
}

/** Only the policies. The last one in the file stands for all: the API server gets them in order. */
export async function applyPolicies(client: KubeClient): Promise<void> {
  await client.create(ALLOCATIONS, boundObject({ address: PROBE, node: "probe" }));
  await applyFile(client, join(root, "deploy", "hub.yaml"));
  await applyFile(client, join(root, "deploy", "policies.yaml"));
  const deadline = performance.now() + IN_FORCE_MS;
  while (!(await isRefused(client.delete(`${ALLOCATIONS}/${PROBE}`, { dryRun: ["All"] })))) {
    if (performance.now() > deadline) throw new Error(`The policies are not in force after ${IN_FORCE_MS} ms`);
    await sleep(PAUSE_MS);
  }
  await forceDelete(client, PROBE);
}

/** deploy/host-agents.yaml, until its policy is in force: agents may then renew tokens of their Node. */
export async function applyHostAgents(plane: Pick<ControlPlane, "client" | "openClient">): Promise<void> {
  const agent = await plane.openClient({ token: await requestNodeToken(plane.client, "", { isBound: false }) });
  try {
    await applyFile(plane.client, join(root, "deploy", "host-agents.yaml"));
    const deadline = performance.now() + IN_FORCE_MS;
    // The refusal of RBAC does not name the policy.
    while (!/berth-agent-tokens/.test(String(await createToken(agent).catch((error: KubeError) => error.text)))) {
      if (performance.now() > deadline) throw new Error(`The policy is not in force after ${IN_FORCE_MS} ms`);
      await sleep(PAUSE_MS);
    }
  } finally {
    agent.close();
  }
}

async function isRefused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return true;
    throw error;
  }
}

/** As an administrator deletes an address that certainly no pod has. */
export async function forceDelete(client: KubeClient, name: string): Promise<void> {
  const path = `${ALLOCATIONS}/${name}`;
  try {
    await client.patch(path, { metadata: { annotations: { [FORCE_DELETE]: "true" } } });
    await client.delete(path);
  } catch (error) {
    if (!(error instanceof KubeError && error.status === 404)) throw error;
  }
}

/** All of them, by the same way. */
export async function forceDeleteAll(client: KubeClient): Promise<void> {
  const { items } = await client.get(ALLOCATIONS);
  await Promise.all(items.map(({ metadata }: KubeObject) => forceDelete(client, metadata.name)));
  await client.delete(ALLOCATIONS);
}

export interface TokenOptions {
  /** Default: berth-agent. */
  readonly account?: string;
  /** False: bound to nothing. Default: to a pod of the account on the node. */
  readonly isBound?: boolean;
}

/** A kubeconfig with such a token in the plane's folder; gives its path. */
export async function writeAgentKubeconfig(plane: Pick<ControlPlane, "client" | "writeKubeconfig">, node: string) {
  return plane.writeKubeconfig(`agent-${node}`, { token: await requestNodeToken(plane.client, node) });
}

/**
 * A token as a pod of the account on that node has it, by the TokenRequest API. The pod is made when it is not there.
 */
export async function requestNodeToken(client: KubeClient, node: string, options: TokenOptions = {}): Promise<string> {
  const { account = "berth-agent", isBound = true } = options;
  const pod = isBound ? await requirePod(client, account, node) : undefined;
  return createToken(client, { account, ...(pod && { boundObjectRef: { kind: "Pod", apiVersion: "v1", ...pod } }) });
}

export interface TokenRequest {
  /** Default: berth-agent. */
  readonly account?: string;
  /** Default: 7,200. */
  readonly expirationSeconds?: number;
  readonly boundObjectRef?: object;
}

/** The TokenRequest API with the rights of the client; returns the token. */
export async function createToken(client: KubeClient, request: TokenRequest = {}): Promise<string> {
  const { account = "berth-agent", ...spec } = request;
  const { status } = await client.create(`${NAMESPACES}/${SYSTEM}/serviceaccounts/${account}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { audiences: [], expirationSeconds: 7_200, ...spec },
  });
  return status.token;
}

/** As `kubectl create token berth-agent --bound-object-kind Node --bound-object-name NODE` does. */
export function createHostToken(client: KubeClient, node: string, expirationSeconds = 600): Promise<string> {
  return createToken(client, { expirationSeconds, boundObjectRef: { apiVersion: "v1", kind: "Node", name: node } });
}

/**
 * A client with the controller's account: no other account, not even an administrator's, gives addresses to a pool
 * with `spec.generated`. The caller closes it.
 */
export async function openAsController(plane: Pick<ControlPlane, "client" | "openClient">): Promise<KubeClient> {
  const token = await requestNodeToken(plane.client, "", { account: "berth-controller", isBound: false });
  return plane.openClient({ token });
}

/**
 * A pool with `spec.generated` as the controller makes it: first empty, then with its addresses. `controller` is of
 * {@link openAsController}.
 */
export async function placeGeneratedPool(controller: KubeClient, pool: KubeObject): Promise<KubeObject> {
  const made = await controller.create(POOLS, { ...pool, spec: { ...pool.spec, ips: [] } });
  const { name, resourceVersion } = made.metadata;
  return controller.patch(`${POOLS}/${name}`, { metadata: { resourceVersion }, spec: { ips: pool.spec.ips } });
}

async function requirePod(client: KubeClient, account: string, node: string): Promise<{ name: string; uid: string }> {
  const name = `${account}-${node}`;
  const { metadata } = await client.apply(`${NAMESPACES}/${SYSTEM}/pods/${name}`, {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name } },
    spec: {
      nodeName: node,
      hostNetwork: true,
      serviceAccountName: account,
      containers: [{ name: "main", image: "local/pause:1" }],
    },
  });
  return { name, uid: metadata.uid };
}
