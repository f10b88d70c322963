/** The artifacts of `npm run release`: reproducible, complete, small, and usable; the arm64 build runs under QEMU. */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headingOf } from "../../scripts/release/inventory.ts";
import { Layout, REF_NAME } from "../../scripts/release/oci.ts";
import { sha256 } from "../../scripts/release/sources.ts";
import { referenceTool, root } from "../../scripts/setup/paths.mjs";
import { readVersion, tagOf } from "../../scripts/setup/version.mjs";
import { executePart, partsAt } from "../e2e/pages/script.ts";
import { requireCommand, runCommand } from "../lab/command.ts";
import { type Daemon, startDaemon } from "../lab/daemon.ts";
import { createNetns, type Netns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

interface SbomLicense {
  readonly expression?: string;
  readonly license?: { readonly id: string };
}

const VERSION = readVersion();
const TAG = tagOf(VERSION);
const MAX_IMAGE_BYTES = 60_000_000;
const directory = temporaryDirectory("berth-release-test-");
const output = (name: string): string => join(directory, name);
const archive = (kind: string): string => output(`a/berth-${TAG}-${kind}`);

const script = (name: string): string => join(root, "scripts", "release", name);

function release(name: string, ...options: string[]): void {
  execFileSync(process.execPath, [script("release.ts"), "--output", output(name), ...options]);
}

beforeAll(() => release("a"), 600_000);

/** The processor of this machine. */
const here = process.arch === "arm64" ? "arm64" : "amd64";
const artifacts = () => readdirSync(output("a")).filter((name) => name !== "rootfs");
const read = (name: string): string => readFileSync(output(`a/${name}`), "utf8");

function unpack(file: string, ...options: string[]): string {
  const target = mkdtempSync(output("unpacked-"));
  execFileSync("tar", ["-xf", file, "-C", target, ...options]);
  return target;
}

/** Returns the configuration and the unpacked root file system of an unpacked OCI image. */
function openImage(directory: string): { config: Record<string, unknown>; rootfs: string } {
  const blob = (digest: string): string => join(directory, "blobs", digest.replace(":", "/"));
  const decode = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  const manifest = decode(blob(decode(join(directory, "index.json")).manifests[0].digest));
  const [layer] = manifest.layers;
  expect(manifest.layers).toHaveLength(1);
  return { config: decode(blob(manifest.config.digest)).config, rootfs: unpack(blob(layer.digest)) };
}

/** Each path with mode, owner, and the target of a link or the hash of a file. */
function listTree(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .sort()
    .map((path) => {
      const file = join(directory, path);
      const status = lstatSync(file);
      const content = status.isFile() ? sha256(readFileSync(file)) : status.isSymbolicLink() ? readlinkSync(file) : "";
      return `${path} ${status.mode.toString(8)} ${status.uid}:${status.gid} ${content}`;
    });
}

describe("a release", () => {
  it("has the same bytes when it is built again", () => {
    release("b");
    expect(readFileSync(output("b/SHA256SUMS"), "utf8")).toBe(read("SHA256SUMS"));
    execFileSync(process.execPath, [script("verify.ts"), output("b")]);
  }, 600_000);

  it("has the sum of each artifact", () => {
    const named = [...read("SHA256SUMS").matchAll(/^[0-9a-f]{64} {2}(.+)$/gm)].map(([, name]) => name);
    expect(named.sort()).toEqual(artifacts().filter((name) => name !== "SHA256SUMS"));
    execFileSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: output("a") });
  });

  it("has one layout for registries: the image for both processors, the chart, an SBOM for each processor", async () => {
    const layout = await Layout.read(readFileSync(archive("oci.tar")));
    const [image, chart, ...sboms] = layout.entries;
    expect([image, chart].map((entry) => entry?.annotations?.[REF_NAME])).toEqual([
      `berth:${TAG}`,
      `charts/berth:${TAG}`,
    ]);
    expect(image?.digest).toBe(`sha256:${sha256(readFileSync(archive("image.json")))}`);
    const { manifests = [] } = layout.readManifest(image?.digest ?? "");
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(["amd64", "arm64"]);
    for (const [index, { digest }] of sboms.entries()) {
      const { subject, layers = [] } = layout.readManifest(digest);
      expect(subject?.digest).toBe(manifests[index]?.digest);
      expect(layers[0]?.digest).toBe(
        `sha256:${sha256(readFileSync(archive(`image-${["amd64", "arm64"][index]}.cdx.json`)))}`,
      );
    }
    expect(sboms).toHaveLength(2);
  });

  it.each(["amd64", "arm64"])("has an image of at most 60 MB for %s", (architecture) => {
    expect(statSync(archive(`image-${architecture}.tar`)).size).toBeLessThan(MAX_IMAGE_BYTES);
  });
});

describe.each(["image-amd64", "image-arm64", "linux-amd64", "linux-arm64"])("the SBOM of %s", (kind) => {
  const sbom = () => read(`berth-${TAG}-${kind}.cdx.json`);
  const components = (): { name: string; version?: string; licenses?: SbomLicense[] }[] =>
    JSON.parse(sbom()).components;

  it("is valid CycloneDX", async () => {
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(sbom())).toBeNull();
  });

  it("names the artifact by its hash", () => {
    const [{ content }] = JSON.parse(sbom()).metadata.component.hashes;
    expect(read("SHA256SUMS")).toContain(`${content}  berth-${TAG}-${kind}.tar`);
  });

  it("lists npm packages, Node.js and its libraries, certificates, the C libraries, and compilers' additions", () => {
    const debian = kind.startsWith("image") ? ["libc6", "libstdc++6", "libatomic1"] : ["libatomic1"];
    const wanted = [
      ...["pino", "zod", "undici", "@kubernetes/client-node", "jsep", "assemblyscript", "esbuild", "libgcc-s1"],
      ...["Node.js", "openssl", "v8", "sqlite", "Mozilla's CA certificates in Node.js", "musl-dev"],
    ];
    expect(components().map(({ name }) => name)).toEqual(expect.arrayContaining([...wanted, ...debian]));
    expect(components()).toContainEqual(expect.objectContaining({ name: "Node.js", version: process.versions.node }));
  });

  it("lists only components whose licence is in THIRD_PARTY_LICENSES", () => {
    const notices = read("THIRD_PARTY_LICENSES");
    for (const { name, version, licenses } of components()) {
      // A library in Node.js, whose LICENSE has it.
      if (licenses === undefined) continue;
      const license = licenses.map((each) => each.expression ?? each.license?.id).join();
      const [, text = ""] = notices.split(`\n${headingOf({ name, ...(version && { version }), license })}\n`);
      expect(/^(?:.+\n)*?={80}\n\n(.{10,}\n)/.test(text), name).toBe(true);
    }
  });
});

/** Images of buildah in a folder of this test; a program in a container is never executed. */
const buildahEnv = { ...process.env, BUILDAH_ISOLATION: "chroot", CONTAINERS_STORAGE_CONF: output("storage.conf") };

beforeAll(() => {
  const places = { graphroot: output("storage"), runroot: output("run") };
  const lines = Object.entries({ driver: "vfs", ...places }).map(([key, value]) => `${key} = "${value}"\n`);
  writeFileSync(buildahEnv.CONTAINERS_STORAGE_CONF, `[storage]\n${lines.join("")}`);
});

it.each(partsAt("release"))(
  "the commands on %s",
  async (_, part) => {
    const checkout = mkdtempSync(output("checkout-"));
    mkdirSync(join(checkout, "dist"));
    symlinkSync(output("a"), join(checkout, "dist", "release"));
    for (const name of ["deploy", ".git", "package.json", "scripts", "node_modules"])
      symlinkSync(join(root, name), join(checkout, name));
    await executePart(part, (argv) => runCommand(argv, { cwd: checkout, env: buildahEnv, timeoutMs: 290_000 }));
  },
  300_000,
);

describe("the image", () => {
  it("contains the licences", () => {
    const { rootfs } = openImage(unpack(archive(`image-${here}.tar`)));
    const text = readFileSync(join(rootfs, "usr/share/doc/berth/THIRD_PARTY_LICENSES"), "utf8");
    expect(text).toBe(read("THIRD_PARTY_LICENSES"));
  });

  it.each(["amd64", "arm64"])(
    "has the files and the settings that deploy/Containerfile gives for %s",
    (architecture) => {
      const { config, rootfs } = openImage(unpack(archive(`image-${architecture}.tar`)));
      const built = openImage(buildContainerfile(architecture, config.Labels as Record<string, string>));
      expect(listTree(built.rootfs)).toEqual(listTree(rootfs));
      expect(built.config).toEqual(config);
    },
    300_000,
  );

  /** Returns the folder of an OCI image. */
  function buildContainerfile(architecture: string, labels: Record<string, string>): string {
    const buildah = (...argv: string[]) => execFileSync("buildah", argv, { env: buildahEnv, stdio: "pipe" });
    const values = Object.entries({ VERSION: "version", REVISION: "revision", CREATED: "created" }).map(
      ([name, label]) => `--build-arg=${name}=${labels[`org.opencontainers.image.${label}`]}`,
    );
    const file = join(root, "deploy", "Containerfile");
    const options = [`--platform=linux/${architecture}`, `--file=${file}`, "--identity-label=false", ...values];
    buildah("build", ...options, `--tag=berth-${architecture}`, output("a/rootfs"));
    const target = output(`built-${architecture}`);
    buildah("push", `berth-${architecture}`, `oci:${target}`);
    return target;
  }
});

describe("the tarball", () => {
  /** All that the launchers may use of a host, and kubectl. */
  const bin = output("bin");
  const env = { PATH: bin };
  let folder = "";
  beforeAll(() => {
    folder = unpack(archive(`linux-${here}.tar.gz`), "--strip-components=1");
    mkdirSync(bin);
    for (const name of ["dirname", "readlink"]) symlinkSync(`/usr/bin/${name}`, join(bin, name));
    symlinkSync(join(referenceTool("kubectl").directory, "kubectl"), join(bin, "kubectl"));
    for (const name of ["kubectl-berth", "kubectl_complete-berth"])
      symlinkSync(join(folder, "bin", name), join(bin, name));
  });

  it("contains the version and the licences", () => {
    expect(readFileSync(join(folder, "VERSION"), "utf8")).toBe(`${VERSION}\n`);
    expect(readFileSync(join(folder, "THIRD_PARTY_LICENSES"), "utf8")).toBe(read("THIRD_PARTY_LICENSES"));
  });

  it.each(["berth-agent", "berth-controller", "berthctl"])("has a %s that brings its Node.js", async (name) => {
    const link = join(bin, name);
    symlinkSync(join(folder, "bin", name), link);
    expect(await requireCommand([link, "--version"], { env })).toBe(`${VERSION}\n`);
  });

  it("installs itself", async () => {
    const host = output("host");
    await requireCommand(["sh", join(folder, "install.sh"), "--root", host]);
    const current = join(host, "opt/berth/current");
    expect(await requireCommand([join(current, "bin/berthctl"), "--version"], { env })).toBe(`${VERSION}\n`);
    for (const name of ["LICENSE", "THIRD_PARTY_LICENSES"]) expect(existsSync(join(current, name)), name).toBe(true);
  });

  it("needs no newer glibc than Node.js", () => {
    const versions = (path: string) => {
      const text = execFileSync("readelf", ["--version-info", join(folder, "lib", path)], { encoding: "utf8" });
      return [...text.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
    };
    expect(Math.max(...versions("native/berth.node"))).toBeLessThanOrEqual(Math.max(...versions("node")));
  });

  it("has a plugin that kubectl finds", async () => {
    const plugin = (...words: string[]) => requireCommand(["kubectl", "berth", ...words], { env });
    expect(await plugin("--help")).toContain("Usage: kubectl berth");
    expect(await plugin("network", "lan", "--type", "ptp")).toContain("kind: NetworkAttachmentDefinition");
    const offered = await requireCommand(["kubectl", "__complete", "berth", "qua"], { env });
    expect(offered).toMatch(/^quarantine\t/);
  });
});

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
    const program = [join(rootfs, "usr", "bin", "node"), product("berth-agent.mjs")];
    agent = await startDaemon("the agent for arm64", emulate(...program, ...options), node);
    await agent.until(
      async () => (await runNode(product("berthctl.mjs"), "pools", "--socket", place.socket)) !== "",
      240_000,
    );
  }

  beforeAll(async () => {
    rootfs = openImage(unpack(archive("image-arm64.tar"))).rootfs;
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

describe("on a machine with containerd", () => {
  let containerd: Daemon;
  const socket = output("containerd.sock");

  beforeAll(async () => {
    const config = output("containerd.toml");
    const lines = [
      "version = 2",
      `root = "${output("containerd")}"`,
      `state = "${output("containerd-state")}"`,
      'disabled_plugins = ["io.containerd.grpc.v1.cri"]',
      `[grpc]\naddress = "${socket}"`,
    ];
    writeFileSync(config, lines.join("\n"));
    // In a mount namespace of its own: its mounts end with it.
    containerd = await startDaemon("containerd", ["unshare", "--mount", "containerd", "--config", config]);
    await containerd.until(() => requireCommand(["ctr", "--address", socket, "version"]).then(() => true), 30_000);
  });
  afterAll(() => containerd?.kill());

  it.each(partsAt("release folder"))("the commands on %s", async (_, part) => {
    const env = { CONTAINERD_ADDRESS: socket };
    await executePart(part, (argv) => runCommand(argv, { cwd: output("a"), env, timeoutMs: 110_000 }));
  });
});
