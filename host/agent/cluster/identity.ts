/**
 * Finds the pod of a runtime's request. The watch is a cache: its pod counts only if the UID is that of the request;
 * otherwise the API server is asked (static-pods, leak).
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { type AttachRequest, decodePodArgs } from "../../cni/request.ts";
import { type AnnotationRules, decodePodAnnotations } from "../../config/annotations.ts";
import { isStaticOwner } from "../../ipam/leak.ts";
import type { PodSubject } from "../../ipam/model.ts";
import { mirroredHashOf, ownerOfPod } from "../../ipam/plan-prefetch.ts";
import { findAddressOwner, isMigrationTarget, refuseRetention } from "../../ipam/retention.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { decodeNamespace, type Namespace } from "../../resources/namespace.ts";
import { decodePod, type Pod } from "../../resources/pod.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import type { Identifier, PodIdentity } from "../ipam/pod-identity.ts";
import { identifyRequest } from "../ipam/pod-identity.ts";
import { readClaims, readForPod, readMachine } from "./address-owners.ts";
import { PoolOwners } from "./pool-owners.ts";

interface IdentityDeps {
  readonly api: KubeApi;
  /** The watch's. */
  readonly resources: { readonly snapshot: Pick<Snapshot, "pods" | "namespaces" | "vendorConf" | "firstNic"> };
}

export interface ClusterIdentifier extends Identifier {
  /** Looks the owners of generated pools up anew: a pod's owner got no pool. */
  forgetPoolOwners(): void;
  /**
   * Returns the identity of a watched pod whose ADD for the NIC is still to come; only the owners of its pools and
   * addresses are looked up.
   */
  ofPod(pod: Pod, ifName: string, signal: AbortSignal): Promise<PodIdentity>;
}

/** The pod as a runtime names it. */
interface Named {
  readonly namespace: string;
  readonly name: string;
  /** Undefined with old runtimes. */
  readonly uid: string | undefined;
}

export function openClusterIdentifier(deps: IdentityDeps): ClusterIdentifier {
  const { resources } = deps;
  const poolOwners = new PoolOwners(deps);
  const identityOf = async (pod: Pod, options: IdentityOptions, signal: AbortSignal): Promise<PodIdentity> => {
    const { vendorConf } = resources.snapshot;
    const { ifName } = options;
    const { subject, ...identity } = identityOfPod(pod, vendorConf, options);
    const { retain, subnet, subnets, defaultNetwork, networks = [] } = subject.annotations;
    const refusal = retain && refuseRetention(pod, vendorConf);
    if (refusal !== undefined) throw refusal;
    const owner = findAddressOwner(pod, vendorConf);
    const namesSubnets = subnet !== undefined || subnets !== undefined;
    const namesClaims = defaultNetwork?.claim !== undefined || networks.some(({ claim }) => claim !== undefined);
    const [application, workload, claims] = await Promise.all([
      namesSubnets ? poolOwners.find(pod, signal) : undefined,
      owner?.kind === "run" ? readMachine(deps.api, pod.namespace, owner.run, signal) : owner?.workload,
      namesClaims && ifName !== undefined ? readClaims(deps, subject, ifName, signal) : undefined,
    ]);
    return { ...identity, subject: { ...subject, application }, workload, claims };
  };
  return {
    identify: async (request, signal) => {
      const named = requireNamed(request);
      const pod = await findPod(deps, named, signal);
      if (pod === undefined) return staticPod(named, request, resources.snapshot.vendorConf);
      // The mirror of a static pod says nothing about its next run.
      if (pod.isFinished && (named.uid === undefined || named.uid !== mirroredHashOf(pod))) throw finished(pod);
      const home = await findHome(deps, pod, signal);
      return identityOf(pod, { owner: named.uid, home, ifName: request.ifName }, signal);
    },
    recognize: async (request, signal) => {
      const { namespace, name } = decodePodArgs(request.args);
      // Another IPAM serves requests without a name, too.
      if (namespace === undefined || name === undefined) return identifyRequest(request, resources.snapshot);
      const named = requireNamed(request);
      const pod = await findPod(deps, named, signal);
      return pod === undefined
        ? staticPod(named, request, resources.snapshot.vendorConf)
        : identityOfPod(pod, resources.snapshot.vendorConf, { owner: named.uid });
    },
    find: async (namespace, name) => {
      // Each read has a limit of its own.
      const { signal } = new AbortController();
      const pod = findCached(deps, { namespace, name }) ?? (await readPod(deps.api, { namespace, name }));
      if (pod === undefined) return { owner: "", namespace, name, subject: undefined };
      const home = await findHome(deps, pod, signal);
      return identityOf(pod, { home }, signal);
    },
    ofPod: (pod, ifName, signal) => identityOf(pod, { ifName }, signal),
    forgetPoolOwners: () => poolOwners.forget(),
  };
}

interface IdentityOptions {
  /** As the runtime gives it; absent: as the kubelet will give it. */
  readonly owner?: string | undefined;
  readonly home?: Namespace | undefined;
  /** The NIC whose addresses are requested; undefined if there is none. */
  readonly ifName?: string | undefined;
}

/** Without the owners of its addresses and pools. Throws ConfigError for a wrong annotation of the pod. */
export function identityOfPod(
  pod: Pod,
  rules: AnnotationRules,
  { owner, home }: IdentityOptions = {},
): PodIdentity & { readonly subject: PodSubject } {
  const { namespace, name, labels, annotations, foreignAnnotations } = pod;
  return {
    foreignAnnotations,
    ...(isMigrationTarget(pod) ? { isMigrationTarget: true } : {}),
    owner: owner ?? ownerOfPod(pod) ?? "",
    namespace,
    name,
    node: pod.nodeName,
    subject: { namespace, name, labels, annotations: decodePodAnnotations(annotations, rules) },
    home,
  };
}

function requireNamed({ args }: AttachRequest): Named {
  const { namespace, name, uid } = decodePodArgs(args);
  if (namespace !== undefined && name !== undefined) return { namespace, name, uid };
  const missing = namespace === undefined ? "K8S_POD_NAMESPACE" : "K8S_POD_NAME";
  throw new CniError(
    ErrorCode.PodUnknown,
    `CNI_ARGS has no ${missing}: in a cluster every address belongs to a pod that the API server knows`,
  );
}

/**
 * Undefined for a static pod without its mirror. Throws CniError 103 when the API server has no such pod, or another
 * one of its name.
 */
async function findPod(deps: IdentityDeps, named: Named, signal: AbortSignal): Promise<Pod | undefined> {
  const { namespace, name, uid } = named;
  const cached = findCached(deps, named);
  if (cached !== undefined && isMeant(cached, named)) return cached;
  const live = await readPod(deps.api, named, signal);
  if (live !== undefined && (uid === undefined || isMeant(live, named))) return live;
  if (uid !== undefined && isStaticOwner(uid)) return undefined;
  const whose = uid === undefined ? "" : ` with UID ${uid}`;
  const found = live === undefined ? "has no pod of that name" : `has one with UID ${live.uid}`;
  throw new CniError(ErrorCode.PodUnknown, `Pod ${namespace}/${name}${whose} is unknown: the API server ${found}`);
}

/** Undefined also for a reduced pod, of which the watch has only the identity. */
function findCached({ resources }: IdentityDeps, { namespace, name }: Omit<Named, "uid">): Pod | undefined {
  const cached = resources.snapshot.pods.get(`${namespace}/${name}`);
  return cached?.isReduced ? undefined : cached;
}

/** Without a UID an old pod cannot be told from a new one of its name: then the API server is asked. */
function isMeant(pod: Pod, { uid }: Named): boolean {
  return uid !== undefined && (pod.uid === uid || mirroredHashOf(pod) === uid);
}

/**
 * Returns the pod as the API server has it now; undefined if there is none. Rejects with CniError 11 when it does not
 * answer in time.
 */
export async function readPod(api: KubeApi, of: Omit<Named, "uid">, signal?: AbortSignal): Promise<Pod | undefined> {
  const { namespace, name } = of;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const object = await readForPod(api, path, UNANSWERED, signal);
  return object && decodePod(object, `Pod "${namespace}/${name}"`);
}

/** The watch of namespaces may be behind the pod. */
async function findHome(deps: IdentityDeps, { namespace }: Pod, signal: AbortSignal): Promise<Namespace | undefined> {
  const known = deps.resources.snapshot.namespaces.get(namespace);
  if (known !== undefined) return known;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const object = await readForPod(deps.api, path, UNANSWERED, signal);
  return object && decodeNamespace(object, `Namespace "${namespace}"`);
}

const UNANSWERED = "The watch does not have the pod, and the API server does not answer";

/** A static pod without its mirror (static-pods): only its name, namespace defaults and lower rules apply. */
function staticPod(
  { namespace, name, uid }: Named,
  { netConf, containerId }: AttachRequest,
  rules: AnnotationRules,
): PodIdentity {
  const annotations = decodePodAnnotations(netConf.runtimeConfig.podAnnotations ?? {}, rules);
  const application = { kind: "none", reason: `pod "${namespace}/${name}" has no controller` } as const;
  const subject = { namespace, name, labels: {}, annotations, application };
  return { owner: uid ?? containerId, namespace, name, subject };
}

/** Its addresses are collected as soon as it is finished. */
function finished({ namespace, name, phase }: Pod): CniError {
  const text = `Pod ${namespace}/${name} is finished (phase ${phase}): it will not run again, so it gets no address`;
  return new CniError(ErrorCode.PodUnknown, text);
}
