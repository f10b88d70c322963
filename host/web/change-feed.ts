/** Changes of one map as server-sent events: gathered for a tenth of a second, the last state of each address. */
import type { ServerResponse } from "node:http";
import { prefixContains } from "../net/prefix.ts";
import type { ChangesEvent } from "../records/map-records.ts";
import type { MapChange, MapPool } from "./map-source.ts";
import { numberOf, type Segments } from "./segments.ts";
import { stateFor, stateNumber, type Viewer } from "./viewer.ts";

/** How long changes of a map are gathered before they are sent: milliseconds. */
const GATHER_MS = 100;

/** How often a stream without changes shows that it lives: milliseconds. */
const KEEP_ALIVE_MS = 15_000;

/** Most changes that are gathered; with more, the page is told to read the map again. */
const MAX_GATHERED = 20_000;

/** Bytes that a slow reader may leave unread before its stream is closed. */
const MAX_UNREAD_BYTES = 4_194_304;

interface FeedOptions {
  readonly pool: MapPool;
  /** Those of the map that the page shows. */
  readonly segments: Segments;
  readonly viewer: Viewer;
  readonly subscribe: (listener: (change: MapChange) => void) => () => void;
  readonly onEnd: () => void;
}

/** Writes events until the reader ends the connection. The first, `open`, says that every later change will be told. */
export function feedChanges(response: ServerResponse, { pool, segments, viewer, subscribe, onEnd }: FeedOptions): void {
  const waiting = new Map<number, number>();
  let isOther = false;
  let timer: NodeJS.Timeout | undefined;
  const write = (text: string): void => {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
    else response.write(text);
  };
  const flush = (): void => {
    timer = undefined;
    const changes: ChangesEvent = [...waiting];
    if (isOther) write("event: reload\ndata: {}\n\n");
    else write(`event: changes\ndata: ${JSON.stringify(changes)}\n\n`);
    waiting.clear();
    isOther = false;
  };
  const unsubscribe = subscribe(({ ip, addressSpace, allocation }) => {
    if (addressSpace !== pool.addressSpace || !prefixContains(pool.subnet, ip)) return;
    const number = numberOf(segments, ip);
    // An island that the map does not have, or more than is worth sending one by one.
    if (number === undefined || waiting.size >= MAX_GATHERED) isOther = true;
    else waiting.set(number, stateNumber(allocation && stateFor(viewer, allocation)));
    timer ??= setTimeout(flush, GATHER_MS);
  });
  const beat = setInterval(() => write(": alive\n\n"), KEEP_ALIVE_MS);
  write("event: open\ndata: {}\n\n");
  response.once("close", () => {
    clearTimeout(timer);
    clearInterval(beat);
    unsubscribe();
    onEnd();
  });
}
