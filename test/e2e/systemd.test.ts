/**
 * The unit that install.sh installs, under a real systemd in namespaces: ordering, restarts, upgrade, hardening,
 * logs, uninstall.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { lastRelease, readVersion } from "../../scripts/setup/version.mjs";
import { assembleLastHostLayout } from "../lab/host-layout.ts";
import { bootHost, type Host } from "../lab/systemd-host.ts";

const UNIT = "berth-agent.service";
const ADDRESS = /"192\.0\.2\.\d+\/24"/;

let host: Host;

beforeAll(async () => {
  host = await bootHost();
});
afterAll(() => host?.stop());

/** `192.0.2.100 lan Bound shop/web-0 eth0 web-0` */
async function allocations(): Promise<string[]> {
  const [, ...lines] = (await host.require("berthctl", "allocations")).trim().split("\n");
  return lines.map((line) => line.replace(/ +/g, " "));
}

it("the runtime starts when the agent serves, and its first pod gets an address", async () => {
  expect(await host.show("containerd.service", "Result")).toBe("success");
  const ready = Number(await host.show(UNIT, "ActiveEnterTimestampMonotonic"));
  expect(Number(await host.show("containerd.service", "ExecMainStartTimestampMonotonic"))).toBeGreaterThanOrEqual(
    ready,
  );
  expect(await host.require("berthctl", "allocations")).toContain("shop/first");
});

it("after kill -9 the agent is restarted, and an ADD meanwhile waits for it", async () => {
  const pid = await host.show(UNIT, "MainPID");
  await host.signal(UNIT, "KILL");
  await expect.poll(() => host.show(UNIT, "MainPID")).not.toBe(pid);
  expect(await host.add("killed")).toMatch(ADDRESS);
  expect(await host.show(UNIT, "NRestarts")).toBe("1");
  expect(await host.show(UNIT, "MainPID")).not.toBe(pid);
});

it("the agent survives daemon-reexec", async () => {
  const pid = await host.show(UNIT, "MainPID");
  await host.require("systemctl", "daemon-reexec");
  await expect.poll(() => host.show(UNIT, "ActiveState").catch(String), { timeout: 20_000 }).toBe("active");
  expect(await host.show(UNIT, "MainPID")).toBe(pid);
  expect(await host.add("reexecuted")).toMatch(ADDRESS);
});

/** Each file and directory below the cache directory: kind, mode, owner, name. */
async function listCache(): Promise<string[]> {
  return (await host.require("find", "/var/cache/berth", "-printf", "%y %m %U %f\\n")).trim().split("\n");
}

it("V8's compiled code is kept, for root alone", async () => {
  await host.require("systemctl", "restart", UNIT);
  const [directory, ...rest] = await listCache();
  expect(directory).toBe("d 700 0 berth");
  const files = rest.filter((line) => line.startsWith("f"));
  expect(files).not.toEqual([]);
  expect(files.filter((line) => !line.startsWith("f 600 0 "))).toEqual([]);
});

it("the last release takes over the state of this one, and an upgrade from it keeps the addresses of running pods", async () => {
  await assembleLastHostLayout(join(host.release, "last"));
  await host.require("sh", "/srv/release/last/install.sh");
  const current = async () => (await host.require("readlink", "/opt/berth/current")).trim();
  expect([await current(), await host.require("berthctl", "--version")]).toEqual([
    lastRelease.version,
    `${lastRelease.version}\n`,
  ]);
  await host.add("before");
  const allocated = await allocations();
  const pid = await host.show(UNIT, "MainPID");
  let isUpgraded = false;
  const upgraded = host.run("sh", "/srv/release/install.sh").finally(() => {
    isUpgraded = true;
  });
  const added: string[] = [];
  // ADDs meanwhile wait for the new agent. The pool has fifty addresses.
  for (; !isUpgraded && added.length < 30; await sleep(200)) added.push(await host.add(`meanwhile-${added.length}`));
  expect(await upgraded).toMatchObject({ exitCode: 0 });
  expect(added.filter((result) => !ADDRESS.test(result))).toEqual([]);
  expect(await host.show(UNIT, "MainPID")).not.toBe(pid);
  expect(await current()).toBe(readVersion());
  const now = await allocations();
  expect(allocated.filter((line) => !now.includes(line))).toEqual([]);
  expect(now.length).toBe(allocated.length + added.length);
});

it("detection finds an address that another machine has, in the pod's namespace", async () => {
  await host.sh(`
    ip link add lan0 type veth peer name lan1 && ip link set lan0 up
    ip netns add other && ip link set lan1 netns other && ip -n other addr add 192.0.2.60/24 dev lan1 && ip -n other link set lan1 up
    mkdir -p /etc/cni/net.d
    cat >/etc/berth/pools.d/taken.yaml <<'POOL'
apiVersion: ipam.vendor.io/v1
kind: IPPool
metadata: {name: taken}
spec: {subnet: 192.0.2.0/24, ips: [192.0.2.60]}
POOL
    berthctl network seg --type macvlan --master lan0 --ipv4-pool taken --ipv4-pool lan --detectIPConflict true --conflist >/etc/cni/net.d/10-seg.conflist`);
  await expect(host.chain("add", "seg", "probed-0")).rejects.toThrow(
    /Address 192\.0\.2\.60 of pool "taken" is in use by /,
  );
  expect(await host.chain("add", "seg", "probed-1")).toMatch(/"192\.0\.2\.1\d\d\/24"/);
  expect(await allocations()).toContainEqual(expect.stringMatching(/^192\.0\.2\.60 taken Quarantined /));
});

it("logrotate rotates the coordinator's log, and later lines are in the new file", async () => {
  await host.sh(
    'berthctl network logged --type macvlan --master lan0 --logOptions \'{"logFile": "/var/log/vendor/lan.log", "logLevel": "debug"}\' --conflist >/etc/cni/net.d/20-logged.conflist',
  );
  const log = "/var/log/vendor/lan.log";
  const read = (path: string) => host.require("cat", path).catch(() => "");
  await host.chain("add", "logged", "web-0");
  await expect.poll(() => read(log)).toContain("web-0");
  await host.require("logrotate", "--force", "--state", "/run/logrotate", "/etc/logrotate.d/berth");
  expect([await read(`${log}.1`), await read(log)]).toEqual([expect.stringContaining("web-0"), ""]);
  let pods = 0;
  const addAndRead = () => host.chain("add", "logged", `web-${++pods}`).then(() => read(log));
  await expect.poll(addAndRead, { timeout: 30_000 }).toMatch(/web-[1-9]/);
});

it("an uninstall is refused while no agent answers, also when the installed berthctl is gone", async () => {
  await host.sh("systemctl stop berth-agent && mv /opt/berth/current /opt/berth/away");
  const { exitCode, stderr } = await host.run("sh", "/srv/release/install.sh", "uninstall");
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining("the agent does not answer")]);
  await host.sh("test -e /var/lib/berth/state && mv /opt/berth/away /opt/berth/current && systemctl start berth-agent");
});

it("an uninstall sees a pod and an interface that are called as the state of a free address", async () => {
  await host.sh("sed 's/IFNAME=eth0/IFNAME=Cooling/; s/NAME=$1;/NAME=a Cooling b;/' /srv/add.sh >/srv/odd.sh");
  await host.require("sh", "/srv/odd.sh", "odd");
  const { exitCode, stderr } = await host.run("sh", "/opt/berth/current/install.sh", "uninstall");
  expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/ Bound +shop\/a Cooling b +Cooling /)]);
});

it("an uninstall is refused with the addresses in use, and with --force leaves /etc/berth alone", async () => {
  const refused = await host.run("sh", "/opt/berth/current/install.sh", "uninstall");
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("shop/first")]);
  const printed = await host.require("sh", "/opt/berth/current/install.sh", "uninstall", "--force", "--dry-run");
  expect(printed).toMatch(/^systemctl disable --now berth-agent\.service\n(.*\n)*remove \/opt\/cni\/bin\/berth\n/);
  expect(await host.show(UNIT, "ActiveState")).toBe("active");
  await host.require("sh", "/opt/berth/current/install.sh", "uninstall", "--force");
  const left = await host.require(
    "sh",
    "-c",
    "find / -xdev -name '*berth*' -not -path '/srv/*' -not -path '/proc/*'; ls /opt/cni/bin",
  );
  expect(left).toBe("/etc/berth\n");
});
