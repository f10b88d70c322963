import type { Allocation, Registry } from "./registry.ts";

/** Yields all rows, sorted by address, with one page in memory. Rows may be written and deleted meanwhile. */
export async function* listRows(registry: Pick<Registry, "list">, pageSize?: number): AsyncGenerator<Allocation> {
  for await (const page of listPages(registry, pageSize)) yield* page;
}

/** The same in pages; the last one may be empty. */
export async function* listPages(registry: Pick<Registry, "list">, pageSize = 500) {
  let page: readonly Allocation[] = [];
  do {
    page = await registry.list(page.at(-1), pageSize);
    yield page;
  } while (page.length === pageSize);
}
