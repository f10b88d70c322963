/**
 * Kubelet and runtime of one machine: sandboxes for the pods that are bound to it, an ADD for each NIC, and the DELs
 * when a pod ends, some of them late, twice, or from the spool.
 */
import type { Seeded } from "../world/seeded.ts";
import type { Call, Machine } from "./machine.ts";
import type { Process, SimulatedTime } from "./simulated-time.ts";
import type { Timeline } from "./timeline.ts";

/** A pod as the API server has it. */
export interface PodObject {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  /** Interface and network of each NIC. */
  readonly nics: readonly (readonly [ifName: string, network: string])[];
  readonly isDeleting: boolean;
  readonly isFinished: boolean;
  /**
   * From a file of the kubelet: its UID is the hash of that, and the API server has a mirror of it under another one.
   */
  readonly isStatic?: boolean;
  /** It does not get another sandbox after its own (`restartPolicy: Never`). */
  readonly runsOnce?: boolean;
}

/** The kubelet's view of the API server. */
export interface KubeletApi {
  readonly isConnected: (host: string) => boolean;
  readonly podsOf: (machine: string) => readonly PodObject[];
  readonly setRunning: (pod: PodObject) => void;
  /** The only sandbox of the pod has died. */
  readonly setFailed: (pod: PodObject) => void;
  /** The pod has ended: its object goes. */
  readonly finish: (pod: PodObject) => void;
  /** The static pods of the machine. */
  readonly staticPodsOf: (machine: string) => readonly PodObject[];
  readonly hasMirror: (pod: PodObject) => boolean;
  readonly putMirror: (pod: PodObject) => void;
  readonly refused: (pod: PodObject, error: unknown) => void;
  readonly shown: (pod: PodObject, ifName: string, addresses: readonly string[]) => void;
}

/** Shares, from 0 to 1, of faults of kubelets and runtimes. */
export interface KubeletFaults {
  /** The caller of an ADD hangs up. */
  hangUp: number;
  /** The DEL of an ended sandbox comes seconds later. */
  lateDel: number;
  /** The DEL comes twice. */
  twice: number;
  /** A sandbox that has died is made again under its ID; its DELs come first, and once. Absent: 0. */
  sameId?: number;
}

interface KubeletOptions {
  readonly time: SimulatedTime;
  readonly timeline: Timeline;
  readonly machine: Machine;
  readonly api: KubeletApi;
  readonly faults: () => KubeletFaults;
}

const TICK_MS = 200;

interface Worker {
  readonly pod: PodObject;
  containerId: string;
  isStopping: boolean;
  /** The sandbox has died, and another one follows. */
  mustRestart: boolean;
  isRunning: boolean;
  adding: AbortController | undefined;
  wake: () => void;
}

export class Kubelet {
  readonly process: Process;
  /** Carries out the kubelet's calls, also while the kubelet hangs. */
  readonly #runtime: Process;
  readonly #options: KubeletOptions;
  readonly #workers = new Map<string, Worker>();
  readonly #random: Seeded;
  #count = 0;
  readonly #life: string;

  /** `life`: tells this start from earlier ones of the machine. */
  constructor(options: KubeletOptions, life: number) {
    this.#options = options;
    this.#life = `${options.machine.name}.${life}`;
    this.process = options.time.process(`kubelet of ${options.machine.name} (${life})`);
    this.#runtime = options.time.process(`runtime of ${options.machine.name} (${life})`);
    this.#random = this.process.random;
  }

  start(leftContainers: readonly Call[]): void {
    const { time } = this.#options;
    time.inside(this.process, () => {
      void this.#run();
      for (const call of leftContainers) void this.#deleteLater(call, this.#random.below(8_000));
    });
  }

  /** Calls that it has to clean up when it starts again. */
  get openCalls(): readonly Call[] {
    return [...this.#workers.values()].flatMap((worker) =>
      worker.containerId === "" ? [] : worker.pod.nics.map((nic) => callOf("DEL", worker.pod, worker.containerId, nic)),
    );
  }

  /** Whether the pod of that UID runs, with all of its NICs. */
  runs(uid: string): boolean {
    return this.#workers.get(uid)?.isRunning === true;
  }

  get running(): readonly PodObject[] {
    const running = [...this.#workers.values()].filter(({ isRunning, pod }) => isRunning && pod.isStatic !== true);
    return running.map(({ pod }) => pod);
  }

  get isIdle(): boolean {
    return [...this.#workers.values()].every(({ isRunning, isStopping }) => isRunning && !isStopping);
  }

  end(): void {
    this.#options.time.end(this.process);
    this.#options.time.end(this.#runtime);
  }

  /** The sandbox of one of its pods dies; the kubelet makes another, if the pod may have another. */
  loseSandbox(random: Seeded): void {
    const running = [...this.#workers.values()].filter(({ isRunning }) => isRunning);
    if (running.length === 0) return;
    const worker = random.pick(running);
    this.#options.timeline.note(`${this.#options.machine.host}: the sandbox of ${worker.pod.name} dies`);
    this.#options.machine.namespaces.remove(worker.containerId);
    if (worker.pod.runsOnce === true) this.#options.api.setFailed(worker.pod);
    else {
      worker.mustRestart = true;
      worker.wake();
    }
  }

  /** The runtime collects: of its attachments it knows a part. */
  async collect(random: Seeded, isPartial: boolean): Promise<void> {
    const all = [...this.#workers.values()].flatMap(({ pod, containerId }) =>
      containerId === "" ? [] : pod.nics.map(([ifname]) => ({ containerID: containerId, ifname })),
    );
    const valid = isPartial ? all.filter(() => random.chance(0.5)) : all;
    await this.#options.machine.collect(valid).catch(() => {});
  }

  /** A DEL of another network for the same container and interface (late-del). */
  strayDel(random: Seeded): void {
    const running = [...this.#workers.values()].filter(({ isRunning }) => isRunning);
    if (running.length === 0) return;
    const { pod, containerId } = random.pick(running);
    for (const nic of pod.nics) {
      const network = nic[1] === "lan" ? "lan2" : "lan";
      void this.#deleteLater({ ...callOf("DEL", pod, containerId, nic), network }, 0);
    }
  }

  async #run(): Promise<void> {
    const { time } = this.#options;
    await time.sleep(this.#random.below(TICK_MS), "kubelet");
    for (;;) {
      this.#tick();
      await time.sleep(TICK_MS, "kubelet");
    }
  }

  #tick(): void {
    const { api, machine } = this.#options;
    const isConnected = api.isConnected(machine.host);
    const files = api.staticPodsOf(machine.name);
    const pods = new Map(files.concat(isConnected ? api.podsOf(machine.name) : []).map((pod) => [pod.uid, pod]));
    for (const [uid, worker] of this.#workers) {
      if (!isConnected && worker.pod.isStatic !== true) continue;
      const pod = pods.get(uid);
      if (pod !== undefined && !pod.isDeleting && !pod.isFinished) continue;
      if (worker.isStopping) continue;
      worker.isStopping = true;
      worker.adding?.abort(new Error("The pod ends"));
      worker.wake();
    }
    for (const pod of pods.values()) {
      if (this.#workers.has(pod.uid)) continue;
      if (pod.isDeleting) api.finish(pod);
      else if (!pod.isFinished && !this.#hasEarlier(pod)) this.#begin(pod);
    }
    for (const pod of files)
      if (isConnected && !this.#hasEarlier(pod) && !api.hasMirror(pod) && this.#random.chance(0.01)) api.putMirror(pod);
  }

  /** A static pod of an earlier file, which has to end first. */
  #hasEarlier({ isStatic, name, uid }: PodObject): boolean {
    const isEarlier = ({ pod }: Worker): boolean => pod.name === name && pod.uid !== uid && pod.isStatic === true;
    return isStatic === true && [...this.#workers.values()].some(isEarlier);
  }

  #begin(pod: PodObject): void {
    const worker: Worker = {
      pod,
      containerId: "",
      isStopping: false,
      mustRestart: false,
      isRunning: false,
      adding: undefined,
      wake: () => {},
    };
    this.#workers.set(pod.uid, worker);
    void this.#work(worker);
  }

  async #work(worker: Worker): Promise<void> {
    const { time, machine, api } = this.#options;
    const { pod } = worker;
    let kept: string | undefined;
    while (!worker.isStopping) {
      const containerId = kept ?? `${pod.name}-${this.#life}-${++this.#count}`;
      kept = undefined;
      worker.containerId = containerId;
      await time.sleep(20 + this.#random.below(80), "runtime makes a sandbox");
      machine.namespaces.add(containerId);
      const isUp = await this.#inRuntime(() => this.#attach(worker));
      if (isUp && !worker.isStopping) {
        worker.isRunning = true;
        api.setRunning(pod);
        while (!worker.isStopping && !worker.mustRestart)
          await new Promise<void>((resolve) => {
            worker.wake = resolve;
          });
        worker.isRunning = false;
      }
      if (worker.mustRestart && !worker.isStopping) {
        // The sandbox is gone already; its DELs come before or after the next one's ADDs.
        worker.mustRestart = false;
        if (this.#keepsId()) {
          await this.#inRuntime(() => this.#deleteAll(worker, containerId));
          kept = containerId;
          continue;
        }
        const lateMs = this.#random.chance(0.5) ? 0 : this.#random.below(5_000);
        for (const nic of pod.nics) void this.#deleteLater(callOf("DEL", pod, containerId, nic), lateMs);
        if (lateMs === 0) await time.sleep(50, "kubelet");
        continue;
      }
      await this.#inRuntime(() => this.#detach(worker, containerId));
      if (!worker.isStopping) await time.sleep(300 + this.#random.below(1_500), "kubelet's pause");
    }
    worker.containerId = "";
    while (!api.isConnected(machine.host)) await time.sleep(500, "kubelet waits for the API server");
    api.finish(pod);
    this.#workers.delete(pod.uid);
  }

  /** Does work of the runtime; a kubelet that hangs gets its result later. */
  #inRuntime<T>(work: () => Promise<T>): Promise<T> {
    const { time } = this.#options;
    return time.inside(this.#runtime, work).then((value) => {
      if (this.process.pausedUntilMs <= time.nowMs) return value;
      return new Promise((resolve) => time.schedule(0, "answer of the runtime", this.process, () => resolve(value)));
    });
  }

  async #attach(worker: Worker): Promise<boolean> {
    const { machine, timeline, api, faults } = this.#options;
    const { pod, containerId } = worker;
    for (const nic of pod.nics) {
      if (worker.isStopping) return false;
      const adding = new AbortController();
      worker.adding = adding;
      if (this.#random.chance(faults().hangUp))
        setTimeout(() => adding.abort(new Error("The runtime gives up")), this.#random.below(600));
      try {
        const onAnswer = (each: readonly string[]): void => api.shown(pod, nic[0], each);
        const addresses = await machine.add(callOf("ADD", pod, containerId, nic), adding.signal, onAnswer);
        timeline.note(`${machine.host}: ${pod.name} (${pod.uid}) has ${addresses.join(" ")} on ${nic[0]}`);
      } catch (error) {
        api.refused(pod, error);
        timeline.note(`${machine.host}: ADD of ${nic[0]} of ${pod.name} (${pod.uid}): ${textOf(error)}`);
        return false;
      } finally {
        worker.adding = undefined;
      }
    }
    return true;
  }

  async #detach({ pod }: Worker, containerId: string): Promise<void> {
    const { machine, time, faults } = this.#options;
    const { lateDel, twice } = faults();
    if (this.#random.chance(lateDel)) {
      // The sandbox goes first; the runtime cleans up later.
      machine.namespaces.remove(containerId);
      const lateMs = this.#random.below(15_000);
      for (const nic of pod.nics) void this.#deleteLater(callOf("DEL", pod, containerId, nic), lateMs);
      return;
    }
    for (const nic of pod.nics.toReversed()) {
      const call = callOf("DEL", pod, containerId, nic);
      await machine.del(call);
      await time.sleep(5, "main plugin removes the link");
      machine.namespaces.removeNic(containerId, nic[0]);
      if (this.#random.chance(twice)) void this.#deleteLater(call, this.#random.below(6_000));
    }
    machine.namespaces.remove(containerId);
  }

  #keepsId(): boolean {
    const { sameId = 0 } = this.#options.faults();
    return sameId > 0 && this.#random.chance(sameId);
  }

  async #deleteAll(worker: Worker, containerId: string): Promise<void> {
    const { machine } = this.#options;
    for (const nic of worker.pod.nics.toReversed()) await machine.del(callOf("DEL", worker.pod, containerId, nic));
  }

  async #deleteLater(call: Call, lateMs: number): Promise<void> {
    const { machine, time } = this.#options;
    await time.sleep(lateMs, "late DEL");
    await this.#inRuntime(() => machine.del(call));
  }
}

function callOf(
  command: Call["command"],
  { namespace, name: pod, uid }: PodObject,
  containerId: string,
  [ifName, network]: readonly [string, string],
): Call {
  return { command, namespace, pod, uid, containerId, ifName, network };
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.message.split("\n")[0]?.slice(0, 160) ?? "") : String(error);
}
