/**
 * The objects whose status and finalizers the controller writes: the decoded specification or its fault, and the
 * metadata that a write needs.
 */
import * as z from "zod";
import { ConfigError } from "../config/config-error.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { messageOf } from "../lib/describe.ts";
import { formatMismatches, orDefault } from "../lib/schema.ts";
import { type Coordinator, decodeCoordinator } from "../resources/coordinator.ts";
import { decodeIpPool, type IpPool } from "../resources/ip-pool.ts";
import { decodeReservedIp, type ReservedIp } from "../resources/reserved-ip.ts";
import { type Condition, conditionsOf } from "../resources/status.ts";
import { decodeSubnet, type Subnet } from "../resources/subnet.ts";

export interface ControlledMetadata {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly conditions: readonly Condition[];
  /** The status without its conditions, to compare before a write. */
  readonly status: Readonly<Record<string, unknown>>;
}

/** If `value` is undefined, `fault` is the error of the specification. */
export interface Controlled<T> extends ControlledMetadata {
  readonly value: T | undefined;
  readonly fault: string | undefined;
}

export type ControlledPool = Controlled<IpPool>;
export type ControlledSubnet = Controlled<Subnet>;
export interface ControlledReservation extends Controlled<ReservedIp> {
  /** The value before its time ended; then `value` is undefined. */
  readonly ended?: ReservedIp;
}
export type ControlledCoordinator = Controlled<Coordinator>;

const frame = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string().default(""),
    resourceVersion: z.string().default(""),
    generation: z.number().default(0),
    deletionTimestamp: z.string().nullish(),
    finalizers: orDefault(z.array(z.string()), []),
  }),
  status: orDefault(z.record(z.string(), z.unknown()), {}),
});

function decodeControlled<T>(
  object: KubeObject,
  kind: string,
  decode: (value: unknown, source: string) => T,
): Controlled<T> {
  const { metadata, status: read } = frame.parse(object);
  const { deletionTimestamp, ...rest } = metadata;
  const { conditions: _, ...status } = read;
  const common = {
    ...rest,
    status,
    conditions: conditionsOf(object),
    deleting: deletionTimestamp !== undefined && deletionTimestamp !== null,
  };
  try {
    return { ...common, value: decode(object, `${kind} "${metadata.name}"`), fault: undefined };
  } catch (error) {
    const fault = error instanceof ConfigError ? formatMismatches(error.mismatches) : messageOf(error);
    return { ...common, value: undefined, fault };
  }
}

/** Returns those that are valid. */
export const valuesOf = <T>(all: Iterable<Controlled<T>>): T[] => [...all].flatMap(({ value }) => value ?? []);

/** These throw only for a value that is not an API object. */
export const decodeControlledPool = (object: KubeObject): ControlledPool =>
  decodeControlled(object, "IPPool", decodeIpPool);
export const decodeControlledSubnet = (object: KubeObject): ControlledSubnet =>
  decodeControlled(object, "Subnet", decodeSubnet);
export const decodeControlledReservation = (object: KubeObject): ControlledReservation =>
  decodeControlled(object, "ReservedIP", decodeReservedIp);
/** For the mirror of ReservedIPs. */
export function endingOf({ value: ended, ...rest }: ControlledReservation) {
  return ended?.spec.until === undefined
    ? undefined
    : { atMs: ended.spec.until, left: { ...rest, value: undefined, ended } };
}
export const decodeControlledCoordinator = (object: KubeObject): ControlledCoordinator =>
  decodeControlled(object, "Coordinator", decodeCoordinator);
