/**
 * An observer of a segment that knows nothing of the product: it asks on the wire by a port of its own, reads the
 * kernel's addresses of all namespaces (eyes.c), and compares both with the records in etcd (segment-checker.ts).
 *
 *   const observer = await startObserver({ segment: { path: netns.path, bridge: "br0" }, ranges, records, ... });
 *   observer.read("n1", "/run/netns/n1-*");
 *   observer.take();                          // findings that a test causes on purpose
 *   await observer.stop();                    // throws all others, and prints what the observer itself has cost
 *
 * It asks as 10.255.255.254, 169.254.255.254 or another address outside all pools: a question without a sender would
 * be a probe, which is a conflict for Berth.
 * Effects: a veth pair in the segment's namespace; a child in it; connections to etcd.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../../scripts/setup/paths.mjs";
import { requireCommand } from "../command.ts";
import type { RecordSource } from "./records.ts";
import { type CheckerOptions, type Finding, type Round, SegmentChecker } from "./segment-checker.ts";

export interface ObserverOptions extends Partial<CheckerOptions> {
  /** For what it prints. */
  readonly name: string;
  /** The namespace with the segment's bridge. */
  readonly segment: { readonly path: string; readonly bridge: string };
  /** Its own addresses. */
  readonly senders?: { readonly v4: string; readonly v6: string };
  /** Of pools: `10.6.0.1-10.6.0.9`, an address, or a subnet of IPv4. */
  readonly ranges: readonly string[];
  readonly records: RecordSource;
}

export interface Observer {
  /** The namespaces that match are read from now on, under that label; again: others are. */
  read(label: string, glob: string): void;
  /** What was found since the last call, with all that happened until now. */
  take(): Promise<readonly Finding[]>;
  /** The same when there is such a finding. Throws what else there was after the limit. */
  until(isWanted: (finding: Finding) => boolean, limitMs: number): Promise<Finding>;
  stop(): Promise<void>;
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
  const { name, segment, senders = SENDERS, ranges, records, graceMs = GRACE_MS, podOf } = options;
  const checker = new SegmentChecker({ graceMs, ...(podOf === undefined ? {} : { podOf }) });
  const eyes = await openEyes(segment, senders);
  const order = (...words: readonly string[]): void => void eyes.stdin.write(`${words.join(" ")}\n`);
  for (const range of ranges) order("range", ...endsOf(range));
  const events: ({ readonly atMs: number } & (Round | { readonly apply: () => void }))[] = [];
  const followed = records((address, record) => {
    const atMs = nowMs();
    order(record === undefined ? "forget" : "record", address);
    events.push({ atMs, apply: () => checker.write(atMs, address, record) });
  });
  let [rounds, answers, cpuMs] = [0, 0, 0];
  let ownCpuMs = 0;
  const measured = (work: () => void): void => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    ownCpuMs += (user + system) / 1_000;
  };
  const hear = (line: string): void => void events.push(JSON.parse(line) as Round);
  createInterface({ input: eyes.stdout }).on("line", (line) => measured(() => hear(line)));
  const check = (endMs: number): void => {
    events.sort((one, other) => one.atMs - other.atMs);
    const count = events.findIndex(({ atMs }) => atMs > endMs);
    for (const event of events.splice(0, count < 0 ? events.length : count)) {
      if ("apply" in event) event.apply();
      else {
        checker.round(event);
        rounds++;
        answers += event.answers.length;
        cpuMs = event.cpuMs;
      }
    }
  };
  const checkUntil = (endMs: number): void => measured(() => check(endMs));
  const timer = setInterval(() => checkUntil(nowMs() - LAG_MS), LAG_MS);
  const startMs = nowMs();
  const found: Finding[] = [];
  const catchUp = (endMs: number): void => {
    checkUntil(endMs);
    found.push(...checker.take());
  };
  const take = async (): Promise<readonly Finding[]> => {
    const endMs = nowMs();
    await sleep(LAG_MS);
    catchUp(endMs);
    return found.splice(0);
  };
  return {
    read: (label, glob) => order("netns", label, glob),
    take,
    until: async (isWanted, limitMs) => {
      for (const deadline = nowMs() + limitMs; ; ) {
        const finding = found.find(isWanted);
        if (finding !== undefined) return finding;
        if (nowMs() > deadline) throw new Error(`Not found within ${limitMs} ms:\n${textOf(found)}`);
        await sleep(LAG_MS / 4);
        catchUp(nowMs() - LAG_MS);
      }
    },
    stop: async () => {
      const left = await take();
      clearInterval(timer);
      followed[Symbol.dispose]();
      await eyes.end();
      const share = (100 * (cpuMs + ownCpuMs)) / (nowMs() - startMs);
      const cost = `${cpuMs} + ${Math.round(ownCpuMs)} ms of processor time (${share.toFixed(1)} %)`;
      console.log(`${name}: ${rounds} rounds, ${answers} answers, ${cost}`);
      if (rounds === 0) throw new Error(`${name}: the observer saw nothing: ${eyes.errors()}`);
      if (left.length > 0) throw new Error(`${name}: ${left.length} findings of the observer\n${textOf(left)}`);
    },
  };
}

interface Eyes extends Pick<ChildProcessByStdio<Writable, Readable, Readable>, "stdin" | "stdout"> {
  errors(): string;
  end(): Promise<void>;
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
    errors: () => errors,
    end: async () => {
      child.stdin.end();
      await ended;
      await requireCommand(inside(["ip", "link", "delete", "eyes"]));
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
