/**
 * Tokens of service accounts, by the TokenRequest API.
 * Effects: calls of the API server.
 */
import type { KubeClient } from "../kube-client.ts";

const SYSTEM = "kube-system";
const HOURS = 10;

/** The agent's, bound to the node as the kubelet of that node would have it bound for a pod. */
export async function agentToken(client: KubeClient, node: string): Promise<string> {
  const { metadata } = await client.get(`/api/v1/nodes/${node}`);
  return requestToken(client, "berth-agent", { kind: "Node", apiVersion: "v1", name: node, uid: metadata.uid });
}

export async function requestToken(client: KubeClient, account: string, boundObjectRef?: object): Promise<string> {
  const bound = boundObjectRef === undefined ? {} : { boundObjectRef };
  const { status } = await client.create(`/api/v1/namespaces/${SYSTEM}/serviceaccounts/${account}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: HOURS * 3_600, ...bound },
  });
  return status.token;
}
