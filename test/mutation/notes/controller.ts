/** Survivors in what the controller and the interface plugin decide. */
import type { Note } from "../notes.ts";

export const CONTROLLER_NOTES: readonly Note[] = [
  {
    file: "host/controller/conditions/plan-conditions.ts",
    text: "type, isTrue: false, reason",
    note: "not reached: made once for the process, before the runner's first mutant; a process of its own fails tests of conditions",
  },
  {
    file: "host/controller/conditions/plan-conditions.ts",
    text: "false",
    to: "true",
    note: "not reached: made once for the process, before the runner's first mutant; a process of its own fails tests of conditions",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "{ excess: new Set()",
    note: "not reached: a final plan is not asked for again",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "part.isFinal",
    to: "false",
    note: "equivalent but for memory: a final plan is kept",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: 'state !== "Bound"',
    note: "equivalent: an object in another state has no holders",
  },
  {
    file: "host/controller/owners/plan-claim-status.ts",
    text: "[]",
    note: "equivalent: the text that stands in for an address is none",
  },
  {
    file: "host/controller/subnets/own-writes.ts",
    text: "[]",
    note: "equivalent: no version is called so",
  },
  {
    file: "host/controller/subnets/own-writes.ts",
    text: "this.#gone.clear();",
    note: "equivalent but for memory: no later object has the UID",
  },
  {
    file: "host/controller/subnets/write-turns.ts",
    text: "held.size === 0",
    note: "equivalent but for time: a plan of which nothing is held stays as it is",
  },
  {
    file: "host/controller/subnets/write-turns.ts",
    text: "target.subnet?.object",
    note: "equivalent: a new pool has a Subnet; for the compiler",
  },
  {
    file: "host/controller/subnets/write-turns.ts",
    text: "name === undefined",
    to: "false",
    note: "equivalent: a new pool has a Subnet; for the compiler",
  },
  {
    file: "host/controller/gc/plan-collection.ts",
    text: "found.ageMs !== undefined",
    note: "equivalent: undefined is not at least a pause; for the compiler",
  },
  {
    file: "host/controller/gc/plan-collection.ts",
    text: '{ action: "wait"',
    note: "not reached: the table has a row for every combination",
  },
  {
    file: "host/controller/gc/plan-collection.ts",
    text: "findRow(seen)?.why",
    note: "equivalent: the table has a row for every combination",
  },
  {
    file: "host/controller/gc/plan-collection.ts",
    text: "() => 0",
    note: "not reached: a row without a pause acts at once",
  },
  {
    file: "host/controller/gc/plan-collection.ts",
    text: 'case "wait"',
    note: "equivalent: behind the last case a function returns undefined, too",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "lowest !== undefined",
    note: "equivalent: both ends are there or none; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "highest !== undefined",
    note: "equivalent: both ends are there or none; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "span.first > lowest.first",
    note: "equivalent: what is free is not the pool's own",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "span.last < highest.last",
    note: "equivalent: what is free is not the pool's own",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "!isFull()",
    note: "equivalent but for time: nothing more is taken",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "span.last < place",
    note: "equivalent: a span that ends before the place has nothing from there on",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "[]",
    note: "equivalent: the text that stands in for a span has no address",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "first < place",
    note: "equivalent: spans before the place come first, and an address is taken once",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "taken.slice(nearby)",
    note: "equivalent but for time: the others are gone already",
  },
  {
    file: "host/controller/subnets/plan/free-spans.ts",
    text: "last - first + 1n > left",
    note: "equivalent: both ends are the same",
  },
  {
    file: "host/controller/subnets/plan/plan-subnets.ts",
    text: "attempt++",
    note: "equivalent: another name all the same",
  },
  { file: "host/controller/subnets/plan/plan-subnets.ts", text: "most <= 0", note: "equivalent: nothing is taken" },
  { file: "host/controller/subnets/plan/plan-subnets.ts", text: "rest > 0", note: "equivalent: nothing is taken" },
  {
    file: "host/controller/subnets/plan/plan-subnets.ts",
    text: "orphan !== undefined",
    note: "equivalent: without an orphan its liveness is undefined; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/plan-subnets.ts",
    text: "pool.now === undefined",
    note: "equivalent: a pool that is not there has no surplus; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/plan-subnets.ts",
    text: "users.get(pool)?.some",
    note: "equivalent: a pool of a request has users; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/planned-pool.ts",
    text: "odd.length === 0",
    note: "equivalent but for time: nothing is outside, so all of it stays",
  },
  {
    file: "host/controller/subnets/plan/planned-pool.ts",
    text: "!areContested(all)",
    note: "equivalent but for time: where no address is in two lists, nothing is taken",
  },
  {
    file: "host/controller/subnets/plan/planned-pool.ts",
    text: "sizeOf(joinSpans(all)) < sizeOf(all)",
    note: "equivalent but for time: where no address is in two lists, nothing is taken",
  },
  {
    file: "host/controller/conditions/plan-overlap.ts",
    text: "others.size >= NAMES",
    note: "equivalent but for time and for which of the others are named: more are collected than are shown",
  },
  {
    file: "host/controller/conditions/plan-overlap.ts",
    text: "found.others.size < NAMES",
    note: "equivalent but for time and for which of the others are named: more are collected than are shown",
  },
  {
    file: "host/controller/conditions/plan-findings.ts",
    text: "[]",
    note: "not reached: every Subnet has a finding Full",
  },
  {
    file: "host/ifacer/plan-bond.ts",
    text: "findLink(host, master)?.kind",
    note: "equivalent: the link that a member belongs to is read with it; for the compiler",
  },
  {
    file: "host/ifacer/plan-bond.ts",
    text: "sizes.length === 0",
    note: "not reached: links are read with their MTU; for the compiler",
  },
  {
    file: "host/ifacer/plan-bond.ts",
    text: "[]",
    note: "not reached: links are read with their MTU; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/plan-subnets.ts",
    text: "[]",
    note: "equivalent: the text that stands in for a span has no address; the one for a request is not reached",
  },
  {
    file: "host/controller/conditions/plan-supplied.ts",
    text: "known?.has === has",
    note: "equivalent but for time: the same finding is made again",
  },
  {
    file: "host/controller/conditions/plan-supplied.ts",
    text: "{ has, finding }",
    note: "equivalent but for time: the same finding is made again",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "[]",
    note: "equivalent: before the first plan nothing rests",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "key !== undefined",
    note: "equivalent: a part without a Subnet is planned each time, whatever is kept of it; for the compiler",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "key === undefined",
    note: "equivalent: a part without a Subnet is never at rest; for the compiler",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "plan.ask.length === 0",
    note: "equivalent: the liveness of a workload that has to be read is not final either",
  },
  {
    file: "host/controller/subnets/parts-at-rest.ts",
    text: "plan.waiting.size === 0",
    note: "equivalent: a pool that waits has more than is needed, too",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "root !== subnet",
    note: "equivalent but for time: the way to the group's first Subnet stays long",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "this.#parents.set(subnet, root)",
    note: "equivalent but for time: the way to the group's first Subnet stays long",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "known === undefined",
    note: "equivalent: no Subnet has the name undefined; for the compiler",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "subnets.slice(at + 1)",
    note: "equivalent but for time: two Subnets are compared twice, and one with itself",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "at + 1",
    note: "equivalent but for time: Subnets are compared more than once",
  },
  {
    file: "host/controller/subnets/plan/split-view.ts",
    text: "first === undefined",
    note: "equivalent: what is joined with nothing stays as it is; for the compiler",
  },
  {
    file: "host/controller/subnets/stray-addresses.ts",
    text: 'change.kind === "set"',
    note: "equivalent: what is gone has no value; for the compiler",
  },
  {
    file: "host/controller/subnets/stray-addresses.ts",
    text: "pool === change.key",
    note: "equivalent but for time: addresses of other pools are looked at again",
  },
  {
    file: "host/controller/subnets/stray-addresses.ts",
    text: "spec === undefined",
    note: "equivalent but for time: addresses that stay in the pool are looked at, too",
  },
  {
    file: "host/controller/subnets/stray-addresses.ts",
    text: "[]",
    note: "equivalent: the text that stands in for a span has no address",
  },
  {
    file: "host/controller/gc/addresses-elsewhere.ts",
    text: "names?.size === 0",
    note: "equivalent but for memory: an empty set is kept",
  },
  {
    file: "host/controller/gc/addresses-elsewhere.ts",
    text: "this.#byNode.delete(node)",
    note: "equivalent but for memory: an empty set is kept",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: "true",
    note: "equivalent: where no pod is named, none is asked whether it is terminating",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: "quarantine?.holder",
    note: "equivalent: what is lost has a quarantine; for the compiler",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: 'spec.state === "Bound"',
    note: "equivalent: an object in another state has no holders",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: 'allocation?.spec.state === "Quarantined"',
    note: "equivalent: an object in another state has no quarantine",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: "allocation?.spec",
    note: "equivalent: only asked about an object that is there; for the compiler",
  },
  {
    file: "host/controller/notices/plan-notices.ts",
    text: "allocation.spec.quarantine?.reason",
    note: "equivalent: a quarantined object has a quarantine; for the compiler",
  },
];
