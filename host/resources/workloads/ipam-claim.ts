/**
 * The IPAMClaim (k8s.cni.cncf.io/v1alpha1): addresses of one NIC that outlive its pods. Its creator names a network and
 * an interface and may request addresses; the allocator reports the allocated ones in the status.
 */

import * as z from "zod";
import { type IpRequest, parseIpRequest } from "../../cni/net-conf.ts";
import { decodeConfig } from "../../config/config-error.ts";
import { orDefault, parsedText } from "../../lib/schema.ts";
import { metadata } from "../fields/metadata.ts";
import { MAX_ALLOCATION_TEXT } from "../member.ts";

export interface IpamClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly network: string;
  /** Name of the NIC in the pod; "" if unset. */
  readonly ifName: string;
  readonly requested: readonly IpRequest[];
  readonly given: readonly IpRequest[];
  readonly ownerPod: string;
  /** Whether Berth's controller, and no other writer, wrote {@link IpamClaim.given}. */
  readonly isGivenByBerth: boolean;
}

/** The field manager of Berth's writes, which distinguishes them from those of others. */
export const CLAIM_WRITER = "berth-controller";

const text = z.string().max(MAX_ALLOCATION_TEXT);
const ip = parsedText(parseIpRequest, "an address such as 10.6.0.21/16", MAX_ALLOCATION_TEXT);
const ips = orDefault(z.array(ip).max(2), []);

const schema = z.object({
  metadata,
  spec: z.object({ network: text, interface: text.default(""), ipRequests: ips }),
  status: z.object({ ips, ownerPod: text.default("") }).nullish(),
});

/** `metadata.managedFields` (meta/v1 ManagedFieldsEntry): the fields that tell the writer of `status.ips`. */
const writers = z.object({
  metadata: z.object({
    managedFields: z.array(
      z.object({
        manager: z.string().default(""),
        fieldsV1: z.object({ "f:status": z.object({ "f:ips": z.unknown() }).partial().default({}) }).partial(),
      }),
    ),
  }),
});

function isWrittenByBerth(value: unknown): boolean {
  const entries = writers.safeParse(value).data?.metadata.managedFields ?? [];
  const own = entries.filter(({ fieldsV1 }) => fieldsV1["f:status"]?.["f:ips"] !== undefined);
  return own.length > 0 && own.every(({ manager }) => manager === CLAIM_WRITER);
}

/** Decodes an IPAMClaim; `source` names it in the error. Throws ConfigError. */
export function decodeIpamClaim(value: unknown, source: string): IpamClaim {
  const { metadata, spec, status } = decodeConfig(schema, value, source);
  const { namespace = "default", name, uid = "", resourceVersion = "" } = metadata;
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    network: spec.network,
    ifName: spec.interface,
    requested: spec.ipRequests,
    given: status?.ips ?? [],
    ownerPod: status?.ownerPod ?? "",
    isGivenByBerth: isWrittenByBerth(value),
  };
}
