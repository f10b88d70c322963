/**
 * An attacker with the token of one node's agent, who writes allocations of other nodes straight to the API server.
 * Only kinds and policies stop it: every one of its writes must be refused. Permitted theft, as of cooling addresses,
 * is not tried (docs/develop/security.md).
 */
import type { KubeObject } from "../../host/kubernetes/kube-api.ts";
import { agentOf } from "../fakes/admission/admission.ts";
import { ALLOCATIONS, type MemoryApiServer, type StoredObject } from "../fakes/memory-api-server.ts";
import type { Seeded } from "../world/seeded.ts";

const TYPE = { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" };

const SINCE = "2026-01-01T00:00:00.000Z";

interface Spec {
  readonly node: string;
  readonly state: string;
  readonly holders?: readonly { readonly node: string }[];
}

interface Member {
  readonly namespace: string;
  readonly member: string;
}

const specOf = ({ spec }: StoredObject): Spec => spec as unknown as Spec;

export class Thief {
  readonly #server: MemoryApiServer;
  readonly #random: Seeded;
  readonly #node: string;
  readonly #problems: string[];

  constructor(options: { server: MemoryApiServer; random: Seeded; node: string; problems: string[] }) {
    this.#server = options.server;
    this.#random = options.random;
    this.#node = options.node;
    this.#problems = options.problems;
  }

  /** Each attempt on one address in use on another node, and one on an address that is free. */
  steal(): void {
    const victims = [...this.#server.objects.values()].filter((object) => this.#isForeign(specOf(object)));
    if (victims.length === 0) return;
    const object = this.#random.pick(victims);
    const { metadata, spec } = object;
    const path = `${ALLOCATIONS}/${metadata.name}`;
    const holder = { namespace: "evil", pod: "thief", podUID: "thief", interface: "eth0", node: this.#node };
    const rewritten = (change: object): object => ({ ...object, spec: { ...spec, ...change } });
    const free = { ...spec, address: "10.6.250.1", addressSpace: "", prefixLength: 16, workload: undefined };
    const named = (parts: object): object => ({
      ...TYPE,
      metadata: { name: free.address },
      spec: { ...free, ...parts },
    });
    this.#attempt("frees", "PUT", path, rewritten({ state: "Cooling", holders: [] }));
    this.#attempt("takes", "PUT", path, rewritten({ node: this.#node, holders: [holder], workload: undefined }));
    this.#attempt("moves", "PUT", path, rewritten({ pool: "vault4" }));
    this.#attempt("may delete", "PUT", path, { ...object, metadata: { ...metadata, annotations: { force: "true" } } });
    this.#attempt("deletes", "DELETE", path);
    this.#attempt("makes, for another node,", "POST", ALLOCATIONS, named({}));
    this.#attempt("retains", "POST", ALLOCATIONS, named({ node: this.#node, state: "Cooling", holders: [] }));
  }

  /**
   * The thief wants to retain a chosen address for a member of another owner's set, which is refused. Pods that never
   * were have it and another one then, which are collected.
   */
  retainForOthers(): void {
    const [victim] = [...this.#server.objects.values()].flatMap(({ spec: { workload } }) => (workload as Member) ?? []);
    if (victim === undefined) return;
    const client = this.#server.client(undefined, undefined, agentOf(this.#node));
    const make = (of: Pick<Member, "namespace" | "member">, parts: object = {}) => {
      const address = `10.6.250.${2 + this.#random.below(250)}`;
      const ghost = { namespace: of.namespace, pod: of.member, podUID: `ghost-${address}`, interface: "eth0" };
      const place = { address, addressSpace: "", prefixLength: 16, pool: "blue", node: this.#node, since: SINCE };
      const spec = { ...place, state: "Bound", holders: [{ ...ghost, node: this.#node }], ...parts };
      const made = client.call({
        method: "POST",
        path: ALLOCATIONS,
        body: { ...TYPE, metadata: { name: address }, spec },
      });
      return { address, place, made };
    };
    make(victim, { workload: victim }).made.catch(() => {});
    const { address, place, made } = make({ namespace: "evil", member: "thief" });
    const succeeded = (): number => this.#problems.push(`With the token of ${this.#node} a thief retains ${address}`);
    const retain = (object: KubeObject): Promise<KubeObject> => {
      const body = { ...object, spec: { ...place, state: "Kept", workload: victim } };
      return client.call({ method: "PUT", path: `${ALLOCATIONS}/${address}`, body });
    };
    made
      .then(retain)
      .then(succeeded)
      .catch(() => {});
  }

  #isForeign({ node, state, holders = [] }: Spec): boolean {
    return state === "Bound" && node !== this.#node && holders.every((holder) => holder.node !== this.#node);
  }

  #attempt(what: string, method: "POST" | "PUT" | "DELETE", path: string, body: object = {}): void {
    const client = this.#server.client(undefined, undefined, agentOf(this.#node));
    const succeeded = (): number => this.#problems.push(`With the token of ${this.#node} a thief ${what} ${path}`);
    client.call({ method, path, body }).then(succeeded, () => {});
  }
}
