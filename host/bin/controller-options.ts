/** The options of `berth-controller`. */
import { hostname } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  CERTIFICATE_LIFETIME_DAYS,
  type CertificateSettings,
} from "../controller/certificates/certificates-controller.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../lib/log.ts";
import { LISTEN_FORMS, type ListenAddress } from "../metrics/listen.ts";
import type { Product } from "../record-server/prefix-server.ts";
import { addMetricsOptions, type MetricsFlags, parseListen } from "./metrics-options.ts";
import { VERSION } from "./version.ts";

/**
 * Time for which a Lease that is not renewed keeps other replicas away: milliseconds. Each replica counts from when
 * it last read a changed Lease.
 */
const LEASE_DURATION_MS = 30_000;

/**
 * Time for which a holder leads after the start of its last successful renewal: milliseconds. Shorter than the
 * Lease's duration by what a call on its way may take, and longer than two renewals of which an admission webhook
 * keeps each for its default time-out of 10 seconds.
 */
const LEASE_RENEW_DEADLINE_MS = 25_000;

/**
 * Interval at which the leader renews the Lease, and the other replicas read it: milliseconds, give or take a
 * quarter.
 */
const LEASE_RETRY_MS = 2_000;

/** Time for which a pod has an address before it is written into the IPAM of record: milliseconds. */
const RECORDS_INTERVAL_MS = 60_000;

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
  readonly hubKubeconfig?: string;
  readonly hubMember?: string;
  readonly recordsServer?: Product;
  readonly recordsUrl?: string;
  readonly recordsTokenFile?: string;
  readonly recordsCaFile?: string;
  readonly recordsCluster?: string;
  readonly recordsAddresses?: true;
  readonly recordsInterval: number;
  readonly recordsTag: string;
  readonly recordsDomain: string;
  readonly recordsSpace: ReadonlyMap<string, string>;
  readonly finalizers: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

const DEFAULT_LISTEN = "127.0.0.1:9474";

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === "" || !(seconds > 0 && seconds <= 3_600)) {
    throw new InvalidArgumentError(`expected seconds, more than 0 and at most 3600, found "${text}"`);
  }
  return seconds;
}

function parseDays(text: string): number {
  const days = Number(text);
  if (text.trim() === "" || !(days > 0 && days <= 825))
    throw new InvalidArgumentError(`expected days, more than 0 and at most 825, found "${text}"`);
  return days;
}

function parseCertificate(text: string, before: CertificateSettings["servers"]): CertificateSettings["servers"] {
  const [secret = "", names = ""] = text.split("=");
  if (!names.split(",").every((name) => /^[-*.:a-zA-Z0-9]{1,253}$/.test(name)))
    throw new InvalidArgumentError(`expected NAME=DNS,DNS, found "${text}"`);
  return [...before, { secret: parseName(secret), names: names.split(",") }];
}

function parseName(text: string): string {
  if (!/^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/.test(text)) {
    throw new InvalidArgumentError(`expected a Kubernetes name, found "${text}"`);
  }
  return text;
}

/** `=Global`, `blue=Blue VRF`. */
function parseSpace(text: string, before: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, space = "", name = ""] = /^([-a-z0-9]{0,63})=([^=]{0,100})$/.exec(text) ?? [];
  if (!text.includes("=") || `${space}=${name}` !== text)
    throw new InvalidArgumentError(`expected SPACE=NAME, the address space of pools first, found "${text}"`);
  if ([...before].some(([other, taken]) => other === space || taken === name))
    throw new InvalidArgumentError(`expected each address space and each name once, found "${text}" again`);
  return new Map([...before, [space, name]]);
}

function parseShown(text: string): string {
  if (!/^[!-~](?:[ -~]{0,48}[!-~])?$/.test(text))
    throw new InvalidArgumentError(`expected 1 to 50 characters of ASCII, found "${text}"`);
  return text;
}

function parseIdentity(text: string): string {
  if (!/^[!-~]{1,200}$/.test(text))
    throw new InvalidArgumentError(`expected 1 to 200 characters without blanks, found "${text}"`);
  return text;
}

const seconds = (flag: string, description: string, defaultMs: number): Option =>
  new Option(`${flag} <seconds>`, description).argParser(parseSeconds).default(defaultMs / 1000);

/** Returns the program without its actions. */
export function describeController(): Command {
  const program = new Command("berth-controller")
    .description("Run the cluster-wide controllers of Berth. Several replicas may run; a Lease elects the leader")
    .version(VERSION)
    .addOption(new Option("--kubeconfig <file>", "path of a kubeconfig file").env("BERTH_KUBECONFIG"))
    .option("--in-cluster", "use the service account of the pod that the controller runs in")
    .addOption(
      new Option("--config-namespace <name>", "namespace of the ConfigMap vendor-conf")
        .argParser(parseName)
        .default("kube-system")
        .env("BERTH_CONFIG_NAMESPACE"),
    )
    .addOption(
      new Option("--lease-namespace <name>", "namespace of the Lease")
        .argParser(parseName)
        .default("kube-system")
        .env("BERTH_LEASE_NAMESPACE"),
    )
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
    .option("--hub-kubeconfig <file>", "kubeconfig of the API server whose AddressRanges pools take blocks from")
    .addOption(
      new Option("--hub-member <name>", "name of this cluster in spec.members of these AddressRanges").argParser(
        parseName,
      ),
    )
    .addOption(
      new Option("--records-server <product>", "product of the IPAM of record").choices(["nautobot", "netbox"]),
    )
    .option("--records-url <url>", "its address: https://HOST, with a path if it is below one")
    .option("--records-token-file <file>", "file with a token of its API; read again when it changes")
    .option("--records-ca-file <file>", "certificates of its authority, in place of the public ones (PEM)")
    .addOption(new Option("--records-cluster <name>", "name of this cluster in its entries").argParser(parseShown))
    .option("--records-addresses", "write the addresses of pods into it")
    .addOption(seconds("--records-interval", "how long a pod has an address before it is written", RECORDS_INTERVAL_MS))
    .addOption(new Option("--records-tag <name>", "tag of these entries").argParser(parseShown).default("berth"))
    .addOption(
      new Option("--records-domain <name>", "suffix of their DNS names: POD.NAMESPACE.NAME")
        .argParser(parseName)
        .default("", "none"),
    )
    .addOption(
      new Option(
        "--records-space <space=name>",
        "namespace of Nautobot or VRF of NetBox for an address space; may be repeated, and others are not written",
      )
        .argParser(parseSpace)
        .default(new Map(), "the default space: Global, or no VRF"),
    )
    .addOption(new Option("--log-level <level>", "lowest level of messages to log").choices(LOG_LEVELS).default("info"))
    .addOption(new Option("--log-format <format>", "text for a person").choices(LOG_FORMATS).default("json"));
  return addMetricsOptions(program);
}
