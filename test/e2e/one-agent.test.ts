/**
 * One agent per socket: the next one waits or is refused by name, a stop loses no call, and a socket that is taken
 * away comes back.
 */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { describe, expect, it } from "vitest";
import { type Agent, startAgent } from "../lab/agent.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";
import { restartUnderLoad } from "./restart-storm.ts";

const BLUE = { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/16", { default: true }) };

/** Returns the message of a second agent with these arguments before it ends; it must end with 1. */
async function refusal(world: NetnsWorld, args: readonly string[]): Promise<string> {
  const error = await startAgent({ config: BLUE, args: ["--lock-wait", "0.3", ...args] }).then(
    async (agent: Agent) => {
      await agent.delete();
      throw new Error("A second agent serves beside the first");
    },
    (refused: Error) => refused.message,
  );
  expect(error).toContain("The agent ended at once (1)");
  expect(await world.add("after")).toHaveLength(1);
  await world.del("after");
  return error;
}

/** There is another socket than before. */
async function comesBack(world: NetnsWorld, before: number): Promise<void> {
  const inode = await eventually(
    async () => statSync(world.agent.socket, { throwIfNoEntry: false })?.ino,
    (ino) => ino !== undefined && ino !== before,
  );
  expect(inode).not.toBe(before);
}

/** The agent answers, by its own socket again. */
async function answersAgain(world: NetnsWorld, before: number): Promise<void> {
  await comesBack(world, before);
  expect(await world.add("again")).toHaveLength(1);
}

it("a second agent with a state of its own and the same socket is refused, with the process of the first; a lock is not needed", () =>
  withWorld(BLUE, async (world) => {
    const said = await refusal(world, ["--socket", world.agent.socket]);
    expect(said).toContain(
      `Socket ${world.agent.socket} is served by another agent (process ${world.agent.pid}), waited 300 ms`,
    );
    expect(said).toContain("Waiting for the other agent to end");
    rmSync(`${world.agent.socket}.lock`);
    expect(await refusal(world, ["--socket", world.agent.socket])).toContain("is served by another agent");
    const path = `${world.agent.socket}.other`;
    const server: Server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      expect(await refusal(world, ["--socket", path])).toContain("is served by another agent (process unknown)");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  }));

it("a graceful restart loses no ADD, and gives no address twice", () =>
  withWorld(BLUE, async (world) => {
    const { adds, addresses, lost } = await restartUnderLoad(world, { restarts: 3, atOnce: 16, addsBetween: 40 });
    expect(lost).toEqual([]);
    expect(addresses).toBe(adds);
  }));

describe("a socket", () => {
  it("that is removed comes back within seconds; the agent says so, and health counts it", () =>
    withWorld(BLUE, async (world) => {
      expect(await world.agent.get("/v1/health")).toMatchObject({ socketRestored: 0 });
      const { ino } = statSync(world.agent.socket);
      rmSync(world.agent.socket);
      await answersAgain(world, ino);
      expect(world.agent.stderr()).toContain(`Socket ${world.agent.socket} was removed`);
      expect(statSync(world.agent.socket).mode & 0o777).toBe(0o600);
      expect(await world.agent.get("/v1/health")).toMatchObject({ status: "ready", socketRestored: 1 });
    }));

  it("whose folder is removed comes back with it, and so does the lock", () =>
    withWorld(
      BLUE,
      async (world) => {
        const folder = `${world.agent.directory}/run`;
        renameSync(folder, `${folder}.gone`);
        expect(await eventually(async () => existsSync(world.agent.socket), Boolean)).toBe(true);
        expect(await world.add("again")).toHaveLength(1);
        expect(existsSync(`${world.agent.socket}.lock`)).toBe(true);
        expect(await refusal(world, ["--socket", world.agent.socket])).toContain(`process ${world.agent.pid}`);
      },
      { socketName: "run/agent.sock" },
    ));

  it("that another agent has taken ends the first one: one serves", () =>
    withWorld(BLUE, async (world) => {
      // Until the first one ends, it is the one that answers on the socket.
      const second = await startAgent({ config: BLUE, socket: world.agent.socket });
      try {
        await expect.poll(() => second.stderr(), PATIENCE).toContain("Waiting");
        // The first one looks once a second, and has just looked when it has restored the socket: the second one is
        // faster then.
        const { ino } = statSync(world.agent.socket);
        rmSync(world.agent.socket);
        await comesBack(world, ino);
        for (const end of ["", ".lock"]) rmSync(`${world.agent.socket}${end}`);
        const taken = `Socket ${world.agent.socket} was taken by another agent (process ${second.pid})`;
        await expect.poll(() => world.agent.stderr(), PATIENCE).toContain(taken);
        await expect.poll(() => world.agent.isRunning(), PATIENCE).toBe(false);
        expect(await second.get("/v1/health")).toMatchObject({ status: "ready" });
      } finally {
        await second.delete();
      }
    }));
});
