/** The audit log of the built agent: which pod had an address, in the file, on stderr and by `berthctl history`. */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AUDIT_FILE_BYTES, MAX_REFUSALS_OF_NIC } from "../../host/agent/log/audit-log.ts";
import { LOG_RECHECK_MS } from "../../host/agent/log/log-writer.ts";
import { auditLineSchema } from "../../host/records/audit-line.ts";
import { runBerthctl } from "../lab/berthctl.ts";
import { requireCommand } from "../lab/command.ts";
import { CONF, ipPool, podManifest } from "../lab/manifests.ts";
import { type NetnsWorld, openAlone, withWorld } from "../lab/netns/world.ts";

const CONFIG = {
  "conf.yaml": CONF,
  "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true, selection: "ascending" }),
  "none.yaml": podManifest("shop", "none", { ippool: { ipv4: ["missing"] } }),
};

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 30_000, interval: 20 });

type Line = Readonly<Record<string, unknown>>;

function fileOf({ agent }: NetnsWorld): string {
  return join(agent.logDir, "audit.jsonl");
}

/** The lines of the file, each checked with the schema. */
function linesOf(world: NetnsWorld): Line[] {
  const path = fileOf(world);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => auditLineSchema.strict().parse(JSON.parse(line)));
}

/** The lines but for the first ones, as soon as there are so many. */
async function waitForLines(world: NetnsWorld, count: number, without = 0): Promise<Line[]> {
  const found = () =>
    linesOf(world)
      .filter(({ audit }) => audit !== "START")
      .slice(without);
  await eventually(() => expect(found().length).toBeGreaterThanOrEqual(count));
  return found();
}

const history = (world: NetnsWorld, ...words: string[]) =>
  runBerthctl("history", ...words, "--socket", world.agent.socket);

describe("the audit log", () => {
  let world: NetnsWorld;
  /** Lines of earlier tests. */
  let before = 0;

  beforeAll(async () => {
    world = await openAlone(CONFIG);
  });
  beforeEach(async () => {
    before = (await waitForLines(world, 0)).length;
  });
  afterAll(() => world?.delete());

  it("has one line per ADD and DEL with pod, address, pool, source, container and duration", async () => {
    const [address = ""] = await world.add("c1", { pod: "shop/web-0" });
    await world.add("c1", { pod: "shop/web-0" });
    await world.del("c1", { pod: "shop/web-0" });
    const lines = await waitForLines(world, 3);
    const same = {
      ...{ plugin: "berth", namespace: "shop", pod: "web-0", interface: "eth0", code: 0, container: "c1" },
      ...{ addresses: [address.split("/")[0]], pools: ["blue"], level: "info" },
    };
    expect(lines).toEqual([
      expect.objectContaining({ ...same, audit: "ADD", sources: ["free"], rule: expect.stringContaining("default") }),
      expect.objectContaining({ ...same, audit: "ADD", sources: ["own"] }),
      expect.objectContaining({ ...same, audit: "DEL", sources: [] }),
    ]);
    for (const { ms, time } of lines) {
      expect(ms).toBeGreaterThan(0);
      expect(Math.abs(Date.now() - Date.parse(String(time)))).toBeLessThan(60_000);
    }
    expect((await requireCommand(["grep", '"10.6.0.1"', fileOf(world)])).trim().split("\n")).toHaveLength(3);
    expect(world.agent.stderr()).toMatch(/"level":"info",.*"audit":"ADD",.*"addresses":\["10\.6\.0\.1"\]/);
  });

  it("has a refusal with the same keys once, until it changes or the pod is served", async () => {
    for (let sandbox = 0; sandbox < 5; sandbox++) {
      expect((await world.call("ADD", `c${sandbox}`, { pod: "shop/none" })).exitCode).toBe(1);
    }
    await world.agent.write("none.yaml", podManifest("shop", "none", { ippool: { ipv4: ["absent"] } }));
    await eventually(async () => {
      const { stdout } = await world.call("ADD", "c6", { pod: "shop/none" });
      expect(stdout.msg).toContain("absent");
    });
    const lines = await waitForLines(world, 2, before);
    const refused = { audit: "ADD", level: "warn", namespace: "shop", pod: "none", interface: "eth0", code: 100 };
    expect(lines).toEqual([
      expect.objectContaining({
        ...refused,
        container: "c0",
        addresses: [],
        message: expect.stringContaining("missing"),
      }),
      expect.objectContaining({ ...refused, repeats: expect.any(Number), message: expect.stringContaining("absent") }),
    ]);
    expect(Number(lines[1]?.repeats)).toBeGreaterThanOrEqual(4);
  });

  it("of a pod whose refusals differ each time is bounded", async () => {
    for (let round = 0; round < 3 * MAX_REFUSALS_OF_NIC; round++) {
      await world.call("ADD", `c${round}`, {
        pod: "shop/web",
        conf: { args: { cni: { ips: [`10.9.0.${round + 1}`] } } },
      });
    }
    await world.add("last", { pod: "shop/other" });
    const lines = await waitForLines(world, MAX_REFUSALS_OF_NIC + 1, before);
    expect(lines).toHaveLength(MAX_REFUSALS_OF_NIC + 1);
  });

  it("keeps hostile names on one line of bounded length", async () => {
    const names = [
      "a\nb",
      `x"}\n{"audit":"ADD","addresses":["10.6.0.99"]}`,
      "\u001b[2J\u009b\u202e",
      "é".repeat(20_000),
    ];
    for (const [index, name] of names.entries()) {
      const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name}`;
      await world.call("ADD", `c${index}`, { args });
    }
    await world.add("final", { pod: "shop/final" });
    await eventually(() => expect(linesOf(world).at(-1)).toMatchObject({ pod: "final" }));
    const text = readFileSync(fileOf(world), "utf8");
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    for (const line of text.split("\n")) expect(line.length).toBeLessThan(16_384);
    expect((await history(world, "10.6.0.99")).code).toBe(1);
  });

  it("cannot be named by a network definition", async () => {
    for (const name of ["audit.jsonl", "audit.jsonl.1", "x/../audit.jsonl"]) {
      const outcome = await world.call("ADD", "c1", {
        ...{ plugin: "coordinator", pod: "shop/web" },
        conf: { logOptions: { logFile: `/var/log/vendor/${name}` } },
      });
      expect([outcome.exitCode, outcome.stdout.code], outcome.stdout.msg).toEqual([1, 7]);
    }
  });

  it("is not searched for a word that is neither an address nor a pool, nor at an invalid time", async () => {
    expect((await history(world, "a/b/c")).error).toContain('a pod as namespace/name, found "a/b/c"');
    expect((await history(world, "10.6.0.300")).error).toContain('such as 10.6.0.21, found "10.6.0.300"');
    expect((await history(world, "10.6.0.1", "--at", "noon")).error).toContain('found "noon"');
    for (const query of ["", "?address=10.6.0.1&pod=a/b", "?pod=a/b&since=x", "?pod=a/b&skip=-1"]) {
      expect((await world.agent.request(`/v1/history${query}`)).status, query).toBe(400);
    }
  });
});

it("an audit log that cannot be written delays no ADD, and says so once", () =>
  withWorld(CONFIG, async (world) => {
    await world.add("c1", { pod: "shop/a" });
    await waitForLines(world, 1);
    rmSync(fileOf(world));
    await requireCommand(["mkfifo", fileOf(world)]);
    await setTimeout(LOG_RECHECK_MS + 200);
    for (let round = 0; round < 20; round++) await world.add(`d${round}`, { pod: `shop/d${round}` });
    await eventually(() => expect(world.agent.stderr()).toContain("Writing the audit log failed; lines are lost"));
    expect(world.agent.stderr().match(/Writing the audit log failed/g)).toHaveLength(1);
    const { body } = await world.agent.request("/metrics");
    expect(Number(/^berth_audit_lines_lost_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThanOrEqual(1);
  }));

describe("berthctl history", () => {
  it("answers which pod had an address, and since when, also across kill -9", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("c1", { pod: "shop/web-0" });
      await world.del("c1", { pod: "shop/web-0" });
      await waitForLines(world, 2);
      const between = new Date().toISOString();
      // The file loses its last moments.
      await world.add("c2", { pod: "shop/web-1", conf: { args: { cni: { ips: ["10.6.0.7"] } } } });
      await waitForLines(world, 3);
      const kept = readFileSync(fileOf(world), "utf8").split("\n").slice(0, -2).join("\n");
      await world.agent.kill("SIGKILL");
      writeFileSync(fileOf(world), `${kept}\n`);
      await world.agent.start();
      const { out, code } = await history(world, "10.6.0.1");
      expect(code).toBe(0);
      expect(out).toMatch(/^TIME +EVENT +POD +INTERFACE +ADDRESSES +POOLS +CONTAINER +WHY\n/);
      expect(out).toMatch(
        /ADD +shop\/web-0 +eth0 +10\.6\.0\.1 +blue +c1 +free, .*\n.*DEL +shop\/web-0 +eth0 +10\.6\.0\.1/,
      );
      await eventually(async () => {
        const now = await history(world, "10.6.0.7", "--at", new Date().toISOString());
        expect([now.code, now.out]).toEqual([0, expect.stringMatching(/^10\.6\.0\.7: pod shop\/web-1 \(UID /)]);
      });
      expect((await history(world, "10.6.0.7", "--at", between)).out).toMatch(/^10\.6\.0\.7: no pod of this node at/);
      expect((await history(world, "shop/web-1")).out).toContain("HELD");
      expect((await history(world, "10.6.0.200")).out).toMatch(
        /^No line about 10\.6\.0\.200; the audit log of node .* begins at 2/,
      );
    }));

  it("reads the files that are full, too, in the order of time", () =>
    withWorld(CONFIG, async (world) => {
      const requested = { pod: "shop/web-0", conf: { args: { cni: { ips: ["10.6.0.7"] } } } };
      await world.add("new", requested);
      await world.del("new", requested);
      const lines = await waitForLines(world, 2);
      // Two files of earlier days, as the agent leaves them.
      for (const [number, day] of [
        [1, "2026-01-02"],
        [2, "2026-01-01"],
      ] as const) {
        const older = lines.map((line, hour) => ({
          ...line,
          time: `${day}T0${hour}:00:00.000Z`,
          container: `old${number}`,
        }));
        writeFileSync(`${fileOf(world)}.${number}`, older.map((line) => `${JSON.stringify(line)}\n`).join(""));
      }
      appendFileSync(fileOf(world), `${"x".repeat(1_023)}\n`.repeat(AUDIT_FILE_BYTES / 1_024));
      // The size of a file that others wrote to is read again at the next check.
      await setTimeout(LOG_RECHECK_MS + 200);
      await world.add("last", requested);
      await eventually(() => expect(existsSync(`${fileOf(world)}.3`)).toBe(true));
      await eventually(() => expect(linesOf(world)).toHaveLength(1));
      const { out, code } = await history(world, "10.6.0.7", "-o", "json");
      expect(code).toBe(0);
      const found = JSON.parse(out).filter(({ audit }: Line) => audit !== "START");
      expect(found.map(({ audit, container }: Line) => `${audit} ${container}`)).toEqual([
        ...["ADD old2", "DEL old2", "ADD old1", "DEL old1", "ADD new", "DEL new", "ADD last"],
      ]);
      const then = await history(world, "10.6.0.7", "--at", "2026-01-02T00:30:00Z");
      expect(then.out).toMatch(/pod shop\/web-0 .*container old1, since 2026-01-02T00:00:00/);
    }));
});
