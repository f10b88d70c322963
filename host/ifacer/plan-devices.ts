/**
 * Plans the devices of a definition on the node: a bond, a VLAN device, both, or none. An existing device that is as it should be
 * needs no operation. The planners return operations rather than a desired state, because here the order matters
 * (docs/decisions/0015).
 */
import type { Operation } from "../plan/operation.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { requireInterface } from "./host-links.ts";
import { planBond } from "./plan-bond.ts";
import { planVlan } from "./plan-vlan.ts";

export interface DevicePlan {
  readonly operations: readonly Operation[];
  /** Applied last; if they fail, the rest is kept. */
  readonly lastly: readonly Operation[];
  /** Sentences about differences that are left unchanged. */
  readonly warnings: readonly string[];
  /** The device that pods use as their parent. */
  readonly device: string;
}

/** Returns whether the plan depends on addresses and routes: a member has yet to join. */
export function needsTraffic({ bond, interfaces }: DeviceSpec, { links }: NamespaceState): boolean {
  return (
    bond !== undefined && interfaces.some((name) => links.find((link) => link.name === name)?.master !== bond.name)
  );
}

function parentOf(link: LinkState) {
  return { parentLink: link, isParentDown: !link.up };
}

/** Throws CniError 106 for an existing device that must not be changed, before anything is done. */
export function planDevices(spec: DeviceSpec, host: NamespaceState): DevicePlan {
  const { interfaces, bond, takeOver, options, vlanName, vlanId } = spec;
  const base = bond && planBond(host, { ...bond, options, members: interfaces, takeOver });
  const parent = bond?.name ?? interfaces[0] ?? "";
  // A bond is set up by its own plan.
  const below =
    base === undefined ? parentOf(requireInterface(host, parent)) : { parentLink: base.link, isParentDown: false };
  const vlan = vlanName === undefined ? [] : planVlan(host, { name: vlanName, id: vlanId, parent, ...below });
  return {
    operations: [...(base?.operations ?? []), ...vlan],
    lastly: base?.lastly ?? [],
    warnings: base?.warnings ?? [],
    device: vlanName ?? parent,
  };
}
