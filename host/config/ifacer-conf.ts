/** Decodes the ifacer's entry in a network definition. ifacer/bond-options.ts decodes the options of the bond. */
import * as z from "zod";
import { type IfName, MAX_IF_NAME_BYTES } from "../cni/names.ts";
import { IFACER_TYPES } from "../cni/request.ts";
import { orAbsent, wholeNumber } from "../lib/schema.ts";
import { decodeConfig } from "./config-error.ts";
import { ifName, linkName } from "./fields/network.ts";

/** Highest VLAN id that a device may have; 4095 is reserved (IEEE 802.1Q §9.6). */
export const MAX_VLAN_ID = 4_094;

/** Most members of one bond (`interfaces`). @limit */
export const MAX_INTERFACES = 64;

/** Longest `bond.options`: UTF-16 units. All options of the kernel at their longest fit several times. */
export const MAX_BOND_OPTIONS_LENGTH = 4_096;

/** Names of the modes by their numbers (linux/if_bonding.h, BOND_MODE_*). */
const BOND_MODES = [
  "balance-rr",
  "active-backup",
  "balance-xor",
  "broadcast",
  "802.3ad",
  "balance-tlb",
  "balance-alb",
] as const;

/** Returns `1 (active-backup)`, or the number alone if it is unknown. */
export function formatBondMode(mode: number): string {
  const name = BOND_MODES[mode];
  return name === undefined ? `${mode}` : `${mode} (${name})`;
}

export interface IfacerConf {
  /** The members of the bond, or the parent of the VLAN device, by name or alternative name. At least one. */
  readonly interfaces: readonly string[];
  /** 0 if there is no VLAN. */
  readonly vlanId: number;
  readonly bond: Readonly<z.output<typeof bond>> | undefined;
  /** Name of the VLAN device; undefined if there is none. */
  readonly vlanName: IfName | undefined;
  /** Whether addresses and routes of members move to the bond. */
  readonly takeOver: boolean;
}

const DEFAULT_BOND_NAME = "vendor_bond0" as IfName;

const MODE_FORM = `a mode from 0 to ${BOND_MODES.length - 1}, as a number or by its name: ${BOND_MODES.join(", ")}`;

function modeOf(value: unknown): number {
  const asNumber = typeof value === "string" && /^[0-9]$/.test(value) ? Number(value) : value;
  if (typeof asNumber === "number") return Number.isInteger(asNumber) && asNumber in BOND_MODES ? asNumber : -1;
  const names: readonly unknown[] = BOND_MODES;
  return names.indexOf(value);
}

const mode = z.unknown().transform((value, context): number => {
  const number = modeOf(value);
  if (number >= 0) return number;
  context.addIssue({ code: "custom", message: MODE_FORM });
  return z.NEVER;
});

const bond = z.strictObject({
  name: ifName.default(DEFAULT_BOND_NAME),
  // 0 to 6; undefined leaves it to the kernel, whose default is 0.
  mode: mode.optional(),
  options: z
    .string({ error: 'options of the bond as text: "miimon=100;updelay=200"' })
    .max(MAX_BOND_OPTIONS_LENGTH, { error: `text of at most ${MAX_BOND_OPTIONS_LENGTH} characters` })
    .default(""),
});

const interfaces = z
  .array(linkName, { error: "a list of interface names" })
  .min(1, { error: "a list of at least one interface name" })
  .max(MAX_INTERFACES, { error: `a list of at most ${MAX_INTERFACES} interface names` })
  .check(({ value, issues }) => {
    const again = value.findIndex((name, index) => value.indexOf(name) < index);
    const message = `another interface than entry [${value.indexOf(value[again] ?? "")}]`;
    if (again >= 0) issues.push({ code: "custom", path: [again], message, input: value });
  });

const ONE_MASTER = 'one master interface, or several with a "bond" that joins them';

const entry = z
  .strictObject({
    type: z.literal(IFACER_TYPES).optional(),
    interfaces,
    vlanID: wholeNumber(0, MAX_VLAN_ID).default(0),
    bond: orAbsent(bond),
    takeOver: z.boolean().default(false),
  })
  .transform(({ interfaces: names, vlanID: vlanId, bond: joined, takeOver }, context): IfacerConf => {
    const issue = (path: PropertyKey[], message: string, got?: string): void =>
      context.addIssue({ code: "custom", path, message, ...(got === undefined ? {} : { params: { got } }) });
    if (joined === undefined && names.length > 1) issue(["interfaces"], ONE_MASTER, `${names.length} interfaces`);
    if (joined !== undefined && names.includes(joined.name)) issue(["bond", "name"], "a name that no member has");
    if (joined === undefined && takeOver) issue(["takeOver"], 'false, or a "bond" that takes the addresses over');
    const parent = joined?.name ?? names[0] ?? DEFAULT_BOND_NAME;
    const vlanName = `${parent}.${vlanId}`;
    if (vlanId > 0 && Buffer.byteLength(vlanName) > MAX_IF_NAME_BYTES) {
      const got = `${vlanId}, which makes the device name "${vlanName}" of ${Buffer.byteLength(vlanName)} bytes`;
      const fix =
        joined === undefined ? "give the master a shorter name, or an alternative one" : 'set a shorter "bond.name"';
      issue(["vlanID"], `a name of at most ${MAX_IF_NAME_BYTES} bytes: ${fix}`, got);
    }
    return {
      interfaces: names,
      vlanId,
      bond: joined,
      vlanName: vlanId === 0 ? undefined : (vlanName as IfName),
      takeOver,
    };
  });

/** Decodes a plugin entry's own keys (cni/net-conf.ts, `pluginKeys`). Throws ConfigError. */
export function decodeIfacerConf(value: unknown, source: string): IfacerConf {
  return decodeConfig(entry, value, source);
}
