/**
 * Pods on each node, and probes between them. Effects: a namespace with pods and a Service, which is gone at the end
 * however the test ends, unless the process is killed.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { type Access, execInPod } from "../../../host/cli/cluster-agents.ts";
import { ProblemError } from "../../../host/cli/exit-code.ts";
import { readObjects } from "../../../host/cli/read-objects.ts";
import type { PodName } from "../../../host/cli/source.ts";
import { callIfThere, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import {
  collectionPath,
  NAMESPACES,
  NODES,
  objectPath,
  PODS,
  type Resource,
  SERVICES,
} from "../../../host/kubernetes/paths.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { inParallel } from "../../../host/lib/in-parallel.ts";
import { byName } from "../../../host/lib/order.ts";
import { tryOr } from "../../../host/lib/try-or.ts";
import { namespaceOf, podOf, SERVICE_PORT, serviceOf, TEST_LABEL } from "./objects.ts";
import { type From, type Probe, planProbes, type TestNode } from "./plan-probes.ts";
import { PROBE_MS, PROBE_SCRIPT, type ProbeAnswer, SERVER_PORT } from "./probe-script.ts";

/** One probe's end, or a pod that did not start. */
export interface TestResult {
  readonly node: string;
  readonly from: From;
  readonly to: string;
  /** 0 if no address was probed. */
  readonly family: 0 | 4 | 6;
  /** `none`: there was nothing to probe. */
  readonly outcome: "ok" | "failed" | "none";
  /** The probed address; the problem of a failed probe. */
  readonly text: string;
}

export interface TestOptions {
  readonly api: KubeApi;
  readonly access: Access;
  /** By node. */
  readonly images: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** Shows the current step; "" when all is done. */
  readonly progress: (text: string) => void;
  /** Longest time until all pods run: milliseconds. */
  readonly startMs: number;
}

/** Pods that are made and asked at once. */
const AT_ONCE = 8;

/** Longest time for the namespace to go: milliseconds. */
const CLEAN_MS = 120_000;
const LOOK_MS = 500;

/** Rejects if the objects cannot be made, with ProblemError if they do not go, and when the signal ends. */
export async function runTest(options: TestOptions): Promise<TestResult[]> {
  const name = `berth-test-${randomBytes(3).toString("hex")}`;
  const { api, signal } = options;
  await api.call({ method: "POST", path: collectionPath(NAMESPACES), body: namespaceOf(name), signal });
  try {
    return await testIn(name, options);
  } finally {
    options.progress(`removing namespace ${name}`);
    await removeNamespace(api, name);
    options.progress("");
  }
}

/** Returns the namespaces of tests that were killed, or still run. */
export function findTests(api: KubeApi): Promise<string[]> {
  const tests = { resource: NAMESPACES, query: { labelSelector: TEST_LABEL } };
  return readObjects(api, tests, (object) => named.safeParse(object).data?.metadata.name);
}

const named = z.object({ metadata: z.object({ name: z.string() }) });

async function testIn(namespace: string, options: TestOptions): Promise<TestResult[]> {
  const { api, images, signal, progress } = options;
  const create = (path: string, body: object) => api.call({ method: "POST", path, body, signal });
  const names = [...images.keys()].sort();
  progress(`starting pods on ${names.length} nodes`);
  const service = await create(collectionPath(SERVICES, namespace), serviceOf());
  const pods = names.flatMap((node, at) =>
    (["pod", "node"] as const).map((from) => ({ from, node, name: `${from}-${at}` })),
  );
  await inParallel(pods, AT_ONCE, ({ from, node, name }) =>
    create(
      collectionPath(PODS, namespace),
      podOf({ name, node, image: images.get(node) ?? "", isOfNode: from === "node" }),
    ),
  );
  const running = await untilRunning(namespace, options);
  const failed = pods.filter(({ name }) => running.get(name)?.isRunning !== true);
  const isStarted = (node: string): boolean => !failed.some((pod) => pod.node === node);
  const failures = failed.map(({ from, node, name }): TestResult => {
    const text = `pod ${name} did not start: ${running.get(name)?.problem ?? "it is gone"}`;
    return { node, from, to: "start", family: 0, outcome: "failed", text };
  });
  const started = pods.filter(({ node }) => isStarted(node));
  const ips = await nodeIps(api);
  const nodes = started
    .filter(({ from }) => from === "pod")
    .map(
      ({ node, name }): TestNode => ({
        name: node,
        ips: ips.get(node) ?? [],
        podIps: running.get(name)?.ips ?? [],
      }),
    );
  const probes = planProbes({
    nodes,
    serviceIps: clusterIps(service),
    serverPort: SERVER_PORT,
    servicePort: SERVICE_PORT,
  });
  let answered = 0;
  const results = await inParallel(started, AT_ONCE, async ({ node, from, name }) => {
    signal.throwIfAborted();
    progress(`probing: ${answered} of ${started.length}`);
    const own = probes.filter((probe) => probe.node === node && probe.from === from);
    const found = await ask(options.access, { namespace, name }, own);
    answered += 1;
    return found;
  });
  signal.throwIfAborted();
  return [...failures, ...results.flat()];
}

async function ask(access: Access, pod: PodName, probes: readonly Probe[]): Promise<TestResult[]> {
  const targets = probes.map(({ id, family, kind, host, port }) => ({ id, family, kind, host, port }));
  const argv = ["node", "-e", PROBE_SCRIPT, JSON.stringify(targets), String(PROBE_MS)];
  // A time that is given is that of the pods' start.
  const { exitCode, stdout, error } = await execInPod({ ...access, timeoutMs: undefined }, pod, argv);
  const answers = exitCode === 0 ? decodeAnswers(stdout) : undefined;
  return probes.map(({ id, node, from, to, family, host }): TestResult => {
    const { isWell, text = error || "the pod's answer lacks it" } = answers?.find((each) => each.id === id) ?? {
      isWell: false,
    };
    const outcome = isWell === undefined ? "none" : isWell ? "ok" : "failed";
    return { node, from, to, family, outcome, text: text || host };
  });
}

const answersSchema = z.array(z.object({ id: z.int(), isWell: z.boolean().optional(), text: z.string() }));

function decodeAnswers(text: string): readonly ProbeAnswer[] | undefined {
  return tryOr(() => answersSchema.parse(JSON.parse(text)), undefined);
}

const podState = z.object({
  metadata: z.object({ name: z.string() }),
  status: z.object({
    phase: z.string().default("Pending"),
    message: z.string().default(""),
    podIPs: z.array(z.object({ ip: z.string() })).default([]),
    containerStatuses: z
      .array(
        z.object({
          state: z.object({
            waiting: z.object({ reason: z.string().default(""), message: z.string().default("") }).optional(),
          }),
        }),
      )
      .default([]),
  }),
});

interface RunningPod {
  readonly name: string;
  readonly ips: readonly string[];
  readonly isRunning: boolean;
  readonly problem: string;
}

/** Returns the pods by name when each of them runs, or the time is over. */
async function untilRunning(
  namespace: string,
  { api, signal, startMs, progress }: TestOptions,
): Promise<ReadonlyMap<string, RunningPod>> {
  const endMs = performance.now() + startMs;
  for (;;) {
    signal.throwIfAborted();
    const pods = await readObjects(api, { resource: PODS, namespace }, runningPod);
    const missing = pods.filter(({ isRunning }) => !isRunning).length;
    if (missing === 0 || performance.now() > endMs) {
      const seen = await Promise.all(pods.map((pod) => withEvent(api, namespace, pod)));
      return new Map(seen.map((pod) => [pod.name, pod]));
    }
    progress(`starting pods: ${pods.length - missing} of ${pods.length}`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

function runningPod(object: KubeObject): RunningPod | undefined {
  const { data } = podState.safeParse(object);
  if (data === undefined) return undefined;
  const { metadata, status } = data;
  const ips = status.podIPs.map(({ ip }) => ip);
  const waiting = status.containerStatuses[0]?.state.waiting;
  const reasons = [status.phase, status.message, waiting?.reason, waiting?.message].filter(
    (text) => text !== undefined && text !== "",
  );
  return {
    name: metadata.name,
    ips,
    isRunning: status.phase === "Running" && ips.length > 0,
    problem: reasons.join(": "),
  };
}

const CORE_EVENTS: Resource = { apiVersion: "v1", plural: "events" };
const eventSchema = z.object({ message: z.string().default("") });

/** An ADD that is refused is told in an Event only. */
async function withEvent(api: KubeApi, namespace: string, pod: RunningPod): Promise<RunningPod> {
  if (pod.isRunning) return pod;
  const query = { fieldSelector: `involvedObject.name=${pod.name},type=Warning` };
  const events = { resource: CORE_EVENTS, namespace, query };
  const messages = await readObjects(api, events, (each) => eventSchema.safeParse(each).data?.message).catch(() => []);
  const message = messages.at(-1);
  return message === undefined ? pod : { ...pod, problem: `${pod.problem}: ${message}` };
}

const nodeSchema = z.object({
  metadata: z.object({ name: z.string() }),
  status: z.object({ addresses: z.array(z.object({ type: z.string(), address: z.string() })).default([]) }),
});

async function nodeIps(api: KubeApi): Promise<Map<string, readonly string[]>> {
  const nodes = await readObjects(api, { resource: NODES }, (object) => nodeSchema.safeParse(object).data);
  const ips = nodes.map(({ metadata, status }) => {
    const internal = status.addresses.filter(({ type }) => type === "InternalIP");
    return [metadata.name, internal.map(({ address }) => address)] as const;
  });
  return new Map(ips);
}

function clusterIps(service: KubeObject): readonly string[] {
  const decoded = z.object({ spec: z.object({ clusterIPs: z.array(z.string()) }) }).safeParse(service);
  return decoded.data?.spec.clusterIPs ?? [];
}

/** Resolves when it is gone, else rejects with ProblemError. */
async function removeNamespace(api: KubeApi, name: string): Promise<void> {
  const path = objectPath(NAMESPACES, { name });
  const endMs = performance.now() + CLEAN_MS;
  try {
    await callIfThere(api, { method: "DELETE", path });
    while ((await callIfThere(api, { method: "GET", path })) !== undefined) {
      if (performance.now() > endMs) throw new Error(`${CLEAN_MS / 1_000} s; kubectl describe namespace says why`);
      await sleep(LOOK_MS);
    }
  } catch (error) {
    throw new ProblemError(`Namespace ${name} is not removed: ${messageOf(error)}`);
  }
}

/** In the order of the nodes; each node's pod first. */
export function sortResults(results: readonly TestResult[]): TestResult[] {
  return results
    .map((result) => ({ name: `${result.node}\0${result.from === "pod" ? 0 : 1}`, result }))
    .toSorted(byName)
    .map(({ result }) => result);
}
