/**
 * A release that a tool deletes object by object, in whatever order and without Helm's hooks, as Argo CD and Flux's
 * Kustomizations do: with `crds.allowDeletion` nothing stays, on a real API server.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { IN_USE_FINALIZER } from "../../host/controller/finalizers/plan-finalizers.ts";
import { copyChart, runHelm } from "../../scripts/chart/helm.ts";
import { applyObject, collectionOf } from "../lab/apply.ts";
import { startControllerProcess } from "../lab/cluster/controller-process.ts";
import { boundObject, CRDS, namespaceObject } from "../lab/cluster/objects.ts";
import { type ControlPlane, startControlPlane } from "../lab/control-plane.ts";
import { KubeError, type KubeObject } from "../lab/kube-client.ts";

const NAMESPACE = "net-system";
const VALUES = {
  crds: { allowDeletion: true },
  ipPools: { lan: { subnet: "10.7.0.0/24" } },
  subnets: { blue: { subnet: "10.8.0.0/16" } },
  reservedIPs: { routers: { ips: ["10.7.0.1"] } },
  settings: { enableIPv6: false },
};

let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane();
  await applyObject(plane.client, namespaceObject(NAMESPACE) as KubeObject);
});
afterAll(() => plane?.stop());

/** With the definitions, as Argo CD renders it. */
function render(values: object): KubeObject[] {
  using chart = copyChart();
  const words = ["--namespace", NAMESPACE, "--kube-version", "1.34.4", "--include-crds", "--no-hooks"];
  const sets = Object.entries(values).flatMap(([key, value]) => ["--set-json", `${key}=${JSON.stringify(value)}`]);
  const text = runHelm("template", "berth", chart.directory, ...words, ...sets);
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
}

const isGone = async (path: string): Promise<boolean> => {
  try {
    await plane.client.get(path);
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return true;
    throw error;
  }
};

/** Runs the controller with the options and the account of the release until no pool and no Subnet has a finalizer. */
async function letGo(objects: readonly KubeObject[]): Promise<void> {
  const deployment = objects.find(({ kind }) => kind === "Deployment");
  const { args } = deployment?.spec.template.spec.containers[0] ?? expect.unreachable();
  const own = args.filter((word: string) => !/^--(in-cluster|listen=)/.test(word));
  const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/berth-controller/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  const { status } = await plane.client.create(account, request);
  const kubeconfig = await plane.writeKubeconfig("controller", { token: status.token });
  const controller = await startControllerProcess({ kubeconfig, name: "last", args: own });
  const finalizers = async () => {
    const lists = await Promise.all(
      ["ippools", "subnets"].map((plural) => plane.client.get(`/apis/ipam.vendor.io/v1/${plural}`)),
    );
    return lists.flatMap(({ items }) => items).flatMap(({ metadata }: KubeObject) => metadata.finalizers ?? []);
  };
  try {
    await expect.poll(finalizers, { timeout: 60_000, message: controller.output() }).toEqual([]);
  } finally {
    await controller.kill();
  }
}

type Order = (objects: readonly KubeObject[]) => readonly KubeObject[];
const isDefinition = ({ kind }: KubeObject) => kind === "CustomResourceDefinition";

it.each<[name: string, order: Order]>([
  ["as it is rendered: definitions first", (objects) => objects],
  ["backwards, the controller before what it keeps", (objects) => objects.toReversed()],
  [
    "sorted by name, the definitions last",
    (objects) => [
      ...objects
        .filter((each) => !isDefinition(each))
        .toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
      ...objects.filter(isDefinition),
    ],
  ],
])("everything goes %s", async (_, order) => {
  const objects = render(VALUES);
  for (const object of objects) {
    const isMarked = ["IPPool", "Subnet"].includes(object.kind);
    const metadata = isMarked ? { ...object.metadata, finalizers: [IN_USE_FINALIZER] } : object.metadata;
    await applyObject(plane.client, { ...object, metadata });
  }
  await letGo(objects);
  // A pod still runs.
  await applyObject(plane.client, boundObject({ address: "10.7.0.9", node: "n1", pool: "lan" }));
  const paths = await Promise.all(
    objects.map(async (object) => `${await collectionOf(plane.client, object)}/${object.metadata.name}`),
  );
  for (const object of order(objects)) {
    const path = paths[objects.indexOf(object)] ?? "";
    // With its definition an object is gone before its turn.
    if (!(await isGone(path))) await plane.client.delete(path, { propagationPolicy: "Background" });
  }
  for (const path of paths) await expect.poll(() => isGone(path), { timeout: 30_000, message: path }).toBe(true);
});

it("without that value the definitions are protected", async () => {
  const { crds: _, ...values } = VALUES;
  const objects = render(values);
  for (const object of objects) await applyObject(plane.client, object);
  // The API server learns of a new policy a moment later.
  const attempt = () =>
    plane.client.delete(`${CRDS}/ippools.ipam.vendor.io`, { dryRun: ["All"] }).then(() => "", String);
  await expect.poll(attempt, { timeout: 30_000 }).toContain("ipam.vendor.io/force-delete=true");
});
