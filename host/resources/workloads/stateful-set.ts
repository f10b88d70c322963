/**
 * The StatefulSet, as far as Berth reads it: which of its pods it wants.
 */
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { metadata } from "../fields/metadata.ts";

export interface StatefulSet {
  readonly uid: string;
  /** `spec.ordinals.start` */
  readonly start: number;
  readonly replicas: number;
}

/** The API server fills in what is absent; a lean watch may not. */
const spec = z.object({
  replicas: z.number().nullish(),
  ordinals: z.object({ start: z.number().nullish() }).nullish(),
});

const schema = z.object({ metadata, spec });

/** Throws ConfigError. */
export function decodeStatefulSet(value: unknown, source: string): StatefulSet {
  const { metadata, spec } = decodeConfig(schema, value, source);
  return { uid: metadata.uid ?? "", start: spec.ordinals?.start ?? 0, replicas: spec.replicas ?? 1 };
}

const MEMBER = /^(?<set>.+)-(?<ordinal>0|[1-9][0-9]{0,9})$/;

/** Whether the set wants a pod of this name: its ordinal lies in [start, start + replicas). */
export function hasMember(name: string, { start, replicas }: StatefulSet, member: string): boolean {
  const { set, ordinal } = MEMBER.exec(member)?.groups ?? {};
  const number = Number(ordinal);
  return set === name && number >= start && number < start + replicas;
}
