/** The network in deploy/examples/multus, executed by the reference library with the built agent. */
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { readDocuments } from "../lab/apply.ts";
import { manifest, vendorConf } from "../lab/manifests.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";

const FOLDER = join(root, "deploy", "examples", "multus");
/** cnitool finds a cached result by the network's name, which must be this test's own. */
const NETWORK = `dock${process.pid}`;

it("a pod's second NIC gets an address of the example's pool, and the pod and its node reach each other by it", async () => {
  const objects = await readDocuments(join(FOLDER, "10-dock.yaml"));
  const [clerk] = await readDocuments(join(FOLDER, "20-clerk.yaml"));
  const [pool, definition] = objects;
  const { annotations } = clerk?.spec.template.metadata ?? {};
  expect(annotations["k8s.v1.cni.cncf.io/networks"]).toBe(definition?.metadata.name);
  expect(definition?.metadata.namespace).toBe(clerk?.metadata.namespace);
  const { name, plugins } = JSON.parse(definition?.spec.config);
  expect(name).toBe("dock");
  const config = {
    "conf.yaml": vendorConf({ enableIPv6: false }),
    "dock.yaml": manifest("IPPool", pool?.metadata.name, pool?.spec),
    // In a cluster the controller collects it.
    "default.yaml": manifest("Coordinator", "default", { overlayPodCIDR: ["10.244.0.0/16"] }),
  };
  const world = await NetnsWorld.build("ex", async (built) => {
    const [netns, wire] = [await built.addNetns("node"), await built.addNetns("wire")];
    await addVeth({ netns, name: "eth1" }, { netns: wire, name: "eth1" });
    await netns.ip("addr add 192.0.2.2/24 dev eth1");
    const node = await built.addNode(netns, config);
    return Object.assign(built, { node });
  });
  onTestFinished(() => world.delete());
  const ranges = [[{ subnet: "10.244.0.0/24" }]];
  const ipam = { type: "host-local", dataDir: join(world.node.agent.directory, "hl"), ranges };
  const overlay = { type: "bridge", bridge: "cni0", isDefaultGateway: true, ipam };
  await world.define(`${NETWORK}-first`, [overlay]);
  await world.define(NETWORK, plugins);
  const pod = await world.addPod(world.node, "clerk-0");
  await pod.attach(`${NETWORK}-first`);
  const { ips } = await pod.attach(NETWORK, "net1");
  expect(ips.map(({ address }) => address)).toEqual([expect.stringMatching(/^10\.62\.0\.(5|6|7|8|9)\d\/24$/)]);
  await pod.check(NETWORK, "net1");
  const [address = ""] = ips.map((ip) => ip.address.replace(/\/.*/, ""));
  expect((await world.node.netns.exec(["ping", "-c1", "-W2", address])).exitCode).toBe(0);
  await pod.detach(NETWORK, "net1");
});
