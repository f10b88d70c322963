/**
 * The page of the chart: its command with its first values on an API server without nodes, where this test runs the
 * commands of hooks' pods; all its values.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { runHelm } from "../../../scripts/chart/helm.ts";
import { buildChart } from "../../../scripts/release/chart.ts";
import { referenceTool, root } from "../../../scripts/setup/paths.mjs";
import { readVersion, tagOf } from "../../../scripts/setup/version.mjs";
import { applyObject } from "../../lab/apply.ts";
import { definitionsCrd } from "../../lab/cluster/objects.ts";
import { runCommand } from "../../lab/command.ts";
import { type ControlPlane, startControlPlane } from "../../lab/control-plane.ts";
import type { KubeObject } from "../../lab/kube-client.ts";
import { executePart, partsAt, Workstation } from "./script.ts";

const NAMESPACE = "kube-system";
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const PODS = `${CORE}/pods`;
const FACTS = { version: readVersion(), description: "", revision: "", timeSeconds: 1_000_000_000 };
const PACKAGE = `berth-${tagOf(readVersion())}.tgz`;

/** The values on the page, in its order. */
const EXAMPLES = [...readFileSync(join(root, "docs/chart.md"), "utf8").matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = ""]) => text,
);

let plane: ControlPlane;
let workstation: Workstation;
const inHome = (name: string): string => join(workstation.home, name);

beforeAll(async () => {
  plane = await startControlPlane();
  workstation = new Workstation(plane.kubeconfig);
  for (const [name, content] of await buildChart(FACTS)) writeFileSync(inHome(name), content);
  for (const [index, text] of EXAMPLES.entries()) writeFileSync(inHome(`${index}.yaml`), text);
  await applyObject(plane.client, definitionsCrd() as KubeObject);
});

afterAll(async () => {
  workstation?.[Symbol.dispose]();
  await plane?.stop();
});

/** Runs the container of a hook with the token of its account, and reports its end, as the kubelet does. */
async function runHook({ metadata, spec }: KubeObject): Promise<void> {
  const { containers, serviceAccountName, volumes } = spec;
  const { data } = await plane.client.get(`${CORE}/configmaps/${volumes[0].configMap.name}`);
  const directory = inHome(metadata.name);
  mkdirSync(directory);
  for (const [name, content] of Object.entries(data)) writeFileSync(join(directory, name), String(content));
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7_200 } };
  const { status } = await plane.client.create(`${CORE}/serviceaccounts/${serviceAccountName}/token`, request);
  const kubeconfig = await plane.writeKubeconfig("hook", { token: status.token });
  const args = containers[0].args.map((word: string) => word.replace("/hook", directory));
  const program = [process.execPath, join(root, "dist", "berth-controller.mjs")];
  const outcome = await runCommand([...program, ...args, "--kubeconfig", kubeconfig]);
  expect(outcome).toMatchObject({ exitCode: 0, stderr: "" });
  await plane.client.patch(`${PODS}/${metadata.name}/status`, { status: { phase: "Succeeded" } });
}

it.each(partsAt("helm"))("%s", async (_, part) => {
  writeFileSync(inHome("values.yaml"), EXAMPLES[0] ?? "");
  const { home, env } = workstation;
  const path = [referenceTool("helm").directory, env.PATH].join(":");
  const page = executePart(part, (argv) => runCommand(argv, { cwd: home, env: { ...env, PATH: path } }));
  const hooks = async (): Promise<KubeObject[]> => (await plane.client.get(PODS)).items;
  await expect.poll(hooks, { timeout: 60_000 }).toHaveLength(1);
  for (const hook of await hooks()) await runHook(hook);
  expect((await page).stdout).toContain("STATUS: deployed");
  const { spec } = await plane.client.get("/apis/ipam.vendor.io/v1/ippools/lan");
  expect(spec).toMatchObject(parse(EXAMPLES[0] ?? "").ipPools.lan);
  const definition = `/apis/k8s.cni.cncf.io/v1/namespaces/${NAMESPACE}/network-attachment-definitions/lan`;
  expect(JSON.parse((await plane.client.get(definition)).spec.config).plugins[0].master).toBe("eth0");
});

it.each(EXAMPLES.map((text, index) => [text, index] as const))("the chart accepts %j", (_, index) => {
  const words = ["--kube-version", "1.34.4", "--values", inHome(`${index}.yaml`)];
  expect(runHelm("template", "berth", inHome(PACKAGE), ...words)).toContain("eth0");
});
