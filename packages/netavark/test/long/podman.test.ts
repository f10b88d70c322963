/**
 * Podman 5 on a host under systemd, with the network of docs/install-host.md: netavark executes the driver that
 * install.sh has linked.
 */
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { netavarkDir, referenceTool, root } from "../../../../scripts/setup/paths.mjs";
import { requireCommand } from "../../../../test/lab/command.ts";
import { ipPool } from "../../../../test/lab/manifests.ts";
import { bootHost, type Host } from "../../../../test/lab/systemd-host.ts";

const page = readFileSync(join(root, "docs", "install-host.md"), "utf8");
const [CREATE = "", RUN = ""] =
  page.match(/^podman .*$/gm)?.filter((line) => !line.startsWith("podman run --rm")) ?? [];

/**
 * The storage needs no kernel module. The cgroups of a host in namespaces have no controllers, and this Podman has no
 * seccomp.
 */
const FILES = `
mkdir -p /etc/containers
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
cat >/etc/containers/storage.conf <<'CONF'
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
CONF
cat >/etc/containers/containers.conf <<'CONF'
[containers]
pids_limit = 0
seccomp_profile = "unconfined"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
helper_binaries_dir = ["/srv/release/podman"]
runtime = "runc"
[network]
network_backend = "netavark"
CONF
ln -s /srv/release/podman/podman /usr/local/bin/podman
ip link add eth0 type veth peer name segment && ip link set eth0 up && ip link set segment up
ip addr add 192.0.2.1/24 dev segment
cat >/etc/berth/pools.d/six.yaml <<'POOL'
${ipPool("six", "2001:db8::/64", { ips: ["2001:db8::100-2001:db8::150"], gateway: "2001:db8::1" })}
POOL
cat >/etc/berth/pools.d/conf.yaml <<'CONF'
apiVersion: v1
kind: ConfigMap
metadata: {name: vendor-conf}
data:
  conf.yml: |
    allocationCooldown: 0s
CONF
`;

let host: Host;

beforeAll(async () => {
  host = await bootHost();
  const [image, programs] = [join(host.release, "image"), join(host.release, "podman")];
  for (const folder of [join(image, "bin"), programs]) mkdirSync(folder, { recursive: true });
  copyFileSync(join(referenceTool("podman").directory, "podman"), join(programs, "podman"));
  copyFileSync(join(netavarkDir(), "bin", "netavark"), join(programs, "netavark"));
  copyFileSync("/bin/busybox", join(image, "bin", "busybox"));
  for (const name of ["ip", "sleep", "ping"]) symlinkSync("busybox", join(image, "bin", name));
  await requireCommand(["tar", "-C", image, "-cf", join(host.release, "image.tar"), "."]);
  await host.sh(FILES);
  await host.require("podman", "import", "/srv/release/image.tar", "localhost/box");
  await host.sh(CREATE);
});

afterAll(() => host?.stop());

/** Starts a container by the page's command. */
const start = (name: string, options = "") =>
  host.sh(
    `${RUN.replace("podman run", `podman run --detach --name ${name} ${options}`).replace("IMAGE", "localhost/box")} /bin/sleep 600`,
  );
const remove = (...names: string[]) => host.require("podman", "rm", "--force", "--time", "0", ...names);
const addresses = async (name: string): Promise<string[]> => {
  const printed = await host.require("podman", "exec", name, "/bin/ip", "addr", "show", "dev", "eth0");
  return [...printed.matchAll(/inet6? ([0-9a-f.:]+)\/\d+ .*scope global/g)].map((match) => match[1] ?? "");
};
const bound = async (): Promise<string[]> =>
  (await host.require("berthctl", "allocations", "--state", "bound", "--output", "name")).split("\n").filter(Boolean);

it("two containers have addresses of the pool, which Podman shows, reach each other, and give them back", async () => {
  const before = await bound();
  await start("web");
  await start("client", "--cap-add NET_RAW");
  const [address = ""] = await addresses("web");
  expect(address).toMatch(/^192\.0\.2\.1\d\d$/);
  expect(await host.require("berthctl", "allocations")).toMatch(new RegExp(`^${address} +lan +Bound +/web `, "m"));
  const format =
    "{{with .NetworkSettings.Networks.lan}}{{.IPAddress}}/{{.IPPrefixLen}} {{.Gateway}} {{.MacAddress}}{{end}}";
  const shown = (await host.require("podman", "inspect", "web", "--format", format)).trim();
  expect(shown).toMatch(new RegExp(`^${address}/24 192\\.0\\.2\\.1 ([0-9a-f]{2}:){5}[0-9a-f]{2}$`));
  expect(await host.require("podman", "exec", "web", "/bin/ip", "link")).toContain(shown.split(" ")[2]);
  await host.require("podman", "exec", "client", "/bin/ping", "-c1", "-W2", address);
  await host.require("podman", "restart", "--time", "0", "web");
  expect(await addresses("web")).toEqual([address]);
  await remove("web", "client");
  expect(await bound()).toEqual(before);
});

it("a container gets the addresses of --ip and --mac-address, and one of both families", async () => {
  await start("fixed", "--ip 192.0.2.140 --mac-address 02:00:00:00:00:0a");
  expect(await addresses("fixed")).toEqual(["192.0.2.140"]);
  expect(await host.require("podman", "exec", "fixed", "/bin/ip", "link", "show", "eth0")).toContain(
    "02:00:00:00:00:0a",
  );
  await host.sh("podman network create -d berth -o parent=eth0 -o ipv4-pool=lan -o ipv6-pool=six dual");
  await host.sh("podman run --detach --name dual --network dual localhost/box /bin/sleep 600");
  expect(await addresses("dual")).toEqual([
    expect.stringMatching(/^192\.0\.2\.1/),
    expect.stringMatching(/^2001:db8::1/),
  ]);
  await remove("fixed", "dual");
});

it("Podman shows why a network is refused, and that the agent is down", async () => {
  const refused = await host.run("sh", "-c", "podman network create -d berth -o master=eth0 -o vlan=5000 bad");
  expect(refused.stderr).toContain('field "options.vlan": found 5000, want a whole number from 0 to 4094');
  const before = await bound();
  await start("left");
  await host.require("systemctl", "stop", "berth-agent");
  const command = "env BERTH_CONNECT_WAIT=0.5 podman run --rm --network lan localhost/box /bin/ip";
  const down = await host.run("sh", "-c", command);
  expect(down.stderr).toMatch(/Agent at .*agent\.sock.* cannot be reached/);
  await remove("left");
  await host.require("systemctl", "start", "berth-agent");
  expect(await bound()).toEqual(before);
});

it("containers that Podman has not torn down are given back by berthctl recover, and by a reboot", async () => {
  const before = await bound();
  await start("killed");
  const shown = "{{.State.ConmonPid}} {{.State.Pid}} {{.NetworkSettings.SandboxKey}}";
  const [conmon = "", pid = "", netns = ""] = (
    await host.require("podman", "inspect", "killed", "--format", shown)
  ).split(/\s+/);
  await host.sh(`kill -9 ${conmon} ${pid} && umount -l ${netns} && rm ${netns}`);
  expect(await bound()).toHaveLength(before.length + 1);
  await host.require("berthctl", "recover");
  expect(await bound()).toEqual(before);
  await start("lost");
  await host.sh(`echo 11111111-2222-3333-4444-555555555555 >/run/boot-id
    mkdir -p /etc/systemd/system/berth-agent.service.d
    cat >/etc/systemd/system/berth-agent.service.d/boot.conf <<'CONF'
[Service]
BindReadOnlyPaths=/run/boot-id:/proc/sys/kernel/random/boot_id
CONF
    systemctl daemon-reload && systemctl restart berth-agent`);
  expect(await bound()).toEqual([]);
});
