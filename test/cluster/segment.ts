/**
 * Nodes that are lost and come back, on a segment that is a table: which machine answers for which address. A test
 * moves the clocks and makes the sweeps.
 */
import { afterAll, afterEach, beforeAll } from "vitest";
import { QuarantineProber } from "../../host/agent/detection/quarantine-prober.ts";
import { formatIp } from "../../host/net/ip.ts";
import { AgentNode, type AgentNodeOptions } from "../lab/cluster/agent-node.ts";
import * as lab from "../lab/cluster/objects.ts";
import { NO_AUDIT } from "../world/no-audit.ts";
import { recordLog } from "../world/recorded-log.ts";
import { mac } from "../world/values.ts";
import { type Collected, openCollector } from "./collected.ts";

const MAC = mac("02:00:00:00:00:07");
const LINK = { netnsPath: "/proc/self/ns/net", index: 2, name: "uplink", mac: mac("0a:00:00:00:00:01") };

export class Segment {
  /** Addresses that a machine answers for. */
  readonly answering = new Set<string>();
  #collected: Collected | undefined;
  readonly #nodes: AgentNode[] = [];
  #pods = 0;

  /** For all tests of the file; each begins without nodes. */
  constructor() {
    beforeAll(async () => {
      this.#collected = await openCollector();
    });
    afterEach(async () => {
      for (const node of this.#nodes.splice(0)) await node.close();
      this.answering.clear();
      await this.collector.clear();
    });
    afterAll(() => this.#collected?.world.stop());
  }

  get #open(): Collected {
    if (this.#collected === undefined) throw new Error("The segment is used before its tests begin");
    return this.#collected;
  }

  get world(): Collected["world"] {
    return this.#open.world;
  }

  get collector(): Collected["collector"] {
    return this.#open.collector;
  }

  /** An agent starts on the node. */
  async openNode(name: string, options: Partial<AgentNodeOptions> = {}): Promise<AgentNode> {
    const node = await AgentNode.open(this.world.plane, name, { recorded: recordLog(), ...options });
    this.#nodes.push(node);
    return node;
  }

  async startPod(node: AgentNode, address: string): Promise<lab.LabPod> {
    const pod = await lab.createPod(this.world.client, { name: `pod-${++this.#pods}`, node: node.name });
    await node.attach(address, pod);
    await this.collector.knows(address);
    return pod;
  }

  /** The node reconciles and probes, as is due by now, and all that follows happens. */
  async ask(node: AgentNode): Promise<void> {
    await node.reconcile();
    const prober = new QuarantineProber({
      ...{ registry: node.registry, nowMs: node.nowMs, random: () => 0.5, log: recordLog().log },
      ...{ pools: () => new Map(), letAnswer: async () => {}, audit: NO_AUDIT },
      detect: async ({ addresses: [ip] }) =>
        ip !== undefined && this.answering.has(formatIp(ip)) ? { ip, mac: MAC } : undefined,
      findNodeLink: () => undefined,
      findPoolLink: async () => LINK,
    });
    await prober.probeDue();
    await prober.close();
    await node.registry.idle();
    await node.registry.expire();
    await node.registry.idle();
  }
}
