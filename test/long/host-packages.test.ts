/**
 * The packages of Debian's and Red Hat's format on a host under systemd: installed, upgraded and removed while pods
 * run. Their Node.js is the host's copy, to be made in a moment; the whole ones are checked in release.test.ts.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readFacts } from "../../scripts/release/facts.ts";
import { FORMATS, packageEntries, packageVersion, writePackage } from "../../scripts/release/packages.ts";
import { requireCommand, runCommand } from "../lab/command.ts";
import { hostFiles } from "../lab/host-layout.ts";
import { bootHost, type Host } from "../lab/systemd-host.ts";

const UNIT = "berth-agent.service";
const PLUGINS = "/opt/cni/bin/berth";
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const facts = readFacts();
const later = { ...facts, version: `${facts.version}.later` };
let host: Host;

beforeAll(async () => {
  host = await bootHost({ bare: true });
  const entries = packageEntries(hostFiles(Buffer.from('#!/bin/sh\nexec /srv/release/lib/node "$@"\n')), facts);
  for (const format of FORMATS)
    for (const [name, of] of [
      ["first", facts],
      ["later", later],
    ] as const)
      writeFileSync(join(host.release, `${name}.${format}`), writePackage(format, architecture, entries, of));
  await host.sh(`
    ip link add lan0 type veth peer name lan1 && ip link set lan0 up
    ip netns add other && ip link set lan1 netns other
    ip -n other addr add 192.0.2.2/24 dev lan1 && ip -n other link set lan1 up`);
}, 300_000);
afterAll(() => host?.stop());

/** The address of a new pod in the network of lan0. */
async function addPod(name: string): Promise<string> {
  const { ips } = JSON.parse(await host.chain("add", "lan", name));
  return ips[0].address.replace(/\/.*/, "");
}

const ping = (address: string) => host.run("ip", "netns", "exec", "other", "ping", "-c1", "-W5", address);
const allocations = () => host.require("berthctl", "allocations");
const isThere = async (path: string) => (await host.run("test", "-e", path)).exitCode === 0;

async function configure(): Promise<void> {
  await host.sh(`
    cp /usr/share/doc/berth/examples/pool.yaml /etc/berth/pools.d/lan.yaml
    mkdir -p /etc/cni/net.d
    berthctl network lan --type macvlan --master lan0 --conflist >/etc/cni/net.d/10-lan.conflist
    echo 'BERTH_AGENT_OPTIONS=--config /etc/berth/pools.d --log-format text' >/etc/berth/agent.env`);
}

const FORMS = {
  deb: {
    install: (name: string) => host.require("dpkg", "--install", `/srv/release/${name}.deb`),
    remove: () => host.require("dpkg", "--remove", "berth"),
    zsh: "vendor-completions",
  },
  rpm: {
    // Debian's rpm knows none of Debian's packages, so it has no C library.
    install: (name: string) => host.require("rpm", "--upgrade", "--nodeps", `/srv/release/${name}.rpm`),
    remove: () => host.require("rpm", "--erase", "--nodeps", "berth"),
    zsh: "site-functions",
  },
} as const;

it.each(FORMATS)(
  "%s: installed, upgraded and removed, while a pod keeps its address and answers",
  async (format) => {
    const { install, remove, zsh } = FORMS[format];
    await install("first");
    expect(await isThere(`/usr/share/zsh/${zsh}/_berthctl`)).toBe(true);
    await expect.poll(() => host.show(UNIT, "ActiveState"), { timeout: 30_000 }).toBe("active");
    expect(await host.show(UNIT, "UnitFileState")).toBe("enabled");
    await configure();
    const address = await addPod(`web-${format}`);
    expect(await ping(address)).toMatchObject({ exitCode: 0 });

    const pid = await host.show(UNIT, "MainPID");
    await install("later");
    await expect.poll(() => host.show(UNIT, "ActiveState"), { timeout: 30_000 }).toBe("active");
    expect(await host.show(UNIT, "MainPID")).not.toBe(pid);
    expect(await host.require("cat", "/etc/berth/agent.env")).toContain("--log-format text");
    expect(await allocations()).toContain(address);
    expect(await ping(address)).toMatchObject({ exitCode: 0 });
    expect(await addPod(`db-${format}`)).not.toBe(address);

    await remove();
    expect([await isThere("/usr/bin/berthctl"), await isThere(PLUGINS)]).toEqual([false, true]);
    expect(await host.show(UNIT, "ActiveState")).not.toBe("active");
    expect(await ping(address)).toMatchObject({ exitCode: 0 });
    // A DEL meanwhile is kept for the next agent.
    await host.chain("del", "lan", `db-${format}`);

    await install("later");
    await expect
      .poll(() => host.run("berthctl", "allocations", "-o", "json").then(({ stdout }) => stdout), { timeout: 30_000 })
      .toContain("Cooling");
    expect(await allocations()).toContain(address);
    await host.chain("del", "lan", `web-${format}`);
    await remove();
    expect([await isThere(PLUGINS), await isThere("/var/lib/berth/state")]).toEqual([false, true]);
    await host.sh("rm -rf /var/lib/berth /etc/berth/agent.env* /etc/berth/pools.d/lan.yaml");
  },
  300_000,
);

it("a purge of the deb leaves the administrator's files", async () => {
  await host.require("dpkg", "--install", "/srv/release/first.deb");
  await configure();
  await host.require("dpkg", "--purge", "berth");
  const left = await host.require(
    "sh",
    "-c",
    "find /etc/berth /var/lib/berth /var/cache/berth /run/berth /usr/lib/berth -type f 2>/dev/null || true",
  );
  expect(left).toBe("/etc/berth/pools.d/lan.yaml\n");
});

it("refuses to be installed beside an installation of install.sh", async () => {
  await host.require("sh", "/srv/release/install.sh", "--root", "/");
  const { exitCode, stderr } = await host.run("dpkg", "--install", "/srv/release/first.deb");
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringContaining("/opt/berth/current/install.sh uninstall --keep-state"),
  ]);
});

it("lintian and rpm find nothing wrong", async () => {
  const printed = await runCommand([
    "lintian",
    "--allow-root",
    "--fail-on",
    "error,warning",
    join(host.release, "first.deb"),
  ]);
  expect(printed).toMatchObject({ exitCode: 0 });
  const rpm = join(host.release, "first.rpm");
  expect(await requireCommand(["rpm", "--checksig", rpm])).toContain("digests OK");
  expect(await requireCommand(["rpm", "--query", "--info", "--package", rpm])).toContain(packageVersion(facts.version));
  const builds = ["1.0.0-rc.1", "1.0.0-rc.1.dev.9+ffff", "1.0.0-rc.1.dev.12+0123", "1.0.0-rc.2", "1.0.0"].map(
    packageVersion,
  );
  const order = builds.slice(1).map((newer, at) => `rpm.vercmp('${newer}', '${builds[at]}')`);
  expect(await requireCommand(["rpm", "--eval", `%{lua:print(${order})}`])).toBe("1\t1\t1\t1\n");
});

it("has the same bytes when it is built again", () => {
  const entries = packageEntries(hostFiles(Buffer.from("node")), facts);
  for (const format of FORMATS) {
    const build = () => writePackage(format, architecture, entries, facts);
    expect(build().equals(build())).toBe(true);
  }
});
