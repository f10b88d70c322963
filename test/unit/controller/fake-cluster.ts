/** Collections behind the port: lists answer with what is there, watches tell what is changed. The Lease is lease-world.ts's. */
import type { KubeApi, KubeObject, KubeWatch } from "../../../host/kubernetes/kube-api.ts";
import { FakeServer } from "../kubernetes/lease/lease-world.ts";

export class FakeCluster {
  readonly leases = new FakeServer();
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #watches = new Set<KubeWatch>();
  #version = 1_000;
  /** Collections whose lists are not answered yet. */
  readonly held = new Set<string>();
  readonly #waiting: (() => void)[] = [];

  get watches(): number {
    return this.#watches.size;
  }

  set(path: string, name: string, object: Record<string, unknown>): void {
    const metadata = { ...Object(object.metadata), name, uid: `uid-${name}`, resourceVersion: `${++this.#version}` };
    const whole = { ...object, metadata };
    this.#of(path).set(name, whole);
    this.#tell(path, "MODIFIED", whole);
  }

  delete(path: string, name: string): void {
    const object = this.#of(path).get(name);
    this.#of(path).delete(name);
    if (object !== undefined) this.#tell(path, "DELETED", object);
  }

  release(): void {
    this.held.clear();
    for (const go of this.#waiting.splice(0)) go();
  }

  api(): KubeApi {
    const leases = this.leases.api();
    return {
      call: async (call) => {
        if (call.path.includes("/leases")) return leases.call(call);
        while (this.held.has(call.path)) {
          await new Promise<void>((resolve, reject) => {
            this.#waiting.push(resolve);
            call.signal?.addEventListener("abort", () => reject(call.signal?.reason));
          });
        }
        const items = [...this.#of(call.path).values()];
        return { apiVersion: "v1", kind: "List", metadata: { resourceVersion: `${this.#version}` }, items };
      },
      watch: (watch) =>
        new Promise((_, reject) => {
          this.#watches.add(watch);
          watch.onOpen?.();
          watch.signal.addEventListener("abort", () => {
            this.#watches.delete(watch);
            reject(watch.signal.reason);
          });
        }),
      close: async () => {},
    };
  }

  #of(path: string): Map<string, KubeObject> {
    const known = this.#objects.get(path) ?? new Map<string, KubeObject>();
    this.#objects.set(path, known);
    return known;
  }

  #tell(path: string, type: "MODIFIED" | "DELETED", object: KubeObject): void {
    for (const watch of this.#watches) if (watch.path === path) watch.onEvent({ type, object });
  }
}
