/**
 * Fills a cluster with workloads that have a generated pool each, many thousands within seconds: Deployments,
 * ReplicaSets, Subnets, pools, pods and their allocations, written into etcd as controller manager, controller and
 * agents leave them.
 * Effects: keys of etcd.
 */
import { IN_USE_FINALIZER } from "../../host/controller/finalizers/plan-finalizers.ts";
import { decodeControlledSubnet } from "../../host/controller/objects.ts";
import { planSize } from "../../host/controller/owners/plan-demands.ts";
import type { CurrentSubnet, PoolTarget } from "../../host/controller/subnets/model.ts";
import {
  type AssignmentEntry,
  emptyPool,
  entryOf,
  poolChange,
  poolNameOf,
  subnetStatus,
} from "../../host/controller/subnets/pool-object.ts";
import { readSubnet } from "../../host/controller/subnets/view.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import type { PoolOwner } from "../../host/resources/fields/subnet-pool.ts";
import { allocationEntry, type Entry, openWriter, podEntry, storedMetadata } from "../../test/lab/cluster/fill.ts";
import { berthObject, type OwnerReference, podTemplate } from "../../test/lab/cluster/objects.ts";
import type { KubeObject } from "../../test/lab/kube-client.ts";

export interface WorkloadsOptions {
  readonly workloads: number;
  /** Number of pods of each workload; all of them have an address. */
  readonly pods: number;
  readonly namespaceOf: (workload: number) => string;
  /** By the pod's number among all. */
  readonly nodeOf: (pod: number) => string;
}

/** Below the limit of a Subnet. */
export const POOLS_OF_SUBNET = 2_000;

/** Number of a pool's addresses beyond its workload's pods. */
const SPARE = 2;

/** Start of the first Subnet; the others follow. */
const FIRST_NETWORK = 0x0a00_0000n;
const PREFIX_LENGTH = 15;
const NETWORK_SIZE = 2n ** BigInt(32 - PREFIX_LENGTH);

/** The first addresses of a Subnet that no pool has. */
const LEFT_OUT = 16n;

export async function fillWorkloads(etcdUrl: string, options: WorkloadsOptions): Promise<void> {
  const { workloads } = options;
  await using keys = openWriter(etcdUrl);
  for (let first = 0; first < workloads; first += POOLS_OF_SUBNET) {
    const { object, current: subnet } = openSubnet(first / POOLS_OF_SUBNET);
    const entries: AssignmentEntry[] = [];
    for (let workload = first; workload < Math.min(first + POOLS_OF_SUBNET, workloads); workload++) {
      const target = targetOf(subnet, workload, options);
      entries.push(entryOf(target, target.spans));
      for (const entry of entriesOf(subnet, target, workload, options)) await keys.add(entry);
    }
    await keys.add(subnetEntry(object, subnet, entries));
  }
}

/** As the API server has it, without assignments. */
function openSubnet(number: number): { readonly object: KubeObject; readonly current: CurrentSubnet } {
  const value = FIRST_NETWORK + NETWORK_SIZE * BigInt(number);
  const spec = { subnet: formatPrefix({ ip: { family: 4, value }, length: PREFIX_LENGTH }) };
  const metadata = { ...storedMetadata(), finalizers: [IN_USE_FINALIZER] };
  const object = berthObject("Subnet", `lan${number}`, spec, metadata);
  const current = readSubnet(decodeControlledSubnet(object));
  if (current === undefined) throw new TypeError(`${spec.subnet} is no network of a Subnet`);
  return { object, current };
}

function targetOf(subnet: CurrentSubnet, workload: number, { pods, namespaceOf }: WorkloadsOptions): PoolTarget {
  const application: PoolOwner = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    namespace: namespaceOf(workload),
    name: `web-${workload}`,
    uid: storedMetadata().uid,
  };
  const { count: wanted, reason } = planSize(needOf(pods), { kind: "fixed", count: pods + SPARE });
  const generated = { subnet: subnet.object.name, application, interface: "eth0", reclaim: true, wanted, reason };
  const place = BigInt(workload % POOLS_OF_SUBNET) * BigInt(wanted);
  const first = subnet.spec.subnet.ip.value + LEFT_OUT + place;
  return {
    name: poolNameOf({ application, ifName: "eth0", family: 4, subnet: generated.subnet }, 0),
    ...{ now: undefined, subnet, generated, gateway: undefined, routes: [] },
    spans: [{ first, last: first + BigInt(wanted) - 1n }],
    ...{ isChanged: true, isUnknown: false },
  };
}

function needOf(count: number) {
  return { unit: "replica", count, surge: 0, isSuspended: false, overlaps: true } as const;
}

function* entriesOf(
  subnet: CurrentSubnet,
  target: PoolTarget,
  workload: number,
  { pods, nodeOf }: WorkloadsOptions,
): Iterable<Entry> {
  const { application } = target.generated;
  const annotations = { "ipam.vendor.io/ippool-ip-number": `${pods + SPARE}` };
  const template = podTemplate(application.name, { subnet: subnet.object.name, annotations });
  const { uid, ...deployment } = application;
  const set = { ...deployment, kind: "ReplicaSet", name: `${application.name}-5d9c7f` };
  const { uid: setUid } = storedMetadata();
  yield workloadEntry({ ...deployment, uid }, pods, template);
  yield workloadEntry({ ...set, uid: setUid }, pods, template, application);
  yield poolEntry(subnet, target);
  const [span] = target.spans;
  for (let number = 0; number < pods; number++) {
    const { namespace } = application;
    const node = nodeOf(workload * pods + number);
    const pod = `${set.name}-${number}`;
    const holder = { namespace, pod, podUid: storedMetadata().uid, ifName: "eth0", node };
    const owner = { apiVersion: "apps/v1", kind: set.kind, name: set.name, uid: setUid, controller: true };
    yield podEntry(holder, { annotations: template.metadata.annotations, ownerReferences: [owner] });
    const ip = { family: 4, value: (span?.first ?? 0n) + BigInt(number) } as const;
    yield allocationEntry(ip, PREFIX_LENGTH, target.name, holder);
  }
}

function workloadEntry(
  { apiVersion, kind, namespace, name, uid }: PoolOwner,
  replicas: number,
  template: object,
  owner?: OwnerReference,
): Entry {
  const ownerReferences = owner === undefined ? [] : [{ ...owner, namespace: undefined, controller: true }];
  const metadata = { ...storedMetadata(), name, namespace, uid, ownerReferences };
  const spec = { replicas, selector: { matchLabels: { app: name } }, template };
  const status = { observedGeneration: 1, replicas, updatedReplicas: replicas };
  const object = { apiVersion, kind, metadata, spec, status };
  return [`/registry/${kind.toLowerCase()}s/${namespace}/${name}`, JSON.stringify(object)];
}

function poolEntry(subnet: CurrentSubnet, target: PoolTarget): Entry {
  const empty = emptyPool(target, subnet) as { metadata: object; spec: object };
  const change = poolChange(target, { family: 4, version: "1" });
  const { gateway: _, ...spec } = { gateway: null, ...empty.spec, ...change.spec };
  const metadata = { ...storedMetadata(), ...empty.metadata, ...change.metadata };
  return [`/registry/ipam.vendor.io/ippools/${target.name}`, JSON.stringify({ ...empty, metadata, spec })];
}

/** All addresses but the first and the last of the network are the Subnet's. */
function subnetEntry(object: KubeObject, subnet: CurrentSubnet, entries: readonly AssignmentEntry[]): Entry {
  const status = subnetStatus(subnet, NETWORK_SIZE - 2n, entries, 1);
  return [`/registry/ipam.vendor.io/subnets/${subnet.object.name}`, JSON.stringify({ ...object, status })];
}
