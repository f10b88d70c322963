/** Helm, run on a copy of the chart: the repository's has its CRDs behind a symbolic link, which Helm warns about. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { KUBERNETES_SCHEMAS, referenceTool, root } from "../setup/paths.mjs";
import { CHART } from "./generated-values.ts";

export interface ChartCopy extends Disposable {
  readonly directory: string;
}

/** Copies the chart of a tree into a temporary folder. */
export function copyChart(tree = root): ChartCopy {
  const place = mkdtempSync(join(tmpdir(), "berth-chart-"));
  const directory = join(place, "berth");
  cpSync(join(tree, CHART), directory, { recursive: true, dereference: true });
  return { directory, [Symbol.dispose]: () => rmSync(place, { recursive: true }) };
}

/** Returns Helm's output. Throws with its error output; says how to get Helm if it is missing. */
export function runHelm(...args: readonly string[]): string {
  const helm = join(referenceTool("helm").directory, "helm");
  if (!existsSync(helm)) throw new Error(`${helm} is missing; run: node scripts/setup.mjs chart`);
  return execFileSync(helm, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
}

export interface Release {
  readonly name: string;
  readonly namespace: string;
  /** `app.kubernetes.io/managed-by`. Default: Helm. */
  readonly managedBy?: string;
}

/** The plain manifests are those of this release. */
export const PLAIN_RELEASE: Release = { name: "berth", namespace: "kube-system", managedBy: "kubectl" };

/**
 * Returns the rendered documents with their comments, joined for each template: `rbac.yaml`. Hooks are left out
 * unless they are asked for.
 */
export function renderChart(
  { directory }: Pick<ChartCopy, "directory">,
  { name, namespace, managedBy }: Release,
  ...args: readonly string[]
) {
  const version = KUBERNETES_SCHEMAS.at(-1) ?? "";
  const words = ["--namespace", namespace, "--kube-version", version, "--no-hooks", ...args];
  if (managedBy !== undefined) words.push("--set", `commonLabels.app\\.kubernetes\\.io/managed-by=${managedBy}`);
  const documents = runHelm("template", name, directory, ...words).split(/^---\n/m);
  const files = new Map<string, string>();
  for (const document of documents) {
    const [, template, text = ""] = /^# Source: (\S+)\n(.*)$/s.exec(document) ?? [];
    if (template === undefined) continue;
    const file = basename(template);
    const before = files.get(file);
    files.set(file, before === undefined ? `${text.trimEnd()}\n` : `${before}---\n${text.trimEnd()}\n`);
  }
  return files;
}
