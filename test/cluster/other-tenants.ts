/** A tenant with the role `edit` in the namespace evil, beside the pods and members of the namespace bank. */
import { expect } from "vitest";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import * as lab from "../lab/cluster/objects.ts";
import { createToken } from "../lab/cluster/rights.ts";
import * as kinds from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** maxAddressesPerNamespace. The controller tells of full ones up to three seconds late. */
export const LIMIT = 16;
export type Spec = Partial<lab.PodSpec>;

const RBAC = "rbac.authorization.k8s.io";
const rbac = (kind: string, name: string) => ({ apiVersion: `${RBAC}/v1`, kind, metadata: { name } });

async function openTenant({ client, plane }: World): Promise<KubeClient> {
  const rules = [{ apiGroups: ["k8s.cni.cncf.io", "kubevirt.io"], resources: ["*"], verbs: ["*"] }];
  await client.create(`/apis/${RBAC}/v1/clusterroles`, { ...rbac("ClusterRole", "kinds"), rules });
  await client.create(`${lab.NAMESPACES}/kube-system/serviceaccounts`, { metadata: { name: "tenant" } });
  const subjects = [{ kind: "ServiceAccount", name: "tenant", namespace: lab.SYSTEM }];
  for (const name of ["kinds", "system:aggregate-to-edit"]) {
    const roleRef = { apiGroup: RBAC, kind: "ClusterRole", name };
    const binding = { ...rbac("RoleBinding", name), roleRef, subjects };
    await client.create(`/apis/${RBAC}/v1/namespaces/evil/rolebindings`, binding);
  }
  return plane.openClient({ token: await createToken(client, { account: "tenant" }) });
}

export class Bank {
  readonly world: World;
  readonly tenant: KubeClient;
  /** Two members that restart, one that is away, and a pod that runs. */
  readonly pods: { readonly spec: Spec; pod: lab.LabPod; readonly ip: string }[] = [];
  count = 0;

  constructor(world: World, tenant: KubeClient) {
    this.world = world;
    this.tenant = tenant;
    world.defer(() => tenant.close());
  }

  /** Pool blue of 62 addresses for all, vault for the bank, and Subnet lan. */
  static async open(): Promise<Bank> {
    const world = await startWorld({
      ...{ startPlane: borrowPlane, nodes: ["n1", "n2"], namespaces: ["shop", "bank", "evil"] },
      settings: { maxAddressesPerNamespace: LIMIT, maxGeneratedAddressesPerNamespace: 8 },
      pools: [
        { name: "blue", subnet: "10.6.0.0/26", cooldown: "10m" },
        { name: "vault", subnet: "10.7.0.0/24", default: false, namespaceName: ["bank"] },
      ],
    });
    for (const name of ["n1", "n2"]) await world.setNode(name, "True");
    await kinds.applyWorkloadKinds(world.client);
    await world.subnet("lan", { subnet: "10.8.0.0/27" });
    const controller = await startControllerProcess({ kubeconfig: await world.controllerKubeconfig(), name: "one" });
    world.defer(() => controller.kill());
    const bank = new Bank(world, await openTenant(world));
    const make = async (path: string, object: object): Promise<string> =>
      (await world.client.create(path.replace("shop", "bank"), object)).metadata.uid;
    const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "web" };
    const member = { owner: { ...owner, uid: await make(kinds.SETS, kinds.statefulSet("web", 2)) } };
    const run = await make(kinds.INSTANCES, kinds.instance("db", await make(kinds.MACHINES, kinds.machine("db"))));
    const machine = {
      labels: { "kubevirt.io": "virt-launcher" },
      owner: { ...kinds.instance("db"), name: "db", uid: run },
    };
    for (const spec of [{ name: "web-0", ...member }, machine as Spec, { name: "web-1", ...member }, {}])
      bank.pods.push({ spec, ...(await bank.start(spec)) });
    await bank.end(bank.pods[2]?.pod as lab.LabPod);
    return bank;
  }

  /** A pod that waits for nothing. */
  async start(spec: Spec, namespace = "bank"): Promise<{ pod: lab.LabPod; ip: string }> {
    const own = { name: `pod-${this.count++}`, namespace, node: `n${1 + (this.count % 2)}` };
    const pod = await this.world.createPod({ ...own, ...spec });
    const { addresses, refusal, tookMs } = await this.world.node(pod.node).runtime.attach(pod, { limitMs: 20_000 });
    expect([addresses.length, tookMs < 10_000], `${pod.name} after ${tookMs} ms: ${refusal}`).toEqual([1, true]);
    return { pod, ip: addresses[0] ?? "" };
  }

  async end(pod: lab.LabPod): Promise<void> {
    for (const nic of ["eth0", "net1"]) await this.world.node(pod.node).runtime.detach(pod, nic);
    await this.world.client.patch(lab.podPath(pod), { metadata: { finalizers: null } });
    await this.world.deletePod(pod);
  }

  /** Others neither lose nor wait for anything, and the tenant has not much more than its limit. */
  async judge(): Promise<void> {
    for (const member of this.pods.slice(0, 2)) {
      await this.end(member.pod);
      const { pod, ip } = await this.start(member.spec);
      expect(ip, `the address of ${member.pod.name} after its restart`).toBe(member.ip);
      member.pod = pod;
      await this.end((await this.start({}, "shop")).pod);
    }
    const records = await Promise.all(this.pods.slice(2).map(({ ip }) => this.world.spec(ip)));
    const plain = { state: "Bound", holders: [{ podUID: this.pods[3]?.pod.uid }] };
    expect(records).toMatchObject([{ state: "Kept", workload: { member: "web-1" } }, plain]);
    expect(await this.tenantHas()).toBeLessThanOrEqual(LIMIT + 8);
  }

  async tenantHas(): Promise<number> {
    const all = (await this.world.allocations()).filter(({ spec }) => spec.state !== "Cooling");
    const isIts = ({ spec }: KubeObject) => (spec.workload ?? spec.holders?.[0])?.namespace === "evil";
    return all.filter(isIts).length;
  }

  /** A pod of the tenant, and the answer of one ADD. */
  async strike(spec: Spec = {}, { nic = "eth0", more = {} } = {}) {
    const own = { name: `evil-${this.count++}`, node: `n${1 + (this.count % 2)}`, ...spec };
    const pod = await lab.createPod(this.tenant, { ...own, namespace: "evil" });
    const options = { limitMs: 0, ifName: nic, network: nic === "eth0" ? "underlay" : "lan", more };
    const { addresses, refusal } = await this.world.node(pod.node).runtime.attach(pod, options);
    return { pod, said: `${addresses.join()}${/"code":.*/.exec(refusal)?.[0] ?? ""}` };
  }
}
