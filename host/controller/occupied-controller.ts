/**
 * Publishes which addresses of pools and Subnets Nodes, the API server and Services have, since agents watch none of
 * these. The list is in the status of the Coordinator `default`, which every agent watches; it is written only when it
 * changes, and is empty where pools and machines have different addresses.
 */
import * as z from "zod";
import { parseYaml } from "../config/yaml.ts";
import { joinRanges, rangesContain } from "../core/spans.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { keyOf } from "../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath, ENDPOINT_SLICES, SERVICES, statusPath } from "../kubernetes/paths.ts";
import { Reflector, type ReflectorOptions } from "../kubernetes/reflector.ts";
import { compareIp, FAMILIES, formatIp, type Ip, parseIp } from "../net/ip.ts";
import type { Range } from "../net/range.ts";
import { COORDINATORS } from "../resources/collections.ts";
import { COORDINATOR_NAME } from "../resources/coordinator.ts";
import { MAX_OCCUPIED } from "../resources/status.ts";
import { patchIfSame } from "./patch.ts";
import { startReconciling } from "./reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "./types.ts";

/** Shortest time between two updates of `status.occupied`: milliseconds. */
const OCCUPIED_REST_MS = 2_000;

const PATH = statusPath(COORDINATORS, { name: COORDINATOR_NAME });

export const startOccupied: StartController = (deps) => keepOccupied(deps);

function keepOccupied(deps: ControllerDeps): Controller {
  const { api, caches, log, random } = deps;
  const wake = (): void => loop.wake();
  const follow = (own: Pick<ReflectorOptions<readonly string[]>, "name" | "path" | "decode"> & Partial<Selectors>) => {
    const reflector = new Reflector({ api, log, random, keyOf, onChange: wake, onSynced: wake, ...own });
    reflector.start();
    return reflector;
  };
  const endpoints = follow({
    name: "the API server's EndpointSlices",
    path: collectionPath(ENDPOINT_SLICES, "default"),
    labelSelector: "kubernetes.io/service-name=kubernetes",
    decode: readEndpoints,
  });
  const services = follow({
    name: "Services",
    path: collectionPath(SERVICES),
    decode: readService,
    budgeted: { budget: caches.budget },
  });
  const kubeadm = follow({
    name: "ConfigMap kube-system/kubeadm-config",
    path: collectionPath(CONFIG_MAPS, "kube-system"),
    fieldSelector: "metadata.name=kubeadm-config",
    decode: readControlPlane,
  });
  const sources = [endpoints, services, kubeadm];
  /** A source that has not been read says nothing: what was published stays. */
  const machines = (before: OccupiedStatus): MachineAddresses => ({
    nodes: [...caches.nodes.items.values()].flatMap(({ addresses }) => addresses),
    apiServer: valuesOf([endpoints, kubeadm]) ?? before.apiServer,
    services: valuesOf([services]) ?? before.services,
  });
  let leftOut = 0;
  const tell = async (): Promise<number | undefined> => {
    const coordinator = caches.coordinators.items.get(COORDINATOR_NAME);
    if (coordinator === undefined || coordinator.deleting) return undefined;
    const offering = [...caches.pools.items.values(), ...caches.subnets.items.values()];
    const ranges = offering.flatMap(({ value }) => value?.spec.ranges ?? []);
    const before = publishedOf(coordinator.status.occupied);
    const plan = planOccupied(machines(before), ranges);
    ({ leftOut } = plan);
    if (JSON.stringify(before) === JSON.stringify(plan.occupied)) return undefined;
    const { uid, resourceVersion } = coordinator;
    const body = { status: { occupied: plan.occupied } };
    if ((await patchIfSame(api, { path: PATH, uid, resourceVersion, body, signal: deps.leading })) === undefined)
      return OCCUPIED_REST_MS;
    log.info({ occupied: plan.occupied }, "The addresses of pools that machines of the cluster have are published");
    return undefined;
  };
  const loop = startReconciling(deps, {
    failure: "Writing the addresses of pools that machines of the cluster have failed",
    work: tell,
    restMs: () => OCCUPIED_REST_MS,
  });
  const ends = [
    caches.pools.subscribe(wake),
    caches.subnets.subscribe(wake),
    caches.coordinators.subscribe(({ key }) => key === COORDINATOR_NAME && wake()),
    caches.nodes.subscribe((change) => {
      const now = change.kind === "set" ? change.value.addresses : [];
      if (now.join() !== (change.before?.addresses ?? []).join()) wake();
    }),
  ];
  return {
    get problems() {
      const tooMany = `${leftOut} addresses of pools that machines of the cluster have are not published to the agents, which get ${MAX_OCCUPIED} of each kind; take the machines' addresses out of the pools`;
      return [...sources.flatMap(({ problems }) => problems), ...(leftOut > 0 ? [tooMany] : []), ...loop.problems];
    },
    close: async () => {
      for (const end of ends) end();
      await loop.close();
      await Promise.all(sources.map((source) => source.close()));
    },
  };
}

/** Returns what the sources name; undefined while one of them has not been read. */
function valuesOf(sources: readonly Reflector<readonly string[]>[]): readonly string[] | undefined {
  return sources.every(({ isSynced }) => isSynced)
    ? sources.flatMap(({ items }) => [...items.values()].flat())
    : undefined;
}

const addresses = z.array(z.string()).catch([]);

const published = z
  .object({ nodes: addresses, apiServer: addresses, services: addresses })
  .catch({ nodes: [], apiServer: [], services: [] });

function publishedOf(occupied: unknown): OccupiedStatus {
  return published.parse(occupied);
}

type Selectors = Pick<ReflectorOptions<readonly string[]>, "fieldSelector" | "labelSelector" | "budgeted">;

/** Addresses as text, by what has them; other text is ignored. */
interface MachineAddresses {
  readonly nodes: Iterable<string>;
  readonly apiServer: Iterable<string>;
  readonly services: Iterable<string>;
}

type OccupiedStatus = Readonly<Record<keyof MachineAddresses, readonly string[]>>;

interface OccupiedPlan {
  readonly occupied: OccupiedStatus;
  /** Number of addresses left out. */
  readonly leftOut: number;
}

/** `ranges` are those of all pools and Subnets. Lists are ascending; an address is in the first list that has it. */
export function planOccupied(machines: MachineAddresses, ranges: readonly Range[]): OccupiedPlan {
  const byFamily = FAMILIES.map((family) => {
    const own = ranges.filter(({ first }) => first.family === family);
    return [family, joinRanges(own, family)] as const;
  });
  const joined = new Map(byFamily);
  const isInPool = (ip: Ip): boolean => rangesContain(joined.get(ip.family) ?? [], ip);
  const seen = new Set<string>();
  let leftOut = 0;
  const listOf = (addresses: Iterable<string>): readonly string[] => {
    const found = [...addresses].flatMap((text) => parseIp(text) ?? []).filter(isInPool);
    const list = [...new Set(found.toSorted(compareIp).map(formatIp))].filter((text) => !seen.has(text));
    for (const text of list) seen.add(text);
    leftOut += Math.max(0, list.length - MAX_OCCUPIED);
    return list.slice(0, MAX_OCCUPIED);
  };
  const { nodes, apiServer, services } = machines;
  const occupied = { nodes: listOf(nodes), apiServer: listOf(apiServer), services: listOf(services) };
  return { occupied, leftOut };
}

const texts = z.array(z.string()).catch([]);

const slice = z.object({ endpoints: z.array(z.object({ addresses: texts })).catch([]) });

/** Reads one of the API server's own EndpointSlices: the machines that run it. */
export function readEndpoints(object: KubeObject): readonly string[] {
  return slice.parse(object).endpoints.flatMap(({ addresses }) => addresses);
}

const service = z.object({
  spec: z.object({ externalIPs: texts, loadBalancerIP: z.string().optional().catch(undefined) }).partial(),
  status: z
    .object({ loadBalancer: z.object({ ingress: z.array(z.object({ ip: z.string().optional() })).catch([]) }) })
    .partial()
    .catch({}),
});

/** Reads a Service: the addresses that nodes, or a load balancer, answer for in its place. Undefined if it has none. */
export function readService(object: KubeObject): readonly string[] | undefined {
  const { spec, status } = service.parse(object);
  const ingress = status.loadBalancer?.ingress ?? [];
  const all = [...(spec.externalIPs ?? []), spec.loadBalancerIP, ...ingress.map(({ ip }) => ip)];
  const found = all.filter((text) => text !== undefined);
  return found.length === 0 ? undefined : [...new Set(found)];
}

const KEY = "ClusterConfiguration";

const kubeadmMap = z.object({ data: z.object({ [KEY]: z.string() }) });

const configuration = z.object({ controlPlaneEndpoint: z.string() });

/**
 * Reads the ConfigMap kubeadm-config: the host of `controlPlaneEndpoint`, which is a virtual address of the API
 * server or a name.
 */
export function readControlPlane(object: KubeObject): readonly string[] {
  const text = kubeadmMap.safeParse(object).data?.data[KEY];
  if (text === undefined) return [];
  const endpoint = configuration.safeParse(parseYaml(text, KEY)[0]?.value).data?.controlPlaneEndpoint;
  const host = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::\d+)?$/.exec(endpoint ?? "")?.groups;
  return [host?.six ?? host?.four ?? ""];
}
