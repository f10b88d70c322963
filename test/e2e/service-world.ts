/** Two nodes with a control plane beside them: what the tests of services need. */
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { NODE_HOSTS, POD_NETWORK, segmentAddress } from "../../scripts/lab/addressing.ts";
import { type ControlPlane, startControlPlane } from "../../scripts/lab/control-plane.ts";
import { type Fabric, makeFabric } from "../../scripts/lab/fabric.ts";
import { addNode, type KubeProxy, type KubeProxyOptions, startKubeProxy } from "../../scripts/lab/kube-proxy.ts";

export interface ServiceWorld {
  readonly fabric: Fabric;
  readonly plane: ControlPlane;
  /** A kube-proxy on node 1 that knows these services; when it is stopped, the node has no rules of it. */
  startProxy(options: Omit<KubeProxyOptions, "plane">, services: readonly string[]): Promise<KubeProxy>;
  delete(): Promise<void>;
}

const CONTROL_HOST = 5;
/** That of the routed pods, as kube-proxy takes it. */
export const CLUSTER_CIDR = `${POD_NETWORK[4]},${POD_NETWORK[6]}`;

export const nodeAddress = (node: 1 | 2, family: Family): string =>
  segmentAddress(0, NODE_HOSTS[node - 1] ?? 0, family);

/** `clusterCIDR` with and without, in both modes of kube-proxy. */
export const PROXIES = [
  { mode: "nftables" },
  { mode: "nftables", clusterCIDR: CLUSTER_CIDR },
  { mode: "iptables" },
  { mode: "iptables", clusterCIDR: CLUSTER_CIDR },
] as const;

export async function makeServiceWorld(prefix: string): Promise<ServiceWorld> {
  const fabric = await makeFabric(prefix);
  try {
    const machine = await fabric.addHost("control", CONTROL_HOST);
    const plane = await startControlPlane({ machine, address: segmentAddress(0, CONTROL_HOST, 4) });
    try {
      for (const number of [1, 2] as const) {
        const node = number === 1 ? fabric.node1 : fabric.node2;
        await addNode(
          plane.client,
          node,
          FAMILIES.map((family) => nodeAddress(number, family)),
        );
      }
      return worldOf(fabric, plane);
    } catch (error) {
      await plane.stop();
      throw error;
    }
  } catch (error) {
    await fabric.delete();
    throw error;
  }
}

function worldOf(fabric: Fabric, plane: ControlPlane): ServiceWorld {
  return {
    fabric,
    plane,
    startProxy: async (options, services) => {
      const proxy = await startKubeProxy(fabric.node1, { plane, ...options });
      const stop = async (): Promise<void> => {
        await proxy.stop();
        await removeRules(fabric);
      };
      try {
        await proxy.knows(...services);
        return { ...proxy, stop };
      } catch (error) {
        await stop();
        throw error;
      }
    },
    delete: async () => {
      await plane.stop();
      await fabric.delete();
    },
  };
}

/** Of both modes; those of others stay. */
async function removeRules({ node1 }: Fabric): Promise<void> {
  const { stdout } = await node1.exec(["nft", "list", "tables"]);
  for (const [, family = "", name = ""] of stdout.matchAll(/^table (ip6?) (kube-proxy|nat|filter|mangle)$/gm))
    await node1.exec(["nft", "delete", "table", family, name]);
}
