/**
 * Container runtimes of a host, with a network from the one command of docs/install-host.md: Podman 4, and
 * containerd's go-cni by its client ctr.
 */
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { requireCommand } from "../lab/command.ts";
import { ipPool, macvlan } from "../lab/manifests.ts";
import { bootHost, type Host } from "../lab/systemd-host.ts";

const ADDRESS = /inet (192\.0\.2\.\d+)\/24/;
const page = readFileSync(join(root, "docs", "install-host.md"), "utf8");
const COMMAND = /^berthctl network .*$/m.exec(page)?.[0] ?? "the page has no such command";

/** The storage needs no kernel module. The cgroups of a host in namespaces have no controllers. */
const FILES = `
mkdir -p /etc/containers /etc/containerd
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
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "cni"
CONF
cat >/etc/containerd/config.toml <<'CONF'
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
CONF
mkdir -p /etc/cni/net.d
`;

let host: Host;

beforeAll(async () => {
  host = await bootHost();
  await host.sh(FILES);
  await host.sh("ip link add eth0 type veth peer name segment && ip link set eth0 up && ip link set segment up");
  const image = join(host.release, "image");
  mkdirSync(join(image, "bin"), { recursive: true });
  copyFileSync("/bin/busybox", join(image, "bin", "busybox"));
  for (const name of ["ip", "sleep"]) symlinkSync("busybox", join(image, "bin", name));
  await requireCommand(["tar", "-C", image, "-cf", join(host.release, "image.tar"), "."]);
  await host.require("podman", "import", "/srv/release/image.tar", "localhost/box");
  await host.sh(COMMAND);
});

afterAll(() => host?.stop());

const allocations = () => host.require("berthctl", "allocations");

it("Podman gives a container an address of the pool, the same after a restart, and releases it with the container", async () => {
  await host.sh("podman run --detach --name web --network lan localhost/box /bin/sleep 600");
  const addressOf = async () => ADDRESS.exec(await host.require("podman", "exec", "web", "/bin/ip", "addr"))?.[1];
  const address = await addressOf();
  expect(address).toMatch(/^192\.0\.2\.1\d\d$/);
  expect(await allocations()).toMatch(new RegExp(`^${address} +lan +Bound +/web `, "m"));
  const inspected = await host.sh("podman inspect web --format '{{.NetworkSettings.Networks.lan.IPAddress}}'");
  expect(inspected.trim()).toBe(address);
  await host.require("podman", "restart", "--time", "0", "web");
  expect(await addressOf()).toBe(address);
  await host.require("podman", "rm", "--force", "--time", "0", "web");
  expect(await allocations()).not.toMatch(/ Bound +\/web /);
});

/**
 * A network on the NIC, with a pool of its own, and the coordinator. Podman attaches networks in any order, so the
 * mode is named.
 */
async function defineCoordinated(name: string, master: string, prefix: string): Promise<void> {
  const ipam = { type: "berth", default_ipv4_ippool: [name] };
  const list = { cniVersion: "1.0.0", name, plugins: [macvlan(master, ipam), { type: "coordinator" }] };
  await host.sh(`cat >/etc/cni/net.d/50-${name}.conflist <<'LIST'\n${JSON.stringify(list)}\nLIST`);
  await host.sh(`cat >/etc/berth/pools.d/${name}.yaml <<'POOL'\n${ipPool(name, `${prefix}.0/24`)}\nPOOL`);
  await host.sh(`ip addr add ${prefix}.1/24 dev ${master}`);
}

it.each([["one"], ["two"]])(
  "Podman disconnects network %s of a container and connects it again: the node reaches each NIC that it has",
  async (network) => {
    const names = ["one", "two"];
    if (network === "one") {
      await host.sh("ip link add eth1 type veth peer name segment1 && ip link set eth1 up && ip link set segment1 up");
      await defineCoordinated("one", "eth0", "10.61.0");
      await defineCoordinated("two", "eth1", "10.62.0");
    }
    await host.sh("podman run --detach --name both --network one,two localhost/box /bin/sleep 600");
    const addressesOf = async () => {
      const printed = await host.require("podman", "exec", "both", "/bin/ip", "addr");
      return [...printed.matchAll(/inet (10\.6[12]\.0\.\d+)\//g)].map((match) => match[1] ?? "");
    };
    const expectReachable = async (count: number): Promise<void> => {
      const addresses = await addressesOf();
      expect(addresses).toHaveLength(count);
      for (const address of addresses) {
        const { exitCode, stdout } = await host.run("ping", "-c1", "-W2", address);
        expect(exitCode, `${address}: ${stdout}`).toBe(0);
      }
    };
    try {
      await expectReachable(names.length);
      await host.require("podman", "network", "disconnect", network, "both");
      await expectReachable(names.length - 1);
      await host.require("podman", "network", "connect", network, "both");
      await expectReachable(names.length);
    } finally {
      await host.require("podman", "rm", "--force", "--time", "0", "both");
    }
  },
);

it("containerd's go-cni gives a container an address, and releases it", async () => {
  await host.sh("podman save --quiet --format oci-archive --output /tmp/box.oci localhost/box");
  await host.require("systemd-run", "--unit=containerd-for-ctr", "--property=Type=notify", "containerd");
  await host.require("ctr", "images", "import", "--snapshotter", "native", "/tmp/box.oci");
  const options = ["--rm", "--snapshotter", "native", "--cpu-shares", "0", "--cni"];
  const printed = await host.require("ctr", "run", ...options, "localhost/box:latest", "once", "/bin/ip", "addr");
  expect(await allocations()).toMatch(new RegExp(`^${ADDRESS.exec(printed)?.[1]} +lan +Cooling `, "m"));
});
