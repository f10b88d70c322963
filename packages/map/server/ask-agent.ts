/** The questions of the address map that an agent answers, by its status API: GET /v1/explain and /v1/history. */
import { formatIp, type Ip } from "../../../host/net/ip.ts";
import { type HistoryPage, historyPageSchema } from "../../../host/records/audit-line.ts";
import { decodeExplanation, type ExplanationRecord } from "../../../host/records/explanation-record.ts";
import type { AddressHistory, MapQuestions, PodName } from "./map-source.ts";

/** Calls GET of the agent's status API. Rejects if there is no answer, and when the signal aborts. */
type AskAgent = (url: string, signal: AbortSignal) => Promise<{ readonly body: string }>;

/** Asks the one agent of a host without a cluster. */
export function questionsTo(ask: AskAgent): MapQuestions {
  return {
    explain: (pod, signal) => explainBy(ask, pod, signal),
    history: async (address, signal) => historyOf([await historyBy(ask, address, signal)]),
  };
}

/** Rejects if the answer is no explanation. */
export async function explainBy(
  ask: AskAgent,
  { namespace, name }: PodName,
  signal: AbortSignal,
): Promise<ExplanationRecord> {
  const { body } = await ask(`/v1/explain?${new URLSearchParams({ namespace, pod: name })}`, signal);
  const explanation = decodeExplanation(JSON.parse(body));
  if (explanation === undefined) throw new Error("The agent's answer is not an explanation");
  return explanation;
}

/** Returns the newest lines. Rejects if the answer is no history. */
export async function historyBy(ask: AskAgent, address: Ip, signal: AbortSignal): Promise<HistoryPage> {
  const query = new URLSearchParams({ address: formatIp(address), newest: "" });
  const { body } = await ask(`/v1/history?${query}`, signal);
  return historyPageSchema.parse(JSON.parse(body));
}

/** Joins the answers of agents. Starts of agents are left out: they are about every address. */
export function historyOf(pages: readonly HistoryPage[], problems: readonly string[] = []): AddressHistory {
  const lines = pages.flatMap((page) => page.lines).filter(({ audit }) => audit !== "START");
  lines.sort((a, b) => (a.time < b.time ? -1 : 1));
  const cut = pages
    .filter(({ hasOlder, next }) => hasOlder === true || next !== undefined)
    .map(({ node }) => `Node ${node} has more lines; "berthctl history" shows them.`);
  const lost = pages
    .filter(({ missing }) => missing > 0)
    .map(({ node, missing }) => `At most ${missing} lines of node ${node}'s audit log are missing.`);
  return { lines, problems: [...cut, ...lost, ...problems] };
}
