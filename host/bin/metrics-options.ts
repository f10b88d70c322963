/** The options of agent and controller for the address and the access of metrics. */
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  findExposure,
  LISTEN_FORMS,
  type ListenAddress,
  parseListenAddress,
  type ServerSettings,
} from "../metrics/listen.ts";

export interface MetricsFlags {
  readonly metricsListen: ListenAddress;
  readonly metricsCertFile?: string;
  readonly metricsKeyFile?: string;
  readonly metricsInsecure?: true;
}

/** For an option of commander. */
export function parseListen(text: string): ListenAddress {
  const address = parseListenAddress(text);
  if (address === undefined) throw new InvalidArgumentError(`expected ${LISTEN_FORMS}, found "${text}"`);
  return address;
}

export function addMetricsOptions(program: Command): Command {
  return program
    .addOption(
      new Option("--metrics-listen <address>", `address that serves GET /metrics for Prometheus: ${LISTEN_FORMS}`)
        .argParser(parseListen)
        .default(parseListen("off"), "off")
        .env("BERTH_METRICS_LISTEN"),
    )
    .option(
      "--metrics-cert-file <file>",
      "serve metrics over TLS with this certificate (PEM); renewed files are reloaded",
    )
    .option("--metrics-key-file <file>", "its private key (PEM)")
    .option("--metrics-insecure", "let other machines scrape without TLS and without a token of the cluster");
}

/** Returns the settings; calls `refuse` with a clause if they would expose the served pages. */
export function settingsOf(
  served: "metrics" | "map",
  settings: ServerSettings,
  hasCluster: boolean,
  refuse: (text: string) => never,
): ServerSettings {
  const exposure = findExposure(settings, { hasCluster })?.replaceAll("--metrics-insecure", `--${served}-insecure`);
  return exposure === undefined ? settings : refuse(`--${served}-listen: ${exposure}`);
}

/** Returns the settings; calls `refuse` with a clause if they contradict each other or would expose the metrics. */
export function scrapeSettingsOf(flags: MetricsFlags, hasCluster: boolean, refuse: (text: string) => never) {
  const { metricsListen: address, metricsInsecure: isInsecure = false } = flags;
  return settingsOf("metrics", { address, tls: tlsOf(flags, refuse), isInsecure }, hasCluster, refuse);
}

/** The metrics' certificate; calls `refuse` with a clause if the certificate or its key is missing. */
export function tlsOf(
  { metricsCertFile, metricsKeyFile }: MetricsFlags,
  refuse: (text: string) => never,
): ServerSettings["tls"] {
  if ((metricsCertFile === undefined) !== (metricsKeyFile === undefined))
    refuse("--metrics-cert-file and --metrics-key-file belong together, found one of them");
  return metricsCertFile === undefined || metricsKeyFile === undefined
    ? undefined
    : { certFile: metricsCertFile, keyFile: metricsKeyFile };
}
