/** An API server, the controller's part that collects networks with the rights of deploy/controller.yaml, and the objects of others that it reads. */

import { expect } from "vitest";
import { keepNetworks } from "../../host/controller/networks/networks-controller.ts";
import type { ControllerDeps } from "../../host/controller/types.ts";
import { type LabController, startParts } from "../../scripts/lab/cluster/controller.ts";
import { writeControllerKubeconfig } from "../../scripts/lab/cluster/in-process.ts";
import { type KubeClient, KubeError, type KubeObject } from "../../scripts/lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { until, WatchedApi } from "./registry-world.ts";

export const COORDINATORS = "/apis/ipam.vendor.io/v1/coordinators";
export const SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs";
export const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
export const SYSTEM = "/api/v1/namespaces/kube-system";

export interface NetworksWorld {
  readonly client: KubeClient;
  /** Of the API server's own ServiceCIDR: one of each family. */
  readonly services: readonly string[];
  /** The part as the one that leads, with a look for absent kinds that is quick; `change` may stand between it and the API server. */
  start(change?: (api: WatchedApi) => void): Promise<LabController & { readonly api: WatchedApi }>;
  /** Makes the object, or makes it so; it is removed after the test. */
  make(collection: string, object: object, name: string): Promise<void>;
  remove(path: string): Promise<void>;
  kubeadm(configuration: string): Promise<void>;
  controlPlanePod(name: string, component: string, command: string[]): Promise<void>;
  /** A kind without rules, as another product installs it. Gives its path when it is served. */
  makeKind(group: string, version: string, plural: string, kind: string): Promise<string>;
  statusNow(): Promise<KubeObject>;
  /** Waits until the status has all of this. */
  expectStatus(expected: object): Promise<void>;
  /** Ends what was started, and removes what was made. */
  clean(): Promise<void>;
  stop(): Promise<void>;
}

export async function openNetworksWorld(): Promise<NetworksWorld> {
  const plane = await borrowPlane();
  const { client } = plane;
  const kubeconfig = await writeControllerKubeconfig(plane);
  const { items } = await client.get(SERVICE_CIDRS);
  const services: string[] = items.flatMap(({ spec }: KubeObject) => spec.cidrs);
  expect(services).toHaveLength(2);
  const running: LabController[] = [];
  const made: string[] = [];

  const make = async (collection: string, object: object, name: string): Promise<void> => {
    await client.apply(`${collection}/${name}`, { ...object, metadata: { name } });
    made.push(`${collection}/${name}`);
  };
  const remove = async (path: string): Promise<void> => {
    await client.delete(path, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
      if (!(error instanceof KubeError && error.status === 404)) throw error;
    });
  };
  const statusNow = async (): Promise<KubeObject> => (await client.get(`${COORDINATORS}/default`)).status ?? {};
  return {
    ...{ client, services, make, remove, statusNow },
    start: async (change) => {
      const bare = await startParts(kubeconfig, {});
      const api = new WatchedApi(bare.client);
      change?.(api);
      const networks = (deps: ControllerDeps) => keepNetworks(deps, { missingKindRetryMs: 200 });
      const controller = await startParts(kubeconfig, { networks }, { deps: { api } });
      running.push(bare, controller);
      return { ...controller, api };
    },
    kubeadm: (configuration) =>
      make(
        `${SYSTEM}/configmaps`,
        { apiVersion: "v1", kind: "ConfigMap", data: { ClusterConfiguration: configuration } },
        "kubeadm-config",
      ),
    controlPlanePod: async (name, component, command) => {
      await client.create(`${SYSTEM}/pods`, {
        ...{ apiVersion: "v1", kind: "Pod", metadata: { name, labels: { component, tier: "control-plane" } } },
        spec: { nodeName: "n1", containers: [{ name: component, image: "local/pause:1", command }] },
      });
      made.push(`${SYSTEM}/pods/${name}`);
    },
    makeKind: async (group, version, plural, kind) => {
      const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
      const names = { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` };
      const versions = [{ name: version, served: true, storage: true, schema: { openAPIV3Schema } }];
      const object = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
      await make(CRDS, { ...object, spec: { group, scope: "Cluster", names, versions } }, `${plural}.${group}`);
      const path = `/apis/${group}/${version}/${plural}`;
      const isServed = () =>
        client.get(path).then(
          () => true,
          () => false,
        );
      await until(`${path} is served`, isServed);
      return path;
    },
    expectStatus: async (expected) => {
      let status: KubeObject;
      const isIt = async (): Promise<boolean> => {
        status = await statusNow();
        try {
          expect(status).toMatchObject(expected);
          return true;
        } catch {
          return false;
        }
      };
      await until("the status", isIt).catch(() => expect(status).toMatchObject(expected));
    },
    clean: async () => {
      for (const controller of running.splice(0).reverse()) await controller.close();
      for (const path of made.splice(0).reverse()) await remove(path);
    },
    stop: () => plane.stop(),
  };
}
