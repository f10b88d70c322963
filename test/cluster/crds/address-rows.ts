import { accept, type Row, refuse, refuseForm, tenth, times } from "./rows.ts";

const FOUR = "10.6.0.0/24";
const SIX = "fd00:6::/64";
const WIDE = "10.0.0.0/8";
const FULL = "fd00:0006:0000:0000:0000:0000:0000:0001-fd00:0006:0000:0000:0000:0000:ffff:ffff";
const route = (dst: unknown, gw: unknown) => ({ subnet: FOUR, routes: [{ dst, gw }] });

/** Returns the rows that an IPPool and a Subnet have in common. */
export function addressRows(kind: string): Row[] {
  const ok = (spec: unknown) => accept(kind, spec);
  const no = (spec: unknown, field: string, more?: Partial<Row>) => refuse(kind, spec, field, more);
  const form = (spec: unknown, field: string, more?: Partial<Row>) => refuseForm(kind, spec, field, more);
  const outside = (spec: object, index: number, key = "ips") =>
    no(spec, `spec.${key}[${index}]`, { serverField: `spec.${key}` });
  return [
    ok({ subnet: FOUR }),
    ok({ subnet: SIX }),
    ok({ subnet: "0.0.0.0/0" }),
    ok({ subnet: "::/0" }),
    ok({ subnet: "10.6.0.1/32" }),
    ok({ subnet: "fd00::1/128" }),
    ok({ subnet: FOUR, ipVersion: 4 }),
    ok({ subnet: SIX, ipVersion: 6 }),
    ok({ subnet: FOUR, ips: [] }),
    ok({ subnet: FOUR, ips: ["10.6.0.0", "10.6.0.2-10.6.0.9", "10.6.0.10-10.6.0.255"] }),
    ok({ subnet: SIX, ips: ["FD00:6::A", "fd00:6::10-fd00:6:0:0::ff", FULL.replace("0001-", "0100-")] }),
    ok({
      subnet: WIDE,
      ips: times(1_024, (i) => `${tenth(i * 4)}-${tenth(i * 4 + 2)}`),
      excludeIPs: times(1_024, tenth),
    }),
    ok({
      subnet: SIX,
      ips: times(
        1_024,
        (i) => `fd00:0006:0000:0000:0000:0000:${hex(i)}:0000-fd00:0006:0000:0000:0000:0000:${hex(i)}:ffff`,
      ),
    }),
    ok({ subnet: FOUR, excludeIPs: ["10.6.0.7"], gateway: "10.6.0.1" }),
    ok({ subnet: SIX, gateway: "FD00:6::1" }),
    ok({ subnet: "64:ff9b::/96", gateway: "64:ff9b::10.0.0.1" }),
    ok({ subnet: FOUR, routes: [] }),
    ok({
      subnet: FOUR,
      routes: [
        { dst: "192.168.0.0/16", gw: "10.6.0.2" },
        { dst: "192.168.0.0/17", gw: "10.6.0.2" },
      ],
    }),
    ok({ subnet: WIDE, routes: times(128, (i) => ({ dst: `192.168.${i}.0/24`, gw: "10.0.0.1" })) }),
    ok({ subnet: FOUR, addressSpace: "" }),
    ok({ subnet: FOUR, addressSpace: "a" }),
    ok({ subnet: FOUR, addressSpace: `a${"-".repeat(61)}9` }),
    ok({ subnet: FOUR, ips: null, gateway: null, routes: null, addressSpace: null, ipVersion: null }),

    // What no pod can have (docs/resources.md).
    ok({ subnet: "240.10.0.0/16", gateway: "240.10.0.1" }),
    ok({ subnet: "240.0.0.0/4", ips: ["240.0.0.1-255.255.255.254"] }),
    ok({ subnet: "169.254.0.0/16", ips: ["169.254.1.1-169.254.1.9"] }),
    ok({ subnet: "223.0.0.0/8", gateway: "223.255.255.254" }),
    ok({ subnet: "fec0::/64" }),
    ok({ subnet: "0.0.0.0/0", ips: ["10.0.0.1"], excludeIPs: ["127.0.0.1", "224.0.0.0-224.0.0.9"] }),
    ...["0.10.0.0/16", "127.10.0.0/24", "224.10.0.0/24", "239.0.0.0/8", "255.255.255.255/32"].map((subnet) =>
      no({ subnet }, "spec.subnet"),
    ),
    ...["::/128", "::1/128", "fe80::/64", "febf::/16", "ff02::/64"].map((subnet) => no({ subnet }, "spec.subnet")),
    no({ subnet: "127.10.0.0/24", ips: ["127.10.0.9"] }, "spec.subnet", { also: ["spec.ips[0]"] }),
    no({ subnet: "0.0.0.0/0", ips: ["10.0.0.1", "0.0.0.9"] }, "spec.ips[1]"),
    no({ subnet: "0.0.0.0/0", ips: ["126.0.0.1-127.0.0.1"] }, "spec.ips[0]"),
    no({ subnet: "0.0.0.0/0", ips: ["239.255.255.255-240.0.0.1"] }, "spec.ips[0]"),
    no({ subnet: "240.0.0.0/4", ips: ["255.255.255.255"] }, "spec.ips[0]"),
    no({ subnet: "::/0", ips: ["fd00::1", "::1-::9"] }, "spec.ips[1]"),
    no({ subnet: "::/0", ips: ["fe7f::-fe80::1"] }, "spec.ips[0]"),
    no({ subnet: "::/0", ips: ["ff02::1"] }, "spec.ips[0]"),
    // Routers.
    ok({ subnet: SIX, gateway: "fe80::1" }),
    ok({ subnet: SIX, gateway: "FEBF::1", routes: [{ dst: "fd09::/16", gw: "fe80::2" }] }),
    ok({ subnet: "10.6.0.0/31", gateway: "10.6.0.0" }),
    ok({ subnet: "10.6.0.1/32", gateway: "10.6.0.1" }),
    ok({ subnet: "10.6.0.0/30", gateway: "10.6.0.2" }),
    ok({ subnet: "10.6.0.0/23", gateway: "10.6.0.255" }),
    ok({ subnet: SIX, gateway: "fd00:6::" }),
    no({ subnet: SIX, gateway: "fec0::1" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "fe80::1" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "10.6.0.255" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "10.6.0.0" }, "spec.gateway"),
    no({ subnet: "10.6.0.0/30", gateway: "10.6.0.3" }, "spec.gateway"),
    no({ subnet: "10.6.0.0/23", gateway: "10.6.1.255" }, "spec.gateway"),
    no({ subnet: "128.0.0.0/1", ips: ["200.0.0.1"], gateway: "128.0.0.0" }, "spec.gateway"),
    no({ subnet: "0.0.0.0/0", ips: ["200.0.0.1"], gateway: "127.0.0.1" }, "spec.gateway"),
    no({ subnet: "::/0", gateway: "ff02::1" }, "spec.gateway"),
    no({ subnet: "::/0", gateway: "::1" }, "spec.gateway"),
    no(route("10.0.0.0/8", "10.6.0.255"), "spec.routes[0].gw", { serverField: "spec.routes" }),
    no({ subnet: "::/0", routes: [{ dst: "fd01::/64", gw: "ff02::1" }] }, "spec.routes[0].gw"),

    form(undefined, "spec"),
    form("10.6.0.0/24", "spec"),
    form([], "spec"),
    form({}, "spec.subnet"),
    form({ subnet: null }, "spec.subnet"),
    form({ subnet: 10 }, "spec.subnet"),
    no({ subnet: "" }, "spec.subnet"),
    no({ subnet: "10.6.0.0" }, "spec.subnet"),
    no({ subnet: "10.6.0.0/33" }, "spec.subnet"),
    no({ subnet: "10.6.0.0/024" }, "spec.subnet"),
    no({ subnet: "10.6.0.0/+24" }, "spec.subnet"),
    no({ subnet: "10.6.0.0/" }, "spec.subnet"),
    no({ subnet: "010.6.0.0/24" }, "spec.subnet"),
    no({ subnet: " 10.6.0.0/24" }, "spec.subnet"),
    no({ subnet: "10.6.0.0/255.255.255.0" }, "spec.subnet"),
    no({ subnet: "fd00::%eth0/64" }, "spec.subnet"),
    no({ subnet: "::ffff:10.6.0.0/120" }, "spec.subnet"),
    no({ subnet: "10.6.0.1/24" }, "spec.subnet"),
    no({ subnet: "fd00::1/64" }, "spec.subnet"),
    no({ subnet: "FD00:0::/64" }, "spec.subnet"),
    no({ subnet: "fd00:0:0:0:0:0:0:0/64" }, "spec.subnet"),
    form({ subnet: "1".repeat(50) }, "spec.subnet"),
    no({ subnet: FOUR, ipVersion: 6 }, "spec.ipVersion"),
    no({ subnet: SIX, ipVersion: 4 }, "spec.ipVersion"),
    form({ subnet: FOUR, ipVersion: 5 }, "spec.ipVersion"),
    form({ subnet: FOUR, ipVersion: "4" }, "spec.ipVersion"),
    form({ subnet: FOUR, ips: "10.6.0.1" }, "spec.ips"),
    form({ subnet: FOUR, ips: [7] }, "spec.ips[0]"),
    form({ subnet: FOUR, ips: [null] }, "spec.ips[0]"),
    form({ subnet: WIDE, ips: times(1_025, tenth) }, "spec.ips"),
    form({ subnet: WIDE, excludeIPs: times(1_025, tenth) }, "spec.excludeIPs"),
    form({ subnet: FOUR, ips: [" ".repeat(81)] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["x".repeat(80)] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: [""] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["-"] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["10.6.0.1-"] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["-10.6.0.1"] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["10.6.0.1", "10.6.0.x"] }, "spec.ips[1]"),
    no({ subnet: FOUR, ips: ["10.6.0.1 - 10.6.0.2"] }, "spec.ips[0]"),
    no({ subnet: FOUR, ips: ["10.6.0.1-10.6.0.2-10.6.0.3"] }, "spec.ips[0]"),
    // Read by agents, and taken by the API server one release later.
    accept(kind, { subnet: FOUR, ips: ["10.6.0.0/28"] }, { serverField: "spec.ips[0]", isStructural: true }),
    no({ subnet: FOUR, ips: ["::ffff:10.6.0.1"] }, "spec.ips[0]"),
    no({ subnet: FOUR, excludeIPs: ["10.6.0.1", "10.6.0.1-x"] }, "spec.excludeIPs[1]"),
    no({ subnet: FOUR, ips: ["10.6.0.9-fd00::1"] }, "spec.ips[0]", { also: ["spec.ips"] }),
    no({ subnet: SIX, ips: ["fd00:6::9-10.6.0.1"] }, "spec.ips[0]", { also: ["spec.ips"] }),
    outside({ subnet: FOUR, ips: ["10.6.0.1", "10.7.0.1"] }, 1),
    outside({ subnet: FOUR, ips: ["10.6.0.9-10.6.1.9"] }, 0),
    outside({ subnet: FOUR, ips: ["10.5.0.9-10.6.0.9"] }, 0),
    outside({ subnet: FOUR, ips: ["10.5.0.0-10.7.0.0"] }, 0),
    outside({ subnet: FOUR, ips: ["fd00::1"] }, 0),
    outside({ subnet: SIX, ips: ["fd00:6:0:1::"] }, 0),
    outside({ subnet: FOUR, excludeIPs: ["10.7.0.1"] }, 0, "excludeIPs"),
    no({ subnet: FOUR, gateway: "10.7.0.1" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "fd00::1" }, "spec.gateway"),
    no({ subnet: SIX, gateway: "10.6.0.1" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "10.6.0.1/24" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "10.6.0.01" }, "spec.gateway"),
    no({ subnet: FOUR, gateway: "::ffff:10.6.0.1" }, "spec.gateway"),
    form({ subnet: FOUR, gateway: "1".repeat(46) }, "spec.gateway"),
    form({ subnet: FOUR, gateway: 1 }, "spec.gateway"),
    form({ subnet: FOUR, routes: {} }, "spec.routes"),
    form({ subnet: FOUR, routes: ["10.0.0.0/8"] }, "spec.routes[0]"),
    form({ subnet: FOUR, routes: [{ dst: "10.0.0.0/8" }] }, "spec.routes[0].gw"),
    form({ subnet: FOUR, routes: [{ gw: "10.6.0.2" }] }, "spec.routes[0].dst"),
    form({ subnet: WIDE, routes: times(129, (i) => ({ dst: `192.168.${i}.0/24`, gw: "10.0.0.1" })) }, "spec.routes"),
    no(route("10.0.0.0", "10.6.0.2"), "spec.routes[0].dst"),
    no(route("10.0.0.1/8", "10.6.0.2"), "spec.routes[0].dst"),
    no(route("0.0.0.0/0", "10.6.0.2"), "spec.routes[0].dst"),
    no(route("10.0.0.0/8", "10.6.0"), "spec.routes[0].gw"),
    no(route("10.0.0.0/8", "10.7.0.1"), "spec.routes[0].gw", { serverField: "spec.routes" }),
    no(route("fd01::/64", "10.6.0.1"), "spec.routes[0].gw"),
    no({ ...route("10.0.0.0/8", "fd00:6::1"), subnet: SIX }, "spec.routes[0].gw"),
    no(
      { subnet: FOUR, routes: times(3, (i) => ({ dst: `10.${i % 2}.0.0/16`, gw: "10.6.0.2" })) },
      "spec.routes[2].dst",
      { serverField: "spec.routes" },
    ),
    no({ subnet: FOUR, addressSpace: "Lab" }, "spec.addressSpace"),
    no({ subnet: FOUR, addressSpace: "a.b" }, "spec.addressSpace"),
    no({ subnet: FOUR, addressSpace: "-a" }, "spec.addressSpace"),
    no({ subnet: FOUR, addressSpace: "a-" }, "spec.addressSpace"),
    form({ subnet: FOUR, addressSpace: "a".repeat(64) }, "spec.addressSpace"),
    form({ subnet: FOUR, addressSpace: 7 }, "spec.addressSpace"),
    form({ subnet: FOUR, excludeIps: [] }, "spec.excludeIps"),
    form({ subnet: FOUR, routes: [{ dst: "10.0.0.0/8", gw: "10.6.0.2", metric: 1 }] }, "spec.routes[0].metric"),
    form({ subnet: FOUR }, "specs", { more: { specs: {} } }),
    form({ subnet: FOUR }, "metadata.name", { name: "Blue" }),
    form({ subnet: FOUR }, "metadata.name", { name: "a".repeat(254) }),
  ];
}

const hex = (value: number): string => value.toString(16).padStart(4, "0");

/**
 * Faults of one object that only the agent finds: the API server accepts what the decoder refuses (docs/resources.md).
 */
export function agentRows(kind: string): Row[] {
  return [
    refuse(kind, { subnet: FOUR, ips: ["10.6.0.9-10.6.0.8"] }, "spec.ips[0]"),
    refuse(kind, { subnet: FOUR, ips: ["10.6.0.1", "10.6.0.1"] }, "spec.ips[1]"),
    refuse(kind, { subnet: FOUR, ips: ["10.6.0.5", "10.6.0.1-10.6.0.9"] }, "spec.ips[0]"),
    refuse(kind, { subnet: FOUR, excludeIPs: ["10.6.0.1-10.6.0.3", "10.6.0.3"] }, "spec.excludeIPs[1]"),
  ];
}
