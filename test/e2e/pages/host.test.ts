/** The pages for a host, typed in the unpacked tarball on a host under systemd. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bootHost, type Host } from "../../lab/systemd-host.ts";
import { executePart, partsAt } from "./script.ts";
import type { ExecutedPart } from "./table.ts";

const TARBALL = "/srv/release";
const INSTALL = `${TARBALL}/install.sh`;

let host: Host;

beforeAll(async () => {
  host = await bootHost();
});

afterAll(() => host?.stop());

const execute = (part: ExecutedPart) =>
  executePart(part, (argv) => host.run("env", `--chdir=${TARBALL}`, "HOME=/root", ...argv));

describe("with Berth installed", () => {
  it.each(partsAt("host"))("%s", async (_, part) => {
    await host.require("mkdir", "-p", "/etc/cni/net.d");
    await execute(part);
  });
});

describe("before the installation", () => {
  // The master of the page's network.
  beforeAll(() => host.require("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "lan"));

  it.each(partsAt("new host"))("%s", async (_, part) => {
    await host.require("sh", INSTALL, "uninstall", "--force");
    await execute(part);
    expect(await host.require("find", "/opt", "-name", "*berth*")).toBe("");
  });
});
