/**
 * The program `berth-agent`: options and environment in, an agent until a signal stops it. Exits with 0 after a stop,
 * with 1 when it cannot start or go on, with 2 on wrong usage.
 */
import { startAgent } from "../agent/agent.ts";
import { readCoreWasm } from "../core/instance.ts";
import { openSend } from "../kernel/descriptor.ts";
import { openServiceManager } from "../kernel/service-manager.ts";
import { parseFaultPlan } from "../lib/fault.ts";
import { openLog } from "../lib/log.ts";
import { readAgentExtensions } from "./agent-extensions.ts";
import { type AgentFlags, describeAgent } from "./agent-options.ts";
import { addInstallCommands } from "./install-commands.ts";
import { endsOnUsage, openLife, refuseUsage } from "./life.ts";
import { scrapeSettingsOf } from "./metrics-options.ts";
import { VERSION } from "./version.ts";

async function serve(flags: AgentFlags): Promise<void> {
  const { config, kubeconfig, inCluster, configNamespace, controllerLease } = flags;
  const modes = [config, kubeconfig, inCluster].filter((mode) => mode !== undefined);
  if (modes.length !== 1) {
    const found = modes.length === 0 ? "none" : `${modes.length} of them`;
    refuseUsage(`expected exactly one of --config, --kubeconfig (BERTH_KUBECONFIG) and --in-cluster, found ${found}`);
  }
  if (flags.renewToken && kubeconfig === undefined)
    refuseUsage("--renew-token needs --kubeconfig: a pod's token is renewed by its kubelet");
  const scraping = scrapeSettingsOf(flags, config === undefined, refuseUsage);
  const servers = await Promise.all(extensions.map((each) => each.agentServer?.(flags, refuseUsage)));
  const log = openLog("berth-agent", flags.logLevel, { send: openSend(2), format: flags.logFormat });
  const fault = process.env.BERTH_FAULT;
  const life = openLife(log);
  const serviceManager = openServiceManager(process.env);
  const agent = await startAgent({
    configDirectory: config,
    cluster:
      config === undefined
        ? { kubeconfig, configNamespace, controllerLease, renewToken: flags.renewToken === true }
        : undefined,
    cniConfDirectory: flags.cniConfDir,
    drivers: await Promise.all(extensions.flatMap((each) => each.openDriver?.(flags) ?? [])),
    logDirectory: flags.logDir,
    stateDirectory: flags.state,
    spoolDirectory: flags.spool,
    socketPath: flags.socket,
    scraping,
    servers: servers.filter((server) => server !== undefined),
    routes: extensions.flatMap(({ openRoutes }) => openRoutes ?? []),
    nodeName: flags.node,
    nodeLabels: flags.nodeLabel,
    lockWaitMs: flags.lockWait * 1000,
    coreWasm: readCoreWasm(),
    version: VERSION,
    faultPlan: fault === undefined ? undefined : parseFaultPlan(fault),
    log,
    onDeath: life.die,
  }).catch(life.die);

  serviceManager.ready();
  life.stop = () => {
    serviceManager.stopping();
    return agent.stop();
  };
}

// Registry, spool and socket belong to root alone, whatever the umask of the caller: SQLite creates files by the
// umask, and a socket exists before its mode is set.
process.umask(0o077);

const extensions = await readAgentExtensions();
const program = describeAgent();
for (const { addAgentOptions } of extensions) await addAgentOptions?.(program);
// The subcommands have options of the same names.
endsOnUsage(program).enablePositionalOptions();
addInstallCommands(program.action(serve));
await program.parseAsync();
