/**
 * A rehearsal: the agent itself makes one ADD of the coordinator, in two network namespaces that exist only for it. V8 compiles a function when it is called
 * for the first time, so the first ADD after a start would take three times as long as those after it.
 * Effects: two network namespaces, which go when it ends; the calling thread is in them for moments. None on the node.
 */
import pino from "pino";
import { decodeVendorConf } from "../config/vendor-conf.ts";
import { applyOperations } from "../kernel/apply.ts";
import { openLinkRemover } from "../kernel/link-remover.ts";
import { IFA_F_PERMANENT } from "../kernel/netlink/address/constants.ts";
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../kernel/netlink/route/constants.ts";
import { createNetns } from "../kernel/netns.ts";
import { openNamespace, openNode } from "../kernel/open-namespace.ts";
import { noFaults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import { LOG_FORMAT } from "../lib/log.ts";
import { parseMac } from "../net/mac.ts";
import { EVERYWHERE, formatPrefix, maskPrefix, parsePrefix } from "../net/prefix.ts";
import type { Operation } from "../plan/operation.ts";
import { assembleSnapshot } from "../resources/snapshot.ts";
import { NO_AUDIT } from "./audit/audit.ts";
import { CoordinatedAttachments } from "./coordinator/attachments.ts";
import type { LateDetectionDeps } from "./coordinator/late-detection.ts";
import { PairRemover } from "./coordinator/pair-remover.ts";
import { createCoordinatorPlugin } from "./coordinator/plugin.ts";
import type { CoordinatorDeps } from "./coordinator/settings.ts";
import { openManifestIdentifier } from "./ipam/pod-identity.ts";
import type { Answer } from "./server/answer.ts";
import { Dispatcher } from "./server/dispatcher.ts";
import { parseShimRequest } from "./server/shim-request.ts";

const NIC = "eth0";
const UPLINK = "uplink";

function parsed<T>(value: T | undefined): T {
  invariant(value !== undefined, "A text of the rehearsal is malformed");
  return value;
}

/** Of documentation (RFC 5737): nothing has them outside of the two namespaces. */
const NODE_ADDRESS = parsed(parsePrefix("192.0.2.1/24"));
const POD_ADDRESS = parsed(parsePrefix("192.0.2.2/24"));
const SERVICES = "198.51.100.0/24";

/** Returns what a main plugin would have made: a NIC with an address and a default route. */
function makeNic(): Operation[] {
  const address = { scope: RT_SCOPE_UNIVERSE, flags: IFA_F_PERMANENT };
  const route = { table: RT_TABLE_MAIN, type: RTN_UNICAST, protocol: RTPROT_BOOT, scope: RT_SCOPE_UNIVERSE };
  const up = (place: "host" | "pod", link: string): Operation => ({
    ...{ kind: "set-link", place, link },
    from: { up: false },
    to: { up: true },
  });
  const veth = {
    host: { name: UPLINK, mac: parsed(parseMac("02:00:00:00:00:01")) },
    pod: { name: NIC, mac: parsed(parseMac("02:00:00:00:00:02")) },
  };
  return [
    { kind: "add-veth", veth },
    up("host", UPLINK),
    up("pod", NIC),
    { kind: "add-address", place: "host", address: { ...address, link: UPLINK, prefix: NODE_ADDRESS } },
    { kind: "add-address", place: "pod", address: { ...address, link: NIC, prefix: POD_ADDRESS } },
    {
      kind: "add-route",
      place: "pod",
      route: {
        ...{ ...route, destination: EVERYWHERE[4], gateway: NODE_ADDRESS.ip, link: NIC },
        ...{ flags: 0, metric: 0, tos: 0, rest: [] },
      },
    },
  ];
}

/** Returns the call as the shim sends it. */
function formatCall(netns: string): Buffer {
  const prevResult = {
    cniVersion: "1.0.0",
    interfaces: [{ name: NIC, sandbox: netns }],
    ips: [{ address: formatPrefix(POD_ADDRESS), interface: 0 }],
    routes: [{ dst: formatPrefix(EVERYWHERE[4]) }],
  };
  const body = JSON.stringify({
    ...{ cniVersion: "1.0.0", name: "rehearsal", type: "coordinator" },
    ...{ mode: "auto", serviceCIDR: [SERVICES], prevResult },
  });
  const head = [
    "POST /v1/cni/coordinator HTTP/1.1",
    "Host: berth",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "CNI-Command: ADD",
    "CNI-ContainerID: rehearsal",
    `CNI-Netns: ${netns}`,
    `CNI-IfName: ${NIC}`,
    "CNI-Args: K8S_POD_NAMESPACE=rehearsal;K8S_POD_NAME=rehearsal;K8S_POD_UID=rehearsal",
    "CNI-Path: /opt/cni/bin",
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** What the rehearsal hands on and never asks: there are no other NICs, and nothing is probed. */
type RehearsalDeps = Pick<CoordinatorDeps, "registry"> & Pick<LateDetectionDeps, "prober">;

/** Returns what a caller would have been answered. Throws NetnsError, NetlinkError or ApplyError if the kernel refuses the namespaces or what is in them. */
export async function rehearse({ registry, prober }: RehearsalDeps): Promise<Answer> {
  using opened = new DisposableStack();
  const pathOf = ({ fd }: { readonly fd: number }): string => `/proc/self/fd/${fd}`;
  const host = opened.use(openNode(pathOf(opened.use(createNetns()))));
  const netns = pathOf(opened.use(createNetns()));
  await applyOperations(makeNic(), { host, pod: opened.use(openNamespace(netns)) });
  // Lines are formatted and go nowhere.
  const log = pino({ level: "debug", ...LOG_FORMAT }, { write: () => {} });
  const hostRouteCIDR = [formatPrefix(maskPrefix(POD_ADDRESS))];
  const known = { ...assembleSnapshot([]), vendorConf: decodeVendorConf({ hostRouteCIDR }, "rehearsal") };
  const snapshot = () => known;
  const coordinator = opened.use(
    createCoordinatorPlugin({
      ...{ host, registry, prober, snapshot, log, faults: noFaults, isCluster: false },
      remover: new PairRemover({ host, links: openLinkRemover(host.entrance), log }),
      identifier: openManifestIdentifier(snapshot),
      answered: { takeAnswer: () => [], has: () => true, isShared: () => true },
      attachments: new CoordinatedAttachments(),
      logs: { for: () => log },
      definitions: { nicsOf: () => [], pluginsOf: () => undefined },
    }),
  );
  const plugins = { berth: coordinator, coordinator, ifacer: coordinator };
  const request = parseShimRequest(formatCall(netns));
  invariant(typeof request !== "string", "The call of the rehearsal is malformed");
  return await new Dispatcher(plugins, NO_AUDIT, log).dispatch(request, new AbortController().signal);
}
