/** The built agent with a token in a file, as on a host outside of a cluster's DaemonSet: what it reports when the file is no longer good. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { NODES, nodeObject } from "../../scripts/lab/cluster/objects.ts";
import { requestNodeToken } from "../../scripts/lab/cluster/rights.ts";
import { startWorld, type World } from "../../scripts/lab/cluster/world.ts";
import { borrowPlane } from "./borrow-plane.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, pools: [{ name: "blue", subnet: "10.6.0.0/24" }] });
});
afterAll(() => world?.stop());

describe("an agent whose token is in a file", () => {
  let agent: Agent;
  let tokenFile: string;
  let token: string;
  beforeAll(async () => {
    await world.client.create(NODES, nodeObject("n1"));
    token = await requestNodeToken(world.client, "n1");
    tokenFile = join(world.plane.parts.directory, "token-n1");
    await writeFile(tokenFile, token);
    const kubeconfig = await world.plane.writeKubeconfig("host-n1", { tokenFile });
    agent = await startAgent({ kubeconfig, args: ["--node", "n1"] });
    world.defer(() => agent.delete());
  });

  const problems = (wanted: readonly unknown[]) =>
    expect
      .poll(async () => JSON.parse((await agent.request("/v1/health")).body).problems, { timeout: 20_000 })
      .toEqual(wanted);

  it.each<[what: string, content: string | undefined, problem: RegExp]>([
    ["that is missing", undefined, /"users\[0\]\.user\.tokenFile": found a file that cannot be read \(ENOENT\)/],
    ["that is empty", "", /tokenFile": found an empty file, want a file with a token/],
    [
      "with a page of a proxy",
      "<html>\nPlease log in</html>",
      /tokenFile": found a text that is not a token, want a file with a token/,
    ],
    [
      "with a token that is not valid",
      "garbage",
      /^The API server refuses the credentials of file ".*host-n1": GET \/version was answered with 401 Unauthorized/,
    ],
  ])("reports a file %s, does not show it, and recovers", async (_, content, problem) => {
    await writeFile(tokenFile, token);
    await problems([]);
    if (content === undefined) await rm(tokenFile);
    else await writeFile(tokenFile, content);
    await problems([expect.stringMatching(problem)]);
    await writeFile(tokenFile, token);
    await problems([]);
    expect(agent.stderr()).not.toMatch(/Please log in|garbage/);
  });
});
