/** The built shim and agent on a node of the lab's network, with pods whose NICs are there already: only the coordinator is called. */
import { expect } from "vitest";
import { LAB_NETWORKS, segmentAddress } from "../../scripts/lab/addressing.ts";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { type PluginCall, type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { requireCommand } from "../../scripts/lab/command.ts";
import { type Fabric, makeFabric } from "../../scripts/lab/fabric.ts";
import type { Netns } from "../../scripts/lab/netns.ts";
import { firstDifference, readNetworkState, readSettledState } from "./network-state.ts";
import { type Refusal, vendorConf } from "./world.ts";

export type Verb = PluginCall["command"];

export interface CoordinatorCall extends Partial<PluginCall> {
  /** The coordinator's own keys. */
  readonly conf?: object | undefined;
  readonly ifName?: string;
  /** Default: that of the pod's NIC on segment 0. */
  readonly prevResult?: object | undefined;
}

export class CoordinatorWorld {
  readonly fabric: Fabric;
  readonly agent: Agent;
  readonly pod: Netns;
  readonly #host: number;

  constructor(fabric: Fabric, agent: Agent, pod: Netns, host: number) {
    this.fabric = fabric;
    this.agent = agent;
    this.pod = pod;
    this.#host = host;
  }

  call(command: Verb, { conf, ...call }: CoordinatorCall = {}): Promise<PluginOutcome> {
    const isOfNode = command === "STATUS" || command === "GC";
    const ifName = call.ifName ?? "eth0";
    const prevResult = "prevResult" in call ? call.prevResult : this.resultOf(ifName);
    const { name: network, ...keys } = { name: "lab", ...conf };
    return runPlugin({
      plugin: "coordinator",
      command,
      ...(isOfNode ? {} : { containerId: `c-${this.pod.name}`, netns: this.pod.path, ifName }),
      stdin: { cniVersion: "1.1.0", name: network, type: "coordinator", ...(isOfNode ? {} : { prevResult }), ...keys },
      env: { ...this.agent.env, BERTH_CONNECT_WAIT: "5" },
      ...call,
    });
  }

  /** As a main plugin tells it. */
  resultOf(ifName: string) {
    return {
      cniVersion: "1.1.0",
      interfaces: [{ name: ifName, sandbox: this.pod.path }],
      ips: [
        { address: `${segmentAddress(0, this.#host, 4)}/24`, gateway: segmentAddress(0, 1, 4), interface: 0 },
        { address: `${segmentAddress(0, this.#host, 6)}/64`, gateway: segmentAddress(0, 1, 6), interface: 0 },
      ],
      routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
    };
  }

  async succeed(command: Verb, call: CoordinatorCall = {}): Promise<PluginOutcome> {
    const outcome = await this.call(command, call);
    expect(outcome.exitCode, `${command}: ${outcome.text}${outcome.stderr}`).toBe(0);
    return outcome;
  }

  async refused(command: Verb, call: CoordinatorCall = {}): Promise<Refusal> {
    const outcome = await this.call(command, call);
    expect(outcome.exitCode, `${command}: ${outcome.text}${outcome.stderr}`).toBe(1);
    expect(outcome.stdout, outcome.text).toMatchObject({ cniVersion: "1.1.0", code: expect.any(Number) });
    return outcome.stdout;
  }

  /** The node's and the pod's network, once they have come to rest. */
  settled(): Promise<string> {
    return readSettledState(this.fabric.node1, this.pod);
  }

  /** Fails with the first difference. */
  async expectState(before: string, when: string): Promise<void> {
    const states = await Promise.all([this.fabric.node1, this.pod].map(readNetworkState));
    expect(firstDifference(before, states.join("\n")), when).toBe("");
  }

  async delete(): Promise<void> {
    await this.agent.delete();
    await this.fabric.delete();
  }
}

/** `prefix` tells namespaces of different test files apart. */
export async function makeCoordinatorWorld(prefix: string, host = 50): Promise<CoordinatorWorld> {
  const fabric = await makeFabric(prefix);
  try {
    const pod = await fabric.addMacvlanPod(fabric.node1, "pod", [{ segment: 0, host }]);
    const { node1, node2, router, outside, switch: wires } = fabric;
    await Promise.all([node1, node2, router, outside, wires, pod].map(silence));
    const agent = await startAgent({
      config: { "conf.yaml": vendorConf({ hostRouteCIDR: LAB_NETWORKS }) },
      node: fabric.node1,
    });
    return new CoordinatorWorld(fabric, agent, pod, host);
  } catch (error) {
    await fabric.delete();
    throw error;
  }
}

/** Nobody asks for routers: who is heard becomes a neighbour, and no change of ours. */
async function silence(netns: Netns): Promise<void> {
  const script = "for file in /proc/sys/net/ipv6/conf/*/router_solicitations; do echo 0 > $file; done";
  await requireCommand(netns.enter(["sh", "-ec", script]));
}
