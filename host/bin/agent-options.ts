import { Command, InvalidArgumentError, Option } from "commander";
import { LOG_DIRECTORY } from "../config/coordinator-conf.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../lib/log.ts";
import { addMetricsOptions, type MetricsFlags } from "./metrics-options.ts";
import { namespaceOption, numberOf } from "./option-values.ts";
import { VERSION } from "./version.ts";

/** Time for which a second agent waits for the state directory by default: milliseconds. */
const LOCK_WAIT_MS = 30_000;

export interface AgentFlags extends MetricsFlags {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly inCluster?: true;
  readonly renewToken?: true;
  readonly configNamespace: string;
  readonly controllerLease: string;
  readonly cniConfDir: string;
  readonly logDir: string;
  readonly state: string;
  readonly spool: string;
  readonly socket: string;
  readonly node?: string;
  readonly nodeLabel: Readonly<Record<string, string>>;
  readonly lockWait: number;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

function collectLabel(text: string, labels: Readonly<Record<string, string>>): Record<string, string> {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError(`expected key=value, found "${text}"`);
  return { ...labels, [text.slice(0, equals)]: text.slice(equals + 1) };
}

const parseSeconds = numberOf("seconds from 0 to 3600", (value) => value >= 0 && value <= 3_600);

/** Returns the program without its actions. */
export function describeAgent(): Command {
  const program = new Command("berth-agent")
    .description("Serve the CNI plugins of this node")
    .version(VERSION)
    .option(
      "--config <directory>",
      "embedded mode: directory of YAML manifests (IPPool, ReservedIP, Namespace, Pod, Coordinator, vendor-conf)",
    )
    .addOption(new Option("--kubeconfig <file>", "cluster mode: path of a kubeconfig file").env("BERTH_KUBECONFIG"))
    .option("--in-cluster", "cluster mode: use the service account of the pod that the agent runs in")
    .option(
      "--renew-token",
      "cluster mode: renew the node-bound token in the kubeconfig's tokenFile, from 40 percent of its lifetime on",
    )
    .addOption(
      namespaceOption(
        "--config-namespace",
        "cluster mode: namespace of the ConfigMap vendor-conf",
        "BERTH_CONFIG_NAMESPACE",
      ),
    )
    .option(
      "--controller-lease <name>",
      "cluster mode: name of the controllers' Lease in the namespace of vendor-conf, which says whether one sends notices",
      "berth-controller",
    )
    .addOption(
      new Option("--cni-conf-dir <directory>", "directory of the runtimes' network definitions; may be missing")
        .default("/etc/cni/net.d")
        .env("BERTH_CNI_CONF_DIR"),
    )
    .addOption(
      new Option(
        "--log-dir <directory>",
        `directory that stands for ${LOG_DIRECTORY} in network definitions, for the coordinator's logs`,
      )
        .default(LOG_DIRECTORY)
        .env("BERTH_LOG_DIR"),
    )
    .addOption(
      new Option("--state <directory>", "directory of the registry").default("/var/lib/berth/state").env("BERTH_STATE"),
    )
    .addOption(
      new Option("--spool <directory>", "directory of DELs that the shim could not deliver")
        .default("/var/lib/berth/spool")
        .env("BERTH_SPOOL"),
    )
    .addOption(
      new Option("--socket <path>", "path of the agent's unix socket")
        .default("/run/berth/agent.sock")
        .env("BERTH_SOCKET"),
    )
    .addOption(new Option("--node <name>", "name of this node; default: the host name").env("BERTH_NODE"))
    .option(
      "--node-label <key=value>",
      "embedded mode: label of this node, for nodeAffinity; repeatable",
      collectLabel,
      {},
    )
    .option(
      "--lock-wait <seconds>",
      "how long to wait for another agent that uses the same state",
      parseSeconds,
      LOCK_WAIT_MS / 1000,
    )
    .addOption(new Option("--log-level <level>", "lowest level of messages to log").choices(LOG_LEVELS).default("info"))
    .addOption(new Option("--log-format <format>", "text for a person").choices(LOG_FORMATS).default("json"));
  return addMetricsOptions(program);
}
