/** Settings in netlink messages equal those in their files, whatever they are set to. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { observeNamespace } from "../../host/kernel/observe-namespace.ts";
import { type OpenNamespace, openNamespace } from "../../host/kernel/open-namespace.ts";
import { readSysctls, writeSysctl } from "../../host/kernel/sysctl.ts";
import { ipIn } from "./kernel-scene.ts";

const name = `bkoy${process.pid}`;
let opened: OpenNamespace;

const LINKS = ["all", "default", "lo", "e.100", "p0", "small0", "gone0"];
const KEYS = [
  "ipv4/ip_forward",
  ...LINKS.flatMap((link) => [
    `ipv4/conf/${link}/rp_filter`,
    `ipv4/conf/${link}/forwarding`,
    `ipv6/conf/${link}/forwarding`,
    `ipv6/conf/${link}/disable_ipv6`,
    `ipv6/conf/${link}/accept_dad`,
    `ipv4/conf/${link}/arp_notify`,
  ]),
];

beforeAll(() => {
  execFileSync("ip", ["netns", "add", name]);
  // too small for IPv6, which the kernel then takes from it, settings and all
  ipIn(
    name,
    "link add e.100 type veth peer name p0",
    "link add small0 type veth peer name small1",
    "link set small0 mtu 1000",
  );
  opened = openNamespace(`/run/netns/${name}`);
});

afterAll(() => {
  opened[Symbol.dispose]();
  execFileSync("ip", ["netns", "del", name]);
});

/** Returns the settings by netlink, once they equal those of the files. */
function told(): ReadonlyMap<string, string> {
  const { sysctls } = observeNamespace(opened, { sysctls: KEYS });
  expect([...sysctls]).toEqual([...readSysctls(opened.entrance, KEYS)]);
  return sysctls;
}

it("of all links, of those to come, and of each", () => {
  const sysctls = told();
  expect(sysctls.get("ipv6/conf/e.100/disable_ipv6")).toBe("0");
  expect([...sysctls.keys()].filter((key) => key.includes("gone0"))).toEqual([]);
  expect(sysctls.has("ipv4/conf/small0/rp_filter")).toBe(true);
  expect(sysctls.has("ipv6/conf/small0/disable_ipv6")).toBe(false);
});

it.each<[key: string, values: readonly string[]]>([
  ["ipv4/ip_forward", ["1", "0", "1"]],
  ["ipv4/conf/all/rp_filter", ["1", "2", "0"]],
  ["ipv4/conf/default/rp_filter", ["2", "1"]],
  ["ipv4/conf/e.100/rp_filter", ["1", "2", "7", "-1"]],
  ["ipv4/conf/p0/forwarding", ["1", "0"]],
  ["ipv6/conf/all/forwarding", ["1", "0"]],
  ["ipv6/conf/default/forwarding", ["1", "0"]],
  ["ipv6/conf/e.100/forwarding", ["1", "0"]],
  ["ipv6/conf/e.100/disable_ipv6", ["1", "0"]],
  ["ipv6/conf/default/disable_ipv6", ["1", "0"]],
  ["ipv6/conf/all/disable_ipv6", ["1", "0"]],
  ["ipv6/conf/p0/accept_dad", ["0", "2", "-1"]],
])("after a change of %s", (key, values) => {
  for (const value of values) {
    writeSysctl(opened.entrance, key, value);
    expect(told().get(key)).toBe(value);
  }
});

it("of a link that comes, goes, and is renamed", () => {
  ipIn(name, "link add d.1 type veth peer name d2");
  const keysOf = (link: string) => [`ipv4/conf/${link}/rp_filter`, `ipv6/conf/${link}/disable_ipv6`];
  const ask = () => observeNamespace(opened, { sysctls: [...keysOf("d.1"), ...keysOf("d3")] }).sysctls;
  writeSysctl(opened.entrance, "ipv4/conf/d.1/rp_filter", "2");
  expect([...ask().keys()]).toEqual(keysOf("d.1"));
  ipIn(name, "link set d.1 name d3");
  expect([...ask()]).toEqual([
    ["ipv4/conf/d3/rp_filter", "2"],
    ["ipv6/conf/d3/disable_ipv6", "0"],
  ]);
  ipIn(name, "link del d3");
  expect([...ask()]).toEqual([]);
});
