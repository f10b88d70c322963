/**
 * The network definitions of this node's CNI configuration directory, above all their coordinators. Read as libcni
 * reads it: of two files with one network the first by name counts. A change made before an ADD began holds for it,
 * so each ADD asks the kernel whether there was one; where the kernel cannot notice all changes, the files' stamps
 * are checked once per turn of the event loop. An invalid file is a problem and keeps its last valid content; it
 * stops nothing, because the coordinator refuses its own entry.
 */
import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type CoordinatorConf,
  type CoordinatorSettings,
  resolveCoordinatorConf,
} from "../../config/coordinator-settings.ts";
import {
  decodeNetworkList,
  decodeNetworkOfOne,
  decodePluginFile,
  findCoordinatorSettings,
  type NetworkDefinition,
  type PlacedEntry,
} from "../../config/network-definition.ts";
import { DirectoryNotices } from "../../kernel/directory-notices.ts";
import { errnoOf, messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { isSameList } from "../../lib/same-list.ts";
import { coordinatorLayers } from "../../resources/coordinator.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { StampedFiles } from "./stamped-files.ts";

/** Largest file of a network definition, like the shim's stdin: bytes. @limit */
export const MAX_DEFINITION_BYTES = 1024 * 1024;

/**
 * Most files of the CNI configuration directory, and of a network's folder in it, that are read. Each costs an ADD
 * microseconds. @limit
 */
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

/** The content of the directory. */
interface DirectoryContent {
  readonly found: readonly Found[];
  readonly problems: readonly string[];
}

const NETWORK_NAME = /\.(conflist|conf|json)$/;
const PLUGIN_NAME = /\.conf$/;

/**
 * Complete settings: a definition's override those of the Coordinator resource, which override the defaults. They are
 * resolved once for each of both: an ADD of a network without detection needs nothing else of them.
 */
export class ResolvedSettings {
  #coordinator: Snapshot["coordinator"];
  #known = new WeakMap<CoordinatorSettings, CoordinatorConf>();

  of(definition: CoordinatorSettings = NO_SETTINGS, { coordinator }: Pick<Snapshot, "coordinator">): CoordinatorConf {
    if (coordinator !== this.#coordinator) this.#known = new WeakMap();
    this.#coordinator = coordinator;
    const conf = this.#known.get(definition) ?? resolveCoordinatorConf(definition, ...coordinatorLayers(coordinator));
    this.#known.set(definition, conf);
    return conf;
  }
}

const NO_SETTINGS: CoordinatorSettings = { warnings: [] };

export class Definitions {
  readonly #directory: string;
  readonly #log: Log;
  readonly #networkFiles = new StampedFiles(decodeNetworkFile, MAX_DEFINITION_BYTES);
  readonly #pluginFiles = new StampedFiles(
    (text, path) => decodePluginFile(text, sourceOf(path)),
    MAX_DEFINITION_BYTES,
  );
  #last: DirectoryContent = { found: [], problems: [] };
  /** By network. Undefined settings: it has no coordinator, or the coordinator's entry was never valid. */
  #settings = new Map<string, CoordinatorSettings | undefined>();
  #problems: readonly string[] = [];
  #networks: readonly NodeNetwork[] = [];
  readonly #later: (forget: () => void) => void;
  #hasLooked = false;
  readonly #notices: DirectoryNotices;
  /**
   * Whether a change of any file of the last look is noticed: none is a symbolic link or lies in a network's folder.
   */
  #isNoticeable = false;

  /** The directory may be missing. Callers share one reading until `later` calls back; without it each call reads. */
  constructor(directory: string, log: Log, later: (forget: () => void) => void = (forget) => forget()) {
    this.#directory = directory;
    this.#log = log;
    this.#later = later;
    this.#notices = new DirectoryNotices(directory);
    this.#refresh();
  }

  /** Returns the coordinator's settings of a network; undefined without a definition, or if it has no coordinator. */
  settingsOf(network: string): CoordinatorSettings | undefined {
    this.#refresh();
    return this.#settings.get(network);
  }

  /** In the order of the files: the runtimes attach the first. */
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
    if (this.#hasLooked || (!this.#notices.mayHaveChanged() && this.#isNoticeable)) return;
    this.#hasLooked = true;
    this.#later(() => {
      this.#hasLooked = false;
    });
    const content = this.#readDirectory();
    if (isSameContent(content, this.#last)) return;
    const before = this.#problems;
    this.#last = content;
    this.#problems = [...content.problems, ...this.#replaceNetworks(content.found)];
    for (const problem of this.#problems) {
      if (!before.includes(problem)) this.#log.warn({ problem }, "A network definition is invalid");
    }
  }

  /** Replaces the networks; returns problems between and inside them. */
  #replaceNetworks(found: readonly Found[]): string[] {
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

  #readDirectory(): DirectoryContent {
    const problems: string[] = [];
    this.#isNoticeable = false;
    const entries = this.#list(this.#directory, problems);
    if (entries === undefined) return { found: this.#last.found, problems };
    const names = entries.map(({ name }) => name);
    this.#isNoticeable = entries.every((entry) => entry.isFile() || !NETWORK_NAME.test(entry.name));
    const found: Found[] = [];
    for (const path of select(this.#directory, names, NETWORK_NAME, problems)) {
      const file = this.#networkFiles.read(path);
      if (file?.problem !== undefined) problems.push(file.problem);
      if (file?.value === undefined) continue;
      const network = file.value;
      const hasFolder = !network.inlinedOnly && names.includes(network.name);
      if (hasFolder) this.#isNoticeable = false;
      found.push({ path, network, added: hasFolder ? this.#readFolder(network.name, problems) : [] });
    }
    this.#networkFiles.sweep();
    this.#pluginFiles.sweep();
    return { found, problems };
  }

  #readFolder(name: string, problems: string[]): PlacedEntry[] {
    const folder = join(this.#directory, name);
    const names = this.#list(folder, problems)?.map(({ name }) => name) ?? [];
    return select(folder, names, PLUGIN_NAME, problems).flatMap((path) => {
      const file = this.#pluginFiles.read(path);
      if (file?.problem !== undefined) problems.push(file.problem);
      return file?.value ?? [];
    });
  }

  /** Returns undefined, and adds a problem, if the directory exists but cannot be read. */
  #list(directory: string, problems: string[]): Dirent[] | undefined {
    try {
      return readdirSync(directory, { withFileTypes: true });
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      problems.push(`Network definitions in "${directory}" cannot be read: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** Returns the file as error texts name it. */
function sourceOf(path: string): string {
  return `File "${path}"`;
}

function decodeNetworkFile(text: string, path: string): NetworkDefinition {
  const decode = path.endsWith(".conflist") ? decodeNetworkList : decodeNetworkOfOne;
  return decode(text, sourceOf(path));
}

/** Returns paths in the order of their names. */
function select(directory: string, names: readonly string[], form: RegExp, problems: string[]): string[] {
  const fitting = names.filter((name) => form.test(name)).sort();
  if (fitting.length > MAX_DEFINITION_FILES) {
    problems.push(
      `Directory "${directory}" has ${fitting.length} network definitions; the first ${MAX_DEFINITION_FILES} by name are read`,
    );
  }
  return fitting.slice(0, MAX_DEFINITION_FILES).map((name) => join(directory, name));
}

function isSameContent(a: DirectoryContent, b: DirectoryContent): boolean {
  return (
    a.found.length === b.found.length &&
    a.found.every(({ path, network, added }, index) => {
      const other = b.found[index];
      return path === other?.path && network === other.network && isSameList(added, other.added);
    }) &&
    isSameList(a.problems, b.problems)
  );
}
