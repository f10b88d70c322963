/**
 * Sends notices to agents whose allocations another writer may have changed (recreate, docs/decisions/0035).
 * plan-notices.ts decides about each change of the cache; the pod is read from the API server. An object that cannot be
 * read counts as a reason for a notice.
 */
import { ConfigError } from "../../config/config-error.ts";
import { describeFailure, pause, pauseMs } from "../../kubernetes/http/retry.ts";
import { isNotFound } from "../../kubernetes/kube-api.ts";
import { valueAfter } from "../../kubernetes/mirror.ts";
import { objectPath, PODS } from "../../kubernetes/paths.ts";
import { RefusedWrite } from "../../kubernetes/refused-writes.ts";
import { decodePod } from "../../resources/pod.ts";
import { COLLECTION_PATIENCE_MS, nodeStatus } from "../gc/read-status.ts";
import { sendNotice } from "../send-notice.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";
import { planNotices, type Suspicion } from "./plan-notices.ts";

/** Shortest time between two notices to one node; the next one includes later suspicions: milliseconds. */
export const NOTICE_REST_MS = 1_000;

export const startNotices: StartController = (deps) => new NoticeController(deps);

class NoticeController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #unsubscribe: () => void;
  /** The suspicions of each node that are not sent yet, by the allocation's name. */
  readonly #waiting = new Map<string, Map<string, Suspicion>>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #problems = new Map<string, string>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#signal = AbortSignal.any([deps.leading, this.#closing.signal]);
    this.#unsubscribe = deps.caches.allocations.subscribe((change) => {
      const after = valueAfter(change);
      for (const suspicion of planNotices(change.before, after)) this.#suspect(change.key, suspicion);
    });
  }

  get problems(): readonly string[] {
    return [...this.#problems.values()];
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    this.#closing.abort(new Error("The notices are closed"));
    await Promise.all(this.#running.values());
  }

  #suspect(name: string, suspicion: Suspicion): void {
    const { node } = suspicion;
    const all = this.#waiting.getOrInsertComputed(node, () => new Map());
    const before = all.get(name);
    // One of two contrary conditions always holds.
    const isCertain = before !== undefined && (before.pod === undefined || before.ifAbsent !== suspicion.ifAbsent);
    all.set(name, isCertain ? { node, ifTerminating: true } : suspicion);
    if (this.#running.has(node) || this.#signal.aborted) return;
    this.#running.set(node, this.#serve(node));
  }

  /** Never rejects. */
  async #serve(node: string): Promise<void> {
    try {
      for (let found = this.#waiting.get(node); found !== undefined; found = this.#waiting.get(node)) {
        this.#waiting.delete(node);
        const names: string[] = [];
        for (const [name, suspicion] of found) if (await this.#isToBeTold(suspicion)) names.push(name);
        if (names.length === 0) continue;
        await this.#tell(node, names);
        await pause(NOTICE_REST_MS, this.#signal);
      }
    } catch (error) {
      // A new leader does not know of it: agents notice the change of leader.
      if (!this.#signal.aborted) this.#deps.log.error({ err: error, node }, "Internal error while notifying an agent");
    } finally {
      this.#problems.delete(node);
      // In the same turn in which nothing was waiting: a later suspicion starts a new run.
      this.#running.delete(node);
    }
  }

  async #isToBeTold({ node, pod: of, ifTerminating, ifAbsent = false }: Suspicion): Promise<boolean> {
    const { api, caches } = this.#deps;
    // No agent caused the changes to a lost node's addresses.
    if (of === undefined || (!ifAbsent && nodeStatus(caches.nodes.items.get(node)) !== "ready")) return true;
    const signal = this.#signal;
    const path = objectPath(PODS, { namespace: of.namespace, name: of.pod });
    try {
      const object = await api.call({ method: "GET", path, patienceMs: COLLECTION_PATIENCE_MS, signal });
      const pod = decodePod(object, "API server");
      const isThere = pod.nodeName === node && !pod.isFinished && (ifTerminating || !pod.deleting);
      return isThere !== ifAbsent;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ConfigError)) this.#deps.log.debug({ err: error, node }, "Reading a pod failed");
      return isNotFound(error) ? ifAbsent : true;
    }
  }

  /** Resolves when the API server has the notice, or no such node. Rejects when this process stops leading. */
  async #tell(node: string, names: readonly string[]): Promise<void> {
    const { log, random } = this.#deps;
    const signal = this.#signal;
    for (let failures = 0; ; failures++) {
      try {
        if (!(await sendNotice({ ...this.#deps, signal }, node, names))) return;
        this.#problems.delete(node);
        log.info({ node, addresses: names }, "An agent was told to read allocations again");
        return;
      } catch (error) {
        signal.throwIfAborted();
        const reason = describeFailure(error);
        if (failures === 0) log.warn({ node, reason }, "Notifying an agent failed; retrying");
        this.#problems.set(node, `Cannot tell the agent of node "${node}" to read allocations again: ${reason}`);
        await pause(error instanceof RefusedWrite ? error.restMs : pauseMs(failures, random()), signal);
      }
    }
  }
}
