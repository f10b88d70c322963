/**
 * A call of netavark, the network backend of Podman, as the call of a CNI runtime: everything in front of the plugin
 * (the spool, the audit log, the owner of addresses) needs no second form. And a CNI result as netavark's status.
 */
import * as z from "zod";
import type { RawRequest } from "../../host/agent/request/driver.ts";
import { CniError, ErrorCode } from "../../host/cni/error.ts";
import { IDENTIFIER_FORM, IF_NAME_FORM, parseContainerId, parseIfName } from "../../host/cni/names.ts";
import type { CniResult } from "../../host/cni/result.ts";
import { ConfigError, decodeJsonConfig } from "../../host/config/config-error.ts";
import type { PlacedEntry } from "../../host/config/network-definition.ts";
import { describeValue } from "../../host/lib/describe.ts";
import { orAbsent, parsedText } from "../../host/lib/schema.ts";
import { formatIp } from "../../host/net/ip.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import { completePodmanNetwork, decodePodmanNetwork } from "./podman-network.ts";

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

/** The NIC that is detached from a network whose options are invalid by now. */
const ANY_NETWORK: readonly object[] = [{ type: "macvlan", ipam: { type: "berth" } }, { type: "coordinator" }];

/**
 * Returns a call of the netavark driver with the variables and the network list of a CNI runtime. Throws ConfigError,
 * and CniError 4 for an unknown command.
 */
export function translateCall(call: RawRequest): RawRequest {
  const command = call.headers["cni-command"];
  if (command === "CREATE") return call;
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
      type: "netavark",
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

/** Returns the network that Podman stores, for CREATE. Throws ConfigError. */
export function completeNetwork({ headers, body }: RawRequest): object | undefined {
  return headers["cni-command"] === "CREATE" ? completePodmanNetwork(body, "Network") : undefined;
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
