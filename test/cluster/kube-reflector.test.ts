import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KubeClient } from "../../host/kubernetes/client.ts";
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import type { Change } from "../../host/kubernetes/mirror.ts";
import { Reflector } from "../../host/kubernetes/reflector.ts";
import { openLog } from "../../host/lib/log.ts";
import { connectClient } from "../lab/cluster/in-process.ts";
import type { ControlPlane } from "../lab/control-plane.ts";
import { until } from "../world/recorded-log.ts";
import { Seeded } from "../world/seeded.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { type Relay, startRelay } from "./kube-wire.ts";

/** Longest wait, on a machine that has much else to do. */
const PATIENCE_MS = 30_000;
const PATH = "/api/v1/namespaces/default/configmaps";
const log = openLog("test", "silent");

/** The changes that a reflector reported, applied to a map. */
interface Observed {
  readonly reflector: Reflector<string>;
  readonly client: KubeClient;
  readonly relay: Relay;
  /** The map of a mere listener. */
  readonly received: Map<string, string>;
  readonly changes: Change<string>[];
}

let plane: ControlPlane;
const opened: Observed[] = [];
beforeAll(async () => {
  plane = await borrowPlane();
});
afterAll(() => plane.stop());
afterEach(async () => {
  for (const { reflector, client, relay } of opened.splice(0)) {
    await reflector.close();
    await client.close();
    await relay.close();
  }
});

const nameOf = ({ metadata }: KubeObject): string =>
  typeof metadata === "object" && metadata !== null && "name" in metadata ? String(metadata.name) : "";

function decode({ data }: KubeObject): string {
  const value = typeof data === "object" && data !== null && "value" in data ? String(data.value) : "";
  if (value.startsWith("bad")) throw new Error(`${value} is no value`);
  return value;
}

async function open(options: { path?: string; optional?: boolean } = {}): Promise<Observed> {
  const relay = await startRelay(plane.kubeconfig);
  const client = await connectClient(relay.kubeconfig);
  const received = new Map<string, string>();
  const changes: Change<string>[] = [];
  const reflector: Reflector<string> = new Reflector<string>({
    api: client,
    name: "config maps",
    path: PATH,
    ...options,
    decode,
    keyOf: nameOf,
    onChange: (change) => {
      changes.push(change);
      expect(change.before).toBe(received.get(change.key));
      if (change.kind === "gone") received.delete(change.key);
      else received.set(change.key, change.value);
      expect(reflector.items.get(change.key)).toBe(received.get(change.key));
    },
    log,
    random: Math.random,
  });
  const observed = { reflector, client, relay, received, changes };
  opened.push(observed);
  return observed;
}

const write = (name: string, value: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data: { value },
});

/** The server's own word. */
async function truth(): Promise<Record<string, string>> {
  const { items } = await plane.client.get(PATH);
  return Object.fromEntries(items.map((item: KubeObject) => [nameOf(item), decode(item)]));
}

const sorted = (map: ReadonlyMap<string, string>) => Object.fromEntries([...map].sort());

/** Waits until the map agrees with the server. */
async function expectTruth(observed: Observed): Promise<void> {
  const expected = await truth();
  const isSame = () =>
    JSON.stringify(sorted(observed.reflector.items)) ===
    JSON.stringify(Object.fromEntries(Object.entries(expected).sort()));
  await until(isSame, "the map is the truth", PATIENCE_MS).catch(() => {});
  expect(sorted(observed.reflector.items)).toEqual(expected);
  expect(sorted(observed.received)).toEqual(expected);
}

describe("a reflector", () => {
  it("agrees with the server after a random walk of 200 changes with cuts in between, and reports no change twice", async () => {
    const observed = await open();
    const seed = Date.now() % 1_000_000;
    const random = new Seeded(seed);
    observed.reflector.start();
    await observed.reflector.synced();
    const names = Array.from({ length: 30 }, (_, index) => `walk-${index}`);
    const present = new Set<string>();
    let cuts = 0;
    for (let step = 0; step < 200; step++) {
      const name = random.pick(names);
      if (!present.has(name)) {
        await plane.client.create(PATH, write(name, `${step}`));
        present.add(name);
      } else if (step % 20 !== 9 && random.chance(0.4)) {
        await plane.client.delete(`${PATH}/${name}`);
        present.delete(name);
      } else await plane.client.patch(`${PATH}/${name}`, { data: { value: `${step}` } });
      // A change made now arrives by a watch that was opened after the last cut; a deletion of an object that this
      // watch never saw would not. Later changes may be under way at the next cut.
      const hasArrived = () => observed.reflector.items.get(name) === `${step}`;
      if (step % 20 === 9) await until(hasArrived, "the change has arrived", PATIENCE_MS);
      if (step % 20 !== 19) continue;
      observed.relay.cut();
      cuts++;
    }
    await expectTruth(observed);
    const values = observed.changes.flatMap((change) =>
      change.kind === "set" ? [`${change.key}=${change.value}`] : [],
    );
    // Each step wrote another value.
    expect(new Set(values).size, `seed ${seed}`).toBe(values.length);
    expect(observed.reflector.stats).toMatchObject({ lists: 1 });
    expect(cuts).toBe(10);
    expect(observed.reflector.stats.watches).toBeGreaterThanOrEqual(cuts);
    expect(observed.reflector.stats.bytes).toBeGreaterThan(10_000);
    expect(observed.reflector.problems).toEqual([]);
  });

  it("lists again when the server has dropped its history, and misses nothing", async () => {
    const observed = await open();
    observed.reflector.start();
    await observed.reflector.synced();
    observed.relay.setRefusing(true);
    observed.relay.cut();
    for (let step = 0; step < 20; step++) await plane.client.create(PATH, write(`compact-${step}`, "1"));
    for (let step = 0; step < 10; step++) await plane.client.delete(`${PATH}/compact-${step}`);
    await plane.compact();
    const { length } = observed.changes;
    observed.relay.setRefusing(false);
    await expectTruth(observed);
    expect(observed.reflector.stats.lists).toBeGreaterThan(1);
    // Known objects are not reported again.
    expect(observed.changes.length - length).toBe(10);
  });
});
