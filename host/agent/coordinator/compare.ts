/**
 * CHECK of `coordinator`, and repairs: reports or restores missing parts of an attachment. A repair changes nothing in
 * a namespace that may be another pod's by now.
 * Effects: changes both namespaces, or the node's alone.
 */

import { CniError, ErrorCode, refuseInterface } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import { isRoutable } from "../../coordinator/plan/address-policy.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { selectNodeRepairs, selectPodUpdates } from "../../coordinator/plan/node-repairs.ts";
import { isRetired } from "../../coordinator/plan/own-objects.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { isDifference, isUpgrade } from "../../coordinator/plan-check.ts";
import type { Comparison } from "../../findings/node/find-drift.ts";
import { applyOperations } from "../../kernel/apply.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type NamespaceSource, type OpenNamespace, openPodNamespace } from "../../kernel/open-namespace.ts";
import { messageOf } from "../../lib/describe.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { type Mac, parseMac } from "../../net/mac.ts";
import type { Operation } from "../../plan/operation.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { formatOperation } from "../../plan/text.ts";
import { type AttachContext, type Decision, decide, readOwnFacts, readRegistryFacts, routableOf } from "./decide.ts";
import { findDetour } from "./find-detour.ts";
import { addressesOf, requirePrevResult } from "./observe.ts";

/**
 * Restores the ADD's state on the node, and returns the operations; tells the pod of the node's addresses that came or
 * went since. Nothing is done in mode `disable`; if the NIC or its addresses are missing, or they are no longer
 * allocated: the attachment has ended. Throws CniError 106 if the attachment conflicts with the present state, its pair
 * is gone, the pod cannot be told, or the node's packets do not reach it all the same; ApplyError if the kernel
 * refuses.
 */
export async function restoreNodeSide(context: AttachContext, request: AttachRequest): Promise<readonly Operation[]> {
  const { conf, deps } = context;
  if (conf.mode === "disable") return [];
  const prevResult = requirePrevResult(request);
  const own = await readOwnFacts(context, request);
  const routable = routableOf(context, own[1]);
  using pod = openPodNamespace(request.netns);
  const addresses = addressesOf(prevResult, request.ifName);
  if (!addresses.every((ip) => isRoutable(ip, routable))) return [];
  if (findMissing(observeNamespace(pod, { addresses: true }), request, addresses) !== undefined) return [];
  const facts = await readRegistryFacts(context, request, pod, own);
  const decideNow = () => decide(context, request, pod, prevResult, { ...facts, routable });
  const decision = decideNow();
  // Between the DEL of the coordinator and that of the IPAM plugin the address is still allocated.
  if (decision?.input.observed.host.links.some(({ group }) => isRetired(group)) === true) return [];
  const differences = differencesOf(context, request, decision);
  // The node alone cannot make it again.
  if (differences.some(({ kind }) => kind === "add-veth")) refusePair(request);
  const operations = selectNodeRepairs(differences);
  const { host, faults } = deps;
  if (operations.length > 0) await applyOperations(operations, { pod, host }, { faults });
  await tellPod(context, request, pod, selectPodUpdates(decision?.operations ?? []));
  // A route or rule that was just restored may lead elsewhere, too.
  const { input } = (operations.length > 0 ? decideNow() : decision) ?? {};
  const detour = input && findDetour(host, pod, input);
  if (detour !== undefined) refuseInterface(detour);
  return operations;
}

function refusePair({ containerId }: AttachRequest): never {
  const { name } = nameVeth(containerId).host;
  refuseInterface(
    `Other software has deleted or renamed its pair "${name}", by which the pod reaches the node and services; rename it back, if it is deleted run "berthctl check --repair", or restart the pod`,
  );
}

async function tellPod(
  { deps: { host, faults }, log }: AttachContext,
  request: AttachRequest,
  pod: NamespaceSource,
  updates: readonly Operation[],
): Promise<void> {
  if (updates.length === 0) return;
  try {
    await applyOperations(updates, { pod, host }, { faults });
  } catch (error) {
    // The pod may have caused that.
    refuseInterface(`The pod does not know the node's addresses: ${messageOf(error)}`);
  }
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  log.info({ ...about, operations: updates.map(formatOperation) }, "Told of the node's addresses");
}

/** Returns the operations that restore the ADD's state, without later changes of the node or by a new release. */
function differencesOf(
  { networks: { collected } }: AttachContext,
  request: AttachRequest,
  decision: Decision | undefined,
): Operation[] {
  if (decision === undefined) return [];
  const { ips, routes } = requirePrevResult(request);
  const routers = [...ips.map(({ gateway }) => gateway), ...routes.map(({ gw }) => gw)];
  const { pod } = decision.input.observed;
  const nic = { ifName: request.ifName, routers: routers.filter((ip) => ip !== undefined), collected };
  return decision.operations.filter((each) => isDifference(each, nic) && !isUpgrade(each, pod));
}

/** Returns an address of the attachment that its NIC lacks: the namespace's path may lead to another pod by now. */
function findMissing(
  { addresses }: Pick<NamespaceState, "addresses">,
  { ifName }: AttachRequest,
  ips: readonly Ip[],
): Ip | undefined {
  const own = addresses.filter(({ link }) => link === ifName);
  return ips.find((ip) => !own.some(({ prefix }) => equalIp(prefix.ip, ip)));
}

/**
 * Returns no difference in mode `disable`. `reportedMac` is the NIC's MAC in the result of the whole chain, if that is
 * known. Throws CniError 106 if the attachment conflicts with the present state.
 */
export async function compareAttachment(
  context: AttachContext,
  request: AttachRequest,
  reportedMac?: Mac,
): Promise<Comparison> {
  if (context.conf.mode === "disable") return { operations: [] };
  using pod = openPodNamespace(request.netns);
  const decision = await decideAnew(context, request, pod, reportedMac);
  if (decision === undefined) return { operations: [] };
  const operations = differencesOf(context, request, decision);
  const detour = operations.length > 0 ? undefined : findDetour(context.deps.host, pod, decision.input);
  return { operations, detour };
}

async function decideAnew(
  context: AttachContext,
  request: AttachRequest,
  pod: OpenNamespace,
  reportedMac?: Mac,
): Promise<Decision | undefined> {
  const prevResult = requirePrevResult(request);
  const facts = await readRegistryFacts(context, request, pod, await readOwnFacts(context, request));
  return decide(context, request, pod, prevResult, facts, reportedMac);
}

/**
 * Applies the operations of {@link compareAttachment}, and returns them. Nothing is changed in a namespace whose
 * interface lacks an address of the attachment: another pod may have the path by now. Rejects as it does, with
 * ApplyError if the kernel refuses, and with CniError 106 for such a namespace.
 */
export async function repairAttachment(context: AttachContext, request: AttachRequest): Promise<readonly Operation[]> {
  const { conf, deps, log } = context;
  if (conf.mode === "disable") return [];
  using pod = openPodNamespace(request.netns);
  const decision = await decideAnew(context, request, pod);
  const operations = differencesOf(context, request, decision);
  if (decision === undefined || operations.length === 0) return [];
  requireOwnNamespace(request, decision.input);
  await applyOperations(operations, { pod, host: deps.host }, { remover: deps.remover, faults: deps.faults });
  const about = { container: request.containerId, interface: request.ifName, network: request.netConf.name };
  log.info({ ...about, operations: operations.map(formatOperation) }, "Repaired");
  return operations;
}

function requireOwnNamespace(request: AttachRequest, { addresses, observed }: PlanInput): void {
  const { netns, ifName } = request;
  const missing = findMissing(observed.pod, request, addresses);
  if (missing === undefined && addresses.length > 0) return;
  const what = missing === undefined ? "an address of the attachment" : formatIp(missing);
  refuseInterface(
    `Interface "${ifName}" in ${netns} does not have ${what}, so another pod may have that namespace by now, and nothing was changed; restart the pod`,
  );
}

function macOf({ netConf: { prevResult }, ifName }: AttachRequest): Mac | undefined {
  const nic = prevResult?.interfaces.find(({ name, sandbox = "" }) => name === ifName && sandbox !== "");
  return parseMac(nic?.mac ?? "");
}

/** Throws CniError 106 that lists the differences in the words of `ip`. */
export async function checkAttachment(context: AttachContext, request: AttachRequest): Promise<void> {
  const { operations, detour } = await compareAttachment(context, request, macOf(request));
  const lines = operations.map(formatOperation);
  if (detour !== undefined) refuseInterface(detour);
  if (lines.length === 0) return;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `Interface "${request.ifName}" is not as ADD left it; restoring it requires "${lines[0] ?? ""}"${more}`,
    { details: lines.join("\n") },
  );
}
