/**
 * Findings of `berthctl check` about other programs of a host, from trees of files as these programs have them. A
 * correct configuration has no finding.
 */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { MAX_HOST_FILE_BYTES, readFiles } from "../../../../host/cli/host-checks/read-host.ts";
import { FILE_CHECKS, FILE_PROBLEMS, PLATFORMS } from "../../../../host/findings/host/file-checks.ts";
import { anchorOf } from "../../../../scripts/docs/anchor.ts";
import { root } from "../../../../scripts/setup/paths.mjs";
import { readFilesOfPage } from "../../../e2e/pages/script.ts";
import { cases } from "../../../world/rows.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

/** Texts by path; a text `-> path` is a symbolic link. */
type Tree = Readonly<Record<string, string>>;

const STANDARD = { confDirectory: "/etc/cni/net.d", binDirectory: "/opt/cni/bin" };

function withTree<T>(tree: Tree, work: (root: string) => T): T {
  const folder = temporaryDirectory("berth-host-tree-", onTestFinished);
  for (const [path, text] of Object.entries(tree)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), file);
    else writeFileSync(file, text);
  }
  return work(folder);
}

const PATHS = FILE_CHECKS.flatMap(({ paths }) => paths).filter((path) => !/^\/(proc|sys)\//.test(path));

/** Without this machine's facts about this process. */
const read = (folder: string) => readFiles(folder, PATHS);

function findings(tree: Tree, own: Tree = {}, about = STANDARD): string[] {
  const files = new Map([...withTree(tree, read), ...Object.entries(own)]);
  return FILE_CHECKS.flatMap(({ find }) => [...find(files, about)]).map(
    ({ level, kind, text, remedy }) => `${level}: ${kind}: ${text} | ${remedy}`,
  );
}

const unit = (service: string, target = "multi-user"): Tree => ({
  [`/etc/systemd/system/${target}.target.wants/${service}.service`]: `-> /usr/lib/systemd/system/${service}.service`,
});

const BOTH = "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n";
const networkd = (tree: Tree): Tree => ({ ...unit("systemd-networkd"), ...tree });
/** Returns the files of a host with the settings of docs/host.md. */
const keeping = (tree: Tree): Tree => networkd({ "/etc/systemd/networkd.conf.d/50-berth.conf": BOTH, ...tree });

/** As systemd ships it. */
const CONTAINERS = "[Match]\nKind=veth\nName=ve-*\nDriver=veth\n\n[Network]\nDHCPServer=yes\n";
const DHCP = "\n[Network]\nDHCP=yes\n";

const NM = unit("NetworkManager");
const UDEV_RULE = 'ENV{ID_NET_DRIVER}=="veth", ENV{INTERFACE}!="eth[0-9]*", ENV{NM_UNMANAGED}="1"\n';
const VETH = "[keyfile]\nunmanaged-devices=interface-name:veth*\n";
const nm = (tree: Tree): Tree => ({ ...NM, ...tree });

const NFT = unit("nftables", "sysinit");
const OWN_TABLE = "table inet filter\ndelete table inet filter\ntable inet filter {\n}\n";
const FLUSH = `#!/usr/sbin/nft -f\n\nflush ruleset\n\n${OWN_TABLE}`;
/** As Debian ships it. */
const NFT_UNIT =
  "[Service]\nExecStart=/usr/sbin/nft -f /etc/nftables.conf\nExecReload=/usr/sbin/nft -f /etc/nftables.conf\nExecStop=/usr/sbin/nft flush ruleset\n";

const zone = (target: string, inside = "") =>
  `<?xml version="1.0" encoding="utf-8"?>\n<zone${target && ` target="${target}"`}>\n  <short>X</short>\n  ${inside}\n</zone>\n`;
const TRUSTED = { "/usr/lib/firewalld/zones/trusted.xml": zone("ACCEPT") };
const SOURCE = '<source address="10.6.0.0/24"/>';
const firewalld = (tree: Tree): Tree => ({ ...unit("firewalld"), ...TRUSTED, ...tree });

/** As systemd ships it on several distributions. */
const SYSTEMD_SYSCTLS =
  "# filter\nnet.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n";

const NM_MAIN = "/etc/NetworkManager/NetworkManager.conf";
const NM_DROP_IN = "/etc/NetworkManager/conf.d/a.conf";
const MAIN = "/etc/systemd/networkd.conf";
const ALL = "/etc/systemd/network/all.network";
const VENDOR = "/usr/lib/systemd/networkd.conf.d/90-vendor.conf";
const UDEV = "/usr/lib/udev/rules.d/85-nm-unmanaged.rules";
const TRUSTED_ZONE = "/etc/firewalld/zones/trusted.xml";
const NFT_SERVICE = "/usr/lib/systemd/system/nftables.service";
const NFT_CONF = "/etc/nftables.conf";
const DEFAULTS = "/usr/lib/sysctl.d/50-default.conf";
const ALL_STRICT = "net.ipv4.conf.all.rp_filter=1\n";
const ALL_OFF = "net.ipv4.conf.all.rp_filter=0\n";
const CALI = "[keyfile]\nunmanaged-devices=interface-name:cali*\n";
const ROUTES_YES = "[Network]\nManageForeignRoutes=yes\n";

/** Patterns of the findings, or nothing. */
const rows = {
  "systemd-networkd": cases<Tree>`
    is not enabled ${{ [MAIN]: "[Network]\n#ManageForeignRoutes=yes\n" }} => nothing
    has its defaults ${networkd({ [MAIN]: "[Network]\n#ManageForeignRoutes=yes\n" })}
      => ^warning: systemd-networkd: .*: ManageForeignRoutes and ManageForeignRoutingPolicyRules of networkd\.conf are yes \| Write ManageForeignRoutes=no and .*networkd\.conf\.d.*: https:\/\/\S+\/docs\/host\.html#systemd-networkd$
    runs without being enabled ${{ "/run/systemd/netif/state": "OPER_STATE=routable\n" }} => are yes
    keeps both ${keeping({})} => nothing
    keeps both by its main file ${networkd({ [MAIN]: BOTH })} => nothing
    keeps both by a vendor's main file, as there is none in /etc ${networkd({ "/usr/lib/systemd/networkd.conf": BOTH })}
      => nothing
    has a main file in /etc, so that the vendor's is not read ${networkd({ [MAIN]: "[Network]\n", "/usr/lib/systemd/networkd.conf": BOTH })}
      => are yes
    keeps routes, and removes rules ${networkd({ [MAIN]: "[Network]\nManageForeignRoutes = off\n" })}
      => : ManageForeignRoutingPolicyRules of networkd.*\| Write ManageForeignRoutingPolicyRules=no below
    has the keys in another section ${networkd({ [MAIN]: `[DHCPv4]\n${BOTH.slice(10)}` })} => are yes
    has a value that is none, which it ignores ${keeping({ "/etc/systemd/networkd.conf.d/60.conf": "[Network]\nManageForeignRoutes=maybe\n" })}
      => nothing
    has a later drop-in of a vendor, which wins by its name ${keeping({ [VENDOR]: ROUTES_YES })}
      => : ManageForeignRoutes of networkd
    has that drop-in replaced by one of the same name in /etc ${keeping({ [VENDOR]: ROUTES_YES, "/etc/systemd/networkd.conf.d/90-vendor.conf": "-> /dev/null" })}
      => nothing
    has one in /run, which wins over /usr/lib ${networkd({ "/usr/lib/systemd/networkd.conf.d/50.conf": ROUTES_YES, "/run/systemd/networkd.conf.d/50.conf": BOTH })}
      => nothing
    has drop-ins over its main file ${networkd({ [MAIN]: BOTH.replaceAll("no", "yes"), "/etc/systemd/networkd.conf.d/a.conf": BOTH })}
      => nothing
    has systemd's own .network files ${keeping({ "/usr/lib/systemd/network/80-container-ve.network": CONTAINERS })}
      => nothing
    matches physical NICs, as netplan writes it ${keeping({ "/run/systemd/network/10-netplan-eth0.network": `[Match]\nName=eth0${DHCP}` })}
      => nothing
    matches by MAC address ${keeping({ "/etc/systemd/network/10.network": `[Match]\nMACAddress=02:00:00:00:00:01${DHCP}` })}
      => nothing
    matches every link ${keeping({ "/usr/lib/systemd/network/zz-default.network": `[Match]\nName=*${DHCP}` })}
      => ^warning: systemd-networkd: .*\(veth…\) by \/usr\/lib\/systemd\/network\/zz-default\.network.*\| Write \[Match\] Name=veth\* .*05-berth\.network
    matches every Ethernet link ${keeping({ [ALL]: `[Match]\nType=ether${DHCP}` })} => all\.network
    matches all but loopback ${keeping({ [ALL]: `[Match]\nName=!lo docker*${DHCP}` })} => all\.network
    matches all but pairs ${keeping({ [ALL]: `[Match]\nName=!lo veth*${DHCP}` })} => nothing
    is told before that to leave pairs alone ${keeping({ "/etc/systemd/network/05-berth.network": "[Match]\nName=veth*\n[Link]\nUnmanaged=yes\n", "/usr/lib/systemd/network/zz-default.network": `[Match]\nName=*${DHCP}` })}
      => nothing
    is told so too late ${keeping({ "/etc/systemd/network/90-berth.network": "[Match]\nName=veth*\n[Link]\nUnmanaged=yes\n", "/run/systemd/network/10-all.network": `[Match]\nName=*${DHCP}` })}
      => 10-all\.network
  `,
  NetworkManager: cases<Tree>`
    is not enabled ${{ [NM_MAIN]: "[main]\nplugins=keyfile\n" }} => nothing
    knows nothing of pairs ${nm({ [NM_MAIN]: "[main]\nplugins=keyfile\n" })}
      => ^warning: NetworkManager: .*\| Write unmanaged-devices\+=interface-name:veth\* below \[keyfile\] .*: https:\/\/\S+\/docs\/host\.html#networkmanager$
    has the udev rule that it ships ${nm({ [UDEV]: UDEV_RULE })} => nothing
    has the udev rule switched off ${nm({ [UDEV]: UDEV_RULE, "/etc/udev/rules.d/85-nm-unmanaged.rules": "-> /dev/null" })}
      => NetworkManager may configure
    has a udev rule in a comment ${nm({ [UDEV]: `#${UDEV_RULE}` })} => may configure
    leaves pairs alone ${nm({ "/etc/NetworkManager/conf.d/50-berth.conf": VETH })} => nothing
    leaves pairs alone by its main file ${nm({ [NM_MAIN]: VETH })} => nothing
    leaves other links alone ${nm({ [NM_DROP_IN]: VETH.replace("veth", "cali") })} => may configure
    adds pairs to what a vendor has ${nm({ "/usr/lib/NetworkManager/conf.d/a.conf": "[keyfile]\nunmanaged-devices=interface-name:cali*;type:tun\n", "/etc/NetworkManager/conf.d/b.conf": "[keyfile]\nunmanaged-devices+=interface-name:veth*\n" })}
      => nothing
    replaces the list by a later one without pairs ${nm({ [NM_MAIN]: VETH, "/etc/NetworkManager/conf.d/b.conf": CALI })}
      => may configure
    reads /run before its main file, whatever the names are ${nm({ "/run/NetworkManager/conf.d/99.conf": CALI, [NM_MAIN]: VETH })}
      => nothing
    names all links of the kind ${nm({ [NM_DROP_IN]: "[keyfile]\nunmanaged-devices=mac:02:00:00:00:00:01,type:veth\n" })}
      => nothing
    excepts pairs ${nm({ [NM_DROP_IN]: "[keyfile]\nunmanaged-devices=*,except:interface-name:veth*\n" })}
      => may configure
    excepts one NIC ${nm({ [NM_DROP_IN]: "[keyfile]\nunmanaged-devices=*,except:interface-name:eth0\n" })} => nothing
    does not manage a section's devices ${nm({ [NM_DROP_IN]: "[device-berth]\nmatch-device=interface-name:veth*\nmanaged=0\n" })}
      => nothing
    manages a section's devices ${nm({ [NM_DROP_IN]: "[device-berth]\nmatch-device=interface-name:veth*\nmanaged=1\n" })}
      => may configure
  `,
  firewalld: cases<Tree>`
    is not enabled ${{ ...TRUSTED }} => nothing
    has its defaults ${firewalld({})}
      => ^warning: firewalld: firewalld rejects .*\| firewall-cmd --permanent --zone=trusted --add-source=NETWORK .*: https:\/\/\S+\/docs\/host\.html#firewalld$
    trusts a pool's network ${firewalld({ [TRUSTED_ZONE]: zone("ACCEPT", SOURCE) })} => nothing
    trusts the pairs ${firewalld({ [TRUSTED_ZONE]: zone("ACCEPT", '<interface name="veth+"/>') })} => nothing
    trusts another link ${firewalld({ [TRUSTED_ZONE]: zone("ACCEPT", '<interface name="cni0"/>') })} => rejects
    has the network in a zone that does not accept ${firewalld({ "/etc/firewalld/zones/pods.xml": zone("", SOURCE) })}
      => rejects
    has the network in a comment ${firewalld({ [TRUSTED_ZONE]: zone("ACCEPT", `<!-- ${SOURCE} -->`) })} => rejects
    writes to iptables ${firewalld({ [TRUSTED_ZONE]: zone("ACCEPT", SOURCE), "/etc/firewalld/firewalld.conf": "# x\nDefaultZone=public\nFirewallBackend=iptables\n" })}
      => ^warning: firewalld: firewalld's backend is iptables .*\| Set FirewallBackend=nftables: https:\/\/\S+\/docs\/host\.html#firewalld$
  `,
  "nftables.service": cases<Tree>`
    is not enabled, as Debian installs it ${{ [NFT_CONF]: FLUSH, [NFT_SERVICE]: NFT_UNIT }} => nothing
    has Debian's file and unit ${{ ...NFT, [NFT_CONF]: FLUSH, [NFT_SERVICE]: NFT_UNIT }}
      => ^warning: nftables\.service: .* is in \/etc\/nftables\.conf, ExecStop of nftables\.service \| .*: https:\/\/\S+\/docs\/host\.html#nftablesservice$
    has Fedora's unit ${{ ...unit("nftables"), "/usr/lib/systemd/system/nftables.service": "[Service]\nExecStart=/sbin/nft 'flush ruleset; include \"/etc/sysconfig/nftables.conf\";'\nExecReload=/sbin/nft 'flush ruleset; include \"/etc/sysconfig/nftables.conf\";'\n" }}
      => is in ExecStart of nftables\.service, ExecReload of nftables\.service
    has the flush in a comment ${{ ...NFT, [NFT_CONF]: `# flush ruleset\n${OWN_TABLE}` }} => nothing
    deletes its own tables, and is not stopped by a flush ${{ ...NFT, [NFT_CONF]: OWN_TABLE, "/lib/systemd/system/nftables.service": NFT_UNIT, "/etc/systemd/system/nftables.service.d/berth.conf": "[Service]\nExecStop=\nExecStop=/usr/sbin/nft delete table inet filter\n" }}
      => nothing
  `,
  "sysctl.d": cases<Tree>`
    has nothing about rp_filter ${{ "/etc/sysctl.d/10.conf": "net.ipv4.ip_forward=1\n" }} => nothing
    is strict for all links ${{ "/etc/sysctl.d/10-network-security.conf": "net.ipv4.conf.all.rp_filter = 1\n" }}
      => ^warning: sysctl\.d: \/etc\/sysctl\.d\/10-network-security\.conf sets net\.ipv4\.conf\.all\.rp_filter to 1.*: https:\/\/\S+\/docs\/host\.html#sysctls$
    is loose for all links, with slashes ${{ "/usr/lib/sysctl.d/10.conf": "net/ipv4/conf/all/rp_filter=2" }}
      => all\.rp_filter to 2
    is off for all links ${{ "/etc/sysctl.d/10.conf": "net.ipv4.conf.all.rp_filter=0\nnet.ipv4.conf.default.rp_filter=1\n" }}
      => nothing
    has it in a comment ${{ "/etc/sysctl.d/10.conf": "#net.ipv4.conf.all.rp_filter=1\n;net.ipv4.conf.all.rp_filter=1\n" }}
      => nothing
    is set by the file that Debian links ${{ "/etc/sysctl.conf": ALL_STRICT, "/etc/sysctl.d/99-sysctl.conf": "-> ../sysctl.conf" }}
      => 99-sysctl\.conf sets
    is set by a file that an absolute link leads to, below the host's root ${{ "/opt/own.conf": ALL_STRICT, "/etc/sysctl.d/50.conf": "-> /opt/own.conf" }}
      => 50\.conf sets
    is switched off by a later file ${{ "/usr/lib/sysctl.d/50.conf": ALL_STRICT, "/etc/sysctl.d/60.conf": ALL_OFF }}
      => nothing
    is switched off by an earlier file, without effect ${{ "/usr/lib/sysctl.d/50.conf": ALL_STRICT, "/etc/sysctl.d/40.conf": ALL_OFF }}
      => usr\/lib\/sysctl\.d\/50\.conf sets
    has systemd's own pattern, which excepts all ${{ [DEFAULTS]: SYSTEMD_SYSCTLS }}
      => ^warning: sysctl\.d: \/usr\/lib\/sysctl\.d\/50-default\.conf sets rp_filter of each new link to 2.*\| Write net\.ipv4\.conf\.veth\*\.rp_filter = 0 .*: https:\/\/\S+\/docs\/host\.html#sysctls$
    has that pattern, and a later one for pairs ${{ [DEFAULTS]: SYSTEMD_SYSCTLS, "/etc/sysctl.d/99-zz-berth.conf": "net.ipv4.conf.veth*.rp_filter = 0\n" }}
      => nothing
    has a pattern that excepts nothing ${{ "/etc/sysctl.d/1.conf": "net.ipv4.conf.*.rp_filter=1\n" }}
      => all\.rp_filter to 1 & each new link to 1
    has a pattern of other links ${{ "/etc/sysctl.d/1.conf": "-net.ipv4.conf.lxc*.rp_filter = 1\n" }} => nothing
  `,
};

const matching = (found: string) =>
  found === "nothing" ? [] : found.split(" & ").map((text) => expect.stringMatching(new RegExp(text)));

describe.each(Object.entries(rows))("%s", (_program, table) => {
  it.each(table)("%s", (_what, tree: Tree, found) => expect(findings(tree)).toEqual(matching(found)));
});

it.each<[heading: string, tree: Tree]>([
  ["systemd-networkd", networkd({ "/usr/lib/systemd/network/zz-default.network": `[Match]\nName=*${DHCP}` })],
  ["NetworkManager", NM],
  ["nftables.service", { ...NFT, "/etc/nftables.conf": FLUSH, "/usr/lib/systemd/system/nftables.service": NFT_UNIT }],
  ["sysctls", { [DEFAULTS]: SYSTEMD_SYSCTLS, "/etc/sysctl.d/10.conf": "net.ipv4.conf.all.rp_filter=2\n" }],
])("what the page says to write ends the findings: %s", (heading, tree) => {
  expect(findings(tree).length).toBeGreaterThan(0);
  const written = readFilesOfPage("docs/host.md", heading);
  expect(Object.keys(written).length).toBeGreaterThan(0);
  expect(findings({ ...tree, ...written })).toEqual([]);
});

it("every finding points at a heading of the page", () => {
  const page = readFileSync(join(root, "docs", "host.md"), "utf8");
  const anchors = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => anchorOf(title));
  const missing = Object.values(FILE_PROBLEMS).filter(
    ({ remedy }) => !anchors.includes(/docs\/host\.html#(\S+)$/.exec(remedy)?.[1] ?? ""),
  );
  expect(missing).toEqual([]);
});

const CONTEXT = "/proc/self/attr/current";
const ENFORCE = "/sys/fs/selinux/enforce";

it.each(cases<Tree>`
  neither ${{}} => nothing
  no AppArmor profile ${{ [CONTEXT]: "unconfined\n" }} => nothing
  a profile that complains ${{ [CONTEXT]: "berth (complain)\n" }} => nothing
  a runtime's profile ${{ [CONTEXT]: "cri-containerd.apparmor.d (enforce)\n" }}
    => ^warning: AppArmor: .* by "cri-containerd\.apparmor\.d".*: https:\/\/\S+\/docs\/host\.html#selinux-and-apparmor$
  SELinux's type of containers ${{ [CONTEXT]: "system_u:system_r:container_t:s0:c1,c2\0", [ENFORCE]: "1" }}
    => ^error: SELinux: .* as container_t, .*spc_t.*: https:\/\/\S+\/docs\/host\.html#selinux-and-apparmor$
  that type, where the state cannot be read ${{ [CONTEXT]: "system_u:system_r:container_t:s0:c1,c2\0" }}
    => as container_t
  that type, permissive ${{ [CONTEXT]: "system_u:system_r:container_t:s0:c1,c2\0", [ENFORCE]: "0\n" }} => nothing
  a privileged container's type ${{ [CONTEXT]: "system_u:system_r:spc_t:s0\0", [ENFORCE]: "1" }} => nothing
  a shell's type ${{ [CONTEXT]: "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0", [ENFORCE]: "1" }} => nothing
`)("SELinux and AppArmor: %s", (_what, own: Tree, found) => expect(findings({}, own)).toEqual(matching(found)));

describe.each(Object.entries(PLATFORMS))("a node of %s", (name, { mark, ...directories }) => {
  const tree = { [`${mark}/file`]: "" };
  it("is found if check looks into the usual directories", () => {
    const [start, end] = [
      `^warning: platform: .* one of ${name}, .*${directories.binDirectory}; `,
      "/host\\.html#kube.*$",
    ];
    expect(findings(tree)).toEqual(matching(`${start}check looked into /etc/cni/net\\.d and .*${end}`));
  });
  it("is none if it looks into the node's own", () => expect(findings(tree, {}, directories)).toEqual([]));
});

describe("the reader", () => {
  it("finds nothing in an empty root", () => expect(withTree({}, (folder) => [...read(folder)])).toEqual([]));

  it("goes on after a loop of links, a folder in the place of a file, and a file that is too large", () => {
    const tree = {
      "/etc/nftables.conf/x": "",
      "/etc/sysctl.d/1.conf": "-> 1.conf",
      "/etc/sysctl.d/2.conf": "#".repeat(MAX_HOST_FILE_BYTES + 1),
    };
    expect([...withTree(tree, read).values()]).toEqual(["", "", ""]);
  });
});
