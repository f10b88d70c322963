/** The request of a CHECK for an attachment of an earlier agent: from its NIC's rows and its network's definition. */
import { parseContainerId, parseIfName } from "../../cni/names.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { findCoordinator, type PlacedEntry } from "../../config/network-definition.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Identifier } from "../ipam/pod-identity.ts";
import { type NicSettings, pluginsOfNic } from "../request/nic-definition.ts";

export interface RebuildDeps {
  readonly networks: Pick<NicSettings, "pluginsOf" | "nicsOf">;
  readonly identifier: Pick<Identifier, "find">;
}

/** Returns the plugins of the network of the row's NIC; empty if no definition is known. */
export async function pluginsOfRow(
  { networks, identifier }: RebuildDeps,
  row: Allocation,
): Promise<readonly PlacedEntry[]> {
  const { namespace, pod, ifName, network } = row;
  const found = pod === "" ? undefined : await identifier.find(namespace, pod).catch(() => undefined);
  return pluginsOfNic(networks, { ifName, network, pod: found?.subject });
}

/** Returns the request of a CHECK of the NIC with these rows; undefined if its network has no coordinator. */
export async function rebuildRequest(
  deps: RebuildDeps,
  rows: readonly Allocation[],
): Promise<AttachRequest | undefined> {
  const [row] = rows;
  if (row === undefined) return undefined;
  const { namespace, pod, owner, network, netns = "" } = row;
  const [containerId, ifName] = [parseContainerId(row.containerId), parseIfName(row.ifName)];
  if (containerId === undefined || ifName === undefined || netns === "") return undefined;
  const { entry } = findCoordinator(await pluginsOfRow(deps, row)) ?? {};
  if (entry === undefined) return undefined;
  const uid: [string, string][] = owner === containerId ? [] : [["K8S_POD_UID", owner]];
  const names: [string, string][] = pod === "" ? [] : [["K8S_POD_NAMESPACE", namespace], ["K8S_POD_NAME", pod], ...uid];
  return {
    plugin: "coordinator",
    command: "CHECK",
    containerId,
    ifName,
    netns,
    netnsOverride: false,
    args: new Map(names),
    netConf: {
      cniVersion: "1.0.0",
      name: network,
      type: entry.type,
      ipam: undefined,
      prevResult: {
        interfaces: [{ name: ifName, sandbox: netns }],
        ips: rows.map(({ ip, prefixLength }) => ({ address: { ip, length: prefixLength }, interface: 0 })),
        routes: [],
      },
      runtimeConfig: {},
      args: { cni: {} },
      raw: entry,
    },
  };
}
