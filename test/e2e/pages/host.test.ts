/** The pages for a host, typed in the unpacked tarball on a host under systemd. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bootHost, type Host } from "../../lab/systemd-host.ts";
import { executePart, outputsOf, partsAt } from "./script.ts";
import { type ExecutedPart, RELEASE } from "./table.ts";

const TARBALL = "/srv/release";
const INSTALL = `${TARBALL}/install.sh`;

let host: Host;

beforeAll(async () => {
  host = await bootHost();
});

afterAll(() => host?.stop());

const execute = (part: ExecutedPart, folder = TARBALL) =>
  executePart(part, (argv) => host.run("env", `--chdir=${folder}`, "HOME=/root", ...argv));

it.each(partsAt("host"))("with Berth installed: %s", async (_, part) => {
  await host.require("mkdir", "-p", "/etc/cni/net.d");
  await execute(part);
});

describe("before the installation", () => {
  // The master of the page's network.
  beforeAll(() => host.require("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "lan"));

  it.each(partsAt("new host"))("%s", async (_, part) => {
    await host.require("sh", INSTALL, "uninstall", "--force", "--purge");
    const { stdout } = await execute(part);
    expect(stdout).toContain("to see them: berthctl pools\n");
    expect(await host.require("find", "/opt", "-name", "*berth*")).toBe("");
  });

  it.each(partsAt("tarball"))("%s, whose outputs are those on the page", async (_, part) => {
    const name = `berth-${RELEASE.VERSION}-linux-${RELEASE.ARCH}`;
    await host.require("mkdir", "/srv/try");
    // Not compressed, which tar sees by itself.
    const archive = `/srv/try/${name}.tar.gz`;
    await host.require("tar", "-C", "/srv", `--transform=s,^release,${name},`, "-cf", archive, "release");
    // As Debian's podman brings one.
    const list = { cniVersion: "1.0.0", name: "podman", plugins: [{ type: "bridge", ipam: { type: "host-local" } }] };
    await host.sh(
      `rm -r /etc/berth /etc/cni/net.d/*; echo '${JSON.stringify(list)}' > /etc/cni/net.d/87-podman.conflist`,
    );
    const { stdout } = await execute(part, "/srv/try");
    for (const output of outputsOf(part.page)) expect(stdout).toContain(output);
    expect(await host.require("find", "/opt", "/etc", "/run", "-name", "*berth*", "-o", "-name", "try0")).toBe("");
  });
});
