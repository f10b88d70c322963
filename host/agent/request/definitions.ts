/**
 * The network definitions of this node's CNI configuration directory, above all their coordinators. Read as libcni
 * reads it: of two files with one network the first by name counts. A change made before an ADD began holds for it,
 * so each ADD asks the kernel whether there was one; where the kernel cannot notice all changes, the files' stamps
 * are checked once per turn of the event loop. An invalid file is a problem and keeps its last valid content; it
 * stops nothing, because the coordinator refuses its own entry.
 */
import { type BigIntStats, type Dirent, lstatSync, readdirSync, statSync } from "node:fs";
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
import { isMissing, messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { readRegular } from "../../lib/regular-file.ts";
import { isSameList } from "../../lib/same-list.ts";
import { coordinatorLayers } from "../../resources/coordinator.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

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
  /** Undefined if it has no coordinator, or the coordinator's entry was never valid. */
  readonly coordinator: CoordinatorSettings | undefined;
  /** The file that defines it. */
  readonly path: string;
}

/** The content of the directory. */
interface DirectoryContent {
  readonly found: readonly Found[];
  readonly problems: readonly string[];
}

/** How the files of a directory that are networks are named and decoded. Undefined content is no network of Berth's. */
export interface NetworkFiles {
  readonly name: RegExp;
  readonly decode: (text: string, source: string) => NetworkDefinition | undefined;
}

/** Those of CNI; a `*.conflist` is a list, others are networks of one plugin. */
const CNI_FILES: NetworkFiles = {
  name: /\.(conflist|conf|json)$/,
  decode: (text, source) => (/\.conflist"$/.test(source) ? decodeNetworkList : decodeNetworkOfOne)(text, source),
};

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

interface Options {
  /** Callers share one reading until it calls back; without it each call reads. */
  readonly later?: (forget: () => void) => void;
  readonly form?: NetworkFiles;
  /** Networks of another directory. Of two of one name this directory's counts. */
  readonly next?: Definitions | undefined;
}

export class Definitions {
  readonly #directory: string;
  readonly #log: Log;
  readonly #form: NetworkFiles;
  readonly #next: Definitions | undefined;
  readonly #networkFiles: StampedFiles<NetworkDefinition | undefined>;
  readonly #pluginFiles = new StampedFiles((text, path) => decodePluginFile(text, sourceOf(path)));
  #last: DirectoryContent = { found: [], problems: [] };
  #problems: readonly string[] = [];
  /** By name, in the order of the files. */
  #networks: ReadonlyMap<string, NodeNetwork> = new Map();
  readonly #later: (forget: () => void) => void;
  #hasLooked = false;
  readonly #notices: DirectoryNotices;
  /** Whether a change of each file of the last look is noticed: none is a symbolic link or in a network's folder. */
  #isNoticeable = false;

  /** The directory may be missing. */
  constructor(directory: string, log: Log, { later = (forget) => forget(), form = CNI_FILES, next }: Options = {}) {
    this.#directory = directory;
    this.#form = form;
    this.#next = next;
    this.#networkFiles = new StampedFiles((text, path) => form.decode(text, sourceOf(path)));
    this.#log = log;
    this.#later = later;
    this.#notices = new DirectoryNotices(directory);
    this.#refresh();
  }

  find(network: string): NodeNetwork | undefined {
    this.#refresh();
    return this.#networks.get(network) ?? this.#next?.find(network);
  }

  /** In the order of the files: the runtimes attach the first. */
  get networks(): readonly NodeNetwork[] {
    this.#refresh();
    return [...this.#networks.values(), ...(this.#next?.networks ?? [])];
  }

  /** Each a sentence that names the file. */
  get problems(): readonly string[] {
    this.#refresh();
    return [...this.#problems, ...(this.#next?.problems ?? [])];
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
    const networks = new Map<string, NodeNetwork>();
    for (const { path, network, added } of found) {
      const { name } = network;
      const owner = networks.get(name);
      if (owner !== undefined) {
        problems.push(`File "${path}" is ignored: "${owner.path}" defines a network "${name}" too`);
        continue;
      }
      const plugins = [...network.plugins, ...added];
      let coordinator = this.#networks.get(name)?.coordinator;
      try {
        coordinator = findCoordinatorSettings(plugins);
      } catch (error) {
        problems.push(messageOf(error));
      }
      networks.set(name, { name, path, plugins, coordinator });
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
    this.#isNoticeable = entries.every((entry) => entry.isFile() || !this.#form.name.test(entry.name));
    const found: Found[] = [];
    for (const path of select(this.#directory, names, this.#form.name, problems)) {
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
      if (isMissing(error)) return [];
      problems.push(`Network definitions in "${directory}" cannot be read: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** Returns the file as error texts name it. */
function sourceOf(path: string): string {
  return `File "${path}"`;
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

/**
 * A file that was changed less than this before it was read is read again next time: milliseconds. Time stamps of
 * files are coarser than changes.
 */
export const STAMP_GRAIN_MS = 100;

interface StampedFile<T> {
  /** The file's last valid content; undefined if it was never valid. */
  readonly value: T | undefined;
  /** A sentence that names the file; undefined while the file is valid. */
  readonly problem: string | undefined;
}

interface Known<T> extends StampedFile<T> {
  /** Undefined if a later change could leave the same stamp. */
  readonly stamp: BigIntStats | undefined;
}

class StampedFiles<T> {
  readonly #decode: (text: string, path: string) => T;
  #known = new Map<string, Known<T>>();
  #used = new Map<string, Known<T>>();

  /** `decode` throws an error whose message is a sentence that names the file. */
  constructor(decode: (text: string, path: string) => T) {
    this.#decode = decode;
  }

  /** Returns undefined if there is no such file, or it is a directory. */
  read(path: string): StampedFile<T> | undefined {
    const file = this.#readAt(path, this.#known.get(path));
    if (file !== undefined) this.#used.set(path, file);
    return file;
  }

  /** Forgets the files that were not read since the last call. */
  sweep(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }

  #readAt(path: string, known: Known<T> | undefined): Known<T> | undefined {
    try {
      const stamp = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stamp === undefined) {
        if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
        throw new Error("it is a dangling symbolic link");
      }
      if (stamp.isDirectory()) return undefined;
      return known?.stamp !== undefined && isSame(stamp, known.stamp) ? known : this.#read(path, known);
    } catch (error) {
      return { value: known?.value, problem: `File "${path}" cannot be read: ${messageOf(error)}`, stamp: undefined };
    }
  }

  #read(path: string, known: Known<T> | undefined): Known<T> {
    const { bytes, stats } = readRegular(path, MAX_DEFINITION_BYTES);
    const age = Date.now() - Number(stats.ctimeMs);
    const stamp = age > STAMP_GRAIN_MS ? stats : undefined;
    try {
      return { value: this.#decode(bytes.toString("utf8"), path), problem: undefined, stamp };
    } catch (error) {
      return { value: known?.value, problem: messageOf(error), stamp };
    }
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.dev === b.dev;
}
