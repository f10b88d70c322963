/**
 * The commands of this folder's transcripts: histories of addresses in a cluster. A pod is written by its name, which
 * the next pod may have again: its UIDs are `web-0.1`, `web-0.2`, and `web-0.1-a` is its first sandbox. After each
 * command a second passes, and the changes are shown on one line: answers of ADDs, writes to the API server about an
 * address, rows of nodes' journals (`n1: 10.6.0.1 …`), addresses taken off NICs, and those that several NICs have.
 */

import { allocationLabels } from "../../../../host/resources/ip-allocation.ts";
import { ALLOCATIONS } from "../../../fakes/memory-api-server.ts";
import { PODS, SETS } from "../../../simulation/collections.ts";
import { type CommandLine, type Scenario, testTranscripts } from "../../../world/transcript.ts";
import { type ClusterShape, CommandedCluster, type PodShape } from "./cluster.ts";

testTranscripts(new URL(".", import.meta.url), () => new Histories());

const MOMENT_MS = 1_000;

class Histories implements Scenario {
  readonly #cluster = new CommandedCluster();
  #objects = new Map<string, string>();
  #rows = new Map<string, string>();
  #shared: readonly string[] = [];

  readonly commands: Scenario["commands"] = {
    ...Object.fromEntries(
      Object.entries<(line: CommandLine) => unknown>({
        /** Agents start on these. */
        nodes: (line) => this.#cluster.open(line.words(), line.values<ClusterShape>(...SHAPE)),
        /** The pool has these addresses, and no others. */
        pool: (line) => this.#cluster.putPool(line.word(), line.word()),
        /** The controller has counted so many addresses of the namespace. */
        full: (line) => this.#cluster.fill(Number(line.word())),
        /** `pod NAME NODE`: the API server has it. */
        pod: (line) => this.#cluster.createPod(line.word(), line.word(), line.values<PodShape>(...POD)),
        /** The same, and an ADD for each NIC. */
        run: (line) => this.#run(line),
        /** `add POD NIC`: again for the pod's sandbox. */
        add: (line) => this.#cluster.add(line.word(), line.words()[0] ?? "eth0", false),
        /** An ADD in a new sandbox: the one before has died. */
        sandbox: (line) => this.#cluster.add(line.word(), line.words()[0] ?? "eth0", true),
        "hang-up": (line) => this.#cluster.hangUp(line.word()),
        /** `del POD SANDBOX`: its DELs. */
        del: (line) => this.#cluster.delete(line.word(), line.words()[0]),
        /** The pod is not in the API server any more. */
        gone: (line) => this.#cluster.server.remove(line.word(), PODS),
        finish: (line) => this.#cluster.finish(line.word()),
        /** DEL, and the pod is gone. */
        end: (line) => this.#end(line.words()),
        /** The StatefulSet is deleted. */
        "remove-set": (line) => this.#cluster.server.remove(line.word(), SETS),
        /** The NICs of the pod answer no more; nothing tells of it. */
        dead: (line) => this.#cluster.clear(line.word()),
        kill: (line) => this.#cluster.machine(line.word()).kill(),
        start: (line) => this.#cluster.machine(line.word()).start(),
        /** `restart NODE`: its agent is killed, and starts. */
        restart: (line) => this.#restart(line, () => {}),
        /** The machine boots. */
        reboot: (line) => this.#reboot(line.word()),
        /** The agent is killed and starts without a journal. */
        lose: (line) => this.#restart(line, (node) => this.#cluster.machine(node).loseDisk()),
        /** A copy of the journal is made. */
        copy: (line) => this.#cluster.machine(line.word()).copyDisk(),
        /** The machine boots with the copy of its journal. */
        "copy-back": (line) => this.#reboot(line.word(), true),
        /** The wall clock of the machine stands still from now on. */
        "stop-clock": (line) => this.#cluster.stopClock(line.word()),
        backup: () => this.#cluster.backUp(),
        /** The API server has its objects of the backup. */
        restore: () => this.#cluster.restore(),
        settle: () => this.#cluster.settle(),
        /** The node cannot reach the API server. */
        cut: (line) => this.#cut(line.word()),
        join: (line) => void this.#cluster.wire.cutOff.delete(line.word()),
        /** `hold NODE "POST 10.6.0.1"`: calls that begin like this wait; `answers`: are answered later; `once`. */
        hold: (line) => this.#hold(line),
        /** They are carried out now. */
        land: () => this.#cluster.wire.land(),
        taint: (line) => this.#cluster.taint(line.word(), line.words()),
        /** `edit ADDRESS field=value`: by hand. */
        edit: (line) => this.#edit(line.word(), line),
        /** `write ADDRESS field=value`: an object by hand. */
        write: (line) => this.#write(line.word(), line),
        /** The object is such that no agent can read it. */
        spoil: (line) => this.#spoil(line.word()),
        /** The controller takes the node of the address for lost; `node`: is asked to probe the address. */
        lost: (line) => this.#takeForLost(line.word(), line.values<{ node: string }>("node")),
        /** An agent of the last release writes the object again, without the fields that it does not know. */
        rewrite: (line) => this.#rewrite(line.word()),
        /** `notice NODE ADDRESS…`: the controller's; `*`: of all. */
        notice: (line) => this.#cluster.notify(line.word(), line.words()),
        /** Another program's finalizer holds the object, or does not. */
        finalize: (line) => this.#finalize(line.word(), ["acme.example/hold"]),
        unfinalize: (line) => this.#finalize(line.word(), []),
        /** The object is deleted. */
        remove: (line) => this.#cluster.server.remove(line.word()),
        /** So many milliseconds pass. */
        wait: (line) => this.#cluster.pass(Number(line.word()) - MOMENT_MS),
      }).map(([name, run]) => [name, (line: CommandLine) => this.#show(run(line))]),
    ),
    /** Calls of agents about addresses since the last `calls`. */
    calls: () => [this.#cluster.wire.calls.splice(0).join(", ") || "none"],
    /** The registry's epoch, and how far each node is with it. */
    epoch: () => [this.#cluster.epoch()],
    /** All that there is. */
    look: () => this.#look(),
  };

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  async #run(line: CommandLine): Promise<void> {
    const [name, node] = [line.word(), line.word()];
    this.#cluster.createPod(name, node, line.values<PodShape>(...POD));
    for (const ifName of this.#cluster.pod(name).nics) {
      this.#cluster.add(name, ifName, false);
      await this.#cluster.pass(MOMENT_MS);
    }
  }

  async #end(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.#cluster.delete(name);
      this.#cluster.server.remove(name, PODS);
    }
  }

  async #restart(line: CommandLine, between: (node: string) => void): Promise<void> {
    const node = line.word();
    this.#cluster.machine(node).kill();
    between(node);
    this.#cluster.machine(node).start();
  }

  async #reboot(node: string, isCopy = false): Promise<void> {
    const machine = this.#cluster.machine(node);
    machine.powerOff();
    if (isCopy) machine.restoreDisk();
    machine.powerOn();
    machine.start();
  }

  #cut(node: string): void {
    this.#cluster.wire.cutOff.add(node);
    this.#cluster.wire.breakWatches(node);
  }

  #hold(line: CommandLine): void {
    const { answers = false, once = false } = line.values<{ answers: boolean; once: boolean }>("answers", "once");
    this.#cluster.wire.holds.add({ node: line.word(), call: line.words().join(" "), isAnswer: answers, isOnce: once });
  }

  #edit(name: string, line: CommandLine): void {
    const changes = line.values<Record<string, unknown>>(...SPEC);
    this.#cluster.server.edit(name, (spec) => ({ ...spec, ...changes }));
  }

  /** No kind would let it pass. */
  #spoil(name: string): void {
    const { objects } = this.#cluster.server;
    const object = objects.get(name);
    if (object !== undefined) objects.set(name, { ...object, spec: { ...object.spec, prefixLength: 999 } });
  }

  #rewrite(name: string): void {
    this.#cluster.server.edit(name, (spec) => {
      const holders = Object(spec).holders.map(
        ({ claim: _, number: __, ...holder }: Record<string, unknown>) => holder,
      );
      return { ...spec, holders };
    });
  }

  async #finalize(name: string, finalizers: readonly string[]): Promise<void> {
    const path = `${ALLOCATIONS}/${name}`;
    await this.#cluster.server.client().call({ method: "PATCH", path, body: { metadata: { finalizers } } });
  }

  #takeForLost(name: string, place: { node?: string }): void {
    this.#cluster.server.edit(name, (spec) => {
      const [holder] = Object(spec).holders;
      return { ...spec, ...place, state: "Quarantined", holders: [], quarantine: { reason: "NodeLost", holder } };
    });
  }

  #write(address: string, line: CommandLine): void {
    const given = line.values<Record<string, object>>(...SPEC);
    const spec = { address, pool: "blue", prefixLength: 16, holders: [], ...given };
    const holders = spec.holders.map((each: object) => ({ podUid: Object(each).podUID }));
    const labels = allocationLabels({ ...spec, holders } as never);
    this.#cluster.server.put(ALLOCATIONS, address, { metadata: { labels }, spec });
  }

  async #show(outcome: unknown): Promise<string[]> {
    await outcome;
    await this.#cluster.pass(MOMENT_MS);
    const [objects, rows, shared] = [this.#cluster.objects(), this.#cluster.rows(), this.#cluster.shared()];
    const shown = [
      ...this.#cluster.notes.splice(0),
      ...this.#cluster.wire.events.splice(0),
      ...changes(this.#objects, objects, (address, text) => `${address} ${text}`, "free"),
      ...changes(this.#rows, rows, (place, text) => `${place.replace(" ", ": ")} ${text}`, "no row"),
      ...shared.filter((text) => !this.#shared.includes(text)),
    ];
    [this.#objects, this.#rows, this.#shared] = [objects, rows, shared];
    return shown.length === 0 ? [] : [shown.join(" | ")];
  }

  #look(): string[] {
    const rows = [...this.#cluster.rows()].map(([place, text]) => `${place.replace(" ", ": ")} ${text}`);
    const all = [...[...this.#cluster.objects()].map((entry) => entry.join(" ")), ...rows];
    return [all.sort().join(" | ") || "nothing"];
  }
}

const SHAPE = ["size", "dual", "prefetch", "detect", "cooldown", "limit"] as const;
const POD = ["set", "vm", "run", "target", "nics", "together", "ip"] as const;
const SPEC = ["number", "state", "node", "holders", "lastHolder", "workload", "quarantine", "address", "pool"] as const;

function changes(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
  describe: (key: string, text: string) => string,
  absent: string,
): string[] {
  return [...new Set([...before.keys(), ...now.keys()])]
    .sort()
    .filter((key) => before.get(key) !== now.get(key))
    .map((key) => describe(key, now.get(key) ?? absent));
}
