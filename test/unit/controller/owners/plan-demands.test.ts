import { expect, it } from "vitest";
import { planDemands } from "../../../../host/controller/owners/plan-demands.ts";
import { planNicRequests } from "../../../../host/controller/owners/plan-nic-requests.ts";
import type { TrackedObject } from "../../../../host/controller/owners/tracked-object.ts";
import { cases } from "../../../world/rows.ts";
import { BLUE, requireTracked, SETTINGS, type Wanted } from "./workload-objects.ts";

const rollout = { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1" };
const cron = { kind: "CronJob", apiVersion: "batch/v1" };
const clones = { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1" };

const top = (kind: string, wanted: Wanted = {}) => requireTracked(kind, { name: "top", uid: "uid-top", ...wanted });
const set = (name: string, replicas: number, wanted: Wanted = {}) =>
  requireTracked("ReplicaSet", { name, spec: { replicas }, owner: { kind: "Deployment" }, ...wanted });
const part = (name: string, replicas: number, wanted: Wanted = {}) =>
  set(name, replicas, { owner: rollout, ...wanted });
const job = (name: string, parallelism: number, wanted: Wanted = {}) =>
  requireTracked("Job", { name, spec: { parallelism }, owner: cron, ...wanted });
const pod = (name: string, wanted: Wanted = {}) => requireTracked("Pod", { name, owner: clones, ...wanted });
const revision = (number: number) => ({ own: { "rollout.argoproj.io/revision": `${number}` } });
const created = (day: number) => ({ created: `2026-01-0${day}T00:00:00Z` });

/** `~` before a former version's, `!` before a fault, `*` behind those that stay without their workload. */
function check(objects: readonly TrackedObject[], expected: readonly string[]): void {
  const own = objects.find(({ isOwner }) => isOwner);
  const members = objects.filter(({ isOwner }) => !isOwner);
  const plan = (order: readonly TrackedObject[]) =>
    planDemands({ own, members: order }, (template) => planNicRequests(template, SETTINGS, () => "berth"));
  const show = ({ demands, faults }: ReturnType<typeof plan>) => [
    ...demands.map(({ application: { kind, name }, ifName, subnets, count, reason, isCurrent, reclaim }) => {
      const nic = ifName === "eth0" ? "" : ` ${ifName}`;
      return `${isCurrent ? "" : "~"}${kind} ${name}${nic} ${subnets.join()} ${count}: ${reason}${reclaim ? "" : "*"}`;
    }),
    ...faults.map(({ application: { kind, name }, message }) => `!${kind} ${name} ${message}`),
  ];
  expect(show(plan(members))).toEqual(expected);
  // The order in which they were heard of does not count.
  expect(show(plan([...members].reverse())).sort()).toEqual([...expected].sort());
}

const onNetworks = (networks: string) => ({ annotations: { ...BLUE, "k8s.v1.cni.cncf.io/networks": networks } });
const numbered = (number?: string, reclaim?: string) => ({
  annotations: {
    ...BLUE,
    ...(number && { "ippool-ip-number": number }),
    ...(reclaim && { "ippool-reclaim": reclaim }),
  },
});
const green = { annotations: { subnet: { ipv4: ["green"] } } };
const wrong = { annotations: { subnet: { ipv6: ["blue"] } } };
const unread = { annotations: { subnet: "{" } };
const three = { spec: { parallelism: 3 } };
const both = { annotations: { subnet: { ipv4: ["blue", "green"] } } };

/** Several demands or faults are divided by " / ". */
it.each(cases<TrackedObject[]>`
  nothing ${[]} => nothing
  a Deployment ${[top("Deployment", { spec: { replicas: 3 } })]} => Deployment top blue 4: 3 replicas and 1 more
  a Deployment with its own ReplicaSets ${[top("Deployment"), set("a", 5), set("b", 1)]}
    => Deployment top blue 2: 1 replica and 1 more
  a kind that is not looked up, of which a pod may make up any owner: no fixed number ${[pod("a", numbered("1024"))]}
    => !CloneSet top annotation ippool-ip-number "1024" (only "+N") ONLY
  and no pool that stays without it ${[pod("a", numbered("5", "false"))]}
    => !CloneSet top annotation ippool-ip-number "5" (only "+N") and ippool-reclaim "false" ONLY
  pods that say that they are a Deployment's, which says nothing ${[pod("a", { owner: { kind: "Deployment" }, ...numbered("", "false") })]}
    => ~Deployment top blue 2: 1 pod of a former version and 1 more
  a Deployment whose pool stays ${[top("Deployment", numbered("", "false"))]}
    => Deployment top blue 2: 1 replica and 1 more*
  a Deployment on several NICs of one Subnet ${[top("Deployment", onNetworks("a,b"))]}
    => Deployment top blue 2: 1 replica and 1 more / Deployment top net1 blue 2: 1 replica and 1 more / Deployment top net2 blue 2: 1 replica and 1 more
  a Deployment that has moved ${[top("Deployment", green), set("old", 3), set("new", 1, green)]}
    => Deployment top green 2: 1 replica and 1 more / FORMER
  a Deployment that has moved, whose former pool stays ${[top("Deployment", green), set("old", 3, numbered("", "false"))]}
    => Deployment top green 2: 1 replica and 1 more / FORMER*
  a Deployment that has got a second Subnet ${[top("Deployment", both), set("old", 3)]}
    => Deployment top blue,green 2: 1 replica and 1 more / FORMER
  a Deployment that has lost its second NIC ${[top("Deployment"), set("old", 3, onNetworks("a"))]}
    => Deployment top blue 2: 1 replica and 1 more / ~Deployment top net1 blue 4: 3 replicas of a former version and 1 more
  a Deployment with another number only ${[top("Deployment", numbered("7")), set("old", 3)]}
    => Deployment top blue 7: 7 as ippool-ip-number says
  two former versions of one Subnet ${[top("Deployment", green), set("a", 3), set("b", 2)]}
    => Deployment top green 2: 1 replica and 1 more / ~Deployment top blue 6: 5 replicas of a former version and 1 more
  a Deployment that names Subnets no more ${[set("old", 3)]} => FORMER
  a wrong Deployment with pods of a version that was right ${[top("Deployment", wrong), set("old", 3)]}
    => FORMER / !Deployment top FAULT
  a Deployment that was wrong before ${[top("Deployment"), set("old", 3, wrong), set("older", 3, unread)]}
    => Deployment top blue 2: 1 replica and 1 more
  a Rollout of none ${[part("a", 0)]} => Rollout top blue 1: 0 replicas and 1 more
  a Rollout that has moved ${[part("a", 3, revision(2)), part("b", 2, { ...green, ...revision(10) })]}
    => Rollout top green 3: 2 replicas and 1 more / ~Rollout top blue 4: 3 replicas of a former version and 1 more
  a Rollout without revisions: the time counts ${[part("a", 3, created(2)), part("b", 2, { ...green, ...created(1) })]}
    => Rollout top blue 4: 3 replicas and 1 more / ~Rollout top green 3: 2 replicas of a former version and 1 more
  a Rollout whose newest version is wrong ${[part("a", 3, created(1)), part("b", 2, { ...wrong, ...created(2) })]}
    => ~Rollout top blue 4: 3 replicas of a former version and 1 more / !Rollout top FAULT
  pods of another kind that has moved ${[pod("a", created(1)), pod("b", created(1)), pod("c", { ...green, ...created(2) })]}
    => CloneSet top green 2: 1 pod and 1 more / ~CloneSet top blue 3: 2 pods of a former version and 1 more
  an earlier pod and a ReplicaSet ${[part("a", 2, created(2)), pod("b", { owner: rollout, ...created(1) })]}
    => Rollout top blue 4: 3 pods and 1 more
  pods of another kind with an annotation that cannot be read ${[pod("a", unread)]}
    => !CloneSet top annotation "ipam.vendor.io/subnet": Malformed JSON at line 1, column 2: found the end of the text, want a key in quotes or "}"
  a CronJob with Jobs that it does not count ${[top("CronJob", three), job("a", 3), job("b", 3)]}
    => CronJob top blue 7: parallelism 6 of 2 Jobs and 1 more
  a CronJob with two Jobs that need no more than one of its own ${[top("CronJob", { spec: { parallelism: 4 } }), job("a", 2), job("b", 2)]}
    => CronJob top blue 5: parallelism 4 and 1 more
  a CronJob that has moved ${[top("CronJob", { ...three, ...green }), job("a", 2)]}
    => CronJob top green 4: parallelism 3 and 1 more / ~CronJob top blue 3: parallelism 2 of a former version and 1 more
  a CronJob that waits, with a Job made by hand ${[top("CronJob", { spec: { parallelism: 3, suspend: true } }), job("a", 3)]}
    => CronJob top blue 4: parallelism 3 and 1 more
`)("%s", (_what, objects, expected) => {
  const words = {
    ONLY: "is for workloads that are looked up; CloneSet of apps.kruise.io/v1alpha1 is none of them",
    FORMER: "~Deployment top blue 4: 3 replicas of a former version and 1 more",
    FAULT: 'annotation "ipam.vendor.io/subnet": field "ipv4" is required because enableIPv4 is true',
  };
  const text = expected.replaceAll(/ONLY|FORMER|FAULT/g, (word) => words[word as keyof typeof words]);
  check(objects, expected === "nothing" ? [] : text.split(" / "));
});

it("an internal error is not taken for a wrong annotation", () => {
  const plan = () => planDemands({ own: top("Deployment"), members: [] }, () => expect.fail("a bug"));
  expect(plan).toThrow("a bug");
});
