/** The removal of everything that Berth has put on a host. */
import { createConnection } from "node:net";
import { basename, join } from "node:path";
import { DEFAULT_COORDINATOR_CONF } from "../config/coordinator-settings.ts";
import { OWN_NETNS } from "../kernel/netns.ts";
import { openNamespace } from "../kernel/open-namespace.ts";
import { listMarked } from "./conflist.ts";
import { listNames, removeFile } from "./files.ts";
import { planPluginRemoval } from "./plugins.ts";
import { planRoutingRemoval } from "./routing.ts";
import { InstallError, runSteps, type Step, type StepOptions } from "./step.ts";

const LOG_FILE = basename(DEFAULT_COORDINATOR_CONF.logOptions.logFile);

/** The coordinator's log and the audit log, with their full files. */
const OWN_LOG = new RegExp(`^(?:${LOG_FILE.replaceAll(".", "[.]")}|audit[.]jsonl)(?:[.][0-9]+)?$`);

interface UninstallOptions {
  readonly cniBinDirectory: string;
  readonly cniConfDirectory: string;
  /** Of the agent's socket. */
  readonly runDirectory: string;
  /** Of registry and spool. */
  readonly stateDirectory: string;
  /** Of the coordinator's log and the audit log; other products may have files there. */
  readonly logDirectory: string;
  readonly keepState: boolean;
  /** Leaves rules, routes, tables and pairs: the directories are those of another host. */
  readonly filesOnly: boolean;
}

/** Carries out the removal. Throws InstallError while an agent serves the socket, except in a dry run. */
export async function uninstall(options: UninstallOptions, stepOptions: StepOptions): Promise<void> {
  const { cniBinDirectory, cniConfDirectory, runDirectory, stateDirectory, logDirectory } = options;
  const socket = join(runDirectory, "agent.sock");
  if (!stepOptions.dryRun && (await answers(socket))) {
    throw new InstallError(`An agent serves ${socket}; stop it first, or it would set up everything again`);
  }
  using host = openNamespace(OWN_NETNS);
  const steps = [
    ...listMarked(cniConfDirectory).flatMap(removeFile),
    ...planPluginRemoval(cniBinDirectory),
    ...(options.filesOnly ? [] : planRoutingRemoval(host)),
    ...removeFile(runDirectory),
    ...(options.keepState ? [] : [...removeFile(stateDirectory), ...planLogRemoval(logDirectory)]),
  ];
  await runSteps(steps, stepOptions);
}

/** The directory goes with its last file. */
function planLogRemoval(directory: string): Step[] {
  const names = listNames(directory);
  const own = names.filter((name) => OWN_LOG.test(name));
  return own.length < names.length ? own.flatMap((name) => removeFile(join(directory, name))) : removeFile(directory);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(path);
    connection.on("connect", () => resolve(true)).on("error", () => resolve(false));
    connection.once("connect", () => connection.destroy());
  });
}
