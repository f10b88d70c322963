/**
 * The epoch of the registry (docs/decisions/0052): one ConfigMap has the epoch and whether it is settled, and an
 * annotation of each Node the epoch for which its agent has written its pods' addresses.
 */

import * as z from "zod";
import { decodeConfig } from "../config/config-error.ts";
import type { VendorConf } from "../config/vendor-conf.ts";
import { tryOr } from "../lib/try-or.ts";
import { metadata } from "./fields/metadata.ts";
import type { Node } from "./node.ts";
import { decodeSettings } from "./vendor-conf-map.ts";

/** Name of the ConfigMap, in the namespace of `vendor-conf`. Only people delete it. */
export const EPOCH_MAP = "berth-registry";

/** Annotation of a Node: `EPOCH`, or `EPOCH.written` while its agent waits for another node to write. */
export const EPOCH_ANNOTATION = "ipam.vendor.io/registry-epoch";

/** The object for which an epoch without definitions waits. */
export const KINDS_AWAY = "the kinds IPAllocation and ReservedIP, of which one is away";

export interface EpochRecord extends Readonly<z.output<typeof epochSchema>> {
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Unique values that the leading controllers have appended, the newest last. */
  readonly beats: readonly string[];
  /** The last content of `vendor-conf`, as text; "" if unknown. */
  readonly settings: string;
  readonly conf: VendorConf | undefined;
}

const text = z.string().catch("");
/** A longer text would not fit into the annotation of each Node, and would keep the epoch open for ever. */
const short = z.string().max(2_048).catch("");

/** The part that agents write, too. */
const epochSchema = z.object({
  /** A UUID; "" before the first. */
  epoch: short,
  /** The last epoch for which all agents have written. */
  settled: short,
  /** Why it began: there was none, the kind of allocations was replaced, or the API server went back in time. */
  cause: z.enum(["first", "kind", "history"]).catch("first"),
  /** UIDs of the definitions of allocations and reserved addresses; "" while one of them is absent. */
  definition: short,
  /** Names of nodes that have not written yet, for people: `n1, n2 and 40 more`. */
  waitsFor: short,
  /** The epoch, while first claims are still probed in it although it is settled. */
  probed: short,
});

export type EpochCause = z.output<typeof epochSchema>["cause"];

/** A writer of the object can only cause a new epoch: unreadable fields count as absent. */
const recordSchema = z.object({
  metadata,
  data: z.preprocess((data) => data ?? {}, epochSchema.extend({ beats: text, settings: text })),
});

/** Decodes the ConfigMap; `source` names it in the error. Throws ConfigError. */
export function decodeEpochRecord(value: unknown, source: string): EpochRecord {
  const { metadata, data } = decodeConfig(recordSchema, value, source);
  const { namespace = "", uid = "", resourceVersion = "" } = metadata;
  const beats = data.beats.split(" ").filter(Boolean);
  const read = (): VendorConf => decodeSettings(data.settings, EPOCH_MAP, namespace);
  const conf = data.settings === "" ? undefined : tryOr(read, undefined);
  return { namespace, uid, resourceVersion, ...data, beats, conf };
}

/** Returns the data of the ConfigMap that agents write, too. */
export function encodeEpoch(record: z.output<typeof epochSchema>) {
  return epochSchema.parse(record);
}

/** Most beats in the ConfigMap: an agent that was away for longer looks for its newest record instead. */
export const MAX_BEATS = 16;

/** Whether `now` has a known beat, and lacks a later one: its history is another one, or it is late. */
export function isWithoutBeats(known: readonly string[], now: readonly string[]): boolean {
  const last = known.at(-1);
  return last !== undefined && !now.includes(last) && known.some((beat) => now.includes(beat));
}

/** Ends the mark of a node that has written and waits. */
export const WRITTEN = ".written";

/** Returns the annotation's value. */
export function formatMark(epoch: string, isSettled: boolean): string {
  return isSettled ? epoch : `${epoch}${WRITTEN}`;
}

/** Returns the state of the node's agent in the epoch. "unknown": no agent of this node has ever marked one. */
export function markOf(
  { annotations }: Pick<Node, "annotations">,
  epoch: string,
): "unknown" | "behind" | "written" | "settled" {
  const value = annotations[EPOCH_ANNOTATION];
  if (value === undefined) return "unknown";
  if (value === epoch) return "settled";
  return value === `${epoch}${WRITTEN}` ? "written" : "behind";
}
