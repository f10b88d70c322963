/** Creates, deletes and changes VLAN devices and bonds, and reads the settings of a bond, with members by name. */

import { BOND_NUMBER_NAMES, type BondSettings, bondWords } from "../plan/bond.ts";
import type { Device } from "../plan/operation.ts";
import { ENODEV, EOPNOTSUPP, EPERM } from "./errno.ts";
import type { Conversation } from "./netlink/conversation.ts";
import { NetlinkError } from "./netlink/error.ts";
import type { BondOptions } from "./netlink/link/bond.ts";
import { ETH_P_8021Q } from "./netlink/link/constants.ts";
import { kindName, type LinkKind } from "./netlink/link/kind.ts";
import { createLink, deleteLink, findLink, readLink, setLink, setLinkKind } from "./netlink/link/requests.ts";

/** `nameOf` returns undefined for a member that no longer exists. */
export function bondSettingsOf(options: BondOptions, nameOf: (index: number) => string | undefined): BondSettings {
  const { active_slave: active, primary, ...numbers } = options.numbers;
  const { arpIpTargets, nsIp6Targets, actorSystem } = options;
  const nameOfMember = (index: number | undefined): string => (index === undefined ? "" : (nameOf(index) ?? ""));
  return {
    numbers,
    primary: nameOfMember(primary),
    activeSlave: nameOfMember(active),
    arpIpTargets: arpIpTargets ?? [],
    nsIp6Targets: nsIp6Targets ?? [],
    actorSystem,
  };
}

function indexOf(route: Conversation, name: string): number {
  const index = findLink(route, name)?.index;
  if (index === undefined) throw new NetlinkError({ operation: `find link "${name}"`, errno: ENODEV });
  return index;
}

function bondOptionsFrom(route: Conversation, settings: BondSettings): BondOptions {
  const { numbers, primary, activeSlave, arpIpTargets, nsIp6Targets, actorSystem } = settings;
  const indexOfMember = (name: string): number => (name === "" ? 0 : indexOf(route, name));
  return {
    numbers: {
      ...numbers,
      ...(primary !== undefined && { primary: indexOfMember(primary) }),
      ...(activeSlave !== undefined && { active_slave: indexOfMember(activeSlave) }),
    },
    ...(arpIpTargets && { arpIpTargets }),
    ...(nsIp6Targets && { nsIp6Targets }),
    ...(actorSystem && { actorSystem }),
  };
}

function readBond(route: Conversation, name: string): BondOptions | undefined {
  const kind = readLink(route, name)?.kind;
  return kind?.kind === "bond" ? kind.options : undefined;
}

/** Throws NetlinkError if the kernel does not know one of the options: older kernels ignore unknown ones. */
function requireSupported(route: Conversation, name: string, requested: BondSettings): void {
  const reported = readBond(route, name);
  const missing = (BOND_NUMBER_NAMES as readonly string[]).filter(
    (option) => Object.hasOwn(requested.numbers, option) && !Object.hasOwn(reported?.numbers ?? {}, option),
  );
  if (requested.nsIp6Targets?.length && !reported?.nsIp6Targets?.length) missing.push("ns_ip6_target");
  if (missing.length === 0) return;
  const message = `this kernel does not support bond option ${missing.join(", ")}`;
  throw new NetlinkError({ operation: `set bond "${name}"`, errno: EOPNOTSUPP, message });
}

function kindOf(route: Conversation, device: Device): LinkKind {
  if (device.kind === "vlan") return { kind: "vlan", id: device.id, protocol: ETH_P_8021Q };
  return { kind: "bond", options: bondOptionsFrom(route, device.settings) };
}

/** Throws NetlinkError: EEXIST if the name is taken, EOPNOTSUPP if the kernel lacks this kind of device. */
export function createDevice(route: Conversation, device: Device): void {
  const { name } = device;
  const more = device.kind === "vlan" ? { parent: indexOf(route, device.parent) } : { mtu: device.mtu };
  createLink(route, { name, kind: kindOf(route, device), ...more });
  if (device.kind === "vlan") return;
  try {
    requireSupported(route, name, device.settings);
  } catch (error) {
    deleteDevice(route, device);
    throw error;
  }
}

/** Deletes the device. Throws if a link of that name is of another kind, and so not Berth's. */
export function deleteDevice(route: Conversation, { name, kind }: Device): void {
  const found = readLink(route, name);
  if (found === undefined) return;
  if (found.kind === undefined || kindName(found.kind) !== kind)
    throw new Error(`Link "${name}" is not a ${kind}; it was not deleted`);
  deleteLink(route, found.index);
}

/** Sets the options that `settings` names. Throws NetlinkError. */
export function setBond(route: Conversation, name: string, settings: BondSettings): void {
  if (bondWords(settings).length === 0 && !settings.arpIpTargets && !settings.nsIp6Targets) return;
  setLinkKind(route, indexOf(route, name), { kind: "bond", options: bondOptionsFrom(route, settings) });
  requireSupported(route, name, settings);
}

/**
 * Tests whether the link, which is up, could join the bond. The kernel refuses a link that is in use, also by macvlans
 * of pods, before it refuses one that is up (drivers/net/bonding/bond_main.c, `bond_enslave`). Throws NetlinkError for
 * any refusal except that it is up.
 */
export function tryMember(route: Conversation, name: string, bond: string): void {
  const [index, master] = [indexOf(route, name), indexOf(route, bond)];
  try {
    setLink(route, index, { master });
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === EPERM) return;
    throw error;
  }
  // The link was set down meanwhile and has joined; a later operation repeats that.
  setLink(route, index, { master: 0 });
}
