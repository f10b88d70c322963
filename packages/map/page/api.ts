/** Requests to the server of the page: answers as records, streams of changes. The token stays in memory. */
import type { ExplanationRecord } from "../../../host/records/explanation-record.ts";
import type {
  AddressesAnswer,
  ChangesEvent,
  HistoryAnswer,
  PoolsAnswer,
  SearchAnswer,
  UsageAnswer,
} from "../server/map-records.ts";
import { type MapModel, readMap } from "./map-model.ts";

interface Credentials {
  readonly token: string;
  readonly namespaces: readonly string[];
}

/** The server refused; `status` is that of HTTP, 0 if it did not answer. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Query = Readonly<Record<string, string>>;

export class Api {
  credentials: Credentials | undefined;

  pools(): Promise<PoolsAnswer> {
    return this.#read("pools", {});
  }

  async map(pool: string): Promise<MapModel> {
    const answer = await this.#get("map", { pool });
    return readMap(new Uint8Array(await answer.arrayBuffer()));
  }

  addresses(pool: string, first: string, last: string): Promise<AddressesAnswer> {
    return this.#read("addresses", { pool, first, last });
  }

  search(q: string): Promise<SearchAnswer> {
    return this.#read("search", { q });
  }

  usage(pool: string): Promise<UsageAnswer> {
    return this.#read("usage", { pool });
  }

  explain(namespace: string, pod: string): Promise<ExplanationRecord> {
    return this.#read("explain", { in: namespace, pod });
  }

  history(pool: string, address: string): Promise<HistoryAnswer> {
    return this.#read("history", { pool, address });
  }

  /**
   * Reads the changes of a map until the signal ends, or the connection: then it resolves. `onOpen` is called when
   * every later change will come.
   */
  async follow(pool: string, on: FollowEvents, signal: AbortSignal): Promise<void> {
    const answer = await this.#get("changes", { pool }, signal);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (reader === undefined) return;
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        tell(text.slice(0, end), on);
        text = text.slice(end + 2);
      }
    }
  }

  async #read<T>(path: string, query: Query): Promise<T> {
    return (await (await this.#get(path, query)).json()) as T;
  }

  async #get(path: string, query: Query, signal?: AbortSignal): Promise<Response> {
    const { token, namespaces = [] } = this.credentials ?? {};
    const search = new URLSearchParams(query);
    for (const namespace of namespaces) search.append("namespace", namespace);
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`api/v1/${path}?${search}`, {
      headers,
      ...(signal === undefined ? {} : { signal }),
    }).catch((error: unknown) => {
      throw new Refusal(0, `The server does not answer: ${error instanceof Error ? error.message : String(error)}`);
    });
    if (answer.ok) return answer;
    const text = await answer.text();
    throw new Refusal(answer.status, messageOf(text) ?? `The server answered ${answer.status}`);
  }
}

interface FollowEvents {
  readonly onOpen: () => void;
  readonly onChanges: (changes: ChangesEvent) => void;
}

function tell(text: string, { onOpen, onChanges }: FollowEvents): void {
  const [, event, json = ""] = /^event: (\w+)\ndata: (.*)$/.exec(text) ?? [];
  if (event === "open") onOpen();
  else if (event === "changes") onChanges(JSON.parse(json) as ChangesEvent);
}

/** Returns the text of the server's refusal. */
function messageOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}
