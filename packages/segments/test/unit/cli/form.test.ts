/** The forms of docs/records.md: they do not change within a version, so their rows stand here as they are written. */
import { describe, expect, it } from "vitest";
import type { AllocationRecord } from "../../../../../host/records/allocation-record.ts";
import { type ExportFlags, openForm } from "../../../cli/export/form.ts";

function record(address: string, more: Partial<AllocationRecord> = {}): AllocationRecord {
  const pod = { namespace: "shop", pod: "web-0", interface: "eth0", node: "n1" };
  const rest = { prefixLength: 24, addressSpace: "", pool: "lan", state: "Bound", cursor: address };
  return { address, ...rest, ...pod, ...more };
}

const NO_POD = { namespace: "", pod: "", interface: "" };
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", member: "db-0" };
const CONFLICT = { reason: "Conflict", mac: "66:00:00:00:00:01", parent: "" } as const;
const RECORDS = [
  record("10.6.0.21", { mac: "0a:00:00:00:00:15", since: "2026-11-20T04:00:00Z" }),
  record("10.6.0.40", { ...NO_POD, state: "Cooling" }),
  record("10.6.0.77", { ...NO_POD, node: "-", state: "Kept", workload: WORKLOAD }),
  record("10.6.0.80", { state: "Quarantined", quarantine: CONFLICT }),
  record("10.7.0.9", { addressSpace: "lab", interface: "net1", pool: "lab" }),
  record("fd06::21", { pool: "six", prefixLength: 64 }),
];

const FLAGS = { output: "csv", headers: true, ttl: "30" } as const;

function whole(flags: Partial<ExportFlags>, records: readonly AllocationRecord[] = RECORDS): string {
  return openForm({ ...FLAGS, ...flags }).whole(records);
}

describe("csv", () => {
  it("has a row for each address, and lines that end as RFC 4180 says", () => {
    expect(whole({ origin: "pods.example.", cluster: "east" }).split("\r\n")).toEqual([
      "address,prefixLength,subnet,addressSpace,pool,state,namespace,pod,interface,node,mac,dnsName,retainedFor,cluster,since",
      "10.6.0.21,24,10.6.0.0/24,,lan,Bound,shop,web-0,eth0,n1,0a:00:00:00:00:15,web-0.shop.pods.example,,east,2026-11-20T04:00:00Z",
      "10.6.0.40,24,10.6.0.0/24,,lan,Cooling,,,,n1,,,,east,",
      "10.6.0.77,24,10.6.0.0/24,,lan,Kept,,,,,,,StatefulSet shop/db-0,east,",
      "10.6.0.80,24,10.6.0.0/24,,lan,Quarantined,shop,web-0,eth0,n1,66:00:00:00:00:01,,,east,",
      "10.7.0.9,24,10.7.0.0/24,lab,lab,Bound,shop,web-0,net1,n1,,web-0.shop.pods.example,,east,",
      "fd06::21,64,fd06::/64,,six,Bound,shop,web-0,eth0,n1,,web-0.shop.pods.example,,east,",
      "",
    ]);
    expect(whole({ headers: false }, [])).toBe("");
  });

  it.each([
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@a", "'@a"],
    ['=a,"b"', `"'=a,""b"""`],
    ["a,b", '"a,b"'],
    ["a\r\nb", "a\\u{d}\\u{a}b"],
    ["a-b=c", "a-b=c"],
  ])("writes the pod %j as %s", (pod, cell) => {
    const [line = ""] = whole({ headers: false }, [record("10.6.0.21", { pod })]).split("\r\n");
    expect(line).toContain(`,shop,${cell},eth0,`);
  });

  it("has an object that an agent cannot decode as a row of its state alone", () => {
    const { prefixLength: _, ...rest } = record("odd", { ...NO_POD, pool: "", state: "Invalid", node: "" });
    expect(whole({ headers: false }, [rest])).toBe("odd,,,,,Invalid,,,,,,,,,\r\n");
  });
});

it("json is one document, with a line for each address, without unknown values", () => {
  expect(whole({ output: "json" }, RECORDS.slice(0, 2))).toBe(
    '{"version":1,"addresses":[\n' +
      '{"address":"10.6.0.21","prefixLength":24,"subnet":"10.6.0.0/24","pool":"lan","state":"Bound","namespace":"shop","pod":"web-0","interface":"eth0","node":"n1","mac":"0a:00:00:00:00:15","dnsName":"web-0.shop","since":"2026-11-20T04:00:00Z"},\n' +
      '{"address":"10.6.0.40","prefixLength":24,"subnet":"10.6.0.0/24","pool":"lan","state":"Cooling","node":"n1"}\n' +
      "]}\n",
  );
  expect(JSON.parse(whole({ output: "json" }, []))).toEqual({ version: 1, addresses: [] });
  expect(JSON.parse(whole({ output: "json" })).addresses).toHaveLength(RECORDS.length);
});

describe("changes", () => {
  const [first = record("10.6.0.1"), second = record("10.6.0.2"), third = record("10.6.0.3")] = RECORDS;
  const seen = { records: [], added: [first], changed: [second], removed: [third], isFirst: false };

  it("are lines that name the event; the first look is of the present addresses", () => {
    const columns = (text: string) => text.split("\r\n").map((line) => line.split(",").slice(0, 2).join(" "));
    const csv = openForm(FLAGS);
    expect(columns(csv.changes(seen))).toEqual(["added 10.6.0.21", "changed 10.6.0.40", "removed 10.6.0.77", ""]);
    const look = csv.changes({ ...seen, changed: [], removed: [], isFirst: true });
    expect(columns(look)).toEqual(["change address", "present 10.6.0.21", ""]);
  });

  it("are documents of their own in json", () => {
    const json = openForm({ ...FLAGS, output: "json" })
      .changes(seen)
      .trim();
    const found = json.split("\n").map((line) => JSON.parse(line));
    const told = found.map(({ version, change, address }) => `${version} ${change} ${address}`);
    expect(told).toEqual(["1 added 10.6.0.21", "1 changed 10.6.0.40", "1 removed 10.6.0.77"]);
  });
});

describe("zone", () => {
  const zone = { output: "zone", origin: "pods.example." } as const;

  it("has the addresses that pods have, each record once, and no SOA", () => {
    const twice = record("10.6.0.21", { addressSpace: "lab" });
    expect(whole(zone, [...RECORDS, twice])).toBe(
      "$ORIGIN pods.example.\n" +
        "web-0.shop 30 IN A 10.6.0.21\nweb-0.shop 30 IN A 10.7.0.9\nweb-0.shop 30 IN AAAA fd06::21\n",
    );
  });

  it.each([
    ["10.6.0.0/16", "6.10.in-addr.arpa", "21.0.6.10.in-addr.arpa. 30 IN PTR web-0.shop.pods.example.\n"],
    ["10.6.0.99/24", "0.6.10.in-addr.arpa", "21.0.6.10.in-addr.arpa. 30 IN PTR web-0.shop.pods.example.\n"],
    ["fd06::/16", "6.0.d.f.ip6.arpa", `1.2.${"0.".repeat(26)}6.0.d.f.ip6.arpa. 30 IN PTR web-0.shop.pods.example.\n`],
    ["192.0.2.0/24", "2.0.192.in-addr.arpa", ""],
  ])("of the reverse network %s begins at %s", (reverse, origin, records) => {
    expect(whole({ ...zone, reverse })).toBe(`$ORIGIN ${origin}.\n${records}`);
  });

  it("begins with SOA and NS if asked; the serial grows with each file", () => {
    const form = openForm({ ...FLAGS, ...zone, soa: "ns1.example.", ttl: "60" });
    const serials = [1, 2, 3].map(() => {
      const [, soa = "", ns] = form.whole([]).split("\n");
      expect(ns).toBe("@ 60 IN NS ns1.example.");
      return Number(/^@ 60 IN SOA ns1\.example\. hostmaster\.pods\.example\. (\d+) 3600 600 604800 60$/.exec(soa)?.[1]);
    });
    expect(serials).toEqual([serials[0], Number(serials[0]) + 1, Number(serials[0]) + 2]);
    expect(Math.abs(Number(serials[0]) - Date.now() / 1_000)).toBeLessThan(60);
  });
});

it.each<[Partial<ExportFlags>, RegExp]>([
  [{ output: "zone" }, /needs --origin/],
  [{ output: "zone", origin: "a..b" }, /Option --origin: found "a\.\.b", want a domain/],
  [{ output: "zone", origin: "" }, /Option --origin: found ""/],
  [{ origin: "x".repeat(64) }, /Option --origin/],
  [{ output: "zone", origin: "a", reverse: "10.6.0.0/20" }, /multiple of 8, such as 10\.6\.0\.0\/24/],
  [{ output: "zone", origin: "a", reverse: "fd06::/3" }, /multiple of 4/],
  [{ output: "zone", origin: "a", reverse: "lan" }, /found "lan"/],
  [{ output: "zone", origin: "a", soa: "ns_1" }, /Option --soa/],
  [{ output: "zone", origin: "a", ttl: "0" }, /Option --ttl/],
  [{ reverse: "10.6.0.0/16" }, /--reverse is of --output zone/],
])("%j is refused", (flags, message) => expect(() => openForm({ ...FLAGS, ...flags })).toThrow(message));
