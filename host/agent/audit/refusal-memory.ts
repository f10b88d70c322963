/**
 * Which refusals were logged: a kubelet repeats a refused ADD every few seconds, each time with a new sandbox. Only a change is news: another code or
 * text, or a success in between.
 */
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Refusal, Served } from "./audit.ts";

/** Most NICs whose refusals are remembered; of the one refused longest ago the next refusal is logged again. */
const MAX_REMEMBERED_REFUSALS = 1_024;

/** Most different refusals of one NIC that are logged in {@link REFUSAL_REPEAT_MS}. One with a count or an address is always different. */
export const MAX_REFUSALS_OF_NIC = 4;

/** After how long a refusal that lasts is logged once more, with the number of its repetitions: milliseconds. */
const REFUSAL_REPEAT_MS = 3_600_000;

interface Remembered {
  /** By code and text: when it was logged. */
  readonly loggedMs: Map<string, number>;
  repeats: number;
}

export class RefusalMemory {
  readonly #nowMs: () => number;
  readonly #refused = new BoundedMap<string, Remembered>(MAX_REMEMBERED_REFUSALS);

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns how many repetitions had no line if this refusal is to be logged; undefined if it is itself a repetition. */
  note(refusal: Refusal): number | undefined {
    const key = keyOf(refusal);
    const known = this.#refused.get(key) ?? { loggedMs: new Map<string, number>(), repeats: 0 };
    const oldestMs = this.#nowMs() - REFUSAL_REPEAT_MS;
    for (const [text, loggedMs] of known.loggedMs) if (loggedMs <= oldestMs) known.loggedMs.delete(text);
    this.#refused.set(key, known);
    const text = `${refusal.code} ${refusal.message}`;
    if (known.loggedMs.has(text) || known.loggedMs.size >= MAX_REFUSALS_OF_NIC) {
      known.repeats++;
      return undefined;
    }
    const { repeats } = known;
    known.loggedMs.set(text, this.#nowMs());
    known.repeats = 0;
    return repeats;
  }

  get isEmpty(): boolean {
    return this.#refused.size === 0;
  }

  /** The request was served. */
  forget(request: Served): void {
    this.#refused.delete(keyOf(request));
  }
}

/** A retry has another container; what names no pod has nothing else. */
function keyOf({ audit, plugin, namespace = "", pod = "", ifName = "", containerId = "" }: Served): string {
  return JSON.stringify([audit, plugin, namespace, pod, ifName, pod === "" ? containerId : ""]);
}
