/**
 * Asks the nodes' agents for facts that only they know, for the address map: over TLS on the port of their metrics,
 * with a token for agents alone. An agent must show a certificate of the agents' authority with the agents' name: then
 * no other program gets the token.
 */
import * as z from "zod";
import { callIfThere, type KubeApi, type KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { listPages } from "../../../host/kubernetes/list.ts";
import { collectionPath, NODES, objectPath, PODS } from "../../../host/kubernetes/paths.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { inParallel } from "../../../host/lib/in-parallel.ts";
import { readText } from "../../../host/lib/regular-file.ts";
import type { Ip } from "../../../host/net/ip.ts";
import type { HistoryPage } from "../../../host/records/audit-line.ts";
import type { ExplanationRecord } from "../../../host/records/explanation-record.ts";
import { explainBy, historyBy, historyOf } from "./ask-agent.ts";
import type { AddressHistory, MapQuestions, PodName } from "./map-source.ts";

/** Longest time that an agent may take to answer a question of the address map: milliseconds. */
const AGENT_PATIENCE_MS = 10_000;

/** Most agents that are asked at once. */
const AGENTS_AT_ONCE = 16;

/**
 * Most agents that are asked for the history of an address; of the other nodes the answer says that they were not
 * asked.
 */
const MAX_HISTORY_AGENTS = 512;

/** Longest answer of an agent that is read: bytes. */
const MAX_AGENT_ANSWER_BYTES = 4_194_304;

/** Longest time that the API server may take to say where the agents are: milliseconds. */
const API_PATIENCE_MS = 5_000;

export interface AgentAccess {
  /** PEM; the authority of the agents' certificate. */
  readonly caFile: string;
  /** The name in that certificate. */
  readonly name: string;
  /** Token with the audience AGENTS_AUDIENCE; read before each question, for the kubelet renews it. */
  readonly tokenFile: string;
  readonly port: number;
}

/** A node and the address of its agent; undefined: the node has none yet. */
interface Place {
  readonly node: string;
  readonly host: string | undefined;
}

const placed = z.object({
  metadata: z.object({ name: z.string() }),
  status: z.object({ addresses: z.array(z.object({ type: z.string(), address: z.string() })).nullish() }).nullish(),
});

const scheduled = z.object({
  spec: z.object({ nodeName: z.string().optional() }),
  status: z
    .object({ conditions: z.array(z.object({ type: z.string(), message: z.string().optional() })).nullish() })
    .nullish(),
});

export function openAgentQuestions(api: KubeApi, access: AgentAccess): MapQuestions {
  return {
    explain: (pod, signal) => explain({ api, access, signal }, pod),
    history: (address, signal) => findHistory({ api, access, signal }, address),
  };
}

interface Asking {
  readonly api: KubeApi;
  readonly access: AgentAccess;
  readonly signal: AbortSignal;
}

async function explain({ api, access, signal }: Asking, pod: PodName): Promise<ExplanationRecord> {
  const unknown = (line: string): ExplanationRecord => ({ succeeds: false, lines: [line], nics: [] });
  const name = `${pod.namespace}/${pod.name}`;
  const object = await find(api, objectPath(PODS, pod));
  if (object === undefined) return unknown(`There is no pod ${name}`);
  const { spec, status } = scheduled.parse(object);
  if (spec.nodeName === undefined) {
    const why = status?.conditions?.find(({ type }) => type === "PodScheduled")?.message;
    return unknown(`Pod ${name} is not bound to a node yet${why === undefined ? "" : `: ${why}`}`);
  }
  const node = await find(api, objectPath(NODES, { name: spec.nodeName }));
  if (node === undefined) return unknown(`Pod ${name} is bound to node ${spec.nodeName}, which does not exist`);
  try {
    return await explainBy((url) => ask(access, placeOf(node), { url, signal }), pod, signal);
  } catch (error) {
    return unknown(`The agent of node ${spec.nodeName} does not answer: ${messageOf(error)}`);
  }
}

async function findHistory({ api, access, signal }: Asking, address: Ip): Promise<AddressHistory> {
  const places: Place[] = [];
  const list = { path: collectionPath(NODES), patienceMs: API_PATIENCE_MS, signal };
  for await (const { items } of listPages(api, list)) places.push(...items.map(placeOf));
  const pages: HistoryPage[] = [];
  const problems: string[] = [];
  await inParallel(places.slice(0, MAX_HISTORY_AGENTS), AGENTS_AT_ONCE, async (place) => {
    signal.throwIfAborted();
    try {
      pages.push(await historyBy((url) => ask(access, place, { url, signal }), address, signal));
    } catch (error) {
      problems.push(`The agent of node ${place.node} does not answer: ${messageOf(error)}`);
    }
  });
  const left = places.length - MAX_HISTORY_AGENTS;
  if (left > 0) problems.push(`${left} nodes were not asked; "kubectl berth history" asks all.`);
  return historyOf(pages, problems.sort());
}

function placeOf(node: KubeObject): Place {
  const { metadata, status } = placed.parse(node);
  const host = status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  return { node: metadata.name, host };
}

/** Returns undefined if there is no such object. */
function find(api: KubeApi, path: string): Promise<KubeObject | undefined> {
  return callIfThere(api, { method: "GET", path, patienceMs: API_PATIENCE_MS });
}

interface AgentQuestion {
  readonly url: string;
  readonly signal: AbortSignal;
}

/** Rejects unless the answer is of an agent with the agents' certificate. The token is sent to no other. */
async function ask({ caFile, name, tokenFile, port }: AgentAccess, { host }: Place, asked: AgentQuestion) {
  if (host === undefined) throw new Error("the node has no InternalIP");
  const ca = readText(caFile);
  const { request } = process.getBuiltinModule("node:https");
  const signal = AbortSignal.any([asked.signal, AbortSignal.timeout(AGENT_PATIENCE_MS)]);
  const path = asked.url;
  return new Promise<{ readonly body: string }>((resolve, reject) => {
    const question = request({
      ...{ host, port, path, agent: false, signal, ca, minVersion: "TLSv1.2", servername: name },
      headers: { authorization: `Bearer ${readText(tokenFile).trim()}` },
    });
    question.once("error", reject);
    question.once("response", (answer) => {
      const parts: Buffer[] = [];
      let length = 0;
      answer.once("error", reject);
      answer.on("data", (part: Buffer) => {
        length += part.length;
        if (length > MAX_AGENT_ANSWER_BYTES) answer.destroy(new Error("its answer is too long"));
        else parts.push(part);
      });
      answer.once("end", () => {
        const body = Buffer.concat(parts).toString();
        // 422 and 503 are an explanation's own: the CNI error that an ADD would get.
        if ([200, 422, 503].includes(answer.statusCode ?? 0)) resolve({ body });
        else reject(new Error(`HTTP ${answer.statusCode}: ${body.slice(0, 200).trim()}`));
      });
    });
    question.end();
  });
}
