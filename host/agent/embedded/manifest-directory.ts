/**
 * The resources of the embedded backend: YAML manifests in a directory that is watched. An invalid file keeps its
 * last valid resources, and a file that becomes empty keeps them for a moment; problems are reported until they are
 * fixed.
 */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DirectoryNotices } from "../../kernel/directory-notices.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Log } from "../../lib/log.ts";
import { readRegular } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import { decodeManifests, faultsIn, type Resource } from "../../resources/manifest.ts";
import { hasEnded, type ReservedIp } from "../../resources/reserved-ip.ts";
import { assembleSnapshot } from "../../resources/snapshot.ts";
import type { Resources, ResourcesState } from "../request/resources.ts";
import { RoutersInUse } from "./routers-in-use.ts";

/** Interval of looks at the directory without a request: milliseconds. */
const LOOK_MS = 500;

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
  #routers = new RoutersInUse();
  state: ResourcesState;
  /** The directory that was read last. */
  #identity: string | undefined;
  readonly #looks: NodeJS.Timeout;

  /** Reads the directory once, then follows it; `onChange` is called for every later state. */
  constructor(path: string, log: Log, onChange: (state: ResourcesState) => void) {
    this.#path = path;
    this.#log = log;
    this.#onChange = onChange;
    this.#notices = new DirectoryNotices(path, { lookAnywayMs: Number.POSITIVE_INFINITY });
    this.state = this.#read();
    this.#looks = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Reads changes that were complete before the call. */
  flush(): void {
    if (this.#notices.mayHaveChanged()) this.#reload();
  }

  /** From now on the pools hold these back, and what they name themselves. */
  holdRouters(routers: RoutersInUse): void {
    // An ADD under way may tell its pod what they name now.
    routers.addNamed(this.state.snapshot.pools);
    this.#routers = routers;
    this.#reload();
  }

  close(): void {
    clearInterval(this.#looks);
  }

  /**
   * There is no notice of another directory at the path, nor of time that passes: a file has been empty for long, a
   * ReservedIP has ended, or has not because the clock was set back.
   */
  #look(): void {
    const { reserved, ended } = this.state.snapshot;
    const isOver = (each: ReservedIp): boolean => hasEnded(each, Date.now());
    const isEmptied = this.#files.values().some(({ emptySinceMs }) => emptySinceMs !== undefined);
    const isLate = isEmptied || reserved.some(isOver) || !ended.every(isOver);
    if (isLate || identify(this.#path) !== this.#identity) this.#reload();
    else this.flush();
  }

  #reload(): void {
    const before = this.state;
    this.state = this.#read();
    const added = this.state.problems.filter((problem) => !before.problems.includes(problem));
    for (const problem of added)
      this.#log.warn({ problem }, "A manifest is invalid; its last valid version stays in effect");
    this.#onChange(this.state);
  }

  #read(): ResourcesState {
    const identity = identify(this.#path);
    if (identity !== this.#identity) this.#notices.noticed(); // Another directory is watched.
    this.#identity = identity;
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
    const sources = files.map(([source, { resources = [] }]) => ({ source, resources }));
    const snapshot = assembleSnapshot(sources, Date.now());
    const pools = this.#routers.heldBy(snapshot.pools);
    this.#routers.addNamed(pools);
    return {
      snapshot: { ...snapshot, pools },
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
    if (performance.now() - emptySinceMs >= EMPTY_FILE_MS) return undefined;
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
