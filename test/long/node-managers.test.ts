/**
 * Programs that manage a host's network, as Debian has them, beside running pods: objects of the node's side that they
 * remove are back within seconds.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { macvlan } from "../lab/manifests.ts";
import { bootHost, type Host } from "../lab/systemd-host.ts";
import { eventually } from "../lab/waiting.ts";

const NETWORK = "underlay";
const LIST = JSON.stringify({
  cniVersion: "1.0.0",
  name: NETWORK,
  plugins: [macvlan("eth0"), { type: "coordinator", serviceCIDR: ["10.96.0.0/16"] }],
});
/** Within these five seconds pings are back. */
const REPAIR_MS = 5_000;

let host: Host;
let pod: string;

/**
 * Settings of systemd-networkd, which then has the node's NIC. With a read-only /sys it does not wait for udev, which
 * no host in namespaces has.
 */
const UPLINK = `[Match]
Name=eth0
[Network]
LinkLocalAddressing=no
IPv6AcceptRA=no
Address=192.0.2.2/24
`;

beforeAll(async () => {
  host = await bootHost();
  await host.sh("ip link add eth0 type veth peer name segment && ip link set eth0 up && ip link set segment up");
  await host.sh(
    `mkdir -p /etc/cni/net.d /etc/systemd/network; cat >/etc/systemd/network/eth0.network <<'FILE'\n${UPLINK}FILE`,
  );
  await host.sh("mount -o remount,ro /sys && systemctl restart systemd-networkd");
  const isConfigured = (links: string) => /eth0 .*configured/.test(links);
  await eventually(() => host.require("networkctl", "--no-pager"), isConfigured, 10_000);
  await host.sh(`cat >/etc/cni/net.d/underlay.conflist <<'LIST'\n${LIST}\nLIST`);
  const { ips } = JSON.parse(await host.chain("add", NETWORK, "managed")) as { ips: { address: string }[] };
  pod = ips[0]?.address.split("/")[0] ?? "no address";
});

afterAll(() => host?.stop());

async function reaches(): Promise<boolean> {
  return (await host.run("ping", "-c1", "-W1", pod)).exitCode === 0;
}

/** Lines of the agent's journal about repairs. */
async function repairs(): Promise<string[]> {
  const lines = await host.require("journalctl", "--unit=berth-agent", "--output=cat");
  return lines.split("\n").filter((line) => line.includes("had removed of the node's network"));
}

/** Each test begins without an episode that is under way. */
beforeEach(async () => {
  await host.require("systemctl", "restart", "berth-agent");
  expect(await eventually(reaches, (isReached) => isReached, REPAIR_MS)).toBe(true);
});

async function expectRepair(act: () => Promise<unknown>, isGone: RegExp): Promise<string> {
  const told = await repairs();
  await act();
  const said = await eventually(repairs, (lines) => lines.length > told.length, REPAIR_MS);
  expect(said).toHaveLength(told.length + 1);
  expect(said.at(-1)).toMatch(isGone);
  expect(await eventually(reaches, (isReached) => isReached, REPAIR_MS)).toBe(true);
  await host.chain("check", NETWORK, "managed");
  return said.at(-1) ?? "";
}

it("systemd-networkd with its defaults, restarted and told to configure the node's NIC again", async () => {
  const act = () => host.sh("systemctl restart systemd-networkd && networkctl reconfigure eth0");
  expect(await expectRepair(act, /the rule/)).toContain("docs/host.html#systemd-networkd");
});

it("systemd-networkd with the settings that the page names leaves the rule alone", async () => {
  await host.sh("mkdir -p /etc/systemd/networkd.conf.d");
  const settings = "[Network]\\nManageForeignRoutes=no\\nManageForeignRoutingPolicyRules=no\\n";
  await host.sh(`printf '${settings}' >/etc/systemd/networkd.conf.d/berth.conf`);
  const told = await repairs();
  await host.sh("systemctl restart systemd-networkd && networkctl reconfigure eth0");
  await host.require("/opt/cni/bin/berth", "--probe", "ready");
  expect(await repairs()).toEqual(told);
  expect(await reaches()).toBe(true);
});

it("nftables.service with Debian's file, reloaded", async () => {
  await host.sh("printf '#!/usr/sbin/nft -f\\nflush ruleset\\ntable inet filter { }\\n' >/etc/nftables.conf");
  await host.require("systemctl", "start", "nftables");
  await host.require("systemctl", "restart", "berth-agent");
  const line = await expectRepair(() => host.require("systemctl", "reload", "nftables"), /the nf_tables table/);
  expect(line).toContain("docs/host.html#nftablesservice");
});

it("NetworkManager with its defaults, which takes a pair for a NIC to be configured, and gives it up", async () => {
  await host.sh("mkdir -p /etc/NetworkManager/system-connections && systemctl restart NetworkManager");
  const pairOf = (devices: string) => /^(veth[0-9a-f]{11}) +ethernet +connecting/m.exec(devices)?.[1];
  const devices = await eventually(
    () => host.require("nmcli", "device"),
    (found) => pairOf(found) !== undefined,
    10_000,
  );
  const pair = pairOf(devices) ?? `no pair in ${devices}`;
  await host.require("nmcli", "device", "disconnect", pair);
  expect(await eventually(reaches, (isReached) => isReached, REPAIR_MS)).toBe(true);
  await host.require("systemctl", "restart", "NetworkManager");
  expect(await eventually(reaches, (isReached) => isReached, REPAIR_MS)).toBe(true);
  await host.chain("check", NETWORK, "managed");
});
