/** The controllers of one period of leadership, and the API client that stops with it. */

import type { ApiError, KubeApi, KubeCall } from "../kubernetes/kube-api.ts";
import type { Leading } from "../kubernetes/lease/leading.ts";
import { RefusedWrites } from "../kubernetes/refused-writes.ts";
import { messageOf } from "../lib/describe.ts";
import { Division } from "./division.ts";
import { sendRefusal } from "./send-refusal.ts";
import type { Controller, ControllerDeps, Measurements, StartController } from "./types.ts";

/** By name, in the order of their start. */
export type Controllers = Readonly<Record<string, StartController>>;

export interface Leadership {
  /** By the controller's name. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
  readonly measurements: Measurements;
  /**
   * Stops the controllers in reverse order. Resolves when none of them writes any more; never rejects. The caller has
   * aborted `leading` before.
   */
  close(): Promise<void>;
}

/** `refused`: default: new for this leadership. */
export type LeadershipDeps = Omit<ControllerDeps, "refused" | "division" | "promised"> &
  Partial<Pick<ControllerDeps, "refused">>;

/** A controller that fails to start or to stop does not affect the others. */
export function startLeadership(parts: Controllers, given: LeadershipDeps): Leadership {
  const { log } = given;
  const refused = given.refused ?? new RefusedWrites({ nowMs: () => given.clock.nowMs(), random: given.random });
  const deps = { ...given, refused, division: new Division(), promised: new Set<string>() };
  const running: { readonly name: string; readonly part: Controller }[] = [];
  const failed: Record<string, readonly string[]> = {};
  for (const [name, start] of Object.entries(parts)) {
    try {
      running.push({ name, part: start(depsOf(name, deps)) });
    } catch (error) {
      log.error({ err: error, part: name }, "A controller failed to start");
      failed[name] = [`The part "${name}" did not start: ${messageOf(error)}`];
    }
  }
  return {
    get problems() {
      return { ...failed, ...Object.fromEntries(running.map(({ name, part }) => [name, part.problems])) };
    },
    get measurements() {
      return Object.assign({}, ...running.map(({ part }) => part.measurements)) as Measurements;
    },
    close: async () => {
      for (const { name, part } of running.splice(0).reverse()) {
        await part
          .close()
          .catch((error: unknown) => log.error({ err: error, part: name }, "A controller failed to stop"));
      }
    },
  };
}

/** Each part has its own log, and its own refused writes. */
function depsOf(part: string, given: ControllerDeps): ControllerDeps {
  const deps = { ...given, log: given.log.child({ part }) };
  const onRefused = (call: KubeCall, refusal: ApiError): void => sendRefusal(deps, call, refusal);
  return { ...deps, api: given.refused.apiFor(given.api, { part, onRefused }) };
}

/**
 * Returns a client that sends nothing after this process has stopped leading, even if its timers are late because the
 * process was suspended.
 */
export function openLeaderApi(api: KubeApi, leading: Leading): KubeApi {
  return {
    call: async (call) => {
      leading.require();
      const { signal = leading.signal } = call;
      const both = signal === leading.signal ? signal : AbortSignal.any([signal, leading.signal]);
      return api.call({ ...call, signal: both });
    },
    watch: (watch) => api.watch(watch),
  };
}
