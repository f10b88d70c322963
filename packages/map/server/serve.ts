/** The address map's server in its two places. */
import type { AgentParts } from "../../../host/agent/agent.ts";
import type { ControllerParts } from "../../../host/extension.ts";
import type { HttpListener, ServerSettings } from "../../../host/metrics/listen.ts";
import { type AgentAccess, openAgentQuestions } from "./agent-questions.ts";
import { questionsTo } from "./ask-agent.ts";
import { openClusterMap } from "./cluster-source.ts";
import { EmbeddedMap } from "./embedded-source.ts";
import { listenForViewers } from "./map-server.ts";

export function serveAgent(settings: ServerSettings, { answer, ...parts }: AgentParts): Promise<HttpListener> {
  const source = new EmbeddedMap({ ...parts, questions: questionsTo(answer) });
  return listenForViewers({ ...settings, ...parts, source, api: undefined });
}

export function serveController(
  settings: ServerSettings,
  access: AgentAccess | undefined,
  { caches, ...parts }: ControllerParts,
): Promise<HttpListener> {
  const source = { ...openClusterMap(caches), questions: access && openAgentQuestions(parts.api, access) };
  return listenForViewers({ ...settings, ...parts, source });
}
