/**
 * Controllers that all believe that they lead, on one API server in memory: the scheduler decides when a call is carried out, when and whether it
 * is answered, when a watch tells of it, when a controller hears of a workload and when it ends.
 */
import { setImmediate as turn } from "node:timers/promises";
import { vi } from "vitest";
import type { KubeApi, KubeCall, KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { ApiError, ApiUnavailable } from "../../../host/kubernetes/kube-api.ts";
import { ALLOCATIONS, MemoryApiServer, type Served } from "../../fakes/memory-api-server.ts";
import type { StoredObject } from "../../fakes/memory-objects.ts";
import type { Seeded } from "../core/seeded.ts";
import { POOLS, SUBNETS, SubnetsChecker, type Writer } from "./subnets-checker.ts";
import { WalkController } from "./subnets-controller.ts";
import { Workloads } from "./subnets-workloads.ts";

export { ALLOCATIONS, POOLS, SUBNETS };
export const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";
export const CONFIG_MAPS = "/api/v1/namespaces/berth/configmaps";

const own = (kind: string) => ({ apiVersion: "ipam.vendor.io/v1", kind });

export const SERVES: Served = {
  [POOLS]: own("IPPool"),
  [SUBNETS]: own("Subnet"),
  [RESERVED]: own("ReservedIP"),
  [ALLOCATIONS]: own("IPAllocation"),
  "/apis/ipam.vendor.io/v1/coordinators": own("Coordinator"),
  "/api/v1/nodes": { apiVersion: "v1", kind: "Node" },
  [CONFIG_MAPS]: { apiVersion: "v1", kind: "ConfigMap" },
  // Behind the collections below it: the first one that fits is the one that is meant.
  "/api/v1/namespaces": { apiVersion: "v1", kind: "Namespace" },
};

export interface Pending {
  readonly controller: WalkController;
  readonly call: KubeCall;
  readonly writer: Writer;
  readonly commit: () => KubeObject;
  readonly answerWith: (answer: () => KubeObject) => void;
  /** Carried out: what the answer will be. */
  answer?: () => KubeObject;
  /** The caller does not wait any more. */
  isOver: boolean;
}

/** Everything that waits for promises has run. */
export async function flush(): Promise<void> {
  for (let round = 0; round < 2; round++) await turn();
}

export class SubnetsWorld {
  readonly checker = new SubnetsChecker();
  readonly workloads = new Workloads();
  readonly log: string[] = [];
  readonly controllers: WalkController[] = [];
  pending: Pending[] = [];
  /** Calls are carried out and answered at once. */
  isCalm = false;
  step = 0;
  writes = 0;
  readonly server: MemoryApiServer;
  readonly #kubectl: KubeApi;
  #writer: Writer | undefined;
  #last = 0;

  constructor() {
    this.server = new MemoryApiServer({ serves: SERVES, nowMs: () => Date.now() });
    this.#kubectl = this.server.client();
    this.server.onWritten = (written) => {
      this.writes++;
      const { collection, before, after } = written;
      const name = (after ?? before)?.metadata.name ?? "";
      this.note(
        `  ${this.#writer?.controller ?? "somebody"}: ${collection.split("/").at(-1)} ${name}: ${describe(after)}`,
      );
      this.checker.written(written, this.#writer);
    };
  }

  next(prefix: string): string {
    return `${prefix}${++this.#last}`;
  }

  note(text: string): void {
    this.log.push(`${this.step} ${text}`);
  }

  /** Somebody's `kubectl`. False: the server has refused. */
  async kubectl(method: KubeCall["method"], path: string, body?: object): Promise<boolean> {
    try {
      await this.#kubectl.call({ method, path, ...(body === undefined ? {} : { body }) });
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }

  list(path: string): StoredObject[] {
    return [...this.server.collection(path).values()];
  }

  async start(): Promise<WalkController> {
    const controller = new WalkController(this.next("c"), this);
    this.controllers.push(controller);
    this.note(`${controller.name} starts`);
    await controller.start();
    return controller;
  }

  /** `kill -9`. What it has sent may still be carried out. */
  crash(controller: WalkController): void {
    this.note(`${controller.name} ends`);
    this.controllers.splice(this.controllers.indexOf(controller), 1);
    for (const each of this.pending) if (each.controller === controller) each.isOver = true;
    controller.crash();
  }

  apiOf(controller: WalkController): KubeApi {
    const gate = (call: KubeCall, commit: () => KubeObject): Promise<KubeObject> => {
      if (controller.isDead) return new Promise(() => {});
      const known = controller.known();
      const writer = { controller: controller.name, known };
      if (this.isCalm || !controller.isReady) return Promise.resolve().then(() => this.#as(writer, commit));
      return new Promise<KubeObject>((resolve, reject) => {
        const answerWith = (answer: () => KubeObject): void => {
          if (pending.isOver) return;
          pending.isOver = true;
          controller.answeredStep = this.step;
          try {
            resolve(answer());
          } catch (error) {
            reject(error);
          }
        };
        const pending: Pending = { controller, call, writer, commit, answerWith, isOver: false };
        this.pending.push(pending);
        call.signal?.addEventListener("abort", () => answerWith(() => Promise.reject(call.signal?.reason) as never));
      });
    };
    return this.server.client(gate, (path, deliver) => controller.hears(path, deliver));
  }

  #as<T>(writer: Writer, act: () => T): T {
    this.#writer = writer;
    try {
      return act();
    } finally {
      this.#writer = undefined;
    }
  }

  commit(pending: Pending): void {
    try {
      const value = this.#as(pending.writer, pending.commit);
      pending.answer = () => value;
    } catch (error) {
      pending.answer = () => {
        throw error;
      };
    }
  }

  /** Carries a call out, answers one, or loses the answer. */
  callStep(random: Seeded, faultShare: number): void {
    const at = random.below(this.pending.length);
    const pending = this.pending[at];
    if (pending === undefined) return;
    const { call, controller } = pending;
    const what = `${controller.name} ${call.method} ${call.path.split("/v1/").at(-1)}`;
    const isFault = random.chance(faultShare);
    if (pending.isOver) {
      if (!isFault && pending.answer === undefined) {
        this.note(`${what} is carried out late`);
        this.commit(pending);
      }
      this.pending.splice(at, 1);
      return;
    }
    if (pending.answer === undefined && !isFault) {
      this.commit(pending);
      this.note(`${what} is carried out`);
      // Most answers come soon.
      if (random.chance(0.3)) return;
    }
    if (isFault) {
      this.note(`${what} has no answer${pending.answer === undefined ? ", and is yet to be carried out" : ""}`);
      pending.answerWith(() => {
        throw new ApiUnavailable(what, "the connection broke");
      });
      // It stays, to be carried out late; or it never arrives.
      if (pending.answer !== undefined || random.chance(0.3)) this.pending.splice(this.pending.indexOf(pending), 1);
      return;
    }
    const { answer } = pending;
    if (answer === undefined) return;
    this.pending.splice(this.pending.indexOf(pending), 1);
    pending.answerWith(answer);
    this.note(`${what} is answered`);
  }

  async advance(milliseconds: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(milliseconds);
  }
}

function describe(object: StoredObject | undefined): string {
  if (object === undefined) return "gone";
  const { spec, status, metadata } = object;
  const pools = (status?.pools as { name: string; ips?: string[] }[] | undefined)?.map(
    ({ name, ips }) => `${name}=${ips?.join()}`,
  );
  return [
    `v${metadata.resourceVersion}`,
    ...(metadata.deletionTimestamp === undefined ? [] : ["leaving"]),
    ...(spec?.ips === undefined ? [] : [`ips ${String(spec.ips)}`]),
    ...(spec?.pool === undefined ? [] : [`of ${String(spec.pool)}`]),
    ...(pools === undefined ? [] : [`reserves ${pools.join(" ")}`]),
  ].join(" ");
}
