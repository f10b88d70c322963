/**
 * Effects of a host's real programs on the coordinator's set-up, which the files of docs/host.md end. They run in a
 * network namespace with folders of their own.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { requireCommand } from "../lab/command.ts";
import { createNetns, type Netns } from "../lab/netns.ts";
import { readFilesOfPage } from "./pages/script.ts";

let node: Netns;

beforeEach(async () => {
  node = await createNetns(`nd-${process.pid}`);
  await node.ip("link add uplink type veth peer name wire");
  await node.ip(`link add ${PAIR} type veth peer name pod`);
  for (const name of ["uplink", "wire", PAIR, "pod"]) await node.ip(`link set ${name} up`);
});
afterEach(() => node?.delete());

const PAIR = "veth0123456789a";
const page = (heading: string) => readFilesOfPage("docs/host.md", heading);
const PAGE = page("systemd-networkd");
const KEEP = "/etc/systemd/networkd.conf.d/50-berth.conf";
const UNMANAGED = "/etc/systemd/network/05-berth.network";
const only = (path: string) => ({ [path]: PAGE[path] ?? "" });

const NETWORK = "LinkLocalAddressing=no\nIPv6AcceptRA=no\n";
const UPLINK = {
  "/etc/systemd/network/uplink.network": `[Match]\nName=uplink\n[Network]\nAddress=192.0.2.2/24\n${NETWORK}`,
};
const ALL = { "/etc/systemd/network/zz.network": `[Match]\nName=*\n[Network]\n${NETWORK}` };

/**
 * Runs a script in the namespace, with empty folders that have these files. Neither the mounts nor the links are the
 * machine's own.
 */
async function runWith(folders: readonly string[], files: Readonly<Record<string, string>>, script: string) {
  const mounts = folders.map((folder) => `mount -t tmpfs none ${folder}\n`);
  const writes = Object.entries(files).map(
    ([path, text]) => `mkdir -p "$(dirname ${path})"; cat > ${path} <<'END'\n${text}\nEND\n`,
  );
  const text = [...mounts, ...writes, script].join("");
  return requireCommand(["ip", "netns", "exec", node.name, "unshare", "--mount", "sh", "-ec", text]);
}

/**
 * Waits until networkd has configured each of the five links, or left it alone; then ends it. Without systemd, udev's
 * database says that the links are there.
 */
const NETWORKD = `
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp /run/udev/data
touch /run/udev/control
chown -R systemd-network /run/systemd/netif
for file in /sys/class/net/*/ifindex; do printf 'I:1\\n' > /run/udev/data/n$(cat $file); done
SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console /lib/systemd/systemd-networkd > /run/log 2>&1 &
networkd=$!
trap 'kill $networkd' EXIT
states=/run/systemd/netif/links
isDone() { [ "$(cat $states/* 2> /dev/null | grep -cE '^ADMIN_STATE=(configured|unmanaged)$')" = 5 ]; }
turns=0
until isDone; do
  turns=$((turns + 1))
  [ $turns -lt 200 ] || { cat /run/log >&2; exit 1; }
  sleep 0.05
done
`;

/** Returns the coordinator's objects that are left. */
async function startNetworkd(files: Readonly<Record<string, string>>): Promise<string[]> {
  await node.ip("rule add pref 900 lookup 500 proto 98");
  await node.ip(`route replace 10.6.0.9/32 dev ${PAIR} table 500 proto 98`);
  await node.ip(`neigh replace 10.6.0.9 lladdr 02:00:00:00:00:09 dev ${PAIR} nud permanent`);
  await runWith(["/run", "/etc/systemd"], files, NETWORKD);
  const has = async (what: string, words: string, text: string) =>
    (await node.ip(words)).includes(text) ? [what] : [];
  return [
    ...(await has("rule", "rule show", "lookup 500")),
    ...(await has("route", "route show table all", "10.6.0.9")),
    ...(await has("neighbour", "neigh show nud permanent", "10.6.0.9")),
  ];
}

it.each<[what: string, files: Readonly<Record<string, string>>, kept: string[]]>([
  ["removes the rule when it configures some link", UPLINK, ["route", "neighbour"]],
  ["removes routes and neighbours of a pair, too, if a file fits it", { ...UPLINK, ...ALL }, []],
  [
    "removes the neighbours although it keeps foreign routes and rules",
    { ...UPLINK, ...ALL, ...only(KEEP) },
    ["rule", "route"],
  ],
  [
    "removes the rule although the pair is none of its links",
    { ...UPLINK, ...ALL, ...only(UNMANAGED) },
    ["route", "neighbour"],
  ],
  ["keeps all with both files of the page", { ...UPLINK, ...ALL, ...PAGE }, ["rule", "route", "neighbour"]],
])("systemd-networkd %s", async (_what, files, kept) => {
  expect(await startNetworkd(files)).toEqual(kept);
});

it.each<[what: string, files: Readonly<Record<string, string>>, value: string]>([
  ["replaces rp_filter of a new link by a pattern", {}, "2"],
  ["leaves 0 with the file of the page", page("sysctls"), "0"],
])("systemd-sysctl %s, as udev calls it", async (_what, files, value) => {
  // As systemd ships it.
  const pattern = "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n";
  const folders = ["/etc/sysctl.d", "/usr/lib/sysctl.d", "/run"];
  const settings = { "/usr/lib/sysctl.d/50-default.conf": pattern, ...files };
  const read = `cat /proc/sys/net/ipv4/conf/${PAIR}/rp_filter`;
  const command = `/lib/systemd/systemd-sysctl --prefix=/net/ipv4/conf/${PAIR}`;
  const text = await runWith(
    folders,
    settings,
    `echo 0 > /proc/sys/net/ipv4/conf/${PAIR}/rp_filter\n${command}\n${read}`,
  );
  expect(text.trim()).toBe(value);
});

it("nft replaces the page's own table, and no other", async () => {
  const files = page("nftables.service");
  const file = "/run/nftables.conf";
  const script = `nft add table inet berth; nft -f ${file}; nft -f ${file}; nft list tables`;
  const text = await runWith(["/run"], { [file]: files["/etc/nftables.conf"] ?? "" }, script);
  expect(text).toBe("table inet berth\ntable inet filter\n");
});
