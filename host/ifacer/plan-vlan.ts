/**
 * The VLAN device that a definition asks for: on its master, or on the bond (specification 2.4, Resolved E).
 */
import type { Operation } from "../plan/operation.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";
import { findLink, kindOf, refuse } from "./host-links.ts";

/** linux/if_ether.h, ETH_P_8021Q. */
const ETH_P_8021Q = 0x8100;

export interface VlanSpec {
  readonly name: string;
  readonly id: number;
  readonly parent: string;
  /** Undefined when it is still to be made. */
  readonly parentLink: LinkState | undefined;
  /** Whether it will be up by then. */
  readonly parentWillBeUp: boolean;
}

function parentName(host: NamespaceState, { parent, parentElsewhere }: LinkState): string {
  if (parentElsewhere) return "a link of another network namespace";
  const link = host.links.find(({ index }) => index === parent);
  return link === undefined ? "no link" : `"${link.name}"`;
}

/** How the device of that name is another one: what was found and what is wanted. */
function findDifference(
  host: NamespaceState,
  link: LinkState,
  wish: VlanSpec,
): [found: string, wanted: string] | undefined {
  const { id, parent, parentLink } = wish;
  const { vlan } = link;
  if (link.kind !== "vlan" || vlan === undefined) return [kindOf(link), `of kind vlan on "${parent}"`];
  if (parentLink === undefined || link.parentElsewhere || link.parent !== parentLink.index) {
    return [`on ${parentName(host, link)}`, `on "${parent}"`];
  }
  if (vlan.id !== id) return [`VLAN ${vlan.id}`, `VLAN ${id}`];
  return vlan.protocol === ETH_P_8021Q ? undefined : ["802.1ad", "802.1Q"];
}

function requireSame(host: NamespaceState, link: LinkState, wish: VlanSpec): void {
  const [found, wanted] = findDifference(host, link, wish) ?? [];
  if (found === undefined) return;
  const mend = "remove it or change the definition";
  refuse(`Device "${wish.name}" exists and is another one: it is ${found}, want ${wanted}; ${mend}`);
}

/** The kernel has one device for an id on a parent. */
function requireFreeId({ links }: NamespaceState, { name, id, parent, parentLink }: VlanSpec): void {
  const taken = links.find(
    ({ vlan, parent: index, parentElsewhere }) =>
      vlan?.id === id && vlan.protocol === ETH_P_8021Q && !parentElsewhere && index === parentLink?.index,
  );
  if (parentLink === undefined || taken === undefined) return;
  refuse(
    `VLAN ${id} of "${parent}" is the device "${taken.name}" already, want it as "${name}"; rename or remove that one`,
  );
}

/** What is to be done so that the device is there and up. A parent that is down is set up: nothing passes a VLAN device otherwise. */
export function planVlan(host: NamespaceState, wish: VlanSpec): Operation[] {
  const { name, id, parent, parentLink, parentWillBeUp } = wish;
  const link = findLink(host, name);
  if (link === undefined) requireFreeId(host, wish);
  else requireSame(host, link, wish);
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
    ...(!parentWillBeUp && parentLink?.up === false ? [setUp(parent)] : []),
    setUp(name),
  ];
}
