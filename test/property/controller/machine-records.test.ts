/**
 * Nodes, Services and pods take and leave addresses of one pool, IPAMClaims request some, records are deleted by hand,
 * and the leader is killed between any two of its writes: no write takes an address from a pod or a claim, and at rest
 * each address has the record of its holder.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openCaches } from "../../../host/controller/caches.ts";
import { MAX_NODE_ADDRESSES } from "../../../host/controller/claimants.ts";
import { startGarbage } from "../../../host/controller/gc/garbage-collector.ts";
import { type Leadership, startLeadership } from "../../../host/controller/leadership.ts";
import { startMachines } from "../../../host/controller/networks/machines-controller.ts";
import { startFixed } from "../../../host/controller/owners/fixed-controller.ts";
import { PoolWrites } from "../../../host/controller/pool-writes.ts";
import type { NamingWorkload } from "../../../host/controller/types.ts";
import { openLog } from "../../../host/lib/log.ts";
import { ADMITS_ALL } from "../../fakes/admission/admission.ts";
import { ALLOCATIONS, MemoryApiServer, type StoredObject } from "../../fakes/memory-api-server.ts";
import { allocationObject, allocationSpec } from "../../lab/cluster/objects.ts";
import { times } from "../../world/long-cases.ts";
import { BERTH, fakeTime, SERVES } from "../../world/refusing-server.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 20_261_129);
const NODES = "/api/v1/nodes";
const SERVICES = "/api/v1/namespaces/shop/services";
const PODS = "/api/v1/namespaces/shop/pods";
const CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps";
const ADDRESSES = Array.from({ length: 6 }, (_, at) => `10.6.0.${at + 1}`);
const READY = { type: "Ready", status: "True" };

beforeEach(fakeTime);
afterEach(() => void vi.useRealTimers());

class Walk {
  readonly chance: Seeded;
  readonly server = new MemoryApiServer({
    serves: SERVES,
    isOpen: true,
    nowMs: () => Date.now(),
    admission: ADMITS_ALL,
  });
  readonly faults: string[] = [];
  #writes = Number.POSITIVE_INFINITY;
  #end: (() => Promise<void>) | undefined;
  /** By name. */
  readonly #claims = new Map<string, NamingWorkload>();
  #tell: (uid: string) => void = () => {};
  #lives = 0;

  constructor(seed: number) {
    this.chance = new Seeded(seed);
    this.server.put(`${BERTH}/ippools`, "blue", {
      spec: { subnet: "10.6.0.0/24", ips: [`${ADDRESSES[0]}-${ADDRESSES.at(-1)}`] },
    });
    this.server.put(NODES, "n", { status: { conditions: [READY] } });
    const conf = "allocationCooldown: 1s\ngarbageCollection: { interval: 10s, grace: 2s, nodeLost: 1h }\n";
    this.server.put(CONFIG_MAPS, "vendor-conf", { data: { "conf.yml": conf } });
    this.server.put(CONFIG_MAPS, "berth-registry", { data: { epoch: "1", settled: "1" } });
  }

  /** Killed after so many writes. */
  async lead(writes: number): Promise<void> {
    await this.#end?.();
    this.#writes = writes;
    const leading = new AbortController();
    const killed = () => new Error("The leader is killed");
    const api = this.server.client(async (call, commit) => {
      if (call.method !== "GET" && --this.#writes < 0) throw killed();
      const name = call.path.split("/").at(-1) ?? "";
      const before =
        call.method === "PUT" || call.method === "DELETE" ? this.server.collection(ALLOCATIONS).get(name) : undefined;
      const answer = await commit();
      if (stateOf(before) === "Bound") this.faults.push(`${call.method} of what ${name} is Bound to`);
      const [owner, now] = [uidOf(before), uidOf(this.server.collection(ALLOCATIONS).get(name))];
      if (owner !== now && this.#names(owner, name)) this.faults.push(`${name} of ${owner} is ${now}'s`);
      return answer;
    });
    const log = openLog("test", "silent");
    const random = () => 0.5;
    const caches = openCaches({ api, configNamespace: "kube-system", log, random });
    const synced = caches.synced();
    await vi.advanceTimersByTimeAsync(2_000);
    await synced;
    const nowMs = () => performance.now();
    const leadership: Leadership = startLeadership(
      { machines: startMachines, fixed: startFixed, garbage: startGarbage },
      {
        ...{ api, caches, log, random, leading: leading.signal },
        owners: {
          addresses: {
            readLiveness: async ({ name, uid }, _, isNamed = () => true) => {
              const found = this.#claims.get(name);
              return found?.uid === uid && isNamed(found) ? "alive" : "gone";
            },
            findNaming: () => [...this.#claims.values()],
            findUid: ({ name }) => this.#claims.get(name)?.uid,
            subscribe: (listener) => {
              const before = this.#tell;
              this.#tell = (uid) => [before(uid), listener(uid)];
              return () => {};
            },
          },
          pools: undefined as never,
          pods: { period: undefined, wasSeen: () => false, hasReached: () => false },
        },
        events: { emit: () => {}, close: async () => {} },
        clock: { nowMs, now: () => new Date() },
        poolWrites: new PoolWrites({ nodes: () => 1, nowMs }),
      },
    );
    this.#end = async () => {
      leading.abort(killed());
      await leadership.close();
      await caches.close();
    };
  }

  close = async (): Promise<void> => this.#end?.();

  step(): void {
    const { chance, server } = this;
    const some = () => ADDRESSES.filter(() => chance.chance(0.3));
    const name = `${chance.pick(["a", "b", "c"])}`;
    const uid = () => `${name}-${++this.#lives}`;
    const [address = ""] = [chance.pick(ADDRESSES)];
    const object = server.collection(ALLOCATIONS).get(address);
    switch (chance.below(8)) {
      case 6:
      case 7: {
        const before = this.#claims.get(name);
        if (chance.chance(0.3)) this.#claims.delete(name);
        else this.#claims.set(name, claimOf(name, chance.chance(0.3) ? uid() : (before?.uid ?? uid()), [address]));
        this.#tell(before?.uid ?? "");
        break;
      }
      case 0: {
        const known = server.collection(NODES).get(name)?.metadata.uid;
        if (chance.chance(0.3)) server.remove(name, NODES);
        else {
          const addresses = some().map((each) => ({ type: "InternalIP", address: each }));
          server.put(NODES, name, { metadata: { uid: known ?? uid() }, status: { addresses, conditions: [READY] } });
        }
        break;
      }
      case 1: {
        const known = server.collection(SERVICES).get(name)?.metadata.uid;
        const ingress = some().map((ip) => ({ ip }));
        if (chance.chance(0.3)) server.remove(name, SERVICES);
        else
          server.put(SERVICES, name, {
            metadata: { namespace: "shop", uid: known ?? uid() },
            status: { loadBalancer: { ingress } },
          });
        break;
      }
      case 2:
      case 3:
        if (object === undefined) this.#claim(address, uid());
        break;
      case 4:
        if (object !== undefined && stateOf(object) === "Bound") this.#release(address, object);
        break;
      default:
        if (object !== undefined && isMachines(object)) server.remove(address);
    }
  }

  #claim(address: string, podUid: string): void {
    this.server.put(PODS, podUid, { metadata: { namespace: "shop", uid: podUid }, spec: { nodeName: "n" } });
    const holder = { node: "n", namespace: "shop", pod: podUid, podUid, ifName: "eth0" };
    this.#put(address, allocationSpec(address, { pool: "blue", node: "n", holders: [holder] }));
  }

  /** As its agent does: it cools, or is free. */
  #release(address: string, { spec }: StoredObject): void {
    this.server.remove(String(Object(spec).holders[0].pod), PODS);
    if (this.chance.chance(0.5)) this.server.remove(address);
    else this.#put(address, allocationSpec(address, { pool: "blue", node: "n", state: "Cooling", holders: [] }));
  }

  #put(address: string, spec: ReturnType<typeof allocationSpec>): void {
    const { metadata, ...object } = allocationObject(spec) as { metadata: object };
    this.server.put(ALLOCATIONS, address, { ...object, metadata });
  }

  /** Whether a claim of this UID requests the address. */
  #names(uid: string | undefined, address: string): boolean {
    return this.claims(address).includes(uid ?? "");
  }

  /** The UIDs of claims that request the address. */
  claims(address: string): string[] {
    const all = [...this.#claims.values()].filter(({ requested }) => requested?.includes(address));
    return all.map(({ uid }) => uid);
  }

  claimants(address: string): string[] {
    const nodes = [...this.server.collection(NODES).values()].flatMap(({ metadata, status }) =>
      (Object(status).addresses ?? []).some((each: { address: string }) => each.address === address)
        ? [metadata.uid]
        : [],
    );
    const services = [...this.server.collection(SERVICES).values()].flatMap(({ metadata, status }) =>
      Object(status).loadBalancer.ingress.some(({ ip }: { ip: string }) => ip === address) ? [metadata.uid] : [],
    );
    return [...nodes, ...services];
  }
}

const claimOf = (name: string, uid: string, requested: readonly string[]): NamingWorkload => ({
  ...{ kind: "IPAMClaim", apiVersion: "k8s.cni.cncf.io/v1alpha1", namespace: "shop", name, uid, requested },
  ...{ labels: {}, annotations: {} },
});

const uidOf = (object: StoredObject | undefined): string | undefined => Object(object?.spec).workload?.uid;
const stateOf = (object: StoredObject | undefined): string => Object(object?.spec).state;
const isMachines = ({ spec }: StoredObject): boolean => Object(spec).node === "-";

it(`each address has the record of its holder, seed ${SEED}`, { timeout: 120_000 }, async () => {
  expect(ADDRESSES.length).toBeLessThan(MAX_NODE_ADDRESSES);
  let [recorded, reserved] = [0, 0];
  for (let at = 0; at < times(12); at++) {
    const walk = new Walk(SEED + at);
    await walk.lead(walk.chance.below(12));
    for (let step = 0; step < 60; step++) {
      walk.step();
      await vi.advanceTimersByTimeAsync(walk.chance.pick([0, 10, 600, 4_000]));
      if (walk.chance.chance(0.15)) await walk.lead(walk.chance.below(12));
    }
    await walk.lead(Number.POSITIVE_INFINITY);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(walk.faults).toEqual([]);
    for (const address of ADDRESSES) {
      const object = walk.server.collection(ALLOCATIONS).get(address);
      const claimants = [...walk.claimants(address), ...walk.claims(address)];
      const [state, uid] = [stateOf(object), uidOf(object) ?? ""];
      const found = state === "Bound" ? "a pod's" : claimants.includes(uid) ? "its own" : `${state} ${uid}`;
      const wanted = state === "Bound" ? "a pod's" : claimants.length > 0 ? "its own" : `${undefined} `;
      expect([address, found], `walk ${at}`).toEqual([address, wanted]);
      if (found === "its own") recorded++;
      if (walk.claims(address).includes(uid)) reserved++;
    }
    await walk.close();
  }
  expect(Math.min(recorded, reserved)).toBeGreaterThan(3);
});
