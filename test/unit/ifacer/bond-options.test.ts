import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BOND_OPTIONS, MAX_TARGETS, parseBondOptions } from "../../../host/ifacer/bond-options.ts";
import { BOND_NUMBERS } from "../../../host/kernel/netlink/link/bond.ts";
import { BOND_NUMBER_NAMES } from "../../../host/plan/bond.ts";
import { ip, mac } from "../../world/values.ts";

const parse = (options: string, mode: number | undefined = 1) =>
  parseBondOptions(options, { mode, members: ["e0", "e1"] });

it.each<[options: string, mode: number, settings: object]>([
  ["", 1, { numbers: {} }],
  ["miimon=100", 1, { numbers: { miimon: 100 } }],
  [" miimon = 100 ;\tupdelay= 200 ; ", 1, { numbers: { miimon: 100, updelay: 200 } }],
  ["miimon=0;min_links=0", 0, { numbers: { miimon: 0, min_links: 0 } }],
  ["lacp_rate=fast;xmit_hash_policy=layer3+4", 4, { numbers: { lacp_rate: 1, xmit_hash_policy: 1 } }],
  ["lacp_rate=0;xmit_hash_policy=5", 4, { numbers: { lacp_rate: 0, xmit_hash_policy: 5 } }],
  ["primary=e1;active_slave=e0", 1, { numbers: {}, primary: "e1", activeSlave: "e0" }],
  ["arp_interval=10;arp_ip_target=10.0.0.1", 1, { numbers: { arp_interval: 10 }, arpIpTargets: [ip("10.0.0.1")] }],
  ["arp_ip_target=10.0.0.1, 10.0.0.2", 0, { numbers: {}, arpIpTargets: [ip("10.0.0.1"), ip("10.0.0.2")] }],
  ["ns_ip6_target=fd00::1,fe80::2", 1, { numbers: {}, nsIp6Targets: [ip("fd00::1"), ip("fe80::2")] }],
  ["ad_actor_system=02:00:00:00:00:0B", 4, { numbers: {}, actorSystem: mac("02:00:00:00:00:0b") }],
  ["num_grat_arp=3", 1, { numbers: { num_peer_notif: 3 } }],
  ["num_unsol_na=0", 1, { numbers: { num_peer_notif: 0 } }],
  ["arp_missed_max=255", 1, { numbers: { missed_max: 255 } }],
  ["tlb_dynamic_lb=off", 6, { numbers: { tlb_dynamic_lb: 0 } }],
  ["packets_per_slave=65535", 0, { numbers: { packets_per_slave: 65_535 } }],
])("options: %j in mode %i", (options, mode, settings) =>
  expect(parse(options, mode)).toEqual({ settings, mismatches: [] }),
);

describe("an entry is refused with the wanted form:", () => {
  it.each<[options: string, mode: number | undefined, entry: string, wanted: string]>([
    ["miimon", 1, "miimon", '"miimon=<value>"'],
    ["miimon=1;;use_carrier=1", 1, "", "<option>=<value>"],
    ["miimon=abc", 1, "miimon=abc", "miimon= followed by an integer from 0 to 2147483647"],
    ["lp_interval=0", 1, "lp_interval=0", "an integer from 1 to 2147483647"],
    ["ad_user_port_key=1024", 4, "ad_user_port_key=1024", "an integer from 0 to 1023"],
    ["foo=1", 1, "foo=1", "a bond option: active_slave, ad_actor_sys_prio"],
    ["mimon=1", 1, "mimon=1", 'the option "miimon"'],
    ["__proto__=1", 1, "__proto__=1", "a bond option"],
    ["mode=1", 1, "mode=1", 'the mode in "bond.mode"'],
    ["queue_id=e0:1", 1, "queue_id=e0:1", "single member"],
    ["lacp_rate=fats", 4, "lacp_rate=fats", '"lacp_rate=fast"'],
    ["lacp_rate=fast", 1, "lacp_rate=fast", "no lacp_rate in mode 1 (active-backup); it requires mode 4 (802.3ad)"],
    ["primary=e0", 0, "primary=e0", "it requires mode 1 (active-backup), 5 (balance-tlb), 6 (balance-alb)"],
    ["primary=e0", undefined, "primary=e0", "mode 0 (balance-rr), the default of bond.mode"],
    ["primary=e9", 1, "primary=e9", "one of the members e0, e1"],
    ["miimon=1;miimon=2", 1, "miimon=2", "each option only once"],
    ["num_grat_arp=1;num_unsol_na=1", 1, "num_unsol_na=1", "each option only once"],
    ["arp_ip_target=10.0.0.1,10.0.0.1", 1, "arp_ip_target=10.0.0.1,10.0.0.1", "at most 16 different IPv4 addresses"],
    ["arp_ip_target=10.0.0.1,", 1, "arp_ip_target=10.0.0.1,", "IPv4 addresses, separated by commas"],
    ["arp_ip_target=255.255.255.255", 1, "arp_ip_target=255.255.255.255", "IPv4 addresses"],
    ["ns_ip6_target=ff02::1", 1, "ns_ip6_target=ff02::1", "IPv6 addresses"],
    ["ad_actor_system=01:00:00:00:00:01", 4, "ad_actor_system=01:00:00:00:00:01", "a unicast MAC address"],
    ["ad_actor_system=02:00", 4, "ad_actor_system=02:00", "a unicast MAC address"],
  ])("%j in mode %s", (options, mode, entry, wanted) => {
    const [first, ...more] = parseBondOptions(options, { mode, members: ["e0", "e1"] }).mismatches;
    expect(first).toMatchObject({ path: "bond.options", got: `the entry ${JSON.stringify(entry)}` });
    expect(first?.wanted).toContain(wanted);
    expect(more).toEqual([]);
  });

  it("more targets than the kernel has room for", () => {
    const list = (count: number) => Array.from({ length: count }, (_, index) => `10.0.0.${index + 1}`).join(",");
    expect(parse(`arp_ip_target=${list(MAX_TARGETS)}`).mismatches).toEqual([]);
    expect(parse(`arp_ip_target=${list(MAX_TARGETS + 1)}`).mismatches).toHaveLength(1);
  });

  it("each wrong entry by itself", () => expect(parse("miimon;foo=1;use_carrier=2").mismatches).toHaveLength(3));
});

it.each<[options: string, mode: number, wanted: string]>([
  ["miimon=100;arp_interval=100", 1, "one of miimon and arp_interval"],
  ["miimon=100;arp_validate=all", 1, "one of miimon and arp_validate"],
  ["updelay=100", 1, "a miimon above 0, which updelay requires"],
  ["miimon=0;downdelay=0", 1, "a miimon above 0, which downdelay requires"],
  ["miimon=0;peer_notif_delay=5", 4, "a miimon above 0, which peer_notif_delay requires"],
])("options that contradict one another: %j in mode %i", (options, mode, wanted) =>
  expect(parse(options, mode).mismatches).toEqual([
    { path: "bond.options", got: JSON.stringify(options), wanted: expect.stringContaining(wanted) },
  ]),
);

describe("the table of options", () => {
  it("is that of docs/ifacer.md", () => {
    const byModes = Map.groupBy(Object.entries(BOND_OPTIONS), ([, { modes }]) => modes?.join(", ") ?? "all");
    const rows = [...byModes].map(
      ([modes, options]) => `| ${modes} | ${options.map(([name]) => `\`${name}\``).join(", ")} |`,
    );
    const page = readFileSync(join(import.meta.dirname, "../../../docs/ifacer.md"), "utf8");
    for (const row of rows) expect(page).toContain(row);
  });

  it("has every option of the netlink messages, and the mode beside it", () => {
    const targets = new Set(Object.values(BOND_OPTIONS).map(({ target }) => target));
    const links = { primary: "primary", active_slave: "activeSlave" } as const;
    for (const name of BOND_NUMBERS) {
      if (name === "mode") continue;
      expect(targets, name).toContain(name === "primary" || name === "active_slave" ? links[name] : name);
    }
    expect([...BOND_NUMBER_NAMES].sort()).toEqual(
      BOND_NUMBERS.filter((name) => name !== "primary" && name !== "active_slave").sort(),
    );
  });
});
