/**
 * Replaces alternative names in a definition by the links' names, which planners compare. The VLAN device keeps the
 * name that the definition gives it, unless that is an alternative name of a device itself.
 */
import type { IfName } from "../cni/names.ts";
import type { DeviceSpec } from "./device-spec.ts";
import { refuse } from "./host-links.ts";

/** Returns the name of the link that has this name or alternative name; undefined if there is none. */
export type FindName = (name: string) => string | undefined;

/** Names of links that do not exist stay. Throws CniError 106 if two names of `interfaces` are those of one link. */
export function withLinkNames(spec: DeviceSpec, find: FindName): DeviceSpec {
  const nameOf = (name: string): IfName => (find(name) ?? name) as IfName;
  const { bond, vlanName, options } = spec;
  const interfaces = spec.interfaces.map(nameOf);
  const again = interfaces.findIndex((name, index) => interfaces.indexOf(name) < index);
  const twice = interfaces[again];
  if (twice !== undefined) {
    const names = spec.interfaces.filter((_, index) => interfaces[index] === twice).map((name) => `"${name}"`);
    refuse(`${names.join(" and ")} of "interfaces" are names of one interface, "${twice}"; name it once`);
  }
  const { primary, activeSlave } = options;
  return {
    ...spec,
    interfaces,
    bond: bond && { ...bond, name: nameOf(bond.name) },
    vlanName: vlanName && nameOf(vlanName),
    options: {
      ...options,
      ...(primary === undefined ? {} : { primary: nameOf(primary) }),
      ...(activeSlave === undefined ? {} : { activeSlave: nameOf(activeSlave) }),
    },
  };
}
