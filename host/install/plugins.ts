/** The shim as the plugins of a host, under all of its names. Another product's file of such a name is left alone. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { COORDINATOR_TYPES, IFACER_TYPES } from "../cni/request.ts";
import { errnoOf, messageOf } from "../lib/describe.ts";
import { UnreadableFile } from "../lib/regular-file.ts";
import { ABANDONED_MS, findContent, listTemporaries, makeDirectory, removeFile, writeFile } from "./files.ts";
import { InstallError, type Step } from "./step.ts";

/** Text of the shim in every version (native/reply.c). A file without it is another product's. */
const MARK = "CNI plugins berth, coordinator and ifacer";

const MODE = 0o755;

const ALL_NAMES: readonly string[] = ["berth", ...COORDINATOR_TYPES, ...IFACER_TYPES];

const OWN_NAMES = ALL_NAMES.filter((name) => name.startsWith("berth"));

interface PluginOptions {
  readonly directory: string;
  readonly shim: Uint8Array;
  /** Leaves out the names that another product may have. */
  readonly aliasesOnly: boolean;
}

/** Plans the installation; up-to-date files need no step. Throws InstallError if a name belongs to another product. */
export function planPlugins({ directory, shim, aliasesOnly }: PluginOptions): Step[] {
  const paths = (aliasesOnly ? OWN_NAMES : ALL_NAMES).map((name) => join(directory, name));
  const foreign = paths.filter((path) => pluginFileStatus(path) === "foreign");
  if (foreign.length > 0) {
    const ownNames = OWN_NAMES.map((name) => join(directory, name));
    throw new InstallError(refusalOf(foreign, !foreign.some((path) => ownNames.includes(path))));
  }
  return [
    ...makeDirectory(directory),
    ...listTemporaries(directory, ABANDONED_MS).flatMap(removeFile),
    ...paths.flatMap((path) => planPlugin(path, shim)),
  ];
}

function planPlugin(path: string, shim: Uint8Array): Step[] {
  const current = findContent(path);
  const isSame = current?.equals(shim) && (statSync(path).mode & 0o7777) === MODE;
  return isSame ? [] : [writeFile(path, shim, MODE)];
}

function refusalOf(paths: readonly string[], aliasesHelp: boolean): string {
  const subject = paths.length === 1 ? `File ${paths[0]} belongs` : `Files ${paths.join(", ")} belong`;
  const wayOut = aliasesHelp
    ? "; with --aliases-only only berth, berth-coordinator and berth-ifacer are installed"
    : "";
  return `${subject} to another product; nothing was changed${wayOut}`;
}

/** Returns the owner of the plugin file. An unreadable name, such as a dangling link, is not Berth's. */
export function pluginFileStatus(path: string): "absent" | "own" | "foreign" {
  try {
    const content = findContent(path);
    if (content === undefined) return "absent";
    return content.includes(MARK) ? "own" : "foreign";
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || error instanceof UnreadableFile) return "foreign";
    throw new InstallError(`Cannot read ${path}: ${messageOf(error)}; nothing was changed`, { cause: error });
  }
}

/** Plans the removal of everything that {@link planPlugins} has ever installed. */
export function planPluginRemoval(directory: string): Step[] {
  const own = ALL_NAMES.map((name) => join(directory, name)).filter((path) => pluginFileStatus(path) === "own");
  return [...own, ...listTemporaries(directory, 0)].flatMap(removeFile);
}
