/** Reads a collection page by page, as of one moment. */
import * as z from "zod";
import { errnoOf } from "../lib/describe.ts";
import { ApiUnavailable, type KubeApi, type KubeCall, type KubeObject } from "./kube-api.ts";

/** Most objects or names on one page of a list. */
export const LIST_PAGE = 500;

/** The same of the first page: it is not known how large the objects are. All of an ordinary cluster fit on it. */
const FIRST_PAGE = 100;

/** Most that a page grows against the one before. */
const PAGE_GROWTH = 4;

/** Length of an answer that a page is to have at most: bytes. A larger one blocks the process while it is decoded. */
const PAGE_BYTES = 512 * 1024;

/** Longest page of several objects that is parsed: bytes. Parsed, dense text takes twenty times as much memory. */
const MAX_PAGE_BYTES = 2 * PAGE_BYTES;

export interface Page {
  readonly items: readonly KubeObject[];
  /** The moment of the list: a watch from here reports everything later. */
  readonly resourceVersion: string;
}

type ListCall = Pick<KubeCall, "path" | "query" | "accept" | "lane" | "patienceMs" | "signal">;

const pageSchema = z.object({
  apiVersion: z.string().catch(""),
  kind: z.string().catch(""),
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().optional() }),
  // Go encodes an empty list as null.
  items: z.array(z.record(z.string(), z.unknown())).nullable(),
});

/**
 * Consistent: the server answers as of a moment after the call. Rejects as `KubeApi.call` does; with 410 if the later
 * pages have been compacted away, and the list has to start again.
 */
export async function* listPages(api: KubeApi, { query, ...call }: ListCall): AsyncGenerator<Page> {
  let next: string | undefined;
  const most = Number(query?.limit ?? LIST_PAGE);
  let size = Math.min(FIRST_PAGE, most);
  let bytes = 0;
  const onBytes = (length: number): void => {
    bytes = length;
  };
  for (;;) {
    const sized = { ...query, limit: size, continue: next };
    const maxBytes = size === 1 ? undefined : MAX_PAGE_BYTES;
    const answer = await api
      .call({ ...call, method: "GET", query: sized, maxBytes, onBytes })
      .catch((error: unknown) => {
        if (!isTooLarge(error) || size === 1) throw error;
      });
    if (answer === undefined) {
      size = Math.ceil(size / SMALLER);
      continue;
    }
    const page = pageSchema.safeParse(answer);
    if (!page.success) throw new ApiUnavailable(`GET ${call.path}`, `GET ${call.path} was answered with no list`);
    const { items, metadata, apiVersion, kind } = page.data;
    // The server's own kinds have kind and version in the list only.
    const type = { apiVersion, kind: kind.replace(/List$/, "") };
    yield { items: (items ?? []).map((item) => ({ ...type, ...item })), resourceVersion: metadata.resourceVersion };
    next = metadata.continue || undefined;
    if (next === undefined) return;
    const fitting = Math.floor((size * PAGE_BYTES) / Math.max(1, bytes));
    size = Math.max(1, Math.min(most, PAGE_GROWTH * size, fitting));
  }
}

/** Divisor for a page whose answer is too large: a tenant may create objects as large as etcd accepts. */
const SMALLER = 8;

function isTooLarge(error: unknown): boolean {
  return error instanceof ApiUnavailable && errnoOf(error.cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE";
}
