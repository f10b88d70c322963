/** Each defect of a host is found with a remedy, and a host without defects has no finding. */
import { expect, it } from "vitest";
import { checkAgent } from "../../../../host/findings/host/check-agent.ts";
import { diagnoseHost, type HostFacts, type NetworkFacts } from "../../../../host/findings/host/diagnose.ts";
import type { Finding } from "../../../../host/records/finding.ts";
import type { HealthRecord } from "../../../../host/records/health-record.ts";
import { cases } from "../../../world/rows.ts";

const plugin = (type: string, ipam = "", master = "", mtu = 0) => ({ type, ipam, master, mtu, devices: [] });
const ifacer = (...devices: string[]) => ({ ...plugin("ifacer"), devices });
const network = (file: string, ...plugins: NetworkFacts["plugins"]): NetworkFacts => ({ file, name: "lan", plugins });
const LAN = network("10-lan.conflist", plugin("macvlan", "berth", "eth0"), plugin("coordinator"));
const OTHER = network("05-cni.conflist", plugin("bridge", "host-local"));

const COORDINATOR_MODULES = ["veth", "nf_tables", "nft_ct", "nft_masq"];

const HEALTHY: HostFacts = {
  isRoot: true,
  timeS: Date.UTC(2026, 5, 1) / 1_000,
  kernel: "6.12.1",
  modules: new Set(["macvlan", "bridge", "8021q", ...COORDINATOR_MODULES]),
  confDirectory: "/etc/cni/net.d",
  networks: [LAN],
  unreadable: [],
  binDirectory: "/opt/cni/bin",
  plugins: ["berth", "coordinator", "ifacer"].map((name) => ({ name, kind: "own", hasAlias: true, mode: 0o755 })),
  sysctls: new Map([["net/ipv4/ip_forward", "1"]]),
  mtus: new Map([["eth0", 1_500]]),
  lowers: new Map(),
  files: [{ path: "/run/berth/agent.sock", uid: 0, mode: 0o600, isPrivate: true }],
  hostFiles: new Map(),
  leftovers: [],
  foreignRoutes: [],
};

function file(path: string, mode: number, uid = 0, isPrivate = true): Partial<HostFacts> {
  return { files: [{ path, uid, mode, isPrivate }] };
}

function leftover(ipam: string, ...addresses: [string, number][]): Partial<HostFacts> {
  return { leftovers: [{ path: "/x", ipam, addresses: new Map(addresses) }] };
}

const withPlugin = (
  name: string,
  kind: "own" | "absent" | "foreign",
  mode: number,
  hasAlias = false,
): Partial<HostFacts> => ({
  plugins: [{ name, kind, hasAlias, mode }],
});
const chain = (...plugins: NetworkFacts["plugins"]): Partial<HostFacts> => ({
  networks: [network("10.conflist", ...plugins)],
});
const mtus = (...links: [string, number][]): Partial<HostFacts> => ({ mtus: new Map(links) });
const WHEREABOUTS = network("20.conf", plugin("macvlan", "whereabouts", "eth0"));

const rows = cases<Partial<HostFacts>>`
  nothing on a healthy host ${{}} => nothing
  a user who is not root ${{ isRoot: false }} => ^warning permissions
  a clock of 1970 ${{ timeS: 0 }} => ^error clock: The clock says 1970
  an old kernel ${{ kernel: "4.19.0-13" }} => ^warning kernel: The kernel is 4\.19
  a kernel without macvlan ${{ modules: new Set(COORDINATOR_MODULES) }} => ^error kernel: .* no module macvlan
  a kernel without nft_masq ${{ modules: new Set(["macvlan", "veth", "nf_tables", "nft_ct"]) }}
    => ^error kernel: .* no module nft_masq
  a kernel without 8021q for a VLAN ${{ ...chain(ifacer("vlan")), modules: new Set() }} => ^error kernel: .* no module 8021q
  a kernel without bonding ${{ ...chain(ifacer("bond")), modules: new Set(["8021q"]) }} => ^error kernel: .* no module bonding
  nothing of 8021q without a VLAN ${{ ...chain(ifacer("bond")), modules: new Set(["bonding"]) }} => nothing
  nothing of modules that cannot be listed ${{ modules: undefined }} => nothing
  a missing plugin ${withPlugin("berth", "absent", 0)} => ^error plugins: \/opt\/cni\/bin\/berth does not exist
  another project's plugin ${withPlugin("ifacer", "foreign", 0o755)} => ^error plugins: .*ifacer is not Berth's
  another project's plugin beside Berth's ${withPlugin("ifacer", "foreign", 0o755, true)} => ^warning plugins: .*ifacer is
  nothing without a plugin whose alias is there ${withPlugin("ifacer", "absent", 0, true)} => nothing
  another project's plugin that is named ${withPlugin("coordinator", "foreign", 0o755, true)} => ^error plugins: .*tor is
  a plugin that is not executable ${withPlugin("berth", "own", 0o644)} => ^error plugins: .*berth is not executable
  a socket that others may write ${file("/run/s", 0o666)} => ^error permissions: \/run\/s has mode 0666: others may
  a registry that others may read ${file("/r", 0o644)} => ^warning permissions: \/r has mode 0644: others may read
  a plugin of a user ${file("/p", 0o755, 1_000)} => ^error permissions: \/p belongs to user 1000, not to root
  nothing of a directory for all with the sticky bit ${file("/t", 0o1777, 0, false)} => nothing
  no directory of definitions ${{ networks: undefined }} => ^error networks: \/etc\/cni\/net.d does not exist
  no definition ${{ networks: [] }} => ^error networks: .* has no network definition
  a file that cannot be read ${{ unreadable: ["a.conf cannot be read"] }} => ^error networks: a.conf
  another network that comes first ${{ networks: [OTHER, LAN] }}
    => ^warning networks: 05-cni.conflist comes before 10-lan.conflist
  nothing of Multus that comes first ${{ networks: [network("00-multus.conf", plugin("multus-shim")), LAN] }} => nothing
  a coordinator before the main plugin ${chain(plugin("coordinator"), plugin("macvlan", "berth", "eth0"))}
    => coordinator comes before macvlan
  an ifacer behind the main plugin ${chain(plugin("macvlan", "berth", "eth0.7"), plugin("berth-ifacer"))}
    => ifacer comes after macvlan
  a master that is missing ${mtus()} => ^error networks: .* has no interface "eth0"
  a small MTU ${mtus(["eth0", 1_200])} => ^error mtu: Interface eth0 has MTU 1200
  an MTU of a network that its master does not have ${chain(plugin("macvlan", "berth", "eth0", 9_000))}
    => ^error mtu: 10\.conflist: mtu is 9000, and interface eth0 has MTU 1500
  an MTU larger than that of the link below ${{ ...mtus(["eth0", 9_000], ["eth1", 1_500]), lowers: new Map([["eth0", ["eth1"]]]) }}
    => ^warning mtu: Interface eth0 has MTU 9000, and eth1 below it 1500
  no forwarding ${{ sysctls: new Map([["net/ipv4/ip_forward", "0"]]) }} => ^warning sysctls: net.ipv4.ip_forward is 0
  routes of Spiderpool ${{ foreignRoutes: ["10.0.0.0/8 dev veth0"] }}
    => ^warning leftovers: Routing table 500 has 1 routes that
  addresses of host-local in a network that is Berth's now ${leftover("host-local", ["lan", 3], ["other", 2])}
    => ^warning leftovers: \/x\/lan has 3 addresses that host-local gave to containers of network "lan"
  nothing of host-local in networks of its own ${leftover("host-local", ["other", 2])} => nothing
  whereabouts that no network uses ${leftover("whereabouts")} => ^warning leftovers: \/x is whereabouts's, and no
  nothing of whereabouts that a network uses ${{ ...leftover("whereabouts"), networks: [LAN, WHEREABOUTS] }} => nothing
`;

function expectFindings(findings: readonly Finding[], found: string): void {
  const patterns = found === "nothing" ? [] : found.split(" & ").map((text) => new RegExp(text));
  expect(findings.map(({ kind, level, text }) => `${level} ${kind}: ${text}`)).toEqual(
    patterns.map((text) => expect.stringMatching(text)),
  );
  for (const { remedy } of findings) expect(remedy.length).toBeGreaterThan(10);
}

it.each(rows)("finds %s", (_what, changes, found) => expectFindings(diagnoseHost({ ...HEALTHY, ...changes }), found));

const READY: HealthRecord = { status: "ready", version: "1.0.0", problems: [], spool: { waiting: 0, rejected: 0 } };

it.each(cases<Partial<HealthRecord>>`
  that is well ${{}} => nothing
  of another version ${{ version: "0.9.0" }} => ^warning agent: The agent has version 0.9.0
  with problems ${{ status: "not-ready", problems: ["a pool is invalid"] }}
    => ^error agent: The agent is not-ready$ & ^error agent: a pool is invalid$
  with problems that is ready ${{ problems: ["a pool is invalid"] }} => ^error agent: a pool is invalid
  with a spool ${{ spool: { waiting: 2, rejected: 1 } }}
    => ^warning agent: 2 DELs wait in the spool & ^error agent: 1 spooled requests could not be read
`)("finds what an agent says of itself: one %s", (_what, changes, found) =>
  expectFindings([...checkAgent({ ...READY, ...changes }, "1.0.0")], found),
);
