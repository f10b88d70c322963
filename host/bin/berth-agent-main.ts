/**
 * The program `berth-agent`: options and environment in, an agent until a signal stops it. Exits with 0 after a stop,
 * with 1 when it cannot start or go on, with 2 on wrong usage.
 */
import { Command, InvalidArgumentError, Option } from "commander";
import { startAgent } from "../agent/agent.ts";
import { LOG_DIRECTORY } from "../config/coordinator-conf.ts";
import { readCoreWasm } from "../core/instance.ts";
import { openSend } from "../kernel/descriptor.ts";
import { openServiceManager } from "../kernel/service-manager.ts";
import { parseFaultPlan } from "../lib/fault.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel, openLog } from "../lib/log.ts";
import { addInstallCommands } from "./install-commands.ts";
import { endsOnUsage, openLife, WRONG_USAGE } from "./life.ts";
import {
  addMapOptions,
  addMetricsOptions,
  type MapFlags,
  type MetricsFlags,
  mapSettingsOf,
  scrapeSettingsOf,
} from "./metrics-options.ts";
import { VERSION } from "./version.ts";

/** Time for which a second agent waits for the state directory by default: milliseconds. */
const LOCK_WAIT_MS = 30_000;

interface Flags extends MetricsFlags, MapFlags {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly inCluster?: true;
  readonly renewToken?: true;
  readonly configNamespace: string;
  readonly controllerLease: string;
  readonly cniConfDir: string;
  readonly podmanNetworksDir: string;
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

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === "" || !(seconds >= 0 && seconds <= 3_600)) {
    throw new InvalidArgumentError(`expected seconds from 0 to 3600, found "${text}"`);
  }
  return seconds;
}

function describeOptions(): Command {
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
      new Option("--config-namespace <name>", "cluster mode: namespace of the ConfigMap vendor-conf")
        .default("kube-system")
        .env("BERTH_CONFIG_NAMESPACE"),
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
      new Option("--podman-networks-dir <directory>", "embedded mode: directory of Podman's networks; may be missing")
        .default("/etc/containers/networks")
        .env("BERTH_PODMAN_NETWORKS_DIR"),
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
  addMapOptions(addMetricsOptions(program));
  return program;
}

async function serve(program: Command, flags: Flags): Promise<void> {
  const { config, kubeconfig, inCluster, configNamespace, controllerLease } = flags;
  const modes = [config, kubeconfig, inCluster].filter((mode) => mode !== undefined);
  if (modes.length !== 1) {
    const found = modes.length === 0 ? "none" : `${modes.length} of them`;
    program.error(
      `error: expected exactly one of --config, --kubeconfig (BERTH_KUBECONFIG) and --in-cluster, found ${found}`,
      {
        exitCode: WRONG_USAGE,
      },
    );
  }
  if (flags.renewToken && kubeconfig === undefined) {
    program.error("error: --renew-token needs --kubeconfig: a pod's token is renewed by its kubelet", {
      exitCode: WRONG_USAGE,
    });
  }
  const refuse = (text: string): never => program.error(`error: ${text}`, { exitCode: WRONG_USAGE });
  const scraping = scrapeSettingsOf(flags, config === undefined, refuse);
  const mapping = mapSettingsOf(flags, config === undefined, refuse);
  if (config === undefined && mapping.address.kind !== "off")
    refuse("--map-listen: in a cluster the controller serves the address map");
  const log = openLog("berth-agent", flags.logLevel, { send: openSend(2), format: flags.logFormat });
  const fault = process.env.BERTH_FAULT;
  const { die, endWith } = openLife(log);
  const serviceManager = openServiceManager(process.env);
  const agent = await startAgent({
    configDirectory: config,
    cluster:
      config === undefined
        ? { kubeconfig, configNamespace, controllerLease, renewToken: flags.renewToken === true }
        : undefined,
    cniConfDirectory: flags.cniConfDir,
    podmanNetworksDirectory: flags.podmanNetworksDir,
    logDirectory: flags.logDir,
    stateDirectory: flags.state,
    spoolDirectory: flags.spool,
    socketPath: flags.socket,
    scraping,
    mapping,
    nodeName: flags.node,
    nodeLabels: flags.nodeLabel,
    lockWaitMs: flags.lockWait * 1000,
    coreWasm: readCoreWasm(),
    version: VERSION,
    faultPlan: fault === undefined ? undefined : parseFaultPlan(fault),
    log,
    onDeath: die,
  }).catch(die);

  serviceManager.ready();
  endWith(() => {
    serviceManager.stopping();
    return agent.stop();
  });
}

// Registry, spool and socket belong to root alone, whatever the umask of the caller: SQLite creates files by the
// umask, and a socket exists before its mode is set.
process.umask(0o077);

const program = describeOptions();
// The subcommands have options of the same names.
endsOnUsage(program).enablePositionalOptions();
addInstallCommands(program.action((flags: Flags) => serve(program, flags)));
await program.parseAsync();
