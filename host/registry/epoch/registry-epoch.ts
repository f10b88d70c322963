/**
 * A registry that has just appeared, or went back in time, is not yet a registry: it lacks records of live pods (rule
 * registry-epoch). Each such registry begins an epoch. Until every node has written its pods' addresses, the epoch is
 * open, and first claims are made on probation or wait. The registry itself is behind {@link EpochPort}.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Reflector } from "../../kubernetes/reflector.ts";
import { Latch } from "../../lib/latch.ts";
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import {
  EPOCH_MAP,
  type EpochCause,
  type EpochRecord,
  isWithoutBeats,
  KINDS_AWAY,
} from "../../resources/registry-epoch.ts";
import type { KnownEpoch } from "./known-epoch.ts";

/** Interval at which an agent repeats failed calls while an epoch is open: milliseconds, less a random half. */
const RETRY_MS = 1_000;

/**
 * Interval at which the known state of the registry is written to the state directory, and this node's newest record
 * looked for if it has not been in this session: milliseconds.
 */
const SAVE_MS = 500;

/**
 * Time after an outage in which all agents have connected again, and have looked for records that the server may lack:
 * milliseconds. They pause for 1.5 seconds at most.
 */
const OTHERS_LOOK_MS = 3_000;

/** The epoch as the registry says it. */
export type Epoch = Pick<EpochRecord, "epoch" | "settled" | "cause" | "definition" | "waitsFor" | "probed" | "beats">;

/** The registry, as far as epochs are concerned. */
export interface EpochPort {
  /**
   * Begins an epoch by compare-and-swap, unless another node has: for "history" in place of one of `known`, which were
   * in force before the history went back; otherwise if there is none for the registry's definition. Returns the one
   * that is in force then; undefined if the registry has no place for it. Rejects when there is no answer.
   */
  begin(known: ReadonlySet<string>, cause: EpochCause): Promise<Epoch | undefined>;
  /** Returns the epoch in force; undefined if the registry has no place for it. Rejects when there is no answer. */
  read(): Promise<Epoch | undefined>;
  /** This node has written for the epoch; `isSettled`: and waits for no other node to take back an obstacle. */
  mark(epoch: string, isSettled: boolean): Promise<void>;
}

/** The addresses of this node's pods. */
export interface EpochRows {
  /** Resolves when all of it is in the registry, or another's for good. Rejects when there is no answer. */
  write(epoch: Epoch, course: WritingCourse): Promise<void>;
  /**
   * Resolves with whether the newest record that a pod of this node has is missing, or is an older one of its address:
   * a restore may raise versions. Waits for an answer.
   */
  isNewestMissing(): Promise<boolean>;
}

export interface WritingCourse {
  /** An address that the journal lacks is not this node's. */
  readonly isWhole: boolean;
  /** Where journal and registry name different pods, the journal is newer. */
  readonly isNewer: boolean;
  /** Ends before the write waits for other nodes. */
  readonly onWritten: () => Promise<void>;
  /** The registry was found to be another one meanwhile: no node writes for this epoch any more. */
  readonly isOutdated: () => boolean;
}

interface RegistryEpochDeps {
  readonly port: EpochPort;
  readonly rows: EpochRows;
  readonly known: KnownEpoch;
  /** There is another one after each interruption. */
  readonly watch: Pick<Reflector<unknown>, "isWatching" | "watching" | "silence" | "stats" | "answeredMs">;
  readonly random: () => number;
  readonly log: Log;
  /** The epoch is settled. */
  readonly onSettled: () => void;
}

/** How this node hears of the registry: another one can only be behind an interruption. */
interface EpochLine {
  /** Whether the registry's present statement about its epoch is known. */
  isUp(): boolean;
  /** Returns a sentence without a full stop: since when it is not, and why. */
  silence(): string;
  /** Resolves when it is. Rejects with the signal's reason. */
  up(signal: AbortSignal): Promise<void>;
}

/** A claim under way. */
export interface Claiming {
  /** Whether the registry was found to be another one since the claim began. */
  isOutdated(): boolean;
  /** Resolves when the epoch is settled, or the claim is outdated. Rejects with the signal's reason. */
  settled(signal: AbortSignal): Promise<void>;
  end(): void;
}

export class RegistryEpoch {
  readonly line: EpochLine;
  readonly #deps: RegistryEpochDeps;
  readonly #closing = new AbortController();
  readonly #worker: PeriodicWorker;
  readonly #saver: PeriodicWorker;
  epoch: Epoch | undefined;
  /** Whether there is no place for epochs, or nothing in it. The known one stays in force (rule known-stays). */
  #isAway = false;
  /** The definitions of the registry as they are now; "" if one is away, undefined if it is not known. */
  #definition: string | undefined;
  /** The journal, since it was last compared with a registry that was one. `newer`: this one is seen to be older. */
  #journal: "whole" | "newer" | "as found" | "with losses" = "as found";
  /** This node's mark; undefined if the node has no place for it. */
  #marked: string | undefined;
  /** The epochs in force before the registry was found to be another one. */
  #before: ReadonlySet<string> = new Set();
  #cause: EpochCause = "first";
  /** The registry names an earlier epoch: the answer was late, or its history is another one. */
  #isDoubtful = false;
  /** Number of times that the registry was found to be another one. */
  #serial = 0;
  readonly #claims = new Set<{ readonly serial: number }>();
  /** Opens with the next change that a wait may be for. */
  #changed = new Latch();
  #wasOpen = false;
  /** The session in which this node's newest record was looked for. */
  #looked = -1;
  #looking: Promise<void> | undefined;

  constructor(deps: RegistryEpochDeps) {
    this.#deps = deps;
    const { watch } = deps;
    const restMs = () => watch.answeredMs + OTHERS_LOOK_MS - performance.now();
    this.line = {
      isUp: () => restMs() <= 0 && watch.isWatching && this.#looked === watch.stats.watches,
      silence: () => watch.silence,
      up: async (signal) => {
        await watch.watching(signal);
        await this.look();
        // A timer may end less than a millisecond early.
        while (restMs() > 0) await sleep(restMs(), undefined, { signal });
      },
    };
    if (deps.known.state.isBroken) this.#break("history");
    const { signal } = this.#closing;
    const { log } = deps;
    this.#worker = new PeriodicWorker({
      failure: "Writing what this node's pods have to a registry that is another one failed",
      isDue: () => this.#isDue,
      work: () => this.#work(),
      checkMs: RETRY_MS,
      retryMs: () => RETRY_MS * (0.5 + deps.random() / 2),
      signal,
      log,
    });
    this.#saver = new PeriodicWorker({
      failure: "Saving the registry's versions failed",
      work: async () => {
        deps.known.save();
        if (watch.isWatching) void this.look();
        return SAVE_MS;
      },
      retryMs: () => SAVE_MS,
      signal,
      log,
    });
  }

  /** Whether first claims are on probation. */
  get isOpen(): boolean {
    if (this.#deps.known.state.isBroken || this.#isDoubtful) return true;
    if (this.epoch === undefined) return this.#isAway;
    return this.epoch.epoch === "" || this.epoch.settled !== this.epoch.epoch;
  }

  /** Whether first claims are probed where their NICs can: a node that is away may still have to write. */
  get isProbed(): boolean {
    return this.epoch !== undefined && this.epoch.epoch !== "" && this.epoch.probed === this.epoch.epoch;
  }

  /** UUID of the epoch in force; undefined while it is not known, or the registry may be another one. */
  get inForce(): string | undefined {
    const isKnown = !this.#deps.known.state.isBroken && !this.#isDoubtful && this.epoch?.epoch !== "";
    return isKnown ? this.epoch?.epoch : undefined;
  }

  /** A clause: whom first claims wait for. */
  get waitsFor(): string {
    const { waitsFor = "" } = this.epoch ?? {};
    if (this.#definition === "") return KINDS_AWAY;
    if (this.#isAway) return `the controller to make the ConfigMap ${EPOCH_MAP}`;
    if (this.#deps.known.state.isBroken || this.epoch?.epoch === "") return "this node's agent to begin an epoch";
    return waitsFor === "" ? "the controller to name the nodes that have not written yet" : `node ${waitsFor}`;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    const away = `The ConfigMap ${EPOCH_MAP} is missing or empty: its last content stays in force`;
    const text = `The registry has just appeared or went back in time; first claims wait for ${this.waitsFor}`;
    return [...(this.#isAway ? [away] : []), ...(this.isOpen ? [text, ...this.#worker.problems] : [])];
  }

  /** The registry says this; undefined: it has no place for epochs. */
  follow(said: Epoch | undefined): void {
    const { known } = this.#deps;
    const isAway = said === undefined || (said.epoch === "" && known.state.last !== undefined);
    this.#isAway = isAway;
    const epoch = isAway ? known.state.last : said;
    this.epoch = epoch;
    this.#isDoubtful = false;
    if (!isAway && epoch !== undefined && epoch.epoch !== "") this.#hear(epoch);
    if (this.#isRedefined) this.#break("kind");
    this.#update();
  }

  #hear(epoch: Epoch): void {
    const { known } = this.#deps;
    const { last } = known.state;
    if (!known.state.epochs.includes(epoch.epoch)) {
      // Another node has noticed.
      if (known.state.epochs.length > 0) this.#outdate();
      known.noteEpoch(epoch.epoch);
    } else if (epoch.epoch !== known.state.epochs.at(-1) || isWithoutBeats(last?.beats ?? [], epoch.beats)) {
      this.#isDoubtful = true;
      this.#outdate();
      return;
    } else if (last !== undefined && last.definition !== epoch.definition) {
      // It was made anew after the definitions were.
      this.#break("history");
    }
    known.note({ last: epoch });
  }

  /** The definitions of the registry as they are now; "": one is away. */
  followDefinition(definition: string): void {
    this.#definition = definition;
    if (this.#isRedefined) this.#break("kind");
    this.#update();
  }

  /** This node's mark; undefined if the node has no place for it. */
  followMark(mark: string | undefined): void {
    this.#marked = mark;
    this.#worker.wake();
  }

  /** The registry answered with an earlier state. */
  wentBack(): void {
    this.#deps.log.warn("The registry went back in time; this node writes again what its pods have");
    if (this.#journal === "as found") this.#journal = "newer";
    this.#break("history");
    this.#update();
  }

  /**
   * Looks for this node's newest record, once in each session, and between sessions each time: an earlier list may be
   * another registry's. Publishing records again waits for it, and would hide that they were missing. Never rejects.
   */
  async look(): Promise<void> {
    const { watch } = this.#deps;
    // A look under way may be answered by the former registry.
    await this.#looking;
    const session = watch.stats.watches;
    if (watch.isWatching && this.#looked === session) return;
    this.#looking ??= this.#deps.rows.isNewestMissing().then((isMissing) => {
      this.#looking = undefined;
      this.#looked = session;
      if (isMissing) this.wentBack();
    });
    await this.#looking;
  }

  /** Rows of this node may be missing. */
  rowsLost(): void {
    this.#journal = "with losses";
  }

  /** The journal was compared with the registry. */
  compared(): void {
    if (this.#hasWritten) this.#journal = "whole";
  }

  /**
   * Whether records of this node that the journal lacks may be of the registry's past, and no more this node's: also
   * while another agent may be about to find out that it went back.
   */
  get isOfPast(): boolean {
    return this.#journal === "whole" && !(this.#hasWritten && this.line.isUp());
  }

  /** Whether there is such an address: {@link isUnverified}. */
  get hasUnverified(): boolean {
    return this.#deps.known.state.unverified.length > 0;
  }

  /** Whether the address was taken in after the history went back, and has not been found silent since. */
  isUnverified(address: string): boolean {
    return this.#deps.known.state.unverified.includes(address);
  }

  verified(address: string): void {
    const { known } = this.#deps;
    const unverified = known.state.unverified.filter((each) => each !== address);
    if (this.isUnverified(address)) known.note({ unverified });
  }

  /** Begins a claim. */
  claiming(): Claiming {
    const claim = { serial: this.#serial };
    this.#claims.add(claim);
    const isOutdated = (): boolean => this.#serial !== claim.serial;
    return {
      isOutdated,
      settled: async (signal) => {
        while (this.isOpen && !isOutdated()) await this.#changed.wait(signal);
      },
      end: () => {
        this.#claims.delete(claim);
        if (isOutdated()) this.#tell();
      },
    };
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("The agent stops"));
    this.#tell();
    await this.#worker.close();
    await this.#saver.close();
    this.#deps.known.save();
  }

  get #isRedefined(): boolean {
    if (this.epoch === undefined || this.epoch.epoch === "" || this.#definition === undefined) return false;
    return this.epoch.definition !== this.#definition;
  }

  #break(cause: EpochCause): void {
    const { known } = this.#deps;
    this.#outdate();
    if (!known.state.isBroken || cause === "history") {
      this.#cause = cause;
      this.#before = new Set(known.state.epochs);
    }
    known.note({ isBroken: true });
  }

  /** Claims under way were told something that is no longer true. */
  #outdate(): void {
    this.#serial++;
    this.#tell();
  }

  #tell(): void {
    const changed = this.#changed;
    this.#changed = new Latch();
    changed.open();
  }

  #update(): void {
    const wasOpen = this.#wasOpen;
    this.#wasOpen = this.isOpen;
    if (wasOpen && !this.isOpen) {
      this.#tell();
      this.#deps.onSettled();
    }
    this.#worker.wake();
  }

  get #isDue(): boolean {
    const { known } = this.#deps;
    if (this.epoch === undefined) return false;
    const { epoch } = this.epoch;
    if (epoch === "" || known.state.isBroken || this.#isDoubtful) return true;
    // An absent definition can take no writes; it is reported when it is back.
    return this.#definition !== "" && (known.state.written !== epoch || this.#isUnmarked);
  }

  /** Also without a place for epochs. */
  get #hasWritten(): boolean {
    const { known } = this.#deps;
    return !known.state.isBroken && (this.epoch === undefined || known.state.written === this.epoch.epoch);
  }

  get #isUnmarked(): boolean {
    return this.#marked !== undefined && this.#marked !== this.epoch?.epoch;
  }

  async #work(): Promise<undefined> {
    const { port, rows, known } = this.#deps;
    if (this.#isDoubtful) {
      this.follow(await port.read());
      if (this.#isDoubtful) this.wentBack();
      this.#isDoubtful = false;
    }
    // Another epoch waits for nodes that have marked one: a copy from before this node joined has no mark of it.
    const { written } = known.state;
    if (this.#marked === "" && written !== "" && written !== this.epoch?.epoch) await port.mark(written, true);
    if (known.state.isBroken || this.epoch?.epoch === "") {
      const serial = this.#serial;
      const begun = await port.begin(this.#before, known.state.epochs.length === 0 ? "first" : this.#cause);
      // It may have gone back once more meanwhile.
      if (serial !== this.#serial || begun === undefined) return undefined;
      this.#definition = begun.definition;
      known.note({ isBroken: false });
      this.follow(begun);
    }
    const now = this.epoch;
    if (now === undefined || now.epoch === "" || this.#definition === "") return undefined;
    const serial = this.#serial;
    if (known.state.written !== now.epoch) {
      await this.#claimsBefore(serial);
      const isOutdated = (): boolean => serial !== this.#serial;
      const course = { isWhole: this.#journal === "whole", isNewer: this.#journal === "newer", isOutdated };
      await rows.write(now, { ...course, onWritten: () => this.#mark(now.epoch, false) });
      if (isOutdated()) return undefined;
      known.note({ written: now.epoch });
      this.#journal = "whole";
    }
    await this.#mark(now.epoch, true);
    return undefined;
  }

  async #mark(epoch: string, isSettled: boolean): Promise<void> {
    if (!this.#isUnmarked) return;
    await this.#deps.port.mark(epoch, isSettled);
    if (isSettled) this.#marked = epoch;
  }

  /** Resolves when the claims that began before the registry was found to be another one have ended, undone. */
  async #claimsBefore(serial: number): Promise<void> {
    while ([...this.#claims].some((claim) => claim.serial < serial) && !this.#closing.signal.aborted)
      await this.#changed.wait();
  }
}

/** The epoch as claims need it. */
export type FirstClaims = Pick<
  RegistryEpoch,
  "isOpen" | "isProbed" | "inForce" | "waitsFor" | "line" | "claiming" | "hasUnverified" | "isUnverified" | "verified"
>;
