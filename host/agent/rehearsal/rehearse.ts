/**
 * A rehearsal: the agent itself makes one ADD of a chain, of `berth` and of the coordinator, in two network namespaces and with a registry that exist only
 * for it. V8 compiles a function when it is called for the first time, so the first ADD after a start would take three times as long as those after it.
 * Effects: two network namespaces, which go when it ends; the calling thread is in them for moments. None on the node, none in its registry.
 */
import pino from "pino";
import { decodeVendorConf } from "../../config/vendor-conf.ts";
import { applyOperations } from "../../kernel/apply.ts";
import { openLinkRemover } from "../../kernel/link-remover.ts";
import { createNetns } from "../../kernel/netns.ts";
import { openNamespace, openNode } from "../../kernel/open-namespace.ts";
import { noFaults } from "../../lib/fault.ts";
import { invariant } from "../../lib/invariant.ts";
import { LOG_FORMAT } from "../../lib/log.ts";
import { formatPrefix, maskPrefix } from "../../net/prefix.ts";
import { NO_AUDIT } from "../audit/audit.ts";
import { CoordinatedAttachments } from "../coordinator/attachments.ts";
import { PairRemover } from "../coordinator/pair-remover.ts";
import { createCoordinatorPlugin } from "../coordinator/plugin.ts";
import type { Detection } from "../detection/open-detection.ts";
import { IpamPlugin } from "../ipam/plugin.ts";
import type { Answer } from "../server/answer.ts";
import { Dispatcher } from "../server/dispatcher.ts";
import { parseShimRequest } from "../server/shim-request.ts";
import { openRehearsedIpam } from "./ipam.ts";
import { makeNic, NIC, POD_ADDRESS } from "./nic.ts";

/** Of documentation (RFC 5737). */
const SERVICES = "198.51.100.0/24";

const VERSION = { cniVersion: "1.0.0", name: "rehearsal" };

/** Returns the call as the shim sends it. */
function formatCall(plugin: "berth" | "coordinator", netns: string, netConf: object): Buffer {
  const body = JSON.stringify({ ...VERSION, ...netConf });
  const head = [
    `POST /v1/cni/${plugin} HTTP/1.1`,
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

/** Returns the main plugin's result: what its IPAM has answered, and the NIC. */
function resultOfMain(answered: string, netns: string): object {
  const { ips, ...rest } = JSON.parse(answered) as { readonly ips: readonly object[] };
  return { ...rest, interfaces: [{ name: NIC, sandbox: netns }], ips: ips.map((ip) => ({ ...ip, interface: 0 })) };
}

export interface RehearsalDeps {
  /** The built core, berth-core.wasm. */
  readonly coreWasm: Uint8Array;
  readonly detection: Detection;
  readonly nowMs: () => number;
}

/**
 * Returns what a caller would have been answered: by the coordinator, or by `berth` if that refused. Throws NetnsError, NetlinkError or ApplyError if the kernel
 * refuses the namespaces or what is in them.
 */
export async function rehearse(deps: RehearsalDeps): Promise<Answer> {
  using opened = new DisposableStack();
  const pathOf = ({ fd }: { readonly fd: number }): string => `/proc/self/fd/${fd}`;
  const host = opened.use(openNode(pathOf(opened.use(createNetns()))));
  const netns = pathOf(opened.use(createNetns()));
  await applyOperations(makeNic(), { host, pod: opened.use(openNamespace(netns)) });
  // Lines are formatted and go nowhere.
  const log = pino({ level: "debug", ...LOG_FORMAT }, { write: () => {} });
  const hostRouteCIDR = [formatPrefix(maskPrefix(POD_ADDRESS))];
  const ipam = openRehearsedIpam({ ...deps, log }, decodeVendorConf({ hostRouteCIDR }, "rehearsal"));
  const { inventory, identifier, detection, networks } = ipam;
  const coordinator = opened.use(
    createCoordinatorPlugin({
      ...{ host, identifier, log, faults: noFaults, isCluster: false },
      registry: inventory.registry,
      snapshot: () => inventory.snapshot,
      prober: detection.prober,
      answered: detection.answered,
      refused: inventory.refused,
      definitions: networks,
      remover: new PairRemover({ host, links: openLinkRemover(host.entrance), log }),
      attachments: new CoordinatedAttachments(),
      logs: { for: () => log },
    }),
  );
  const berth = new IpamPlugin(ipam, { synced: async () => {}, readiness: () => ({ ready: true, problems: [] }) });
  const dispatcher = new Dispatcher({ berth, coordinator, ifacer: coordinator }, NO_AUDIT, log);
  const call = (plugin: "berth" | "coordinator", netConf: object): Promise<Answer> => {
    const request = parseShimRequest(formatCall(plugin, netns, netConf));
    invariant(typeof request !== "string", "The call of the rehearsal is malformed");
    return dispatcher.dispatch(request, new AbortController().signal);
  };
  const answer = await call("berth", { type: "macvlan", ipam: { type: "berth" } });
  if (answer.status !== 200) return answer;
  const prevResult = resultOfMain(answer.body, netns);
  return await call("coordinator", { type: "coordinator", mode: "auto", serviceCIDR: [SERVICES], prevResult });
}
