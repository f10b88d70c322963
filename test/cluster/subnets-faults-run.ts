/**
 * One run of a scenario of generated pools on a real API server, with one write of its controllers in which something goes wrong. Runs share the server
 * but see nothing of each other: their names end differently, and their networks are apart.
 */
import { openCaches } from "../../host/controller/caches.ts";
import { startLeadership } from "../../host/controller/leadership.ts";
import { PoolWrites } from "../../host/controller/pool-writes.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import type { ControllerDeps, PoolOwners } from "../../host/controller/types.ts";
import type { PoolDemand } from "../../host/ipam/subnet-pools.ts";
import { ApiUnavailable, type KubeApi, type KubeCall, type KubeObject } from "../../host/kubernetes/kube-api.ts";
import { openLog } from "../../host/lib/log.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { type PoolFacts, poolFactsOf, type SubnetFacts, subnetFactsOf } from "../property/controller/subnets-facts.ts";
import { Workloads } from "../property/controller/subnets-workloads.ts";

/**
 * What happens at the one write: it is `refused`, that is never carried out; its answer is `lost`; both, and it is carried out `late`, when all is well
 * again; or the controller ends before it (and the write comes late), or after it, and another one takes over.
 */
export const FAULTS = ["refused", "lost", "late", "ended before", "ended after"] as const;

export interface Fault {
  readonly kind: (typeof FAULTS)[number];
  /** Counted from 1. */
  readonly atWrite: number;
}

const ROOT = "/apis/ipam.vendor.io/v1";
const POOLS = `${ROOT}/ippools`;
const SUBNETS = `${ROOT}/subnets`;
const LOOK_MS = 40;
/** How far each check moves the controllers' clock: longer than any of their delays. */
const SKIP_MS = 6_000;
const PATIENCE_MS = 60_000;

interface Controller {
  readonly wake: () => void;
  readonly end: () => Promise<void>;
}

export class FaultRun {
  readonly #kubectl: KubeClient;
  readonly #api: KubeApi;
  readonly #end: string;
  readonly #octet: number;
  readonly #fault: Fault | undefined;
  readonly #workloads = new Workloads();
  #controller: Controller | undefined;
  readonly #ending: Promise<void>[] = [];
  /** Writes that arrive when all is well again. */
  readonly #late: (() => Promise<unknown>)[] = [];
  #skewMs = 0;
  readonly writes: string[] = [];

  constructor(kubectl: KubeClient, api: KubeApi, { number, fault }: { number: number; fault: Fault | undefined }) {
    this.#kubectl = kubectl;
    this.#api = api;
    this.#end = `-${number}`;
    this.#octet = number;
    this.#fault = fault;
  }

  get workloads(): Workloads {
    return this.#workloads;
  }

  nameOf(subnet: string): string {
    return `${subnet}${this.#end}`;
  }

  async open(): Promise<void> {
    for (const [at, name] of ["a", "b"].entries()) {
      const spec = { subnet: `10.${this.#octet}.0.${at * 16}/28` };
      const metadata = { name: this.nameOf(name) };
      await this.#kubectl.create(SUBNETS, { apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata, spec });
    }
    this.#controller = await this.#lead();
  }

  async close(): Promise<void> {
    await this.#controller?.end();
    await Promise.all(this.#ending);
  }

  /** Until pools and Subnets are so: `web a 2`, by workload and Subnet. Writes that were held come then, and it has to stay so. */
  async untilDivided(phase: string, wanted: readonly string[]): Promise<void> {
    await this.#until(phase, wanted);
    const late = this.#late.splice(0);
    // What comes too late is refused, or changes nothing that stays.
    for (const write of late) await write().catch(() => {});
    if (late.length > 0) await this.#until(`${phase}, after the late write`, wanted);
  }

  async #until(phase: string, wanted: readonly string[]): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let quiet = 0; quiet < 2; ) {
      const { lines, faults } = await this.#observe();
      const isSo = faults.length === 0 && lines.join() === wanted.toSorted().join();
      quiet = isSo ? quiet + 1 : 0;
      if (performance.now() > deadline)
        throw new Error(
          `${JSON.stringify(this.#fault)}, ${phase}: want ${wanted.join(", ")}; have ${lines.join(", ")}; ${faults.join("; ")}\n${this.writes.join("\n")}`,
        );
      this.#skewMs += SKIP_MS;
      this.#controller?.wake();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** As the server has it. Deleted pools go, because no pod holds their addresses. */
  async #observe(): Promise<{ lines: string[]; faults: string[] }> {
    const subnets: SubnetFacts[] = [];
    for (const name of ["a", "b"])
      subnets.push(subnetFactsOf(await this.#kubectl.get(`${SUBNETS}/${this.nameOf(name)}`)));
    const { items } = await this.#kubectl.get(POOLS);
    const pools = items
      .map(poolFactsOf)
      .filter(({ generated }: PoolFacts) => generated?.subnet.endsWith(this.#end)) as PoolFacts[];
    for (const { name } of pools.filter(({ isDeleting }) => isDeleting)) {
      await this.#kubectl.patch(`${POOLS}/${name}`, { metadata: { finalizers: null } }).catch(() => {});
    }
    const lines = pools.map(({ generated, addresses, isDeleting }) => {
      const { application, subnet = "" } = generated ?? {};
      return `${application?.name} ${subnet.slice(0, -this.#end.length)} ${addresses.size}${isDeleting ? " leaving" : ""}`;
    });
    const faults = subnets.flatMap((subnet) => faultsOf(subnet, pools));
    return { lines: lines.sort(), faults };
  }

  async #replace(): Promise<void> {
    this.#controller = await this.#lead();
  }

  async #lead(): Promise<Controller> {
    const leading = new AbortController();
    const log = openLog("test", "silent");
    const random = () => 0.1;
    const takeOver = (): void => {
      leading.abort(new Error("the controller has ended"));
      this.#controller = undefined;
      this.#ending.push(this.#replace());
    };
    const caches = openCaches({ api: this.#own(this.#api), configNamespace: "berth", log, random });
    await caches.synced(AbortSignal.timeout(PATIENCE_MS));
    const listeners = new Set<() => void>();
    const deps: ControllerDeps = {
      ...{ api: this.#faulty(takeOver), caches, log, random, leading: leading.signal },
      owners: {
        addresses: { readLiveness: async () => "unknown", subscribe: () => () => {} },
        pools: this.#poolOwners(listeners),
      },
      events: { emit: () => {}, close: async () => {} },
      clock: { nowMs: () => performance.now() + this.#skewMs, now: () => new Date() },
      poolWrites: new PoolWrites({ nodes: () => caches.nodes.items.size, nowMs: () => performance.now() }),
    };
    const leadership = startLeadership({ subnets: startSubnets }, deps);
    return {
      wake: () => {
        for (const listener of [...listeners]) listener();
      },
      end: async () => {
        leading.abort(new Error("the test is over"));
        await leadership.close();
        await caches.close();
      },
    };
  }

  #poolOwners(listeners: Set<() => void>): PoolOwners {
    return {
      demands: () => ({ demands: this.#demands(), faults: [] }),
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      readLiveness: async ({ uid }) => (this.#workloads.gone.has(uid) ? "gone" : "alive"),
    };
  }

  #demands(): PoolDemand[] {
    const demands = this.#workloads.demands(() => 4);
    return demands.map((demand) => ({ ...demand, subnets: demand.subnets.map((name) => this.nameOf(name)) }));
  }

  /** The server without the objects of other runs. */
  #own(api: KubeApi): KubeApi {
    const isOwn = (object: KubeObject): boolean => {
      const { kind, metadata, spec } = JSON.parse(JSON.stringify(object));
      if (kind !== "IPPool" && kind !== "Subnet") return true;
      return (spec.generated?.subnet ?? metadata.name).endsWith(this.#end);
    };
    return {
      call: async (call) => {
        const answer = await api.call(call);
        const { items, kind } = answer;
        if (!Array.isArray(items)) return answer;
        const type = String(kind).replace(/List$/, "");
        return { ...answer, items: items.filter((item) => isOwn({ ...item, kind: type })) };
      },
      watch: (watch) =>
        api.watch({
          ...watch,
          onEvent: (event) => void ((event.type === "BOOKMARK" || isOwn(event.object)) && watch.onEvent(event)),
        }),
      close: async () => {},
    };
  }

  #faulty(takeOver: () => void): KubeApi {
    const api = this.#own(this.#api);
    return {
      ...api,
      call: async (call) => {
        if (call.method === "GET") return api.call(call);
        this.writes.push(
          `${this.writes.length + 1} ${call.method} ${call.path.slice(ROOT.length)} ${JSON.stringify(call.body)}`,
        );
        return this.writes.length === this.#fault?.atWrite ? this.#fail(api, call, takeOver) : api.call(call);
      },
    };
  }

  async #fail(api: KubeApi, call: KubeCall, takeOver: () => void): Promise<KubeObject> {
    const { signal: _, ...late } = call;
    const kind = this.#fault?.kind;
    if (kind === "lost" || kind === "ended after") await api.call(late).catch(() => {});
    if (kind === "late" || kind === "ended before") this.#late.push(() => api.call(late));
    if (kind === "ended before" || kind === "ended after") takeOver();
    throw new ApiUnavailable(`${call.method} ${call.path}`, "the test lets it fail");
  }
}

/** What a Subnet's status says that the pools do not, and the other way round. */
function faultsOf({ name, reserved, assigned }: SubnetFacts, pools: readonly PoolFacts[]): string[] {
  const own = pools.filter(({ generated, addresses }) => generated?.subnet === name && addresses.size > 0);
  const has = own.map((pool) => `${pool.name}=${[...pool.addresses].sort().join()}`).sort();
  const says = [...reserved].map(([pool, all]) => `${pool}=${[...all].sort().join()}`).sort();
  const count = own.reduce((sum, { addresses }) => sum + addresses.size, 0);
  return [
    ...(has.join(" ") === says.join(" ") ? [] : [`${name} says ${says.join(" ")}, pools have ${has.join(" ")}`]),
    ...((assigned ?? 0) === count ? [] : [`${name} says ${String(assigned)} assigned, of ${count}`]),
  ];
}
