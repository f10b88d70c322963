/**
 * Calls to an API server in memory that wait for a walk: it decides when one is carried out, when and whether it is
 * answered, and lets what a process had sent before its end be carried out late.
 */
import { ApiUnavailable, type KubeCall, type KubeObject } from "../../host/kubernetes/kube-api.ts";
import type { Seeded } from "./seeded.ts";

export interface Pending<Caller> {
  readonly caller: Caller;
  readonly call: KubeCall;
  readonly commit: () => KubeObject;
  readonly answerWith: (answer: () => KubeObject) => void;
  /** Carried out: what the answer will be. */
  answer?: () => KubeObject;
  /** The caller does not wait any more. */
  isOver: boolean;
}

export class PendingCalls<Caller extends { readonly name: string }> {
  all: Pending<Caller>[] = [];
  readonly #note: (text: string) => void;
  /** Share of the answers that come at once. */
  readonly #promptShare: number;

  constructor(note: (text: string) => void, { promptShare = 0 } = {}) {
    this.#note = note;
    this.#promptShare = promptShare;
  }

  hold(caller: Caller, call: KubeCall, commit: () => KubeObject, onAnswered = () => {}): Promise<KubeObject> {
    return new Promise((resolve, reject) => {
      const answerWith = (answer: () => KubeObject): void => {
        if (pending.isOver) return;
        pending.isOver = true;
        onAnswered();
        try {
          resolve(answer());
        } catch (error) {
          reject(error);
        }
      };
      const pending: Pending<Caller> = { caller, call, commit, answerWith, isOver: false };
      const { signal } = call;
      const abort = () =>
        answerWith(() => {
          throw signal?.reason;
        });
      if (signal?.aborted) abort();
      signal?.addEventListener("abort", abort);
      this.all.push(pending);
    });
  }

  /** The caller has ended. What it has sent may still be carried out. */
  end(caller: Caller): void {
    for (const each of this.all) if (each.caller === caller) each.isOver = true;
  }

  commit(pending: Pending<Caller>): void {
    try {
      const value = pending.commit();
      pending.answer = () => value;
    } catch (error) {
      pending.answer = () => {
        throw error;
      };
    }
  }

  /** Carries a call out, answers one, or loses the answer. */
  step(random: Seeded, faultShare: number): void {
    const at = random.below(this.all.length);
    const pending = this.all[at];
    if (pending === undefined) return;
    const { call, caller } = pending;
    const what = `${caller.name} ${call.method} ${call.path.split("/v1/").at(-1)}`;
    if (pending.answer === undefined && (pending.isOver || !random.chance(faultShare))) {
      this.commit(pending);
      this.#note(`${what} carried out${pending.isOver ? " late" : ""}`);
      if (pending.isOver) this.all.splice(at, 1);
      if (pending.isOver || this.#promptShare === 0 || !random.chance(this.#promptShare)) return;
    }
    if (pending.answer === undefined || random.chance(faultShare)) {
      this.#note(`${what} has no answer${pending.answer === undefined ? " yet to be carried out" : ""}`);
      pending.answerWith(() => {
        throw new ApiUnavailable(what, "the connection broke");
      });
      // It stays, to be carried out late; or it never arrives.
      if (pending.answer !== undefined || random.chance(0.3)) this.all.splice(at, 1);
      return;
    }
    this.all.splice(at, 1);
    pending.answerWith(pending.answer);
    this.#note(`${what} answered`);
  }

  /** All are carried out and answered. */
  finish(): void {
    for (const pending of this.all.splice(0)) {
      if (pending.answer === undefined) this.commit(pending);
      pending.answerWith(pending.answer ?? (() => ({})));
    }
  }
}
