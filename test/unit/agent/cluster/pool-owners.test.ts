/** The workload that owns a pod. */
import { beforeEach, describe, expect, it } from "vitest";
import { openClusterIdentifier } from "../../../../host/agent/cluster/identity.ts";
import { MAX_KNOWN_OWNERS, PoolOwners } from "../../../../host/agent/cluster/pool-owners.ts";
import { DEFAULT_VENDOR_CONF } from "../../../../host/config/vendor-conf.ts";
import { ApiError, ApiUnavailable, type KubeObject } from "../../../../host/kubernetes/kube-api.ts";
import { decodePod, type Pod } from "../../../../host/resources/pod.ts";
import { MemoryApiServer } from "../../../fakes/memory-api-server.ts";
import { EMPTY_SNAPSHOT } from "../../../world/subjects.ts";

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
  readonly controller?: boolean;
}

function owned(by: readonly Owner[], more: object = {}): KubeObject {
  const ownerReferences = by.map((owner) => ({ uid: `u-${owner.name}`, controller: true, ...owner }));
  return { metadata: { name: "x", namespace: "shop", resourceVersion: "1", ownerReferences, ...more } };
}

function podOf(...by: Owner[]): Pod {
  return decodePod({ apiVersion: "v1", kind: "Pod", ...owned(by, { name: "web-0", uid: "u-web-0" }) }, "pod");
}

const SETS = "/apis/apps/v1/namespaces/shop/replicasets";
const JOBS = "/apis/batch/v1/namespaces/shop/jobs";
const serves = Object.fromEntries(
  [SETS, JOBS, SETS.replace("shop", "attack")].map((path) => [path, { apiVersion: "apps/v1", kind: "Owner" }]),
);

/** Pods ask for the owners of their owners. */
class Lookups {
  readonly requested: string[] = [];
  snapshot = EMPTY_SNAPSHOT;
  /** In place of the API server. */
  answer: (() => Promise<KubeObject>) | undefined;
  readonly #server = new MemoryApiServer({ serves });
  readonly deps = {
    api: this.#server.client(async ({ method, path, accept, lane }, commit) => {
      this.requested.push(`${method} ${path}`);
      expect([lane, accept]).toEqual(["pod", expect.stringContaining("PartialObjectMetadata")]);
      return this.answer?.() ?? commit();
    }),
    resources: this,
  };
  readonly owners = new PoolOwners(this.deps);

  put(path: string, name: string, object: KubeObject): void {
    this.#server.put(path, name, object);
  }

  /** `Deployment shop/web u-web`, or why there is none. */
  async of(pod: Pod, signal = new AbortController().signal): Promise<string> {
    const found = await this.owners.find(pod, signal);
    if (found.kind === "none") return found.reason;
    const { apiVersion, kind, namespace, name, uid } = found.application;
    return `${apiVersion} ${kind} ${namespace}/${name} ${uid}`;
  }
}

let lookups: Lookups;
beforeEach(() => {
  lookups = new Lookups();
});

const set = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d" };
const job = { apiVersion: "batch/v1", kind: "Job", name: "mail-1" };
const deployment = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const rollout = { apiVersion: "argoproj.io/v1alpha1", kind: "Rollout", name: "canary" };
const cron = { apiVersion: "batch/v1", kind: "CronJob", name: "mail" };
const jobs = { apiVersion: "jobset.x-k8s.io/v1alpha2", kind: "JobSet", name: "train" };
const stateful = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db" };
const node = { apiVersion: "v1", kind: "Node", name: "n1" };
const foreign = { apiVersion: "example.com/v1", kind: "ReplicaSet", name: "odd" };
const bystander = { ...deployment, controller: false };
const uid = (name: string) => ({ uid: `u-${name}` });
/** The ReplicaSet of the pods, of these owners. */
const putSet = (...above: Owner[]) => lookups.put(SETS, "web-5d", owned(above, uid("web-5d")));

const uncontrolled = podOf({ ...stateful, controller: false });
const OF_SET = "apps/v1 ReplicaSet shop/web-5d u-web-5d";
it.each<[what: string, pod: Pod, above: Owner[], wanted: string, asks: number]>([
  ["its StatefulSet", podOf(stateful), [], "apps/v1 StatefulSet shop/db u-db", 0],
  ["its ReplicaSet's Deployment", podOf(set), [deployment], "apps/v1 Deployment shop/web u-web", 1],
  ["its ReplicaSet's Rollout", podOf(set), [rollout], "argoproj.io/v1alpha1 Rollout shop/canary u-canary", 1],
  ["its ReplicaSet alone", podOf(set), [], OF_SET, 1],
  ["its ReplicaSet, whose owner does not control it", podOf(set), [bystander], OF_SET, 1],
  ["its Job's CronJob", podOf(job), [cron], "batch/v1 CronJob shop/mail u-mail", 1],
  ["its Job, which something else controls", podOf(job), [jobs], "batch/v1 Job shop/mail-1 u-mail-1", 1],
  ["a ReplicaSet of another project", podOf(foreign), [], "example.com/v1 ReplicaSet shop/odd u-odd", 0],
  ["its controller, not its first owner", podOf(bystander, stateful), [], "apps/v1 StatefulSet shop/db u-db", 0],
  ["none without a controller", uncontrolled, [], 'pod "shop/web-0" has no controller', 0],
  ["none as the mirror of a static pod", podOf(node), [], 'the controller of pod "shop/web-0" is Node "n1"', 0],
])("a pod belongs to: %s", async (_what, pod, above, wanted, asks) => {
  putSet(...above);
  lookups.put(JOBS, "mail-1", owned(above, uid("mail-1")));
  expect(await lookups.of(pod)).toBe(wanted);
  expect(lookups.requested).toHaveLength(asks);
});

describe("nothing is asked", () => {
  it("for a pod that names no Subnets", async () => {
    const { ofPod } = openClusterIdentifier(lookups.deps);
    const { subject } = await ofPod(podOf(set), "eth0", AbortSignal.timeout(1_000));
    expect([subject?.application, lookups.requested]).toEqual([undefined, []]);
  });

  it("where enableSubnet is false", async () => {
    lookups.snapshot = { ...EMPTY_SNAPSHOT, vendorConf: { ...DEFAULT_VENDOR_CONF, enableSubnet: false } };
    expect(await lookups.of(podOf(set))).toContain("enableSubnet was false");
    expect(lookups.requested).toEqual([]);
  });
});

describe("an answer", () => {
  it("is remembered, and one question serves all callers at once", async () => {
    putSet(deployment);
    await Promise.all([lookups.of(podOf(set)), lookups.of(podOf(set))]);
    await lookups.of(podOf(set));
    expect(lookups.requested).toHaveLength(1);
  });

  it("is forgotten when a workload led nowhere: the ReplicaSet was adopted since", async () => {
    putSet();
    expect(await lookups.of(podOf(set))).toContain("ReplicaSet shop/web-5d");
    putSet(deployment);
    lookups.owners.forget();
    expect(await lookups.of(podOf(set))).toContain("Deployment shop/web");
  });

  it("that is none is asked for again", async () => {
    lookups.answer = () => Promise.reject(new ApiUnavailable("GET", "no connection"));
    const message =
      'The workload that owns ReplicaSet "shop/web-5d" and its pods is unknown: it cannot be read: no connection';
    await expect(lookups.of(podOf(set))).rejects.toMatchObject({ code: 11, message });
    lookups.answer = undefined;
    putSet(deployment);
    expect(await lookups.of(podOf(set))).toContain("Deployment shop/web");
  });

  const forbidden = new ApiError({ status: 403, reason: "Forbidden", operation: "", message: "forbidden" });
  it.each([
    ["it does not exist any more", undefined],
    ["another one of its name exists, with UID u-other", async () => owned([deployment], { uid: "u-other" })],
    ["it cannot be read: forbidden", () => Promise.reject(forbidden)],
  ])("is none when %s", async (why, answer) => {
    lookups.answer = answer;
    await expect(lookups.of(podOf(set))).rejects.toMatchObject({ code: 11, message: expect.stringContaining(why) });
  });

  it("is not waited for by an ADD that is given up, and is there for the next", async () => {
    const answer = Promise.withResolvers<KubeObject>();
    lookups.answer = () => answer.promise;
    const giveUp = new AbortController();
    const first = lookups.of(podOf(set), giveUp.signal);
    giveUp.abort(new Error("the caller hung up"));
    await expect(first).rejects.toThrow("the caller hung up");
    const second = lookups.of(podOf(set));
    answer.resolve(owned([deployment], uid("web-5d")));
    expect(await second).toContain("Deployment shop/web");
    expect(lookups.requested).toHaveLength(1);
  });

  it("of the oldest question goes when there are too many", async () => {
    const nameOf = (index: number) => `web-${index}`;
    for (let index = 0; index <= MAX_KNOWN_OWNERS; index++) {
      lookups.put(SETS, nameOf(index), owned([deployment], uid(nameOf(index))));
      await lookups.of(podOf({ ...set, name: nameOf(index) }));
    }
    await lookups.of(podOf({ ...set, name: nameOf(1) }));
    expect(lookups.requested).toHaveLength(MAX_KNOWN_OWNERS + 1);
    await lookups.of(podOf({ ...set, name: nameOf(0) }));
    expect(lookups.requested).toHaveLength(MAX_KNOWN_OWNERS + 2);
  });
});

it("knowledge of a ReplicaSet is none for a pod of another namespace that names its UID", async () => {
  putSet(deployment);
  expect(await lookups.of(podOf(set))).toBe("apps/v1 Deployment shop/web u-web");
  await expect(lookups.of({ ...podOf(set), namespace: "attack" })).rejects.toThrow("does not exist any more");
  expect(lookups.requested).toHaveLength(2);
});
