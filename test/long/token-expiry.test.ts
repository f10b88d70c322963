/**
 * A host's agent across real expiries: its tokens live for ten minutes, the shortest time that the API server issues.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Agent, startAgent } from "../lab/agent.ts";
import { NODES, nodeObject } from "../lab/cluster/objects.ts";
import { startPlane } from "../lab/cluster/plane.ts";
import { applyHostAgents, createHostToken } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { KubeError } from "../lab/kube-client.ts";

/** The API server accepts a token for a minute longer than it says, and remembers a good one for ten seconds. */
const EXPIRED_MS = (600 + 60 + 10 + 20) * 1_000;

let world: World;
beforeAll(async () => {
  world = await startWorld({
    startPlane: async () => {
      const plane = await startPlane();
      await applyHostAgents(plane);
      return plane;
    },
  });
  await world.client.create(NODES, nodeObject("a"));
});
afterAll(() => world?.stop());

async function isAccepted(token: string): Promise<boolean> {
  const client = await world.plane.openClient({ token });
  try {
    await client.get("/version");
    return true;
  } catch (error) {
    if (error instanceof KubeError && error.status === 401) return false;
    throw error;
  } finally {
    client.close();
  }
}

const untilReady = (agent: Agent) =>
  expect.poll(async () => (await agent.request("/v1/health")).status, { timeout: 20_000 }).toBe(200);

it("is never without a valid token while two expire", async () => {
  const { directory } = world.plane.parts;
  const tokenFile = join(directory, "token");
  const given = await createHostToken(world.client, "a");
  await writeFile(tokenFile, given);
  const kubeconfig = await world.plane.writeKubeconfig("host", { tokenFile });
  const agent = await startAgent({ kubeconfig, args: ["--node", "a", "--renew-token"] });
  world.defer(() => agent.delete());
  await untilReady(agent);
  const readToken = async () => (await readFile(tokenFile, "utf8")).trim();
  const seen = new Set([given]);
  const startMs = performance.now();
  // The token of the start is replaced at once, the next one after 240 to 300 seconds.
  while (performance.now() - startMs < EXPIRED_MS + 10_000) {
    const token = await readToken();
    seen.add(token);
    expect(await isAccepted(token)).toBe(true);
    expect(await agent.get("/v1/health")).toMatchObject({ status: "ready", problems: [] });
    await sleep(5_000);
  }
  const [first = "", second = ""] = seen;
  expect([await isAccepted(first), await isAccepted(second)]).toEqual([false, false]);
  expect(seen.size).toBeGreaterThanOrEqual(4);
  await agent.stop();
  await agent.start();
  await untilReady(agent);
  console.log(`token-expiry: ${seen.size} tokens in ${Math.round((performance.now() - startMs) / 1_000)} s`);
});
