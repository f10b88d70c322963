/** `berth-agent install` and `berth-agent uninstall`: the files of Berth on a host. */
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { planConflist } from "../install/conflist.ts";
import { planPlugins } from "../install/plugins.ts";
import { runSteps } from "../install/step.ts";
import { uninstall } from "../install/uninstall.ts";
import { messageOf } from "../lib/describe.ts";
import { readText } from "../lib/regular-file.ts";

interface InstallFlags {
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  readonly conflist?: string;
  readonly aliasesOnly?: boolean;
  readonly pluginsOnly?: boolean;
  readonly dryRun?: boolean;
}

interface UninstallFlags extends Pick<InstallFlags, "cniBinDir" | "cniConfDir" | "dryRun"> {
  readonly runDir: string;
  readonly stateDir: string;
  readonly logDir: string;
  readonly keepState?: boolean;
  readonly filesOnly?: boolean;
}

const SHIMS = [new URL("./bin/berth", import.meta.url), new URL("../cni/berth", import.meta.url)] as const;

const print = (line: string): void => console.log(line);

/** Files and directories are for everyone to read, whatever the agent's own umask. */
async function run(work: () => Promise<void>): Promise<void> {
  process.umask(0o022);
  try {
    await work();
  } catch (error) {
    console.error(`berth-agent: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}

async function install(flags: InstallFlags) {
  const { cniBinDir, cniConfDir, conflist, aliasesOnly = false, pluginsOnly = false, dryRun = false } = flags;
  // In the image the plugins are beside the bundles, in the tarball in a folder of their own.
  const shim = readFileSync(SHIMS.find((url) => existsSync(url)) ?? SHIMS[0]);
  const wanted = conflist === undefined ? undefined : { name: basename(conflist), text: readText(conflist) };
  const steps = [
    ...planPlugins({ directory: cniBinDir, shim, aliasesOnly }),
    ...(pluginsOnly ? [] : planConflist({ directory: cniConfDir, wanted })),
  ];
  await runSteps(steps, { dryRun, print });
}

export function addInstallCommands(program: Command): Command {
  const binDir = new Option("--cni-bin-dir <directory>", "directory of the CNI plugins").default("/opt/cni/bin");
  const confDir = new Option("--cni-conf-dir <directory>", "directory of the runtimes' network lists").default(
    "/etc/cni/net.d",
  );
  const dryRun = new Option("--dry-run", "print what would be done, and do nothing");
  program
    .command("install")
    .description("Install the CNI plugins, by rename; files of other products are never replaced")
    .addOption(binDir)
    .addOption(confDir)
    .addOption(
      new Option(
        "--conflist <file>",
        "network list to install under its file name; without it, one that was installed is removed",
      ).conflicts("pluginsOnly"),
    )
    .option("--plugins-only", "leave network lists as they are")
    .option(
      "--aliases-only",
      "only berth, berth-coordinator and berth-ifacer, beside another product's coordinator and ifacer",
    )
    .addOption(dryRun)
    .action((flags: InstallFlags) => run(() => install(flags)));
  program
    .command("uninstall")
    .description(
      "Remove plugins, network list, rules, routes, nftables table, pairs to pods, sockets and state from this host",
    )
    .addOption(binDir)
    .addOption(confDir)
    .addOption(new Option("--run-dir <directory>", "directory of the agent's socket").default("/run/berth"))
    .addOption(new Option("--state-dir <directory>", "directory of registry and spool").default("/var/lib/berth"))
    .addOption(new Option("--log-dir <directory>", "directory of the coordinator's log").default("/var/log/vendor"))
    .option("--keep-state", "keep registry, spool and log")
    .option("--files-only", "leave the kernel alone: the directories are those of an image, not of this host")
    .addOption(dryRun)
    .action((flags: UninstallFlags) => {
      const { keepState = false, filesOnly = false, dryRun = false } = flags;
      const directories = {
        cniBinDirectory: flags.cniBinDir,
        cniConfDirectory: flags.cniConfDir,
        runDirectory: flags.runDir,
        stateDirectory: flags.stateDir,
        logDirectory: flags.logDir,
      };
      return run(() => uninstall({ ...directories, keepState, filesOnly }, { dryRun, print }));
    });
  return program;
}
