/** Names of pods and of addresses in the DNS (RFC 1035 §2.3.1 and §3.5, RFC 3596 §2.5), without a dot at the end. */
import { hash } from "node:crypto";
import type { Ip } from "../net/ip.ts";

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

/** Returns the labels under which the address is looked up, the last part of its text first: `21`, `0`, `6`, `10`. */
function reverseLabels({ family, value }: Ip): string[] {
  const [digits, bits, base] = family === 4 ? [4, 8n, 10] : [32, 4n, 16];
  return Array.from({ length: digits }, (_, at) =>
    ((value >> (BigInt(at) * bits)) & ((1n << bits) - 1n)).toString(base),
  );
}

/** Returns `21.0.6.10.in-addr.arpa` or the like under `ip6.arpa`; of a network's `length` bits only, if given. */
export function reverseDnsName(ip: Ip, length?: number): string {
  const labels = reverseLabels(ip);
  const kept = length === undefined ? labels.length : length / (ip.family === 4 ? 8 : 4);
  return [...labels.slice(labels.length - kept), ip.family === 4 ? "in-addr.arpa" : "ip6.arpa"].join(".");
}
