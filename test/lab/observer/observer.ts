/**
 * An observer of a segment, independent of the product's decisions: it asks on the wire by a port of its own, reads the
 * kernel's addresses of all namespaces (eyes.c), and compares both with the records (segment-checker.ts).
 *
 *   const observer = await startObserver({
 *     ...{ name: "lab", segment: { path: netns.path, bridge: "br0" }, ranges: ["10.6.0.0/24"] },
 *     records: etcdRecords(plane.etcdUrl),
 *   });
 *   observer.read("n1", "/run/netns/n1-*");
 *   await observer.take();                    // findings that a test causes on purpose
 *   await observer.stop();                    // throws all others, and prints the observer's own cost
 *
 * It asks from an address and a MAC outside all pools: a question without a sender would be a probe, which is a
 * conflict for Berth.
 * Effects: a veth pair in the segment's namespace; a child in it; dist/lab/eyes, when that is older than its source.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../../scripts/setup/paths.mjs";
import { requireCommand } from "../command.ts";
import { untilDefined } from "../waiting.ts";
import type { RecordSource } from "./records.ts";
import { type CheckerOptions, type Finding, type Round, SegmentChecker } from "./segment-checker.ts";

export interface ObserverOptions extends Partial<CheckerOptions> {
  /** For its output. */
  readonly name: string;
  /** The namespace with the segment's bridge. */
  readonly segment: { readonly path: string; readonly bridge: string };
  /** Its own addresses. */
  readonly senders?: { readonly v4: string; readonly v6: string };
  /** Addresses of pools: `10.6.0.1-10.6.0.9`, an address, or a subnet of IPv4. */
  readonly ranges: readonly string[];
  readonly records: RecordSource;
}

const SENDERS = { v4: "10.255.255.254", v6: "fd00:ffff::fffe" };
const MAC = "02:0b:5e:00:00:01";
/** A machine may have an address for so long that is not recorded for it: an agent looks every ten seconds. */
const GRACE_MS = 12_000;
/** A round is compared when the writes before it have arrived. */
const LAG_MS = 1_000;
const SOURCE = join(import.meta.dirname, "eyes.c");
const FOLDER = join(root, "dist", "lab");

export async function startObserver(options: ObserverOptions): Promise<Observer> {
  return new Observer(options, await openEyes(options.segment, options.senders ?? SENDERS));
}

/** A write is applied in its turn. */
type Event = Round | { readonly atMs: number; readonly apply: () => void };

export class Observer {
  readonly #name: string;
  readonly #checker: SegmentChecker;
  readonly #eyes: Eyes;
  readonly #records: Disposable;
  readonly #timer = setInterval(() => this.#check(nowMs() - LAG_MS), LAG_MS);
  readonly #startMs = nowMs();
  /** Events that have not been checked yet. */
  readonly #events: Event[] = [];
  #found: Finding[] = [];
  #rounds = 0;
  #answers = 0;
  #eyesCpuMs = 0;
  #ownCpuMs = 0;

  constructor({ name, ranges, records, segment: _, senders: __, ...options }: ObserverOptions, eyes: Eyes) {
    this.#name = name;
    this.#checker = new SegmentChecker({ graceMs: GRACE_MS, ...options });
    this.#eyes = eyes;
    for (const range of ranges) this.#order("range", ...endsOf(range));
    createInterface({ input: eyes.stdout }).on("line", (line) => {
      this.#measure(() => this.#events.push(JSON.parse(line) as Round));
    });
    this.#records = records((address, record) => {
      const atMs = nowMs();
      this.#order(record === undefined ? "forget" : "record", address);
      this.#events.push({ atMs, apply: () => this.#checker.write(atMs, address, record) });
    });
  }

  /** The namespaces that match are read from now on, under that label; again: others are. */
  read(label: string, glob: string): void {
    this.#order("netns", label, glob);
  }

  /** Time in which nothing can be recorded does not count: the API server is away while the work runs. */
  async holding(work: () => Promise<void>): Promise<void> {
    const hold = (isHeld: boolean) => this.#events.push({ atMs: nowMs(), apply: () => this.#checker.hold(isHeld) });
    hold(true);
    await work();
    hold(false);
  }

  /** Returns the findings since the last call, after everything that happened until now. */
  async take(): Promise<readonly Finding[]> {
    const endMs = nowMs();
    await sleep(LAG_MS);
    this.#check(endMs);
    return this.#found.splice(0);
  }

  /** The first such finding, which stays. Throws the other findings after the limit. */
  async until(isWanted: (finding: Finding) => boolean, limitMs: number): Promise<Finding> {
    const describe = (): string => `no such finding, but ${textOf(this.#found)}`;
    return untilDefined(() => Promise.resolve(this.#found.find(isWanted)), describe, limitMs);
  }

  async stop(): Promise<void> {
    const left = await this.take();
    clearInterval(this.#timer);
    this.#records[Symbol.dispose]();
    const failure = await this.#eyes.end();
    const share = (100 * (this.#eyesCpuMs + this.#ownCpuMs)) / (nowMs() - this.#startMs);
    const cost = `${this.#eyesCpuMs} + ${Math.round(this.#ownCpuMs)} ms of processor time (${share.toFixed(1)} %)`;
    console.log(`${this.#name}: ${this.#rounds} rounds, ${this.#answers} answers, ${cost}`);
    if (failure !== "" || this.#rounds === 0) throw new Error(`${this.#name}: the observer saw nothing: ${failure}`);
    if (left.length > 0) throw new Error(`${this.#name}: ${left.length} findings of the observer\n${textOf(left)}`);
  }

  #order(...words: readonly string[]): void {
    this.#eyes.stdin.write(`${words.join(" ")}\n`);
  }

  /** Everything up to that time, in its order. */
  #check(endMs: number): void {
    this.#measure(() => {
      this.#events.sort((one, other) => one.atMs - other.atMs);
      const count = this.#events.findIndex(({ atMs }) => atMs > endMs);
      for (const event of this.#events.splice(0, count < 0 ? this.#events.length : count))
        if ("apply" in event) event.apply();
        else this.#see(event);
      this.#found.push(...this.#checker.take());
    });
  }

  #see(round: Round): void {
    this.#checker.round(round);
    this.#rounds++;
    this.#answers += round.answers.length;
    this.#eyesCpuMs = round.cpuMs;
  }

  #measure(work: () => unknown): void {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    this.#ownCpuMs += (user + system) / 1_000;
  }
}

interface Eyes extends Pick<ChildProcessByStdio<Writable, Readable, Readable>, "stdin" | "stdout"> {
  /** Returns the failure: it ended before, or wrote to stderr. */
  end(): Promise<string>;
}

/** On a port of the bridge. */
async function openEyes(
  { path, bridge }: ObserverOptions["segment"],
  { v4, v6 }: NonNullable<ObserverOptions["senders"]>,
): Promise<Eyes> {
  const program = await buildEyes();
  const inside = (argv: readonly string[]): string[] => ["nsenter", `--net=${path}`, ...argv];
  const lines = [
    `link add eyes type veth peer name eyes-port`,
    `link set eyes address ${MAC} addrgenmode none`,
    "link set eyes-port addrgenmode none",
    `link set eyes-port master ${bridge} up`,
    "link set eyes up",
  ];
  await requireCommand(inside(["ip", "-batch", "-"]), { stdin: `${lines.join("\n")}\n` });
  const [file = "", ...args] = inside([program, "eyes", v4, v6]);
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  // When it has ended, that shows in its rounds.
  child.stdin.on("error", () => {});
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    end: async () => {
      const end = child.exitCode ?? child.signalCode;
      child.stdin.end();
      await ended;
      await requireCommand(inside(["ip", "link", "delete", "eyes"]));
      return end === null ? errors : `it ended with ${end} ${errors}`;
    },
  };
}

/** Compiled when it is older than its source. */
async function buildEyes(): Promise<string> {
  const program = join(FOLDER, "eyes");
  const builtMs = await stat(program).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
  if (builtMs > (await stat(SOURCE)).mtimeMs) return program;
  await mkdir(FOLDER, { recursive: true });
  const temporary = `${program}.${process.pid}`;
  await requireCommand(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", temporary, SOURCE]);
  await rename(temporary, program);
  return program;
}

/** CLOCK_MONOTONIC, as eyes.c has it. */
function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The first and the last address. */
function endsOf(range: string): readonly [string, string] {
  const [first = "", last = first] = range.split("-");
  const [address = "", length] = first.split("/");
  if (length === undefined) return [first, last];
  const number = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const end = number + 2 ** (32 - Number(length)) - 1;
  return [address, [24, 16, 8, 0].map((shift) => Math.floor(end / 2 ** shift) % 256).join(".")];
}

function textOf(findings: readonly Finding[]): string {
  return findings.length === 0 ? "nothing" : findings.map(({ text }) => text).join("\n");
}
