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
import { EEXIST } from "../../kernel/errno.ts";
import type { LinkRemover } from "../../kernel/link-remover.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { RT_TABLE_LOCAL } from "../../kernel/netlink/route/constants.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Operation } from "../../plan/operation.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import { explain } from "./explain.ts";
import type { MoveRecord } from "./move-record.ts";

/** How often an ADD looks again when somebody else made the same device between its look and its deed. @limit */
export const DEVICE_ATTEMPTS = 5;

export interface IfacerTools {
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

async function apply(operations: readonly Operation[], { host, faults }: IfacerTools): Promise<void> {
  await applyOperations(operations, { host, pod: host }, { remover: NO_REMOVER, faults });
}

const isMove = ({ kind }: Operation): boolean => kind === "delete-address" || kind === "delete-route";

/** What takes addresses or routes of the node off a link is on record until it has ended, one way or the other. */
async function applyOnRecord(operations: readonly Operation[], tools: IfacerTools): Promise<void> {
  if (!operations.some(isMove)) return apply(operations, tools);
  try {
    tools.moves.keep(operations);
  } catch (error) {
    const text = `Addresses cannot be moved: what is done cannot be recorded (${messageOf(error)}); make room in the state directory`;
    throw new CniError(ErrorCode.RegistryUnavailable, text, { cause: error });
  }
  try {
    await apply(operations, tools);
  } finally {
    tools.moves.forget();
  }
}

/** Takes back what an agent that was killed was doing; the node may be cut off until then. */
export async function takeBackMoves({ host, moves, log }: Pick<IfacerTools, "host" | "moves" | "log">): Promise<void> {
  const operations = moves.find();
  if (operations.length === 0) return;
  const leftovers = await undoOperations(operations, { host, pod: host }, { remover: NO_REMOVER });
  log.warn(
    { operations: operations.map(formatOperation), leftovers },
    "An agent ended while addresses moved; taken back",
  );
  moves.forget();
}

async function planAndApply(wish: DeviceSpec, tools: IfacerTools): Promise<DevicePlan> {
  for (let attempt = 1; ; attempt += 1) {
    const plan = planDevices(wish, observe(tools.host, wish));
    try {
      await applyOnRecord(plan.operations, tools);
      return plan;
    } catch (error) {
      if (isRace(error) && attempt < DEVICE_ATTEMPTS) continue;
      throw error instanceof ApplyError ? explain(error) : error;
    }
  }
}

/** The one device that pods hang on: main plugins that take their master from the plugin before find it there. */
function resultOf(device: string, { host }: IfacerTools): CniResult {
  const mac = observeNamespace(host, {}).links.find(({ name }) => name === device)?.mac;
  return { interfaces: [{ name: device, mac }], ips: [], routes: [] };
}

export async function attach(wish: DeviceSpec, request: AttachRequest, tools: IfacerTools): Promise<CniResult> {
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
export function checkDevices(wish: DeviceSpec, { host }: IfacerTools): void {
  const { operations, device } = planDevices(wish, observe(host, wish));
  const lines = operations.filter(({ kind }) => kind !== "try-member").map(formatOperation);
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  const text = `Device "${device}" is not as it was set up: it lacks "${lines[0] ?? ""}"${more}`;
  throw new CniError(ErrorCode.InterfaceRefused, text, { details: lines.join("\n") });
}
