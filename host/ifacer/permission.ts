/**
 * What the node's administrator lets network definitions do to the node's devices: definitions are written by tenants, a node's NICs are everybody's.
 * Called by the ifacer plugin for ADD, before anything is looked at; CHECK and DEL ask nothing of it.
 */
import type { IfacerPermission } from "../config/vendor-conf.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { refuse } from "./host-links.ts";

/** Throws CniError 106 for a device or a VLAN id that is not among those that are allowed. An empty list allows all. */
export function requirePermitted(
  { interfaces, bond, vlanId }: DeviceSpec,
  { interfaces: names, vlanIDs }: IfacerPermission,
): void {
  // The bond, too: one that is there already gets members.
  const asked = [...interfaces, ...(bond === undefined ? [] : [bond.name])];
  const forbidden = names.length === 0 ? undefined : asked.find((name) => !names.includes(name));
  if (forbidden !== undefined) {
    refuse(
      `Interface "${forbidden}" is not one that definitions may use on this cluster's nodes: "ifacer.interfaces" of vendor-conf ` +
        "does not list it; an administrator may add it there",
    );
  }
  const isAllowed = vlanIDs.some(({ first, last }) => first <= vlanId && vlanId <= last);
  if (vlanId !== 0 && vlanIDs.length > 0 && !isAllowed) {
    refuse(
      `VLAN id ${vlanId} is not one that definitions may use on this cluster's nodes: "ifacer.vlanIDs" of vendor-conf ` +
        "does not list it; an administrator may add it there",
    );
  }
}
