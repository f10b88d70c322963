/** A node and a pod as namespaces, NICs as main plugins make them, and the coordinator's plugin over both. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CoordinatedAttachments } from "../../host/agent/coordinator/attachments.ts";
import { PairRemover } from "../../host/agent/coordinator/pair-remover.ts";
import { createCoordinatorPlugin } from "../../host/agent/coordinator/plugin.ts";
import { type Identifier, openManifestIdentifier } from "../../host/agent/ipam/pod-identity.ts";
import type { Addition } from "../../host/agent/request/plugin.ts";
import { type AttachRequest, type CniRequest, decodeRequest } from "../../host/cni/request.ts";
import { decodeVendorConf } from "../../host/config/vendor-conf.ts";
import { LinkRemover } from "../../host/kernel/link-remover.ts";
import { readNetnsIdentity } from "../../host/kernel/netns.ts";
import { openNode } from "../../host/kernel/open-namespace.ts";
import { createFaultCounter, type Faults, noFaults } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import type { Ip } from "../../host/net/ip.ts";
import type { Operation } from "../../host/plan/operation.ts";
import { openSqliteRegistry } from "../../host/registry/sqlite/sqlite-registry.ts";
import type { Snapshot } from "../../host/resources/snapshot.ts";
import { LAB_NETWORKS } from "../lab/addressing.ts";
import { nicSettings } from "../world/nic-settings.ts";
import { EMPTY_SNAPSHOT } from "../world/subjects.ts";
import { ipIn, showIn, sysctlIn, unmountNetns } from "./kernel-scene.ts";

export interface Nic {
  readonly name: string;
  /** Number of its subnets, 6 to 9; 244 is the overlay network. */
  readonly net: number;
  readonly families: readonly (4 | 6)[];
  readonly gateway: boolean;
  /** `ptp` and `bridge` are a first NIC of an overlay network. */
  readonly kind: "macvlan" | "ptp" | "bridge";
}

/** A dual-stack NIC with a gateway. */
export const nicOf = (name: string, net: number, more: Partial<Nic> = {}): Nic => ({
  ...{ name, net, families: [4, 6], gateway: true, kind: "macvlan" },
  ...more,
});

/**
 * Returns an address of a subnet of its own, with other last octets than any other NIC's: MAC addresses with a prefix
 * are made of them.
 */
export const addressOf = ({ net }: Nic, family: 4 | 6, host = net === 244 ? 33 : 10 * net + 3): string =>
  family === 4 ? `10.${net}.0.${host}` : `fd00:${net}::${host}`;

const gatewayOf = (nic: Nic, family: 4 | 6): string => addressOf(nic, family, 1);

/** The node's addresses, on its first uplink. */
const NODE_IPS = { 4: "10.6.0.2", 6: "fd00:6::2" } as const;

const UPLINKS = 3;

/** The kernel takes microseconds, and longer where it has other work. */
const LOCAL_ROUTE_MS = 10_000;

/** The host's end of a first NIC of an overlay network. */
const OVERLAY_END = { ptp: "ovl0", bridge: "bridge0" } as const;

export interface Names {
  readonly pod: string;
  readonly node: string;
}

export function makeNamespaces(prefix: string): Names {
  const names = { pod: `${prefix}p${process.pid}`, node: `${prefix}n${process.pid}` };
  for (const netns of Object.values(names)) {
    execFileSync("ip", ["netns", "add", netns]);
    // link-local addresses come and go by themselves
    sysctlIn(netns, "net.ipv6.conf.all.addr_gen_mode=1 net.ipv6.conf.default.addr_gen_mode=1");
  }
  sysctlIn(names.node, "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
  const uplinks = Array.from({ length: UPLINKS }, (_, at) => [
    `link add up${at} address 02:00:00:00:01:0${at} type veth peer name far${at}`,
    `link set far${at} up`,
    `link set up${at} up`,
  ]);
  ipIn(
    names.node,
    "link set lo up",
    ...uplinks.flat(),
    `addr add ${NODE_IPS[4]}/24 dev up0`,
    `addr add ${NODE_IPS[6]}/64 dev up0 nodad`,
  );
  ipIn(names.pod, "link set lo up");
  return names;
}

export function deleteNamespaces(names: Names): void {
  for (const netns of Object.values(names)) unmountNetns(netns);
}

function makeLink({ pod, node }: Names, nic: Nic): void {
  const { name, net, kind } = nic;
  const mac = `02:00:00:${net.toString(16).padStart(2, "0")}:00:33`;
  if (kind === "macvlan") {
    ipIn(node, `link add link up${net % UPLINKS} name ${name} address ${mac} netns ${pod} type macvlan mode bridge`);
    return;
  }
  const end = kind === "ptp" ? OVERLAY_END.ptp : "member0";
  ipIn(
    node,
    `link add ${name} address ${mac} netns ${pod} type veth peer name ${end}`,
    ...(kind === "bridge"
      ? [`link add ${OVERLAY_END.bridge} type bridge`, `link set ${end} master ${OVERLAY_END.bridge}`]
      : []),
    ...(kind === "bridge" ? [`link set ${OVERLAY_END.bridge} up`] : []),
    `link set ${end} up`,
  );
}

const EVERYWHERE = { 4: "0.0.0.0/0", 6: "::/0" } as const;

/** Makes the link as main plugins do: a default route stands before those that are there, or joins them. */
export function makeNic(names: Names, nic: Nic): void {
  makeLink(names, nic);
  const { name, families, gateway } = nic;
  ipIn(
    names.pod,
    `link set ${name} up`,
    ...families.flatMap((family) => [
      `addr add ${addressOf(nic, family)}/${family === 4 ? 24 : 64} dev ${name}${family === 6 ? " nodad" : ""}`,
      ...(gateway ? [`route prepend ${EVERYWHERE[family]} via ${gatewayOf(nic, family)} dev ${name}`] : []),
    ]),
  );
  if (families.includes(6)) waitForLocalRoute(names.pod, addressOf(nic, 6));
}

/**
 * The kernel's own route of an IPv6 address follows the address by itself, also where duplicates are not looked for.
 */
function waitForLocalRoute(netns: string, address: string): void {
  const deadlineMs = performance.now() + LOCAL_ROUTE_MS;
  while (!showIn(netns, "-6 route show table local").includes(`local ${address} `))
    if (performance.now() > deadlineMs) throw new Error(`The kernel has no local route for ${address}`);
}

export function removeNic(names: Names, { name, kind }: Nic): void {
  ipIn(names.pod, `link del ${name}`);
  if (kind === "bridge") ipIn(names.node, `link del ${OVERLAY_END.bridge}`);
}

const POD_ARGS = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=uid-1";

/** The container of a world's pod. */
export const containerOf = ({ pod }: Names): string => `c-${pod}`;

interface RequestSpec {
  readonly names: Names;
  readonly nic: Nic;
  readonly conf: object;
  readonly args: string;
}

function decodeFor(command: "ADD" | "CHECK" | "DEL", { names, nic, conf, args }: RequestSpec): CniRequest {
  const netns = `/run/netns/${names.pod}`;
  const ips = nic.families.map((family) => ({
    address: `${addressOf(nic, family)}/${family === 4 ? 24 : 64}`,
    interface: 0,
    ...(nic.gateway ? { gateway: gatewayOf(nic, family) } : {}),
  }));
  const prevResult = { cniVersion: "1.0.0", interfaces: [{ name: nic.name, sandbox: netns }], ips, routes: [] };
  const headers = {
    ...{ "cni-command": command, "cni-containerid": containerOf(names), "cni-netns": netns, "cni-ifname": nic.name },
    ...{ "cni-path": "/opt/cni/bin", "cni-args": args },
  };
  const netConf = { cniVersion: "1.0.0", name: `lan${nic.net}`, type: "coordinator", ...conf, prevResult };
  return decodeRequest("coordinator", headers, JSON.stringify(netConf)) as CniRequest;
}

/** Without resources; the NICs' addresses, which no registry knows, are the administrator's. */
const LAB_SNAPSHOT: Snapshot = {
  ...EMPTY_SNAPSHOT,
  vendorConf: decodeVendorConf({ hostRouteCIDR: LAB_NETWORKS }, "test"),
};

export interface World extends AsyncDisposable {
  add(nic: Nic, conf: object): Promise<void>;
  /** Returns the undo for a caller that has hung up. */
  addAbandoned(nic: Nic, conf: object): Promise<() => Promise<void>>;
  check(nic: Nic, conf: object): Promise<void>;
  /** Repairs an attachment that this agent has served. Returns the applied operations. */
  repair(nic: Nic, conf: object): Promise<readonly Operation[]>;
  /** Resolves when the pair is gone, too. */
  del(nic: Nic, conf: object): Promise<void>;
  /** Resolves when the plugin has answered. */
  delQuickly(nic: Nic, conf: object): Promise<void>;
  /** As `berthctl explain` has it. */
  explain(namespace: string, pod: string): readonly string[];
  /** Sets the faults of the requests that follow. */
  setFaults(faults: Faults): void;
}

interface WorldOptions {
  /** How the agent finds out whose NICs they are. Default: that of an agent without a cluster. */
  readonly identifier?: Pick<Identifier, "recognize">;
  /** CNI_ARGS; default: of one pod `shop/web-0`. */
  readonly args?: () => string;
  /** Whether another pod has the address, too. Default: no. */
  readonly isShared?: (ip: Ip) => boolean;
  /** Whether the agent has released its addresses. Default: no. */
  readonly isReleased?: () => boolean;
}

/** The plugin with a registry of its own; an agent that has just started. */
export async function openWorld(names: Names, options: WorldOptions = {}): Promise<World> {
  const snapshot = () => LAB_SNAPSHOT;
  const { identifier = openManifestIdentifier(snapshot), args = () => POD_ARGS } = options;
  const { isShared = () => false, isReleased = () => false } = options;
  const directory = mkdtempSync(join(tmpdir(), "berth-coordinator-"));
  const log = openLog("coordinator", "silent");
  const registry = await openSqliteRegistry({
    ...{ directory, bootId: "boot", lockWaitMs: 0, faultCounter: createFaultCounter() },
    nowMs: () => performance.now(),
    cooldowns: { defaultMs: 0, byPool: new Map() },
    onFreed: () => {},
    onDeath: () => {},
  });
  const host = openNode(`/run/netns/${names.node}`, { onLinkGone: (index) => remover.linkGone(index) });
  const remover: PairRemover = new PairRemover({ host, links: new LinkRemover(host.entrance), log });
  let faults = noFaults;
  const attachments = new CoordinatedAttachments();
  const plugin = createCoordinatorPlugin({
    ...{ host, remover, registry, log, attachments, snapshot, isCluster: false },
    identifier,
    faults: (point) => faults(point),
    logs: { for: () => log },
    definitions: { ...nicSettings, nicsOf: () => [] },
    answered: {
      has: () => false,
      takeAnswer: () => undefined,
      macOf: () => undefined,
      isShared: (_attachment, ip) => isShared(ip),
    },
    refused: { add: () => {} },
    isReleased,
    prober: { conflict: () => Promise.reject(new Error("The test asked for no detection")) },
  });
  const attachRequest = (command: "ADD" | "CHECK", nic: Nic, conf: object): AttachRequest => {
    const request = decodeFor(command, { names, nic, conf, args: args() });
    if (request.command !== "ADD" && request.command !== "CHECK")
      throw new Error(`${command} became ${request.command}`);
    return request;
  };
  const add = async (nic: Nic, conf: object): Promise<Addition> => {
    const request = attachRequest("ADD", nic, conf);
    const { cookie: netnsCookie } = readNetnsIdentity(request.netns);
    return plugin.add({ ...request, netnsCookie }, new AbortController().signal);
  };
  const delQuickly = async (nic: Nic, conf: object): Promise<void> => {
    const request = decodeFor("DEL", { names, nic, conf, args: args() });
    if (request.command !== "DEL") throw new Error(`DEL became ${request.command}`);
    await plugin.del(request);
  };
  return {
    explain: (namespace, pod) => attachments.describe(namespace, pod),
    setFaults: (next) => {
      faults = next;
    },
    add: async (nic, conf) => void (await add(nic, conf)),
    addAbandoned: async (nic, conf) => (await add(nic, conf)).undo,
    check: (nic, conf) => plugin.check(attachRequest("CHECK", nic, conf)),
    repair: (nic, conf) => plugin.repair(attachRequest("CHECK", nic, conf), true),
    delQuickly,
    del: async (nic, conf) => {
      await delQuickly(nic, conf);
      await remover.flush();
    },
    [Symbol.asyncDispose]: async () => {
      plugin[Symbol.dispose]();
      await remover.close();
      await registry.close();
      host[Symbol.dispose]();
      rmSync(directory, { recursive: true });
    },
  };
}
