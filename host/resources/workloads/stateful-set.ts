/** The fields of a StatefulSet that decide which pods it should have. */
import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { metadata } from "../fields/metadata.ts";

interface StatefulSet {
  readonly uid: string;
  /** `spec.ordinals.start` */
  readonly start: number;
  readonly replicas: number;
}

/** The API server fills in defaults; other sources may not. */
const spec = z.object({
  replicas: z.number().nullish(),
  ordinals: z.object({ start: z.number().nullish() }).nullish(),
});

const schema = z.object({ metadata, spec });

/** Decodes a StatefulSet. Throws ConfigError. */
export function decodeStatefulSet(value: unknown, source: string): StatefulSet {
  const { metadata, spec } = decodeConfig(schema, value, source);
  return { uid: metadata.uid ?? "", start: spec.ordinals?.start ?? 0, replicas: spec.replicas ?? 1 };
}

const MEMBER = /^(?<set>.+)-(?<ordinal>0|[1-9][0-9]{0,9})$/;

/** Returns whether the set should have a pod of this name: whether its ordinal is in [start, start + replicas). */
export function hasMember(name: string, { start, replicas }: Omit<StatefulSet, "uid">, member: string): boolean {
  const { set, ordinal } = MEMBER.exec(member)?.groups ?? {};
  const number = Number(ordinal);
  return set === name && number >= start && number < start + replicas;
}
