import { hostname } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  CERTIFICATE_LIFETIME_DAYS,
  type CertificateSettings,
} from "../controller/certificates/certificates-controller.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../lib/log.ts";
import { LISTEN_FORMS, type ListenAddress } from "../metrics/listen.ts";
import { addMetricsOptions, type MetricsFlags, parseListen } from "./metrics-options.ts";
import { namespaceOption, numberOf, parseName, seconds, textOf } from "./option-values.ts";
import { VERSION } from "./version.ts";

/**
 * Time for which a Lease that is not renewed keeps other replicas away: milliseconds. Each replica counts from when
 * it last read a changed Lease.
 */
const LEASE_DURATION_MS = 30_000;

/**
 * Time for which a holder leads after the start of its last successful renewal: milliseconds. It is shorter than the
 * Lease's duration by the time that a call in flight may take, and longer than two renewals that an admission webhook
 * delays by its default time-out of 10 seconds.
 */
const LEASE_RENEW_DEADLINE_MS = 25_000;

/** Interval, ± a quarter, at which the leader renews the Lease and the other replicas read it: milliseconds. */
const LEASE_RETRY_MS = 2_000;

export interface ControllerFlags extends MetricsFlags {
  readonly kubeconfig?: string;
  readonly inCluster?: true;
  readonly configNamespace: string;
  readonly leaseNamespace: string;
  readonly leaseName: string;
  readonly leaseDuration: number;
  readonly leaseRenewDeadline: number;
  readonly leaseRetry: number;
  readonly identity: string;
  readonly listen: ListenAddress;
  readonly authoritySecret?: string;
  readonly certificateSecret: CertificateSettings["servers"];
  readonly certificateLifetime: number;
  readonly finalizers: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

const DEFAULT_LISTEN = "127.0.0.1:9474";

const parseDays = numberOf("days, more than 0 and at most 825", (days) => days > 0 && days <= 825);

function parseCertificate(text: string, before: CertificateSettings["servers"]): CertificateSettings["servers"] {
  const [secret = "", names = ""] = text.split("=");
  if (!names.split(",").every((name) => /^[-*.:a-zA-Z0-9]{1,253}$/.test(name)))
    throw new InvalidArgumentError(`expected NAME=DNS,DNS, found "${text}"`);
  return [...before, { secret: parseName(secret), names: names.split(",") }];
}

const parseIdentity = textOf("1 to 200 characters without blanks", /^[!-~]{1,200}$/);

/** Returns the program without its actions. */
export function describeController(): Command {
  const program = new Command("berth-controller")
    .description("Run the cluster-wide controllers of Berth. Several replicas may run; a Lease elects the leader")
    .version(VERSION)
    .addOption(new Option("--kubeconfig <file>", "path of a kubeconfig file").env("BERTH_KUBECONFIG"))
    .option("--in-cluster", "use the service account of the pod that the controller runs in")
    .addOption(
      namespaceOption("--config-namespace", "namespace of the ConfigMap vendor-conf", "BERTH_CONFIG_NAMESPACE"),
    )
    .addOption(namespaceOption("--lease-namespace", "namespace of the Lease", "BERTH_LEASE_NAMESPACE"))
    .addOption(new Option("--lease-name <name>", "name of the Lease").argParser(parseName).default("berth-controller"))
    .addOption(
      seconds("--lease-duration", "how long other replicas wait after the leader's last renewal", LEASE_DURATION_MS),
    )
    .addOption(
      seconds(
        "--lease-renew-deadline",
        "how long the leader retries a renewal before it stops leading",
        LEASE_RENEW_DEADLINE_MS,
      ),
    )
    .addOption(seconds("--lease-retry", "time between two attempts to renew or acquire the Lease", LEASE_RETRY_MS))
    .addOption(
      new Option("--identity <name>", "prefix of this replica's identity in the Lease")
        .argParser(parseIdentity)
        .default(hostname(), "the host name")
        .env("BERTH_IDENTITY"),
    )
    .addOption(
      new Option(
        "--listen <address>",
        `address that serves GET /v1/status, /healthz, /readyz and /metrics: ${LISTEN_FORMS}; to other machines only health`,
      )
        .argParser(parseListen)
        .default(parseListen(DEFAULT_LISTEN), DEFAULT_LISTEN)
        .env("BERTH_LISTEN"),
    )
    .option("--no-finalizers", "before everything is deleted: take the finalizers from pools and Subnets, and set none")
    .addOption(
      new Option(
        "--authority-secret <name>",
        "Secret in the namespace of the Lease, with the authority that signs certificates for --certificate-secret",
      ).argParser(parseName),
    )
    .addOption(
      new Option(
        "--certificate-secret <name=names>",
        "Secret that is given a certificate for these DNS names and addresses, separated by commas, and is renewed; may be repeated",
      )
        .argParser(parseCertificate)
        .default([], "none"),
    )
    .addOption(
      new Option("--certificate-lifetime <days>", "how long such a certificate is valid")
        .argParser(parseDays)
        .default(CERTIFICATE_LIFETIME_DAYS),
    )
    .addOption(new Option("--log-level <level>", "lowest level of messages to log").choices(LOG_LEVELS).default("info"))
    .addOption(new Option("--log-format <format>", "text for a person").choices(LOG_FORMATS).default("json"));
  return addMetricsOptions(program);
}
