/**
 * The connection to the hub, a real API server: with tokens that are renewed, revoked and stolen, and with files of
 * other authorities. The kubeconfig is mounted as a kubelet mounts a Secret.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { collectionPath, objectPath } from "../../../../host/kubernetes/paths.ts";
import { messageOf } from "../../../../host/lib/describe.ts";
import { ADDRESS_RANGES, IP_POOLS } from "../../../../host/resources/collections.ts";
import { borrowPlane } from "../../../../test/cluster/borrow-plane.ts";
import { startControllerProcess } from "../../../../test/lab/cluster/controller-process.ts";
import { NAMESPACES, poolObject } from "../../../../test/lab/cluster/objects.ts";
import type { ControlPlane } from "../../../../test/lab/control-plane.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { readShared } from "../../blocks/hub.ts";
import { HubConnection } from "../../blocks/hub-connection.ts";
import { hubFailure } from "../../blocks/hub-failure.ts";
import { RANGES_MAP } from "../../blocks/own-ranges.ts";
import { addMember, createRange } from "../lab/hub.ts";

const RANGES = collectionPath(ADDRESS_RANGES);
const POOLS = collectionPath(IP_POOLS);
const CALL = { method: "GET", path: RANGES, patienceMs: 0 } as const;

let hub: ControlPlane;
let own: Kubeconfig;
let token: string;
let directory: string;
let connection: HubConnection;

interface Kubeconfig {
  readonly clusters: readonly { readonly name: string; readonly cluster: Readonly<Record<string, unknown>> }[];
  readonly users: readonly { readonly user: { readonly token?: string } }[];
}

beforeAll(async () => {
  hub = await borrowPlane();
  token = await addMember(hub.client, "east");
  const isServed = () =>
    hub.client.get(collectionPath(ADDRESS_RANGES)).then(
      () => true,
      () => false,
    );
  await until("the hub serves ranges", isServed);
  own = JSON.parse(await readFile(await hub.writeKubeconfig("range-east", { token }), "utf8"));
});
afterAll(() => hub?.stop());

/** A token that no output may have, in any part. */
const partsOf = (secret: string) => [secret, secret.split(".")[1] ?? "", secret.split(".")[2] ?? ""];

beforeEach(async () => {
  directory = temporaryDirectory("berth-hub-", onTestFinished);
  const kubeconfig = join(directory, "kubeconfig");
  await symlink(join("..data", "kubeconfig"), kubeconfig);
  connection = new HubConnection({ kubeconfig, userAgent: "test", random: Math.random });
});
afterEach(async () => {
  await connection.close();
});

/** As a kubelet does when the Secret has changed: a new folder, and then the link to it. */
async function mount(config: object): Promise<void> {
  const folder = `..${randomUUID()}`;
  await mkdir(join(directory, folder));
  await writeFile(join(directory, folder, "kubeconfig"), JSON.stringify(config));
  await symlink(folder, join(directory, "..data_tmp"));
  await rename(join(directory, "..data_tmp"), join(directory, "..data"));
}

const withUser = (user: object) => ({ ...own, users: own.users.map((each) => ({ ...each, user })) });
const withCluster = (change: object) => ({
  ...own,
  clusters: own.clusters.map(({ name, cluster }) => ({ name, cluster: { ...cluster, ...change } })),
});

/** Returns the hub's answer, or the error of asking it. */
const ask = (): Promise<unknown> => connection.call(CALL).then(({ kind }) => kind, messageOf);

it("a hub whose kubeconfig is not there yet, or wrong, is asked as soon as it can be", async () => {
  expect(await ask()).toMatch(/^file ".*kubeconfig": .*cannot be read \(ENOENT\)/);
  await mount({ clusters: [] });
  expect(await ask()).toMatch(/^file ".*kubeconfig"/);
  await mount(own);
  expect(await ask()).toBe("AddressRangeList");
});

it.each<[what: string, change: object, why: RegExp]>([
  [
    "is not verified",
    { "insecure-skip-tls-verify": true, "certificate-authority": undefined },
    /insecure-skip-tls-verify": found true, want a hub whose certificate is verified/,
  ],
  [
    "is of no known authority",
    { "certificate-authority": undefined },
    /self.signed|unable to (?:verify|get local issuer)/,
  ],
])("a hub that %s is sent nothing", async (_what, change, why) => {
  await mount(withCluster(change));
  expect(await ask()).toMatch(why);
});

it("a hub that does not serve the kind, lacks the range, refuses the token or is not verified any more is told apart", async () => {
  await mount(own);
  const absent = connection.call({ ...CALL, path: objectPath(ADDRESS_RANGES, { name: "lan" }) });
  await expect(absent).rejects.toThrow(/addressranges.ipam.vendor.io "lan" not found/);
  const unserved = connection.call({ ...CALL, path: RANGES.replace("/v1/", "/v9/") });
  expect(await unserved.catch(hubFailure)).toMatchObject({ reason: "OtherVersion" });
  await mount(withUser({ token: "expired" }));
  const refused = () => readShared(connection, "lan").catch((error: unknown) => error);
  await expect.poll(refused, { timeout: 20_000 }).toMatchObject({ reason: "TokenRefused" });
  await mount(withCluster({ "insecure-skip-tls-verify": true, "certificate-authority": undefined }));
  await expect.poll(refused, { timeout: 20_000 }).toMatchObject({ reason: "HubNotTrusted" });
});

it("a controller that leases shows its token neither in its log, nor its problems, nor its objects", async () => {
  const file = join(directory, "kubeconfig");
  const secret = { "kubeconfig.json": JSON.stringify(own) };
  await hub.client.create(`${NAMESPACES}/kube-system/secrets`, {
    ...{ apiVersion: "v1", kind: "Secret", metadata: { name: "berth-hub" }, stringData: secret },
  });
  await createRange(hub.client, "lan", { subnet: "10.6.0.0/24", blockSize: 28 }, { east: 4 });
  await hub.client.create(POOLS, poolObject({ name: "lan", subnet: "10.6.0.0/24", source: { range: "lan" } }));
  await hub.client.apply(`${NAMESPACES}/kube-system/configmaps/${RANGES_MAP}`, {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: RANGES_MAP } },
  });
  const args = ["--hub-kubeconfig", file, "--hub-member", "east", "--log-level", "trace"];
  const controller = await startControllerProcess({ kubeconfig: hub.kubeconfig, name: "a", args });
  try {
    const seen: string[] = [];
    const problem = async () => {
      const text = JSON.stringify((await controller.ask("/v1/status")).body);
      seen.push(text);
      return text;
    };
    await until("it misses its kubeconfig", async () => (await problem()).includes("cannot be read"));
    await mount(withUser({ token: `${token}x` }));
    await until("it is refused", async () => (await problem()).includes("refuses this cluster's token"), 60_000);
    await mount(own);
    const blocks = async () => (await hub.client.get(`${POOLS}/lan`)).status?.source?.blocks ?? [];
    await until("it has leased", async () => (await blocks()).length > 0, 60_000);
    const written = [POOLS, RANGES, `${NAMESPACES}/kube-system/configmaps`, "/api/v1/events"];
    const objects = JSON.stringify(await Promise.all(written.map((path) => hub.client.get(path))));
    expect(objects).toContain('"range":"lan"');
    const all = [controller.output(), ...seen, objects].join("\n");
    const used = [token, ...own.users.map(({ user }) => user.token ?? "")];
    for (const part of used.flatMap(partsOf)) {
      expect(part.length).toBeGreaterThan(40);
      expect(all.includes(part)).toBe(false);
    }
  } finally {
    await controller.stop();
  }
});
