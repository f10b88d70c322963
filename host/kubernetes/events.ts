/**
 * Events (events.k8s.io/v1), which `kubectl describe` shows below an object. Repeated events are one Event with a
 * count, its series.
 * Effects: calls in the background, a few per second at most.
 */

import { hash } from "node:crypto";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Log } from "../lib/log.ts";
import { orElse } from "../lib/try-or.ts";
import { describeFailure, pause } from "./http/retry.ts";
import { isConflict, isForbidden, type KubeApi } from "./kube-api.ts";
import { collectionPath, EVENTS } from "./paths.ts";

/** Longest note of an event: bytes. The server refuses longer ones. */
const MAX_EVENT_NOTE = 1_024;

/** Shortest interval at which the count of an event that repeats is written: milliseconds. */
export const EVENT_REPEAT_MS = 300_000;

/** Time for which an event that no longer repeats is remembered: milliseconds. API servers keep them an hour. */
export const EVENT_MEMORY_MS = 3_600_000;

/** Time between two events: milliseconds. Events are for people, and must not load the server. */
export const EVENT_GAP_MS = 300;

/** Most queued events; further ones are dropped. */
export const MAX_WAITING_EVENTS = 100;

/**
 * Most different notes for one object and reason; further ones count as repetitions of the last. A note with a count
 * or an address is always different.
 */
export const MAX_NOTES = 4;

/** Most objects and reasons that are remembered to count repeated events. */
const MAX_REMEMBERED_EVENTS = 1_000;

/** Time for which sending one event is tried: milliseconds. */
const EVENT_PATIENCE_MS = 5_000;

export interface KubeEvent {
  readonly regarding: {
    readonly kind: string;
    readonly apiVersion: string;
    /** "" for an object without a namespace. */
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  /** `AddressConflict`: one word for programs. */
  readonly reason: string;
  /** A sentence for people; cut to 1,024 bytes. */
  readonly note: string;
  readonly type: "Normal" | "Warning";
  /** `Allocate`: the action that failed or succeeded. */
  readonly action: string;
}

interface EventsOptions {
  readonly api: KubeApi;
  /** `berth-agent` */
  readonly component: string;
  readonly node: string;
  readonly log: Log;
  /** A monotonic clock: milliseconds. Default: the process's. */
  readonly nowMs?: () => number;
}

/** An event that was sent, or is queued. */
interface Known {
  readonly event: KubeEvent;
  /** The event without its note. */
  readonly subject: string;
  /** Number of times that it was emitted. */
  count: number;
  isQueued: boolean;
  sentMs: number;
  emittedMs: number;
}

export type Events = Pick<EventSender, "emit" | "close">;

export class EventSender {
  readonly #options: EventsOptions;
  readonly #nowMs: () => number;
  readonly #waiting: Known[] = [];
  /** By subject, the oldest first, and by note. */
  readonly #known = new BoundedMap<string, Map<string, Known>>(MAX_REMEMBERED_EVENTS);
  readonly #closing = new AbortController();
  #sending: Promise<void> | undefined;

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Returns at once and never throws. An event is created once and then counted; few per object and reason. */
  emit(long: KubeEvent): void {
    if (this.#closing.signal.aborted) return;
    const event = { ...long, note: cutBytes(long.note, MAX_EVENT_NOTE) };
    const { note, ...rest } = event;
    const subject = JSON.stringify(rest);
    const notes = this.#notesOf(subject);
    const same = notes.get(note) ?? (notes.size < MAX_NOTES ? undefined : [...notes.values()].at(-1));
    if (same !== undefined) this.#repeat(same);
    else this.#begin({ event, subject, count: 1, isQueued: false, sentMs: 0, emittedMs: this.#nowMs() }, notes);
  }

  #begin(known: Known, notes: Map<string, Known>): void {
    const { event, subject } = known;
    if (!this.#queue(known)) {
      const { reason, regarding } = event;
      this.#options.log.warn({ reason, object: regarding.name }, "An event was dropped: too many are queued");
      return;
    }
    notes.set(event.note, known);
    this.#known.set(subject, notes);
  }

  /** The next repetition writes the count if the queue is full now. */
  #repeat(known: Known): void {
    known.count++;
    known.emittedMs = this.#nowMs();
    if (!known.isQueued && known.emittedMs - known.sentMs >= EVENT_REPEAT_MS) this.#queue(known);
  }

  /** Returns false if too many are queued. */
  #queue(known: Known): boolean {
    if (this.#waiting.length >= MAX_WAITING_EVENTS) return false;
    known.isQueued = true;
    this.#waiting.push(known);
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return true;
  }

  /** Returns the known notes of the subject, without those not emitted for long. */
  #notesOf(subject: string): Map<string, Known> {
    const oldestMs = this.#nowMs() - EVENT_MEMORY_MS;
    const notes = this.#known.get(subject) ?? new Map<string, Known>();
    for (const [note, { emittedMs }] of notes) if (emittedMs <= oldestMs) notes.delete(note);
    return notes;
  }

  /** Sends one event after the other. Never rejects. */
  async #send(): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#closing;
    for (let next = this.#waiting.shift(); next !== undefined && !signal.aborted; next = this.#waiting.shift()) {
      const { event, subject } = next;
      next.isQueued = false;
      next.sentMs = this.#nowMs();
      try {
        await this.#create(next);
      } catch (error) {
        // The next event of its kind may succeed.
        this.#known.get(subject)?.delete(event.note);
        log.warn({ reason: event.reason, failure: describeFailure(error) }, "Sending an event failed");
      }
      await pause(EVENT_GAP_MS, signal).catch(() => {});
    }
  }

  /** If it was sent before, also by an earlier process, the object is there: its repetition is counted. */
  async #create(known: Known): Promise<void> {
    const body = objectOf(known.event, this.#options);
    try {
      await this.#call("POST", collectionPath(EVENTS, body.metadata.namespace), body);
    } catch (error) {
      if (!isConflict(error)) throw error;
      await this.#count(body.metadata, Math.max(2, known.count));
    }
  }

  async #count({ namespace, name }: EventName, count: number): Promise<void> {
    const series = { count, lastObservedTime: microTime() };
    const path = `${collectionPath(EVENTS, namespace)}/${encodeURIComponent(name)}`;
    // Rights of an older release: the object is there, without a count.
    await this.#call("PATCH", path, { series }).catch(orElse(isForbidden, undefined));
  }

  async #call(method: "POST" | "PATCH", path: string, body: object): Promise<void> {
    await this.#options.api.call({ method, path, body, patienceMs: EVENT_PATIENCE_MS, signal: this.#closing.signal });
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("Events were closed"));
    await this.#sending;
  }
}

type EventName = ReturnType<typeof objectOf>["metadata"];

/** Longest prefix of an event's name, which leaves room for the hash. */
const MAX_NAME_BEGINNING = 200;

/** The same event has the same name, whichever process sends it: the server has it once. */
function objectOf(event: KubeEvent, { component, node }: EventsOptions) {
  const { regarding, reason, note, type, action } = event;
  // Events of objects without a namespace live in "default".
  const namespace = regarding.namespace === "" ? "default" : regarding.namespace;
  const beginning = regarding.name.slice(0, MAX_NAME_BEGINNING).replace(/[^a-z0-9]+$/, "");
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { namespace, name: `${beginning}.${hashOf([event, component])}` },
    regarding,
    reason,
    note,
    type,
    action,
    eventTime: microTime(),
    reportingController: component,
    reportingInstance: node.slice(0, 128),
  };
}

function hashOf(value: unknown): string {
  return hash("sha256", JSON.stringify(value), "hex").slice(0, 16);
}

/** RFC 3339 with microseconds. */
function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}

/** Returns at most so many bytes of UTF-8, without half a character at the end. */
function cutBytes(text: string, lengthBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= lengthBytes) return text;
  let end = lengthBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
