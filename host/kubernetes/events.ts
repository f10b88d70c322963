/**
 * Events (events.k8s.io/v1): what `kubectl describe` shows below an object.
 * Effects: calls in the background, a few per second at most.
 */

import { randomBytes } from "node:crypto";
import type { Log } from "../lib/log.ts";
import { pause } from "./http/deadline.ts";
import { describeFailure } from "./http/retry.ts";
import type { KubeApi } from "./kube-api.ts";
import { collectionPath, EVENTS } from "./paths.ts";

/** Longest note of an event: bytes. The server refuses longer ones. @limit */
export const MAX_EVENT_NOTE = 1_024;

/** How long the same event is not sent again: milliseconds. @limit */
export const EVENT_REPEAT_MS = 300_000;

/** Time between two events: milliseconds. Events are for people, and must not load the server. @limit */
export const EVENT_GAP_MS = 300;

/** Most queued events; further ones are dropped. @limit */
export const MAX_WAITING_EVENTS = 100;

/** Most different notes for one object and reason before one may be repeated. A note with a count or an address is always different. @limit */
export const MAX_NOTES = 4;

/** Most objects and reasons that are remembered to suppress repeated events. @limit */
export const MAX_REMEMBERED_EVENTS = 1_000;

/** How long sending one event is tried: milliseconds. @limit */
export const EVENT_PATIENCE_MS = 5_000;

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

export interface Events {
  /** Returns at once and never throws. The same event is sent once in five minutes, and a few per object and reason. */
  emit(event: KubeEvent): void;
  /** Drops queued events. */
  close(): Promise<void>;
}

export function openEvents(options: EventsOptions): Events {
  return new Sender(options);
}

interface Waiting {
  readonly event: KubeEvent;
  /** The event without its note. */
  readonly subject: string;
}

class Sender implements Events {
  readonly #options: EventsOptions;
  readonly #nowMs: () => number;
  readonly #waiting: Waiting[] = [];
  /** By subject, the oldest first: when each note was sent last. */
  readonly #sentMs = new Map<string, Map<string, number>>();
  readonly #closing = new AbortController();
  #sending: Promise<void> | undefined;

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  emit(long: KubeEvent): void {
    if (this.#closing.signal.aborted) return;
    const event = { ...long, note: cutBytes(long.note, MAX_EVENT_NOTE) };
    const { note, ...rest } = event;
    const subject = JSON.stringify(rest);
    const notes = this.#notesOf(subject);
    if (notes.has(note) || notes.size >= MAX_NOTES) return;
    const { reason, regarding } = event;
    if (this.#waiting.length >= MAX_WAITING_EVENTS) {
      this.#options.log.warn({ reason, object: regarding.name }, "An event was dropped: too many are queued");
      return;
    }
    notes.set(note, this.#nowMs());
    this.#remember(subject, notes);
    this.#waiting.push({ event, subject });
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Returns the notes that must not be repeated yet. */
  #notesOf(subject: string): Map<string, number> {
    const oldestMs = this.#nowMs() - EVENT_REPEAT_MS;
    const notes = this.#sentMs.get(subject) ?? new Map<string, number>();
    for (const [note, sentMs] of notes) if (sentMs <= oldestMs) notes.delete(note);
    return notes;
  }

  #remember(subject: string, notes: Map<string, number>): void {
    this.#sentMs.delete(subject);
    this.#sentMs.set(subject, notes);
    for (const oldest of this.#sentMs.keys()) {
      if (this.#sentMs.size <= MAX_REMEMBERED_EVENTS) break;
      this.#sentMs.delete(oldest);
    }
  }

  /** Sends one event after the other. Never rejects. */
  async #send(): Promise<void> {
    const { api, log } = this.#options;
    const { signal } = this.#closing;
    for (let next = this.#waiting.shift(); next !== undefined && !signal.aborted; next = this.#waiting.shift()) {
      const { event, subject } = next;
      try {
        const body = objectOf(event, this.#options);
        const path = collectionPath(EVENTS, body.metadata.namespace);
        await api.call({ method: "POST", path, body, patienceMs: EVENT_PATIENCE_MS, signal });
      } catch (error) {
        // The next event of its kind may succeed.
        this.#sentMs.get(subject)?.delete(event.note);
        log.warn({ reason: event.reason, failure: describeFailure(error) }, "Sending an event failed");
      }
      await pause(EVENT_GAP_MS, signal).catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("Events were closed"));
    await this.#sending;
  }
}

/** Longest prefix of an event's name, which leaves room for the unique part. */
const MAX_NAME_BEGINNING = 200;

function objectOf({ regarding, reason, note, type, action }: KubeEvent, { component, node }: EventsOptions) {
  // Events of objects without a namespace live in "default".
  const namespace = regarding.namespace === "" ? "default" : regarding.namespace;
  const beginning = regarding.name.slice(0, MAX_NAME_BEGINNING).replace(/[^a-z0-9]+$/, "");
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { namespace, name: `${beginning}.${randomBytes(8).toString("hex")}` },
    regarding,
    reason,
    note,
    type,
    action,
    eventTime: new Date().toISOString().replace("Z", "000Z"),
    reportingController: component,
    reportingInstance: node.slice(0, 128),
  };
}

/** Returns at most so many bytes of UTF-8, without half a character at the end. */
function cutBytes(text: string, lengthBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= lengthBytes) return text;
  let end = lengthBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
