/** Pairs of prober and target: each node's pod and each node, in a ring, so that 2 n pairs try all directions. */
import type { ProbeTarget } from "./probe-script.ts";

/** One node with its pods, when they run. */
export interface TestNode {
  readonly name: string;
  /** Internal addresses of the node. */
  readonly ips: readonly string[];
  /** Addresses of the pod on it. */
  readonly podIps: readonly string[];
}

export type From = "pod" | "node";

/** A target, and its name for a person. */
export interface Probe extends ProbeTarget {
  readonly node: string;
  readonly from: From;
  /** `gateway`, `its node`, `node b`, `its pod`, `pod of b`, `service` */
  readonly to: string;
}

/** Of the kubelet: open to pods nearly everywhere, and a refusal is an answer, too. */
const KUBELET_PORT = 10250;

export interface Plan {
  /** In the order of their names. */
  readonly nodes: readonly TestNode[];
  readonly serviceIps: readonly string[];
  readonly serverPort: number;
  readonly servicePort: number;
}

/** Returns the probes; their `id` is their place in the list. */
export function planProbes({ nodes, serviceIps, serverPort, servicePort }: Plan): Probe[] {
  const probes: Omit<Probe, "id">[] = [];
  for (const [at, node] of nodes.entries()) {
    const others = neighboursOf(nodes, at);
    const families = new Set(node.podIps.map(familyOf));
    const add = (from: From, to: string, ips: readonly string[], rest: Pick<Probe, "kind" | "port">): void => {
      for (const host of ips) {
        const family = familyOf(host);
        if (families.has(family)) probes.push({ node: node.name, from, to, family, host, ...rest });
      }
    };
    for (const family of families)
      probes.push({ node: node.name, from: "pod", to: "gateway", family, host: "", kind: "gateway", port: 9 });
    add("pod", "its node", node.ips, { kind: "machine", port: KUBELET_PORT });
    for (const other of others) add("pod", `node ${other.name}`, other.ips, { kind: "machine", port: KUBELET_PORT });
    for (const other of others) add("pod", `pod of ${other.name}`, other.podIps, { kind: "server", port: serverPort });
    add("pod", "service", serviceIps, { kind: "server", port: servicePort });
    add("node", "its pod", node.podIps, { kind: "server", port: serverPort });
    for (const other of others) add("node", `pod of ${other.name}`, other.podIps, { kind: "server", port: serverPort });
    add("node", "service", serviceIps, { kind: "service", port: servicePort });
  }
  return probes.map((probe, id) => ({ ...probe, id }));
}

/** Returns the next and the previous node of the ring: of two neighbours each probes the other. */
function neighboursOf(nodes: readonly TestNode[], at: number): TestNode[] {
  const around = [nodes[(at + 1) % nodes.length], nodes[(at + nodes.length - 1) % nodes.length]];
  return [...new Set(around)].filter((each) => each !== undefined && each !== nodes[at]) as TestNode[];
}

function familyOf(ip: string): 4 | 6 {
  return ip.includes(":") ? 6 : 4;
}
