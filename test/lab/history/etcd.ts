/**
 * etcd through its JSON gateway: the keys of a range, puts, deletions, and a watch that misses nothing. Keys and
 * values travel in base64, revisions as decimals (etcd's api/etcdserverpb/rpc.proto).
 */
import { Agent, type IncomingMessage, request } from "node:http";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { openConnecting } from "../sockets.ts";

export interface EtcdKey {
  readonly key: string;
  readonly revision: number;
  /** Undefined: deleted. */
  readonly value: string | undefined;
}

/** From `start` to before `end`. */
export interface EtcdRange {
  readonly start: string;
  readonly end: string;
}

export interface Etcd {
  read(range: EtcdRange): Promise<{ readonly revision: number; readonly keys: readonly EtcdKey[] }>;
  put(key: string, value: string): Promise<void>;
  /** All in one transaction, of at most 128. */
  putAll(entries: readonly (readonly [key: string, value: string])[]): Promise<void>;
  /** All in one transaction, of at most 128. */
  deleteAll(keys: readonly string[]): Promise<void>;
  /**
   * Calls `onKey` for each write to the range from that revision on; resolves when the connection ends. Throws {@link
   * WatchEnded}.
   */
  watch(range: EtcdRange, fromRevision: number, onKey: (key: EtcdKey) => void): Promise<void>;
  close(): void;
}

/** etcd cannot continue: later revisions are compacted, and the like. */
export class WatchEnded extends Error {
  override readonly name = "WatchEnded";
}

interface KeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
}

interface RangeAnswer {
  readonly header: { readonly revision: string };
  readonly kvs?: readonly KeyValue[];
}

interface WatchAnswer {
  readonly result?: {
    readonly canceled?: boolean;
    readonly cancel_reason?: string;
    readonly events?: readonly { readonly type?: "DELETE"; readonly kv: KeyValue }[];
  };
  readonly error?: { readonly message: string };
}

/** `netnsPath`: where etcd's loopback is; default: this process's own namespace. */
export function openEtcd(url: string, netnsPath = "/proc/thread-self/ns/net"): Etcd {
  const agent = new LocalAgent(url, netnsPath);
  const call = async <T>(path: string, body: object): Promise<T> => {
    const chunks: Buffer[] = [];
    for await (const chunk of await post(agent, new URL(path, url), body)) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString()) as T;
  };
  return {
    read: async ({ start, end }) => {
      const body = { key: encode(start), range_end: encode(end) };
      const { header, kvs = [] } = await call<RangeAnswer>("/v3/kv/range", body);
      return { revision: Number(header.revision), keys: kvs.map((each) => decodeKey(each, false)) };
    },
    put: async (key, value) => void (await call("/v3/kv/put", { key: encode(key), value: encode(value) })),
    putAll: async (entries) => {
      const success = entries.map(([key, value]) => ({ request_put: { key: encode(key), value: encode(value) } }));
      await call("/v3/kv/txn", { success });
    },
    deleteAll: async (keys) => {
      const success = keys.map((key) => ({ request_delete_range: { key: encode(key) } }));
      await call("/v3/kv/txn", { success });
    },
    watch: async ({ start, end }, fromRevision, onKey) => {
      const create = { key: encode(start), range_end: encode(end), start_revision: `${fromRevision}` };
      const answer = await post(agent, new URL("/v3/watch", url), { create_request: create });
      // A broken connection ends the lines.
      answer.on("error", () => {});
      for await (const line of createInterface({ input: answer })) {
        const { result, error } = JSON.parse(line) as WatchAnswer;
        const reason =
          error?.message ?? (result?.canceled === true ? (result.cancel_reason ?? "cancelled") : undefined);
        if (reason !== undefined) throw new WatchEnded(`etcd ends the watch from revision ${fromRevision}: ${reason}`);
        for (const { type, kv } of result?.events ?? []) onKey(decodeKey(kv, type === "DELETE"));
      }
    },
    close: () => agent.destroy(),
  };
}

/** Opens its connections in the namespace. */
class LocalAgent extends Agent {
  readonly #place: { readonly address: string; readonly port: number };
  readonly #netnsPath: string;

  constructor(url: string, netnsPath: string) {
    super({ keepAlive: true });
    const { hostname, port } = new URL(url);
    this.#place = { address: hostname, port: Number(port) };
    this.#netnsPath = netnsPath;
  }

  override createConnection(): Socket {
    return new Socket({ fd: openConnecting(this.#netnsPath, this.#place) });
  }
}

/** The answer's head is here, its body follows. Throws when it is no 200. */
function post(agent: Agent, url: URL, body: object): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method: "POST" }, (answer) => {
      if (answer.statusCode === 200) return resolve(answer);
      answer.resume();
      reject(new Error(`POST ${url.pathname} was answered with ${answer.statusCode}`));
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decodeKey({ key, value = "", mod_revision }: KeyValue, isDeleted: boolean): EtcdKey {
  return {
    key: Buffer.from(key, "base64").toString(),
    revision: Number(mod_revision),
    value: isDeleted ? undefined : Buffer.from(value, "base64").toString(),
  };
}
