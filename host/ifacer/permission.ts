/**
 * Checks that the administrator permits a definition's changes of the node's devices: tenants write definitions, but a
 * node's NICs are shared. Only ADD checks it, before anything else.
 */
import type { IfacerPermission } from "../config/vendor-conf.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { refuse } from "./host-links.ts";
import type { FindName } from "./link-names.ts";

/** Throws CniError 106 for a device or VLAN ID without permission. An empty list permits all; any name counts. */
export function requirePermitted(
  { interfaces, bond, vlanId }: DeviceSpec,
  { interfaces: permitted, vlanIDs }: IfacerPermission,
  find: FindName,
): void {
  // The bond, too: an existing one gets members.
  const names = [...interfaces, ...(bond === undefined ? [] : [bond.name])];
  const isPermitted = (name: string): boolean => {
    const link = find(name) ?? name;
    return permitted.includes(link) || permitted.some((each) => find(each) === link);
  };
  const forbidden = permitted.length === 0 ? undefined : names.find((name) => !isPermitted(name));
  if (forbidden !== undefined) {
    refuse(
      `Network definitions may not use interface "${forbidden}" of the cluster's nodes: "ifacer.interfaces" of vendor-conf ` +
        "does not list it; ask an administrator to add it",
    );
  }
  const isAllowed = vlanIDs.some(({ first, last }) => first <= vlanId && vlanId <= last);
  if (vlanId !== 0 && vlanIDs.length > 0 && !isAllowed) {
    refuse(
      `Network definitions may not use VLAN ID ${vlanId} on the cluster's nodes: "ifacer.vlanIDs" of vendor-conf ` +
        "does not list it; ask an administrator to add it",
    );
  }
}
