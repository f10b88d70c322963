/**
 * Pods on each node, and probes between them. Effects: a namespace with pods and a Service, which is gone at the end
 * however the test ends, unless the process is killed.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { callIfThere, type KubeApi, type KubeObject } from "../../kubernetes/kube-api.ts";
import { collectionPath, NAMESPACES, NODES, objectPath, PODS, SERVICES } from "../../kubernetes/paths.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { byName } from "../../lib/order.ts";
import { tryOr } from "../../lib/try-or.ts";
import { type Access, execInPod } from "../cluster-agents.ts";
import { readObjects } from "../cluster-source.ts";
import { ProblemError } from "../exit-code.ts";
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
  /** What was probed, and what came of it. */
  readonly text: string;
}

export interface TestOptions {
  readonly api: KubeApi;
  readonly access: Access;
  /** By node. */
  readonly images: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** Tells what is being done. */
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
  try {
    return await testIn(name, options);
  } finally {
    options.progress(`removing namespace ${name}`);
    await removeNamespace(options.api, name);
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
  await create(collectionPath(NAMESPACES), namespaceOf(namespace));
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
  const podOn = (node: string, from: From) =>
    running.find((pod) => pod.node === node && pod.name.startsWith(`${from}-`));
  const isStarted = (node: string): boolean =>
    (["pod", "node"] as const).every((from) => podOn(node, from)?.isRunning === true);
  const failed = pods.flatMap(({ from, node, name }): TestResult[] => {
    const { isRunning = false, problem = "it is gone" } = podOn(node, from) ?? {};
    return isRunning
      ? []
      : [{ node, from, to: "start", family: 0, outcome: "failed", text: `pod ${name} did not start: ${problem}` }];
  });
  const ips = await nodeIps(api);
  const nodes = names
    .filter(isStarted)
    .map((node): TestNode => ({ name: node, ips: ips.get(node) ?? [], podIps: podOn(node, "pod")?.ips ?? [] }));
  const probes = planProbes({
    nodes,
    serviceIps: clusterIps(service),
    serverPort: SERVER_PORT,
    servicePort: SERVICE_PORT,
  });
  let answered = 0;
  const results = await inParallel(
    pods.filter(({ node }) => isStarted(node)),
    AT_ONCE,
    async ({ node, from, name }) => {
      signal.throwIfAborted();
      progress(`probing: ${answered} of ${2 * nodes.length}`);
      const own = probes.filter((probe) => probe.node === node && probe.from === from);
      const found = await ask(options.access, { namespace, name }, own);
      answered += 1;
      return found;
    },
  );
  signal.throwIfAborted();
  return [...failed, ...results.flat()];
}

async function ask(
  access: Access,
  pod: { namespace: string; name: string },
  probes: readonly Probe[],
): Promise<TestResult[]> {
  const targets = probes.map(({ id, family, kind, host, port }) => ({ id, family, kind, host, port }));
  const { exitCode, stdout, error } = await execInPod(access, pod, [
    "node",
    "-e",
    PROBE_SCRIPT,
    JSON.stringify(targets),
    String(PROBE_MS),
  ]);
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
  spec: z.object({ nodeName: z.string().default("") }),
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
  readonly node: string;
  readonly ips: readonly string[];
  readonly isRunning: boolean;
  readonly problem: string;
}

/** Returns all pods when each of them runs or has ended, or the time is over. */
async function untilRunning(namespace: string, { api, signal, startMs, progress }: TestOptions): Promise<RunningPod[]> {
  const endMs = performance.now() + startMs;
  for (;;) {
    const { items } = (await api.call({ method: "GET", path: collectionPath(PODS, namespace), signal })) as {
      items?: readonly KubeObject[];
    };
    const pods = (items ?? []).flatMap((item) => runningPod(item) ?? []);
    const missing = pods.filter(({ isRunning }) => !isRunning).length;
    if (missing === 0) return pods;
    if (performance.now() > endMs) return Promise.all(pods.map((pod) => withEvent(api, namespace, pod)));
    progress(`starting pods: ${pods.length - missing} of ${pods.length}`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

function runningPod(object: KubeObject): RunningPod | undefined {
  const { data } = podState.safeParse(object);
  if (data === undefined) return undefined;
  const { metadata, spec, status } = data;
  const ips = status.podIPs.map(({ ip }) => ip);
  const waiting = status.containerStatuses[0]?.state.waiting;
  const reasons = [status.phase, status.message, waiting?.reason, waiting?.message].filter(
    (text) => text !== undefined && text !== "",
  );
  return {
    name: metadata.name,
    node: spec.nodeName,
    ips,
    isRunning: status.phase === "Running" && ips.length > 0,
    problem: reasons.join(": "),
  };
}

const eventSchema = z.object({ type: z.string(), message: z.string().default("") });

/** An ADD that is refused is told in an Event only. */
async function withEvent(api: KubeApi, namespace: string, pod: RunningPod): Promise<RunningPod> {
  if (pod.isRunning) return pod;
  const query = { fieldSelector: `involvedObject.name=${pod.name}` };
  const path = collectionPath({ apiVersion: "v1", plural: "events" }, namespace);
  const { items } = (await api.call({ method: "GET", path, query }).catch(() => ({}))) as {
    items?: readonly KubeObject[];
  };
  const warnings = (items ?? [])
    .flatMap((item) => eventSchema.safeParse(item).data ?? [])
    .filter(({ type }) => type === "Warning");
  const message = warnings.at(-1)?.message;
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

/** Resolves when it is gone. */
async function removeNamespace(api: KubeApi, name: string): Promise<void> {
  const path = objectPath(NAMESPACES, { name });
  const endMs = performance.now() + CLEAN_MS;
  await callIfThere(api, { method: "DELETE", path });
  while ((await callIfThere(api, { method: "GET", path })) !== undefined) {
    if (performance.now() > endMs)
      throw new ProblemError(
        `Namespace ${name} is not gone after ${CLEAN_MS / 1_000} s; kubectl describe namespace ${name} says why`,
      );
    await sleep(LOOK_MS);
  }
}

/** In the order of the nodes; each node's pod first. */
export function sortResults(results: readonly TestResult[]): TestResult[] {
  return results
    .map((result) => ({ name: `${result.node}\0${result.from === "pod" ? 0 : 1}`, result }))
    .toSorted(byName)
    .map(({ result }) => result);
}
