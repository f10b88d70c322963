/** Addresses, pods and files as arguments. */
import { readFileSync } from "node:fs";
import { isDnsLabel } from "../config/fields/names.ts";
import { messageOf } from "../lib/describe.ts";
import { readText } from "../lib/regular-file.ts";
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

/** Returns whether the text is meant as an address, or as one with more behind a slash; it may be none. */
export function isAddress(text: string): boolean {
  return /^[\d.]+$/.test(text) || /^\d+\.[\d.]*\//.test(text) || text.includes(":");
}

/** Takes an address, and its address space behind a slash. Throws UsageError. */
export function parseAddressName(text: string) {
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

/** For an option or argument that may be repeated: its values may be lists with commas. */
export function splitList(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), ...text.split(",")];
}

/** Name of the file that means the standard input. */
export const STANDARD_INPUT = "-";

/** Longest file that an option names: bytes. */
const MAX_GIVEN_BYTES = 64 * 1024 * 1024;

/** Returns the text of the file that the option names. Throws UsageError. */
export function readGiven(option: string, path: string): string {
  try {
    return path === STANDARD_INPUT ? readFileSync(0, "utf8") : readText(path, MAX_GIVEN_BYTES);
  } catch (error) {
    throw new UsageError(`Option ${option}: ${messageOf(error)}`);
  }
}
