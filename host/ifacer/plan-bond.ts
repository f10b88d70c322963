/**
 * Plans the bond that a definition asks for, and its members.
 *
 *      bond with its mode and options → is a member in use? → each member: down, join, up → bond up → moved addresses
 *      → primary
 */
import { formatBondMode } from "../config/ifacer-conf.ts";
import type { Mac } from "../net/mac.ts";
import type { BondSettings } from "../plan/bond.ts";
import { bondWords } from "../plan/bond.ts";
import type { Operation } from "../plan/operation.ts";
import type { LinkSettings, LinkState, NamespaceState } from "../plan/state.ts";
import { NEED_MIIMON } from "./bond-options.ts";
import { findLink, kindOf, refuse, requireInterface } from "./host-links.ts";
import { ipConfigOf, planMove, refuseIpConfig, requireStatic } from "./plan-takeover.ts";

const place = "host";

interface BondSpec {
  readonly name: string;
  /** Undefined accepts any mode; a new bond gets the kernel's default. */
  readonly mode?: number | undefined;
  /** The mode allows all of them. */
  readonly options: BondSettings;
  readonly members: readonly string[];
  readonly takeOver: boolean;
}

/** Returns whether `upper` is a device on top of `lower`. The parent of a veth is its peer. */
function isOn(upper: LinkState, lower: LinkState): boolean {
  return upper.parent === lower.index && !upper.parentElsewhere && upper.kind !== "veth";
}

/** Returns whether the bond is as the kernel module created it when it was loaded: neither configured nor used. */
function isUntouched(host: NamespaceState, link: LinkState, mode: number): boolean {
  const { name, up } = link;
  if (!/^bond[0-9]+$/.test(name) || up || mode !== 0) return false;
  const { addresses, routes } = ipConfigOf(host, link);
  const isUsed = host.links.some((each) => each.master === name || isOn(each, link));
  return addresses.length === 0 && routes.length === 0 && !isUsed;
}

/** Throws CniError 106 for another device of that name. The administrator's further members are left alone. */
function requireSame(host: NamespaceState, link: LinkState, spec: BondSpec) {
  const { name, mode } = spec;
  const { bond: settings } = link;
  if (settings === undefined) {
    refuse(
      `Device "${name}" already exists and is ${kindOf(link)}, not a bond; remove it or choose another "bond.name"`,
    );
  }
  const { mode: found = 0 } = settings.numbers;
  const isNew = isUntouched(host, link, found);
  if (mode !== undefined && found !== mode && !isNew) {
    refuse(`Bond "${name}" already exists in mode ${formatBondMode(found)}, want mode ${formatBondMode(mode)}`);
  }
  return { settings, isUntouched: isNew };
}

/** Returns whether the link's frames pass through `lower`: it is a device on it, a bridge that has it as a member … */
function standsOn({ links }: NamespaceState, link: LinkState, lower: string): boolean {
  const seen = new Set([link]);
  for (const upper of seen) {
    if (upper.name === lower) return true;
    for (const each of links.filter((below) => below.master === upper.name || isOn(upper, below))) seen.add(each);
  }
  return false;
}

/** Throws CniError 106 for an interface that cannot join, or whose joining would cut off something else. */
function requireFree(host: NamespaceState, link: LinkState, { name: bond, takeOver }: BondSpec): void {
  const { name, master } = link;
  if (link.loopback) refuse(`Interface "${name}" is the loopback, which cannot be a member of a bond`);
  if (master !== undefined) {
    const what = findLink(host, master)?.kind ?? "link";
    refuse(
      `Interface "${name}" is already a member of the ${what} "${master}"; remove it from there before it can join the bond "${bond}"`,
    );
  }
  if (standsOn(host, link, bond)) {
    refuse(`Interface "${name}" is itself on top of the bond "${bond}"; name an interface below it`);
  }
  const [member] = host.links.filter(({ master }) => master === name);
  if (member !== undefined) {
    const text = `Interface "${name}" has the member "${member.name}", which the bond "${bond}" would cut off`;
    refuse(`${text}; name its members instead, or remove them from it first`);
  }
  const upper = host.links.find((each) => isOn(each, link));
  if (upper !== undefined) {
    refuse(
      `Interface "${name}" carries the device "${upper.name}", which the bond "${bond}" would cut off; remove it first`,
    );
  }
  const load = ipConfigOf(host, link);
  if (takeOver) requireStatic(load, name);
  else refuseIpConfig(load, name, bond);
}

/** Rounds delays as the kernel does: down to multiples of `miimon`, without which the options have none. */
function roundDelays({ numbers, ...rest }: BondSettings): BondSettings {
  const { miimon = 1 } = numbers;
  const delays = NEED_MIIMON.flatMap((name) => {
    const value = numbers[name];
    return value === undefined ? [] : [[name, value - (value % miimon)]];
  });
  return { ...rest, numbers: { ...numbers, ...Object.fromEntries(delays) } };
}

function differences(name: string, now: BondSettings, wanted: BondSettings): string[] {
  const { activeSlave: _, ...lasting } = roundDelays(wanted);
  const has = new Map(bondWords(now));
  const inOrder = (text: string | undefined): string | undefined => text?.split(",").sort().join(",");
  return bondWords(lasting)
    .filter(([option, value]) => inOrder(has.get(option)) !== inOrder(value))
    .map(([option, value]) => {
      const found = has.get(option) || "unset";
      return `Bond "${name}" has ${option} ${found}, the definition wants ${value}; left unchanged because other pods use the bond`;
    });
}

const setLink = (link: string, from: LinkSettings, to: LinkSettings): Operation => ({
  kind: "set-link",
  place,
  link,
  from,
  to,
});

const UP: LinkSettings = { up: true };
const DOWN: LinkSettings = { up: false };

function join({ name, up }: LinkState, bond: string): Operation[] {
  return [
    ...(up ? [setLink(name, UP, DOWN)] : []),
    setLink(name, { master: "" }, { master: bond }),
    setLink(name, DOWN, UP),
  ];
}

/** Values in an untouched bond of the options that the kernel reports in mode 802.3ad only (`bond_fill_info`). */
const UNREPORTED: BondSettings = {
  numbers: { ad_actor_sys_prio: 65_535, ad_user_port_key: 0 },
  actorSystem: "00:00:00:00:00:00" as Mac,
};

/** Returns the bond's current values of those options, as far as they are known. */
function currentOptions(now: BondSettings, options: BondSettings): BondSettings {
  const known = { ...UNREPORTED.numbers, ...now.numbers };
  const numbers = Object.keys(options.numbers).flatMap((key) => {
    const name = key as keyof BondSettings["numbers"];
    const value = known[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    numbers: Object.fromEntries(numbers),
    ...(options.arpIpTargets && { arpIpTargets: now.arpIpTargets ?? [] }),
    ...(options.nsIp6Targets && { nsIp6Targets: now.nsIp6Targets ?? [] }),
    ...(options.actorSystem && { actorSystem: now.actorSystem ?? UNREPORTED.actorSystem }),
  };
}

/** Sets the mode, then the options, then those that need `miimon`. The reverse order of undoing is allowed, too. */
function configure(name: string, now: BondSettings, mode: number, options: BondSettings): Operation[] {
  const { mode: was = 0, miimon = 0, arp_interval = 0 } = now.numbers;
  const isDelay = (key: string): boolean => NEED_MIIMON.some((each) => each === key);
  const pick = (wanted: boolean): BondSettings["numbers"] =>
    Object.fromEntries(Object.entries(options.numbers).filter(([key]) => isDelay(key) === wanted));
  const early = { ...options, numbers: pick(false) };
  const late = { numbers: pick(true) };
  const set = (from: BondSettings, to: BondSettings): Operation[] =>
    bondWords(to).length === 0 ? [] : [{ kind: "set-bond", place, link: name, from, to }];
  return [
    ...set({ numbers: { mode: was, miimon, arp_interval } }, { numbers: { mode } }),
    ...set(currentOptions(now, early), early),
    ...set(currentOptions(now, late), late),
  ];
}

function mtuOf(members: readonly LinkState[]): number | undefined {
  const sizes = members.flatMap(({ mtu }) => mtu ?? []);
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}

/**
 * Returns the interfaces that the definition names. A bond that has one of them works without another whose device has
 * failed; else a name may be misspelt, and CniError 106 is thrown.
 */
function findMembers(host: NamespaceState, { name, members }: BondSpec): LinkState[] {
  const found = members.flatMap((member) => findLink(host, member) ?? []);
  return found.some(({ master }) => master === name) ? found : members.map((member) => requireInterface(host, member));
}

function warnAboutAbsent(host: NamespaceState, { name, members }: BondSpec): string[] {
  const absent = members.filter((member) => findLink(host, member) === undefined);
  return absent.map((member) => `Bond "${name}" is used without "${member}", which does not exist on this node`);
}

/** Returns the link if any, the operations, those to apply `lastly`, whose failure keeps the rest, and warnings. */
export function planBond(host: NamespaceState, spec: BondSpec) {
  const { name, mode = 0, options } = spec;
  const members = findMembers(host, spec);
  const link = findLink(host, name);
  const found = link && requireSame(host, link, spec);
  const joining = members.filter(({ master }) => master !== name);
  for (const member of joining) requireFree(host, member, spec);

  const { primary, activeSlave, ...early } = options;
  const isOurs = found?.isUntouched !== false;
  const settings = { ...early, numbers: { mode, ...early.numbers } };
  const make: Operation[] = [
    { kind: "add-device", place, device: { kind: "bond", name, mtu: mtuOf(members), settings } },
  ];
  const move = planMove(host, joining, name);
  const setLast = (from: BondSettings, to: BondSettings): Operation => ({
    kind: "set-bond",
    place,
    link: name,
    from,
    to,
  });
  return {
    link,
    operations: [
      ...(found === undefined ? make : found.isUntouched ? configure(name, found.settings, mode, early) : []),
      ...joining
        .filter(({ up }) => up)
        .map((member): Operation => ({ kind: "try-member", place, link: member.name, bond: name })),
      ...move.leave,
      ...joining.flatMap((member) => join(member, name)),
      ...(link?.up === true ? [] : [setLink(name, DOWN, UP)]),
      ...move.arrive,
      ...(isOurs && primary !== undefined ? [setLast({ numbers: {}, primary: "" }, { numbers: {}, primary })] : []),
    ],
    lastly: isOurs && activeSlave !== undefined ? [setLast({ numbers: {} }, { numbers: {}, activeSlave })] : [],
    warnings: [
      ...warnAboutAbsent(host, spec),
      ...(found?.isUntouched === false ? differences(name, found.settings, options) : []),
    ],
  };
}
