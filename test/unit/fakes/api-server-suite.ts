/**
 * Behaviour of an API server with objects of Berth's own kinds, as far as the controller and the registry rely on it:
 * run on a real one (test/cluster/api-server.test.ts) and on the fake (memory-api-server.test.ts), so that the fake
 * is held to it.
 */
import { describe, expect, it } from "vitest";
import {
  ApiError,
  type KubeApi,
  type KubeCall,
  type KubeObject,
  type WatchEvent,
} from "../../../host/kubernetes/kube-api.ts";

const SUBNETS = "/apis/ipam.vendor.io/v1/subnets";
const SPEC = { subnet: "10.6.0.0/16", ips: ["10.6.0.10-10.6.0.20"], excludeIPs: [], addressSpace: "" };

// biome-ignore lint/suspicious/noExplicitAny: an object as the API server has it
type Loose = any;

const versionOf = ({ metadata }: Loose): string => metadata.resourceVersion;

let last = 0;
class Scene {
  readonly api: KubeApi;
  readonly name = `suite-${process.pid}-${++last}`;
  readonly path = `${SUBNETS}/${this.name}`;

  constructor(api: KubeApi) {
    this.api = api;
  }

  call(method: KubeCall["method"], path: string, body?: object): Promise<Loose> {
    return this.api.call({ method, path, patienceMs: 0, ...(body === undefined ? {} : { body }) });
  }

  create(metadata: object = {}, more: object = {}): Promise<Loose> {
    const object = { apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { ...metadata, name: this.name } };
    return this.call("POST", SUBNETS, { ...object, spec: SPEC, ...more });
  }

  read(): Promise<Loose> {
    return this.call("GET", this.path);
  }

  patch(body: object, part = ""): Promise<Loose> {
    return this.call("PATCH", `${this.path}${part}`, body);
  }

  /** `409 Conflict`; `done` when it was carried out. */
  async outcome(call: Promise<unknown>): Promise<string> {
    try {
      await call;
      return "done";
    } catch (error) {
      if (error instanceof ApiError) return `${error.status} ${error.reason}`;
      throw error;
    }
  }

  async forget(): Promise<void> {
    await this.patch({ metadata: { finalizers: null } }).catch(() => {});
    await this.call("DELETE", this.path).catch(() => {});
  }
}

/** `open` gives the same server each time, which has the kind Subnet. */
export function describeApiServer(open: () => Promise<KubeApi>): void {
  const check = (what: string, test: (scene: Scene) => Promise<void>) =>
    it(what, async () => {
      const scene = new Scene(await open());
      await test(scene);
      await scene.forget();
    });

  describe("a create", () => {
    check("gives what is the server's own, and no status", async (scene) => {
      const object = await scene.create(
        { uid: "mine", generation: 7, labels: { app: "web" } },
        { status: { assigned: 3 } },
      );
      expect(object.metadata.uid).not.toBe("mine");
      expect([object.metadata.generation, object.metadata.labels]).toEqual([1, { app: "web" }]);
      expect(object.metadata.creationTimestamp).toMatch(/^[0-9]{4}-.*Z$/);
      expect(Number(object.metadata.resourceVersion)).toBeGreaterThan(0);
      expect([object.spec, object.status]).toEqual([SPEC, undefined]);
    });

    check("of a name that is taken is refused", async (scene) => {
      await scene.create();
      expect(await scene.outcome(scene.create())).toBe("409 AlreadyExists");
    });
  });

  describe("a merge patch", () => {
    check("changes what it names, and counts the generation and the version", async (scene) => {
      const before = await scene.create({ labels: { app: "web", tier: "front" } });
      const after = await scene.patch({
        metadata: { labels: { tier: null, zone: "a" } },
        spec: { ips: ["10.6.0.30"], gateway: "10.6.0.1" },
      });
      expect(after.metadata.labels).toEqual({ app: "web", zone: "a" });
      expect(after.spec).toEqual({ ...SPEC, ips: ["10.6.0.30"], gateway: "10.6.0.1" });
      expect(after.metadata.generation).toBe(2);
      expect(after.metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
      expect(await scene.read()).toEqual(after);
    });

    check("of metadata counts no generation, and leaves alone what is the server's own", async (scene) => {
      const before = await scene.create();
      const own = { generation: 9, creationTimestamp: null };
      const after = await scene.patch({ metadata: { ...own, annotations: { note: "x" } } });
      const { annotations, generation, creationTimestamp } = after.metadata;
      expect([annotations, generation]).toEqual([{ note: "x" }, 1]);
      expect(creationTimestamp).toBe(before.metadata.creationTimestamp);
      const deletionTimestamp = "2020-01-01T00:00:00Z";
      expect(await scene.outcome(scene.patch({ metadata: { deletionTimestamp } }))).toBe("422 Invalid");
    });

    check("that changes nothing gives no new version", async (scene) => {
      const before = await scene.create({ labels: { app: "web" } });
      const { uid, resourceVersion } = before.metadata;
      const same = await scene.patch({ metadata: { uid, resourceVersion, labels: { app: "web" } }, spec: SPEC });
      expect(same.metadata.resourceVersion).toBe(resourceVersion);
      const status = await scene.patch({ status: { assigned: 1, pools: [] } }, "/status");
      const again = await scene.patch({ status: { pools: [], assigned: 1 } }, "/status");
      expect(again.metadata.resourceVersion).toBe(status.metadata.resourceVersion);
    });

    check("on an old version, on another object or on none is refused", async (scene) => {
      expect(await scene.outcome(scene.patch({ spec: { ips: [] } }))).toBe("404 NotFound");
      const { uid, resourceVersion } = (await scene.create()).metadata;
      await scene.patch({ spec: { ips: [] } });
      for (const part of ["", "/status"]) {
        const body = { spec: { ips: ["10.6.0.9"] }, status: { assigned: 4 } };
        const old = scene.patch({ metadata: { uid, resourceVersion }, ...body }, part);
        expect(await scene.outcome(old), part).toBe("409 Conflict");
        const other = scene.patch({ metadata: { uid: "another", resourceVersion }, ...body }, part);
        expect(await scene.outcome(other), part).toBe("409 Conflict");
        // A UID without a version is no precondition: the change is forbidden, or does nothing.
        const without = scene.patch({ metadata: { uid: "another" }, ...body }, part);
        expect(await scene.outcome(without), part).toBe(part === "" ? "422 Invalid" : "done");
      }
      const { metadata } = await scene.read();
      const current = { metadata: { uid, resourceVersion: metadata.resourceVersion }, spec: { ips: ["10.6.0.9"] } };
      expect(await scene.outcome(scene.patch(current))).toBe("done");
    });

    check("a server that created the object anew takes none for the one before", async (scene) => {
      const { uid, resourceVersion } = (await scene.create()).metadata;
      await scene.call("DELETE", scene.path);
      await scene.create();
      const patch = scene.patch({ metadata: { uid, resourceVersion }, spec: { ips: [] } });
      expect(await scene.outcome(patch)).toBe("409 Conflict");
      const deletion = scene.call("DELETE", scene.path, { preconditions: { uid } });
      expect(await scene.outcome(deletion)).toBe("409 Conflict");
    });
  });

  describe("the status", () => {
    check("is written by itself, and nothing else is with it", async (scene) => {
      await scene.create({ labels: { app: "web" } });
      const body = { metadata: { labels: { app: "other" } }, spec: { ips: [] }, status: { assigned: 4 } };
      const after = await scene.patch(body, "/status");
      expect([after.spec, after.status, after.metadata.labels]).toEqual([SPEC, { assigned: 4 }, { app: "web" }]);
      expect(after.metadata.generation).toBe(1);
      const main = await scene.patch({ spec: { ips: [] }, status: { assigned: 5 } });
      expect([main.spec.ips, main.status]).toEqual([[], { assigned: 4 }]);
    });

    check("keeps what a patch does not name", async (scene) => {
      await scene.create();
      await scene.patch({ status: { assigned: 4, pools: [{ name: "a" }, { name: "b" }] } }, "/status");
      const after = await scene.patch({ status: { pools: [{ name: "c" }] } }, "/status");
      expect(after.status).toEqual({ assigned: 4, pools: [{ name: "c" }] });
    });
  });

  describe("a replacement", () => {
    check("needs the version that it replaces", async (scene) => {
      const { metadata, ...object } = await scene.create();
      const put = (more: object) =>
        scene.call("PUT", scene.path, {
          ...object,
          metadata: { name: scene.name, ...more },
          spec: { ...SPEC, ips: [] },
        });
      expect(await scene.outcome(put({}))).toBe("422 Invalid");
      expect(await scene.outcome(put({ resourceVersion: "1" }))).toBe("409 Conflict");
      const { uid, resourceVersion } = metadata;
      expect(await scene.outcome(put({ uid: "another", resourceVersion }))).toBe("409 Conflict");
      expect((await put({ uid, resourceVersion })).spec.ips).toEqual([]);
    });

    check("without finalizers takes them away, and keeps the status", async (scene) => {
      await scene.create({ finalizers: ["ipam.vendor.io/in-use"] });
      const { metadata, ...object } = await scene.patch({ status: { assigned: 4 } }, "/status");
      const { name, uid, resourceVersion } = metadata;
      const body = { ...object, status: { assigned: 5 }, metadata: { name, uid, resourceVersion } };
      const after = await scene.call("PUT", scene.path, body);
      expect([after.metadata.finalizers, after.status]).toEqual([undefined, { assigned: 4 }]);
    });
  });

  describe("a deletion", () => {
    check("has preconditions, and happens at once without finalizers", async (scene) => {
      expect(await scene.outcome(scene.call("DELETE", scene.path))).toBe("404 NotFound");
      const { uid, resourceVersion } = (await scene.create()).metadata;
      await scene.patch({ spec: { ips: [] } });
      const old = scene.call("DELETE", scene.path, { preconditions: { uid, resourceVersion } });
      expect(await scene.outcome(old)).toBe("409 Conflict");
      expect((await scene.call("DELETE", scene.path, { preconditions: { uid } })).status).toBe("Success");
      expect(await scene.outcome(scene.read())).toBe("404 NotFound");
    });

    check("waits for the finalizers, of which none can be added", async (scene) => {
      await scene.create({ finalizers: ["a.example/one", "a.example/two"] });
      const marked = await scene.call("DELETE", scene.path);
      expect([typeof marked.metadata.deletionTimestamp, marked.metadata.generation]).toEqual(["string", 2]);
      const again = await scene.call("DELETE", scene.path);
      expect(again.metadata.resourceVersion).toBe(marked.metadata.resourceVersion);
      expect(await scene.outcome(scene.create())).toBe("409 AlreadyExists");
      const more = scene.patch({ metadata: { finalizers: ["a.example/one", "a.example/three"] } });
      expect(await scene.outcome(more)).toBe("422 Invalid");
      const written = await scene.patch({ metadata: { finalizers: ["a.example/two"] }, spec: { ips: [] } });
      expect([written.spec.ips, written.metadata.finalizers]).toEqual([[], ["a.example/two"]]);
      await scene.patch({ metadata: { finalizers: [] } });
      expect(await scene.outcome(scene.read())).toBe("404 NotFound");
    });
  });

  describe("a watch", () => {
    /** `ADDED 1`: type and generation, of the object of the scene, until it is gone. */
    async function watchUntilGone(scene: Scene, query: Record<string, string>): Promise<WatchEvent[]> {
      const events: WatchEvent[] = [];
      const ending = new AbortController();
      const isOwn = ({ object }: WatchEvent) => (object as Loose).metadata.name === scene.name;
      const onEvent = (event: WatchEvent) => {
        if (!isOwn(event)) return;
        events.push(event);
        if (event.type === "DELETED") ending.abort(new Error("enough"));
      };
      await scene.api.watch({ path: SUBNETS, query, onEvent, signal: ending.signal }).catch((error: unknown) => {
        if (!ending.signal.aborted) throw error;
      });
      return events;
    }

    check("tells all that came after its version, in order, and nothing of what changed nothing", async (scene) => {
      const before: KubeObject = await scene.api.call({ method: "GET", path: SUBNETS, query: { limit: 1 } });
      const told = watchUntilGone(scene, { resourceVersion: versionOf(before) });
      const versions = [
        versionOf(await scene.create({ finalizers: ["a.example/one"] })),
        versionOf(await scene.patch({ spec: { ips: [] } })),
      ];
      await scene.patch({ spec: { ips: [] } });
      versions.push(versionOf(await scene.patch({ status: { assigned: 1 } }, "/status")));
      versions.push(versionOf(await scene.call("DELETE", scene.path)));
      await scene.patch({ metadata: { finalizers: null } });
      const events = await told;
      expect(events.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
      expect(events.slice(0, -1).map(({ object }) => versionOf(object))).toEqual(versions);
      // The last one has a version of its own: a watch goes on behind it.
      expect(Number(versionOf(events.at(-1)?.object))).toBeGreaterThan(Number(versions.at(-1)));
    });

    check("that begins late tells the same, and a selector leaves the others out", async (scene) => {
      const [other, list] = [new Scene(scene.api), await scene.call("GET", SUBNETS)];
      await scene.create();
      await other.create();
      await scene.patch({ spec: { ips: [] } });
      await scene.call("DELETE", scene.path);
      const query = { resourceVersion: versionOf(list), fieldSelector: `metadata.name=${scene.name}` };
      const events = await watchUntilGone(scene, query);
      expect(events.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
      await other.forget();
    });
  });

  check("a list is in the order of the names, with a version of its own, and comes in pages", async (scene) => {
    const other = new Scene(scene.api);
    const second = await other.create({ labels: { suite: scene.name } });
    const first = await scene.create({ labels: { suite: scene.name } });
    const query = { labelSelector: `suite=${scene.name}` };
    const list = await scene.api.call({ method: "GET", path: SUBNETS, query });
    const { items, metadata, kind }: Loose = list;
    expect([kind, items.map(({ metadata }: Loose) => metadata.name)]).toEqual(["SubnetList", [scene.name, other.name]]);
    expect(Number(metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(versionOf(first)));
    expect(Number(versionOf(first))).toBeGreaterThan(Number(versionOf(second)));
    const call = { method: "GET", path: SUBNETS } as const;
    const page: Loose = await scene.api.call({ ...call, query: { ...query, limit: 1 } });
    const rest: Loose = await scene.api.call({
      ...call,
      query: { ...query, limit: 1, continue: page.metadata.continue },
    });
    expect([page, rest].map((each) => each.items.map(({ metadata }: Loose) => metadata.name))).toEqual([
      [scene.name],
      [other.name],
    ]);
    expect(rest.metadata.continue ?? "").toBe("");
    await other.forget();
  });
}
