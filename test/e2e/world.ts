/** The built shim and agent, called as a main plugin calls its IPAM plugin. Every test has an agent and a place of its own. */
import { expect } from "vitest";
import { type Agent, type AgentOptions, startAgent } from "../../scripts/lab/agent.ts";
import { type PluginCall, type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { createNetns, type Netns } from "../../scripts/lab/netns.ts";

export const ALL_VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/** Only IPv4, no cooldown worth waiting for unless a test says so. */
export const CONF = vendorConf({ enableIPv6: false, allocationCooldown: "1s" });

export function vendorConf(settings: Record<string, unknown>): string {
  const lines = Object.entries(settings).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}\n`);
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vendor-conf}\ndata:\n  conf.yml: |\n${lines.join("")}`;
}

export function ipPool(name: string, subnet: string, spec: Record<string, unknown> = {}): string {
  const value = { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { subnet, ...spec } };
  return `${JSON.stringify(value)}\n`;
}

export function podManifest(namespace: string, name: string, annotations: Record<string, unknown>): string {
  const texts = Object.entries(annotations).map(([key, value]) => [
    key.includes("/") ? key : `ipam.vendor.io/${key}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const metadata = { namespace, name, annotations: Object.fromEntries(texts) };
  return `${JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata })}\n`;
}

export interface CallOptions extends Partial<PluginCall> {
  /** `shop/web-0` or `shop/web-0/uid`. */
  readonly pod?: string;
  readonly conf?: Record<string, unknown>;
  readonly ipam?: Record<string, unknown>;
}

export class World {
  readonly agent: Agent;
  readonly pod: Netns;

  constructor(agent: Agent, pod: Netns) {
    this.agent = agent;
    this.pod = pod;
  }

  call(command: PluginCall["command"], containerId: string, options: CallOptions = {}): Promise<PluginOutcome> {
    const { pod, conf, ipam, ...call } = options;
    const [namespace, name, uid] = pod?.split("/") ?? [];
    const args = [
      namespace === undefined ? [] : [`K8S_POD_NAMESPACE=${namespace}`],
      name === undefined ? [] : [`K8S_POD_NAME=${name}`],
      uid === undefined ? [] : [`K8S_POD_UID=${uid}`],
    ].flat();
    return runPlugin({
      plugin: "berth",
      command,
      ...(command === "GC" || command === "STATUS" ? {} : { containerId, netns: this.pod.path, ifName: "eth0" }),
      ...(args.length === 0 ? {} : { args: ["IgnoreUnknown=1", ...args].join(";") }),
      stdin: { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth", ...ipam }, ...conf },
      env: { ...this.agent.env, BERTH_CONNECT_WAIT: "5" },
      ...call,
    });
  }

  /** ADD that must succeed; its addresses without length. */
  async add(containerId: string, options: CallOptions = {}): Promise<string[]> {
    const outcome = await this.call("ADD", containerId, options);
    expect(outcome.exitCode, `${outcome.text}${outcome.stderr}`).toBe(0);
    return outcome.stdout.ips.map(({ address }: { address: string }) => address.split("/")[0]);
  }

  /** DEL that must succeed. */
  async del(containerId: string, options: CallOptions = {}): Promise<void> {
    const outcome = await this.call("DEL", containerId, options);
    expect(outcome.exitCode, outcome.text).toBe(0);
    expect(outcome.text).toBe("");
  }

  /** A call that must be refused: its code and message. */
  async refused(command: PluginCall["command"], containerId: string, options: CallOptions = {}): Promise<Refusal> {
    const outcome = await this.call(command, containerId, options);
    expect(outcome.exitCode, outcome.text).toBe(1);
    expect(outcome.stdout, outcome.text).toMatchObject({ cniVersion: expect.any(String), code: expect.any(Number) });
    return outcome.stdout;
  }

  /** Addresses in use by state: `{ Bound: ["10.0.0.1"] }`. */
  async usage(): Promise<Record<string, string[]>> {
    const usage: Record<string, string[]> = {};
    for (const { address, state } of await this.agent.get("/v1/allocations")) {
      usage[state] = [...(usage[state] ?? []), address];
    }
    return usage;
  }
}

export interface Refusal {
  readonly code: number;
  readonly msg: string;
  readonly details?: string;
}

let worlds = 0;

/** Runs `test` with an agent of these manifests and one empty namespace that plays the pod. */
export async function withWorld(
  config: AgentOptions["config"],
  test: (world: World) => Promise<void>,
  options: Partial<AgentOptions> = {},
): Promise<void> {
  const pod = await createNetns(`bt-${process.pid}-${++worlds}`);
  try {
    const agent = await startAgent({ config, ...options });
    try {
      await test(new World(agent, pod));
    } finally {
      await agent.delete();
    }
  } finally {
    await pod.delete();
  }
}

/** Asks until the answer fits, for at most `limitMs`; the last answer otherwise. */
export async function eventually<T>(ask: () => Promise<T>, fits: (answer: T) => boolean, limitMs = 10_000): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (fits(answer) || performance.now() > deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
