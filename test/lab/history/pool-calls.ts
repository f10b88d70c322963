/**
 * The calls of a small pool, of which some order has to be legal: each address has one owner, the pool is exhausted
 * only when all have one, and a member gets the address that is retained for it. linearizable/main.go searches for it.
 *
 *   const calls = new PoolCalls("few", ["10.7.0.1", "10.7.0.2"]);
 *   const add = calls.add({ client: 0, pod: uid, member: "web-0" });
 *   add.ends({ address: "10.7.0.1" });                   // or { exhausted: true }, or {}: it has nothing any more
 *   const del = calls.del({ client: 0, pod: uid, member: "web-0" }, "10.7.0.1");
 *   del.ends();                                          // at the latest now the address is no longer the pod's
 *   await calls.check()                                  // undefined: legal
 * Effects: the program that the set-up builds.
 */
import { join } from "node:path";
import { root } from "../../../scripts/setup/paths.mjs";
import { runCommand } from "../command.ts";

const PROGRAM = join(root, "dist", "test", "linearizable");
const LIMIT_MS = 60_000;

export interface Caller {
  /** 0 to 7. */
  readonly client: number;
  readonly pod: string;
  /** The member, for a pod whose address is retained. */
  readonly member?: string | undefined;
}

interface Outcome {
  readonly address?: string | undefined;
  readonly exhausted?: boolean;
}

export interface PoolCall {
  ends(outcome?: Outcome): void;
}

export class PoolCalls {
  readonly #lines: object[];
  readonly #pool: string;

  /** Takes a pool of at most eight addresses. */
  constructor(pool: string, addresses: readonly string[]) {
    this.#pool = pool;
    this.#lines = [{ pool, addresses }];
  }

  add(caller: Caller): PoolCall {
    return this.#call({ op: "add", ...caller });
  }

  del(caller: Caller, address: string): PoolCall {
    return this.#call({ op: "del", ...caller, address });
  }

  #call(fields: object): PoolCall {
    const line = { pool: this.#pool, ...fields, call: nowNs() };
    this.#lines.push(line);
    return { ends: (outcome = {}) => void Object.assign(line, outcome, { return: nowNs() }) };
  }

  /** Returns what is wrong; undefined: nothing. Throws if the calls cannot be checked. */
  async check(): Promise<string | undefined> {
    const stdin = this.#lines.map((line) => JSON.stringify(line)).join("\n");
    const { exitCode, stdout, stderr } = await runCommand([PROGRAM], { stdin, timeoutMs: LIMIT_MS });
    if (exitCode > 1) throw new Error(`${PROGRAM}: ${stderr}${stdin}`);
    return exitCode === 0 ? undefined : `${stdout}${stdin}`;
  }
}

const nowNs = (): number => Math.round(performance.now() * 1e6);
