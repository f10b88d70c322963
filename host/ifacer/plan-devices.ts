/**
 * What has to be done on the node so that a definition's devices are there: bond, VLAN device, both, or none.
 * Called by the ifacer plugin for ADD and CHECK; what is there already as it should be takes no operation. Pure.
 * It gives the operations themselves, not a wish to be compared: here the order is what matters (docs/decisions/0015).
 */
import type { Operation } from "../plan/operation.ts";
import type { NamespaceState } from "../plan/state.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { requireInterface } from "./host-links.ts";
import { planBond } from "./plan-bond.ts";
import { planVlan } from "./plan-vlan.ts";

export interface DevicePlan {
  readonly operations: readonly Operation[];
  /** Done last, and no reason to take back the rest when it fails. */
  readonly lastly: readonly Operation[];
  /** Sentences about what is otherwise and stays so. */
  readonly warnings: readonly string[];
  /** The one that pods hang on. */
  readonly device: string;
}

/** Whether the plan depends on addresses and routes: a member is still to join. */
export function needsTraffic({ bond, interfaces }: DeviceSpec, { links }: NamespaceState): boolean {
  return (
    bond !== undefined && interfaces.some((name) => links.find((link) => link.name === name)?.master !== bond.name)
  );
}

/** Throws CniError code 106 for what is there and must not be touched; then nothing has been done. */
export function planDevices(wish: DeviceSpec, host: NamespaceState): DevicePlan {
  const { interfaces, bond, takeOver, options, vlanName, vlanId } = wish;
  const base = bond && planBond(host, { ...bond, options, members: interfaces, takeOver });
  const parent = bond?.name ?? interfaces[0] ?? "";
  const parentLink = base === undefined ? requireInterface(host, parent) : base.link;
  const parentWillBeUp = base !== undefined;
  const vlan =
    vlanName === undefined ? [] : planVlan(host, { name: vlanName, id: vlanId, parent, parentLink, parentWillBeUp });
  return {
    operations: [...(base?.operations ?? []), ...vlan],
    lastly: base?.lastly ?? [],
    warnings: base?.warnings ?? [],
    device: vlanName ?? parent,
  };
}
