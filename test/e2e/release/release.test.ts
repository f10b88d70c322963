/** The artifacts of `npm run release`: reproducible, small, and the parts of the arm64 build run under QEMU. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
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

/** QEMU 7.2 lacks openat2, with which the agent opens namespaces: here its parts run, and the whole agent only on a real processor. */
describe.runIf(process.arch === "x64")("the build for arm64, under QEMU", () => {
  let rootfs = "";
  beforeAll(() => {
    rootfs = unpackImage("arm64");
  });
  const product = (path: string): string => join(rootfs, "usr", "lib", "berth", path);
  const emulate = (...argv: string[]) =>
    spawnSync("qemu-aarch64-static", ["-L", rootfs, ...argv], { encoding: "utf8", timeout: 60_000 });
  const call = (command: string) => {
    const env = {
      ...process.env,
      ...{ CNI_COMMAND: command, CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", CNI_PATH: "/opt/cni/bin" },
      ...{ BERTH_SOCKET: output("agent.sock"), BERTH_SPOOL: output("spool") },
    };
    const input = JSON.stringify({ cniVersion: "1.0.0", name: "lan", type: "macvlan", ipam: { type: "berth" } });
    const argv = ["-0", "berth", product("bin/berth")];
    return spawnSync("qemu-aarch64-static", argv, { env, input, encoding: "utf8" });
  };

  it("has a shim that answers VERSION", () => {
    expect(JSON.parse(call("VERSION").stdout).supportedVersions).toContain("1.1.0");
  });

  it("has a shim that spools a DEL without an agent", () => {
    mkdirSync(output("spool"));
    expect(call("DEL").status).toBe(0);
    expect(readdirSync(output("spool"))).toHaveLength(1);
  });

  it("has programs that start", () => {
    const { stdout } = emulate(join(rootfs, "usr", "bin", "node"), product("berth-agent-main.mjs"), "--version");
    expect(stdout.trim()).toBe(manifest.version);
  });

  it("has an addon that Node.js loads", () => {
    const load = `process.dlopen({ exports: {} }, ${JSON.stringify(product("native/berth.node"))}); console.log("loaded")`;
    expect(emulate(join(rootfs, "usr", "bin", "node"), "-e", load).stdout.trim()).toBe("loaded");
  });
});
