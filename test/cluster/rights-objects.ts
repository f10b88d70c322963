/** An API server with Berth's accounts and policies, and objects to be attacked: for the tests of rights. */
import { ALLOCATIONS, type BoundSpec, boundObject, NODES, nodeObject } from "../lab/cluster/objects.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { type KubeClient, KubeError, type KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** With nodes `a` and `b`, the namespace `shop`, and the pool `blue`, 10.6.0.0/24. */
export async function openRights(): Promise<World> {
  const world = await openWorld(borrowPlane);
  for (const node of ["a", "b"]) await world.client.create(NODES, nodeObject(node));
  await world.namespace("shop");
  await world.pool("blue", { subnet: "10.6.0.0/24", default: true });
  return world;
}

/** An administrator's client, and one with the token of the agent of node b. */
export interface RightsClients {
  readonly admin: KubeClient;
  readonly agent: KubeClient;
}

/** The workload of everything that has one. */
export const WORKLOAD = {
  kind: "StatefulSet",
  namespace: "shop",
  name: "db",
  uid: "set",
  member: "db-0",
  ifName: "eth0",
};
/** Of a Service, which has an address itself. */
export const FRONT = { kind: "Service", namespace: "shop", name: "front", uid: "front", member: "front" };
export const OTHER_WORKLOAD = { ...WORKLOAD, uid: "another", member: "other-0" };

export const holderOn = (node: string, podUID = "u1"): KubeObject => ({
  ...{ namespace: "shop", pod: "db-0", podUID, interface: "eth0", node },
});

/** Changes of an object as the API server has it: of its specification, or of all. */
export type Change = (spec: KubeObject, object: KubeObject) => void;

/** The specification in another state, on a node; Bound to a pod there. */
export function become(state: string, node: string, more: object = {}): Change {
  return (spec) =>
    Object.assign(spec, { state, node, holders: state === "Bound" ? [holderOn(node, "u9")] : [], ...more });
}

/** Objects that may exist before an attempt, by the last number of their address. */
export const OBJECTS = {
  "10.6.0.1": { state: "Bound", node: "a" },
  "10.6.0.2": { state: "Cooling", node: "a", holders: [] },
  "10.6.0.3": { state: "Kept", node: "a", holders: [], workload: WORKLOAD },
  "10.6.0.4": { state: "Quarantined", node: "a", holders: [], quarantine: { reason: "Conflict" } },
  "10.6.0.5": { state: "Quarantined", node: "a", holders: [], quarantine: { reason: "NodeLost" } },
  "10.6.0.6": { state: "Bound", node: "a", workload: WORKLOAD },
  /** A machine that migrates from a to b. */
  "10.6.0.7": { state: "Bound", node: "b", holders: [holderOn("a"), holderOn("b", "u2")], workload: WORKLOAD },
  /** Address of a lost node a; node c was chosen to probe it. */
  "10.6.0.8": {
    state: "Quarantined",
    node: "c",
    holders: [],
    quarantine: { reason: "NodeLost", holder: holderOn("a") },
  },
  /** The same, of a workload, and of node b. */
  "10.6.0.9": { state: "Quarantined", node: "a", holders: [], workload: WORKLOAD, quarantine: { reason: "NodeLost" } },
  "10.6.0.10": {
    state: "Quarantined",
    node: "c",
    holders: [],
    quarantine: { reason: "NodeLost", holder: holderOn("b") },
  },
  "10.6.0.11": { state: "Bound", node: "b" },
  "10.6.0.12": { state: "Cooling", node: "b", holders: [] },
  "10.6.0.13": { state: "Kept", node: "b", holders: [], workload: WORKLOAD },
  "10.6.0.14": { state: "Quarantined", node: "b", holders: [], quarantine: { reason: "Conflict" } },
  /** Written by an agent that did not write the workload's namespace. */
  "10.6.0.15": { state: "Bound", node: "a", workload: { ...WORKLOAD, namespace: undefined } },
  "10.6.0.16": { state: "Kept", node: "a", holders: [], workload: { ...WORKLOAD, namespace: undefined } },
  /** A member's on node b, one that cools there after it was retained, and those of b when it was taken for lost. */
  "10.6.0.17": { state: "Bound", node: "b", holders: [holderOn("b")], workload: WORKLOAD },
  "10.6.0.18": { state: "Cooling", node: "b", holders: [], workload: WORKLOAD },
  "10.6.0.19": {
    state: "Quarantined",
    node: "b",
    holders: [],
    workload: WORKLOAD,
    quarantine: { reason: "NodeLost", holder: holderOn("b") },
  },
  "10.6.0.20": { state: "Kept", node: "-", holders: [], workload: FRONT },
  /** Named by a workload; no pod has had it. */
  "10.6.0.21": { state: "Kept", node: "-", holders: [], workload: WORKLOAD },
} as const;

export type Address = keyof typeof OBJECTS;

export const pathOf = (address: string): string => `${ALLOCATIONS}/${address}`;

/** The objects of {@link placeObjects} by name, for each client. */
const placed = new WeakMap<KubeClient, ReadonlyMap<string, string>>();

/** Recreates those of {@link OBJECTS} that differ from this client's earlier ones; nothing else is left. */
export async function placeObjects(client: KubeClient): Promise<void> {
  const before = placed.get(client);
  const now = await linesOf(client);
  const isAsBefore = (name: string) => now.has(name) && now.get(name) === before?.get(name);
  await Promise.all([...now.keys()].map((name) => isAsBefore(name) || forceDelete(client, name)));
  for (const [address, spec] of Object.entries(OBJECTS))
    if (!isAsBefore(address)) await client.create(ALLOCATIONS, objectOf(address, spec));
  placed.set(client, await linesOf(client));
}

export const objectOf = (address: string, spec: Omit<BoundSpec, "address">): KubeObject =>
  boundObject({ address, ...spec } as BoundSpec);

/** Returns the outcome of an attempt: `201`, or `403 Forbidden …`. */
export async function outcomeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return "done";
  } catch (error) {
    if (error instanceof KubeError) return `${error.status} ${error.text}`;
    throw error;
  }
}

/** The object as it is, changed, put back with its version. `change` gets the spec and the whole object. */
export async function rewrite(client: KubeClient, address: string, change: Change, query = ""): Promise<KubeObject> {
  const object = await client.get(pathOf(address));
  change(object.spec, object);
  return client.put(`${pathOf(address)}${query}`, object);
}

/** Without the API server's own fields: versions and specs of all allocations, by name. */
export const snapshot = async (client: KubeClient): Promise<object> => Object.fromEntries(await linesOf(client));

async function linesOf(client: KubeClient): Promise<ReadonlyMap<string, string>> {
  const { items } = await client.get(ALLOCATIONS);
  const lineOf = ({ metadata, spec }: KubeObject) => JSON.stringify([metadata.resourceVersion, spec]);
  return new Map(items.map((item: KubeObject) => [item.metadata.name, lineOf(item)]));
}
