/** Names of pods and of addresses in the DNS (RFC 1035 §2.3.1 and §3.5, RFC 3596 §2.5), without a dot at the end. */
import { hash } from "node:crypto";
import type { Ip } from "../../../../host/net/ip.ts";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Longest name that {@link podDnsName} returns: two labels. */
const MAX_NAME_LENGTH = 127;

const HASH_DIGITS = 10;

/**
 * Returns the text as one label: itself if it is one, else as much of it as a label may contain, and a hash, so that
 * two texts never have the same label.
 */
function dnsLabel(text: string): string {
  if (LABEL.test(text)) return text;
  const readable = text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const start = readable
    .replace(/^-/, "")
    .slice(0, 63 - 1 - HASH_DIGITS)
    .replace(/-$/, "");
  return `${start}${start === "" ? "" : "-"}${hash("sha256", text, "hex").slice(0, HASH_DIGITS)}`;
}

/** Returns `pod.namespace`, the pod alone if it has no namespace, or undefined if there is no pod. */
export function podDnsName(pod: string, namespace: string): string | undefined {
  if (pod === "") return undefined;
  const end = namespace === "" ? "" : `.${dnsLabel(namespace)}`;
  const name = `${pod.split(".").map(dnsLabel).join(".")}${end}`;
  return name.length <= MAX_NAME_LENGTH ? name : `${dnsLabel(pod)}${end}`;
}

/** A zone, the labels of an address in it, the bits of each, and how a label is written. */
const IPV4_ZONE = ["in-addr.arpa", 4, 8, 10] as const;
const IPV6_ZONE = ["ip6.arpa", 32, 4, 16] as const;

/** Returns `21.0.6.10.in-addr.arpa` or the like under `ip6.arpa`; of a network's `length` bits only, if given. */
export function reverseDnsName({ family, value }: Ip, length?: number): string {
  const [zone, digits, bits, base] = family === 4 ? IPV4_ZONE : IPV6_ZONE;
  const kept = length === undefined ? digits : length / bits;
  const labels = Array.from({ length: digits }, (_, at) =>
    ((value >> BigInt(at * bits)) & ((1n << BigInt(bits)) - 1n)).toString(base),
  );
  return [...labels.slice(digits - kept), zone].join(".");
}
