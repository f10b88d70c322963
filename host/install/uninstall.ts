import { createConnection } from "node:net";
import { basename, join } from "node:path";
import { DEFAULT_COORDINATOR_CONF } from "../config/coordinator-settings.ts";
import { parseAlias } from "../coordinator/plan/alias.ts";
import { BERTH_PROTOCOL, NFT_TABLE } from "../coordinator/plan/constants.ts";
import { applyOperation } from "../kernel/apply-operation.ts";
import { deleteLink } from "../kernel/netlink/link/requests.ts";
import { OWN_NETNS } from "../kernel/netns.ts";
import { observeNamespace } from "../kernel/observe-namespace.ts";
import { type NamespaceSource, openNamespace } from "../kernel/open-namespace.ts";
import type { Operation } from "../plan/operation.ts";
import { formatOperation } from "../plan/text.ts";
import { listMarked } from "./conflist.ts";
import { listNames, removeFile } from "./files.ts";
import { planPluginRemoval } from "./plugins.ts";
import { InstallError, runSteps, type Step, type StepOptions } from "./step.ts";

const LOG_FILE = basename(DEFAULT_COORDINATOR_CONF.logOptions.logFile);

/** The coordinator's log and the audit log, with their full files, and those of logrotate: `.2.gz`, `-20261129`. */
const OWN_LOG = new RegExp(`^(?:${LOG_FILE.replaceAll(".", "[.]")}|audit[.]jsonl)(?:[.-][0-9].*)?$`);

interface UninstallOptions {
  readonly cniBinDirectory: string;
  readonly cniConfDirectory: string;
  readonly runDirectory: string;
  readonly stateDirectory: string;
  /** Directory of the coordinator's log and the audit log; it may contain files of other products. */
  readonly logDirectory: string;
  readonly keepState: boolean;
  /** Leaves rules, routes, tables and pairs: the directories belong to another host. */
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

/**
 * Plans the removal of the pairs to pods, the routes and rules of Berth's protocol, and its nf_tables table. Settings
 * of links (rp_filter) stay: their former values are unknown. Throws NetlinkError.
 */
function planRoutingRemoval(host: NamespaceSource): Step[] {
  const isOwn = ({ protocol }: { readonly protocol: number }) => protocol === BERTH_PROTOCOL;
  const query = { routeTables: "every", isRouteWanted: isOwn, rules: true, tables: [NFT_TABLE] } as const;
  const { links, routes, rules, tables } = observeNamespace(host, query);
  const pairs = links.filter(({ kind, alias }) => kind === "veth" && parseAlias(alias) !== undefined);
  const operations: Operation[] = [
    ...rules.filter(isOwn).map((rule) => ({ kind: "delete-rule", place: "host", rule }) as const),
    ...routes.map((route) => ({ kind: "delete-route", place: "host", route }) as const),
    ...tables.map((table) => ({ kind: "delete-table", place: "host", table }) as const),
  ];
  return [
    ...operations.map((operation) => ({
      text: formatOperation(operation),
      run: () => applyOperation(operation, { pod: host, host }),
    })),
    ...pairs.map(({ index, name, alias }) => ({
      text: `host: ip link delete ${name} (${alias})`,
      run: () => void deleteLink(host.route, index),
    })),
  ];
}
