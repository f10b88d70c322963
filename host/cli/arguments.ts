/** Addresses and pods as arguments. */
import { isDnsLabel } from "../config/fields/names.ts";
import { formatIp, parseIp } from "../net/ip.ts";
import { formatAddressName } from "../records/allocation-record.ts";
import { UsageError } from "./exit-code.ts";
import type { PodName } from "./source.ts";

/** Returns the address in its usual form. Throws UsageError. */
export function parseAddress(text: string): string {
  const ip = parseIp(text);
  if (ip === undefined) throw new UsageError(`Expected an address such as 10.6.0.21, found ${JSON.stringify(text)}`);
  return formatIp(ip);
}

/** Returns an address in its usual form, and any other text as it is. */
export function normalizeSubject(text: string): string {
  const ip = parseIp(text);
  return ip === undefined ? text : formatIp(ip);
}

/** Takes an address, and its address space behind a slash. Throws UsageError. */
export function parseAddressName(text: string): {
  readonly address: string;
  readonly space: string;
  readonly name: string;
} {
  const [first = "", space = "", ...rest] = text.split("/");
  const address = parseAddress(first);
  if (rest.length > 0 || (space !== "" && !isDnsLabel(space)))
    throw new UsageError(`Expected an address, or address/space, found ${JSON.stringify(text)}`);
  return { address, space, name: formatAddressName(address, space) };
}

/** Takes `namespace/name`, or a name with its namespace in an option. Throws UsageError. */
export function parsePod(text: string, given: string | undefined): PodName {
  const [first = "", second, ...rest] = text.split("/");
  if (rest.length > 0 || first === "" || second === "")
    throw new UsageError(`Expected a pod as namespace/name, found ${JSON.stringify(text)}`);
  if (second === undefined) return { namespace: given ?? "default", name: first };
  if (given !== undefined && given !== first)
    throw new UsageError(`The pod ${JSON.stringify(text)} is in namespace ${first}, and --namespace is ${given}`);
  return { namespace: first, name: second };
}
