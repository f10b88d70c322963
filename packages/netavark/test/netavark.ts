/** Calls of the netavark driver as netavark makes them for a container of Podman. Effects: child processes. */
import { join } from "node:path";
import { root } from "../../../scripts/setup/paths.mjs";
import { type CommandOutcome, runCommand } from "../../../test/lab/command.ts";

/** The network that Podman stores for `podman network create -d berth -o master=uplink lan`. */
export const PODMAN_NETWORK = {
  ...{ name: "lan", id: "2f25", driver: "berth", created: "2026-11-26T19:00:00Z", network_interface: "" },
  ...{ ipv6_enabled: false, internal: false, dns_enabled: true, ipam_options: {} },
  options: { master: "uplink" },
};

export interface Container {
  readonly id: string;
  /** Differences from {@link PODMAN_NETWORK}. */
  readonly network?: object;
  /** Differences from a container's options without requests; its NIC is eth0. */
  readonly options?: object;
}

/** The JSON of setup and teardown. */
export function containerCall({ id, network = {}, options = {} }: Container): string {
  return JSON.stringify({
    ...{ container_id: id, container_name: `c-${id}`, port_mappings: null },
    network: { ...PODMAN_NETWORK, ...network },
    network_options: { aliases: [id], interface_name: "eth0", static_ips: null, static_mac: "", ...options },
  });
}

/** Runs the built driver, which ignores CNI variables of a runtime's environment. */
export function callDriver(
  args: readonly string[],
  stdin: string,
  env: Readonly<Record<string, string>>,
): Promise<CommandOutcome> {
  const misleading = { CNI_COMMAND: "VERSION", CNI_IFNAME: "no/name", BERTH_CONNECT_WAIT: "0.2" };
  return runCommand([join(root, "dist", "bin", "berth"), ...args], { stdin, env: { ...misleading, ...env } });
}
