/**
 * The time for which this process leads: its parts, from the start of the first to the end of the last.
 * Effects: those of the parts.
 */
import { messageOf } from "../lib/describe.ts";
import type { ControllerDeps, RunningController, StartController } from "./types.ts";

/** By name, in the order in which they are started. */
export type Parts = Readonly<Record<string, StartController>>;

export interface Leadership {
  /** What each part has to say, by its name. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
  /** Ends the parts one by one, the last first. Resolves when none of them writes any more; never rejects. The caller has ended `leading` before. */
  close(): Promise<void>;
}

/** A part that cannot be started, or closed, is a fault of its own: the others go on. */
export function startLeadership(parts: Parts, tools: ControllerDeps): Leadership {
  const { log } = tools;
  const running: { readonly name: string; readonly part: RunningController }[] = [];
  const failed: Record<string, readonly string[]> = {};
  for (const [name, start] of Object.entries(parts)) {
    try {
      running.push({ name, part: start({ ...tools, log: log.child({ part: name }) }) });
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
