/** The chart's values for hub and IPAM of record. */
import * as z from "zod";
import { section } from "../../scripts/chart/section.ts";

export const CHART_VALUES = {
  hub: section({
    kubeconfigSecret: z.string().default("").meta({
      description:
        "Secret in the release's namespace with the key `kubeconfig`: the API server whose AddressRanges pools with `spec.source` [take blocks from](clusters.md). Empty: none.",
    }),
    member: z.string().default("").meta({
      description: "This cluster's name in its RangeMembers of the hub.",
    }),
  }),
  records: section({
    server: z.enum(["", "nautobot", "netbox"]).default("").meta({
      description: "Product of the [IPAM of record](records.md#nautobot-and-netbox). Empty: none.",
    }),
    url: z.string().default("").meta({ description: "Its address: `https://HOST`, with a path if it is below one." }),
    tokenSecret: z.string().default("").meta({
      description:
        "Secret in the release's namespace with the key `token`, a token of its API. A new one is used within a minute.",
    }),
    caSecret: z.string().default("").meta({
      description: "The same with the key `ca.crt`: the authority of its certificate. Empty: the public ones.",
    }),
    cluster: z.string().default("").meta({ description: "This cluster's name in its entries." }),
    addresses: z.boolean().default(false).meta({ description: "Write the addresses of pods into it." }),
    interval: z.int().min(1).max(3600).default(60).meta({
      description: "How long a pod has an address before it is written: seconds.",
    }),
    tag: z.string().default("berth").meta({ description: "Tag of these entries. It must be there." }),
    domain: z.string().default("").meta({ description: "Suffix of their DNS names: `POD.NAMESPACE.DOMAIN`." }),
    spaces: z.record(z.string(), z.string()).default({}).meta({
      description:
        "Namespace of Nautobot or VRF of NetBox by address space; addresses of other spaces are not written. Empty: the default space in `Global`, or in no VRF.",
    }),
  }),
};
