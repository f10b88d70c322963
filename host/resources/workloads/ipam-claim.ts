/**
 * The IPAMClaim (k8s.cni.cncf.io/v1alpha1): addresses of one NIC that outlive its pods. Whoever makes it names a network and an interface, and may
 * ask for addresses; whoever allocates writes into its status what it has.
 */

import { z } from "zod";
import { type AskedIp, parseAskedIp } from "../../cni/net-conf.ts";
import { decodeConfig } from "../../config/config-error.ts";
import { parsedText } from "../../lib/schema.ts";
import { metadata } from "../fields/metadata.ts";
import { MAX_ALLOCATION_TEXT } from "../ip-allocation.ts";

export interface IpamClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly network: string;
  /** Name of the NIC in the pod; "" when the claim does not say. */
  readonly ifName: string;
  /** `spec.ipRequests` */
  readonly requested: readonly AskedIp[];
  /** `status.ips` */
  readonly given: readonly AskedIp[];
  /** `status.ownerPod` */
  readonly ownerPod: string;
}

const text = z.string().max(MAX_ALLOCATION_TEXT);
const ips = z
  .array(parsedText(parseAskedIp, "an address such as 10.6.0.21/16", MAX_ALLOCATION_TEXT))
  .max(2)
  .nullish()
  .transform((list) => list ?? []);

const schema = z.object({
  metadata,
  spec: z.object({ network: text, interface: text.default(""), ipRequests: ips }),
  status: z.object({ ips, ownerPod: text.default("") }).nullish(),
});

/** Throws ConfigError. */
export function decodeIpamClaim(value: unknown, source: string): IpamClaim {
  const { metadata, spec, status } = decodeConfig(schema, value, source);
  const { namespace = "default", name, uid = "", resourceVersion = "" } = metadata;
  return {
    ...{ namespace, name, uid, resourceVersion },
    ...{ network: spec.network, ifName: spec.interface, requested: spec.ipRequests },
    ...{ given: status?.ips ?? [], ownerPod: status?.ownerPod ?? "" },
  };
}
