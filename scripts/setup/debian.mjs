/**
 * Debian packages: the commands and files that each target needs, and their packages. The command or the file itself
 * decides, so that one that was installed another way counts.
 * Effects: apt-get, as root, only when something is missing.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findCommand, run, SetupError } from "./command.mjs";
import { POSTGRES_PROGRAMS, REDIS_PROGRAM } from "./paths.mjs";

/** The other processor that releases are built for. */
const foreign = process.arch === "arm64" ? { gnu: "x86-64", debian: "amd64" } : { gnu: "aarch64", debian: "arm64" };
const foreignTriple = `${foreign.gnu.replace("-", "_")}-linux-gnu`;

const requirements = {
  product: [
    { package: "gcc", command: "gcc", why: "builds the shim and the addon; brings libatomic1, which Node.js needs" },
    { package: "libc6-dev", file: "/usr/include/stdio.h", why: "the C library's headers" },
    { package: "musl-tools", command: "musl-gcc", why: "links the shim statically" },
  ],
  // Debian has these, unless it was installed as a container's image.
  demo: [
    { package: "iproute2", command: "ip", why: "makes network namespaces" },
    { package: "iputils-ping", command: "ping", why: "shows that pods reach each other" },
    { package: "nftables", command: "nft", why: "plays a service, and shows what the kernel holds" },
    // Debian lacks it.
    { package: "containernetworking-plugins", file: "/usr/lib/cni/macvlan", why: "its main plugins make the NICs" },
  ],
  test: [
    { package: "iputils-arping", command: "arping", why: "another opinion on address conflicts" },
    { package: "ndisc6", command: "ndisc6", why: "the same for IPv6" },
    { package: "tcpdump", command: "tcpdump", why: "shows what is on the wire" },
    { package: "user-mode-linux", command: "linux.uml", arch: "x64", why: "a kernel with all kinds of links" },
    { package: "systemd", command: "systemd-analyze", why: "checks the agent's unit" },
    { package: "logrotate", command: "logrotate", why: "rotates the coordinator's logs" },
    { package: "podman", command: "podman", why: "a runtime of hosts without a cluster" },
    { package: "containerd", command: "containerd", why: "another runtime, with the client ctr" },
    { package: "runc", command: "runc", why: "both call it" },
    { package: "busybox-static", file: "/usr/share/doc/busybox-static", why: "what their containers run" },
    { package: "prometheus", command: "promtool", why: "checks metrics, rules and queries, and scrapes a run" },
    { package: "curl", command: "curl", why: "reads metrics as an operator does" },
    { package: "bind9-utils", command: "named-checkzone", why: "reads exported zones" },
    { package: "zsh", command: "zsh", why: "completes a command line" },
    { package: "fish", command: "fish", why: "the same" },
    { package: "kmod", command: "modprobe", why: "loads its modules" },
    { package: "chromium", command: "chromium", why: "shows the address map" },
    { package: "clang-14", command: "clang-14", why: "fuzzes the shim and the core" },
    { package: "libclang-rt-14-dev", file: "/usr/share/doc/libclang-rt-14-dev", why: "its fuzzer and sanitizers" },
  ],
  cluster: [
    { package: "nftables", command: "nft", why: "kube-proxy calls it" },
    { package: "iptables", command: "iptables", why: "kube-proxy calls it" },
    { package: "conntrack", command: "conntrack", why: "kube-proxy calls it" },
  ],
  nodes: [
    { package: "containerd", command: "containerd", why: "the runtime of real nodes" },
    { package: "runc", command: "runc", why: "containerd calls it" },
    { package: "busybox-static", file: "/usr/share/doc/busybox-static", why: "what pods run" },
  ],
  versions: [
    { package: "network-manager", command: "nmcli", why: "manages the network of a host with pods" },
    { package: "conmon", command: "conmon", why: "CRI-O starts containers by it" },
    { package: "lintian", command: "lintian", why: "checks the deb of a release" },
    { package: "rpm", command: "rpm", why: "checks and installs its rpm" },
  ],
  nautobot: [
    { package: "python3", command: "python3", why: "runs Nautobot" },
    { package: "python3-venv", file: "/usr/share/doc/python3-venv", why: "keeps its packages apart" },
    { package: "postgresql-15", file: `${POSTGRES_PROGRAMS}/postgres`, why: "has Nautobot's records" },
    { package: "redis-tools", file: REDIS_PROGRAM, why: "its cache and locks" },
  ],
  podman: [
    { package: "conmon", command: "conmon", why: "Podman starts containers by it" },
    { package: "runc", command: "runc", why: "conmon calls it" },
    { package: "busybox-static", file: "/usr/share/doc/busybox-static", why: "what containers run" },
    { package: "protobuf-compiler", command: "protoc", why: "builds netavark" },
  ],
  release: [
    { package: `gcc-${foreign.gnu}-linux-gnu`, command: `${foreignTriple}-gcc`, why: "builds for the other processor" },
    {
      package: `libc6-dev-${foreign.debian}-cross`,
      file: `/usr/${foreignTriple}/include/stdio.h`,
      why: "its C library's headers",
    },
    { package: "qemu-user-static", command: "qemu-aarch64-static", arch: "x64", why: "runs the build for arm64" },
    { package: "buildah", command: "buildah", why: "builds the Containerfile in the tests" },
  ],
  embeddings: [
    { package: "wabt", command: "wasm2c", why: "turns the core into C" },
    { package: "make", command: "make", why: "builds the C embedding" },
    { package: "pkg-config", command: "pkg-config", why: "finds it as a program does" },
    { package: "default-jdk-headless", command: "javac", why: "compiles the Java embedding" },
    { package: "maven", command: "mvn", why: "builds it" },
    { package: "python3", command: "python3", why: "runs the Python embedding" },
    { package: "python3-venv", file: "/usr/share/doc/python3-venv", why: "keeps what it needs apart" },
    { package: "chromium", command: "chromium", why: "the browser of the browser embedding" },
  ],
};

// The tests build the embeddings.
requirements.test.push(...requirements.embeddings);

/** Some packages are there for one processor only. */
function isWanted({ arch = process.arch }) {
  return arch === process.arch;
}

function isThere(requirement) {
  if (requirement.command !== undefined) return findCommand(requirement.command) !== undefined;
  if (existsSync(requirement.file)) return true;
  const { status, stdout } = spawnSync("dpkg-query", ["--status", requirement.package], { encoding: "utf8" });
  return status === 0 && stdout.includes("Status: install ok installed");
}

/** The step that installs the targets' missing packages. */
export function debianStep(...targets) {
  const all = targets.flatMap((target) => requirements[target] ?? []);
  const missing = [...new Map(all.map((each) => [each.package, each])).values()].filter(
    (requirement) => isWanted(requirement) && !isThere(requirement),
  );
  return {
    name: `Debian packages (${missing.map((requirement) => requirement.package).join(", ")})`,
    isCurrent: () => missing.length === 0,
    run: () => install(missing),
  };
}

function install(missing) {
  const packages = missing.map((requirement) => requirement.package);
  const command = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  const what = missing.map((requirement) => `${requirement.package} (${requirement.why})`).join(", ");
  if (findCommand("apt-get") === undefined) throw new SetupError("Missing", `${what}; this machine has no apt-get`);
  if (process.getuid() !== 0)
    throw new SetupError("Missing", `${what}; only root may install packages`, `sudo sh -c '${command}'`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const wait = ["-o", "DPkg::Lock::Timeout=300"];
  try {
    run("apt-get", [...wait, "-qq", "update"], { env });
    run("apt-get", [...wait, "-qq", "install", "-y", "--no-install-recommends", ...packages], { env });
  } catch (error) {
    throw new SetupError(`Cannot install ${what}`, error.message, command);
  }
  const absent = missing.filter((requirement) => !isThere(requirement)).map((requirement) => requirement.package);
  if (absent.length > 0) throw new SetupError("Installed, but not found", absent.join(", "), command);
}
