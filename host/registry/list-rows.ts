/**
 * All rows of a registry, page by page: no more than a page is in memory, and rows that come or go meanwhile are no trouble.
 * Effects: reads the registry.
 */
import type { Allocation, Registry } from "./registry.ts";

/** In the registry's order. */
export async function* listRows(registry: Pick<Registry, "list">, pageSize: number): AsyncGenerator<Allocation> {
  let page: readonly Allocation[] = [];
  do {
    page = await registry.list(page.at(-1), pageSize);
    yield* page;
  } while (page.length === pageSize);
}
