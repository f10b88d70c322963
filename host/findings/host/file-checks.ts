/**
 * Checks the settings of other programs of the host for links, routes, rules and tables: a check for each, from the
 * texts of their files.
 */

import { compilePattern, isPattern } from "../../config/pattern.ts";
import { nameVeth } from "../../coordinator/plan/names.ts";
import { documentation } from "../../lib/documentation.ts";
import type { Finding } from "../../records/finding.ts";
import { error, warning } from "../problem.ts";
import { type Assignment, type HostFiles, mergeFolders, parseIni } from "./ini-file.ts";

/** The directories of a runtime on its node. */
interface CniDirectories {
  readonly confDirectory: string;
  readonly binDirectory: string;
}

/** By the name that the chart's value `platform` has; `mark` is on their nodes alone. */
export const PLATFORMS: Readonly<Record<string, CniDirectories & { readonly mark: string }>> = {
  k3s: {
    mark: "/var/lib/rancher/k3s",
    confDirectory: "/var/lib/rancher/k3s/agent/etc/cni/net.d",
    binDirectory: "/var/lib/rancher/k3s/data/cni",
  },
  openshift: {
    mark: "/etc/kubernetes/cni/net.d",
    confDirectory: "/etc/kubernetes/cni/net.d",
    binDirectory: "/var/lib/cni/bin",
  },
  microk8s: {
    mark: "/var/snap/microk8s/current",
    confDirectory: "/var/snap/microk8s/current/args/cni-network",
    binDirectory: "/var/snap/microk8s/current/opt/cni/bin",
  },
};

interface FileCheck {
  /** The files to read. The last part may be `*` and an ending: the files of a folder. */
  readonly paths: readonly string[];
  readonly find: (files: HostFiles, about: CniDirectories) => Iterable<Finding>;
}

/** The node's end of some pod's pair: veth and 11 hexadecimal digits. */
const PAIR = nameVeth("").host.name;

const PAGE = documentation("host.html");
const FIREWALLD_CONF = "/etc/firewalld/firewalld.conf";

/** The problems of other programs of a host. */
export const FILE_PROBLEMS = {
  networkdRemoves: warning(
    "systemd-networkd",
    "systemd-networkd removes what others have made when it configures a link: {keys} of networkd.conf are yes",
    `Write {lines} below [Network] into /etc/systemd/networkd.conf.d/50-berth.conf, and restart systemd-networkd: ${PAGE}#systemd-networkd`,
  ),
  networkdConfigures: warning(
    "systemd-networkd",
    "systemd-networkd configures the pairs of pods (veth…) by {file}, whose [Match] fits them",
    `Write [Match] Name=veth* and [Link] Unmanaged=yes into /etc/systemd/network/05-berth.network: ${PAGE}#systemd-networkd`,
  ),
  networkManager: warning(
    "NetworkManager",
    "NetworkManager may configure the pairs of pods: neither unmanaged-devices nor a udev rule has veth…",
    `Write unmanaged-devices+=interface-name:veth* below [keyfile] into /etc/NetworkManager/conf.d/50-berth.conf, and reload NetworkManager: ${PAGE}#networkmanager`,
  ),
  firewalldRejects: warning(
    "firewalld",
    "firewalld rejects what pods send to this node and through it: no zone with target ACCEPT has a source or the interfaces veth+",
    `firewall-cmd --permanent --zone=trusted --add-source=NETWORK for the network of each pool, then firewall-cmd --reload: ${PAGE}#firewalld`,
  ),
  firewalldReloads: warning(
    "firewalld",
    `firewalld's backend is iptables (${FIREWALLD_CONF}): each reload removes the rules of all programs in iptables, also kube-proxy's`,
    `Set FirewallBackend=nftables: ${PAGE}#firewalld`,
  ),
  nftables: warning(
    "nftables.service",
    'nftables.service removes the tables of all programs: "flush ruleset" is in {places}',
    `Let the file delete its own tables instead, and the unit nothing: ${PAGE}#nftablesservice`,
  ),
  filterOfAll: warning(
    "sysctl.d",
    "{file} sets net.ipv4.conf.all.rp_filter to {value}, which overrides a smaller hostRPFilter (default 0)",
    filterRemedy("all", ", and run sysctl --system"),
  ),
  filterOfNew: warning(
    "sysctl.d",
    "{file} sets rp_filter of each new link to {value}: udev writes it to the pairs of pods, over hostRPFilter (default 0)",
    filterRemedy("veth*", ""),
  ),
  appArmor: warning(
    "AppArmor",
    'AppArmor confines this container by "{profile}": the default profiles of runtimes forbid to write sysctls',
    `Set appArmorProfile.type of the agent's container to Unconfined, as the chart does: ${PAGE}#selinux-and-apparmor`,
  ),
  seLinux: error(
    "SELinux",
    "SELinux confines this container as {type}, which may not write the node's files, nor enter pods' namespaces",
    `Set the chart's agent.seLinuxOptions to {type: spc_t}: ${PAGE}#selinux-and-apparmor`,
  ),
  platform: warning(
    "platform",
    "The node is one of {name}, whose runtime reads {conf} and {bin}; check looked into {ownConf} and {ownBin}",
    `Set the chart's value platform to {name}; on a host use --cni-conf-dir and --cni-bin-dir: ${PAGE}#kubernetes-distributions`,
  ),
};

function filterRemedy(link: string, more: string): string {
  const line = `Write net.ipv4.conf.${link}.rp_filter = 0 into /etc/sysctl.d/99-zz-berth.conf`;
  return `${line}${more}; or set hostRPFilter: ${PAGE}#sysctls`;
}

/** Directories of the configuration of systemd's programs: the first wins. */
const LAYERS = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];

const inLayers = (path: string): string[] => LAYERS.map((layer) => `${layer}/${path}`);

/** The links by which `systemctl enable` starts a service. */
const enabled = (service: string): string[] =>
  ["multi-user", "sysinit"].map((target) => `/etc/systemd/system/${target}.target.wants/${service}.service`);

/** Returns the first of these files that exists, and those of the folders. */
function withDropIns(files: HostFiles, paths: readonly string[], folders: readonly string[]) {
  const main = paths.find((path) => files.has(path));
  const own = main === undefined ? [] : [[main, files.get(main) ?? ""] as const];
  return [...own, ...mergeFolders(files, folders)];
}

const hasAny = (files: HostFiles, paths: readonly string[]): boolean => paths.some((path) => files.has(path));

/** Returns the last assignment that is valid. */
function lastOf(assignments: readonly Assignment[], key: string, isValid = (_value: string) => true) {
  return assignments.findLast((each) => each.key === key && isValid(each.value));
}

const TRUE = /^(?:1|y|yes|t|true|on)$/i;
const FALSE = /^(?:0|n|no|f|false|off)$/i;

// systemd-networkd: networkd.conf(5), systemd.network(5)

const NETWORKD = {
  marks: [...enabled("systemd-networkd"), "/run/systemd/netif/state"],
  main: inLayers("systemd/networkd.conf"),
  dropIns: inLayers("systemd/networkd.conf.d"),
  networks: inLayers("systemd/network"),
};

function* findNetworkd(files: HostFiles): Iterable<Finding> {
  if (!hasAny(files, NETWORKD.marks)) return;
  const texts = withDropIns(files, NETWORKD.main, NETWORKD.dropIns);
  const settings = texts.flatMap(parseIni).filter(({ section }) => section === "Network");
  const removes = ["ManageForeignRoutes", "ManageForeignRoutingPolicyRules"].filter((key) => {
    const set = lastOf(settings, key, (value) => TRUE.test(value) || FALSE.test(value));
    return set === undefined || TRUE.test(set.value);
  });
  const lines = removes.map((key) => `${key}=no`).join(" and ");
  if (removes.length > 0) yield FILE_PROBLEMS.networkdRemoves({ keys: removes.join(" and "), lines });
  // The first file whose [Match] fits configures the link.
  const first = mergeFolders(files, NETWORKD.networks).map(parseIni).find(matchesPairs);
  const unmanaged = lastOf(first ?? [], "Unmanaged");
  if (first !== undefined && !(unmanaged !== undefined && TRUE.test(unmanaged.value)))
    yield FILE_PROBLEMS.networkdConfigures({ file: first[0]?.file ?? "" });
}

/** Keys of [Match] that are known of a pair's end; any other one does not fit. */
const MATCHES: Readonly<Record<string, (values: readonly string[]) => boolean>> = {
  Name: (values) => matchesAny(values, PAIR),
  OriginalName: (values) => matchesAny(values, PAIR),
  Type: (values) => matchesAny(values, "ether"),
  Kind: (values) => matchesAny(values, "veth"),
  Driver: (values) => matchesAny(values, "veth"),
};

/** A list that begins with `!` fits everything that it does not name. */
function matchesAny(values: readonly string[], text: string): boolean {
  const isInverted = values[0]?.startsWith("!") === true;
  const patterns = values.map((value, index) => (index === 0 && isInverted ? value.slice(1) : value));
  return patterns.some((pattern) => compilePattern(pattern)(text)) !== isInverted;
}

function matchesPairs(assignments: readonly Assignment[]): boolean {
  const match = assignments.filter(({ section }) => section === "Match");
  return match.length > 0 && match.every(({ key, value }) => MATCHES[key]?.(value.split(/\s+/)) === true);
}

// NetworkManager: NetworkManager.conf(5)

const NM_MAIN = "/etc/NetworkManager/NetworkManager.conf";
const NM_FOLDERS = ["/etc", "/run", "/usr/lib"].map((layer) => `${layer}/NetworkManager/conf.d`);
const NM_RULES = ["/etc", "/run", "/usr/lib", "/lib"].map((layer) => `${layer}/udev/rules.d/85-nm-unmanaged.rules`);

/** The file in /etc/NetworkManager is read after the other folders, and before its own. */
function nmSettings(files: HostFiles): Assignment[] {
  const merged = mergeFolders(files, NM_FOLDERS);
  const isLate = ([path]: readonly [string, string]): boolean => path.startsWith("/etc/");
  const early = merged.filter((file) => !isLate(file));
  return [...early, [NM_MAIN, files.get(NM_MAIN) ?? ""] as const, ...merged.filter(isLate)].flatMap(parseIni);
}

/** Whether a list of devices contains the pairs. */
function coversPairs(list: string): boolean {
  const specs = list.split(/[;,]/).map((spec) => spec.trim());
  const fits = (spec: string): boolean => {
    const [, kind, pattern = ""] = /^(interface-name|type|driver):=?(.*)$/.exec(spec) ?? [];
    if (kind === "interface-name") return compilePattern(pattern)(PAIR);
    return spec === "*" || pattern === "veth";
  };
  const excepted = specs.some((spec) => spec.startsWith("except:") && fits(spec.slice("except:".length)));
  return !excepted && specs.some(fits);
}

function isUnmanaged(settings: readonly Assignment[]): boolean {
  let list = "";
  for (const { section, key, value } of settings) {
    if (section !== "keyfile") continue;
    if (key === "unmanaged-devices") list = value;
    if (key === "unmanaged-devices+") list = `${list};${value}`;
  }
  const sections = new Set(settings.map(({ section }) => section).filter((name) => name.startsWith("device")));
  return (
    coversPairs(list) ||
    [...sections].some((name) => {
      const own = settings.filter(({ section }) => section === name);
      const [managed, devices] = [lastOf(own, "managed"), lastOf(own, "match-device")];
      return managed !== undefined && FALSE.test(managed.value) && coversPairs(devices?.value ?? "*");
    })
  );
}

function* findNetworkManager(files: HostFiles): Iterable<Finding> {
  if (!hasAny(files, enabled("NetworkManager")) || isUnmanaged(nmSettings(files))) return;
  const rules = NM_RULES.find((path) => files.has(path));
  const isOfUdev = /^[^#\n]*ID_NET_DRIVER\}=="veth".*NM_UNMANAGED\}="1"/m.test(files.get(rules ?? "") ?? "");
  if (!isOfUdev) yield FILE_PROBLEMS.networkManager({});
}

// nftables.service: nft(8)

const NFT_FILES = ["/etc/nftables.conf", "/etc/sysconfig/nftables.conf"];
const NFT_UNITS = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"].map(
  (folder) => `${folder}/nftables.service`,
);
const NFT_DROP_INS = ["/etc", "/run", "/usr/lib"].map((layer) => `${layer}/systemd/system/nftables.service.d`);

const FLUSH = /^[^#\n]*\bflush\s+ruleset\b/m;

/** Returns the directives of the unit that flush. An empty assignment forgets the ones before. */
function flushingCommands(files: HostFiles): string[] {
  const flushing = new Set<string>();
  for (const { key, value } of withDropIns(files, NFT_UNITS, NFT_DROP_INS).flatMap(parseIni)) {
    if (value === "") flushing.delete(key);
    if (/^Exec/.test(key) && FLUSH.test(value)) flushing.add(key);
  }
  return [...flushing].map((key) => `${key} of nftables.service`);
}

function* findNftables(files: HostFiles): Iterable<Finding> {
  if (!hasAny(files, enabled("nftables"))) return;
  const flushing = [...NFT_FILES.filter((path) => FLUSH.test(files.get(path) ?? "")), ...flushingCommands(files)];
  if (flushing.length > 0) yield FILE_PROBLEMS.nftables({ places: flushing.join(", ") });
}

// firewalld: firewalld.conf(5), firewalld.zone(5)

const ZONES = ["/etc/firewalld/zones", "/usr/lib/firewalld/zones"];

function* findFirewalld(files: HostFiles): Iterable<Finding> {
  if (!hasAny(files, enabled("firewalld"))) return;
  const zones = mergeFolders(files, ZONES).map(([, text]) => text.replaceAll(/<!--.*?-->/gs, ""));
  const accepts = zones.some(
    (text) => /<zone\b[^>]*\btarget="ACCEPT"/.test(text) && /<source\b|<interface\s+name="veth\+"/.test(text),
  );
  if (!accepts) yield FILE_PROBLEMS.firewalldRejects({});
  const backend = lastOf(parseIni([FIREWALLD_CONF, files.get(FIREWALLD_CONF) ?? ""]), "FirewallBackend");
  if (backend?.value === "iptables") yield FILE_PROBLEMS.firewalldReloads({});
}

// sysctl.d(5)

const SYSCTL_FOLDERS = [...inLayers("sysctl.d"), "/lib/sysctl.d"];

/** `net.ipv4.conf.eth0/1.rp_filter` is `net/ipv4/conf/eth0.1/rp_filter`; names with a slash first are unchanged. */
function sysctlPath(name: string): string {
  if (/^[^.]*\//.test(name)) return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === "." ? "/" : "."));
}

interface SysctlSetting {
  readonly path: string;
  /** If undefined, it is not to be set by a pattern. */
  readonly value: string | undefined;
  readonly file: string;
}

function sysctlSettings(files: HostFiles): SysctlSetting[] {
  return mergeFolders(files, SYSCTL_FOLDERS).flatMap(([file, text]) =>
    text.split("\n").flatMap((raw) => {
      const [, minus, name, equals, value = ""] = /^\s*(-?)\s*([^#;=\s][^=\s]*)\s*(=?)\s*(.*?)\s*$/.exec(raw) ?? [];
      if (name === undefined || (equals === "" && minus === "")) return [];
      return [{ path: sysctlPath(name), value: equals === "" ? undefined : value, file }];
    }),
  );
}

/** Returns the files' setting; a whole name wins over patterns, then the last one. */
function findSetting(settings: readonly SysctlSetting[], path: string): SysctlSetting | undefined {
  return (
    settings.findLast((each) => each.path === path) ??
    settings.findLast((each) => isPattern(each.path) && compilePattern(each.path)(path))
  );
}

function* findSysctls(files: HostFiles): Iterable<Finding> {
  const settings = sysctlSettings(files);
  for (const [link, problem] of [
    ["all", FILE_PROBLEMS.filterOfAll],
    [PAIR, FILE_PROBLEMS.filterOfNew],
  ] as const) {
    const { file = "", value = "0" } = findSetting(settings, `net/ipv4/conf/${link}/rp_filter`) ?? {};
    if (Number(value) > 0) yield problem({ file, value });
  }
}

// SELinux, AppArmor

const CONTEXT = "/proc/self/attr/current";
const ENFORCE = "/sys/fs/selinux/enforce";

/** In a pod of the agent, the profile of this process is the agent's. */
function* findConfinement(files: HostFiles): Iterable<Finding> {
  const context = (files.get(CONTEXT) ?? "").replaceAll(/[\0\n]/g, "");
  const profile = /^(.+) \(enforce\)$/.exec(context)?.[1];
  const type = /^[^:]+:[^:]+:(container(?:_init|_kvm|_userns)?_t):/.exec(context)?.[1];
  if (profile !== undefined) yield FILE_PROBLEMS.appArmor({ profile });
  if (type !== undefined && files.get(ENFORCE)?.trim() !== "0") yield FILE_PROBLEMS.seLinux({ type });
}

function* findPlatform(files: HostFiles, own: CniDirectories): Iterable<Finding> {
  const { confDirectory: ownConf, binDirectory: ownBin } = own;
  for (const [name, { mark, confDirectory: conf, binDirectory: bin }] of Object.entries(PLATFORMS))
    if (files.has(mark) && (ownConf !== conf || ownBin !== bin))
      yield FILE_PROBLEMS.platform({ name, conf, bin, ownConf, ownBin });
}

const filesIn = (folders: readonly string[], ending = "conf"): string[] =>
  folders.map((folder) => `${folder}/*.${ending}`);

/** Every program, in the order of the page. */
export const FILE_CHECKS: readonly FileCheck[] = [
  {
    paths: [
      ...[...NETWORKD.marks, ...NETWORKD.main, ...filesIn(NETWORKD.dropIns)],
      ...filesIn(NETWORKD.networks, "network"),
    ],
    find: findNetworkd,
  },
  { paths: [...enabled("NetworkManager"), NM_MAIN, ...filesIn(NM_FOLDERS), ...NM_RULES], find: findNetworkManager },
  { paths: [...enabled("firewalld"), FIREWALLD_CONF, ...filesIn(ZONES, "xml")], find: findFirewalld },
  { paths: [...enabled("nftables"), ...NFT_FILES, ...NFT_UNITS, ...filesIn(NFT_DROP_INS)], find: findNftables },
  { paths: filesIn(SYSCTL_FOLDERS), find: findSysctls },
  { paths: [CONTEXT, ENFORCE], find: findConfinement },
  { paths: Object.values(PLATFORMS).map(({ mark }) => mark), find: findPlatform },
];
