/** The address map of a cluster, served to other machines: who may see it, what a tenant sees, and the page in a browser, on a real API server. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { addressesAnswer, poolsAnswer, searchAnswer } from "../../host/records/map-records.ts";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { applyObject } from "../../scripts/lab/apply.ts";
import { type LabPage, visitPage } from "../../scripts/lab/browser.ts";
import { type ControllerProcess, startControllerProcess } from "../../scripts/lab/cluster/controller-process.ts";
import { writeControllerKubeconfig } from "../../scripts/lab/cluster/in-process.ts";
import { NAMESPACES, namespaceObject } from "../../scripts/lab/cluster/objects.ts";
import { startWorld, type World } from "../../scripts/lab/cluster/world.ts";
import type { KubeObject } from "../../scripts/lab/kube-client.ts";
import { eventually } from "../../scripts/lab/netns-world.ts";
import { KINDS, type Kind, type MapModel, readMap } from "../../web/map-model.ts";
import { borrowPlane } from "./borrow-plane.ts";

const HOSTILE = `<script>document.title="owned"</script>`;
const RIGHTS = "rbac.authorization.k8s.io/v1";

let world: World;
let controller: ControllerProcess;
let url: string;
let token: { readonly operator: string; readonly tenant: string; readonly stranger: string };

/** The rights of the chart to review tokens. */
function reviewRights(): KubeObject[] {
  using chart = copyChart();
  const text = renderChart(chart, PLAIN_RELEASE, "--set", "metrics.enabled=true,metrics.tlsSecret=own").get(
    "metrics.yaml",
  );
  return parseAllDocuments(text ?? "")
    .map((document): KubeObject => document.toJS())
    .filter(({ kind }) => kind.startsWith("ClusterRole"));
}

async function createToken(name: string): Promise<string> {
  const accounts = `${NAMESPACES}/viewers/serviceaccounts`;
  await world.client.create(accounts, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  return (await world.client.create(`${accounts}/${name}/token`, request)).status.token;
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
  for (const object of reviewRights()) await applyObject(client, object);
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
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(plane.parts.directory, `map-${name}`));
  const pair = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", `${key}`];
  execFileSync("openssl", ["req", "-x509", ...pair, "-out", `${cert}`, "-subj", "/CN=berth"], { stdio: "ignore" });
  const args = ["--map-listen", "*:0", "--metrics-cert-file", `${cert}`, "--metrics-key-file", `${key}`];
  // Another replica leads, for an hour at least: nothing collects the addresses of pods that do not exist.
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "berth-controller" } };
  const spec = { holderIdentity: "other", leaseDurationSeconds: 3_600, renewTime: "2099-01-01T00:00:00.000000Z" };
  await client.create("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", { ...lease, spec });
  args.push("--lease-duration", "3600");
  controller = await startControllerProcess({ kubeconfig: await writeControllerKubeconfig(plane), name: "one", args });
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
  await controller?.kill();
  await world?.stop();
});

interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/** Asks as curl does, which takes the certificate as it is. */
function ask(path: string, bearer?: string): Answer {
  const headers = bearer === undefined ? [] : ["-H", `authorization: Bearer ${bearer}`];
  const output = execFileSync("curl", ["-sk", "-w", "%{http_code}", ...headers, `${url}/api/v1/${path}`]);
  return { status: Number(output.subarray(-3).toString()), body: output.subarray(0, -3) };
}

const read = (path: string, bearer: string): unknown => JSON.parse(ask(path, bearer).body.toString());

function kindsOf(model: MapModel): readonly (Kind | undefined)[] {
  return [10, 11, 12, 13, 14].map((number) => KINDS[model.kindAt(number)]);
}

describe("the map for other machines", () => {
  it("is for users who may list IPAllocations, or pods of a namespace that they name", () => {
    const statuses = (path: string) =>
      [token.operator, token.tenant, token.stranger, "made-up", undefined].map((bearer) => ask(path, bearer).status);
    expect(statuses("pools")).toEqual([200, 403, 403, 401, 401]);
    expect(statuses("pools?namespace=shop")).toEqual([200, 200, 403, 401, 401]);
    expect(statuses("pools?namespace=mail")).toEqual([200, 403, 403, 401, 401]);
    expect(statuses("map?pool=blue&namespace=mail&namespace=shop")).toEqual([200, 200, 403, 401, 401]);
  });

  it("shows an operator all states and names", async () => {
    const model = readMap(ask("map?pool=blue", token.operator).body);
    expect(kindsOf(model)).toEqual(["Bound", "Bound", "Bound", "Cooling", "Free"]);
    const { addresses } = searchAnswer.parse(read("search?q=imap", token.operator));
    expect(addresses).toMatchObject([{ address: "10.6.0.11", holders: [{ namespace: "mail", pod: "imap-0" }] }]);
  });

  it("shows a tenant the addresses of the namespace, and of others only that they are in use", async () => {
    const model = readMap(ask("map?pool=blue&namespace=shop&namespace=mail", token.tenant).body);
    expect(kindsOf(model)).toEqual(["Bound", "InUse", "Bound", "InUse", "Free"]);
    const all = ask("addresses?pool=blue&first=10.6.0.0&last=10.6.0.255&namespace=shop&namespace=mail", token.tenant);
    const { addresses } = addressesAnswer.parse(JSON.parse(all.body.toString()));
    expect(addresses.map(({ state, holders }) => [state, holders[0]?.pod])).toEqual([
      ["Bound", "web-0"],
      ["InUse", undefined],
      ["Bound", HOSTILE],
      ["InUse", undefined],
    ]);
    expect(all.body.toString()).not.toMatch(/mail|imap/);
    for (const text of ["imap", "mail", "n1"]) {
      const found = searchAnswer.parse(read(`search?q=${text}&namespace=shop`, token.tenant));
      expect(found.addresses.filter(({ state }) => state === "InUse")).toEqual([]);
    }
    const { pools, canExplain } = poolsAnswer.parse(read("pools?namespace=shop", token.tenant));
    expect([pools[0]?.states, canExplain]).toEqual([{ Bound: 2, InUse: 2 }, false]);
  });

  it("serves no other site's page, and nothing without TLS", () => {
    const { port } = new URL(url);
    expect(() => execFileSync("curl", ["-sf", `http://localhost:${port}/`], { stdio: "ignore" })).toThrow();
  });
});

async function shows({ page }: LabPage, selector: string, wanted: string): Promise<void> {
  const find = async () => (await page.textContent(selector)) ?? "";
  expect(await eventually(find, (found) => found.includes(wanted), 20_000)).toContain(wanted);
}

describe("the page", () => {
  it("asks a tenant for a token, shows what the tenant may see, and follows the cluster", () =>
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
        await shows(visit, "#chosen", "kubectl berth history 10.6.0.12");
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
});
