/** The annotation by which Multus shows the NICs of a pod. */
import * as z from "zod";
import { tryOr } from "../lib/try-or.ts";

const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";

const nics = z.array(z.object({ mac: z.string().optional().catch(undefined), ips: z.array(z.string()).default([]) }));

/** Returns the MAC address and the addresses of each NIC, as texts; none if the annotation is absent or unreadable. */
export function readNetworkStatus(annotations: Readonly<Record<string, string>> = {}): z.output<typeof nics> {
  return nics.safeParse(tryOr(() => JSON.parse(annotations[NETWORK_STATUS] ?? "[]"), undefined)).data ?? [];
}
