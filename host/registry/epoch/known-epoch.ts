/**
 * An agent's knowledge of the registry's epochs, in one file of its state directory, so that a restart does not lose
 * it. Without fsync: after a power loss no sandbox lives.
 * Effects: one file.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import type { History } from "../../kubernetes/kube-api.ts";
import { isVersion } from "../../kubernetes/mirror.ts";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";

const FILE = "registry-epoch.json";

/** Most epochs that are remembered: a registry that went back shows one of the last. */
const MAX_EPOCHS = 16;

const names = z.array(z.string());

const epoch = z.object({
  epoch: z.string(),
  settled: z.string(),
  cause: z.enum(["first", "kind", "history"]),
  definition: z.string(),
  waitsFor: z.string(),
  probed: z.string(),
  beats: names.readonly(),
});

const schema = z.object({
  format: z.literal(1),
  /** The registry's last word about the epoch in force. */
  last: epoch.optional(),
  /** The epochs that were in force, the last one at the end. */
  epochs: names.default([]),
  /** The last one for which this node has written all that its pods have; "" if none. */
  written: z.string().default(""),
  /** Whether the registry is known to be another one, and no new epoch has begun since. */
  isBroken: z.boolean().default(false),
  /** Highest version that the registry has answered with. */
  version: z
    .string()
    .regex(/^[0-9]+$/)
    .default("0"),
  /** Names of addresses that were taken in after the history went back, and are not found silent yet. */
  unverified: names.default([]),
});

type Content = z.infer<typeof schema>;
type State = Readonly<Omit<Content, "format" | "version">>;

/** Where the content is kept, as text. */
export interface EpochFile {
  /** Returns undefined if there is none. */
  read(): string | undefined;
  write(text: string): void;
}

/** Throws file system errors when it writes. */
export function epochFileIn(stateDirectory: string): EpochFile {
  const path = join(stateDirectory, FILE);
  return {
    read: () => tryOr(() => readText(path), undefined),
    write: (text) => {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
  };
}

export class KnownEpoch implements History {
  readonly #file: EpochFile;
  readonly #onWentBack: () => void;
  /** Highest version that the registry has answered with. */
  version: bigint;
  state: State;
  #saved = "";

  /** `onWentBack`: called when an answer is of another history. */
  constructor(file: EpochFile, onWentBack = (): void => {}) {
    this.#file = file;
    this.#onWentBack = onWentBack;
    const { format: _, version, ...state } = readContent(file.read());
    this.version = BigInt(version);
    this.state = state;
  }

  /** The first answer of another history tells. */
  answered(version = "", before = 0n): void {
    if (!isVersion(version)) return;
    const now = BigInt(version);
    const isBack = now < before && this.version >= before;
    if (isBack || now > this.version) this.version = now;
    if (isBack) this.#onWentBack();
  }

  /** That it was in force once; it may be again after the history went back. */
  noteEpoch(epoch: string): void {
    const others = this.state.epochs.filter((each) => each !== epoch);
    this.note({ epochs: [...others, epoch].slice(-MAX_EPOCHS) });
  }

  note(state: Partial<State>): void {
    this.state = { ...this.state, ...state };
    this.save();
  }

  /** Writes changes. Never throws: a lost write is learned again from the API server. */
  save(): void {
    const content: Content = { format: 1, ...this.state, version: String(this.version) };
    const text = `${JSON.stringify(content)}\n`;
    if (text === this.#saved) return;
    try {
      this.#file.write(text);
      this.#saved = text;
    } catch {
      // A full disk: the next change is written with it.
    }
  }
}

/** A file that cannot be read counts as nothing known. */
function readContent(text: string | undefined): Content {
  return tryOr(() => schema.parse(JSON.parse(text ?? "")), schema.parse({ format: 1 }));
}
