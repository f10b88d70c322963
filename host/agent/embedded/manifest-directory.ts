/**
 * The resources of the embedded backend: YAML manifests in a directory that is watched. An invalid file keeps its
 * last valid resources, and a file that becomes empty keeps them for a moment; problems are reported until they are
 * fixed.
 */

import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { DirectoryNotices } from "../../kernel/directory-notices.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { readRegular } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import { formatIp, type Ip } from "../../net/ip.ts";
import { withRouters } from "../../resources/ip-pool.ts";
import { heldRoutersOf } from "../../resources/ip-pool-shape.ts";
import { decodeManifests, faultsIn, type Resource } from "../../resources/manifest.ts";
import { hasEnded } from "../../resources/reserved-ip.ts";
import { assembleSnapshot } from "../../resources/snapshot.ts";
import { RELOAD_DELAY_MS, type Resources, type ResourcesState } from "../request/resources.ts";

/** Which routers the pods of a pool have, by its name. */
export type RoutersInUse = ReadonlyMap<string, ReadonlySet<string>>;

/** Interval at which the agent checks whether the watched directory was replaced: milliseconds. */
const DIRECTORY_RECHECK_MS = 2_000;

/**
 * Largest manifest file, some 6,000 pools: bytes. Reading YAML takes a hundred times its size in memory; more goes
 * into more files. @limit
 */
export const MAX_MANIFEST_BYTES = 1024 * 1024;

/**
 * Time for which a manifest file that has become empty keeps its resources: milliseconds. Editors that rewrite a file
 * in place empty it first.
 */
const EMPTY_FILE_MS = 1_000;

interface ManifestFile {
  /** Undefined when it could not be read. */
  readonly text: string | undefined;
  /** The last valid resources of the file; undefined if it was never valid. */
  readonly resources: readonly Resource[] | undefined;
  readonly problem: string | undefined;
  /** Since when the file has been empty while its resources are kept, as `performance.now()`. */
  readonly emptySinceMs?: number;
}

const MANIFEST_NAME = /^[^.].*\.(ya?ml|json)$/;

export class ManifestDirectory implements Resources {
  readonly #path: string;
  readonly #log: Log;
  readonly #onChange: (state: ResourcesState) => void;
  readonly #notices: DirectoryNotices;
  #files = new Map<string, ManifestFile>();
  /** Whether the files are those that an earlier agent, perhaps of another release, has left. */
  #isFirstLook = true;
  state: ResourcesState;
  #watcher: FSWatcher | undefined;
  #watched: string | undefined;
  #pending: NodeJS.Timeout | undefined;
  #emptyLook: NodeJS.Timeout | undefined;
  readonly #recheck: NodeJS.Timeout;

  /** Reads the directory once, then follows it; `onChange` is called for every later state. */
  constructor(path: string, log: Log, onChange: (state: ResourcesState) => void) {
    this.#path = path;
    this.#log = log;
    this.#onChange = onChange;
    this.#notices = new DirectoryNotices(path, { lookAnywayMs: Number.POSITIVE_INFINITY });
    this.#arm();
    this.state = this.#read(() => []);
    this.#recheck = setInterval(() => this.#rearm(), DIRECTORY_RECHECK_MS).unref();
  }

  /**
   * Reads pending changes at once: the event loop may answer a caller before it gives the watcher the notice of an
   * earlier change.
   */
  flush(): void {
    if (this.#pending === undefined && !this.#notices.mayHaveChanged()) return;
    clearTimeout(this.#pending);
    this.#reload();
  }

  /** From now on the pools hold these back, by name, where they do not name them. */
  holdRouters(routers: RoutersInUse): void {
    this.state = this.#read((pool) => routers.get(pool) ?? []);
    this.#onChange(this.state);
  }

  close(): void {
    clearInterval(this.#recheck);
    clearTimeout(this.#pending);
    clearTimeout(this.#emptyLook);
    this.#watcher?.close();
  }

  #arm(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    try {
      this.#watched = identify(this.#path);
      this.#watcher = watch(this.#path, { persistent: false }, () => this.#schedule());
      this.#watcher.on("error", () => this.#schedule());
    } catch {
      this.#watched = undefined; // The next look finds it again; until then reading reports what is wrong.
    }
  }

  /** Watches the directory anew if it was removed and created again. Takes notice of ReservedIPs that have ended. */
  #rearm(): void {
    if (this.state.snapshot.reserved.some((each) => hasEnded(each, Date.now()))) this.#schedule();
    if (this.#watched !== undefined && identify(this.#path) === this.#watched) return;
    this.#arm();
    this.#schedule();
  }

  #schedule(): void {
    this.#pending ??= setTimeout(() => this.#reload(), RELOAD_DELAY_MS).unref();
  }

  #reload(): void {
    this.#pending = undefined;
    const before = this.state;
    const heldBy = (pool: string): readonly Ip[] => {
      const spec = before.snapshot.pools.get(pool)?.spec;
      return spec === undefined ? [] : heldRoutersOf(spec);
    };
    this.state = this.#read((pool) => heldBy(pool).map(formatIp));
    const added = this.state.problems.filter((problem) => !before.problems.includes(problem));
    for (const problem of added)
      this.#log.warn({ problem }, "A manifest is invalid; its last valid version stays in effect");
    this.#onChange(this.state);
  }

  #read(routersOfPods: (pool: string) => Iterable<string>): ResourcesState {
    this.#notices.mayHaveChanged(); // Changes from now on are noticed.
    try {
      const names = readdirSync(this.#path)
        .filter((name) => MANIFEST_NAME.test(name))
        .sort();
      this.#files = new Map(names.map((name) => [name, this.#readFile(name)]));
      this.#isFirstLook = false;
    } catch (error) {
      const problem = `Directory ${this.#path} cannot be read: ${messageOf(error)}`;
      const known = this.state as ResourcesState | undefined;
      if (known !== undefined) return { ...known, problems: [...new Set([...known.problems, problem])] };
      return { snapshot: assembleSnapshot([]), problems: [problem], complete: false };
    }
    const files = [...this.#files];
    const hold = (each: Resource): Resource => {
      if (each.kind !== "IPPool") return each;
      const spec = withRouters(each.spec, routersOfPods(each.name));
      return spec === each.spec ? each : { ...each, spec };
    };
    return {
      snapshot: assembleSnapshot(
        files.map(([source, { resources = [] }]) => ({ source, resources: resources.map(hold) })),
        Date.now(),
      ),
      problems: files.flatMap(([, { problem }]) => problem ?? []),
      complete: files.every(([, { resources }]) => resources !== undefined),
    };
  }

  #readFile(name: string): ManifestFile {
    const known = this.#files.get(name);
    try {
      const text = readRegular(join(this.#path, name), MAX_MANIFEST_BYTES).bytes.toString("utf8");
      const retained = this.#retainEmptied(text, known);
      if (retained !== undefined) return retained;
      if (known?.text === text) return known;
      return this.#decode(name, text, known);
    } catch (error) {
      return { text: undefined, resources: known?.resources, problem: `File "${name}": ${messageOf(error)}` };
    }
  }

  /** Rewriting a file in place empties it first, which does not count at once. Undefined if the text applies. */
  #retainEmptied(text: string, known: ManifestFile | undefined): ManifestFile | undefined {
    if (text !== "" || known?.resources === undefined || known.resources.length === 0) return undefined;
    const { resources, emptySinceMs = performance.now() } = known;
    const restMs = emptySinceMs + EMPTY_FILE_MS - performance.now();
    if (restMs <= 0) return undefined;
    this.#emptyLook ??= setTimeout(() => {
      this.#emptyLook = undefined;
      this.#schedule();
    }, restMs).unref();
    return { text: undefined, resources, problem: undefined, emptySinceMs };
  }

  /**
   * An upgrade must not make a file invalid: the pool itself reports faults that the last release accepted, and that a
   * later version of the file still has.
   */
  #decode(name: string, text: string, known: ManifestFile | undefined): ManifestFile {
    const had = new Set(faultsIn(known?.resources ?? []));
    const isFirstLook = this.#isFirstLook;
    try {
      return {
        text,
        resources: decodeManifests(text, name, (fault) => isFirstLook || had.has(fault)),
        problem: undefined,
      };
    } catch (error) {
      return { text, resources: known?.resources, problem: messageOf(error) };
    }
  }
}

/**
 * Returns a text that differs for a directory made anew: file systems reuse inode numbers at once, so it has the time
 * of birth. Undefined if unknown.
 */
function identify(path: string): string | undefined {
  const { dev, ino, birthtimeNs } = tryOr(() => statSync(path, { bigint: true }), undefined) ?? {};
  return dev === undefined ? undefined : `${dev} ${ino} ${birthtimeNs}`;
}
