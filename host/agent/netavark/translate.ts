/**
 * A call of netavark, the network backend of Podman, as the call of a CNI runtime: everything in front of the plugin
 * (the spool, the audit log, the owner of addresses) needs no second form. And a CNI result as netavark's status.
 */
import * as z from "zod";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { IDENTIFIER_FORM, IF_NAME_FORM, parseContainerId, parseIfName } from "../../cni/names.ts";
import type { CniResult } from "../../cni/result.ts";
import { ConfigError, decodeJsonConfig } from "../../config/config-error.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import { completePodmanNetwork, decodePodmanNetwork } from "../../config/podman-network.ts";
import { describeValue } from "../../lib/describe.ts";
import { orAbsent, parsedText } from "../../lib/schema.ts";
import { formatIp } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";

/** The plugin's name in a request's path. */
export const NETAVARK = "netavark";

/** A request as the socket server and the spool have it. Header names are lower-case. */
interface Call {
  readonly plugin: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const callSchema = z.looseObject({
  container_id: parsedText(parseContainerId, IDENTIFIER_FORM),
  container_name: z.string(),
  network: z.looseObject({ name: z.string() }),
  network_options: z.looseObject({
    interface_name: parsedText(parseIfName, IF_NAME_FORM),
    static_ips: orAbsent(z.array(z.string())),
    static_mac: orAbsent(z.string()),
  }),
});

const SOURCE = "Call of netavark";

/** What is detached of a network whose options are invalid by now. */
const ANY_NETWORK: readonly object[] = [{ type: "macvlan", ipam: { type: "berth" } }, { type: "coordinator" }];

/**
 * Returns a call of the netavark driver with the variables and the network list of a CNI runtime; other calls are
 * returned as they are. Throws ConfigError, and CniError 4 for an unknown command.
 */
export function translateCall<T extends Call>(call: T): T {
  const command = call.headers["cni-command"];
  if (call.plugin !== NETAVARK || command === "CREATE") return call;
  if (command !== "ADD" && command !== "DEL") {
    const text = `The netavark driver has no command ${describeValue(command)}; want setup, teardown, create or info`;
    throw new CniError(ErrorCode.InvalidEnvironment, text);
  }
  const { container_id, container_name, network, network_options } = decodeJsonConfig(callSchema, call.body, SOURCE);
  const { interface_name, static_ips: ips, static_mac: mac } = network_options;
  const name = /^[\w.-]+$/.test(container_name) ? `;K8S_POD_NAME=${container_name}` : "";
  return {
    ...call,
    headers: {
      ...call.headers,
      "cni-containerid": container_id,
      "cni-ifname": interface_name,
      "cni-args": `IgnoreUnknown=1${name}`,
      "cni-path": "/",
    },
    body: JSON.stringify({
      cniVersion: "1.1.0",
      name: network.name,
      type: NETAVARK,
      plugins: pluginsOf(network, command === "DEL"),
      runtimeConfig: { ips, mac },
    }),
  };
}

function pluginsOf(network: { readonly name: string }, forDelete: boolean): readonly object[] {
  try {
    return decodePodmanNetwork(network, `Network ${JSON.stringify(network.name)}`).plugins.map(({ entry }) => entry);
  } catch (error) {
    if (!(error instanceof ConfigError && forDelete)) throw error;
    return ANY_NETWORK;
  }
}

/** Returns the entries that {@link translateCall} wrote. */
export function entriesOf(raw: Readonly<Record<string, unknown>>): readonly PlacedEntry["entry"][] {
  return raw.plugins as readonly PlacedEntry["entry"][];
}

/** Returns the network that Podman stores. Throws ConfigError. */
export function completeNetwork({ body }: Call): object {
  return completePodmanNetwork(body, "Network");
}

/** Returns netavark's StatusBlock. */
export function formatStatus({ interfaces, ips, dns }: CniResult): object {
  const nics = interfaces.filter(({ sandbox }) => sandbox !== undefined);
  const subnets = ips.map(({ address, gateway }) => ({
    ipnet: formatPrefix(address),
    ...(gateway === undefined ? {} : { gateway: formatIp(gateway) }),
  }));
  return {
    dns_search_domains: dns?.search ?? [],
    dns_server_ips: dns?.nameservers ?? [],
    interfaces: Object.fromEntries(nics.map(({ name, mac = "" }) => [name, { mac_address: mac, subnets }])),
  };
}
