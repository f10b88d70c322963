/**
 * VLAN devices and bonds: told to the kernel, and a bond's settings read from it, with members by name.
 * Effects: those of the conversation.
 */

import { BOND_NUMBER_NAMES, type BondSettings, bondWords } from "../plan/bond.ts";
import type { Device } from "../plan/operation.ts";
import { ENODEV, EOPNOTSUPP, EPERM } from "./errno.ts";
import type { Conversation } from "./netlink/conversation.ts";
import { NetlinkError } from "./netlink/error.ts";
import type { BondOptions } from "./netlink/link/bond.ts";
import { ETH_P_8021Q } from "./netlink/link/constants.ts";
import { kindName, type LinkKind } from "./netlink/link/kind.ts";
import { linkOf } from "./netlink/link/link.ts";
import { createLink, deleteLink, findLink, setLink, setLinkKind } from "./netlink/link/requests.ts";

/** `nameOf` is undefined for a member that is gone. */
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
  const message = findLink(route, name);
  const kind = message && linkOf(message).kind;
  return kind?.kind === "bond" ? kind.options : undefined;
}

/** An older kernel passes over options that it does not know. Throws when it did so with one of these. */
function requireSupported(route: Conversation, name: string, asked: BondSettings): void {
  const told = readBond(route, name);
  const lacks = (BOND_NUMBER_NAMES as readonly string[]).filter(
    (option) => Object.hasOwn(asked.numbers, option) && !Object.hasOwn(told?.numbers ?? {}, option),
  );
  if (asked.nsIp6Targets?.length && !told?.nsIp6Targets?.length) lacks.push("ns_ip6_target");
  if (lacks.length === 0) return;
  const message = `This kernel does not know the option ${lacks.join(", ")}`;
  throw new NetlinkError({ operation: `set bond "${name}"`, errno: EOPNOTSUPP, message });
}

function kindOf(route: Conversation, device: Device): LinkKind {
  if (device.kind === "vlan") return { kind: "vlan", id: device.id, protocol: ETH_P_8021Q };
  return { kind: "bond", options: bondOptionsFrom(route, device.settings) };
}

/** Throws NetlinkError: EEXIST for a name that is taken, EOPNOTSUPP for a kind that the kernel does not have. */
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

/** Whatever has its name and is of another kind is somebody else's. */
export function deleteDevice(route: Conversation, { name, kind }: Device): void {
  const message = findLink(route, name);
  const found = message && linkOf(message);
  if (found === undefined) return;
  if (found.kind === undefined || kindName(found.kind) !== kind) throw new Error(`Link "${name}" is no ${kind}`);
  deleteLink(route, found.index);
}

/** Sets what `settings` names. Throws NetlinkError. */
export function setBond(route: Conversation, name: string, settings: BondSettings): void {
  if (bondWords(settings).length === 0 && !settings.arpIpTargets && !settings.nsIp6Targets) return;
  setLinkKind(route, indexOf(route, name), { kind: "bond", options: bondOptionsFrom(route, settings) });
  requireSupported(route, name, settings);
}

/**
 * Asks whether the bond would take the link, which is up. The kernel refuses one that is in use, by pods' macvlans too, before it refuses
 * one that is up (drivers/net/bonding/bond_main.c, `bond_enslave`). Throws NetlinkError with its answer unless that is the only reason.
 */
export function tryMember(route: Conversation, name: string, bond: string): void {
  const [index, master] = [indexOf(route, name), indexOf(route, bond)];
  try {
    setLink(route, index, { master });
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === EPERM) return;
    throw error;
  }
  // Somebody set it down meanwhile: its turn to join comes later.
  setLink(route, index, { master: 0 });
}
