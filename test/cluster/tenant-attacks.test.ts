/** Attacks of a tenant with the role `edit` in one namespace, while others' pods run, start and restart: one judge. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import * as lab from "../lab/cluster/objects.ts";
import * as kinds from "../lab/cluster/workload-kinds.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { inParallel } from "../lab/parallel.ts";
import { ofRun } from "../world/long-cases.ts";
import { Bank, type Spec } from "./other-tenants.ts";
import { outcomeOf } from "./rights-objects.ts";

const EVIL = `${lab.NAMESPACES}/evil`;
const RUNS = kinds.INSTANCES.replace("shop", "evil");
const [SETS = "", CLAIMS = ""] = [kinds.SETS, kinds.CLAIMS].map((path) => path.replace("shop", "evil"));
const PATIENCE = { timeout: 60_000, interval: 1_000 };

let bank: Bank;
beforeAll(async () => {
  bank = await Bank.open();
}, 180_000);
afterEach(async () => {
  const { client } = bank.world;
  for (const { metadata, spec } of (await client.get(`${EVIL}/pods`)).items)
    await bank.end({ ...metadata, node: spec.nodeName ?? "n1" });
  for (const { metadata } of (await client.get(SETS)).items)
    await client.patch(`${SETS}/${metadata.name}`, { metadata: { finalizers: null } });
  for (const path of [SETS, CLAIMS]) await client.delete(path);
  const isFull = async () => JSON.stringify((await client.get(`${lab.COORDINATORS}/default`)).status ?? "");
  await expect.poll(has, PATIENCE).toBe(0);
  await expect.poll(isFull, PATIENCE).not.toContain("evil");
}, 90_000);
afterAll(() => bank.world.stop());

async function claiming(name: string, ipRequests: string[] = []): Promise<Spec> {
  const networks = [{ name: "lan", interface: "net1", "ipam-claim-reference": name }];
  await bank.tenant.create(CLAIMS, kinds.ipamClaim(name, { network: "lan", interface: "net1", ipRequests }));
  return { annotations: { "k8s.v1.cni.cncf.io/networks": networks } };
}

const times = (count: number, work: (at: number) => Promise<unknown>) => inParallel([...Array(count).keys()], 4, work);

const has = (): Promise<number> => bank.tenantHas();

/** Each gives the tenant's answer or holding, and its soon expected value. The first three are in the gate. */
const ATTACKS: Readonly<Record<string, () => Promise<readonly [said: () => unknown, wanted: RegExp]>>> = {
  async "a hundred pods that wait for a volume on their node and never run"() {
    await times(100, (at) => lab.createPod(bank.tenant, { name: `never-${at}`, namespace: "evil", node: "n1" }));
    return [
      async () => (await bank.strike()).said,
      /"evil\\" have \d+ addresses, and may have 16 \(maxAddressesPerNamespace/,
    ];
  },
  async "pods and a machine of its own that say that they are the bank's, from the start or later"() {
    const { tenant, pods, world } = bank;
    const [, machine, away] = pods.map(({ spec }) => spec);
    const { ownerReferences } = (await world.client.get(`${kinds.INSTANCES.replace("shop", "bank")}/db`)).metadata;
    const run = { ...kinds.instance("db"), metadata: { name: "db", ownerReferences } };
    const { uid } = (await tenant.create(RUNS, run)).metadata;
    const labels = { ...machine?.labels, "kubevirt.io/migrationJobUID": "x" };
    const forged = [away, machine, { labels, owner: { ...machine?.owner, uid } as lab.OwnerReference }];
    const said: string[] = [];
    for (const spec of [...forged, { name: "web-1" }]) {
      const struck = await bank.strike(spec);
      const owners = [{ ...away?.owner, controller: true }];
      await tenant.patch(lab.podPath(struck.pod), { metadata: { ownerReferences: owners } });
      if (spec === forged[2]) await tenant.delete(`${RUNS}/db`);
      await bank.end(struck.pod);
      said.push(pods.some(({ ip }) => struck.said === ip) ? "" : struck.said);
    }
    return [() => said, /^(10[.\d]+,?){4}$/];
  },
  async "every way of naming a pool that is the bank's"() {
    const ips = ["10.7.0.9"];
    const tries = [
      await bank.strike({ annotations: { ippool: { ipv4: ["v*t"] } } }),
      await bank.strike({ annotations: { ippools: [{ interface: "eth0", ipv4: ["vault"] }] } }),
      await bank.strike({}, { more: { ipam: { type: "berth", default_ipv4_ippool: ["vault"] } } }),
      await bank.strike({}, { more: { runtimeConfig: { ips } } }),
      await bank.strike({}, { more: { args: { cni: { ips } } } }),
      await bank.strike(await claiming("vault", ["10.7.0.9/24"]), { nic: "net1" }),
    ];
    const annotations = { "ipam.vendor.io/ippool": '{"ipv4":["vault"]}' };
    const own = await outcomeOf(bank.tenant.patch(EVIL, { metadata: { annotations } }));
    const said = [...tries.map(({ said }) => said), own].join("\n");
    return [() => said, /^(.*for other namespaces.*\n){3}(.*may not hand out.*\n){3}403 /];
  },
  async "one pod after the other, ended at once, whose addresses cool for ten minutes"() {
    for (let turn = 0; turn < 80; turn++) await bank.end((await bank.strike()).pod);
    return [has, /^0$/];
  },
  async "finished pods whose finalizers never go"() {
    await times(24, async (at) => {
      const { pod } = await bank.strike();
      await bank.tenant.patch(lab.podPath(pod), { metadata: { finalizers: ["evil.example/never"] } });
      await bank.world.finishPod(pod);
      if (at % 2 === 0) await bank.world.node(pod.node).runtime.detach(pod);
    });
    return [has, /^0$/];
  },
  async "sets of a million that never were, are made anew, or deleted with a finalizer that never goes"() {
    for (let turn = 0; turn < 24; turn++) {
      const [name, finalizers] = turn % 2 === 0 ? ["anew", []] : [`hoard-${turn}`, ["evil.example/never"]];
      const set: KubeObject = { ...kinds.statefulSet(name, 1_000_000), metadata: { name, finalizers } };
      const uid = turn % 3 === 0 ? crypto.randomUUID() : (await bank.tenant.create(SETS, set)).metadata.uid;
      const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid };
      await bank.end((await bank.strike({ name: `${name}-${turn}`, owner })).pod);
      if (turn % 3 > 0) await bank.tenant.delete(`${SETS}/${name}`);
    }
    return [has, /^[0-8]$/];
  },
  async "claims whose status names, in the tenant's or in Berth's name, what others keep and have"() {
    const said: string[] = [];
    for (const manager of ["kubectl", "berth-controller"])
      for (const { ip } of bank.pods.slice(2)) {
        const [name, status] = [`claim-${bank.count++}`, { ips: [`${ip}/26`], ownerPod: "web-1" }];
        const spec = await claiming(name);
        await bank.tenant.patch(`${CLAIMS}/${name}/status?fieldManager=${manager}`, { status });
        said.push((await bank.strike(spec, { nic: "net1" })).said.replace(ip, "ITS"));
      }
    return [() => said.join("\n"), /ITS: it is retained for a w.*\n.*ITS: it is Bound to a pod of a.*(\n10.*){2}$/];
  },
  async "pods on two nodes that take turns with one claim"() {
    const spec = await claiming("turns");
    await times(24, async () => bank.end((await bank.strike(spec, { nic: "net1" })).pod));
    return [has, /^[1-8]$/];
  },
  async "objects with the names, labels and annotations of Berth's and the cluster's own"() {
    const ClusterConfiguration = "controlPlaneEndpoint: 10.6.0.9:6443";
    const data = { "conf.yml": "enableIPv4: false", epoch: "x", ClusterConfiguration };
    for (const name of ["vendor-conf", "berth-registry", "kubeadm-config"])
      await bank.tenant.create(`${EVIL}/configmaps`, { metadata: { name }, data });
    const annotations = { "ipam.vendor.io/service-network": "bank/lan", "ipam.vendor.io/service-selector": "" };
    const spec = { type: "LoadBalancer", ports: [{ port: 80 }], externalIPs: bank.pods.map(({ ip }) => ip) };
    const make = (at: number) => ({
      ...{ metadata: { name: `s${at}`, annotations } },
      spec: { ...spec, loadBalancerIP: `10.6.0.${1 + (at % 62)}` },
    });
    await times(300, (at) => bank.tenant.create(`${EVIL}/services`, make(at)));
    const uid = bank.pods[3]?.pod.uid;
    const mirror = { "kubernetes.io/config.hash": uid, "kubernetes.io/config.mirror": uid };
    await bank.strike({ labels: { component: "kube-apiserver" }, annotations: mirror });
    const { said } = await bank.strike({ annotations: { "force-delete": "true" } });
    return [() => said, /found an unknown annotation/];
  },
  async "a Deployment of ten thousand with a pool of a Subnet, of which fifty pods wait behind the gate"() {
    const { tenant, world } = bank;
    const many = { subnet: "lan", annotations: { "ipam.vendor.io/ippool-ip-number": "+2000000000" }, replicas: 10_000 };
    const owner = await lab.createWorkload(tenant, "Deployment", "many", { ...many, namespace: "evil" });
    const pod = lab.podObject({ name: "", node: "", annotations: { subnet: { ipv4: ["lan"] } } });
    const spec = { ...pod.spec, nodeName: undefined, schedulingGates: [{ name: "ipam.vendor.io/address" }] };
    const { namespace: _, ...reference } = owner;
    const metadata = { ...pod.metadata, namespace: "evil", ownerReferences: [{ ...reference, controller: true }] };
    await times(50, (at) => tenant.create(`${EVIL}/pods`, { spec, metadata: { ...metadata, name: `many-${at}` } }));
    const { namespace: __, ...mine } = await lab.createWorkload(world.client, "ReplicaSet", "mine", { subnet: "lan" });
    await bank.end((await bank.start({ owner: mine, annotations: { subnet: { ipv4: ["lan"] } } }, "shop")).pod);
    const events = async (): Promise<string> => {
      const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/evil/events");
      return items.flatMap((each: KubeObject) => (each.regarding.name === "many" ? each.note : [])).join();
    };
    return [events, /maxGeneratedAddressesPerNamespace/];
  },
};

it.each(ofRun(Object.entries(ATTACKS), (_, at) => at < 3))(
  "%s",
  async (_, attack) => {
    const [[said, wanted]] = await Promise.all([attack(), bank.judge()]);
    await expect.poll(async () => String(await said()), PATIENCE).toMatch(wanted);
    await bank.judge();
  },
  180_000,
);
