/**
 * `berthctl convert` on a real API server with the peers' own kinds. The golden input of test/vectors/convert is
 * created there with strict validation, so that it is valid for the peers, and all results are written there, so that
 * they are valid for Berth.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { readDocuments } from "../../../../test/lab/apply.ts";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import { applyPeerKinds, createObjects } from "../../../../test/lab/cluster/peer-kinds.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { root } from "../../../../test/unit/house/sources.ts";
import type { Manifest, WorkloadPatch } from "../../conversion-plan.ts";

const VECTORS = join(root, "packages", "convert", "test", "vectors");
const BERTH = "/apis/ipam.vendor.io/v1";
const NETWORKS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions";
const PEERS = ["spiderpool", "whereabouts", "host-local", "calico"] as const;

let plane: ControlPlane;

beforeAll(async () => {
  plane = await borrowPlane();
  await applyPeerKinds(plane.client);
  for (const peer of PEERS) await createObjects(plane.client, await goldenObjects(peer));
});
afterAll(() => plane?.stop());

async function goldenObjects(peer: string): Promise<KubeObject[]> {
  const folder = join(VECTORS, peer, "in");
  const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
  return (await Promise.all(names.sort().map((name) => readDocuments(join(folder, name))))).flat();
}

const berthctl = (...words: string[]) => runBerthctl("--kubeconfig", plane.kubeconfig, ...words);

interface Converted {
  readonly manifests: readonly Manifest[];
  readonly patches: readonly WorkloadPatch[];
  readonly findings: readonly { readonly level: string; readonly text: string }[];
}

async function convert(peer: string, ...words: string[]): Promise<Converted> {
  return JSON.parse((await berthctl("convert", peer, "-o", "json", ...words)).out);
}

/** All objects that conversions write, by kind and name, with their resource versions. */
async function versions(): Promise<Record<string, string>> {
  const paths = [
    ...["ippools", "subnets", "reservedips", "coordinators"].map((plural) => `${BERTH}/${plural}`),
    NETWORKS,
  ];
  const lists: KubeObject[] = await Promise.all(paths.map((path) => plane.client.get(path)));
  const entries = lists.flatMap(({ kind, items }) =>
    items.map(({ metadata }: KubeObject) => [
      `${kind} ${metadata.namespace}/${metadata.name}`,
      metadata.resourceVersion,
    ]),
  );
  return Object.fromEntries(entries);
}

const templateOf = async (): Promise<KubeObject> =>
  (await plane.client.get("/apis/apps/v1/namespaces/shop/deployments/web")).spec.template.metadata.annotations;

describe.each(PEERS)("%s", (peer) => {
  it("converts the cluster as it converts the files, and writes nothing", async () => {
    const before = await versions();
    const fromCluster = await convert(peer);
    expect(await versions()).toEqual(before);
    const folder = join(VECTORS, peer, "in");
    // host-local's files on its nodes are not in the API server, nor is Calico's configuration.
    const fromFiles = await convert(
      peer,
      ...readdirSync(folder)
        .filter((name) => name.endsWith(".yaml"))
        .map((name) => join(folder, name)),
    );
    expect(fromCluster.manifests).toEqual(fromFiles.manifests);
    expect(fromCluster.patches).toEqual(fromFiles.patches);
    const textsOf = ({ findings }: Converted) => findings.map(({ level, text }) => `${level}: ${text}`).sort();
    expect(textsOf(fromCluster)).toEqual(textsOf(fromFiles));
    expect(fromCluster.manifests.length).toBeGreaterThan(2);
  });

  it("is applied to the cluster, where a second time changes nothing", async () => {
    const { manifests } = await convert(peer);
    const first = await berthctl("convert", peer, "--apply", "--accept-losses");
    expect(first.error.split("\n").filter((line) => line !== "")).toEqual(
      manifests.map(
        ({ kind, metadata: { namespace, name } }) =>
          `${[kind, namespace, name].filter((part) => part !== undefined).join("/")} created`,
      ),
    );
    // Something is lost.
    expect(first.code).toBe(1);
    const applied = await versions();
    const second = await berthctl("convert", peer, "--apply", "--accept-losses");
    expect(second.error.split("\n").filter((line) => line !== "" && !line.endsWith(" unchanged"))).toEqual([]);
    expect(await versions()).toEqual(applied);
  });
});

it("applies nothing that is incomplete unless the losses are accepted", async () => {
  const before = await versions();
  const { code, error } = await berthctl("convert", "calico", "--apply");
  expect([code, error]).toEqual([1, expect.stringContaining("Nothing was applied")]);
  expect(await versions()).toEqual(before);
});

it("patches the workloads that are named, each once; the rollback restores them", async () => {
  const before = await templateOf();
  const { patches } = await convert("spiderpool");
  const web = patches.find(({ name }) => name === "web") as WorkloadPatch;
  const words = ["convert", "spiderpool", "--apply", "--accept-losses", "--patch", "deployment/shop/web"];
  expect((await berthctl(...words)).error).toContain("deployment/shop/web changed");
  expect(await templateOf()).toEqual({
    ...before,
    "ipam.vendor.io/ippools": before["ipam.spidernet.io/ippools"],
    "ipam.vendor.io/routes": before["ipam.spidernet.io/routes"],
    "k8s.v1.cni.cncf.io/networks": "shop/lan-berth@net1,other",
    "v1.multus-cni.io/default-network": "hand-made-berth",
  });
  expect((await convert("spiderpool")).patches.map(({ name }) => name)).toEqual(["api", "bank"]);
  expect((await berthctl(...words)).error).toContain("deployment/shop/web needs no patch");
  await plane.client.patch("/apis/apps/v1/namespaces/shop/deployments/web", web.rollback);
  expect(await templateOf()).toEqual(before);
});

it("leaves a field that others have set, and says so", async () => {
  const path = `${BERTH}/ippools/fixed-b`;
  await plane.client.patch(path, { spec: { default: true, ips: ["10.42.0.201"] } });
  const { code, error } = await berthctl("convert", "spiderpool", "--apply", "--accept-losses");
  expect([code, error]).toEqual([1, expect.stringMatching(/IPPool\/fixed-b refused: .*conflict/)]);
  expect((await plane.client.get(path)).spec.ips).toEqual(["10.42.0.201"]);
});

it("writes over the Coordinator that Berth's controller made, and not over one that a person has changed", async () => {
  const path = `${BERTH}/coordinators`;
  await plane.client.delete(`${path}/default`);
  const made = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" } };
  await plane.client.create(`${path}?fieldManager=berth-controller`, { ...made, spec: { podCIDRType: "auto" } });
  const apply = async () => (await berthctl("convert", "spiderpool", "--apply", "--accept-losses")).error;
  expect(await apply()).toContain("Coordinator/default changed");
  expect((await plane.client.get(`${path}/default`)).spec.podCIDRType).toBe("calico");
  await plane.client.patch(`${path}/default`, { spec: { podCIDRType: "cilium" } });
  expect(await apply()).toMatch(/Coordinator\/default refused: .*conflict/);
});

it("does not reserve the address of a pod that Berth serves, and finds one that another pod has", async () => {
  const moved = (address: string, pod: string) => ({
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", metadata: { name: address } },
    spec: {
      ...{ address, prefixLength: 24, pool: "shop-storage-v4", state: "Bound", node: "n1" },
      holders: [{ namespace: "shop", pod, podUID: "u1", interface: "net1", node: "n1" }],
    },
  });
  await plane.client.create(`${BERTH}/ipallocations`, moved("10.51.0.20", "cart-1"));
  await plane.client.create(`${BERTH}/ipallocations`, moved("10.51.0.21", "other"));
  const { manifests, findings } = await convert("whereabouts");
  const reserved = manifests.find(({ metadata }) => metadata.name === "whereabouts-in-use-v4");
  expect(reserved?.spec.ips).toEqual(["10.51.0.22", "10.51.0.30", "10.54.0.3"]);
  const problems = findings.filter(({ level }) => level === "problem").map(({ text }) => text);
  expect(problems).toEqual(["the address is in use twice: by shop/cart-2 and shop/other"]);
});

it("names the objects of an earlier conversion that the plan no longer has", async () => {
  await plane.client.delete("/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/10.54.0.0-28");
  const { error } = await berthctl("convert", "whereabouts", "--apply", "--accept-losses");
  expect(error).toContain("IPPool/10.54.0.0-28 is of an earlier conversion and no longer needed");
});
