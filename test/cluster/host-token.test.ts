/**
 * The built agent with a token in a file, as on a host outside of a cluster's DaemonSet: its report of a file that is
 * no longer good, and renewal.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { type Agent, startAgent } from "../lab/agent.ts";
import { NAMESPACES, NODES, nodeObject, SYSTEM } from "../lab/cluster/objects.ts";
import {
  applyHostAgents,
  createHostToken,
  createToken,
  requestNodeToken,
  type TokenRequest,
} from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { outcomeOf } from "./rights-objects.ts";

const ACCOUNT = `${NAMESPACES}/${SYSTEM}/serviceaccounts/berth-agent`;
const ROLE_BINDING = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/rolebindings/berth-agent-tokens`;

let world: World;
beforeAll(async () => {
  world = await startWorld({
    startPlane: async () => {
      const plane = await borrowPlane();
      await applyHostAgents(plane);
      return plane;
    },
    pools: [{ name: "blue", subnet: "10.6.0.0/24" }],
  });
  for (const name of ["a", "b"]) await world.client.create(NODES, nodeObject(name));
});
afterAll(() => world?.stop());

let files = 0;

/** A host's files: `token` in a file of its own, and a kubeconfig that names it. */
async function writeHost(token: string): Promise<{ tokenFile: string; kubeconfig: string }> {
  const name = `host-${++files}`;
  const tokenFile = join(world.plane.parts.directory, `${name}.token`);
  await writeFile(tokenFile, token);
  return { tokenFile, kubeconfig: await world.plane.writeKubeconfig(name, { tokenFile }) };
}

async function startHost(token: string, ...args: string[]): Promise<Agent & { tokenFile: string }> {
  const { tokenFile, kubeconfig } = await writeHost(token);
  const agent = await startAgent({ kubeconfig, args: ["--node", "a", ...args] });
  world.defer(() => agent.delete());
  return Object.assign(agent, { tokenFile });
}

const untilProblems = (agent: Agent, wanted: readonly unknown[]) =>
  expect
    .poll(async () => JSON.parse((await agent.request("/v1/health")).body).problems, { timeout: 20_000 })
    .toEqual(wanted);

const claimsOf = (token: string): KubeObject =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

/** `done`, or `401 …`. */
async function tryToken(token: string): Promise<string> {
  const client = await world.plane.openClient({ token });
  try {
    return await outcomeOf(client.get("/version"));
  } finally {
    client.close();
  }
}

describe("an agent whose token is in a file", () => {
  let agent: Agent & { tokenFile: string };
  let token: string;
  beforeAll(async () => {
    token = await createHostToken(world.client, "a");
    agent = await startHost(token);
  });

  it.each<[what: string, content: string | undefined, problem: RegExp]>([
    ["that is missing", undefined, /tokenFile": found a file that cannot be read \(ENOENT\)/],
    [
      "with a token that is not valid",
      "garbage",
      /^The API server refuses the credentials of file ".*host-\d+": GET \/version was answered with 401 Unauthorized/,
    ],
  ])("reports a file %s, does not show it, and recovers", async (_, content, problem) => {
    await writeFile(agent.tokenFile, token);
    await untilProblems(agent, []);
    if (content === undefined) await rm(agent.tokenFile);
    else await writeFile(agent.tokenFile, content);
    await untilProblems(agent, [expect.stringMatching(problem)]);
    await writeFile(agent.tokenFile, token);
    await untilProblems(agent, []);
    expect(agent.stderr()).not.toMatch(/Please log in|garbage/);
  });
});

describe("--renew-token", () => {
  it("replaces the token at the start by one for the same Node, for root alone", async () => {
    const first = await createHostToken(world.client, "a", 3_600);
    const { tokenFile } = await startHost(first, "--renew-token");
    const read = async () => (await readFile(tokenFile, "utf8")).trim();
    await expect.poll(read, { timeout: 30_000 }).not.toBe(first);
    const [before, after] = [claimsOf(first), claimsOf(await read())];
    expect(after["kubernetes.io"]).toEqual(before["kubernetes.io"]);
    expect(after.exp - after.iat).toBe(3_600);
    expect((await stat(tokenFile)).mode & 0o777).toBe(0o600);
    expect(existsSync(`${tokenFile}.new`)).toBe(false);
  });

  it("a failure is a problem with the time of the expiry, and ends when the right is back", async () => {
    const binding = await world.client.get(ROLE_BINDING);
    await world.client.delete(ROLE_BINDING);
    const token = await createHostToken(world.client, "a");
    const agent = await startHost(token, "--renew-token");
    const expiry = new Date(claimsOf(token).exp * 1_000).toISOString();
    const problem = new RegExp(
      `^Renewing the token in file ".*" failed: POST .*${ACCOUNT}/token was answered with 403 Forbidden: .*; it expires at ${expiry}$`,
    );
    await untilProblems(agent, [expect.stringMatching(problem)]);
    expect(agent.stderr()).toMatch(/"level":"warn",.*Renewing the token in file .* failed; retrying/);
    const { apiVersion, kind, metadata, roleRef, subjects } = binding;
    await world.client.apply(ROLE_BINDING, { apiVersion, kind, metadata: { name: metadata.name }, roleRef, subjects });
    await untilProblems(agent, []);
    expect((await readFile(agent.tokenFile, "utf8")).trim()).not.toBe(token);
  });

  it("needs a kubeconfig, and a token file in it with a token of the node, or the agent ends", async () => {
    expect(runAgent("--in-cluster", "--renew-token")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--renew-token needs --kubeconfig"),
    });
    const { status, stderr } = runAgent("--kubeconfig", world.plane.kubeconfig, "--renew-token");
    expect([status, stderr]).toEqual([1, expect.stringContaining("the file of the token that --renew-token renews")]);
    const { kubeconfig } = await writeHost(await createHostToken(world.client, "b"));
    const ofOther = runAgent("--kubeconfig", kubeconfig, "--node", "a", "--renew-token");
    expect([ofOther.status, ofOther.stderr]).toEqual([1, expect.stringContaining('want one for \\"a\\"')]);
  });
});

function runAgent(...args: string[]): { status: number | null; stderr: string } {
  const { directory } = world.plane.parts;
  const env = {
    ...process.env,
    BERTH_STATE: join(directory, "s"),
    BERTH_SPOOL: join(directory, "d"),
    BERTH_SOCKET: join(directory, "a.sock"),
  };
  const words = [join(root, "dist", "berth-agent.mjs"), ...args];
  return spawnSync(process.execPath, words, { env, encoding: "utf8", timeout: 60_000 });
}

describe("the holder of node b's token", () => {
  const bound = (kind: string, name: string, more: object = {}) => ({
    boundObjectRef: { apiVersion: "v1", kind, name, ...more },
  });

  async function attempt(token: string, request: TokenRequest): Promise<string> {
    const client = await world.plane.openClient({ token });
    try {
      return await outcomeOf(createToken(client, request));
    } finally {
      client.close();
    }
  }

  it.each<[what: string, request: () => TokenRequest | Promise<TokenRequest>, wanted: RegExp]>([
    ["one for node b", () => bound("Node", "b"), /^done$/],
    ["one for a week", () => ({ ...bound("Node", "b"), expirationSeconds: 604_800 }), /^done$/],
    [
      "one for longer",
      () => ({ ...bound("Node", "b"), expirationSeconds: 604_801 }),
      /^403 .*valid for 604801 seconds; an agent may request at most 604800/,
    ],
    [
      "one for node a",
      () => bound("Node", "a"),
      /^403 .*would be bound to Node "a"; the agent of node "b" may only request tokens that are bound to that Node/,
    ],
    [
      "one for node b with the UID of node a",
      async () => bound("Node", "b", { uid: (await world.client.get(`${NODES}/a`)).metadata.uid }),
      /^409 /,
    ],
    [
      "one for a pod of node a",
      async () => {
        await requestNodeToken(world.client, "a");
        return bound("Pod", "berth-agent-a");
      },
      /^403 .*would be bound to Pod "berth-agent-a"/,
    ],
    ["one for a Secret", () => bound("Secret", "b"), /^403 .*would be bound to Secret "b"/],
    ["one that is bound to nothing", () => ({}), /^403 .*would be bound to no object/],
    [
      "the controller's",
      () => ({ ...bound("Node", "b"), account: "berth-controller" }),
      /^403 .*cannot create resource "serviceaccounts\/token"/,
    ],
  ])("asks for %s", async (_, request, wanted) => {
    expect(await attempt(await createHostToken(world.client, "b"), await request())).toMatch(wanted);
  });

  it("gets nothing with the token of a DaemonSet's pod, nor with one that names no node", async () => {
    const own = bound("Node", "b");
    expect(await attempt(await requestNodeToken(world.client, "b"), own)).toMatch(
      /^403 .*the agent of pod "berth-agent-b" may not request tokens/,
    );
    expect(await attempt(await createToken(world.client), own)).toMatch(
      /^403 .*names no node, found authentication\.kubernetes\.io\/credential-id; create one with: kubectl/,
    );
  });

  it("has a token that ends with its Node", async () => {
    await world.client.create(NODES, nodeObject("c"));
    const token = await createHostToken(world.client, "c");
    await world.client.delete(`${NODES}/c`);
    await expect.poll(() => tryToken(token), { timeout: 30_000, interval: 1_000 }).toMatch(/^401 /);
  });
});
