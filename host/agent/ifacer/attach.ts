/**
 * ADD and CHECK of `ifacer`: observe the node, plan, and do it, or say what is missing.
 * Called by plugin.ts. From observing to the last operation, or to the last that is taken back, nothing else runs: several ADDs for
 * one device come one after another, and all but the first find it there.
 * Effects: changes links, addresses and routes of the node.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { IfacerPermission } from "../../config/vendor-conf.ts";
import type { DeviceSpec } from "../../ifacer/device-spec.ts";
import { requirePermitted } from "../../ifacer/permission.ts";
import { type DevicePlan, needsTraffic, planDevices } from "../../ifacer/plan-devices.ts";
import { ApplyError, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { EBUSY, EEXIST, EOPNOTSUPP } from "../../kernel/errno.ts";
import type { LinkRemover } from "../../kernel/link-remover.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { RT_TABLE_LOCAL } from "../../kernel/netlink/route/constants.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Device, Operation } from "../../plan/operation.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import type { MoveRecord } from "./move-record.ts";

/** How often an ADD looks again when somebody else made the same device between its look and its deed. @limit */
export const DEVICE_ATTEMPTS = 5;

export interface IfacerDeps {
  /** The node's own namespace. */
  readonly host: OpenNamespace;
  /** Of moves under way. */
  readonly moves: MoveRecord;
  readonly faults: Faults;
  readonly log: Log;
  /** `ifacer` of vendor-conf, as it is now. */
  readonly permission: () => IfacerPermission;
}

/** No plan of the ifacer deletes a veth. */
const NO_REMOVER: LinkRemover = {
  removeLink: () => Promise.reject(new Error("The ifacer removes no veth")),
  close: async () => {},
};

/** Addresses and routes only when they matter: a node has many. */
function observe(host: OpenNamespace, wish: DeviceSpec): NamespaceState {
  const links = observeNamespace(host, {});
  if (!needsTraffic(wish, links)) return links;
  const neighbours = wish.interfaces.map((link) => ({ link }));
  const state = observeNamespace(host, { addresses: true, routeTables: "every", neighbours });
  return { ...state, routes: state.routes.filter(({ table }) => table !== RT_TABLE_LOCAL) };
}

/** Somebody else made a device of that name between the look and the deed. */
function isRace(error: unknown): boolean {
  if (!(error instanceof ApplyError) || error.operation.kind !== "add-device") return false;
  return error.cause instanceof NetlinkError && error.cause.errno === EEXIST && error.leftovers.length === 0;
}

async function apply(operations: readonly Operation[], { host, faults }: IfacerDeps): Promise<void> {
  await applyOperations(operations, { host, pod: host }, { remover: NO_REMOVER, faults });
}

const isMove = ({ kind }: Operation): boolean => kind === "delete-address" || kind === "delete-route";

/** What takes addresses or routes of the node off a link is on record until it has ended, one way or the other. */
async function applyRecorded(operations: readonly Operation[], tools: IfacerDeps): Promise<void> {
  if (!operations.some(isMove)) return apply(operations, tools);
  try {
    tools.moves.write(operations);
  } catch (error) {
    const text = `Addresses cannot be moved: what is done cannot be recorded (${messageOf(error)}); make room in the state directory`;
    throw new CniError(ErrorCode.RegistryUnavailable, text, { cause: error });
  }
  try {
    await apply(operations, tools);
  } finally {
    tools.moves.remove();
  }
}

/** Takes back what an agent that was killed was doing; the node may be cut off until then. */
export async function undoMoves({ host, moves, log }: Pick<IfacerDeps, "host" | "moves" | "log">): Promise<void> {
  const operations = moves.read();
  if (operations.length === 0) return;
  const leftovers = await undoOperations(operations, { host, pod: host }, { remover: NO_REMOVER });
  log.warn(
    { operations: operations.map(formatOperation), leftovers },
    "An agent ended while addresses moved; taken back",
  );
  moves.remove();
}

async function planAndApply(wish: DeviceSpec, tools: IfacerDeps): Promise<DevicePlan> {
  for (let attempt = 1; ; attempt += 1) {
    const plan = planDevices(wish, observe(tools.host, wish));
    try {
      await applyRecorded(plan.operations, tools);
      return plan;
    } catch (error) {
      if (isRace(error) && attempt < DEVICE_ATTEMPTS) continue;
      throw error instanceof ApplyError ? explain(error) : error;
    }
  }
}

/** The one device that pods hang on: main plugins that take their master from the plugin before find it there. */
function resultOf(device: string, { host }: IfacerDeps): CniResult {
  const mac = observeNamespace(host, {}).links.find(({ name }) => name === device)?.mac;
  return { interfaces: [{ name: device, mac }], ips: [], routes: [] };
}

export async function attach(wish: DeviceSpec, request: AttachRequest, tools: IfacerDeps): Promise<CniResult> {
  const { log } = tools;
  requirePermitted(wish, tools.permission());
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  const plan = await planAndApply(wish, tools);
  for (const warning of plan.warnings) log.warn(about, warning);
  try {
    await apply(plan.lastly, tools);
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error;
    log.warn({ ...about, reason: messageOf(error) }, "Left as it is");
  }
  if (plan.operations.length > 0) {
    log.info({ ...about, device: plan.device, operations: plan.operations.map(formatOperation) }, "Device set up");
  }
  return request.netConf.prevResult ?? resultOf(plan.device, tools);
}

/** Throws CniError 106 that lists what is missing, in the words of `ip`. */
export function checkDevices(wish: DeviceSpec, { host }: IfacerDeps): void {
  const { operations, device } = planDevices(wish, observe(host, wish));
  const lines = operations.filter(({ kind }) => kind !== "try-member").map(formatOperation);
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  const text = `Device "${device}" is not as ADD left it; restoring it requires "${lines[0] ?? ""}"${more}`;
  throw new CniError(ErrorCode.InterfaceRefused, text, { details: lines.join("\n") });
}

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
