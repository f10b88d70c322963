/**
 * Counts of the calls that have passed a proxy, by kind, with their bytes and answers.
 * Effects: none but its own counts.
 */
import type { Verb } from "./api-faults.ts";

export interface CallFilter {
  readonly verb?: Verb;
  /** `ipallocations`, `pods/status` */
  readonly resource?: string;
}

export interface TallyRow {
  readonly verb: Verb;
  readonly resource: string;
  requests: number;
  /** Bytes of bodies. */
  requestBytes: number;
  responseBytes: number;
  /** The API server's and the proxy's own; a call that was broken before has none. */
  readonly statuses: Record<number, number>;
}

export class ApiTally {
  readonly #rows = new Map<string, TallyRow>();

  /** Counts one call; the row takes figures that become known later. */
  begin(verb: Verb, resource: string): TallyRow {
    const key = `${verb} ${resource}`;
    const row = this.#rows.get(key) ?? { verb, resource, requests: 0, requestBytes: 0, responseBytes: 0, statuses: {} };
    row.requests += 1;
    this.#rows.set(key, row);
    return row;
  }

  rows(): readonly TallyRow[] {
    return [...this.#rows.values()];
  }

  count({ verb, resource }: CallFilter): number {
    return this.rows()
      .filter((row) => (verb ?? row.verb) === row.verb && (resource ?? row.resource) === row.resource)
      .reduce((sum, { requests }) => sum + requests, 0);
  }

  reset(): void {
    this.#rows.clear();
  }
}
