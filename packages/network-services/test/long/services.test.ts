/**
 * Services for a second network (docs/services.md): the built controller writes the endpoints of macvlan pods, a real
 * kube-proxy sends connections to them, and a real CoreDNS answers with their addresses.
 */
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { FAMILIES } from "../../../../host/net/ip.ts";
import { referenceTool, root } from "../../../../scripts/setup/paths.mjs";
import { POD_NETWORK, segmentAddress } from "../../../../test/lab/addressing.ts";
import { applyCrds } from "../../../../test/lab/cluster/crds.ts";
import { writeControllerKubeconfig } from "../../../../test/lab/cluster/in-process.ts";
import {
  ALLOCATIONS,
  allocationObject,
  allocationSpec,
  createPod,
  definitionsCrd,
  type LabPod,
  podPath,
} from "../../../../test/lab/cluster/objects.ts";
import { applyRights } from "../../../../test/lab/cluster/rights.ts";
import { startDaemon } from "../../../../test/lab/daemon.ts";
import { makeServiceWorld, type ServiceWorld } from "../../../../test/lab/netns/coordinator.ts";
import { ask } from "../../../../test/lab/traffic.ts";

const TARGET = { "ipam.vendor.io/service-network": "default/dock", "ipam.vendor.io/service-selector": "app=web" };
const ADDRESSES = ["10.96.0.60", "fd00:96::60"] as const;
const PORT = 8080;
const DNS_PORT = 5353;
/** The pods' second NICs are in this segment, and the first ones, which the Service must not use, in segment 0. */
const SEGMENT = 1;
const HOSTS = { a: 50, b: 51 } as const;
type Name = keyof typeof HOSTS;

let world: ServiceWorld;
const pods = new Map<Name, LabPod>();

beforeAll(async () => {
  world = await makeServiceWorld("sv");
  const { fabric, plane } = world;
  const { client } = plane;
  await applyCrds(client);
  await applyRights(client);
  await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitionsCrd());
  for (const [name, host] of Object.entries(HOSTS) as [Name, number][]) {
    const netns = await fabric.addMacvlanPod(fabric.node2, name, [
      { segment: 0, host },
      { segment: SEGMENT, host },
    ]);
    await world.serve(netns, PORT, { protocols: ["tcp"] });
    const annotations = { "k8s.v1.cni.cncf.io/networks": "dock" };
    const node = fabric.node2.name;
    const pod = await createPod(client, { name, namespace: "default", node, labels: { app: "web" }, annotations });
    pods.set(name, pod);
    for (const family of FAMILIES) {
      const holder = { namespace: "default", pod: name, podUid: pod.uid, ifName: "net1", node };
      const spec = allocationSpec(segmentAddress(SEGMENT, host, family), { node, holders: [holder] });
      await client.create(ALLOCATIONS, allocationObject(spec));
    }
    await setReady(name, true);
  }
  await makeService("web", { clusterIP: ADDRESSES[0], clusterIPs: ADDRESSES });
  await makeService("names", { clusterIP: "None" });
  const kubeconfig = await writeControllerKubeconfig(plane);
  const node = join(root, "node_modules", ".bin", "node");
  const program = [node, join(root, "dist", "berth-controller.mjs"), "--identity", "one", "--listen", "off"];
  const controller = await startDaemon("controller", [...program, "--kubeconfig", kubeconfig], fabric.node1);
  world.defer(() => controller.kill());
  const corefile = join(dirname(plane.kubeconfig), "Corefile");
  await writeFile(
    corefile,
    `.:${DNS_PORT} {\n  errors\n  kubernetes cluster.local {\n    kubeconfig ${plane.kubeconfig} lab\n  }\n}\n`,
  );
  const coredns = join(referenceTool("coredns").directory, "coredns");
  const dns = await startDaemon("coredns", [coredns, "-conf", corefile], fabric.node1);
  world.defer(() => dns.kill());
});
afterAll(() => world?.delete());

async function makeService(name: string, spec: object): Promise<void> {
  const ports = [{ name: "http", port: 80, targetPort: PORT }];
  await world.plane.client.create("/api/v1/namespaces/default/services", {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name, annotations: TARGET } },
    spec: { ipFamilyPolicy: "RequireDualStack", ports, ...spec },
  });
}

async function setReady(name: Name, isReady: boolean): Promise<void> {
  const conditions = [{ type: "Ready", status: isReady ? "True" : "False" }];
  const pod = pods.get(name);
  if (pod !== undefined) await world.plane.client.patch(`${podPath(pod)}/status`, { status: { conditions } });
}

/** The addresses of a name, as a resolver on node 1 gets them. */
async function resolve(name: string): Promise<string[]> {
  const code = `const r = new (require("node:dns").promises.Resolver)({ timeout: 2000, tries: 1 });
r.setServers(["127.0.0.1:${DNS_PORT}"]);
Promise.all(["resolve4", "resolve6"].map((each) => r[each]("${name}").catch(() => []))).then((all) => console.log(JSON.stringify(all.flat())));`;
  return JSON.parse((await world.fabric.node1.exec([process.execPath, "-e", code])).stdout).sort();
}

const addressesOf = (...names: readonly Name[]): string[] =>
  names.flatMap((name) => FAMILIES.map((family) => segmentAddress(SEGMENT, HOSTS[name], family))).sort();

const expectNames = (...names: readonly Name[]): Promise<void> =>
  expect
    .poll(() => resolve("names.default.svc.cluster.local"), { timeout: 60_000, interval: 500 })
    .toEqual(addressesOf(...names));

describe.each(["nftables", "iptables"] as const)("kube-proxy (%s) and CoreDNS", (mode) => {
  it("send a client to the pods' second addresses, of both families, and follow readiness", async () => {
    // A client elsewhere is masqueraded, so that answers come back through the node.
    const clusterCIDR = Object.values(POD_NETWORK).join();
    const proxy = await world.startProxy({ mode, clusterCIDR }, [...ADDRESSES, ...addressesOf("a", "b")]);
    onTestFinished(() => proxy.stop());
    const { node1 } = world.fabric;
    await expectNames("a", "b");
    const servers = async (): Promise<string[]> => {
      const answers: string[] = [];
      for (const address of ADDRESSES)
        for (let nth = 0; nth < 8; nth++) {
          const { server, at } = await ask(node1, address, 80);
          expect(addressesOf("a", "b")).toContain(at);
          answers.push(server);
        }
      return [...new Set(answers)].sort();
    };
    expect(await servers()).toHaveLength(2);
    await setReady("b", false);
    await expectNames("a");
    await expect.poll(servers, { timeout: 60_000 }).toHaveLength(1);
    await setReady("b", true);
    await expectNames("a", "b");
  });
});
