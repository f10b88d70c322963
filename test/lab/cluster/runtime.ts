/**
 * A node's container runtime as far as Berth sees it: ADD until it succeeds, each attempt with a container ID of its
 * own and with the DEL of the failed one, as kubelet and containerd do; DEL at the end. Writes the answers into the
 * ledger.
 * Effects: executes the built plugin.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "../agent.ts";
import { type PluginOutcome, runPlugin } from "../cnitool.ts";
import type { Attachment, Ledger } from "./ledger.ts";
import type { LabPod } from "./objects.ts";
import type { Wire } from "./wire.ts";

/** The configuration list of every node: one main plugin, whose IPAM is Berth's. */
export const CONFLIST = {
  cniVersion: "1.0.0",
  name: "underlay",
  plugins: [{ type: "macvlan", master: "eth0", ipam: { type: "berth" } }],
};

/** Between two attempts, as a kubelet waits, only shorter. */
const RETRY_MS = 200;
const DEL_ATTEMPTS = 5;

export interface RuntimeDeps {
  readonly agent: Agent;
  readonly ledger: Ledger;
  /** An empty namespace that plays all pods; with a wire each sandbox has one, and NICs. */
  readonly netnsPath: string;
  readonly wire?: Wire | undefined;
}

export interface AttachOptions {
  /** Default: eth0. */
  readonly ifName?: string;
  /** Time for which it goes on trying. Default: 60,000. */
  readonly limitMs?: number;
  /** CNI_ARGS' K8S_POD_UID; default: the pod's. A static pod has another. */
  readonly uid?: string;
  /** CNI_NETNS; default: the sandbox's path. */
  readonly netns?: string;
  /** `name` of the configuration. Default: that of {@link CONFLIST}. */
  readonly network?: string;
  /** Over the rest of the configuration. */
  readonly more?: object;
}

export interface AttachOutcome {
  /** Without length; empty when every attempt failed. */
  readonly addresses: readonly string[];
  readonly attempts: number;
  readonly tookMs: number;
  /** The error of the last attempt that failed. */
  readonly refusal: string;
}

export class NodeRuntime {
  readonly #deps: RuntimeDeps;
  #containers = 0;

  constructor(deps: RuntimeDeps) {
    this.#deps = deps;
  }

  /** Tries until the pod's NIC has its addresses, or the time is over. Never throws. */
  async attach(pod: LabPod, options: AttachOptions = {}): Promise<AttachOutcome> {
    const { limitMs = 60_000 } = options;
    const start = performance.now();
    let refusal = "";
    for (let attempts = 1; ; attempts++) {
      const containerId = this.newContainerId();
      const outcome = await this.add(pod, containerId, options);
      const tookMs = performance.now() - start;
      if (outcome.exitCode === 0) return { addresses: addressesOf(outcome), attempts, tookMs, refusal };
      refusal = outcome.text || outcome.stderr;
      await this.del(pod, containerId, options);
      if (performance.now() - start > limitMs) return { addresses: [], attempts, tookMs, refusal };
      await sleep(RETRY_MS);
    }
  }

  /** The DEL of a pod's NIC. Throws when it keeps failing: a DEL must never stop a pod's end. */
  async detach(pod: LabPod, ifName = "eth0"): Promise<void> {
    const attachment = this.#deps.ledger.find(pod, ifName);
    if (attachment === undefined) return;
    this.#deps.ledger.drop(attachment);
    await this.del(pod, attachment.containerId, { ifName });
  }

  /** One ADD; its answer is recorded in the ledger. */
  async add(pod: LabPod, containerId: string, options: AttachOptions = {}): Promise<PluginOutcome> {
    const { ifName = "eth0" } = options;
    const { ledger } = this.#deps;
    const adding = ledger.witness?.adding(pod, ifName);
    const outcome = await this.call("ADD", pod, containerId, options);
    if (outcome.exitCode !== 0) {
      adding?.refused(outcome.stdout?.code, outcome.text);
      return outcome;
    }
    const attachment = { pod, ifName, containerId, addresses: addressesOf(outcome) };
    adding?.answered(attachment.addresses);
    ledger.hold(attachment);
    await this.#deps.wire?.plug(attachment, attachment.addresses);
    return outcome;
  }

  async del(pod: LabPod, containerId: string, options: AttachOptions = {}): Promise<void> {
    const { ifName = "eth0" } = options;
    for (let attempt = 1; ; attempt++) {
      const { exitCode, text, stderr } = await this.call("DEL", pod, containerId, options);
      if (exitCode === 0) return this.#deps.wire?.unplug({ pod, containerId, ifName });
      if (attempt === DEL_ATTEMPTS) throw new Error(`DEL of ${pod.namespace}/${pod.name}: ${text}${stderr}`);
      await sleep(RETRY_MS);
    }
  }

  /** CNI GC. Default: with all attachments that are live. */
  gc(live: readonly Attachment[] = this.#deps.ledger.live()): Promise<PluginOutcome> {
    const listed = live.map(({ containerId, ifName }) => ({ containerID: containerId, ifname: ifName }));
    return this.#run({ command: "GC", stdin: { ...configuration("1.1.0"), "cni.dev/valid-attachments": listed } });
  }

  /** Looks like containerd's. */
  newContainerId(): string {
    this.#containers += 1;
    return createHash("sha256").update(`${this.#deps.agent.socket} ${this.#containers}`).digest("hex");
  }

  /** The bare call, which changes neither ledger nor wire. */
  async call(command: "ADD" | "DEL", pod: LabPod, containerId: string, options: AttachOptions) {
    const { namespace, name, uid } = pod;
    const words = [`K8S_POD_NAMESPACE=${namespace}`, `K8S_POD_NAME=${name}`, `K8S_POD_UID=${options.uid ?? uid}`];
    const args = ["IgnoreUnknown=1", ...words, `K8S_POD_INFRA_CONTAINER_ID=${containerId}`].join(";");
    const { ifName = "eth0" } = options;
    const sandbox = await this.#deps.wire?.sandbox({ pod, containerId });
    return this.#run({
      command,
      containerId,
      netns: options.netns ?? sandbox ?? this.#deps.netnsPath,
      ifName,
      args,
      stdin: { ...configuration("1.0.0", options.network), ...options.more },
    });
  }

  #run(call: Omit<Parameters<typeof runPlugin>[0], "plugin" | "env">): Promise<PluginOutcome> {
    return runPlugin({ ...call, plugin: "berth", env: { ...this.#deps.agent.env, BERTH_CONNECT_WAIT: "5" } });
  }
}

/** Returns the configuration that the main plugin hands to its IPAM plugin. */
function configuration(cniVersion: string, name = CONFLIST.name): object {
  return { ...CONFLIST.plugins[0], cniVersion, name };
}

function addressesOf({ exitCode, stdout }: PluginOutcome): string[] {
  if (exitCode !== 0) return [];
  return stdout.ips.map(({ address }: { address: string }) => address.split("/")[0]);
}
