/**
 * A node for the ifacer, inside User-Mode Linux: a namespace whose interfaces are veths to a switch, and the plugin
 * on it without an agent. The complete state of links, addresses and routes is text, so that two moments can be
 * compared.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { MoveRecord } from "../../host/agent/ifacer/move-record.ts";
import { createIfacerPlugin } from "../../host/agent/ifacer/plugin.ts";
import type { Plugin } from "../../host/agent/request/plugin.ts";
import { type AttachRequest, decodeRequest } from "../../host/cni/request.ts";
import { DEFAULT_VENDOR_CONF } from "../../host/config/vendor-conf.ts";
import { IFA_F_NODAD, IFA_F_TENTATIVE } from "../../host/kernel/netlink/address/constants.ts";
import { RT_TABLE_LOCAL } from "../../host/kernel/netlink/route/constants.ts";
import { observeNamespace } from "../../host/kernel/observe-namespace.ts";
import { type OpenNamespace, openNamespace } from "../../host/kernel/open-namespace.ts";
import { createFaultCounter, type FaultPlan, type Faults, openFaults } from "../../host/lib/fault.ts";
import { formatIp } from "../../host/net/ip.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import { formatBondSettings } from "../../host/plan/bond.ts";
import { formatRoute } from "../../host/plan/text.ts";

// biome-ignore lint/suspicious/noExplicitAny: the output of ip is read by name.
type Row = any;

/** The plugin on a namespace, without an agent, and requests for it. */
export interface IfacerPlace {
  readonly log: Row[];
  /** With a plan an operation fails; a function is called before each of them. */
  add(conf: object, faults?: FaultPlan | Faults): Promise<Row>;
  check(conf: object): Promise<void>;
}

/** `netns` of the requests is any path. */
export function placeIn(host: OpenNamespace): IfacerPlace {
  const seen: Row[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void seen.push(JSON.parse(line)) });
  const pluginWith = (faults?: FaultPlan | Faults): Plugin =>
    createIfacerPlugin({
      host,
      moves: new MoveRecord(mkdtempSync(join(tmpdir(), "moves-")), "boot"),
      faults: typeof faults === "function" ? faults : openFaults(faults, createFaultCounter()),
      log,
      permission: () => DEFAULT_VENDOR_CONF.ifacer,
    });
  return {
    log: seen,
    add: (conf, plan) => pluginWith(plan).add(requestOf("ADD", conf), new AbortController().signal),
    check: (conf) => pluginWith().check(requestOf("CHECK", conf)),
  };
}

export interface IfacerNode extends IfacerPlace {
  readonly name: string;
  readonly path: string;
  /** `ip` in the node, words parted by blanks. */
  ip(line: string): string;
  /** The same with details, as JSON. */
  json(line: string): Row[];
  /** A file of /sys or /proc as the node sees it; several one below the other. */
  file(...paths: string[]): string;
  /** Links, addresses and routes as our own observer reads them, which is quick. */
  observe(): string[];
  /** The same as `ip` shows them, with every detail but those that change by themselves. */
  state(): string[];
  /** All devices but the loopback and the interfaces are removed; those are up, and carry nothing. */
  reset(): void;
  delete(): void;
}

/** Interfaces by name; each has its other end in a switch: another namespace, on a bridge. */
export function makeIfacerNode(prefix: string, interfaces: readonly string[]): IfacerNode {
  const name = `${prefix}${process.pid}`;
  const path = `/run/netns/${name}`;
  const ip = (line: string): string => execFileSync("ip", ["-n", name, ...line.split(" ")]).toString();
  const wire = `${name}w`;
  for (const netns of [name, wire]) execFileSync("ip", ["netns", "add", netns]);
  execFileSync("ip", ["-n", wire, "link", "add", "br0", "up", "type", "bridge"]);
  for (const each of interfaces) {
    ip(`link add ${each} type veth peer name ${each} netns ${wire}`);
    execFileSync("ip", ["-n", wire, "link", "set", each, "master", "br0", "up"]);
  }
  const host = openNamespace(path);
  const place = placeIn(host);
  const json = (line: string): Row[] => JSON.parse(ip(`-d -j ${line}`) || "[]");
  return {
    ...place,
    name,
    path,
    ip,
    json,
    file: (...paths) =>
      execFileSync("ip", ["netns", "exec", name, "cat", ...paths])
        .toString()
        .trim(),
    state: () => stateOf(json),
    reset() {
      const { links } = observeNamespace(host, {});
      const devices = links.filter(({ name: each }) => each !== "lo" && !interfaces.includes(each));
      const lines = [
        ...devices.filter(({ kind }) => kind !== "vlan").map(({ name: each }) => `link del ${each}`),
        ...devices.filter(({ kind }) => kind === "vlan").map(({ name: each }) => `link del ${each}`),
        ...interfaces.flatMap((each) => [
          `link property del dev ${each} altname other`,
          `link set ${each} down`,
          `addr flush dev ${each}`,
          `link set ${each} up`,
        ]),
      ];
      // A VLAN device has gone with its bond: -force goes on.
      spawnSync("ip", ["-n", name, "-force", "-batch", "-"], { input: lines.join("\n") });
      place.log.splice(0);
    },
    observe() {
      const { links, addresses, routes } = observeNamespace(host, { addresses: true, routeTables: "every" });
      const told = [
        ...links.map(({ carrier: _, bond, ...link }) => ({ ...link, options: bond && formatBondSettings(bond) })),
        ...addresses.map(({ prefix, peer, flags, ...rest }) => ({
          ...rest,
          prefix: formatPrefix(prefix),
          peer: peer && formatIp(peer),
          flags: flags & ~(IFA_F_NODAD | IFA_F_TENTATIVE),
        })),
        ...routes
          .filter(({ table }) => table !== RT_TABLE_LOCAL)
          .map((route) => ({ route: formatRoute(route), rest: route.rest })),
      ];
      return told.map((each) => JSON.stringify(each)).sort();
    },
    delete() {
      close(host);
      for (const netns of [name, wire]) execFileSync("ip", ["netns", "del", netns]);
    },
  };
}

function close(host: OpenNamespace): void {
  host[Symbol.dispose]();
}

function requestOf(command: "ADD" | "CHECK", conf: object): AttachRequest {
  const body = { cniVersion: "1.0.0", name: "lan", type: "ifacer", ...conf };
  const headers = {
    "cni-command": command,
    "cni-containerid": "c1",
    "cni-netns": "/run/netns/pod",
    "cni-ifname": "eth0",
    "cni-path": "/bin",
  };
  const request = decodeRequest("ifacer", headers, JSON.stringify(body));
  if (request?.command !== "ADD" && request?.command !== "CHECK") throw new Error(request?.command);
  return request;
}

/** Fields that the kernel changes by itself, and ages. */
const PASSING = new Set([
  "operstate",
  "flags",
  "valid_life_time",
  "preferred_life_time",
  "tentative",
  "nodad",
  "addr_info",
]);

function stateOf(json: (line: string) => Row[]): string[] {
  const tidy = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([key]) => !PASSING.has(key)));
  const links = json("addr show");
  const neighbours = json("neigh show nud permanent");
  const routes = ["-4", "-6"].flatMap((family) => json(`${family} route show table all`));
  // The kernel adds it once duplicate address detection has succeeded.
  const isOfDetection = ({ type, dst }: Row): boolean => type === "local" && dst.startsWith("fe80:");
  return [
    ...links.map((row) => `link ${JSON.stringify({ ...tidy(row), up: row.flags.includes("UP") })}`),
    ...links.flatMap((row) => row.addr_info.map((each: Row) => `addr ${row.ifname} ${JSON.stringify(tidy(each))}`)),
    ...neighbours.map((row) => `neigh ${JSON.stringify(row)}`),
    ...routes.filter((row) => !isOfDetection(row)).map((row) => `route ${JSON.stringify(tidy(row))}`),
  ].sort();
}
