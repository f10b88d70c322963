/**
 * A policy of the cluster refuses what the controller writes, on a real API server: how often it tries, what a user
 * sees of it, and how soon all is well when the policy is gone.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONTROLLERS } from "../../host/controller/controllers.ts";
import { REST_MAX_MS } from "../../host/kubernetes/refused-writes.ts";
import { borrowPlane } from "../cluster/borrow-plane.ts";
import { ScriptedPoolOwners } from "../fakes/scripted-pool-owners.ts";
import { POOLS, SUBNETS } from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const NAME = "team-label";
const TEXT = "every IPPool needs the label team";
const MINUTE_MS = 60_000;

let world: World;
beforeAll(async () => {
  world = await openWorld(borrowPlane);
});
afterAll(() => world?.stop());

/** Refuses each change of a pool's specification. */
async function refuse(): Promise<void> {
  const rule = { apiGroups: ["ipam.vendor.io"], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["ippools"] };
  const matchConstraints = { resourceRules: [rule] };
  const type = { apiVersion: "admissionregistration.k8s.io/v1" };
  await world.client.create(POLICIES, {
    ...{ ...type, kind: "ValidatingAdmissionPolicy", metadata: { name: NAME } },
    spec: {
      matchConstraints,
      validations: [{ expression: "'team' in object.metadata.?labels.orValue({})", message: TEXT }],
    },
  });
  await world.client.create(POLICIES.replace("policies", "policybindings"), {
    ...{ ...type, kind: "ValidatingAdmissionPolicyBinding", metadata: { name: NAME } },
    spec: { policyName: NAME, validationActions: ["Deny"] },
  });
}

async function admit(): Promise<void> {
  await world.client.delete(`${POLICIES.replace("policies", "policybindings")}/${NAME}`);
  await world.client.delete(`${POLICIES}/${NAME}`);
}

it("a generated pool that a policy refuses is tried ten times in a minute at most, and the text is in its status", async () => {
  await world.pool("probe", { subnet: "10.8.0.0/24" });
  await refuse();
  const isRefused = async (): Promise<boolean> =>
    world.client.patch(`${POOLS}/probe`, { metadata: { annotations: { at: String(performance.now()) } } }).then(
      () => false,
      () => true,
    );
  await until("the policy is in force", isRefused);
  await world.subnet("blue", { subnet: "10.9.0.0/24" });
  const poolOwners = new ScriptedPoolOwners();
  poolOwners.want("web", "w1", { count: 3 });
  const controller = await world.lead(CONTROLLERS, { poolOwners });
  const [pool] = await untilPool();
  const supplied = async () => {
    const { status } = await world.client.get(`${POOLS}/${pool}`);
    return (status?.conditions ?? []).find(({ type }: { type: string }) => type === "Supplied");
  };
  await until("its condition says why", async () => (await supplied())?.reason === "Refused");
  expect(await supplied()).toMatchObject({ status: "False", message: expect.stringContaining(TEXT) });

  controller.api.calls.splice(0);
  const { resourceVersion } = (await world.client.get(`${SUBNETS}/blue`)).metadata;
  const { revision } = (await world.client.get(`${SUBNETS}/blue`)).status;
  await sleep(MINUTE_MS);
  const writes = controller.api.calls.filter((call) => !call.startsWith("GET "));
  const ofPool = writes.filter((call) => call === `PATCH ippools/${pool}`);
  console.log(`refused writes: ${ofPool.length} of the pool in a minute, ${writes.length} writes of all kinds`);
  expect(ofPool.length).toBeGreaterThan(0);
  expect(ofPool.length).toBeLessThanOrEqual(10);
  const subnet = await world.client.get(`${SUBNETS}/blue`);
  // Reserved again only when the pool has another version: its condition and its counts are in its status.
  expect(subnet.status.revision - revision).toBeLessThanOrEqual(3);
  console.log(
    `refused writes: the Subnet's version went from ${resourceVersion} to ${subnet.metadata.resourceVersion}`,
  );
  const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/default/events");
  const events = items.filter(({ regarding }: { regarding: { name: string } }) => regarding.name === pool);
  expect(events.map(({ reason, note }: Record<string, string>) => [reason, note])).toEqual([
    ["Refused", expect.stringContaining(TEXT)],
  ]);

  await admit();
  const startMs = performance.now();
  const isFilled = async () => ((await world.client.get(`${POOLS}/${pool}`)).spec.ips ?? []).length > 0;
  await until("it is written", isFilled, 2 * REST_MAX_MS);
  console.log(`refused writes: written ${Math.round(performance.now() - startMs)} ms after the policy was gone`);
  await until("its condition follows", async () => (await supplied())?.status === "True");
}, 300_000);

async function untilPool(): Promise<string[]> {
  const names = async (): Promise<string[]> => {
    const { items } = await world.client.get(POOLS);
    return items.flatMap(({ metadata: { name } }: { metadata: { name: string } }) => (name === "probe" ? [] : [name]));
  };
  await until("the pool is made", async () => (await names()).length > 0);
  return await names();
}
