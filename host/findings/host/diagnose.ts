/** Finds the faults of a host on which Berth is to run, with a remedy for each. The facts are read by read-host.ts. */
import { documentation } from "../../lib/documentation.ts";
import type { Finding } from "../../records/finding.ts";
import { error, warning } from "../problem.ts";
import { FILE_CHECKS } from "./file-checks.ts";
import type { HostFiles } from "./ini-file.ts";

/** One network of the CNI directory. */
export interface NetworkFacts {
  readonly file: string;
  readonly name: string;
  /** `type` of its plugins in order, and of their IPAM plugins. */
  readonly plugins: readonly {
    readonly type: string;
    readonly ipam: string;
    readonly master: string;
    /** 0 if it sets none. */
    readonly mtu: number;
    /** Kinds that the ifacer makes: `vlan`, `bond`. */
    readonly devices: readonly string[];
  }[];
}

interface PluginFacts {
  readonly name: string;
  readonly kind: "absent" | "foreign" | "own";
  /** Berth's plugin is there as `berth-NAME`, too. */
  readonly hasAlias: boolean;
  /** Mode of the file. */
  readonly mode: number;
}

/** A file or directory of Berth's that exists. */
interface FileFacts {
  readonly path: string;
  readonly uid: number;
  readonly mode: number;
  /** Whether only root may read it. */
  readonly isPrivate: boolean;
}

/** The state of another IPAM plugin on the host. */
interface LeftoverFacts {
  readonly path: string;
  /** Type of the plugin: `host-local`. */
  readonly ipam: string;
  /** Addresses by the name of their network; empty if they are kept elsewhere. */
  readonly addresses: ReadonlyMap<string, number>;
}

export interface HostFacts {
  readonly isRoot: boolean;
  /** Seconds since 1970. */
  readonly timeS: number;
  /** `6.12.0`. */
  readonly kernel: string;
  /** Modules that the kernel has or can load; undefined if unknown. */
  readonly modules: ReadonlySet<string> | undefined;
  readonly confDirectory: string;
  /** In the order of their names, as the runtime takes them. If undefined, there is no such directory. */
  readonly networks: readonly NetworkFacts[] | undefined;
  /** Files of the directory that are no network definitions, each with a reason. */
  readonly unreadable: readonly string[];
  readonly binDirectory: string;
  readonly plugins: readonly PluginFacts[];
  /** By name: `net/ipv4/ip_forward`. */
  readonly sysctls: ReadonlyMap<string, string>;
  /** MTU by interface of the node. */
  readonly mtus: ReadonlyMap<string, number>;
  /** The interfaces below one: the parent of a VLAN, the members of a bond. */
  readonly lowers: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly FileFacts[];
  /** Files of other programs that {@link FILE_CHECKS} name. */
  readonly hostFiles: HostFiles;
  readonly leftovers: readonly LeftoverFacts[];
  /** Routes of table 500 that are not Berth's: Spiderpool's coordinator uses the table, too. */
  readonly foreignRoutes: readonly string[];
}

/** The oldest kernel that Berth is tested with. */
const OLDEST_KERNEL = [5, 10] as const;

/** A clock before this is not set: no certificate and no token of Berth's time is valid then. */
const EARLIEST_TIME_S = Date.UTC(2026, 0, 1) / 1_000;

/** The smallest MTU of a link with IPv6 (RFC 8200 §5). */
const MIN_MTU = 1_280;

/** The kernel modules that plugins and devices need. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  macvlan: ["macvlan"],
  ipvlan: ["ipvlan"],
  bridge: ["bridge", "veth"],
  ptp: ["veth"],
  vlan: ["8021q"],
  bond: ["bonding"],
  coordinator: ["veth", "nf_tables", "nft_ct", "nft_masq"],
};

/** Meta plugins that call the networks of pods, and therefore have to come first. */
const META = /^multus(?:-shim|-cni)?$/;

/** The problems of a host, except {@link FILE_CHECKS}. */
export const HOST_PROBLEMS = {
  notRoot: warning("permissions", "berthctl does not run as root: some checks see nothing", "Run it as root"),
  clock: error(
    "clock",
    "The clock says {time}",
    "Set the clock, for example with chrony: certificates are not valid yet",
  ),
  foreignOwner: error("permissions", "{path} belongs to user {uid}, not to root", "chown root {path}"),
  writable: error("permissions", "{path} has mode {octal}: others may write it", "chmod go-w {path}"),
  readable: warning("permissions", "{path} has mode {octal}: others may read it", "chmod go-r {path}"),
  oldKernel: warning("kernel", "The kernel is {kernel}", `Update to ${OLDEST_KERNEL.join(".")} or newer`),
  noModule: error(
    "kernel",
    "The kernel has no module {name}, which a network definition needs",
    "Install the kernel's extra modules, or load {name}",
  ),
  notExecutable: error("plugins", "{path} is not executable", 'Install it again with "berth-agent install"'),
  noPlugin: error("plugins", "{path} does not exist", 'Install it with "berth-agent install"'),
  foreignPlugin: error(
    "plugins",
    "{path} is not Berth's: another project installed it",
    `Uninstall the other project; or name berth-{name} in network definitions (${documentation("install-host.html")})`,
  ),
  noDirectory: error(
    "networks",
    "{directory} does not exist",
    "Create it with a network definition: berthctl network NAME --conflist",
  ),
  unreadable: error("networks", "{problem}", "Correct or remove the file"),
  noDefinition: error(
    "networks",
    "{directory} has no network definition",
    "Create one: berthctl network NAME --conflist",
  ),
  notFirst: warning(
    "networks",
    '{first} comes before {own}: pods get network "{firstName}", not "{ownName}"',
    "Rename {own} so that its name sorts first, unless another network is to be the default",
  ),
  coordinatorFirst: error(
    "networks",
    "{file}: coordinator comes before {main}",
    "Move coordinator behind the main plugin",
  ),
  ifacerLast: error("networks", "{file}: ifacer comes after {main}, whose device it makes", "Move ifacer to the front"),
  noMaster: error(
    "networks",
    '{file}: the node has no interface "{master}"',
    "Correct master, or add ifacer, which makes it",
  ),
  smallMtu: error(
    "mtu",
    "Interface {master} has MTU {mtu}, too small for IPv6",
    `Set at least ${MIN_MTU}: ip link set {master} mtu 1500`,
  ),
  refusedMtu: error(
    "mtu",
    "{file}: mtu is {wanted}, and interface {master} has MTU {mtu}: the main plugin refuses it",
    "Remove mtu, or enlarge that of the interface: ip link set {master} mtu {wanted}",
  ),
  mtuBelow: warning(
    "mtu",
    "Interface {master} has MTU {mtu}, and {lower} below it {below}: large packets are dropped",
    "Set the same on both: ip link set {master} mtu {below}",
  ),
  noForwarding: warning("sysctls", "{name} is 0: {why}", "sysctl -w {name}=1, and a file in /etc/sysctl.d"),
  foreignRoutes: warning(
    "leftovers",
    `Routing table 500 has {count} routes that are not Berth's, such as "{route}": Spiderpool's coordinator uses this table, too`,
    "After its pods are gone, remove these routes; or set hostRuleTable of the Coordinator to another table",
  ),
  otherAddresses: warning(
    "leftovers",
    '{path}/{network} has {count} addresses that {ipam} gave to containers of network "{network}", whose IPAM is Berth now',
    "If such containers still run, exclude their addresses with a ReservedIP or excludeIPs; then remove the directory",
  ),
  otherIpam: warning(
    "leftovers",
    "{path} is {ipam}'s, and no network definition in {directory} uses it",
    "If no NetworkAttachmentDefinition does either, uninstall {ipam}",
  ),
};

const CHECKS: readonly ((facts: HostFacts) => Iterable<Finding>)[] = [
  checkProcess,
  checkFiles,
  checkKernel,
  checkPlugins,
  checkNetworks,
  checkSysctls,
  checkLeftovers,
  ({ hostFiles, ...about }) => FILE_CHECKS.flatMap(({ find }) => [...find(hostFiles, about)]),
];

/** Returns the findings in the order of the checks; none: all is well. */
export function diagnoseHost(facts: HostFacts): Finding[] {
  return CHECKS.flatMap((check) => [...check(facts)]);
}

function* checkProcess({ isRoot, timeS }: HostFacts): Iterable<Finding> {
  if (!isRoot) yield HOST_PROBLEMS.notRoot({});
  if (timeS < EARLIEST_TIME_S) yield HOST_PROBLEMS.clock({ time: new Date(timeS * 1_000).toISOString() });
}

/** A user with the right to write them decides which address a pod gets, or executes programs as root. */
function* checkFiles({ files }: HostFacts): Iterable<Finding> {
  for (const { path, uid, mode, isPrivate } of files) {
    const octal = mode.toString(8).padStart(4, "0");
    if (uid !== 0) yield HOST_PROBLEMS.foreignOwner({ path, uid });
    // A directory for all, such as /tmp, has the sticky bit.
    else if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0) yield HOST_PROBLEMS.writable({ path, octal });
    else if (isPrivate && (mode & 0o044) !== 0) yield HOST_PROBLEMS.readable({ path, octal });
  }
}

function* checkKernel({ kernel, modules, networks = [] }: HostFacts): Iterable<Finding> {
  const [major = 0, minor = 0] = kernel.split(".").map((part) => Number.parseInt(part, 10));
  if (major < OLDEST_KERNEL[0] || (major === OLDEST_KERNEL[0] && minor < OLDEST_KERNEL[1]))
    yield HOST_PROBLEMS.oldKernel({ kernel });
  const kinds = networks.flatMap(({ plugins }) => plugins.flatMap(({ type, devices }) => [bareType(type), ...devices]));
  const needed = kinds.flatMap((kind) => MODULES[kind] ?? []);
  for (const name of new Set(needed)) if (modules?.has(name) === false) yield HOST_PROBLEMS.noModule({ name });
}

const bareType = (type: string): string => type.replace(/^berth-/, "");

const isOurs = ({ plugins }: NetworkFacts): boolean => plugins.some(({ ipam }) => ipam === "berth");

function* checkPlugins({ plugins: all, binDirectory, networks = [] }: HostFacts): Iterable<Finding> {
  const named = networks.filter(isOurs).flatMap(({ plugins }) => plugins.map(({ type }) => type));
  for (const { name, kind, hasAlias, mode } of all) {
    const path = `${binDirectory}/${name}`;
    const isNeeded = !hasAlias || named.includes(name);
    if (kind === "own" && (mode & 0o111) === 0) yield HOST_PROBLEMS.notExecutable({ path });
    if (kind === "absent" && isNeeded) yield HOST_PROBLEMS.noPlugin({ path });
    if (kind === "foreign") yield HOST_PROBLEMS.foreignPlugin({ path, name }, isNeeded ? {} : { level: "warning" });
  }
}

function* checkNetworks(facts: HostFacts): Iterable<Finding> {
  const { networks, confDirectory: directory, unreadable } = facts;
  if (networks === undefined) {
    yield HOST_PROBLEMS.noDirectory({ directory });
    return;
  }
  const [first] = networks;
  const own = networks.find(isOurs);
  for (const problem of unreadable) yield HOST_PROBLEMS.unreadable({ problem });
  if (first === undefined) yield HOST_PROBLEMS.noDefinition({ directory });
  else if (own !== undefined && own !== first && !first.plugins.some(({ type }) => META.test(type)))
    yield HOST_PROBLEMS.notFirst({ first: first.file, own: own.file, firstName: first.name, ownName: own.name });
  for (const network of networks) {
    yield* checkOrder(network);
    yield* checkMaster(network, facts);
  }
}

/** ifacer makes the device of the main plugin, and coordinator needs its NIC. */
function* checkOrder({ file, plugins }: NetworkFacts): Iterable<Finding> {
  const types = plugins.map(({ type }) => bareType(type));
  const at = plugins.findIndex(({ ipam }) => ipam !== "");
  if (at < 0) return;
  const [coordinator, ifacer, main = ""] = [types.indexOf("coordinator"), types.indexOf("ifacer"), types[at]];
  if (coordinator >= 0 && coordinator < at) yield HOST_PROBLEMS.coordinatorFirst({ file, main });
  if (ifacer > at) yield HOST_PROBLEMS.ifacerLast({ file, main });
}

function* checkMaster({ file, plugins }: NetworkFacts, { mtus, lowers }: HostFacts): Iterable<Finding> {
  const hasIfacer = plugins.some(({ type }) => bareType(type) === "ifacer");
  for (const { master, mtu: wanted } of plugins) {
    const mtu = mtus.get(master);
    if (master === "" || (mtu === undefined && hasIfacer)) continue;
    if (mtu === undefined) yield HOST_PROBLEMS.noMaster({ file, master });
    else if (mtu < MIN_MTU) yield HOST_PROBLEMS.smallMtu({ master, mtu });
    else if (wanted > mtu) yield HOST_PROBLEMS.refusedMtu({ file, wanted, master, mtu });
    else {
      const lower = (lowers.get(master) ?? []).find((each) => (mtus.get(each) ?? mtu) < mtu);
      const below = mtus.get(lower ?? "") ?? 0;
      if (lower !== undefined) yield HOST_PROBLEMS.mtuBelow({ master, mtu, lower, below });
    }
  }
}

/** Each with the effect of 0. */
export const SYSCTLS = {
  "net/ipv4/ip_forward": "pods of overlay networks and services are not reached",
  "net/ipv6/conf/all/forwarding": "the same for IPv6",
} as const;

function* checkSysctls({ sysctls }: HostFacts): Iterable<Finding> {
  for (const [name, why] of Object.entries(SYSCTLS))
    if (sysctls.get(name) === "0") yield HOST_PROBLEMS.noForwarding({ name: name.replaceAll("/", "."), why });
}

function* checkLeftovers(facts: HostFacts): Iterable<Finding> {
  const { foreignRoutes, leftovers, networks = [], confDirectory: directory } = facts;
  const used = new Set(networks.flatMap(({ plugins }) => plugins.flatMap(({ type, ipam }) => [type, ipam])));
  const ours = new Set(networks.filter(isOurs).map(({ name }) => name));
  const [route] = foreignRoutes;
  if (route !== undefined) yield HOST_PROBLEMS.foreignRoutes({ count: foreignRoutes.length, route });
  for (const { path, ipam, addresses } of leftovers) {
    for (const [network, count] of addresses)
      if (ours.has(network) && count > 0) yield HOST_PROBLEMS.otherAddresses({ path, network, count, ipam });
    if (addresses.size === 0 && !used.has(ipam)) yield HOST_PROBLEMS.otherIpam({ path, ipam, directory });
  }
}
