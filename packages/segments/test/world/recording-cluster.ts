/** The controller's part that records addresses, on caches of a cluster in memory, and the addresses of its pods. */
import { type OpenCaches, openCaches } from "../../../../host/controller/caches.ts";
import type { Controller, ControllerDeps } from "../../../../host/controller/types.ts";
import type { KubeEvent } from "../../../../host/kubernetes/events.ts";
import { EPOCH_MAP } from "../../../../host/resources/registry-epoch.ts";
import { ADMITS_ALL } from "../../../../test/fakes/admission/admission.ts";
import { MemoryApiServer } from "../../../../test/fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../../../test/lab/cluster/objects.ts";
import { recordLog } from "../../../../test/world/recorded-log.ts";
import { type RecordsSettings, startRecords } from "../../controllers/records-controller.ts";
import type { MeasuredRecords } from "../../segment-metrics.ts";

const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
const MAPS = "/api/v1/namespaces/kube-system/configmaps";
const SERVES = {
  [ALLOCATIONS]: { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" },
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
  [MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
};

export const CLUSTER_UID = "7c1f0e52-94a3-4b6d-8f2e-3d5a6b7c8d9e";

type Settings = Pick<RecordsSettings, "open" | "spaces"> & Partial<RecordsSettings>;

export class RecordingCluster implements AsyncDisposable {
  readonly events: KubeEvent[] = [];
  readonly log = recordLog();
  readonly #server = new MemoryApiServer({ serves: SERVES, isOpen: true, admission: ADMITS_ALL });
  readonly #leading = new AbortController();
  readonly #caches: OpenCaches;
  #part: Controller | undefined;

  constructor() {
    this.#server.put("/api/v1/namespaces", "kube-system", { metadata: { uid: CLUSTER_UID } });
    this.setEpoch("e1");
    const { log } = this.log;
    this.#caches = openCaches({ api: this.#server.client(), configNamespace: "kube-system", log, random: () => 0 });
  }

  /** Starts to record, as the leader. */
  async start(settings: Settings): Promise<void> {
    await this.#caches.synced();
    const deps = {
      ...{ api: this.#server.client(), caches: this.#caches, log: this.log.log, random: () => 0 },
      ...{ clock: { nowMs: () => performance.now(), now: () => new Date() }, leading: this.#leading.signal },
      events: { emit: (event: KubeEvent) => void this.events.push(event), close: async () => {} },
    } as unknown as ControllerDeps;
    const common = { cluster: "east", domain: "", intervalMs: 20, restMs: 5, checkMs: 600_000 };
    this.#part = startRecords({ ...common, ...settings })(deps);
  }

  /** The pod `shop/NAME` gets the address. */
  give(ip: string, pod: string, more: object = {}): void {
    const { metadata, spec, ...rest } = allocationObject(
      allocationSpec(ip, {
        prefixLength: ip.includes(":") ? 64 : 16,
        holders: [{ namespace: "shop", pod, podUid: pod, ifName: "eth0", node: "n1" }],
        ...more,
      }),
    ) as { metadata: { name: string }; spec: object };
    this.#server.put(ALLOCATIONS, metadata.name, { ...rest, spec });
  }

  /** "": the record of the registry's epoch is emptied. */
  setEpoch(epoch: string): void {
    const data = { epoch, settled: epoch, cause: "first", definition: "d", waitsFor: "" };
    this.#server.put(MAPS, EPOCH_MAP, { metadata: { namespace: "kube-system" }, data });
  }

  take(name: string): void {
    this.#server.remove(name);
  }

  get problems(): readonly string[] {
    return this.#part?.problems ?? [];
  }

  get measured(): MeasuredRecords | undefined {
    return this.#part?.measurements?.records;
  }

  /** Leads no more, and stops. */
  async stop(): Promise<void> {
    this.#leading.abort(new Error("The test ends"));
    await this.#part?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#caches.close();
  }
}
