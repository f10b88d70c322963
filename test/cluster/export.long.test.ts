/** What `berthctl export --watch` of a cluster, built, prints and writes, also through a restart of the API server. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { requireCommand } from "../lab/command.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

const POOLS = [
  { name: "blue", subnet: "10.6.0.0/24" },
  { name: "six", subnet: "fd06::/64" },
];
const ZONE = ["-o", "zone", "--origin", "pods.example", "--soa", "ns1.example"];

let world: World;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "berth-export-"));
  world = await startWorld({ startPlane: borrowPlane, pools: POOLS });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await world?.stop();
});
beforeEach(async () => {
  await world.clear();
  await allocate("10.6.0.21", "web-0");
  await allocate("fd06::21", "web-0");
  await allocate("10.6.0.30", "web-9");
  await world.allocate("10.6.0.40", { state: "Cooling", holders: [] });
});

async function allocate(address: string, pod: string): Promise<void> {
  const holder = { namespace: "shop", pod, podUid: `uid-${pod}`, ifName: "eth0", node: "n1" };
  const more = address.includes(":") ? { pool: "six", prefixLength: 64 } : {};
  await world.allocate(address, { ...more, holders: [holder] });
}

const words = (...more: string[]): string[] => [
  process.execPath,
  join(root, "dist", "berthctl.mjs"),
  ...["--kubeconfig", world.plane.kubeconfig, "export", ...more],
];

/** A `berthctl` that goes on, and what it has printed. */
function watch(...more: string[]): {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly notes: () => string;
} {
  const [program = "", ...rest] = words("--watch", ...more);
  const child = spawn(program, rest);
  const texts = { out: "", notes: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    texts.out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    texts.notes += chunk.toString();
  });
  return { child, out: () => texts.out, notes: () => texts.notes };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await until("it has ended", () => child.exitCode !== null);
  expect(child.exitCode).toBe(0);
}

it("--watch prints all, then what changes, also after a restart of the API server; SIGTERM ends it", async () => {
  const { child, out } = watch();
  const seen = () =>
    out()
      .split("\r\n")
      .map((line) => line.split(",", 2).join(" "));
  try {
    await until("all", () => seen().length === 6);
    expect(seen()).toEqual([
      "change address",
      "present 10.6.0.21",
      "present 10.6.0.30",
      "present 10.6.0.40",
      "present fd06::21",
      "",
    ]);
    await allocate("10.6.0.22", "web-1");
    await until("one more", () => seen().length === 7);
    await world.plane.server.stop();
    await world.plane.server.start();
    await world.release("10.6.0.22");
    await allocate("10.6.0.23", "web-2");
    await until("what changed since", () => seen().length === 9);
    expect(seen().slice(5, 8).toSorted()).toEqual(["added 10.6.0.22", "added 10.6.0.23", "removed 10.6.0.22"]);
    await end(child, "SIGTERM");
  } finally {
    child.kill("SIGKILL");
  }
});

it("--watch with --file replaces the file as a whole; SIGINT ends it", async () => {
  const file = join(folder, "pods.zone");
  const { child, out, notes } = watch(...ZONE, "--file", file, "--every", "0.1");
  const serial = (text: string) => Number(/ SOA \S+ \S+ (\d+) /.exec(text)?.[1]);
  try {
    await until("the first file", () => notes().includes(`${file}: 4 addresses\n`));
    const [first, { ino }] = [readFileSync(file, "utf8"), statSync(file)];
    await allocate("10.6.0.22", "web-1");
    await until("the second", () => notes().includes(`${file}: 5 addresses: 1 added, 0 changed, 0 removed\n`));
    const second = readFileSync(file, "utf8");
    expect(second).toContain("\nweb-1.shop 30 IN A 10.6.0.22\n");
    expect(serial(second)).toBeGreaterThan(serial(first));
    expect([out(), statSync(file).ino === ino]).toEqual(["", false]);
    await requireCommand(["named-checkzone", "-q", "-i", "none", "pods.example", file]);
    await end(child, "SIGINT");
  } finally {
    child.kill("SIGKILL");
  }
});
