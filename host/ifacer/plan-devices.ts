/**
 * Plans the devices of a definition on the node: a bond, a VLAN device, both, or none. An existing device that is as
 * it should be needs no operation. The planners return operations rather than a desired state, because here the order
 * matters (docs/decisions/0015).
 */
import type { Operation } from "../plan/operation.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { findLink, kindOf, refuse, requireInterface } from "./host-links.ts";
import { planBond } from "./plan-bond.ts";

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
  return bond !== undefined && links.some((link) => interfaces.includes(link.name) && link.master !== bond.name);
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

/** linux/if_ether.h, ETH_P_8021Q. */
const ETH_P_8021Q = 0x8100;

interface VlanSpec {
  readonly name: string;
  readonly id: number;
  readonly parent: string;
  /** Undefined if it does not exist yet. */
  readonly parentLink: LinkState | undefined;
  /** It has to be set up, too. */
  readonly isParentDown: boolean;
}

function parentName(host: NamespaceState, { parent, parentElsewhere }: LinkState): string {
  if (parentElsewhere) return "a link of another network namespace";
  const link = host.links.find(({ index }) => index === parent);
  return link === undefined ? "no link" : `"${link.name}"`;
}

/** Returns how the device of that name differs from the requested one: the found and the wanted state. */
function findDifference(
  host: NamespaceState,
  link: LinkState,
  spec: VlanSpec,
): [found: string, wanted: string] | undefined {
  const { id, parent, parentLink } = spec;
  const { vlan } = link;
  if (vlan === undefined) return [kindOf(link), `of kind vlan on "${parent}"`];
  if (parentLink === undefined || link.parentElsewhere || link.parent !== parentLink.index) {
    return [`on ${parentName(host, link)}`, `on "${parent}"`];
  }
  if (vlan.id !== id) return [`VLAN ${vlan.id}`, `VLAN ${id}`];
  return vlan.protocol === ETH_P_8021Q ? undefined : ["802.1ad", "802.1Q"];
}

function requireSame(host: NamespaceState, link: LinkState, spec: VlanSpec): void {
  const [found, wanted] = findDifference(host, link, spec) ?? [];
  if (found === undefined) return;
  refuse(`Device "${spec.name}" already exists and is ${found}, want ${wanted}; remove it or change the definition`);
}

/** Throws CniError 106 if another device has this VLAN ID on the parent: the kernel allows only one. */
function requireFreeId({ links }: NamespaceState, { name, id, parent, parentLink }: VlanSpec): void {
  if (parentLink === undefined) return;
  const taken = links.find(
    ({ vlan, parent: index, parentElsewhere }) =>
      vlan?.id === id && vlan.protocol === ETH_P_8021Q && !parentElsewhere && index === parentLink.index,
  );
  if (taken === undefined) return;
  refuse(
    `VLAN ${id} on "${parent}" already exists as device "${taken.name}", want it as "${name}"; rename or remove "${taken.name}"`,
  );
}

/**
 * Returns the operations that create the device and set it up. A parent that is down is set up as well: otherwise the
 * VLAN device passes no frames.
 */
function planVlan(host: NamespaceState, spec: VlanSpec): Operation[] {
  const { name, id, parent, isParentDown } = spec;
  const link = findLink(host, name);
  if (link === undefined) requireFreeId(host, spec);
  else requireSame(host, link, spec);
  const setUp = (device: string): Operation => ({
    kind: "set-link",
    place: "host",
    link: device,
    from: { up: false },
    to: { up: true },
  });
  if (link?.up === true) return [];
  return [
    ...(link === undefined
      ? [{ kind: "add-device", place: "host", device: { kind: "vlan", name, parent, id } } as const]
      : []),
    ...(isParentDown ? [setUp(parent)] : []),
    setUp(name),
  ];
}
