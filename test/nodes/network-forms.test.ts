/**
 * The forms of `k8s.v1.cni.cncf.io/networks`, read by a real Multus: it attaches the networks that Berth finds there.
 * The API server is the test's own, and the plugin of all networks only prints its call.
 */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ConfigError } from "../../host/config/config-error.ts";
import { decodeNetworkSelections } from "../../host/config/network-selection.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { runCommand } from "../lab/command.ts";
import { createNetns, type Netns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const PATHS =
  /^\/apis\/k8s\.cni\.cncf\.io\/v1\/namespaces\/(?<namespace>[^/]+)\/network-attachment-definitions\/(?<name>[ab])$/;

let server: Server;
let netns: Netns;
const dir = temporaryDirectory("forms-");
let networks = "";
let calls = 0;

beforeAll(async () => {
  netns = await createNetns(`forms-${process.pid}`);
  server = createServer(({ url = "" }, response) => {
    const [path = ""] = url.split("?");
    const object = objectAt(path);
    response.writeHead(object === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(object ?? { kind: "Status", apiVersion: "v1", status: "Failure", code: 404 }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "c", users: [{ name: "c", user: {} }] },
    clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
  };
  await writeFile(join(dir, "kubeconfig"), JSON.stringify(kubeconfig));
  const script = [
    "#!/bin/bash",
    `[[ $CNI_COMMAND == ADD ]] && echo "$CNI_IFNAME $(tr -d '\\n')" >> ${dir}/calls`,
    `echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'$CNI_IFNAME'", "sandbox": "s"}]}'`,
  ];
  await writeFile(join(dir, "tell"), `${script.join("\n")}\n`);
  await chmod(join(dir, "tell"), 0o755);
});
afterAll(async () => {
  server?.close();
  await netns?.delete();
});

/** The pod, and the definitions a and b of any namespace. */
function objectAt(path: string): object | undefined {
  const annotations = { "k8s.v1.cni.cncf.io/networks": networks };
  if (path.startsWith("/api/v1/namespaces/shop/pods/web"))
    return { kind: "Pod", apiVersion: "v1", metadata: { name: "web", namespace: "shop", uid: "u1", annotations } };
  const { namespace, name } = PATHS.exec(path)?.groups ?? {};
  if (name === undefined) return undefined;
  const config = JSON.stringify({ cniVersion: "0.4.0", name: `${namespace}.${name}`, type: "tell" });
  const kind = { kind: "NetworkAttachmentDefinition", apiVersion: "k8s.cni.cncf.io/v1" };
  return { ...kind, metadata: { name, namespace }, spec: { config } };
}

/** Returns the NICs that Multus attaches, each with its network; undefined if it refuses the pod. */
async function attachedByMultus(text: string): Promise<readonly string[] | undefined> {
  networks = text;
  await writeFile(join(dir, "calls"), "");
  const main = { cniVersion: "0.4.0", name: "main", type: "tell" };
  const conf = { cniVersion: "0.4.0", name: "multus", type: "multus", binDir: dir, cniDir: join(dir, "cni") };
  const outcome = await runCommand([join(referenceTool("multus").directory, "multus")], {
    stdin: JSON.stringify({ ...conf, kubeconfig: join(dir, "kubeconfig"), confDir: dir, delegates: [main] }),
    env: {
      ...{
        CNI_COMMAND: "ADD",
        CNI_CONTAINERID: `c${++calls}`,
        CNI_NETNS: netns.path,
        CNI_IFNAME: "eth0",
        CNI_PATH: dir,
      },
      CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=u1",
      PATH: process.env.PATH,
    },
  });
  if (outcome.exitCode !== 0) return undefined;
  const lines = (await readFile(join(dir, "calls"), "utf8")).trim().split("\n");
  return lines.slice(1).map((line) => {
    const at = line.indexOf(" ");
    return `${line.slice(0, at)} ${JSON.parse(line.slice(at)).name}`;
  });
}

it.each([
  "a",
  "ns/a@net7, b",
  " ns / a @ net3 ",
  "/a",
  "a@",
  "[]",
  ' [{"name": "a"}, {"name": "b", "namespace": "ns", "interface": "net7"}]\n',
  '[{"name":"a","namespace":"","interface":""}]',
  '[{"name":"a","namespace":null,"interface":null,"mac":null,"ips":null,"cni-args":null,"default-route":null}]',
  '[{"name":"a","mac":"","infiniband-guid":"","deviceID":"","portMappings":null,"bandwidth":null,"ips":[]}]',
  '[{"name":"a","ipam-claim-reference":"","unknown":{"x":[1]},"x":1,"x":2}]',
  '[{"name":"a","interfaceRequest":"net7"}]',
  '[{"name":"a","interfaceRequest":"net7","interface":"net8"}]',
  '[{"name":"a","interfaceRequest":"net7","interface":""}]',
  '[{"name":"b","name":"a"}]',
  '[{"name":"a","name":null}]',
  '[{"name":"a","interface":"net8","interface":""}]',
  '[{"NAME":"b","name":"b","NAME":"a"}]',
  '[{"Name":"a","name\u017fpace":"no","Name\u017fpace":"ns"}]',
  '[{"name":"a","\u0131nterface":"net9"}]',
  '[{"name":"a","\\u006eamespace":"ns"}]',
])("Multus attaches the NICs that Berth reads in %j", async (text) => {
  const read = (decodeNetworkSelections(text, "x") ?? []).map(
    ({ namespace = "shop", name, interface: nic }, index) => `${nic ?? `net${index + 1}`} ${namespace}.${name}`,
  );
  expect(await attachedByMultus(text)).toEqual(read);
});

it.each([
  "a,",
  "a,B",
  "a/b/c",
  "a@b@c",
  "[{}]",
  '[{"name":""}]',
  "[null]",
  '["a"]',
  '[{"name":7}]',
  '[{"name":"a","interface":7}]',
  '{"name":"a"}',
  '"a"',
  '[{"name":"a"}',
])("Multus refuses a text that Berth cannot read, %j", async (text) => {
  expect(isWrong(text)).toBe(true);
  expect(await attachedByMultus(text)).toBeUndefined();
});

function isWrong(text: string): boolean {
  try {
    return decodeNetworkSelections(text, "x")?.some(({ fault }) => fault !== undefined) === true;
  } catch (error) {
    return error instanceof ConfigError;
  }
}
