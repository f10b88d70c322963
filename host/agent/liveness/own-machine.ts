/**
 * The machine that this agent runs on (docs/decisions/0053): by its Node object, if that is of this boot; else by the
 * host. Once known it stays.
 */

import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { documentation } from "../../lib/documentation.ts";
import { Latch } from "../../lib/latch.ts";
import type { Log } from "../../lib/log.ts";
import type { Node } from "../../resources/node.ts";
import { readNodesOf } from "./live-status.ts";

/** Time for which a list of the nodes proves that no other one is this machine's clone: milliseconds. */
const PROOF_MS = 30_000;

interface OwnMachineOptions {
  readonly api: KubeApi;
  /** This node's name. */
  readonly node: string;
  /** Boot ID of the running kernel. */
  readonly bootId: string;
  /** The machine according to the host; undefined if that cannot be read. */
  readonly host: string | undefined;
  readonly nowMs: () => number;
  readonly log: Log;
}

export class OwnMachine {
  readonly #options: OwnMachineOptions;
  readonly #settled = new Latch();
  /** Whether the Node was read. */
  isIdentified = false;
  /** Undefined until the Node was read, and as long as neither that nor the host says which machine this is. */
  current: string | undefined;
  #others: { readonly names: readonly string[]; readonly readMs: number } | undefined;
  #reading: Promise<readonly string[]> | undefined;

  constructor(options: OwnMachineOptions) {
    this.#options = options;
  }

  /** Resolves when the Node was read; undefined if it was. */
  identified(signal?: AbortSignal): Promise<void> | undefined {
    return this.isIdentified ? undefined : this.#settled.wait(signal);
  }

  /**
   * The Node object was read, for the first time or again; undefined if there is none. `onKnown` is called once, before
   * the machine counts as known.
   */
  async nodeRead(node: Node | undefined, onKnown: (machine: string) => Promise<void>): Promise<void> {
    const { bootId, host, log } = this.#options;
    if (this.current === undefined) {
      const machine = (node?.bootId === bootId ? node.machine : undefined) ?? host;
      if (machine !== undefined) {
        await onKnown(machine).catch((error) => log.warn({ err: error }, "Recording which machine this is failed"));
        this.current = machine;
      }
    }
    this.isIdentified = true;
    this.#settled.open();
  }

  /**
   * Returns this machine, for a decision about a record that names one; undefined if it is unknown, or equals the named
   * one and is also another node's. Rejects when the API server does not answer.
   */
  async prove(named: string, signal?: AbortSignal): Promise<string | undefined> {
    await this.identified(signal);
    if (this.current !== named) return this.current;
    return (await this.#readOthers(named)).length === 0 ? named : undefined;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    const names = this.#others?.names ?? [];
    if (names.length === 0) return [];
    const others = names.map((name) => `"${name}"`).join(", ");
    return [
      `This machine reports the same systemUUID and machineID as node ${others}: give each machine its own, see ${documentation("garbage-collection.html")}`,
    ];
  }

  close(): void {
    this.#settled.fail(new Error("The agent stops"));
  }

  async #readOthers(machine: string): Promise<readonly string[]> {
    const { api, node, nowMs } = this.#options;
    if (this.#others !== undefined && nowMs() - this.#others.readMs < PROOF_MS) return this.#others.names;
    this.#reading ??= readNodesOf(api, machine).finally(() => {
      this.#reading = undefined;
    });
    const names = (await this.#reading).filter((name) => name !== node);
    this.#others = { names, readMs: nowMs() };
    return names;
  }
}
