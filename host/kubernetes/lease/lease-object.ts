/** Encodes and decodes a Lease (coordination.k8s.io/v1). Unknown keys stay as they are. */
import * as z from "zod";
import type { KubeObject } from "../kube-api.ts";
import type { LeaseRecord } from "./plan-lease.ts";

const leaseSchema = z.looseObject({
  metadata: z.looseObject({
    uid: z.string().default(""),
    resourceVersion: z.string().default(""),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
  spec: z
    .looseObject({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      renewTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .nullish(),
});

/** As received; it is written back whole, with its resource version. */
export type LeaseObject = z.output<typeof leaseSchema>;

/** Throws for an invalid Lease. */
export function decodeLease(object: KubeObject): LeaseObject {
  return leaseSchema.parse(object);
}

/** The mark changes with every renewal, and lacks the resource version: labelling the Lease is no renewal. */
export function recordOf({ metadata, spec }: LeaseObject): LeaseRecord {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = spec ?? {};
  const parts = [metadata.uid, holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions];
  return {
    holder: holderIdentity ?? "",
    durationMs: leaseDurationSeconds == null ? undefined : leaseDurationSeconds * 1000,
    mark: JSON.stringify(parts),
  };
}

/** RFC 3339 with microseconds (meta/v1 MicroTime). */
export function formatTime(now: Date): string {
  return now.toISOString().replace("Z", "000Z");
}

export interface LeaseWrite {
  readonly namespace: string;
  readonly name: string;
  /** "" to release it. */
  readonly holder: string;
  readonly durationMs: number;
  /** Time of the write, as {@link formatTime} formats it. */
  readonly time: string;
  /** Whether leading starts with this write. */
  readonly isBeginning: boolean;
  /** Annotations of the holder; others stay. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Returns the object to write; `before` is the existing one. */
export function encodeLease(before: LeaseObject | undefined, write: LeaseWrite): object {
  const { namespace, name, holder, durationMs, time, isBeginning, annotations } = write;
  const spec = before?.spec ?? {};
  const acquireTime = isBeginning ? time : (spec.acquireTime ?? time);
  // Counts changes of the holder, not times of leading.
  const transitions =
    (spec.leaseTransitions ?? 0) + (isBeginning && before !== undefined && spec.holderIdentity !== holder ? 1 : 0);
  const durationS = Math.ceil(durationMs / 1000);
  return {
    ...before,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      ...(before?.metadata ?? { namespace, name }),
      annotations: { ...before?.metadata.annotations, ...annotations },
    },
    spec: {
      ...spec,
      // The server refuses an empty string.
      holderIdentity: holder === "" ? undefined : holder,
      leaseDurationSeconds: holder === "" ? 1 : durationS,
      acquireTime,
      renewTime: time,
      leaseTransitions: transitions,
    },
  };
}
