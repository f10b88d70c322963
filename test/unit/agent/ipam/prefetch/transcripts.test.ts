/**
 * The commands of this folder's transcripts: the rule prefetch on one node. After each command all that can go on does
 * so, and the changes are shown on one line: claims (with the container that an ADD has), outcomes of ADDs, rows of the
 * journal, counters, lines of the log. Of the crowd it shows only how many rows it has.
 */
import { PREFETCHES_AT_ONCE } from "../../../../../host/agent/ipam/prefetch/prefetcher.ts";
import type { Pod } from "../../../../../host/resources/pod.ts";
import { openDisk } from "../../../../fakes/memory-journal.ts";
import { nic, openPrefetching, POOLS, type PodParts, type Prefetching, podOf } from "../../../../world/prefetching.ts";
import { ipPool } from "../../../../world/subjects.ts";
import { type CommandLine, type Scenario, testTranscripts } from "../../../../world/transcript.ts";

testTranscripts(new URL(".", import.meta.url), async () => {
  const node = new PrefetchingNode();
  await node.restart();
  return node;
});

class PrefetchingNode implements Scenario {
  readonly #disk = openDisk();
  #world: Prefetching | undefined;
  #nics = ["eth0"];
  /** Resolves when the agent knows enough. */
  #ready: PromiseWithResolvers<void> | undefined;
  /** As the watch has shown them. */
  readonly #pods = new Map<string, PodParts>();
  readonly #callers = new Map<string, AbortController>();
  /** Lines that have not been shown yet. */
  #shown: string[] = [];
  #claims = 0;
  #lines = 0;
  #rows: readonly string[] = [];
  #stats: object = {};

  readonly commands: Scenario["commands"] = Object.fromEntries(
    Object.entries<(line: CommandLine) => unknown>({
      /** NICs of pods: `eth0`; `eth0:other` of another IPAM, `eth0:asking` asks for addresses; `unknown`. */
      nics: (line) => (this.#nics = line.words()),
      /** The watch shows pods. */
      pod: (line) => this.#podsOf(line).map((pod) => this.#now.prefetcher.podChanged(pod)),
      gone: (line) => this.#podsOf(line).map((pod) => this.#now.prefetcher.podGone(pod)),
      add: (line) => this.#add(line),
      /** The caller of the ADD hangs up. */
      abort: (line) => this.#callers.get(line.word())?.abort(new Error("the caller hung up")),
      /** Claims of these pods wait before the registry, until `open`. */
      hold: (line) => line.words().map((pod) => this.#now.door.closed.add(pod)),
      open: () => this.#now.door.open(),
      /** As many claims are under way as may be at once. */
      crowd: () => this.#crowd(),
      /** The claims of these pods fail, and no others. */
      broken: (line) => this.#break(line.words()),
      door: (line) => Object.assign(this.#now.door, line.values<Prefetching["door"]>("isFull", "isDeaf")),
      follow: (line) => this.#follow(line),
      release: (line) => this.#now.node.registry.release({ containerId: `c-${line.word()}`, ifName: "eth0" }),
      /** So many milliseconds pass, with the maintenance. */
      later: (line) => this.#now.later(Number(line.word())),
      /** So many milliseconds pass. */
      wait: (line) => this.#now.node.clock.advance(Number(line.word())),
      restart: (line) => this.restart(line.values<{ isReady: boolean }>("isReady")),
      ready: () => this.#ready?.resolve(),
      "never-ready": () => this.#ready?.reject(new Error("the journal cannot be compared")),
      close: () => this.#now.prefetcher.close(),
    }).map(([name, run]) => [name, (line: CommandLine) => this.#show(run(line))]),
  );

  get #now(): Prefetching {
    if (this.#world === undefined) throw new Error("There is no agent");
    return this.#world;
  }

  /** Another agent starts on the disk. */
  async restart({ isReady = true } = {}): Promise<void> {
    await this.#world?.close();
    this.#ready = isReady ? undefined : Promise.withResolvers();
    const nics = () => this.#nics.map((text) => nicOf(text));
    this.#world = await openPrefetching({ nics, mayBegin: this.#ready?.promise ?? Promise.resolve() }, this.#disk);
    this.#stats = this.#world.prefetcher.stats();
    [this.#claims, this.#lines] = [0, this.#world.node.lines.length];
  }

  async close(): Promise<void> {
    await this.#world?.close();
  }

  /** `ippools`: the NICs that the pod's annotation of that name gives pool blue. */
  #partsOf(line: CommandLine): PodParts {
    const { ippools } = line.values<{ ippools: string[] }>("ippools");
    const parts = line.values<PodParts>("uid", "annotations", "networks", "metadata", "spec", "status");
    if (ippools === undefined) return parts;
    const annotations = { ippools: ippools.map((name) => ({ interface: name, ipv4: ["blue"] })) };
    return { annotations, networks: ippools.slice(1).fill("lab").join(), ...parts };
  }

  #podsOf(line: CommandLine): Pod[] {
    const parts = this.#partsOf(line);
    return line.words().map((name) => {
      this.#pods.set(name, parts);
      return podOf(name, parts);
    });
  }

  /** `add pod NIC`; the pod is like this by now, and the ADD asks for `ips`. */
  #add(line: CommandLine): void {
    const { ips } = line.values<{ ips: string[] }>("ips");
    const changes = this.#partsOf(line);
    const [name = "", ifName = "eth0"] = line.words();
    const pod = podOf(name, { ...this.#pods.get(name), ...changes });
    const caller = new AbortController();
    this.#callers.set(name, caller);
    const title = `ADD ${name} ${ifName}:`;
    void this.#now.add(pod, ifName, { signal: caller.signal, body: { args: { cni: { ips } } } }).then(
      (address) => this.#shown.push(`${title} ${address}`),
      ({ code, name: kind, message }) => this.#shown.push(`${title} ${code ?? kind} ${message}`),
    );
  }

  #break(pods: readonly string[]): void {
    const { broken } = this.#now.door;
    broken.clear();
    for (const pod of pods) broken.add(pod);
  }

  #crowd(): void {
    for (let index = 0; index < PREFETCHES_AT_ONCE; index++) {
      this.#now.door.closed.add(`crowd-${index}`);
      this.#now.prefetcher.podChanged(podOf(`crowd-${index}`));
    }
  }

  /** `pools=[{name, subnet, …}]` and settings are these now. */
  #follow(line: CommandLine): void {
    const { pools } = line.values<{ pools: { readonly name: string; readonly subnet: string }[] }>("pools");
    const manifests = pools?.map(({ name, subnet, ...parts }) => ipPool(name, subnet, parts)) ?? POOLS;
    const settings = { enableIPv6: false, ...line.values("maxAddressesPerPod", "maxAddressesPerNamespace") };
    this.#now.follow(manifests, JSON.stringify(settings));
  }

  async #show(outcome: unknown): Promise<string[]> {
    await outcome;
    // All is in memory: so many turns are enough for whatever can go on.
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    const { node, door, prefetcher } = this.#now;
    const claims = door.claims.map(({ pod, ifName, containerId }) => `claim ${pod} ${ifName} ${containerId}`.trim());
    const rows = await this.#now.rows();
    const stats = Object.entries(prefetcher.stats()).filter(([key, value]) => Reflect.get(this.#stats, key) !== value);
    const pools = [...node.snapshot.pools.keys()];
    const used = pools.reduce((sum, name) => sum + Number(node.poolCache.counts(name)?.used), 0);
    const shown = [
      ...claims.slice(this.#claims),
      ...this.#shown.splice(0),
      ...this.#rows.map(addressOf).flatMap((ip) => (rows.map(addressOf).includes(ip) ? [] : [`${ip} is free`])),
      ...rows.filter((row) => !this.#rows.includes(row)),
      crowdOf(rows) === crowdOf(this.#rows) ? "" : `${crowdOf(rows)} rows of the crowd`,
      stats.map((entry) => entry.join("=")).join(" "),
      used === rows.length || door.underWay > 0
        ? ""
        : `${used} addresses are in use, of which the journal has ${rows.length}`,
      ...new Set(node.lines.slice(this.#lines)),
    ].filter((text) => text !== "" && !/^(?:claim )?crowd-/.test(text));
    [this.#claims, this.#lines, this.#rows, this.#stats] = [claims.length, node.lines.length, rows, prefetcher.stats()];
    return shown.length === 0 ? [] : [shown.join(" | ")];
  }
}

/** Returns the address of a row such as `web-0 eth0 10.6.0.1 Bound c-web-0`. */
function addressOf(row: string): string {
  return row.split(" ")[2] ?? "";
}

function crowdOf(rows: readonly string[]): number {
  return rows.filter((row) => row.startsWith("crowd-")).length;
}

function nicOf(text: string) {
  const [ifName = "", kind] = text.split(":");
  if (kind === "unknown") throw new Error('annotation "k8s.v1.cni.cncf.io/networks" is wrong');
  return nic(ifName, { isAsking: kind === "asking", ...(kind === "other" ? { ipamConf: undefined } : {}) });
}
