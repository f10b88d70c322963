/** Contestants of an axis, by turns or one after the other. */
import type { Contestant, Work } from "../ipam/contestant.ts";
import { type Course, measure } from "../ipam/measure.ts";
import { mayFail } from "../peers/alone.ts";
import type { Point } from "./axis.ts";

export interface Entry {
  /** Of the curve. */
  readonly name: string;
  readonly place: string;
  readonly contestant: Contestant<Work>;
}

/** Calls fail without ending the run: a place where all do has no samples. Pods are numbered from `first`. */
export async function measurePlaces(entries: readonly Entry[], course: Course, first = 0): Promise<Point[]> {
  const all = await measure(
    entries.map(({ contestant }) => mayFail(contestant)),
    course,
    first,
  );
  return all.map(({ add, rssMib }, index) => {
    const { name = "", place = "" } = entries[index] ?? {};
    return { name, place, addMs: add.map(({ wallMs }) => wallMs), rssMib };
  });
}

/** ADDs and DELs of each round, one at a time. */
export function courseOf(isQuick: boolean): Course {
  return { atOnce: 1, callsPerRound: isQuick ? 5 : 6, warmUpRounds: 1, rounds: isQuick ? 1 : 2 };
}

/** For those of which a call takes the better part of a second. */
export const SLOW: Course = { atOnce: 1, callsPerRound: 3, warmUpRounds: 0, rounds: 1 };
