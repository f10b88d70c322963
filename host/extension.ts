/**
 * What a package beside the house may add to it. Nothing here imports a package: host/bin/extensions.ts has their
 * names, and a package is taken away with its folder and its name there.
 */
import type { CommandLine } from "./cli/command-line.ts";

export interface Extension {
  /** Adds commands to berthctl and kubectl berth, behind those of the house in the help. */
  readonly addCommands?: (cli: CommandLine) => void;
}
