/** A control plane with Berth's kinds, accounts and policies, and how to bring it back to that state. */
import { EPOCH_MAP } from "../../../host/resources/registry-epoch.ts";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "../control-plane.ts";
import { type EtcdKey, openEtcd } from "../history/etcd.ts";
import { type KubeClient, KubeError } from "../kube-client.ts";
import { applyCrds } from "./crds.ts";
import { applyRights } from "./rights.ts";

/** Everything that the API server stores. */
const OBJECTS = { start: "/registry/", end: "/registry0" };
/**
 * These the API server writes itself, whenever it likes, such as the node ports that Services have; and the registry's
 * epoch, which agents go on from.
 */
const ITS_OWN =
  /^\/registry\/(?:leases\/kube-system\/apiserver-|masterleases\/|ranges\/|flowschemas\/|prioritylevelconfigurations\/|configmaps\/kube-system\/berth-registry$)/;
const EPOCH_PATH = `/api/v1/namespaces/kube-system/configmaps/${EPOCH_MAP}`;
const CRDS = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/** Below the 128 operations that etcd allows in a transaction. */
const BATCH = 100;
const UNSERVED_MS = 10_000;

export async function startPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const plane = await startControlPlane(options);
  try {
    await applyCrds(plane.client);
    await applyRights(plane.client);
    return plane;
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

/** Reverts writes to a control plane since this object was opened. */
export class PlaneReset {
  readonly #plane: ControlPlane;
  readonly #before: ReadonlyMap<string, number>;

  static async open(plane: ControlPlane): Promise<PlaneReset> {
    const keys = await readKeys(plane);
    return new PlaneReset(plane, new Map(keys.map(({ key, revision }) => [key, revision])));
  }

  private constructor(plane: ControlPlane, before: ReadonlyMap<string, number>) {
    this.#plane = plane;
    this.#before = before;
  }

  /**
   * Starts stopped servers, and deletes all newer objects below the API server, past finalizers and policies. Returns
   * the keys of older objects that were changed or deleted; with any of them the plane is no longer as it was.
   */
  async run(): Promise<readonly string[]> {
    await this.#plane.etcd.start();
    await this.#plane.server.start();
    const keys = await readKeys(this.#plane);
    const added = keys.flatMap(({ key }) => (this.#before.has(key) || ITS_OWN.test(key) ? [] : [key]));
    const kinds = await this.#servedKinds(added.filter((key) => key.startsWith(CRDS)));
    const etcd = openEtcd(this.#plane.etcdUrl);
    try {
      for (let start = 0; start < added.length; start += BATCH) await etcd.deleteAll(added.slice(start, start + BATCH));
    } finally {
      etcd.close();
    }
    for (const kind of kinds) await this.#untilUnserved(kind);
    await closeEpoch(this.#plane.client);
    const now = new Map(keys.map(({ key, revision }) => [key, revision]));
    return [...this.#before].flatMap(([key, revision]) =>
      now.get(key) === revision || ITS_OWN.test(key) ? [] : [key],
    );
  }

  /** The paths of the collections of kinds that are about to go. */
  async #servedKinds(keys: readonly string[]): Promise<string[]> {
    const paths: string[] = [];
    for (const key of keys) {
      const name = key.slice(CRDS.length);
      const { spec } = await this.#plane.client.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
      paths.push(`/apis/${spec.group}/${spec.versions[0].name}/${spec.names.plural}?limit=1`);
    }
    return paths;
  }

  async #untilUnserved(path: string): Promise<void> {
    const deadline = performance.now() + UNSERVED_MS;
    for (;;) {
      const status = await this.#plane.client.get(path).then(
        () => 200,
        (error: unknown) => (error instanceof KubeError ? error.status : 0),
      );
      if (status === 404) return;
      if (performance.now() > deadline)
        throw new Error(`${path} is served ${UNSERVED_MS} ms after its kind was deleted`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** As a controller does when no node is left. */
async function closeEpoch(client: KubeClient): Promise<void> {
  const { data } = await client.get(EPOCH_PATH);
  if (data?.epoch !== data?.settled) await client.patch(EPOCH_PATH, { data: { settled: data.epoch, waitsFor: "" } });
}

async function readKeys({ etcdUrl }: ControlPlane): Promise<readonly EtcdKey[]> {
  const etcd = openEtcd(etcdUrl);
  try {
    return (await etcd.read(OBJECTS)).keys;
  } finally {
    etcd.close();
  }
}
