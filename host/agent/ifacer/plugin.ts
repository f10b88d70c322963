/**
 * The plugin `ifacer`: the CNI verbs for devices that pods of several definitions share (docs/ifacer.md). DEL, GC and
 * undoing an ADD delete nothing: other pods may use the device, and nothing on the node says how many.
 */

import { CniError, ErrorCode } from "../../cni/error.ts";
import { pluginKeys } from "../../cni/net-conf.ts";
import type { AttachRequest, CniRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import type { IfacerPermission } from "../../config/vendor-conf.ts";
import { type DeviceSpec, decodeDeviceSpec } from "../../ifacer/device-spec.ts";
import { withLinkNames } from "../../ifacer/link-names.ts";
import { requirePermitted } from "../../ifacer/permission.ts";
import { type DevicePlan, needsTraffic, planDevices } from "../../ifacer/plan-devices.ts";
import { ApplyError, applyOperations, undoOperations } from "../../kernel/apply.ts";
import { EBUSY, EEXIST, EOPNOTSUPP } from "../../kernel/errno.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { findLinkName } from "../../kernel/netlink/link/requests.ts";
import { RT_TABLE_LOCAL } from "../../kernel/netlink/route/constants.ts";
import { OWN_NETNS } from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type OpenNamespace, openNamespace } from "../../kernel/open-namespace.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Device, Operation } from "../../plan/operation.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import type { Plugin } from "../request/plugin.ts";
import { MoveRecord } from "./move-record.ts";

/** Throws ConfigError. */
function specOf({ netConf }: { readonly netConf: Pick<CniRequest["netConf"], "raw"> }): DeviceSpec {
  return decodeDeviceSpec(pluginKeys(netConf), "CNI configuration");
}

export function createIfacerPlugin(deps: IfacerDeps): Plugin {
  const nothing = async (): Promise<[]> => [];
  return {
    add: async (request) => ({ result: await attach(specOf(request), request, deps), undo: async () => {} }),
    check: async (request) => checkDevices(specOf(request), deps),
    del: nothing,
    gc: nothing,
    status: async (request) => {
      specOf(request);
      return "";
    },
  };
}

interface OpenIfacerOptions extends Pick<IfacerDeps, "faults" | "log" | "permission"> {
  readonly stateDirectory: string;
  readonly bootId: string;
}

/** Opens the ifacer, after undoing a killed agent's unfinished move. Throws NetlinkError without a socket. */
export async function openIfacer({ stateDirectory, bootId, ...rest }: OpenIfacerOptions) {
  const host = openNamespace(OWN_NETNS);
  const deps = { host, moves: new MoveRecord(stateDirectory, bootId), ...rest };
  await undoMoves(deps);
  return {
    plugin: createIfacerPlugin(deps),
    restore: (entry: PlacedEntry["entry"]) => restoreDevices(specOf({ netConf: { raw: entry } }), deps),
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}

/** Number of times that an ADD plans again because another process created the same device. */
const DEVICE_ATTEMPTS = 5;

interface IfacerDeps {
  /** The node's own namespace. */
  readonly host: OpenNamespace;
  /** Records moves of addresses in progress. */
  readonly moves: MoveRecord;
  readonly faults: Faults;
  readonly log: Log;
  /** Returns the current `ifacer` of vendor-conf. */
  readonly permission: () => IfacerPermission;
}

function resolveNames(spec: DeviceSpec, { route }: OpenNamespace): DeviceSpec {
  return withLinkNames(spec, (name) => findLinkName(route, name));
}

/** Reads addresses and routes only if the plan needs them: a node has many. */
function observe(host: OpenNamespace, spec: DeviceSpec): NamespaceState {
  const links = observeNamespace(host, {});
  if (!needsTraffic(spec, links)) return links;
  const neighbours = spec.interfaces.map((link) => ({ link }));
  const state = observeNamespace(host, { addresses: true, routeTables: "every", neighbours });
  return { ...state, routes: state.routes.filter(({ table }) => table !== RT_TABLE_LOCAL) };
}

/** Returns whether another process created the device after it was observed. */
function isRace(error: unknown): boolean {
  if (!(error instanceof ApplyError) || error.operation.kind !== "add-device") return false;
  return error.cause instanceof NetlinkError && error.cause.errno === EEXIST && error.leftovers.length === 0;
}

async function apply(operations: readonly Operation[], { host, faults }: IfacerDeps): Promise<void> {
  await applyOperations(operations, { host, pod: host }, { faults });
}

const isMove = ({ kind }: Operation): boolean => kind === "delete-address" || kind === "delete-route";

/** Applies the operations. Moves of the node's addresses and routes are recorded on disk until they have ended. */
async function applyRecorded(operations: readonly Operation[], deps: IfacerDeps): Promise<void> {
  if (!operations.some(isMove)) return apply(operations, deps);
  try {
    deps.moves.write(operations);
  } catch (error) {
    const text = `Addresses cannot be moved to the bond: recording the move failed (${messageOf(error)}); free disk space in the state directory`;
    throw new CniError(ErrorCode.RegistryUnavailable, text, { cause: error });
  }
  try {
    await apply(operations, deps);
  } finally {
    deps.moves.remove();
  }
}

/** Undoes the moves of an agent that was killed; the node may be unreachable until then. */
async function undoMoves({ host, moves, log }: Pick<IfacerDeps, "host" | "moves" | "log">): Promise<void> {
  const operations = moves.read();
  if (operations.length === 0) return;
  const leftovers = await undoOperations(operations, { host, pod: host });
  log.warn(
    { operations: operations.map(formatOperation), leftovers },
    "An agent ended while it was moving addresses to a bond; the move was undone",
  );
  moves.remove();
}

async function planAndApply(spec: DeviceSpec, deps: IfacerDeps): Promise<DevicePlan> {
  for (let attempt = 1; ; attempt += 1) {
    const plan = planDevices(spec, observe(deps.host, spec));
    try {
      await applyRecorded(plan.operations, deps);
      return plan;
    } catch (error) {
      if (isRace(error) && attempt < DEVICE_ATTEMPTS) continue;
      throw error instanceof ApplyError ? explain(error) : error;
    }
  }
}

/** Returns the device as the result, where main plugins that take their master from the previous plugin find it. */
function resultOf(device: string, { host }: IfacerDeps): CniResult {
  const mac = observeNamespace(host, {}).links.find(({ name }) => name === device)?.mac;
  return { interfaces: [{ name: device, mac }], ips: [], routes: [] };
}

/** Returns the definition with the names of links that exist. Throws CniError 106 if vendor-conf does not permit it. */
function requireSpec(definition: DeviceSpec, { host, permission }: IfacerDeps): DeviceSpec {
  requirePermitted(definition, permission(), (name) => findLinkName(host.route, name));
  return resolveNames(definition, host);
}

async function attach(definition: DeviceSpec, request: AttachRequest, deps: IfacerDeps): Promise<CniResult> {
  const { log } = deps;
  const spec = requireSpec(definition, deps);
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  const plan = await planAndApply(spec, deps);
  for (const warning of plan.warnings) log.warn(about, warning);
  try {
    await apply(plan.lastly, deps);
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error;
    log.warn({ ...about, reason: messageOf(error) }, "Setting the active member of a bond failed; left unchanged");
  }
  if (plan.operations.length > 0) {
    log.info({ ...about, device: plan.device, operations: plan.operations.map(formatOperation) }, "Device set up");
  }
  return request.netConf.prevResult ?? resultOf(plan.device, deps);
}

/**
 * Restores the devices if other software has deleted them or set them down, and returns the operations that did it.
 * Addresses are never moved to a bond: only an ADD does that. Throws CniError 106 for a device that must not be
 * changed, or is missing and not permitted any more, and ApplyError.
 */
async function restoreDevices(definition: DeviceSpec, deps: IfacerDeps): Promise<readonly Operation[]> {
  const spec = resolveNames(definition, deps.host);
  const { operations } = planDevices(spec, observe(deps.host, spec));
  if (operations.length === 0 || operations.some(isMove)) return [];
  return (await planAndApply(requireSpec(definition, deps), deps)).operations;
}

/** Throws CniError 106 that lists the differences in the words of `ip`. */
function checkDevices(definition: DeviceSpec, { host }: IfacerDeps): void {
  const spec = resolveNames(definition, host);
  const { operations, device } = planDevices(spec, observe(host, spec));
  const lines = operations.filter(({ kind }) => kind !== "try-member").map(formatOperation);
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  const text = `Device "${device}" is not as ADD left it; restoring it requires "${lines[0] ?? ""}"${more}`;
  throw new CniError(ErrorCode.InterfaceRefused, text, { details: lines.join("\n") });
}

/** The kernel module for each kind of device. */
const MODULES = { vlan: "8021q", bond: "bonding" } as const;

/** The kernel's messages about a kind that it does not support. */
const LACKS_KIND = /unknown device type|not supported \(EOPNOTSUPP\)$/i;

function aboutDevice({ errno, message }: NetlinkError, device: Device): [ErrorCode, string] | undefined {
  const { name, kind } = device;
  if (errno === EOPNOTSUPP && LACKS_KIND.test(message)) {
    const text = `the kernel module ${MODULES[kind]} is missing or not loaded; run "modprobe ${MODULES[kind]}" on the node`;
    return [ErrorCode.KernelRefused, `Cannot create device "${name}": ${text}`];
  }
  if (errno !== EEXIST || device.kind !== "vlan") return undefined;
  const text = `VLAN ${device.id} of "${device.parent}" exists in another network namespace; remove that or change the definition`;
  return [ErrorCode.InterfaceRefused, `Cannot create device "${name}": ${text}`];
}

function aboutMember({ errno }: NetlinkError, link: string, bond: string): [ErrorCode, string] | undefined {
  if (errno !== EBUSY) return undefined;
  const text =
    `Interface "${link}" is in use by macvlan or ipvlan devices of pods or by another driver, which joining the bond "${bond}" would cut off; ` +
    "remove those first, or choose another interface";
  return [ErrorCode.InterfaceRefused, text];
}

/** Returns a CniError that explains the kernel's refusal; the error itself if the kernel's message is clear enough. */
function explain(error: ApplyError): Error {
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
