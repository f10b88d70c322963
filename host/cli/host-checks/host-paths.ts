/** The places of files on a host, as options of the commands that read them. */
import { type Command, Option } from "commander";

export interface HostPaths {
  readonly socket: string;
  readonly stateDirectory: string;
  readonly confDirectory: string;
  readonly binDirectory: string;
  /** Mount point of the host's root: for its files that are not Berth's. */
  readonly hostRoot: string;
}

export interface HostPathFlags {
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  readonly stateDir: string;
  readonly hostRoot: string;
}

const OPTIONS = [
  new Option("--cni-conf-dir <directory>", "directory of network definitions")
    .default("/etc/cni/net.d")
    .env("BERTH_CNI_CONF_DIR"),
  new Option("--cni-bin-dir <directory>", "directory of plugins").default("/opt/cni/bin").env("BERTH_CNI_BIN_DIR"),
  new Option("--state-dir <directory>", "directory of the agent's registry")
    .default("/var/lib/berth/state")
    .env("BERTH_STATE"),
  new Option("--host-root <directory>", "where the host's root is, for files of other programs")
    .default("/")
    .env("BERTH_HOST_ROOT"),
];

export function withHostPaths(command: Command): Command {
  return OPTIONS.reduce((each, option) => each.addOption(option), command);
}

export function hostPaths(socket: string, { cniConfDir, cniBinDir, stateDir, hostRoot }: HostPathFlags): HostPaths {
  return { socket, stateDirectory: stateDir, confDirectory: cniConfDir, binDirectory: cniBinDir, hostRoot };
}

/**
 * Returns those of the options that the command line has, for an agent's own berthctl: the environment of its pod
 * knows the others.
 */
export function givenHostPaths(command: Command): string[] {
  return OPTIONS.flatMap((option) => {
    const name = option.attributeName();
    return command.getOptionValueSource(name) === "cli" ? [`${option.long}=${command.getOptionValue(name)}`] : [];
  });
}
