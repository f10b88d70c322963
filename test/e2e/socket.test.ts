import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startAgent } from "../lab/agent.ts";
import { requireCommand } from "../lab/command.ts";
import { ipPool, vendorConf } from "../lab/manifests.ts";
import { type NetnsWorld, openAlone } from "../lab/netns/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { PATIENCE } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const BLUE = {
  "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "0s" }),
  "blue.yaml": ipPool("blue", "10.6.0.0/16", { default: true }),
};

let world: NetnsWorld;
beforeAll(async () => {
  world = await openAlone(BLUE);
});
afterAll(() => world?.delete());

function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(world.agent.socket);
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Everything that the agent says until it closes. */
async function say(text: string): Promise<string> {
  const socket = await open();
  const received: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  socket.on("error", () => {});
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(received).toString("latin1");
}

function addRequest(containerId: string, ipam: object = {}): string {
  const body = JSON.stringify({ cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth", ...ipam } });
  const head = [
    "POST /v1/cni/berth HTTP/1.1",
    "Host: berth",
    "CNI-Command: ADD",
    `CNI-ContainerID: ${containerId}`,
    `CNI-Netns: ${world.sandbox.path}`,
    "CNI-IfName: eth0",
    "CNI-Path: /bin",
    `Content-Length: ${body.length}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

it("state, spool and socket are closed to others, whatever the mask and the directory were", async () => {
  const parent = temporaryDirectory("berth-modes-", onTestFinished);
  const stateDir = join(parent, "state");
  mkdirSync(stateDir);
  chmodSync(stateDir, 0o755);
  // A mask of zero, as some service managers have it.
  const wrapper = ["sh", "-c", 'umask 0; exec "$@"', "sh"];
  const agent = await startAgent({ config: BLUE, stateDir, wrapper });
  onTestFinished(() => agent.delete());
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const files = readdirSync(stateDir).map((name) => [name, modeOf(join(stateDir, name))]);
  expect(files.filter(([, mode]) => mode !== "600")).toEqual([]);
  expect(files.length).toBeGreaterThan(1);
  expect([modeOf(stateDir), modeOf(agent.socket)]).toEqual(["700", "600"]);
});

describe("the socket", () => {
  it("answers one request of a connection; a second one is not carried out", async () => {
    expect(await say(addRequest("c1") + addRequest("c2"))).toMatch(/^HTTP\/1\.1 200 /);
    await sleep(200);
    expect((await world.usage()).Bound).toHaveLength(1);
    await world.del("c1");
    await expect.poll(() => world.usage(), PATIENCE).toEqual({});
  });

  const hostile: [what: string, text: string, answer: RegExp][] = [
    ["garbage", "\x00\x01\x02 garbage\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["a path that is no URL", "GET // HTTP/1.1\r\nHost: berth\r\n\r\n", /^HTTP\/1\.1 404 /],
    ["a URL of its own", "GET http://[ HTTP/1.1\r\nHost: berth\r\n\r\n", /^HTTP\/1\.1 40\d /],
    ["a huge head", `GET /v1/health HTTP/1.1\r\nX: ${"x".repeat(800_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ["an unknown plugin", "POST /v1/cni/bridge HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n", /^HTTP\/1\.1 422 /],
    ["an unknown method", "DELETE /v1/pools HTTP/1.1\r\nHost: berth\r\n\r\n", /^HTTP\/1\.1 404 /],
    ["a cursor that is none", "GET /v1/allocations?after=x HTTP/1.1\r\nHost: berth\r\n\r\n", /^HTTP\/1\.1 400 /],
  ];
  it("text that is no request is answered, as is a body above the limit; callers that hang up cause no internal error", async () => {
    for (const [what, text, answer] of hostile) expect(await say(text), what).toMatch(answer);
    const text = addRequest("c1").replace(/Content-Length: .*/s, "");
    const received = await say(`${text}Content-Length: 1048577\r\n\r\n${"x".repeat(1_048_577)}`);
    expect(received).toContain('"code":6');
    const whole = addRequest("c1");
    for (const length of [5, 60, whole.length - 10]) {
      const socket = await open();
      socket.write(whole.slice(0, length));
      await sleep(50);
      socket.destroy();
    }
    await sleep(200);
    expect(world.agent.stderr()).not.toContain("Internal error");
    expect(await world.usage()).toEqual({});
    expect(await world.add("c1")).toHaveLength(1);
    await world.del("c1");
  });

  it("hundreds of callers that ask for a page of addresses at once end no agent, and all are answered", async () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `c${index}`);
    await inParallel(names, 20, (name) => say(addRequest(name)));
    const ask = () => say("GET /v1/allocations HTTP/1.1\r\nHost: berth\r\n\r\n");
    const pages = await Promise.all(Array.from({ length: 250 }, ask));
    const sizes = pages.map((page) => page.match(/"cursor"/g)?.length);
    expect(sizes.filter((size) => size !== names.length)).toEqual([]);
    expect(await world.add("c1000")).toHaveLength(1);
    const [, peakKb] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${world.agent.pid}/status`, "utf8")) ?? [];
    expect(Number(peakKb) / 1_024).toBeLessThan(240);
  });

  it("more connections than descriptors do not end the agent", async () => {
    await requireCommand(["prlimit", `--pid=${world.agent.pid}`, "--nofile=48:"]);
    const opened = await Promise.allSettled(Array.from({ length: 100 }, () => open()));
    await sleep(2_500);
    for (const each of opened) if (each.status === "fulfilled") each.value.destroy();
    await sleep(100);
    expect(await world.add("c1")).toHaveLength(1);
    expect(await world.agent.get("/v1/health")).toMatchObject({ status: "ready", problems: [] });
    await requireCommand(["prlimit", `--pid=${world.agent.pid}`, "--nofile=512:"]);
  });

  it("an ADD for which no descriptor is left names the limit, and is no bug", async () => {
    const { pid } = world.agent;
    const said = world.agent.stderr().length;
    const refusals: string[] = [];
    const prevResult = { cniVersion: "1.0.0", interfaces: [], ips: [{ address: "10.6.0.9/24" }] };
    const conf = { ipam: undefined, type: "coordinator", prevResult };
    for (let spare = 1; spare <= 8; spare++) {
      const limit = readdirSync(`/proc/${pid}/fd`).length + spare;
      await requireCommand(["prlimit", `--pid=${pid}`, `--nofile=${limit}:`]);
      const { stdout } = await world.call("ADD", "c1", {
        plugin: "coordinator",
        conf,
        env: { ...world.agent.env, BERTH_REQUEST_LIMIT: "3" },
      });
      refusals.push(stdout.msg);
    }
    await requireCommand(["prlimit", `--pid=${pid}`, "--nofile=512:"]);
    expect(refusals).toContainEqual(expect.stringContaining("raise LimitNOFILE of its service"));
    expect(refusals.join()).not.toContain("bug");
    expect(world.agent.stderr().slice(said)).not.toContain("Internal error");
    expect(await world.add("c1")).toHaveLength(1);
  });
});
