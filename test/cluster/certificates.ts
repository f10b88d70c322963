/**
 * The certificates of the chart in a cluster of tests: its Secrets and rights, the options of its programs, and in
 * place of kubelets the Secrets' contents as files, which follow them.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { copyChart, PLAIN_RELEASE, renderChart } from "../../scripts/chart/helm.ts";
import { applyObject } from "../lab/apply.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";

const SECRETS = "/api/v1/namespaces/kube-system/secrets";
const FILES = ["tls.crt", "tls.key", "ca.crt"];
const KUBELET_MS = 200;

export type Component = "agent" | "controller";

export interface Certificates {
  /** Options of the component's program; the controller's also list the certificates that it renews. */
  readonly args: Readonly<Record<Component, readonly string[]>>;
  /** How a client verifies the component. */
  readonly trust: Readonly<Record<Component, { readonly caFile: string; readonly serverName: string }>>;
  stop(): Promise<void>;
}

/** `values` are for `helm --set`. Applies the rights of metrics and of the address map, too. */
export async function installCertificates({ client, plane }: World, values: string): Promise<Certificates> {
  using chart = copyChart();
  const files = renderChart(chart, PLAIN_RELEASE, "--set", values);
  const documents = ["metrics.yaml", "map.yaml"].flatMap((name) => parseAllDocuments(files.get(name) ?? ""));
  const objects = documents.map((document): KubeObject => document.toJS());
  for (const object of objects.filter(({ kind }) => /^(?:Secret|Role|RoleBinding|ClusterRole.*)$/.test(kind)))
    await applyObject(client, object);
  const rendered = files.get("controller.yaml") ?? "";
  const own = [...rendered.matchAll(/- (--(?:certificate-secret|authority-secret|agents-name)=\S+)/g)];
  const directoryOf = (component: Component) => join(plane.parts.directory, `${component}-tls`);
  const argsOf = (component: Component) => [
    ...["--metrics-cert-file", join(directoryOf(component), "tls.crt")],
    ...["--metrics-key-file", join(directoryOf(component), "tls.key")],
  ];
  const trustOf = (component: Component) => ({
    caFile: join(directoryOf(component), "ca.crt"),
    serverName: `berth-${component}.kube-system.svc`,
  });
  const both = ["agent", "controller"] as const;
  const stop = followSecrets(client, new Map(both.map((each) => [`berth-${each}-tls`, directoryOf(each)])));
  return {
    args: { agent: argsOf("agent"), controller: [...argsOf("controller"), ...own.map(([, arg = ""]) => arg)] },
    trust: { agent: trustOf("agent"), controller: trustOf("controller") },
    stop,
  };
}

/** Stands in for kubelets. Returns the function that ends it. */
function followSecrets(client: KubeClient, places: ReadonlyMap<string, string>): () => Promise<void> {
  for (const directory of places.values()) mkdirSync(directory, { recursive: true });
  let isOver = false;
  const follow = async () => {
    while (!isOver) {
      for (const [name, directory] of places) {
        // Mounted files stay when the Secret goes.
        const secret = await client.get(`${SECRETS}/${name}`).catch(() => undefined);
        writeFiles(directory, secret?.data);
      }
      await new Promise((resolve) => setTimeout(resolve, KUBELET_MS));
    }
  };
  const running = follow();
  return async () => {
    isOver = true;
    await running;
  };
}

function writeFiles(directory: string, data: Readonly<Record<string, string>> = {}): void {
  for (const name of FILES) {
    const text = data[name];
    if (text === undefined) continue;
    writeFileSync(join(directory, `.${name}`), Buffer.from(text, "base64"));
    renameSync(join(directory, `.${name}`), join(directory, name));
  }
}
