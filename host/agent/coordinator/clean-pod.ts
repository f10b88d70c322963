/**
 * Deletes from a pod's namespace the state that the DEL of its only NIC leaves there: rules, routes and the nf_tables
 * table of the reply path. It goes with the namespace, which a runtime deletes right after the DEL; only a namespace
 * that stays is cleaned.
 * Effects: changes the pod's namespace.
 */

import type { IfName } from "../../cni/names.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../config/coordinator-settings.ts";
import { NFT_TABLE } from "../../coordinator/plan/constants.ts";
import { isNoNic, nameVeth } from "../../coordinator/plan/names.ts";
import { planDetachment } from "../../coordinator/plan/plan-detachment.ts";
import { applyOperations } from "../../kernel/apply.ts";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { readLink } from "../../kernel/netlink/link/requests.ts";
import {
  identityOf,
  isNetnsError,
  isOwnNetns,
  isSameNetns,
  type NetnsIdentity,
  openNetns,
} from "../../kernel/netns.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import { type NamespaceSource, type OpenNamespace, openPodForCleaning } from "../../kernel/open-namespace.ts";
import { linkStateOf } from "../../kernel/state-values.ts";
import { SysctlError } from "../../kernel/sysctl.ts";
import type { Log } from "../../lib/log.ts";
import { insteadOf } from "../../lib/try-or.ts";
import { diffPlan } from "../../plan/diff.ts";
import type { Veth } from "../../plan/operation.ts";
import { EMPTY_NAMESPACE, type LinkState, type NamespaceState } from "../../plan/state.ts";

/** Returns undefined if the namespace no longer exists, or is the node's own, which contains nothing of a pod. */
export function openPod(netns: string | undefined): OpenNamespace | undefined {
  if (netns === undefined) return undefined;
  const pod = insteadOf(isNetnsError, undefined, () => openPodForCleaning(netns));
  if (pod === undefined || !isOwnNetns(pod)) return pod;
  pod[Symbol.dispose]();
  return undefined;
}

/**
 * Returns whether the kernel refused. In a pod this is caused by the pod's own changes to its namespace, which must
 * not block its deletion.
 */
export const isOfKernel = (error: unknown): boolean => error instanceof NetlinkError || error instanceof SysctlError;

/** Observes the pod's state that a detachment may change: nothing if the kernel refuses. */
export function observePod(pod: NamespaceSource | undefined, log: Log): NamespaceState {
  if (pod === undefined) return EMPTY_NAMESPACE;
  try {
    return observeNamespace(pod, {
      addresses: true,
      routeTables: "not local",
      rules: true,
      tables: [NFT_TABLE],
    });
  } catch (error) {
    if (!isOfKernel(error)) throw error;
    log.warn(
      { err: error },
      "Observing the pod's network namespace failed; its contents are deleted with the namespace",
    );
    return EMPTY_NAMESPACE;
  }
}

/** Returns the node's end of the pair; undefined if there is none, or another link has its name. */
export function findHostEnd({ route }: NamespaceSource, { host }: Veth): LinkState | undefined {
  const link = readLink(route, host.name);
  const end = link && linkStateOf(link, () => undefined);
  return end?.kind === "veth" && end.mac === host.mac ? end : undefined;
}

/** The pod of a detached first NIC. */
export interface DetachedPod {
  readonly path: string;
  readonly identity: NetnsIdentity;
  readonly ifName: IfName;
}

/**
 * Returns the pod that the namespace at `path` is of, "gone" if there is no such namespace, or "in use" if it has
 * links besides the NIC and its pair: other NICs need their routes and rules to be right when the DEL is answered.
 */
export function findDetachedPod(path: string | undefined, ifName: IfName): DetachedPod | "gone" | "in use" {
  if (path === undefined) return "gone";
  return insteadOf(isNetnsError, "gone", () => {
    using netns = openNetns(path);
    const isAlone = readFirstLinkNames(netns).every((name) => name === ifName || isNoNic(name));
    return isAlone ? { path, identity: identityOf(netns), ifName } : "in use";
  });
}

/**
 * Cleans the pod's namespace if it is still there and has the other end of the pair. Returns the open namespace.
 * Closing it occupies a thread of the pool until the kernel has freed a deleted table, a dozen milliseconds after
 * this returns.
 */
export async function cleanPod(
  host: NamespaceSource,
  containerId: string,
  { path, identity, ifName }: DetachedPod,
  log: Log,
): Promise<Disposable | undefined> {
  const pod = openPod(path);
  if (pod === undefined) return undefined;
  const pair = nameVeth(containerId);
  try {
    const end = findHostEnd(host, pair);
    const isOwn = readLink(pod.route, pair.pod.name)?.mac === pair.pod.mac;
    if (end === undefined || !isOwn || !isSameNetns(identityOf(pod), identity)) return pod;
    const observed = { pod: observePod(pod, log), host: { ...EMPTY_NAMESPACE, links: [end] } };
    // Other settings concern the node, where everything lies on the pair.
    const conf = { ...DEFAULT_COORDINATOR_CONF, podDefaultCniNic: ifName };
    const { plan } = planDetachment({ conf, ifName, network: "", addresses: [], pair, observed });
    const operations = diffPlan(observed, plan).filter(({ kind }) => kind !== "delete-veth");
    await applyOperations(operations, { pod, host });
  } catch (error) {
    const about = { err: error, container: containerId };
    log.warn(about, "Cleaning up the pod's network namespace failed; its contents are deleted with the namespace");
  }
  return pod;
}
