/**
 * The folders of set-up: the repository's own `dist/`, and the user's cache for tools that are not part of Berth.
 * Effects: reads the go.mod files of scripts/reference.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

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

/** The module that fixes a tool's version. A tool `NAME-MAJOR.MINOR` is another version of NAME. */
const modules = {
  helm: "helm.sh/helm/v3",
  plugins: "github.com/containernetworking/plugins",
  cnitool: "github.com/containernetworking/cni",
  kubernetes: "k8s.io/kubernetes",
  kubectl: "k8s.io/kubernetes",
  health: "sigs.k8s.io/cli-utils",
  nodes: "k8s.io/kubernetes",
  containerd: "github.com/containerd/containerd/v2",
  crio: "github.com/cri-o/cri-o",
  podman: "github.com/containers/podman/v5",
  "kubernetes-1.31": "k8s.io/kubernetes",
  spiderpool: "github.com/spidernet-io/spiderpool",
  whereabouts: "github.com/k8snetworkplumbingwg/whereabouts",
  modzip: "golang.org/x/mod",
  registry: "github.com/distribution/distribution/v3",
  nfpm: "github.com/goreleaser/nfpm/v2",
  multus: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4",
};

/**
 * The folder scripts/reference/<tool>, the version that its go.mod asks for, and the cache folder of the executables.
 */
export function referenceTool(tool) {
  const source = join(root, "scripts", "reference", tool);
  const version = new RegExp(`${modules[tool]} v(\\S+)`).exec(readFileSync(join(source, "go.mod"), "utf8"))?.[1];
  if (version === undefined) throw new Error(`No version of ${modules[tool]} in ${source}/go.mod`);
  return { source, version, directory: join(cacheDir(), `${tool.replace(/-[\d.]+$/, "")}-${version}`) };
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
