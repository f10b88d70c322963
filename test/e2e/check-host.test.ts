/**
 * `berthctl check` on a host with the built agent and plugins: nothing on a healthy one, and each fault that is made
 * by hand, with its remedy.
 */
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { readFiles } from "../../host/cli/host-checks/read-host.ts";
import { mergeFolders } from "../../host/findings/host/ini-file.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { type Agent, startAgent } from "../lab/agent.ts";
import { type CommandOutcome, formatShell, mountOver, requireCommand, runCommand } from "../lab/command.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { addBridge, addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const MACVLAN = { type: "macvlan", master: "br0", ipam: { type: "berth" } };
const COORDINATOR = { type: "coordinator" };

/** The agent does not see the namespaces of other tests, which may have one address twice. */
const WITHOUT_NETNS = ["unshare", "--mount", "sh", "-ec", 'mount -t tmpfs none /run/netns; exec "$@"', "sh"];
const NOTHING = expect.stringMatching(/^node \S+: 0 findings; compared 0 records and 0 addresses on NICs[^\n]*\n$/);

const directory = temporaryDirectory("berth-check-host-");
let host: Netns;
let other: Netns;
let agent: Agent;
/** Directories that check looks at; made anew for each test. */
let place: { readonly conf: string; readonly bin: string; readonly root: string };
let rounds = 0;

beforeAll(async () => {
  host = await createNetns(`doc-${process.pid}`);
  other = await createNetns(`doc-o-${process.pid}`);
  await addVeth({ netns: host, name: "v0" }, { netns: other, name: "v0" });
  await addBridge(host, "br0", ["v0"]);
  for (const [key, value] of [
    ["ipv4/ip_forward", "1"],
    ["ipv6/conf/all/forwarding", "1"],
  ] as const)
    writeSysctl(host.path, key, value);
  const config = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.83.0.0/24") };
  agent = await startAgent({ config, node: host, wrapper: WITHOUT_NETNS });
});
afterAll(async () => {
  await agent?.delete();
  await host?.delete();
  await other?.delete();
});

beforeEach(() => {
  const own = join(directory, String(++rounds));
  place = { conf: join(own, "net.d"), bin: join(own, "bin"), root: join(own, "root") };
  mkdirSync(place.conf, { recursive: true });
  cpSync(join(root, "dist", "bin"), place.bin, { recursive: true });
  define("10-lan.conflist", "lan", MACVLAN, COORDINATOR);
  define("20-inner.conflist", "inner", { ...MACVLAN, master: "net7", linkInContainer: true }, COORDINATOR);
});

function define(file: string, name: string, ...plugins: readonly object[]): void {
  writeFileSync(join(place.conf, file), JSON.stringify({ cniVersion: "1.0.0", name, plugins }));
}

/** As the chart sets it in the agent's pods. */
const placeEnv = () => ({ BERTH_CNI_CONF_DIR: place.conf, BERTH_CNI_BIN_DIR: place.bin, BERTH_HOST_ROOT: place.root });

/** In the host's namespaces, with a /var/lib of its own that the script fills. */
function check(script = "", env: Readonly<Record<string, string>> = {}, more = ""): Promise<CommandOutcome> {
  return run(`check ${more}`, script, env);
}

async function run(words: string, script = "", env: Readonly<Record<string, string>> = {}): Promise<CommandOutcome> {
  const flags = `${words} --socket ${env.SOCKET ?? agent.socket}`;
  const command = `exec ${formatShell([process.execPath, join(root, "dist", "berthctl.mjs")])} ${flags}`;
  const argv = [
    "ip",
    "netns",
    "exec",
    host.name,
    "sh",
    "-ec",
    `${mountOver("mount -t tmpfs none /var/lib")}\n${script}\n${command}`,
  ];
  return runCommand(argv, { env: { BERTH_STATE: agent.state, ...placeEnv(), ...env } });
}

/** Each finding is there, with its remedy (docs/findings.md) in the next line, and no other one. */
function expectAll({ stdout, stderr }: CommandOutcome, findings: readonly RegExp[]): void {
  for (const finding of findings) expect(stdout, stderr).toMatch(finding);
  expect(stdout.split("\n").length, stdout).toBe(2 + 2 * findings.length);
}

it("knows a master by its alternative name", async () => {
  await host.ip("link property add dev br0 altname lan-of-this-node");
  define("10-lan.conflist", "lan", { ...MACVLAN, master: "lan-of-this-node" }, COORDINATOR);
  const { stdout, exitCode } = await check();
  expect([stdout, exitCode]).toEqual([expect.not.stringContaining("has no interface"), 0]);
});

it("finds nothing wrong on a healthy host", async () => {
  expect(await check()).toEqual({ exitCode: 0, stdout: NOTHING, stderr: "" });
});

it("finds faults of files", async () => {
  define("05-other.conflist", "other", { type: "bridge", ipam: { type: "host-local" } });
  writeFileSync(join(place.conf, "20-broken.conf"), "{");
  define("30-eth7.conflist", "eth7", { ...MACVLAN, master: "eth7" }, COORDINATOR);
  define("40-large.conflist", "large", { ...MACVLAN, mtu: 9_000 }, COORDINATOR);
  mkdirSync(join(place.conf, "whereabouts.d"));
  writeFileSync(join(place.bin, "coordinator"), "of another project", { mode: 0o755 });
  for (const name of ["ifacer", "berth-ifacer"]) rmSync(join(place.bin, name));
  chmodSync(join(place.bin, "berth"), 0o777);
  const addresses = "touch lock last_reserved_ip.0 10.6.0.4 10.6.0.5";
  const found = await check(`mkdir -p /var/lib/cni/networks/lan; cd /var/lib/cni/networks/lan; ${addresses}; cd /`);
  expectAll(found, [
    /^warning: networks: 05-other\.conflist comes before 10-lan\.conflist: pods get network "other", not "lan"$/m,
    /^networks: .*20-broken\.conf cannot be read: /m,
    /^networks: 30-eth7\.conflist: the node has no interface "eth7"$/m,
    /^mtu: 40-large\.conflist: mtu is 9000, and interface br0 has MTU 1500/m,
    /^plugins: .*\/coordinator is not Berth's: another project installed it$/m,
    /^plugins: .*\/ifacer does not exist$/m,
    /^permissions: .*\/berth has mode 0777: others may write it$/m,
    /^warning: leftovers: \/var\/lib\/cni\/networks\/lan has 2 addresses that host-local gave to containers/m,
    /^warning: leftovers: .*\/whereabouts\.d is whereabouts's, and no network definition in .* uses it$/m,
  ]);
  expect(found.exitCode).toBe(1);
});

/** A file of another program, below the host's root. */
function put(path: string, text: string): void {
  mkdirSync(join(place.root, dirname(path)), { recursive: true });
  writeFileSync(join(place.root, path), text);
}

it("takes the files of systemd-networkd in systemd's own order", async () => {
  const files = [
    "etc/systemd/networkd.conf",
    "etc/systemd/networkd.conf.d/30.conf",
    "run/systemd/networkd.conf.d/20.conf",
    "usr/lib/systemd/networkd.conf.d/10.conf",
    "usr/lib/systemd/networkd.conf.d/20.conf",
    "usr/lib/systemd/networkd.conf.d/40.conf",
  ];
  for (const file of files) put(file, `# ${file}\n`);
  const { stdout } = await runCommand([
    "systemd-analyze",
    `--root=${place.root}`,
    "cat-config",
    "systemd/networkd.conf",
  ]);
  const order = [...stdout.matchAll(/^# ((?:etc|run|usr).*)$/gm)].map(([, file]) => `/${file}`);
  const found = readFiles(
    place.root,
    files.map((file) => `/${file}`),
  );
  const folders = ["/etc", "/run", "/usr/lib"].map((layer) => `${layer}/systemd/networkd.conf.d`);
  expect(["/etc/systemd/networkd.conf", ...mergeFolders(found, folders).map(([file]) => file)]).toEqual(order);
});

it("finds faults of the kernel's state and the agent's own files", async () => {
  await host.ip("route add 10.99.0.0/16 dev br0 table 500");
  await host.ip("link set v0 mtu 1400");
  await host.ip("link set br0 mtu 1500");
  writeSysctl(host.path, "ipv4/ip_forward", "0");
  chmodSync(agent.socket, 0o666);
  chmodSync(agent.state, 0o755);
  try {
    expectAll(await check(), [
      /^warning: leftovers: Routing table 500 has 1 routes that are not Berth's, such as "10\.99\.0\.0\/16 dev br0/m,
      /^warning: mtu: Interface br0 has MTU 1500, and v0 below it 1400: large packets are dropped$/m,
      /^warning: sysctls: net\.ipv4\.ip_forward is 0: /m,
      /^permissions: .*agent\.sock has mode 0666/m,
      /^warning: permissions: .*state has mode 0755: others may read/m,
    ]);
  } finally {
    await host.ip("route del 10.99.0.0/16 table 500");
    await host.ip("link set v0 mtu 1500");
    await host.ip("link set br0 mtu 1500");
    writeSysctl(host.path, "ipv4/ip_forward", "1");
    chmodSync(agent.socket, 0o600);
    chmodSync(agent.state, 0o700);
  }
});

it("checks the host without an agent, and names the parts not checked and why", async () => {
  const env = { SOCKET: join(directory, "no.sock") };
  const missing = `not-compared: No agent answers on ${env.SOCKET}: connect ENOENT \\S+\n  Start it; its log says why it ended: journalctl -u berth-agent\n`;
  expect(await check("", env)).toEqual({
    ...{ exitCode: 3, stderr: "" },
    stdout: expect.stringMatching(new RegExp(`^node \\S+: 1 finding; compared nothing\n${missing}$`)),
  });
  for (const name of ["ifacer", "berth-ifacer"]) rmSync(join(place.bin, name));
  expect(await check("", env)).toMatchObject({
    exitCode: 1,
    stdout: expect.stringMatching(
      new RegExp(`2 findings; compared nothing\nplugins: .*ifacer does not exist\n  Install it .*\n${missing}$`),
    ),
  });
});

it("definitions and plugins that never end are named, and block nothing", async () => {
  const kinds = { "1.conflist": ["mkfifo"], "2.conf": ["ln", "-s", "/dev/zero"], "3.json": ["truncate", "-s", "8G"] };
  for (const [file, [program = "", ...words]] of Object.entries(kinds))
    await requireCommand([program, ...words, join(place.conf, file)]);
  rmSync(join(place.bin, "berth"));
  await requireCommand(["mkfifo", join(place.bin, "berth")]);
  const { stdout } = await check();
  expect(stdout).toContain("1.conflist cannot be read: it is not a regular file");
  expect(stdout).toContain("2.conf cannot be read: it is not a regular file");
  expect(stdout).toContain("3.json cannot be read: it has 8589934592 bytes, at most 1048576 are read");
  const install = [process.execPath, join(root, "dist/berth-agent.mjs"), "install", "--plugins-only"];
  const { exitCode, stderr } = await runCommand([...install, "--cni-bin-dir", place.bin], { timeoutMs: 20_000 });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining("/berth belongs to another product")]);
});
