/** The options of agent and controller that say where the address map is served, and how agents are asked for it. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type MetricsFlags, parseListen, settingsOf, tlsOf } from "../../host/bin/metrics-options.ts";
import type { Refuse } from "../../host/extension.ts";
import { LISTEN_FORMS, type ListenAddress, type ServerSettings } from "../../host/metrics/listen.ts";
import { AGENTS_AUDIENCE } from "../../host/metrics/scrape-server.ts";
import type { AgentAccess } from "./server/agent-questions.ts";

/** Certificate and key are those of the metrics. */
export interface MapFlags extends MetricsFlags {
  readonly mapListen: ListenAddress;
  readonly mapInsecure?: true;
}

export interface AgentsFlags {
  readonly agentsTokenFile?: string;
  readonly agentsCaFile?: string;
  readonly agentsName?: string;
  readonly agentsPort: number;
}

export function addMapOptions(program: Command): void {
  program
    .addOption(
      new Option(
        "--map-listen <address>",
        `address that serves the page with the address map: ${LISTEN_FORMS}; to other machines with the certificate of the metrics, for tokens of the cluster`,
      )
        .argParser(parseListen)
        .default(parseListen("off"), "off")
        .env("BERTH_MAP_LISTEN"),
    )
    .option("--map-insecure", "show the address map to other machines without TLS and without a token of the cluster");
}

export function addAgentsOptions(program: Command): void {
  program
    .option(
      "--agents-token-file <file>",
      `token of the audience ${AGENTS_AUDIENCE}, with which the address map asks agents for explanations and histories`,
    )
    .option("--agents-ca-file <file>", "certificate of the authority of the agents' certificates (PEM)")
    .option("--agents-name <name>", "DNS name in the agents' certificates")
    .addOption(
      new Option("--agents-port <port>", "port of the agents' metrics, which answers these questions")
        .argParser(parsePort)
        .default(9473),
    );
}

function parsePort(text: string): number {
  if (!/^[0-9]{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65_535)
    throw new InvalidArgumentError(`expected a port, found "${text}"`);
  return Number(text);
}

/**
 * Returns the settings, undefined if the map is off; calls `refuse` with a clause if it would be exposed. On loopback
 * it is plain HTTP: a browser that reaches it by a port-forward would not know the certificate.
 */
export function mapSettingsOf(flags: MapFlags, hasCluster: boolean, refuse: Refuse): ServerSettings | undefined {
  const { mapListen: address, mapInsecure: isInsecure = false } = flags;
  const tls = address.kind === "network" ? tlsOf(flags, refuse) : undefined;
  return address.kind === "off" ? undefined : settingsOf("map", { address, tls, isInsecure }, hasCluster, refuse);
}

/** Returns undefined if agents are not asked. */
export function agentAccessOf(flags: AgentsFlags, refuse: Refuse): AgentAccess | undefined {
  const { agentsTokenFile: tokenFile, agentsCaFile: caFile, agentsName: name, agentsPort: port } = flags;
  if (tokenFile === undefined) return undefined;
  if (caFile === undefined || name === undefined)
    refuse("--agents-token-file needs --agents-ca-file and --agents-name, by which agents are recognised");
  return { tokenFile, caFile, name, port };
}
