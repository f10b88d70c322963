/**
 * Events (events.k8s.io/v1): what `kubectl describe` shows below an object.
 * Called by the agent and the controller when a person should hear of something; nobody waits for them.
 * Effects: calls in the background, a few per second at most.
 */
import { randomBytes } from "node:crypto";
import type { Log } from "../lib/log.ts";
import { pause } from "./http/deadline.ts";
import { describeFailure } from "./http/retry.ts";
import type { KubeApi } from "./kube-api.ts";
import {
  EVENT_GAP_MS,
  EVENT_PATIENCE_MS,
  EVENT_REPEAT_MS,
  MAX_EVENT_NOTE,
  MAX_REMEMBERED_EVENTS,
  MAX_WAITING_EVENTS,
} from "./limits.ts";

export interface KubeEvent {
  readonly regarding: {
    readonly kind: string;
    readonly apiVersion: string;
    /** "" for an object without one. */
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  /** `AddressConflict`: a word for machines. */
  readonly reason: string;
  /** A sentence for people; cut to 1,024 bytes. */
  readonly note: string;
  readonly type: "Normal" | "Warning";
  /** `Allocate`: what was being done. */
  readonly action: string;
}

export interface EventsOptions {
  readonly api: KubeApi;
  /** `berth-agent` */
  readonly component: string;
  readonly node: string;
  readonly log: Log;
  /** A monotonic clock in milliseconds; default: that of the process. */
  readonly nowMs?: () => number;
}

export interface Events {
  /** Returns at once and never throws. The same event within five minutes is sent once. */
  emit(event: KubeEvent): void;
  /** Drops what waits. */
  close(): Promise<void>;
}

export function openEvents(options: EventsOptions): Events {
  return new Sender(options);
}

class Sender implements Events {
  readonly #options: EventsOptions;
  readonly #waiting: { readonly event: KubeEvent; readonly key: string }[] = [];
  /** When each was sent last, the oldest first. */
  readonly #sentMs = new Map<string, number>();
  readonly #closing = new AbortController();
  #sending: Promise<void> | undefined;

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  emit(event: KubeEvent): void {
    if (this.#closing.signal.aborted) return;
    const nowMs = (this.#options.nowMs ?? performance.now.bind(performance))();
    const key = JSON.stringify(event);
    const sentMs = this.#sentMs.get(key);
    if (sentMs !== undefined && nowMs - sentMs < EVENT_REPEAT_MS) return;
    const { reason, regarding } = event;
    if (this.#waiting.length >= MAX_WAITING_EVENTS) {
      this.#options.log.warn({ reason, object: regarding.name }, "An event was dropped: too many are waiting");
      return;
    }
    this.#remember(key, nowMs);
    this.#waiting.push({ event, key });
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  #remember(key: string, nowMs: number): void {
    this.#sentMs.delete(key);
    this.#sentMs.set(key, nowMs);
    for (const oldest of this.#sentMs.keys()) {
      if (this.#sentMs.size <= MAX_REMEMBERED_EVENTS) break;
      this.#sentMs.delete(oldest);
    }
  }

  /** One after the other, until none waits. Never rejects. */
  async #send(): Promise<void> {
    const { api, log } = this.#options;
    const { signal } = this.#closing;
    for (let next = this.#waiting.shift(); next !== undefined && !signal.aborted; next = this.#waiting.shift()) {
      const { event, key } = next;
      const body = objectOf(event, this.#options);
      const path = `/apis/events.k8s.io/v1/namespaces/${body.metadata.namespace}/events`;
      try {
        await api.call({ method: "POST", path, body, patienceMs: EVENT_PATIENCE_MS, signal });
      } catch (error) {
        // The next of its kind may have more luck.
        this.#sentMs.delete(key);
        log.warn({ reason: event.reason, failure: describeFailure(error) }, "An event could not be sent");
      }
      await pause(EVENT_GAP_MS, signal).catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("Events were closed"));
    await this.#sending;
  }
}

/** Longest beginning of the event's name that leaves room for what makes it unique. */
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
    note: cutBytes(note, MAX_EVENT_NOTE),
    type,
    action,
    eventTime: new Date().toISOString().replace("Z", "000Z"),
    reportingController: component,
    reportingInstance: node.slice(0, 128),
  };
}

/** At most so many bytes of UTF-8, without half a character at the end. */
function cutBytes(text: string, lengthBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= lengthBytes) return text;
  let end = lengthBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
