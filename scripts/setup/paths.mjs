/**
 * The folders of set-up: the repository's own `dist/`, and the user's cache for tools that are not part of Berth.
 * Effects: reads scripts/reference.
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

const K8S_1_34 = { module: "k8s.io/kubernetes", version: "1.34.4" };

/**
 * The tools by the names of their folders in the cache: the module in a copy of which a tool is built, by the go.mod
 * and the go.sum that this has, and its packages there, or in place of these a program in `scripts/reference`,
 * <tool>.go; `requires`: further modules of that program; `tags` and `env` are those of a build. The go.sum of
 * `scripts/reference` has the modules' own hashes, and those of modules that are folders of their repositories.
 */
const tools = {
  cnitool: { module: "github.com/containernetworking/cni", version: "1.3.0", packages: ["cnitool"] },
  plugins: {
    module: "github.com/containernetworking/plugins",
    version: "1.9.1",
    packages: [
      ...["host-local", "static"].map((name) => `plugins/ipam/${name}`),
      ...["bridge", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "vlan"].map(
        (name) => `plugins/main/${name}`,
      ),
      ...["portmap", "sbr", "tuning"].map((name) => `plugins/meta/${name}`),
    ],
  },
  helm: { module: "helm.sh/helm/v3", version: "3.20.2", packages: ["cmd/helm"] },
  etcd: { module: "go.etcd.io/etcd/server/v3", version: "3.6.4", packages: [""], executable: "etcd" },
  kubernetes: { ...K8S_1_34, packages: ["cmd/kube-apiserver", "cmd/kube-proxy"] },
  nodes: { ...K8S_1_34, packages: ["cmd/kubelet", "cmd/kube-controller-manager", "cmd/kube-scheduler"] },
  kubectl: { ...K8S_1_34, packages: ["cmd/kubectl"] },
  // The oldest that Berth promises to work with.
  "kubernetes-1.31": {
    module: "k8s.io/kubernetes",
    version: "1.31.0",
    packages: ["cmd/kube-apiserver", "cmd/kube-controller-manager", "cmd/kube-scheduler", "cmd/kubelet"],
  },
  health: { module: "sigs.k8s.io/cli-utils", version: "0.37.2", requires: ["github.com/yuin/gopher-lua v1.1.1"] },
  multus: { module: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4", version: "4.3.0", packages: ["cmd/multus"] },
  registry: {
    module: "github.com/distribution/distribution/v3",
    version: "3.1.1",
    requires: ["github.com/google/go-containerregistry v0.20.7"],
  },
  nfpm: { module: "github.com/goreleaser/nfpm/v2", version: "2.45.2", packages: ["cmd/nfpm"] },
  modzip: { module: "golang.org/x/mod", version: "0.38.0" },
  whereabouts: {
    module: "github.com/k8snetworkplumbingwg/whereabouts",
    version: "0.9.4",
    packages: ["cmd"],
    executable: "whereabouts",
  },
  metallb: { module: "go.universe.tf/metallb", version: "0.15.2", packages: ["controller", "speaker"] },
  coredns: { module: "github.com/coredns/coredns", version: "1.13.2" },
  spiderpool: {
    module: "github.com/spidernet-io/spiderpool",
    version: "1.2.2",
    packages: ["coordinator", "spiderpool", "spiderpool-agent", "spiderpool-controller"].map((name) => `cmd/${name}`),
  },
  // Calls STATUS and GC of CNI 1.1, which Debian's 1.6 does not. Without the snapshotters and the tracer that the lab
  // does not use.
  containerd: {
    module: "github.com/containerd/containerd/v2",
    version: "2.4.2",
    packages: ["cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"],
    tags: ["no_btrfs", "no_zfs", "no_devmapper", "no_tracing"],
  },
  // With the C library, which its store needs; without optional libraries of Debian. Podman likewise.
  crio: {
    module: "github.com/cri-o/cri-o",
    version: "1.34.0",
    packages: ["cmd/crio", "test/copyimg"],
    tags: ["containers_image_ostree_stub", "containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"],
    env: { CGO_ENABLED: "1" },
  },
  podman: {
    module: "github.com/containers/podman/v5",
    version: "5.6.2",
    packages: ["cmd/podman"],
    tags: ["containers_image_openpgp", "exclude_graphdriver_btrfs", "btrfs_noversion"],
    env: { CGO_ENABLED: "1" },
  },
};

/** The `go build` of every tool. No debug information: it only costs time. */
export const GO_FLAGS = ["-trimpath", "-gcflags=all=-dwarf=false"];

/** The folder of the go.sum that verifies the modules, and of our own programs. */
export const referenceSource = join(root, "scripts", "reference");

/**
 * A tool: its module with version, and the modules that its own program requires besides; its packages, paths below the
 * module; the name of its executable if Go names it otherwise; the arguments of `go build`; and its folder in the
 * cache. The folder's name has a hash of all these: an existing one is current.
 */
export function referenceTool(tool) {
  if (!(tool in tools)) throw new Error(`There is no reference tool "${tool}"`);
  const { module, version, packages = [], executable, requires = [], tags = [], env = {} } = tools[tool];
  const kubernetes = module === K8S_1_34.module ? version : undefined;
  const flags = [...GO_FLAGS, "-tags", tags.join(","), "-ldflags", linkFlags(kubernetes)];
  const program = packages.length > 0 ? undefined : join(referenceSource, `${tool}.go`);
  const texts = [
    process.arch,
    module,
    version,
    packages,
    requires,
    flags,
    env,
    program && readFileSync(program, "utf8"),
  ];
  const hash = createHash("sha256").update(JSON.stringify(texts)).digest("hex");
  const directory = join(cacheDir(), `${tool.replace(/-[\d.]+$/, "")}-${version}-${hash.slice(0, 12)}`);
  return { module: `${module}@v${version}`, version, packages, program, executable, requires, flags, env, directory };
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

/** requirements.txt has Nautobot's own code with its requirements. A folder is for one list of packages. */
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
