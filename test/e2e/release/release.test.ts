/** The artifacts of `npm run release`: reproducible, small, and the parts of the arm64 build run under QEMU. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { requireCommand, runCommand } from "../../../scripts/lab/command.ts";
import { type Daemon, startDaemon } from "../../../scripts/lab/daemon.ts";
import { createNetns, type Netns } from "../../../scripts/lab/netns.ts";
import { root } from "../../../scripts/setup/paths.mjs";

const MAX_IMAGE_BYTES = 60_000_000;
const directory = mkdtempSync(join(tmpdir(), "berth-release-test-"));
const output = (name: string): string => join(directory, name);
const archive = (kind: string): string => output(`a/berth-${manifest.version}-${kind}`);

function release(name: string): void {
  const script = join(root, "scripts", "release", "release.ts");
  execFileSync(process.execPath, [script, "--output", output(name)]);
}

beforeAll(() => release("a"), 600_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("a release", () => {
  it("has the same bytes when it is built again", () => {
    release("b");
    expect(readFileSync(output("b/SHA256SUMS"), "utf8")).toBe(readFileSync(output("a/SHA256SUMS"), "utf8"));
    execFileSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: output("a") });
  }, 600_000);

  it.each(["amd64", "arm64"])("has an image of at most 60 MB for %s", (architecture) => {
    expect(statSync(archive(`image-${architecture}.tar`)).size).toBeLessThan(MAX_IMAGE_BYTES);
  });
});

/** The image's root file system: QEMU finds the loader and the libraries there. */
function unpackImage(architecture: string): string {
  const [image, rootfs] = [output(`image-${architecture}`), output(`rootfs-${architecture}`)];
  for (const folder of [image, rootfs]) mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xf", archive(`image-${architecture}.tar`), "-C", image]);
  const [{ Layers }] = JSON.parse(readFileSync(join(image, "manifest.json"), "utf8"));
  execFileSync("tar", ["-xzf", join(image, Layers[0]), "-C", rootfs]);
  return rootfs;
}

/** The image's programs as another processor runs them, with a namespace for the node and one for the pod. */
describe.runIf(process.arch === "x64")("the build for arm64, under QEMU", () => {
  let rootfs = "";
  let node: Netns;
  let pod: Netns;
  let agent: Daemon;
  const product = (path: string): string => join(rootfs, "usr", "lib", "berth", path);
  const emulate = (...argv: string[]) => ["qemu-aarch64-static", "-L", rootfs, ...argv];
  const runNode = (...argv: string[]) => requireCommand(emulate(join(rootfs, "usr", "bin", "node"), ...argv));
  const place = { socket: output("agent.sock"), state: output("state"), spool: output("spool") };
  const call = (command: string) =>
    runCommand(emulate("-0", "berth", product("bin/berth")), {
      env: {
        ...{ CNI_COMMAND: command, CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", CNI_NETNS: pod.path },
        ...{ CNI_PATH: "/opt/cni/bin", CNI_ARGS: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0" },
        ...{ BERTH_SOCKET: place.socket, BERTH_SPOOL: place.spool, BERTH_CONNECT_WAIT: "1" },
      },
      stdin: JSON.stringify({ cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } }),
    });

  async function startAgent(): Promise<void> {
    const options = Object.entries({
      ...{ config: output("pools"), ...place },
      ...{ "cni-conf-dir": output("net.d"), "log-dir": output("log") },
    }).flatMap(([name, value]) => [`--${name}`, value]);
    const program = [join(rootfs, "usr", "bin", "node"), product("berth-agent-main.mjs")];
    agent = await startDaemon("the agent for arm64", emulate(...program, ...options), node);
    await agent.until(
      async () => (await runNode(product("berthctl.mjs"), "health", "--socket", place.socket)) !== "",
      240_000,
    );
  }

  beforeAll(async () => {
    rootfs = unpackImage("arm64");
    for (const name of ["pools", "spool", "state", "net.d", "log"]) mkdirSync(output(name));
    copyFileSync(join(root, "deploy", "host", "examples", "pool.yaml"), output("pools/pool.yaml"));
    node = await createNetns(`arm64-node-${process.pid}`);
    pod = await createNetns(`arm64-pod-${process.pid}`);
  });
  afterAll(async () => {
    await agent?.kill();
    for (const netns of [node, pod]) await netns?.delete();
  });

  it("has a shim that answers VERSION", async () => {
    expect(JSON.parse((await call("VERSION")).stdout).supportedVersions).toContain("1.1.0");
  });

  it("has a shim that spools a DEL without an agent", async () => {
    expect((await call("DEL")).exitCode).toBe(0);
    expect(readdirSync(place.spool)).toHaveLength(1);
  });

  it("has an agent and a shim that answer ADD and DEL", async () => {
    await startAgent();
    const { ips } = JSON.parse((await call("ADD")).stdout);
    expect(ips).toEqual([{ address: expect.stringMatching(/^192\.0\.2\.1\d\d\/24$/), gateway: "192.0.2.1" }]);
    const list = () => runNode(product("berthctl.mjs"), "allocations", "--socket", place.socket);
    expect(await list()).toMatch(/Bound +shop\/web-0/);
    expect(await call("DEL")).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    expect(await list()).toMatch(/Cooling +shop\/web-0/);
  }, 300_000);
});
