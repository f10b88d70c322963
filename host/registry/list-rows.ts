import type { Allocation, Registry } from "./registry.ts";

/** Yields all rows, sorted by address, with one page in memory. Rows may be written and deleted meanwhile. */
export async function* listRows(registry: Pick<Registry, "list">, pageSize = 500): AsyncGenerator<Allocation> {
  let page: readonly Allocation[] = [];
  do {
    page = await registry.list(page.at(-1), pageSize);
    yield* page;
  } while (page.length === pageSize);
}
