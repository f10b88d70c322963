/** Addresses of pods as records of a DNS zone, in the form of master files (RFC 1035 §5.1). */

import { parseIp } from "../../../../host/net/ip.ts";
import { type Prefix, prefixContains } from "../../../../host/net/prefix.ts";
import type { AllocationRecord } from "../../../../host/records/allocation-record.ts";
import { boundName } from "./address-row.ts";
import { reverseDnsName } from "./dns-name.ts";

interface ZoneOptions {
  /** The domain of the pods' names, without a dot at the end. */
  readonly origin: string;
  /** The network whose PTR records are written, in place of A and AAAA. */
  readonly reverse?: Prefix | undefined;
  readonly ttlS: number;
  /** The name server of an SOA and an NS record, without a dot at the end. Undefined: neither is written. */
  readonly nameServer?: string | undefined;
}

/** Times of the SOA for secondary servers: seconds. */
const SOA_TIMES = { refresh: 3_600, retry: 600, expire: 604_800 };

/**
 * Returns the whole file. Each record has its TTL: a $TTL would also apply to records after an $INCLUDE of the file.
 * `serial` of the SOA grows from one file to the next.
 */
export function formatZone(records: readonly AllocationRecord[], options: ZoneOptions, serial: number): string {
  const { origin, reverse, ttlS, nameServer } = options;
  const zone = reverse === undefined ? origin : reverseDnsName(reverse.ip, reverse.length);
  const { refresh, retry, expire } = SOA_TIMES;
  const authority =
    nameServer === undefined
      ? []
      : [
          `@ ${ttlS} IN SOA ${nameServer}. hostmaster.${origin}. ${serial} ${refresh} ${retry} ${expire} ${ttlS}`,
          `@ ${ttlS} IN NS ${nameServer}.`,
        ];
  const lines = records.flatMap((record) => recordLine(record, options) ?? []);
  return `${[`$ORIGIN ${zone}.`, ...authority, ...new Set(lines)].join("\n")}\n`;
}

function recordLine(record: AllocationRecord, { origin, reverse, ttlS }: ZoneOptions): string | undefined {
  const ip = parseIp(record.address);
  const name = boundName(record);
  if (ip === undefined || name === undefined) return undefined;
  if (reverse === undefined) return `${name} ${ttlS} IN ${ip.family === 4 ? "A" : "AAAA"} ${record.address}`;
  return prefixContains(reverse, ip) ? `${reverseDnsName(ip)}. ${ttlS} IN PTR ${name}.${origin}.` : undefined;
}
