/**
 * A real kube-proxy on a node of the test network, and the objects that it follows.
 *
 *   await addNode(plane.client, fabric.node1, ["10.60.0.11", "fd00:60::11"]);
 *   const proxy = await startKubeProxy(fabric.node1, { plane, mode: "nftables" });
 *   const backends = [{ address: "10.60.0.51", port: 8080 }];
 *   await addService(plane.client, { name: "web", addresses: ["10.96.0.10"], port: 80, backends });
 *   await proxy.knows("10.96.0.10", "10.60.0.51");
 *   await proxy.stop();
 *
 * Endpoints are made by hand, because there is no controller that finds pods.
 * Effects: a child in the node's namespace, which changes that namespace's packet filter and settings; objects of the
 * control plane.
 */
import { join } from "node:path";
import { kubernetesBin } from "./cluster/plane-parts.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startDaemon } from "./daemon.ts";
import type { KubeClient } from "./kube-client.ts";
import type { Netns } from "./netns.ts";
import { type Place, requireIp } from "./sockets.ts";

export interface KubeProxyOptions {
  readonly plane: ControlPlane;
  readonly mode: "nftables" | "iptables";
  /**
   * `10.244.0.0/16,fd00:244::/32`: whatever comes from elsewhere and asks a service is masqueraded. Default: none,
   * and nothing is.
   */
  readonly clusterCIDR?: string;
}

export interface KubeProxy {
  readonly pid: number;
  output(): string;
  /** Resolves when the node's rules have all these addresses; rejects after 20 s. */
  knows(...addresses: readonly string[]): Promise<void>;
  /** Ends it; the rules stay, as they do when a real one ends. */
  stop(): Promise<void>;
}

const KNOWS_MS = 20_000;
const READY_MS = 30_000;

/** Resolves when it runs and has read the objects once. The node must have been added. */
export async function startKubeProxy(node: Netns, { plane, mode, clusterCIDR }: KubeProxyOptions): Promise<KubeProxy> {
  const argv = [
    join(kubernetesBin, "kube-proxy"),
    `--kubeconfig=${plane.kubeconfig}`,
    `--hostname-override=${node.name}`,
    `--proxy-mode=${mode}`,
    ...(clusterCIDR === undefined ? [] : [`--cluster-cidr=${clusterCIDR}`]),
    // These would be settings of the whole machine.
    "--conntrack-max-per-core=0",
    "--conntrack-min=0",
  ];
  const daemon = await startDaemon("kube-proxy", argv, node);
  const rules = async (): Promise<string> => (await node.exec(["nft", "list", "ruleset"])).stdout;
  const hasAll = async (words: readonly string[]): Promise<boolean> => {
    const text = await rules();
    return words.every((word) => new RegExp(`(?<![0-9a-f:.])${RegExp.escape(word)}(?![0-9a-f:.]*[0-9a-f])`).test(text));
  };
  try {
    await daemon.until(async () => (await rules()).includes("KUBE") || hasAll(["kube-proxy"]), READY_MS);
  } catch (error) {
    await daemon.kill();
    throw error;
  }
  return {
    pid: daemon.pid,
    output: daemon.output,
    knows: (...addresses) => daemon.until(() => hasAll(addresses), KNOWS_MS),
    stop: daemon.kill,
  };
}

/** A node object by the name of its namespace, as a kubelet would make it. */
export async function addNode(client: KubeClient, node: Netns, addresses: readonly string[]): Promise<void> {
  const status = { addresses: addresses.map((address) => ({ type: "InternalIP", address })) };
  await client.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: node.name }, status });
}

export interface Backend extends Place {
  /** The node that it is on; needed where traffic stays on the node. */
  readonly node?: Netns;
}

export interface ServiceObject {
  readonly name: string;
  /** Cluster addresses, one or one of each family, the first family first. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Backends of the same families. */
  readonly backends: readonly Backend[];
  /** Makes it a NodePort service whose external traffic stays on the node and keeps the client's address. */
  readonly nodePort?: number;
}

const SERVICES = "/api/v1/namespaces/default/services";
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/** The service, and for each family a slice of endpoints. */
export async function addService(client: KubeClient, service: ServiceObject): Promise<void> {
  const { name, addresses, port, backends, nodePort } = service;
  const [clusterIP] = addresses;
  const external = nodePort === undefined ? {} : { type: "NodePort", externalTrafficPolicy: "Local" };
  const spec = {
    ...external,
    clusterIP,
    clusterIPs: addresses,
    ipFamilyPolicy: addresses.length > 1 ? "RequireDualStack" : "SingleStack",
    ports: ["TCP", "UDP"].map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port,
      ...(nodePort === undefined ? {} : { nodePort }),
    })),
  };
  await client.create(SERVICES, { apiVersion: "v1", kind: "Service", metadata: { name }, spec });
  for (const address of addresses) {
    const own = backends.filter((backend) => requireIp(backend.address).family === requireIp(address).family);
    await client.create(SLICES, sliceOf(name, own));
  }
}

function sliceOf(service: string, backends: readonly Backend[]): object {
  const [first] = backends;
  if (first === undefined) throw new TypeError(`Service "${service}" has no backend of one of its families`);
  const { family } = requireIp(first.address);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${service}-v${family}`, labels: { "kubernetes.io/service-name": service } },
    addressType: `IPv${family}`,
    endpoints: backends.map(({ address, node }) => ({
      addresses: [address],
      conditions: { ready: true },
      ...(node === undefined ? {} : { nodeName: node.name }),
    })),
    ports: ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: first.port })),
  };
}

export async function deleteService(client: KubeClient, { name, addresses }: ServiceObject): Promise<void> {
  await client.delete(`${SERVICES}/${name}`);
  for (const address of addresses) await client.delete(`${SLICES}/${name}-v${requireIp(address).family}`);
}
