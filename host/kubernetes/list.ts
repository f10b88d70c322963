/**
 * A collection page by page, as it was at one moment.
 * Effects: calls.
 */
import { z } from "zod";
import { errnoOf } from "../lib/describe.ts";
import { ApiUnavailable, type KubeApi, type KubeCall, type KubeObject } from "./kube-api.ts";

/** Objects or names in one page of a list. @limit */
export const LIST_PAGE = 500;

export interface Page {
  readonly items: readonly KubeObject[];
  /** The moment: a watch from here tells all that came after. */
  readonly resourceVersion: string;
}

export type ListCall = Pick<KubeCall, "path" | "query" | "accept" | "lane" | "patienceMs" | "signal">;

const pageSchema = z.object({
  apiVersion: z.string().catch(""),
  kind: z.string().catch(""),
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().optional() }),
  // Go writes null for none.
  items: z.array(z.record(z.string(), z.unknown())).nullable(),
});

/**
 * Consistent: the server answers from a moment after the call. Rejects as `KubeApi.call` does; with 410 when the later pages have
 * been compacted away, and then the list has to begin again.
 */
export async function* listPages(api: KubeApi, { query, ...call }: ListCall): AsyncGenerator<Page> {
  let next: string | undefined;
  let size = Number(query?.limit ?? LIST_PAGE);
  for (;;) {
    const sized = { ...query, limit: size, continue: next };
    const answer = await api.call({ ...call, method: "GET", query: sized }).catch((error: unknown) => {
      if (!isTooLarge(error) || size === 1) throw error;
    });
    if (answer === undefined) {
      size = Math.ceil(size / SMALLER);
      continue;
    }
    const page = pageSchema.safeParse(answer);
    if (!page.success) throw new ApiUnavailable(`GET ${call.path}`, `GET ${call.path} was answered with no list`);
    const { items, metadata, apiVersion, kind } = page.data;
    // Kind and version stand once in the list, and not in the objects of the server's own kinds.
    const type = { apiVersion, kind: kind.replace(/List$/, "") };
    yield { items: (items ?? []).map((item) => ({ ...type, ...item })), resourceVersion: metadata.resourceVersion };
    next = metadata.continue || undefined;
    if (next === undefined) return;
  }
}

/** By what a page is divided whose answer is too large: whoever may create objects of a kind may make each as large as etcd takes. */
const SMALLER = 8;

function isTooLarge(error: unknown): boolean {
  return error instanceof ApiUnavailable && errnoOf(error.cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE";
}
