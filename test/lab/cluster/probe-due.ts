/** The due probes of an agent without a kernel, on a segment that is a table. */
import { QuarantineProber } from "../../../host/agent/detection/quarantine-prober.ts";
import { formatIp } from "../../../host/net/ip.ts";
import { PoolTable } from "../../../host/resources/pools-by-name.ts";
import { NO_AUDIT } from "../../world/no-audit.ts";
import { recordLog } from "../../world/recorded-log.ts";
import { mac, RIVAL } from "../../world/values.ts";
import type { AgentNode } from "./agent-node.ts";

const LINK = { netnsPath: "/proc/self/ns/net", index: 2, name: "uplink", mac: mac("0a:00:00:00:00:01") };

/**
 * The node reconciles and probes, as is due by now, and all that follows happens. `answering`: addresses that the rival
 * answers for.
 */
export async function probeDue(node: AgentNode, answering: ReadonlySet<string>): Promise<void> {
  await node.reconcile();
  const prober = new QuarantineProber({
    ...{ registry: node.registry, nowMs: node.nowMs, random: () => 0.5, log: recordLog().log },
    ...{ pools: () => new PoolTable(), letAnswer: async () => {}, audit: NO_AUDIT },
    detect: async ({ addresses: [ip] }) =>
      ip !== undefined && answering.has(formatIp(ip)) ? { ip, mac: RIVAL } : undefined,
    findNodeLink: () => undefined,
    findPoolLink: async () => LINK,
  });
  await prober.probeDue();
  await prober.close();
  await node.registry.objects.idle();
  await node.registry.expire();
  await node.registry.objects.idle();
}
