/** The components of other projects in the artifacts for one processor. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../setup/paths.mjs";
import { IMAGE_PACKAGES } from "../image.ts";
import { TRIPLES } from "../native.ts";
import pinned from "../sources.json" with { type: "json" };
import { type Architecture, readNode } from "../sources.ts";
import { TARBALL_PACKAGES } from "../tarball.ts";
import type { Component } from "./component.ts";
import { compilerRuntime, DebianTexts, debianComponent } from "./debian.ts";
import { nodeComponents } from "./node.ts";
import { npmComponents, readMetafile } from "./npm.ts";

export interface Inventory {
  readonly image: readonly Component[];
  readonly tarball: readonly Component[];
}

export async function takeInventory(architecture: Architecture): Promise<Inventory> {
  const node = await readNode(architecture);
  const directory = mkdtempSync(join(tmpdir(), "berth-inventory-"));
  try {
    return listComponents(architecture, node, new DebianTexts(directory));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function listComponents(architecture: Architecture, node: ReadonlyMap<string, Buffer>, texts: DebianTexts): Inventory {
  const { version } = pinned.node;
  const license = String(node.get("package/LICENSE"));
  const executable = node.get("package/bin/node") as Buffer;
  const inNode = nodeComponents({ version, versions: process.versions, executable, license, texts });
  const compiler = execFileSync(`${TRIPLES[architecture]}-gcc`, ["-dumpfullversion"], { encoding: "utf8" }).trim();
  const everywhere: Component[] = [
    ...npmComponents(root, readMetafile(join(root, "dist"))),
    parserInUndici(inNode),
    ...inNode,
    {
      ...{ type: "data", name: "Mozilla's CA certificates in Node.js", version },
      ...{ license: "MPL-2.0", text: texts.common("MPL-2.0") },
    },
    debianComponent("musl-dev", architecture, texts),
    compilerRuntime(compiler, texts),
  ];
  const withPackages = (names: readonly string[]) => [
    ...everywhere,
    ...names.map((name) => debianComponent(name, architecture, texts)),
  ];
  return { image: withPackages(IMAGE_PACKAGES), tarball: withPackages(TARBALL_PACKAGES) };
}

/** undici contains llhttp, and states neither its version nor its licence. */
function parserInUndici(inNode: readonly Component[]): Component {
  const { license = "", text = "" } = inNode.find(({ name }) => name === "llhttp") ?? {};
  return { type: "library", name: "llhttp", license, text, within: "undici" };
}
