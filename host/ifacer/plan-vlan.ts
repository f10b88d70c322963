/** Plans the VLAN device that a definition asks for, on its parent or on the bond. */
import type { Operation } from "../plan/operation.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";
import { findLink, kindOf, refuse } from "./host-links.ts";

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

/** Returns how the device of that name differs from the requested one: what was found and what is wanted. */
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
 * Returns the operations after which the device exists and is up. A parent that is down is set up: otherwise the VLAN device
 * passes no frames.
 */
export function planVlan(host: NamespaceState, spec: VlanSpec): Operation[] {
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
