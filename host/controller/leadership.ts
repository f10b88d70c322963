/**
 * The time for which this process leads: its parts, from the start of the first to the end of the last.
 * Effects: those of the parts.
 */

import type { KubeApi } from "../kubernetes/kube-api.ts";
import type { Leading } from "../kubernetes/lease/leading.ts";
import { messageOf } from "../lib/describe.ts";
import type { Controller, ControllerDeps, StartController } from "./types.ts";

/** By name, in the order in which they are started. */
export type Controllers = Readonly<Record<string, StartController>>;

export interface Leadership {
  /** What each part has to say, by its name. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
  /** Ends the parts one by one, the last first. Resolves when none of them writes any more; never rejects. The caller has ended `leading` before. */
  close(): Promise<void>;
}

/** A part that cannot be started, or closed, is a fault of its own: the others go on. */
export function startLeadership(parts: Controllers, deps: ControllerDeps): Leadership {
  const { log } = deps;
  const running: { readonly name: string; readonly part: Controller }[] = [];
  const failed: Record<string, readonly string[]> = {};
  for (const [name, start] of Object.entries(parts)) {
    try {
      running.push({ name, part: start({ ...deps, log: log.child({ part: name }) }) });
    } catch (error) {
      log.error({ err: error, part: name }, "A part did not start");
      failed[name] = [`The part "${name}" did not start: ${messageOf(error)}`];
    }
  }
  return {
    get problems() {
      return { ...failed, ...Object.fromEntries(running.map(({ name, part }) => [name, part.problems])) };
    },
    close: async () => {
      for (const { name, part } of running.splice(0).reverse()) {
        await part
          .close()
          .catch((error: unknown) => log.error({ err: error, part: name }, "A part did not close well"));
      }
    },
  };
}

/** A call under way ends with `leading`, whether its caller thinks of the signal or not. */
export function openLeaderApi(api: KubeApi, leading: Leading): KubeApi {
  return {
    call: async (call) => {
      leading.require();
      const { signal = leading.signal } = call;
      const both = signal === leading.signal ? signal : AbortSignal.any([signal, leading.signal]);
      return api.call({ ...call, signal: both });
    },
    watch: (watch) => api.watch(watch),
    // It belongs to the process.
    close: async () => {},
  };
}
