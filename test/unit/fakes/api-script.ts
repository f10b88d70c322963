/**
 * A script of random operations on objects of one kind, from a seed: the same one for the fake and for a real API
 * server, whose answers must be equal. What a server chooses itself (UIDs, versions, times) is replaced by when it
 * was first seen.
 */
import { ApiError, type KubeApi, type KubeCall, type WatchEvent } from "../../../host/kubernetes/kube-api.ts";
import { Seeded } from "../../world/seeded.ts";

const SUBNETS = "/apis/ipam.vendor.io/v1/subnets";
const NAMES = 4;

// biome-ignore lint/suspicious/noExplicitAny: an object as the API server has it
type Loose = any;

/** Names for what differs between servers, in the order in which they are met. */
class Names {
  readonly #known = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  of(kind: string, value: string): string {
    const key = `${kind} ${value}`;
    const found = this.#known.get(key);
    if (found !== undefined) return found;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    this.#known.set(key, `${kind}${count}`);
    return `${kind}${count}`;
  }
}

class Script {
  readonly #api: KubeApi;
  readonly #random: Seeded;
  readonly #prefix: string;
  readonly #names = new Names();
  readonly #versions = new Map<string, string[]>();
  readonly #uids = new Map<string, string[]>();
  readonly lines: string[] = [];

  constructor(api: KubeApi, seed: number, prefix: string) {
    this.#api = api;
    this.#random = new Seeded(seed);
    this.#prefix = prefix;
  }

  async play(steps: number): Promise<readonly string[]> {
    const list: Loose = await this.#api.call({ method: "GET", path: SUBNETS, query: { limit: 1 } });
    const told = this.#watch(list.metadata.resourceVersion);
    for (let step = 0; step < steps; step++) await this.#step();
    for (let index = 0; index < NAMES; index++) {
      const path = `${SUBNETS}/${this.#nameAt(index)}`;
      await this.#try("take finalizers away", "PATCH", path, { metadata: { finalizers: null } });
      await this.#try("end", "DELETE", path);
    }
    await this.#try("last", "POST", SUBNETS, this.#object(`${this.#prefix}-last`, {}));
    await this.#try("last", "DELETE", `${SUBNETS}/${this.#prefix}-last`);
    return [...this.lines, ...(await told)];
  }

  #nameAt(index: number): string {
    return `${this.#prefix}-${index}`;
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const name = this.#nameAt(random.below(NAMES));
    const path = `${SUBNETS}/${name}`;
    const dice = random.below(100);
    if (dice < 20) return this.#try("create", "POST", SUBNETS, this.#object(name, this.#metadata()));
    if (dice < 30) return this.#try("read", "GET", path);
    if (dice < 45) return this.#try("patch", "PATCH", path, this.#patch(name));
    if (dice < 55) {
      const status = { assigned: random.below(3), pools: [] };
      return this.#try("patch status", "PATCH", `${path}/status`, { ...this.#precondition(name), status });
    }
    if (dice < 70) return this.#replace(name);
    if (dice < 82) {
      const preconditions = random.chance(0.5) ? undefined : this.#precondition(name).metadata;
      return this.#try("delete", "DELETE", path, preconditions === undefined ? undefined : { preconditions });
    }
    return this.#list();
  }

  #metadata(): object {
    const random = this.#random;
    const finalizers = random.chance(0.3) ? ["a.example/one"] : undefined;
    return { labels: { suite: this.#prefix, tier: random.pick(["a", "b"]) }, ...(finalizers && { finalizers }) };
  }

  #spec(): object {
    const last = 10 + this.#random.below(5);
    return { subnet: "10.6.0.0/16", ips: [`10.6.0.10-10.6.0.${last + 1}`], excludeIPs: [], addressSpace: "" };
  }

  #object(name: string, metadata: object): object {
    return { apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { ...metadata, name }, spec: this.#spec() };
  }

  #patch(name: string): object {
    const random = this.#random;
    const labels = { tier: random.pick(["a", "b", null]) };
    const finalizers = random.pick([null, ["a.example/one"], ["a.example/one", "a.example/two"]]);
    const metadata = random.chance(0.4) ? { labels } : random.chance(0.4) ? { finalizers } : {};
    const spec = random.chance(0.5) ? { spec: this.#spec() } : {};
    return { metadata: { ...metadata, ...this.#precondition(name).metadata }, ...spec };
  }

  /** Returns a precondition of this version, of an earlier one, of an earlier object, or none. */
  #precondition(name: string): { readonly metadata: object } {
    const random = this.#random;
    const [versions = [], uids = []] = [this.#versions.get(name), this.#uids.get(name)];
    const resourceVersion = random.chance(0.6) ? versions.at(-1) : versions.at(random.below(versions.length || 1));
    const uid = random.chance(0.7) ? uids.at(-1) : uids.at(0);
    if (resourceVersion === undefined || uid === undefined || random.chance(0.3)) return { metadata: {} };
    return { metadata: random.chance(0.7) ? { uid, resourceVersion } : { resourceVersion } };
  }

  async #replace(name: string): Promise<void> {
    const metadata = { ...this.#metadata(), ...this.#precondition(name).metadata };
    const body = this.#object(name, metadata);
    await this.#try("replace", "PUT", `${SUBNETS}/${name}`, body);
  }

  /** In pages, with a write between them: they are of one moment. */
  async #list(): Promise<void> {
    const random = this.#random;
    const labelSelector = random.pick([
      `suite=${this.#prefix}`,
      `suite=${this.#prefix},tier=a`,
      `suite=${this.#prefix},tier!=a`,
    ]);
    const limit = 1 + random.below(3);
    const query = { labelSelector, limit };
    const page: Loose = await this.#api.call({ method: "GET", path: SUBNETS, query });
    const name = this.#nameAt(random.below(NAMES));
    await this.#try("create between pages", "POST", SUBNETS, this.#object(name, this.#metadata()));
    const rest: Loose[] = [];
    // A real server's last page may be empty: it looks for more before it selects.
    for (let next = page.metadata.continue ?? ""; next !== ""; ) {
      const more: Loose = await this.#api.call({ method: "GET", path: SUBNETS, query: { ...query, continue: next } });
      rest.push(...more.items);
      next = more.metadata.continue ?? "";
    }
    this.#note("list", page);
    this.#note("the rest", { ...page, items: rest });
  }

  async #try(what: string, method: KubeCall["method"], path: string, body?: object): Promise<void> {
    const place = path.replace(this.#prefix, "x");
    try {
      const answer = await this.#api.call({ method, path, patienceMs: 0, ...(body === undefined ? {} : { body }) });
      this.#note(`${what} ${place}`, answer);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.lines.push(`${what} ${place}: ${error.status} ${error.reason}`);
    }
  }

  #note(what: string, answer: Loose): void {
    if (Array.isArray(answer.items)) {
      const items = answer.items.map((item: Loose) => JSON.stringify(this.#shown(item)));
      this.lines.push(`${what}: ${answer.kind} ${items.join(" ")}`);
    } else if (answer.kind === "Status") this.lines.push(`${what}: ${answer.status}`);
    else {
      const { name, resourceVersion, uid } = answer.metadata;
      this.#remember(this.#versions, name, resourceVersion);
      this.#remember(this.#uids, name, uid);
      this.lines.push(`${what}: ${JSON.stringify(this.#shown(answer))}`);
    }
  }

  #remember(all: Map<string, string[]>, name: string, value: string): void {
    const known = all.get(name) ?? [];
    if (known.at(-1) !== value) known.push(value);
    all.set(name, known);
  }

  #shown({ metadata, spec, status }: Loose): object {
    const {
      name,
      uid,
      resourceVersion,
      generation,
      labels,
      finalizers = [],
      creationTimestamp,
      deletionTimestamp,
    } = metadata;
    return {
      name: name.replace(this.#prefix, "x"),
      uid: this.#names.of("uid", uid),
      version: this.#names.of("v", resourceVersion),
      generation,
      labels: Object.entries(labels ?? {})
        .map(([key, value]) => `${key}=${String(value).replace(this.#prefix, "x")}`)
        .sort(),
      finalizers,
      isCreated: typeof creationTimestamp === "string",
      isDeleting: deletionTimestamp !== undefined,
      ips: spec?.ips,
      status: status === undefined ? undefined : { assigned: status.assigned, pools: status.pools },
    };
  }

  /** Returns the events of its objects on a watch from before the script. */
  async #watch(resourceVersion: string): Promise<string[]> {
    const lines: string[] = [];
    const ending = new AbortController();
    const onEvent = ({ type, object }: WatchEvent): void => {
      const { metadata }: Loose = object;
      if (type === "BOOKMARK" || !metadata.name.startsWith(`${this.#prefix}-`)) return;
      lines.push(`watch: ${type} ${metadata.name.replace(this.#prefix, "x")} ${metadata.generation}`);
      if (type === "DELETED" && metadata.name === `${this.#prefix}-last`) ending.abort(new Error("enough"));
    };
    const query = { resourceVersion };
    await this.#api.watch({ path: SUBNETS, query, onEvent, signal: ending.signal }).catch((error: unknown) => {
      if (!ending.signal.aborted) throw error;
    });
    return lines;
  }
}

/**
 * One line for each operation, its answer, and each event of a watch. The names begin with the prefix, which no other
 * object has.
 */
export function playScript(api: KubeApi, seed: number, steps: number, prefix: string): Promise<readonly string[]> {
  return new Script(api, seed, prefix).play(steps);
}
