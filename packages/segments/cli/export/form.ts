/** The form that the options of `berthctl export` choose. */

import { UsageError } from "../../../../host/cli/exit-code.ts";
import type { Followed } from "../../../../host/cli/follow-records.ts";
import { parseSpan } from "../../../../host/cli/times.ts";
import { isDnsLabel } from "../../../../host/config/fields/names.ts";
import { formatPrefix, maskPrefix, type Prefix, parsePrefix } from "../../../../host/net/prefix.ts";
import type { AllocationRecord } from "../../../../host/records/allocation-record.ts";
import { addressRow, type Change } from "./address-row.ts";
import { csvHeader, csvRow, jsonDocument, jsonLine } from "./format-rows.ts";
import { formatZone } from "./zone.ts";

export interface ExportFlags {
  readonly output: "csv" | "json" | "zone";
  readonly headers: boolean;
  readonly cluster?: string;
  readonly origin?: string;
  readonly reverse?: string;
  readonly ttl: string;
  readonly soa?: string;
}

export interface Form {
  /** Returns a document with all of them. */
  whole(records: readonly AllocationRecord[]): string;
  /** Returns a line for each record that differs; of a zone there are none. */
  changes(seen: Followed<AllocationRecord>): string;
}

/** Throws UsageError. */
export function openForm(flags: ExportFlags): Form {
  return flags.output === "zone" ? openZone(flags) : openRows(flags);
}

function openRows({ output, headers, cluster = "", origin, reverse, soa }: ExportFlags): Form {
  for (const [option, value] of Object.entries({ reverse, soa }))
    if (value !== undefined) throw new UsageError(`Option --${option} is of --output zone`);
  const naming = { cluster, origin: origin === undefined ? "" : parseDomain("--origin", origin) };
  const isJson = output === "json";
  const lineOf = (change: Change) => (record: AllocationRecord) => {
    const row = addressRow(record, naming);
    return isJson ? jsonLine(row, change) : csvRow(row, change);
  };
  return {
    whole: (records) => {
      const rows = records.map((record) => addressRow(record, naming));
      return isJson
        ? jsonDocument(rows)
        : `${headers ? csvHeader(false) : ""}${rows.map((row) => csvRow(row)).join("")}`;
    },
    changes: ({ added, changed, removed, isFirst }) =>
      [
        ...(isFirst && headers && !isJson ? [csvHeader(true)] : []),
        ...added.map(lineOf(isFirst ? "present" : "added")),
        ...changed.map(lineOf("changed")),
        ...removed.map(lineOf("removed")),
      ].join(""),
  };
}

function openZone({ origin, reverse, ttl, soa }: ExportFlags): Form {
  if (origin === undefined) throw new UsageError("--output zone needs --origin, such as --origin pods.example");
  const options = {
    origin: parseDomain("--origin", origin),
    ttlS: Math.ceil(parseSpan("--ttl", ttl) / 1_000),
    reverse: reverse === undefined ? undefined : parseReverse(reverse),
    nameServer: soa === undefined ? undefined : parseDomain("--soa", soa),
  };
  let serial = 0;
  return {
    whole: (records) => {
      // Two files of one second differ, too.
      serial = Math.max(serial + 1, Math.floor(Date.now() / 1_000));
      return formatZone(records, options, serial);
    },
    changes: () => "",
  };
}

/** Longest domain, so that a pod's name in it has at most 253 characters. */
const MAX_DOMAIN_LENGTH = 125;

/** Returns the domain without a dot at its end. */
function parseDomain(option: string, text: string): string {
  const domain = text.toLowerCase().replace(/[.]$/, "");
  if (domain.length <= MAX_DOMAIN_LENGTH && domain.split(".").every(isDnsLabel)) return domain;
  throw new UsageError(
    `Option ${option}: found ${JSON.stringify(text)}, want a domain of at most ${MAX_DOMAIN_LENGTH} characters, such as pods.example`,
  );
}

/** A reverse zone ends at a dot of its name. */
function parseReverse(text: string): Prefix {
  const prefix = parsePrefix(text);
  const [step, most] = prefix?.ip.family === 6 ? [4, 124] : [8, 24];
  if (prefix !== undefined && prefix.length >= step && prefix.length <= most && prefix.length % step === 0)
    return maskPrefix(prefix);
  const example = prefix === undefined ? "10.6.0.0/16" : formatPrefix(maskPrefix({ ...prefix, length: most }));
  throw new UsageError(
    `Option --reverse: found ${JSON.stringify(text)}, want a network whose length is a multiple of ${step}, such as ${example}`,
  );
}
