/**
 * The address map of a cluster, served to other machines: its viewers, a tenant's view, and the page in a browser, on a
 * real API server.
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AGENTS_AUDIENCE } from "../../../../host/metrics/scrape-server.ts";
import { explanationRecord } from "../../../../host/records/explanation-record.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { type Certificates, type Component, installCertificates } from "../../../../test/cluster/certificates.ts";
import { applyObject } from "../../../../test/lab/apply.ts";
import { closeBrowser, shows, visitPage } from "../../../../test/lab/browser.ts";
import { type ControllerProcess, startControllerProcess } from "../../../../test/lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../../../../test/lab/cluster/in-process.ts";
import { NAMESPACES, NODES, namespaceObject } from "../../../../test/lab/cluster/objects.ts";
import { startWorld, type World } from "../../../../test/lab/cluster/world.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { eventually } from "../../../../test/lab/waiting.ts";
import { KINDS, type Kind, type MapModel, readMap } from "../../page/map-model.ts";
import { addressesAnswer, historyAnswer, poolsAnswer, searchAnswer } from "../../server/map-records.ts";
import { MAP_AUDIENCE } from "../../server/map-server.ts";

const HOSTILE = `<script>document.title="owned"</script>`;
const RIGHTS = "rbac.authorization.k8s.io/v1";

let world: World;
let controller: ControllerProcess;
let certificates: Certificates;
let url: string;
let agentsPort: string;
let token: { readonly operator: string; readonly tenant: string; readonly stranger: string };

async function createToken(name: string, audience: string = MAP_AUDIENCE): Promise<string> {
  const accounts = `${NAMESPACES}/viewers/serviceaccounts`;
  await world.client.apply(`${accounts}/${name}`, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } });
  const spec = { expirationSeconds: 7_200, audiences: [audience] };
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  return (await world.client.create(`${accounts}/${name}/token`, request)).status.token;
}

/** Creates the token that the kubelet puts into the controller's pod. */
async function createAgentsToken(audiences: readonly string[] = [AGENTS_AUDIENCE]): Promise<string> {
  const spec = { audiences, expirationSeconds: 7_200 };
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  const account = `${NAMESPACES}/kube-system/serviceaccounts/berth-controller`;
  return (await world.client.create(`${account}/token`, request)).status.token;
}

/** Lets an account of the namespace "viewers" list the resource: everywhere, or in a namespace. */
async function allow(account: string, apiGroup: string, resource: string, namespace?: string): Promise<void> {
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  const metadata = { name: `${account}-lists`, ...(namespace === undefined ? {} : { namespace }) };
  const rules = [{ apiGroups: [apiGroup], resources: [resource], verbs: ["list"] }];
  await applyObject(world.client, { apiVersion: RIGHTS, kind, metadata, rules } as unknown as KubeObject);
  const subjects = [{ kind: "ServiceAccount", name: account, namespace: "viewers" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind, name: metadata.name };
  const binding = { apiVersion: RIGHTS, kind: `${kind}Binding`, metadata, subjects, roleRef };
  await applyObject(world.client, binding as unknown as KubeObject);
}

/** A controller that leads does it, and ends before there is anything to collect. */
async function issueCertificates(kubeconfig: string): Promise<void> {
  const leader = await startControllerProcess({ kubeconfig, name: "leader", args: certificates.args.controller });
  const isThere = async () =>
    ["agent", "controller"].every((of) => existsSync(certificates.trust[of as Component].caFile));
  await eventually(isThere, Boolean, 60_000);
  await leader.stop();
}

async function bind(address: string, namespace: string, pod: string): Promise<void> {
  const holders = [{ namespace, pod, podUid: `u-${address}`, ifName: "eth0", node: "n1" }];
  await world.allocate(address, { pool: "blue", state: "Bound", holders });
}

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    pools: [{ name: "blue", subnet: "10.6.0.0/24", ips: ["10.6.0.10-10.6.0.99"] }],
  });
  const { client, plane } = world;
  for (const name of ["viewers", "shop", "mail"]) await client.apply(`${NAMESPACES}/${name}`, namespaceObject(name));
  certificates = await installCertificates(world, "map.enabled=true,map.service=true");
  const kubeconfig = await writeControllerKubeconfig(plane);
  await issueCertificates(kubeconfig);
  token = {
    operator: await createToken("operator"),
    tenant: await createToken("tenant"),
    stranger: await createToken("stranger"),
  };
  await allow("operator", "ipam.vendor.io", "ipallocations");
  await allow("tenant", "", "pods", "shop");
  await bind("10.6.0.10", "shop", "web-0");
  await bind("10.6.0.11", "mail", "imap-0");
  await bind("10.6.0.12", "shop", HOSTILE);
  await world.allocate("10.6.0.13", { pool: "blue", state: "Cooling", holders: [] });
  const { args: tls, trust } = certificates;
  const { agent } = await world.addNode("w1", { agent: { args: ["--metrics-listen", "*:0", ...tls.agent] } });
  const address = { type: "InternalIP", address: "127.0.0.1" };
  await client.patch(`${NODES}/w1/status`, { status: { addresses: [address] } });
  const portOf = () => /"metrics":"https:[^"]*:(?<port>\d+)"/.exec(agent.stderr())?.groups?.port ?? "";
  agentsPort = await eventually(async () => portOf(), Boolean, 60_000);
  const agentsToken = join(plane.parts.directory, "map-agents-token");
  writeFileSync(agentsToken, await createAgentsToken());
  const asking = [
    "--agents-token-file",
    agentsToken,
    "--agents-port",
    agentsPort,
    "--agents-ca-file",
    trust.agent.caFile,
  ];
  const args = ["--map-listen", "*:0", ...tls.controller, ...asking];
  // Another replica leads, for an hour at least: nothing collects the addresses of pods that do not exist.
  const spec = { holderIdentity: "other", leaseDurationSeconds: 3_600, renewTime: "2099-01-01T00:00:00.000000Z" };
  await client.patch("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/berth-controller", { spec });
  args.push("--lease-duration", "3600");
  controller = await startControllerProcess({ kubeconfig, name: "one", args });
  await eventually(
    async () => (await controller.status()).unread.length,
    (unread) => unread === 0,
    60_000,
  );
  expect((await controller.status()).isLeading).toBe(false);
  const port = /"map":"https:[^"]*:(?<port>\d+)"/.exec(controller.output())?.groups?.port;
  url = `https://localhost:${port}`;
}, 180_000);
afterAll(async () => {
  await closeBrowser();
  await certificates?.stop();
  await controller?.kill();
  await world?.stop();
});

interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/**
 * Asks as curl does, which verifies the certificate. This process is not blocked: the agent reaches the API server
 * through it.
 */
async function fetchFrom(of: Component, path: string, bearer?: string, ...more: string[]): Promise<Answer> {
  const { caFile } = certificates.trust[of];
  const [host, port] = of === "agent" ? ["berth-agent", agentsPort] : ["berth-map", new URL(url).port];
  const name = `${host}.kube-system.svc:${port}`;
  const headers = bearer === undefined ? [] : ["-H", `authorization: Bearer ${bearer}`];
  const words = ["-s", "--cacert", caFile, "--resolve", `${name}:127.0.0.1`, "-w", "%{http_code}", ...headers, ...more];
  const { stdout } = await promisify(execFile)("curl", [...words, `https://${name}${path}`], { encoding: "buffer" });
  return { status: Number(stdout.subarray(-3).toString()), body: stdout.subarray(0, -3) };
}

const ask = (path: string, bearer?: string): Promise<Answer> => fetchFrom("controller", `/api/v1/${path}`, bearer);

async function read(path: string, bearer: string): Promise<unknown> {
  return JSON.parse((await ask(path, bearer)).body.toString());
}

function kindsOf(model: MapModel): readonly (Kind | undefined)[] {
  return [10, 11, 12, 13, 14].map((number) => KINDS[model.kindAt(number)]);
}

describe("the map for other machines", () => {
  it("is for users who may list IPAllocations, or pods of a namespace that they name", async () => {
    const statuses = async (path: string) => {
      const found: number[] = [];
      for (const bearer of [token.operator, token.tenant, token.stranger, "made-up", undefined])
        found.push((await ask(path, bearer)).status);
      return found;
    };
    expect(await statuses("pools")).toEqual([200, 403, 403, 401, 401]);
    expect(await statuses("pools?namespace=shop")).toEqual([200, 200, 403, 401, 401]);
    expect(await statuses("pools?namespace=mail")).toEqual([200, 403, 403, 401, 401]);
    expect(await statuses("map?pool=blue&namespace=mail&namespace=shop")).toEqual([200, 200, 403, 401, 401]);
  });

  it("shows an operator all states and names", async () => {
    const model = readMap((await ask("map?pool=blue", token.operator)).body);
    expect(kindsOf(model)).toEqual(["Bound", "Bound", "Bound", "Cooling", "Free"]);
    const { addresses } = searchAnswer.parse(await read("search?q=imap", token.operator));
    expect(addresses).toMatchObject([{ address: "10.6.0.11", holders: [{ namespace: "mail", pod: "imap-0" }] }]);
  });

  it("shows a tenant the addresses of the namespace, and of others only that they are in use", async () => {
    const model = readMap((await ask("map?pool=blue&namespace=shop&namespace=mail", token.tenant)).body);
    expect(kindsOf(model)).toEqual(["Bound", "InUse", "Bound", "InUse", "Free"]);
    const all = await ask(
      "addresses?pool=blue&first=10.6.0.0&last=10.6.0.255&namespace=shop&namespace=mail",
      token.tenant,
    );
    const { addresses } = addressesAnswer.parse(JSON.parse(all.body.toString()));
    expect(addresses.map(({ state, holders }) => [state, holders[0]?.pod])).toEqual([
      ["Bound", "web-0"],
      ["InUse", undefined],
      ["Bound", HOSTILE],
      ["InUse", undefined],
    ]);
    expect(all.body.toString()).not.toMatch(/mail|imap/);
    for (const text of ["imap", "mail", "n1"]) {
      const found = searchAnswer.parse(await read(`search?q=${text}&namespace=shop`, token.tenant));
      expect(found.addresses.filter(({ state }) => state === "InUse")).toEqual([]);
    }
    const { pools, canExplain } = poolsAnswer.parse(await read("pools?namespace=shop", token.tenant));
    expect([pools[0]?.states, canExplain]).toEqual([{ Bound: 2, InUse: 2 }, true]);
  });

  it("takes no token of another audience, and its tokens are good for nothing else", async () => {
    const others = [await createToken("operator", "https://kubernetes.default.svc"), await createAgentsToken()];
    for (const each of others) expect((await ask("pools", each)).status).toBe(401);
    const { url: server, files } = world.plane;
    const words = ["-s", "--cacert", files.ca, "-w", "%{http_code}", "-H", `authorization: Bearer ${token.operator}`];
    const { stdout } = await promisify(execFile)("curl", [...words, `${server}/apis/ipam.vendor.io/v1/ipallocations`]);
    expect(stdout.slice(-3)).toBe("401");
  });

  it("lets one user follow changes with a few pages, and others with theirs", async () => {
    const path = "/api/v1/changes?pool=blue&namespace=shop";
    const follow = (bearer: string): Promise<number> =>
      fetchFrom("controller", path, bearer, "-m", "9").then(
        ({ status }) => status,
        ({ stdout }) => Number(stdout.slice(-3)),
      );
    const all = await Promise.all([...Array.from({ length: 5 }, () => token.tenant), token.operator].map(follow));
    expect([all.slice(0, 5).sort(), all[5]]).toEqual([[200, 200, 200, 200, 503], 200]);
  });

  it("answers one user so often, and others meanwhile", async () => {
    const eager = await createToken("eager");
    await allow("eager", "", "pods", "shop");
    const ten = Array.from({ length: 10 }, () => ask("history?address=10.6.0.99&namespace=shop", eager));
    expect((await Promise.all(ten)).map(({ status }) => status)).toEqual(ten.map(() => 200));
    const more = Array.from({ length: 40 }, () => ask("history?address=10.6.0.99&namespace=shop", eager));
    expect((await Promise.all(more)).map(({ status }) => status)).toContain(429);
    expect((await ask("pools?namespace=shop", token.tenant)).status).toBe(200);
    const calm = () => ask("pools?namespace=shop", eager);
    await eventually(calm, ({ status }) => status === 200, 30_000);
  });

  it("serves no other site's page, and nothing without TLS", () => {
    const { port } = new URL(url);
    expect(() => execFileSync("curl", ["-sf", `http://localhost:${port}/`], { stdio: "ignore" })).toThrow();
  });
});

it("the page asks a tenant for a token, shows the tenant's part, and follows the cluster", () =>
  visitPage(
    url,
    async (visit) => {
      const { page } = visit;
      await page.fill("#token", token.tenant);
      await page.fill("#namespaces", "shop");
      await page.click("#access button");
      await shows(visit, "#legend", "free: 86bound to a pod: 2in use: 2outside of the pool: 166");
      await page.fill("#query", "script");
      await page.press("#query", "Enter");
      await page.click("#results button");
      await shows(visit, "#chosen", `shop/${HOSTILE}, eth0, on n1`);
      await page.click("text=Which pod had this address?");
      await shows(visit, "#chosen", "The audit logs have no line about the address.");
      expect(await page.title()).toBe("Address map – Berth");
      await bind("10.6.0.20", "mail", "imap-1");
      await shows(visit, "#legend", "in use: 3");
      await world.release("10.6.0.20");
      await shows(visit, "#legend", "in use: 2");
      expect(await page.innerText("body")).not.toMatch(/mail|imap/);
      // The first request was without a token.
      expect(visit.errors.filter((error) => !error.includes("401"))).toEqual([]);
      expect(visit.foreign).toEqual([]);
    },
    { hasOwnCertificate: true },
  ));

describe("knowledge that only agents have", () => {
  const explain = async (pod: string, query: string, bearer: string): Promise<string> =>
    explanationRecord.parse(await read(`explain?in=shop&pod=${pod}${query}`, bearer)).lines.join("\n");
  let address: string;

  beforeAll(async () => {
    const { runtime } = world.node("w1");
    const before = await world.createPod({ name: "db-0", node: "w1" });
    [address = ""] = (await runtime.attach(before)).addresses;
    await world.createPod({ name: "db-1", node: "w1", annotations: { "ipam.vendor.io/ippool": '{"ipv4":["red"]}' } });
    await bind("10.6.0.30", "mail", "imap-2");
  });

  it("the page says: whose an address was, and why a pod cannot start", () =>
    visitPage(
      `${url}/#pool=blue&at=${address}`,
      async (visit) => {
        const { page } = visit;
        await page.fill("#token", token.operator);
        await page.click("#access button");
        await page.fill("#query", "db-0");
        await page.press("#query", "Enter");
        await page.click("#results button");
        await shows(visit, "#chosen", "shop/db-0, eth0, on w1");
        await page.click("text=Which pod had this address?");
        await shows(visit, "#chosen", "ADD: shop/db-0, eth0, on w1");
        await page.click("text=Why does this pod not start?");
        await shows(visit, "#explanation", "An ADD of the pod would succeed.");
        await page.fill("#pod", "shop/db-1");
        await page.press("#pod", "Enter");
        await shows(visit, "#explanation", "an ADD of eth0 now would be refused with code 100: ");
      },
      { hasOwnCertificate: true },
    ));

  it("a tenant gets the lines of the own namespace, and the outcome as the runtime has it", async () => {
    await world.pool("mailroom", { subnet: "10.7.0.0/24", default: true, namespaceName: ["mail"] });
    const whole = await eventually(
      () => explain("db-0", "", token.operator),
      (text) => text.includes("mailroom"),
      20_000,
    );
    expect(whole).toContain('eth0 IPv4 pool "mailroom": ');
    expect(await explain("db-0", "&namespace=shop", token.tenant)).toBe(
      `an ADD of eth0 now would get ${address} of pool "blue", which it has already, or had until just now`,
    );
    const refused = await explain("db-1", "&namespace=shop", token.tenant);
    expect(refused).toMatch(/^an ADD of eth0 now would be refused with code 100: .*pool "red" does not exist\n/);
    expect((await ask("explain?in=mail&pod=imap-0&namespace=shop&namespace=mail", token.tenant)).status).toBe(403);
    const history = async (bearer: string) =>
      historyAnswer.parse(await read(`history?address=${address}&namespace=shop`, bearer));
    const own = await history(token.tenant);
    expect(own.lines.map(({ audit, pod }) => [audit, pod])).toEqual([["ADD", "db-0"]]);
    expect(await history(token.operator)).toEqual(own);
    expect((await ask(`history?address=${address}`, token.stranger)).status).toBe(403);
  });

  it("nodes that do not answer are named; a tenant learns that lines may be missing", async () => {
    await world.client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "w2" } });
    const problems = async (bearer: string) =>
      historyAnswer.parse(await read(`history?address=${address}&namespace=shop`, bearer)).problems;
    expect(await problems(token.operator)).toEqual([
      "The agent of node w2 does not answer: the node has no InternalIP",
    ]);
    expect(await problems(token.tenant)).toEqual(["Lines may be missing."]);
    await world.client.delete(`${NODES}/w2`);
    const nowhere = await world.createPod({ name: "db-2", node: "" });
    expect(await explain(nowhere.name, "", token.operator)).toBe("Pod shop/db-2 is not bound to a node yet");
    expect(await explain("db-9", "", token.operator)).toBe("There is no pod shop/db-9");
  });

  it("an agent answers only tokens for agents, of an account with the right", async () => {
    const statuses = async (asked: readonly (readonly [path: string, bearer: string])[]) => {
      const found: number[] = [];
      for (const [path, bearer] of asked) found.push((await fetchFrom("agent", path, bearer)).status);
      return found;
    };
    const [own, apiServers] = [await createAgentsToken(), await createAgentsToken(["https://kubernetes.default.svc"])];
    const others = [own, apiServers, token.operator, "x"].map(
      (bearer) => [`/v1/history?address=${address}`, bearer] as const,
    );
    expect(await statuses(others)).toEqual([200, 401, 401, 401]);
    const paths = ["/v1/release?address=10.6.0.10", "/v1/allocations", "/metrics"].map((path) => [path, own] as const);
    expect(await statuses(paths)).toEqual([404, 404, 401]);
  });
});
