/**
 * The folders of set-up: the repository's own `dist/`, and the user's cache for tools that are not part of Berth.
 * Effects: reads the go.mod files of scripts/reference.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Whether this package beside the house is there. */
export const hasPackage = (name) => existsSync(join(root, "packages", name));

/**
 * The folder of caches: `BERTH_CACHE`, else `berth` below the user's cache folder. An empty HOME is the user's entry
 * in passwd.
 */
export function cacheDir(env = process.env) {
  return env.BERTH_CACHE || join(env.XDG_CACHE_HOME || join(env.HOME || userInfo().homedir, ".cache"), "berth");
}

/** Returns the folder in which the last release is checked out and built. */
export function lastReleaseDir() {
  const { version, commit } = JSON.parse(readFileSync(join(root, "scripts", "last-release.json"), "utf8"));
  return join(cacheDir(), `last-release-${version}-${commit.slice(0, 12)}`);
}

/** Go names an executable after its folder, or after its module. */
const EXECUTABLES = { server: "etcd", cmd: "whereabouts" };

/**
 * The tools by the names of their folders in the cache: the module that has a tool's version, and which programs it
 * is, unless it is all of that module, or the one of its own name. `in`: the folder of scripts/reference with the
 * go.mod, where it is not the common one; `isCopied`: it is built in a copy of its module, by the go.mod and the go.sum
 * there, and by <tool>.go, if that is beside the go.mod; `tags` and `env` are those of a build.
 */
const tools = {
  cnitool: { module: "github.com/containernetworking/cni" },
  plugins: { module: "github.com/containernetworking/plugins" },
  helm: { module: "helm.sh/helm/v3" },
  kubernetes: { module: "k8s.io/kubernetes", programs: ["etcd", "kube-apiserver", "kube-proxy"] },
  nodes: { module: "k8s.io/kubernetes", programs: ["kubelet", "kube-controller-manager", "kube-scheduler"] },
  kubectl: { module: "k8s.io/kubernetes", programs: ["kubectl"] },
  health: { module: "sigs.k8s.io/cli-utils" },
  multus: { module: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4" },
  registry: { module: "github.com/distribution/distribution/v3" },
  nfpm: { module: "github.com/goreleaser/nfpm/v2" },
  modzip: { module: "golang.org/x/mod" },
  whereabouts: { module: "github.com/k8snetworkplumbingwg/whereabouts" },
  coredns: { module: "github.com/coredns/coredns", in: "coredns", isCopied: true },
  "kubernetes-1.31": { module: "k8s.io/kubernetes", in: "kubernetes-1.31", isCopied: true },
  spiderpool: { module: "github.com/spidernet-io/spiderpool", in: "spiderpool", isCopied: true },
  // Without the snapshotters and the tracer that the lab does not use.
  containerd: {
    module: "github.com/containerd/containerd/v2",
    in: "containerd",
    isCopied: true,
    tags: ["no_btrfs", "no_zfs", "no_devmapper", "no_tracing"],
  },
  // With the C library, which its store needs; without optional libraries of Debian. Podman likewise.
  crio: {
    module: "github.com/cri-o/cri-o",
    in: "crio",
    isCopied: true,
    tags: ["containers_image_ostree_stub", "containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"],
    env: { CGO_ENABLED: "1" },
  },
  podman: {
    module: "github.com/containers/podman/v5",
    in: "podman",
    isCopied: true,
    tags: ["containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"],
    env: { CGO_ENABLED: "1" },
  },
};

/** The `go build` of every tool. No debug information: it only costs time. */
export const GO_FLAGS = ["-trimpath", "-gcflags=all=-dwarf=false"];

/**
 * A tool: the folder of its go.mod and the version that this asks for, its packages there by the names of their
 * executables, what `go build` is called with, the module in a copy of which it is built, if any, and the folder in the
 * cache where they are. That has a hash of all these in its name: what is there is current.
 */
export function referenceTool(tool) {
  if (!(tool in tools)) throw new Error(`There is no reference tool "${tool}"`);
  const { module, programs, in: folder = "", isCopied = false, tags = [], env = {} } = tools[tool];
  const source = join(root, "scripts", "reference", folder);
  const files = ["go.mod", "go.sum", join(tool, "main.go"), `${tool}.go`].map((name) => join(source, name));
  const text = readFileSync(files[0], "utf8");
  const versionOf = (path) => new RegExp(`^(?:require)?\\s+${path} v(\\S+)`, "m").exec(text)?.[1];
  const version = versionOf(module);
  if (version === undefined) throw new Error(`No version of ${module} in ${files[0]}`);
  const packages = new Map();
  for (const [, path] of text.matchAll(/^(?:\t|tool )([^\s(]+)$/gm)) {
    const [name] = path
      .replace(/\/v\d+$/, "")
      .split("/")
      .slice(-1);
    const executable = EXECUTABLES[name] ?? name;
    const isOfTool = programs?.includes(executable) ?? (path.startsWith(`${module}/`) || name === tool);
    if (isOfTool) packages.set(name, { path, executable });
  }
  const flags = [...GO_FLAGS, "-tags", tags.join(","), "-ldflags", linkFlags(versionOf("k8s.io/kubernetes"))];
  const hash = createHash("sha256").update(JSON.stringify([process.arch, flags, env]));
  for (const file of files) if (existsSync(file)) hash.update(readFileSync(file));
  const name = `${tool.replace(/-[\d.]+$/, "")}-${version}-${hash.digest("hex").slice(0, 12)}`;
  const copied = isCopied ? `${module}@v${version}` : undefined;
  return { source, version, packages, flags, env, copied, directory: join(cacheDir(), name) };
}

/**
 * No table of symbols, and the version of Kubernetes: without it the programs call themselves v0.0.0, and the API
 * server cannot determine which features belong to its version.
 */
function linkFlags(kubernetes) {
  const words = ["-s", "-w"];
  if (kubernetes !== undefined) {
    const [major, minor] = kubernetes.split(".");
    const stamps = { gitVersion: `v${kubernetes}`, gitMajor: major, gitMinor: minor };
    for (const [key, value] of Object.entries(stamps)) words.push(`-X k8s.io/component-base/version.${key}=${value}`);
  }
  return words.join(" ");
}

/** The crate whose versions the Podman of scripts/reference goes with. */
export const NETAVARK_VERSION = "1.16.1";

export function netavarkDir() {
  return join(cacheDir(), `netavark-${NETAVARK_VERSION}`);
}

/** Downloads that releases are made of, each verified by the hash recorded for it. */
export function releaseSourcesDir() {
  return join(cacheDir(), "release-sources");
}

/** Versions whose API descriptions the chart is checked against: the oldest promised, and that of the tests. */
export const KUBERNETES_SCHEMAS = ["1.31.14", "1.34.4"];

export function kubernetesSchemasDir(version) {
  return join(cacheDir(), `kubernetes-schemas-${version}`);
}

/** Nautobot's own code is in requirements.txt, with what it needs. A folder is for one list of packages. */
export const nautobotSource = join(root, "scripts", "reference", "nautobot");

export function nautobotDir() {
  const files = ["requirements.txt", "nautobot_config.py", "accounts.py"].map((name) => join(nautobotSource, name));
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  const [, version] = /^nautobot==(\S+)/m.exec(readFileSync(files[0], "utf8"));
  return join(cacheDir(), `nautobot-${version}-${hash.digest("hex").slice(0, 12)}`);
}

/** In nautobotDir(): the data directory of PostgreSQL, which nothing has open. */
export const NAUTOBOT_DATABASE = "database.tar.gz";

/** Where Debian's package has the server's programs, which are not in PATH. */
export const POSTGRES_PROGRAMS = "/usr/lib/postgresql/15/bin";

/**
 * Redis: under another name in the package of its tools, which, unlike that of the server, starts no service. It is
 * the server when it is called so (argv0).
 */
export const REDIS_PROGRAM = "/usr/bin/redis-check-rdb";
