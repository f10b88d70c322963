/**
 * The network definitions of this node: what the CNI configuration directory says of each network, its coordinator above all. Read as
 * libcni reads it; of two files with one network the first by name counts, as it does for the runtimes.
 * A change made before an ADD began applies to that ADD, so the files' stamps are read again in each turn of the event loop.
 * A bad file is a problem, keeps what it last said rightly, and stops nothing: the coordinator refuses its own entry.
 * Effects: reads the directory.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type CoordinatorConf,
  type CoordinatorSettings,
  resolveCoordinatorConf,
} from "../config/coordinator-settings.ts";
import {
  decodeNetworkList,
  decodeNetworkOfOne,
  decodePluginFile,
  findCoordinatorSettings,
  type NetworkDefinition,
  type PlacedEntry,
} from "../config/network-definition.ts";
import { errnoOf, messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import { coordinatorLayers } from "../resources/coordinator.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { StampedFiles } from "./stamped-files.ts";

/** Largest file of a network definition, as the shim's stdin: bytes. @limit */
export const MAX_DEFINITION_BYTES = 1024 * 1024;

/** Most files of the CNI configuration directory, and of a network's folder in it, that are read. Each costs an ADD microseconds. @limit */
export const MAX_DEFINITION_FILES = 256;

/** A network, and the file that defines it. */
interface Found {
  readonly path: string;
  readonly network: NetworkDefinition;
  /** From the files in the folder of the network's name. */
  readonly added: readonly PlacedEntry[];
}

/** A network of this node, with the plugins of its folder. */
export interface NodeNetwork {
  readonly name: string;
  readonly plugins: readonly PlacedEntry[];
  /** The file that defines it. */
  readonly path: string;
}

/** All that one look at the directory found. */
interface Look {
  readonly found: readonly Found[];
  readonly problems: readonly string[];
}

const NETWORK_NAME = /\.(conflist|conf|json)$/;
const PLUGIN_NAME = /\.conf$/;

/** Complete settings: a definition's, over those of the resource Coordinator, over the defaults. */
export function effectiveSettings(
  definition: CoordinatorSettings | undefined,
  { coordinator }: Pick<Snapshot, "coordinator">,
): CoordinatorConf {
  return resolveCoordinatorConf(...(definition === undefined ? [] : [definition]), ...coordinatorLayers(coordinator));
}

export class Definitions {
  readonly #directory: string;
  readonly #log: Log;
  readonly #networkFiles = new StampedFiles(decodeNetworkFile, MAX_DEFINITION_BYTES);
  readonly #pluginFiles = new StampedFiles(
    (text, path) => decodePluginFile(text, sourceOf(path)),
    MAX_DEFINITION_BYTES,
  );
  #last: Look = { found: [], problems: [] };
  /** By network. Undefined settings: it has no coordinator, or the coordinator's entry never was right. */
  #settings = new Map<string, CoordinatorSettings | undefined>();
  #problems: readonly string[] = [];
  #networks: readonly NodeNetwork[] = [];
  readonly #later: (forget: () => void) => void;
  #hasLooked = false;

  /** The directory need not be there. Questions share a look until `later` calls back; without it each has its own. */
  constructor(directory: string, log: Log, later: (forget: () => void) => void = (forget) => forget()) {
    this.#directory = directory;
    this.#log = log;
    this.#later = later;
    this.#refresh();
  }

  /** What this node's definition of the network says; undefined without a definition, and when it has no coordinator. */
  settingsOf(network: string): CoordinatorSettings | undefined {
    this.#refresh();
    return this.#settings.get(network);
  }

  /** In the order of the files: the first is the one that the runtimes attach. */
  get networks(): readonly NodeNetwork[] {
    this.#refresh();
    return this.#networks;
  }

  /** Each a sentence that names the file. */
  get problems(): readonly string[] {
    this.#refresh();
    return this.#problems;
  }

  #refresh(): void {
    if (this.#hasLooked) return;
    this.#hasLooked = true;
    this.#later(() => {
      this.#hasLooked = false;
    });
    const look = this.#look();
    if (isSameLook(look, this.#last)) return;
    const before = this.#problems;
    this.#last = look;
    this.#problems = [...look.problems, ...this.#settle(look.found)];
    for (const problem of this.#problems) {
      if (!before.includes(problem)) this.#log.warn({ problem }, "A network definition is not as it should be");
    }
  }

  /** Takes over what was found; gives what is wrong between and inside the networks. */
  #settle(found: readonly Found[]): string[] {
    const problems: string[] = [];
    const before = this.#settings;
    const owners = new Map<string, string>();
    const networks: NodeNetwork[] = [];
    this.#settings = new Map();
    for (const { path, network, added } of found) {
      const { name, plugins } = network;
      const owner = owners.get(name);
      if (owner !== undefined) {
        problems.push(`File "${path}" is ignored: "${owner}" defines a network "${name}" too`);
        continue;
      }
      owners.set(name, path);
      networks.push({ name, path, plugins: [...plugins, ...added] });
      try {
        this.#settings.set(name, findCoordinatorSettings([...plugins, ...added]));
      } catch (error) {
        this.#settings.set(name, before.get(name));
        problems.push(messageOf(error));
      }
    }
    this.#networks = networks;
    return problems;
  }

  #look(): Look {
    const problems: string[] = [];
    const names = this.#list(this.#directory, problems);
    if (names === undefined) return { found: this.#last.found, problems };
    const found: Found[] = [];
    for (const path of select(this.#directory, names, NETWORK_NAME, problems)) {
      const file = this.#networkFiles.look(path);
      if (file?.problem !== undefined) problems.push(file.problem);
      if (file?.value === undefined) continue;
      const network = file.value;
      const hasFolder = !network.inlinedOnly && names.includes(network.name);
      found.push({ path, network, added: hasFolder ? this.#lookIntoFolder(network.name, problems) : [] });
    }
    this.#networkFiles.sweep();
    this.#pluginFiles.sweep();
    return { found, problems };
  }

  #lookIntoFolder(name: string, problems: string[]): PlacedEntry[] {
    const folder = join(this.#directory, name);
    return select(folder, this.#list(folder, problems) ?? [], PLUGIN_NAME, problems).flatMap((path) => {
      const file = this.#pluginFiles.look(path);
      if (file?.problem !== undefined) problems.push(file.problem);
      return file?.value ?? [];
    });
  }

  /** Undefined, and a problem, when the directory is there but cannot be read. */
  #list(directory: string, problems: string[]): string[] | undefined {
    try {
      return readdirSync(directory);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      problems.push(`Network definitions in "${directory}" cannot be read: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** As error texts name a file. */
function sourceOf(path: string): string {
  return `File "${path}"`;
}

function decodeNetworkFile(text: string, path: string): NetworkDefinition {
  const decode = path.endsWith(".conflist") ? decodeNetworkList : decodeNetworkOfOne;
  return decode(text, sourceOf(path));
}

/** Paths in the order of their names. */
function select(directory: string, names: readonly string[], form: RegExp, problems: string[]): string[] {
  const fitting = names.filter((name) => form.test(name)).sort();
  if (fitting.length > MAX_DEFINITION_FILES) {
    problems.push(
      `Directory "${directory}" has ${fitting.length} network definitions; the first ${MAX_DEFINITION_FILES} by name are read`,
    );
  }
  return fitting.slice(0, MAX_DEFINITION_FILES).map((name) => join(directory, name));
}

function isSameLook(a: Look, b: Look): boolean {
  return (
    a.found.length === b.found.length &&
    a.found.every(({ path, network, added }, index) => {
      const other = b.found[index];
      return path === other?.path && network === other.network && isSameList(added, other.added);
    }) &&
    isSameList(a.problems, b.problems)
  );
}

function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}
