/**
 * What a refusal of the kernel means where its own words are about something else, or name nothing that can be looked for.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { ApplyError } from "../../kernel/apply.ts";
import { EBUSY, EEXIST, EOPNOTSUPP } from "../../kernel/errno.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import type { Device } from "../../plan/operation.ts";

/** The module that makes links of the kind. */
const MODULES = { vlan: "8021q", bond: "bonding" } as const;

/** The kernel's words for a kind that it does not have. */
const LACKS_KIND = /unknown device type|not supported \(EOPNOTSUPP\)$/i;

function aboutDevice({ errno, message }: NetlinkError, device: Device): [ErrorCode, string] | undefined {
  const { name, kind } = device;
  if (errno === EOPNOTSUPP && LACKS_KIND.test(message)) {
    const text = `this kernel has no module ${MODULES[kind]}, or it is not loaded; run "modprobe ${MODULES[kind]}" on the node`;
    return [ErrorCode.KernelRefused, `Device "${name}" cannot be made: ${text}`];
  }
  if (errno !== EEXIST) return undefined;
  const id = device.kind === "vlan" ? `, or VLAN ${device.id} of "${device.parent}" in another network namespace` : "";
  const text = `the kernel has it already, as the second name of another device${id}; remove that or change the definition`;
  return [ErrorCode.InterfaceRefused, `Device "${name}" cannot be made: ${text}`];
}

function aboutMember({ errno }: NetlinkError, link: string, bond: string): [ErrorCode, string] | undefined {
  if (errno !== EBUSY) return undefined;
  const text =
    `Interface "${link}" is in use, by macvlan or ipvlan devices of pods or by another driver, which the bond "${bond}" would cut off; ` +
    "remove those first, or choose another interface";
  return [ErrorCode.InterfaceRefused, text];
}

/** The error itself when the kernel's words are good enough. */
export function explain(error: ApplyError): Error {
  const { operation, cause, leftovers } = error;
  if (!(cause instanceof NetlinkError) || leftovers.length > 0) return error;
  const meaning =
    operation.kind === "add-device"
      ? aboutDevice(cause, operation.device)
      : operation.kind === "try-member"
        ? aboutMember(cause, operation.link, operation.bond)
        : undefined;
  return meaning === undefined ? error : new CniError(...meaning, { cause: error, details: error.message });
}
