/** Finds the faults of a host on which Berth is to run, with a remedy for each. The facts are read by read-host.ts. */
import { documentation } from "../../lib/documentation.ts";
import type { Finding } from "../../records/finding.ts";
import { error, warning } from "../finding.ts";
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

/** The kernel modules that plugins need. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  macvlan: ["macvlan"],
  ipvlan: ["ipvlan"],
  bridge: ["bridge", "veth"],
  ptp: ["veth"],
  ifacer: ["8021q"],
  coordinator: ["veth", "nf_tables", "nft_ct", "nft_masq"],
};

/** Meta plugins that call the networks of pods, and therefore have to come first. */
const META = /^multus(?:-shim|-cni)?$/;

/** Returns the findings in the order of the checks; none: all is well. */
export function diagnoseHost(facts: HostFacts): Finding[] {
  return [
    ...checkProcess(facts),
    ...checkFiles(facts),
    ...checkKernel(facts),
    ...checkPlugins(facts),
    ...checkNetworks(facts),
    ...checkSysctls(facts),
    ...checkLeftovers(facts),
    ...FILE_CHECKS.flatMap(({ find }) => find(facts.hostFiles, facts)),
  ];
}

function checkProcess({ isRoot, timeS }: HostFacts): Finding[] {
  const clock = `The clock says ${new Date(timeS * 1_000).toISOString()}`;
  return [
    ...(isRoot
      ? []
      : [warning("permissions", "berthctl does not run as root: some checks see nothing", "Run it as root")]),
    ...(timeS >= EARLIEST_TIME_S
      ? []
      : [error("clock", clock, "Set the clock, for example with chrony: certificates are not valid yet")]),
  ];
}

/** A user with the right to write them decides which address a pod gets, or executes programs as root. */
function checkFiles({ files }: HostFacts): Finding[] {
  return files.flatMap(({ path, uid, mode, isPrivate }) => {
    const octal = mode.toString(8).padStart(4, "0");
    if (uid !== 0) return [error("permissions", `${path} belongs to user ${uid}, not to root`, `chown root ${path}`)];
    // A directory for all, such as /tmp, has the sticky bit.
    if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0)
      return [error("permissions", `${path} has mode ${octal}: others may write it`, `chmod go-w ${path}`)];
    if (isPrivate && (mode & 0o044) !== 0)
      return [warning("permissions", `${path} has mode ${octal}: others may read it`, `chmod go-r ${path}`)];
    return [];
  });
}

function checkKernel({ kernel, modules, networks = [] }: HostFacts): Finding[] {
  const [major = 0, minor = 0] = kernel.split(".").map((part) => Number.parseInt(part, 10));
  const isOld = major < OLDEST_KERNEL[0] || (major === OLDEST_KERNEL[0] && minor < OLDEST_KERNEL[1]);
  const needed = new Set(
    networks.flatMap(({ plugins }) => plugins.flatMap(({ type }) => MODULES[type.replace(/^berth-/, "")] ?? [])),
  );
  const missing = [...needed].filter((name) => modules !== undefined && !modules.has(name));
  return [
    ...(isOld ? [warning("kernel", `The kernel is ${kernel}`, `Update to ${OLDEST_KERNEL.join(".")} or newer`)] : []),
    ...missing.map((name) =>
      error(
        "kernel",
        `The kernel has no module ${name}, which a network definition needs`,
        `Install the kernel's extra modules, or load ${name}`,
      ),
    ),
  ];
}

const isOurs = ({ plugins }: NetworkFacts): boolean => plugins.some(({ ipam }) => ipam === "berth");

function checkPlugins({ plugins: all, binDirectory, networks = [] }: HostFacts): Finding[] {
  const named = networks.filter(isOurs).flatMap(({ plugins }) => plugins.map(({ type }) => type));
  return all.flatMap(({ name, kind, hasAlias, mode }) => {
    const path = `${binDirectory}/${name}`;
    const isNeeded = !hasAlias || named.includes(name);
    if (kind === "own" && (mode & 0o111) === 0)
      return [error("plugins", `${path} is not executable`, `Install it again with "berth-agent install"`)];
    if (kind === "own" || (kind === "absent" && !isNeeded)) return [];
    if (kind === "absent") return [error("plugins", `${path} does not exist`, 'Install it with "berth-agent install"')];
    return [
      (isNeeded ? error : warning)(
        "plugins",
        `${path} is not Berth's: another project installed it`,
        `Uninstall the other project; or name berth-${name} in network definitions (${documentation("install-host.html")})`,
      ),
    ];
  });
}

function checkNetworks(facts: HostFacts): Finding[] {
  const { networks, confDirectory, unreadable } = facts;
  if (networks === undefined) {
    return [
      error(
        "networks",
        `${confDirectory} does not exist`,
        "Create it with a network definition: berthctl network NAME --conflist",
      ),
    ];
  }
  const [first] = networks;
  const isMeta = first?.plugins.some(({ type }) => META.test(type)) === true;
  const later = networks.find(isOurs);
  return [
    ...unreadable.map((text) => error("networks", text, "Correct or remove the file")),
    ...(first === undefined
      ? [
          error(
            "networks",
            `${confDirectory} has no network definition`,
            "Create one: berthctl network NAME --conflist",
          ),
        ]
      : []),
    ...(first !== undefined && later !== undefined && later !== first && !isMeta
      ? [
          warning(
            "networks",
            `${first.file} comes before ${later.file}: pods get network "${first.name}", not "${later.name}"`,
            `Rename ${later.file} so that its name sorts first, unless another network is to be the default`,
          ),
        ]
      : []),
    ...networks.flatMap((network) => [...checkOrder(network), ...checkMaster(network, facts)]),
  ];
}

/** ifacer makes the device of the main plugin, and coordinator needs its NIC. */
function checkOrder({ file, plugins }: NetworkFacts): Finding[] {
  const types = plugins.map(({ type }) => type.replace(/^berth-/, ""));
  const main = plugins.findIndex(({ ipam }) => ipam !== "");
  const [coordinator, ifacer] = [types.indexOf("coordinator"), types.indexOf("ifacer")];
  return [
    ...(coordinator >= 0 && main >= 0 && coordinator < main
      ? [
          error(
            "networks",
            `${file}: coordinator comes before ${types[main]}`,
            "Move coordinator behind the main plugin",
          ),
        ]
      : []),
    ...(ifacer >= 0 && main >= 0 && ifacer > main
      ? [
          error(
            "networks",
            `${file}: ifacer comes after ${types[main]}, whose device it makes`,
            "Move ifacer to the front",
          ),
        ]
      : []),
  ];
}

function checkMaster({ file, plugins }: NetworkFacts, { mtus, lowers }: HostFacts): Finding[] {
  const hasIfacer = plugins.some(({ type }) => /^(berth-)?ifacer$/.test(type));
  return plugins.flatMap(({ master, mtu: wanted }) => {
    const mtu = mtus.get(master);
    if (master === "" || (mtu === undefined && hasIfacer)) return [];
    if (mtu === undefined)
      return [
        error(
          "networks",
          `${file}: the node has no interface "${master}"`,
          "Correct master, or add ifacer, which makes it",
        ),
      ];
    if (mtu < MIN_MTU)
      return [
        error(
          "mtu",
          `Interface ${master} has MTU ${mtu}, too small for IPv6`,
          `Set at least ${MIN_MTU}: ip link set ${master} mtu 1500`,
        ),
      ];
    if (wanted > mtu)
      return [
        error(
          "mtu",
          `${file}: mtu is ${wanted}, and interface ${master} has MTU ${mtu}: the main plugin refuses it`,
          `Remove mtu, or enlarge that of the interface: ip link set ${master} mtu ${wanted}`,
        ),
      ];
    const small = (lowers.get(master) ?? []).find((lower) => (mtus.get(lower) ?? mtu) < mtu);
    if (small === undefined) return [];
    return [
      warning(
        "mtu",
        `Interface ${master} has MTU ${mtu}, and ${small} below it ${mtus.get(small)}: large packets are dropped`,
        `Set the same on both: ip link set ${master} mtu ${mtus.get(small)}`,
      ),
    ];
  });
}

function checkSysctls({ sysctls }: HostFacts): Finding[] {
  const wanted: [name: string, why: string][] = [
    ["net/ipv4/ip_forward", "pods of overlay networks and services are not reached"],
    ["net/ipv6/conf/all/forwarding", "the same for IPv6"],
  ];
  return wanted.flatMap(([name, why]) => {
    if (sysctls.get(name) !== "0") return [];
    const dotted = name.replaceAll("/", ".");
    return [warning("sysctls", `${dotted} is 0: ${why}`, `sysctl -w ${dotted}=1, and a file in /etc/sysctl.d`)];
  });
}

function checkLeftovers({ foreignRoutes, leftovers, networks = [], confDirectory }: HostFacts): Finding[] {
  const used = new Set(networks.flatMap(({ plugins }) => plugins.flatMap(({ type, ipam }) => [type, ipam])));
  const ours = new Set(networks.filter(isOurs).map(({ name }) => name));
  const routes = `Routing table 500 has ${foreignRoutes.length} routes that are not Berth's, such as "${foreignRoutes[0]}": Spiderpool's coordinator uses this table, too`;
  return [
    ...(foreignRoutes.length === 0
      ? []
      : [
          warning(
            "leftovers",
            routes,
            "After its pods are gone, remove these routes; or set hostRuleTable of the Coordinator to another table",
          ),
        ]),
    ...leftovers.flatMap(({ path, ipam, addresses }) => {
      const both = [...addresses].filter(([network, count]) => ours.has(network) && count > 0);
      if (both.length > 0)
        return both.map(([network, count]) =>
          warning(
            "leftovers",
            `${path}/${network} has ${count} addresses that ${ipam} gave to containers of network "${network}", whose IPAM is Berth now`,
            "If such containers still run, exclude their addresses with a ReservedIP or excludeIPs; then remove the directory",
          ),
        );
      if (addresses.size > 0 || used.has(ipam)) return [];
      return [
        warning(
          "leftovers",
          `${path} is ${ipam}'s, and no network definition in ${confDirectory} uses it`,
          `If no NetworkAttachmentDefinition does either, uninstall ${ipam}`,
        ),
      ];
    }),
  ];
}
