import { describe, expect, it } from "vitest";
import { MAX_CIDRS } from "../../../../host/config/coordinator-conf.ts";
import { joinPrefixes, readStatements } from "../../../../host/controller/networks/statement.ts";
import { formatPrefix, parsePrefix } from "../../../../host/net/prefix.ts";

describe("networks in the text of others", () => {
  it.each<[text: string, networks: string[]]>([
    ["", []],
    [" ,, \n", []],
    ["10.96.0.0/12", ["10.96.0.0/12"]],
    ["fd00:1::/108,10.96.0.0/12", ["10.96.0.0/12", "fd00:1::/108"]],
    ["10.1.0.0/16 10.0.0.0/16", ["10.0.0.0/16", "10.1.0.0/16"]],
    ["10.96.0.1/12,10.96.0.0/12", ["10.96.0.0/12"]],
    ["10.0.0.0/8,10.0.0.0/16", ["10.0.0.0/8", "10.0.0.0/16"]],
  ])("%j", (text, networks) => {
    const statements = readStatements("here", [text]);
    expect(statements.flatMap((each) => each.faults)).toEqual([]);
    expect(statements.flatMap((each) => each.networks.map(formatPrefix))).toEqual(networks);
    expect(statements).toHaveLength(networks.length === 0 ? 0 : 1);
  });

  it.each<[text: string, fault: string]>([
    ["10.0.0.0/33", 'here: "10.0.0.0/33" is not a network in CIDR form'],
    ["10.0.0.0/8,$(CLUSTER_CIDR)", 'here: "$(CLUSTER_CIDR)" is not a network in CIDR form'],
    ["::ffff:10.0.0.0/104", 'here: "::ffff:10.0.0.0/104" is not a network in CIDR form'],
    ["10.0.0.0/7", 'here: "10.0.0.0/7" is wider than /8, the widest network that a cluster may use'],
    ["::/0", 'here: "::/0" is wider than /16, the widest network that a cluster may use'],
    ["1".repeat(500), `here: "${"1".repeat(80)}…" is not a network in CIDR form`],
    ["\u001b[2J", 'here: "\\u001b[2J" is not a network in CIDR form'],
  ])("%j is named", (text, fault) => {
    expect(readStatements("here", [text]).flatMap((each) => each.faults)).toEqual([fault]);
  });

  it("more than a pod may have routes", () => {
    const text = Array.from({ length: MAX_CIDRS + 1 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`).join();
    const fault = `here: ${MAX_CIDRS + 1} networks; at most ${MAX_CIDRS} are allowed`;
    expect(readStatements("here", [text])[0]?.faults).toEqual([fault]);
  });
});

describe("shares of nodes are joined", () => {
  it.each([
    "10.0.1.0/24 10.0.0.0/24 => 10.0.0.0/23",
    "10.0.1.0/24 10.0.2.0/24 => 10.0.1.0/24 10.0.2.0/24",
    "10.0.0.0/24 10.0.1.0/24 10.0.2.0/24 10.0.3.0/24 => 10.0.0.0/22",
    "10.0.0.0/16 10.0.7.0/24 => 10.0.0.0/16",
    "10.0.0.0/24 10.0.0.0/24 => 10.0.0.0/24",
    "fd00::/64 fd00:0:0:1::/64 10.0.0.0/24 => 10.0.0.0/24 fd00::/63",
    "10.0.0.0/8 11.0.0.0/8 fd00::/16 fd01::/16 => 10.0.0.0/8 11.0.0.0/8 fd00::/16 fd01::/16",
  ])("%s", (row) => {
    const [shares = [], joined] = row.split(" => ").map((text) => text.split(" "));
    expect(joinPrefixes(shares.flatMap((text) => parsePrefix(text) ?? [])).map(formatPrefix)).toEqual(joined);
  });

  it("a thousand of them, in any order, are one route", () => {
    const shares = Array.from({ length: 1_024 }, (_, index) => (index * 401) % 1_024).map(
      (index) => parsePrefix(`10.${64 + (index >> 8)}.${index & 255}.0/24`) ?? expect.unreachable(),
    );
    expect(joinPrefixes(shares).map(formatPrefix)).toEqual(["10.64.0.0/14"]);
  });
});
