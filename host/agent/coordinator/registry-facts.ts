/** What the registry has bound to the NICs of a pod, for plans of one of them. */
import type { AttachRequest } from "../../cni/request.ts";
import type { PlacedEntry } from "../../config/network-definition.ts";
import type { RoutableAddresses } from "../../coordinator/plan/address-policy.ts";
import type { AttachedNic } from "../../coordinator/plan/plan-sources.ts";
import { readFirstLinkNames } from "../../kernel/link-names.ts";
import type { OpenNamespace } from "../../kernel/open-namespace.ts";
import type { Allocation, Attachment } from "../../registry/registry.ts";
import { identifyRequest, type PodIdentity } from "../ipam/pod-identity.ts";
import { pluginsOfNic } from "../nic-definition.ts";
import { isNoNic } from "./clean-pod.ts";
import type { AttachContext } from "./decide.ts";
import type { CoordinatorDeps } from "./settings.ts";

/** What is known of the pod and its NICs before anything is decided. */
export interface RegistryFacts {
  readonly pod: PodIdentity;
  readonly isFirstNicBerth: boolean;
  readonly routable: RoutableAddresses | undefined;
  readonly attached: readonly AttachedNic[];
}

/** Returns the plugins of the request's network. */
export function findPlugins(
  { definitions }: Pick<CoordinatorDeps, "definitions">,
  { netConf: { name: network }, ifName }: AttachRequest,
  { subject }: PodIdentity,
): readonly PlacedEntry[] {
  return pluginsOfNic(definitions, { ifName, network, pod: subject });
}

/** What the registry has bound to one NIC of the pod. */
interface BoundNic {
  readonly ifName: string;
  readonly rows: readonly Allocation[];
}

async function findBound({ registry }: Pick<CoordinatorDeps, "registry">, nic: Attachment): Promise<BoundNic> {
  const found = await registry.findAttachment(nic);
  return { ifName: nic.ifName, rows: found.filter(({ state }) => state === "Bound") };
}

/** Returns the pod, and what Berth allocated to the NIC. CHECK passes no signal: it does not ask the API server, and does not fail for what the watch does not know of the pod. */
export function readOwnFacts(
  { deps }: AttachContext,
  request: AttachRequest,
  signal?: AbortSignal,
): Promise<[PodIdentity, BoundNic]> {
  const { containerId, ifName } = request;
  const answer = request.command === "ADD" ? deps.answered.takeAnswer({ containerId, ifName }) : undefined;
  const rows = answer?.filter(({ state }) => state === "Bound");
  return Promise.all([
    signal ? deps.identifier.recognize(request, signal) : identifyRequest(request, deps.snapshot()),
    rows ? { ifName, rows } : findBound(deps, { containerId, ifName }),
  ]);
}

/** Returns what Berth allocated to the NIC, and what the administrator allows besides. */
export function routableOf({ deps }: Pick<AttachContext, "deps">, { rows }: BoundNic): RoutableAddresses {
  return {
    allocated: rows.map(({ ip, prefixLength }) => ({ ip, length: prefixLength })),
    allowed: deps.snapshot().vendorConf.hostRouteCIDR,
  };
}

/** Adds what is known of the pod's other NICs; a pod with one NIC costs no question. */
export async function readRegistryFacts(
  { deps, conf }: AttachContext,
  { command, containerId, ifName }: AttachRequest,
  netns: OpenNamespace,
  [pod, own]: readonly [PodIdentity, BoundNic],
): Promise<RegistryFacts> {
  const names = readFirstLinkNames(netns).filter((name) => name !== ifName && !isNoNic(name));
  const others = await Promise.all(names.map((name) => findBound(deps, { containerId, ifName: name })));
  /** Nothing for a NIC whose network has no coordinator. */
  const attachedOf = ({ ifName: name, rows }: BoundNic): AttachedNic[] => {
    const [row] = rows;
    const nic = row && { ifName: name, network: row.network, pod: pod.subject };
    if (nic === undefined || !deps.definitions.isCoordinated(nic)) return [];
    const settings = deps.definitions.settingsFor(nic);
    if (settings.mode === "disable") return [];
    return [{ ifName: name, addresses: rows.map(({ ip }) => ip), conf: settings }];
  };
  return {
    pod,
    isFirstNicBerth: others.some((nic) => nic.ifName === conf.podDefaultCniNic && nic.rows.length > 0),
    routable: command === "ADD" ? routableOf({ deps }, own) : undefined,
    attached: [{ ifName, addresses: own.rows.map(({ ip }) => ip), conf }, ...others.flatMap(attachedOf)],
  };
}
