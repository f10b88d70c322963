/**
 * Two namespaces like those of a node and its pod, and everything that `ip`, `nft` and `sysctl` print of one, for
 * tests of observing and applying.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { type OpenNamespace, openNamespace } from "../../host/kernel/open-namespace.ts";

export interface Scene extends Disposable {
  readonly names: { readonly pod: string; readonly host: string };
  readonly pod: OpenNamespace;
  readonly host: OpenNamespace;
}

type Json = ReturnType<typeof JSON.parse>;

/** Runs `ip` with lines of its batch language in the namespace. */
export function ipIn(netns: string, ...lines: string[]): void {
  execFileSync("ip", ["-n", netns, "-batch", "-"], { input: lines.join("\n"), stdio: ["pipe", "ignore", "inherit"] });
}

/** Returns the output of `ip`. */
export function showIn(netns: string, line: string): string {
  return execFileSync("ip", ["-n", netns, ...line.split(" ")], { encoding: "utf8" });
}

/** `-d -j`, words parted by blanks; an empty list if the object does not exist. */
export function ipJson(netns: string, line: string): Json {
  const { stdout, status, stderr } = spawnSync("ip", ["-n", netns, "-d", "-j", ...line.split(" ")], {
    encoding: "utf8",
  });
  if (status !== 0 && !stderr.includes("FIB table does not exist")) throw new Error(stderr);
  return ["", "["].includes(stdout.trim()) ? [] : JSON.parse(stdout);
}

export function nftIn(netns: string, text: string): void {
  execFileSync("nsenter", [`--net=/run/netns/${netns}`, "nft", "-f", "-"], { input: text });
}

export function sysctlIn(netns: string, line: string): void {
  execFileSync("nsenter", [`--net=/run/netns/${netns}`, "sysctl", "-qw", ...line.split(" ")]);
}

const POD_LINES = [
  "link set lo up",
  "link add spare0 address 02:00:00:00:00:33 type bridge",
  "link add held0 address 02:00:00:00:00:34 type veth peer name held1",
  "link set held0 master spare0",
  "link set eth0 up alias first-NIC group 3",
  "link set net1 up",
  "addr add 10.6.0.21/24 dev eth0",
  "addr add fd06::21/64 dev eth0 nodad",
  "addr add 10.7.0.21/24 dev net1",
  "addr add fd07::21/64 dev net1 nodad",
  "route add default via 10.6.0.1 dev eth0",
  "route add ::/0 via fd06::1 dev eth0",
  "route add 10.96.0.0/12 via 10.6.0.2 dev eth0 src 10.6.0.21 proto 98 metric 50 mtu lock 1300",
  "route add 10.20.0.0/16 nexthop via 10.6.0.3 dev eth0 weight 2 nexthop via 10.7.0.3 dev net1",
  "route add fd20::/64 nexthop via fd06::3 dev eth0 nexthop via fd07::3 dev net1 weight 3",
  "route add ::/0 metric 2048 nexthop via fd06::4 dev eth0 nexthop via fd07::4 dev net1",
  "route add blackhole 10.21.0.0/16",
  "route add unreachable fd21::/64",
  "route add 203.0.113.0/24 via 192.0.2.77 dev eth0 onlink",
  "route add 10.22.0.0/16 via inet6 fd06::5 dev eth0",
  "route add default via 10.7.0.1 dev net1 table 102 proto 98",
  "route add ::/0 via fd07::1 dev net1 table 102",
  "route add 10.7.0.0/24 dev net1 table 102 scope link src 10.7.0.21",
  "rule add pref 100 from 10.7.0.21 lookup 102 protocol 98",

  "rule add pref 90 ipproto tcp dport 80 sport 1000-2000 lookup 102",
  "rule add pref 91 not to 10.0.0.0/8 fwmark 0x8/0xf iif eth0 uidrange 7-9 lookup 300000",
  "rule add pref 92 from all lookup main suppress_prefixlength 0",
  "rule add pref 93 oif net1 tos 0x10 prohibit",
  "neigh add 10.6.0.9 lladdr 02:00:00:00:00:09 nud permanent dev eth0",
  "neigh add fd06::9 lladdr 02:00:00:00:00:09 nud permanent dev eth0",
  "neigh add 10.6.0.10 lladdr 02:00:00:00:00:0a nud stale dev eth0",
  "neigh add 10.6.0.9 lladdr 02:00:00:00:00:0b nud permanent dev net1",
];

/** Of the pod: the kernel forgets a neighbour without use for a minute when the machine has many. */
const LASTING = "net.ipv4.neigh.eth0.gc_stale_time=86400";

const OTHERS_TABLES = `
table inet others {
	counter hits { packets 0 bytes 0 }
	chain inner { tcp dport 80 accept; }
	chain input { type filter hook input priority filter; policy accept; jump inner; }
}
table ip nat { chain post { type nat hook postrouting priority srcnat; oifname "eth0" masquerade; }; }`;

/**
 * A node with a bridge and a parent for macvlans, a pod with a veth and a macvlan; both with things of others in them.
 */
export function makeScene(prefix: string): Scene {
  const names = { pod: `${prefix}p${process.pid}`, host: `${prefix}h${process.pid}` };
  for (const netns of Object.values(names)) execFileSync("ip", ["netns", "add", netns]);
  for (const netns of Object.values(names)) {
    // link-local addresses come and go by themselves
    sysctlIn(netns, "net.ipv6.conf.all.addr_gen_mode=1 net.ipv6.conf.default.addr_gen_mode=1");
  }
  ipIn(
    names.host,
    "link set lo up",
    "link add br0 type bridge",
    "link add up0 address 02:00:00:00:01:00 type veth peer name far0",
    "link set far0 up",
    "link set up0 up",
    `link add eth0 address 02:00:00:00:00:21 netns ${names.pod} type veth peer name node-eth0`,
    "link set node-eth0 up master br0",
    `link add link up0 name net1 address 02:00:00:00:00:22 netns ${names.pod} type macvlan mode bridge`,
    "link set br0 up",
    "addr add 10.6.0.1/24 dev br0",
    "addr add fd06::1/64 dev br0 nodad",
    "route add 10.30.0.0/16 via 10.6.0.77",
    "route add 10.31.0.1/32 dev br0 table 500 proto 98",
    "rule add pref 900 from all lookup 500",
    "neigh add 10.6.0.78 lladdr 02:00:00:00:00:78 nud permanent dev br0",
  );
  sysctlIn(names.pod, LASTING);
  ipIn(names.pod, ...POD_LINES);
  execFileSync("ip", ["-6", "-n", names.pod, ..."rule add pref 100 from fd07::21 lookup 102".split(" ")]);
  for (const netns of Object.values(names)) nftIn(netns, OTHERS_TABLES);
  const [pod, host] = [names.pod, names.host].map((name) => openNamespace(`/run/netns/${name}`));
  if (pod === undefined || host === undefined) throw new Error("no namespaces");
  return {
    names,
    pod,
    host,
    [Symbol.dispose]() {
      for (const namespace of [pod, host]) namespace[Symbol.dispose]();
      for (const netns of Object.values(names)) unmountNetns(netns);
    },
  };
}

/** `ip netns del` without its complaint when it is gone already. */
export function unmountNetns(netns: string): void {
  spawnSync("ip", ["netns", "del", netns]);
}

/** Without counters, ages, and the numbers of links that were made again. */
export function withoutVolatile(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutVolatile);
  if (typeof value !== "object" || value === null) return value;
  const moving = "ifindex link_index used confirmed updated probes handle refcnt packets bytes".split(" ");
  const kept = Object.entries(value).filter(([key]) => !moving.includes(key) && !key.endsWith("_timer"));
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutVolatile(part)]));
}

const FOLDERS = ["/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv6/conf", "/proc/sys/net/ipv4/ip_forward"];

/** All there is to see in a namespace. */
export function dumpOf(netns: string): Json {
  const ip = (options: readonly string[], ...lines: string[]): Json[] =>
    run(["ip", "-n", netns, "-d", "-j", ...options, "-batch", "-"], lines.join("\n"))
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => withoutVolatile(JSON.parse(line)));
  const both = ip([], "link", "addr", "route show table all", "rule");
  const six = ip(["-6"], "route show table all", "rule");
  const neighbours = ip([], "neigh")
    .flat()
    .map((one) => JSON.stringify(one));
  // Not `ip netns exec`, which mounts /sys each time; some settings cannot be read.
  const script = `nft -j list ruleset; grep -rs '' ${FOLDERS.join(" ")}`;
  const [nft = "", ...sysctls] = run(["nsenter", `--net=/run/netns/${netns}`, "sh", "-c", script])
    .trim()
    .split("\n");
  return { both, six, neighbours: neighbours.sort(), nft: withoutVolatile(JSON.parse(nft)), sysctls: sysctls.sort() };
}

function run([command = "", ...words]: readonly string[], input = ""): string {
  return spawnSync(command, words, { encoding: "utf8", input }).stdout;
}
