/**
 * A service of a node, without a cluster: packets for one address and port go to its backends, as with kube-proxy.
 *
 *   const backends = [{ address: "10.60.0.50", port: 80 }];
 *   const service = await serviceStandIn(node, { address: "10.96.0.10", port: 80, backends });
 *   await service.delete();
 *
 * It rewrites only the destination of packets that enter the node or that the node sends: the client's address stays.
 * Effects: an nftables table of its own in the node's namespace.
 */
import { requireCommand } from "./command.ts";
import type { Netns } from "./netns.ts";
import { type Place, requireIp } from "./sockets.ts";

/** Priority of destination NAT, whose name nft does not take at the output hook. */
const PRIORITY = -100;

export interface ServiceOptions extends Place {
  /** Backends of the service's own family, at least one; they take turns. */
  readonly backends: readonly Place[];
}

export interface ServiceStandIn {
  delete(): Promise<void>;
}

export async function serviceStandIn(node: Netns, options: ServiceOptions): Promise<ServiceStandIn> {
  const table = `inet lab_${options.address.replaceAll(/[^0-9a-f]/g, "_")}_${options.port}`;
  const rules = ["tcp", "udp"].map((protocol) => formatRule(options, protocol)).join("\n");
  const chain = (name: string, hook: string) =>
    `  chain ${name} {\n    type nat hook ${hook} priority ${PRIORITY}; policy accept;\n${rules}\n  }\n`;
  const text = `table ${table} {\n${chain("entering", "prerouting")}${chain("own", "output")}}\n`;
  await requireCommand(node.enter(["nft", "-f", "-"]), { stdin: text });
  return {
    delete: async () => void (await requireCommand(node.enter(["nft", "delete", "table", ...table.split(" ")]))),
  };
}

function formatRule({ address, port, backends }: ServiceOptions, protocol: string): string {
  const family = requireIp(address).family === 4 ? "ip" : "ip6";
  const places = backends.map((backend, index) => `${index} : ${backend.address} . ${backend.port}`);
  const target = `numgen inc mod ${backends.length} map { ${places.join(", ")} }`;
  return `    ${family} daddr ${address} ${protocol} dport ${port} dnat ${family} to ${target}`;
}
