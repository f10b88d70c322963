/** The tables of nf_tables, as `nft` words them; their effect on packets is in test/netns and test/e2e. */
import { expect, it } from "vitest";
import { podTable, SNAT_TABLE } from "../../../host/coordinator/plan/plan-reply-path.ts";
import { encodeIfName } from "../../../host/kernel/netlink/nftables/statement.ts";
import type { Expression, NftTable } from "../../../host/plan/nft-table.ts";

/** Numbers of linux/netfilter/nf_tables.h. */
const KEYS: Readonly<Record<string, string>> = {
  ...{ "meta 3": "meta mark", "meta 6": "iifname", "meta 7": "oifname", "meta 21": "iifgroup" },
  ...{ "ct 0": "ct state", "ct 2": "ct status", "ct 3": "ct mark" },
};
const numberOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).readUInt32LE().toString(16)}`;
/** Of a name that is not whole, the start counts. */
function nameOf(bytes: Uint8Array): string {
  const name = Buffer.from(bytes).toString().replace(/\0+$/, "");
  return `"${name}"${encodeIfName(name).length === bytes.length ? "" : "…"}`;
}

function textOf(expression: Expression, before: Expression | undefined): string {
  switch (expression.name) {
    case "meta":
    case "ct":
      return `${expression.sets ? "set " : ""}${KEYS[`${expression.name} ${expression.key}`]}`;
    case "bitwise":
      return `& ${numberOf(expression.mask)} ^ ${numberOf(expression.xor)}`;
    case "cmp": {
      const isName = before?.name === "meta" && (before.key === 6 || before.key === 7);
      return `${["==", "!="][expression.operation]} ${(isName ? nameOf : numberOf)(expression.value)}`;
    }
    default:
      return expression.name;
  }
}

const linesOf = ({ chains }: NftTable): string[] =>
  chains.flatMap(({ type, hook, priority, rules }) => [
    `${type} hook ${["prerouting", "input", "forward", "output", "postrouting"][hook]} priority ${priority}`,
    ...rules.map((rule) => rule.map((each, at) => textOf(each, rule[at - 1])).join(" ")),
  ]);

it("in the pod the pair's connections and their replies are marked, and nothing crosses from a NIC to it or back", () => {
  const table = podTable("veth0", ["eth0", "net*"]);
  expect(linesOf(table)).toEqual([
    "filter hook prerouting priority -150",
    'iifname == "veth0" ct state & 0x8 ^ 0x0 != 0x0 ct mark & 0xfeffffff ^ 0x1000000 set ct mark',
    "route hook output priority -150",
    "ct mark & 0x1000000 ^ 0x0 == 0x1000000 meta mark & 0xfeffffff ^ 0x1000000 set meta mark",
    "filter hook forward priority 0",
    ...['iifname == "eth0" oifname == "veth0" drop', 'iifname == "veth0" oifname == "eth0" drop'],
    ...['iifname == "net*" oifname == "veth0" drop', 'iifname == "veth0" oifname == "net*" drop'],
  ]);
  expect(podTable("veth0", ["eth0", "net*"]), "of which what is sent is remembered").toBe(table);
  expect(podTable("veth0", ["eth0"])).not.toBe(table);
});

it("on the node packets that leave by no pod's link are masqueraded: of one group all, of the other those of no service", () => {
  const leaves = `${["veth", "cali", "lxc", "cni"].map((name) => `oifname != "${name}"… `).join("")}masq`;
  expect(linesOf(SNAT_TABLE)).toEqual([
    "nat hook postrouting priority 100",
    `iifgroup == 0x62 ${leaves}`,
    `iifgroup == 0x61 ct status & 0x20 ^ 0x0 == 0x0 ${leaves}`,
  ]);
});
