/** The components of other projects in the artifacts for one processor. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Site } from "../../docs/site.ts";
import { root } from "../../setup/paths.mjs";
import { IMAGE_PACKAGES } from "../image.ts";
import { TRIPLES } from "../native.ts";
import pinned from "../sources.json" with { type: "json" };
import { type Architecture, readNode } from "../sources.ts";
import { TARBALL_PACKAGES } from "../tarball.ts";
import type { Component } from "./component.ts";
import { compilerRuntime, DebianTexts, debianComponent } from "./debian.ts";
import { nodeComponents } from "./node.ts";
import { npmComponent, npmComponents, readMetafile } from "./npm.ts";

export interface Inventory {
  readonly image: readonly Component[];
  readonly tarball: readonly Component[];
  /** Of berthctl as one file: Node.js, the npm packages and the core. */
  readonly berthctl: readonly Component[];
}

export async function takeInventory(architecture: Architecture, site: Site): Promise<Inventory> {
  const node = await readNode(architecture);
  const directory = mkdtempSync(join(tmpdir(), "berth-inventory-"));
  try {
    return listComponents({ architecture, node, texts: new DebianTexts(directory), site });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

interface Sources {
  readonly architecture: Architecture;
  readonly node: ReadonlyMap<string, Buffer>;
  readonly texts: DebianTexts;
  readonly site: Site;
}

function listComponents({ architecture, node, texts, site }: Sources): Inventory {
  const { version } = pinned.node;
  const license = String(node.get("package/LICENSE"));
  const executable = node.get("package/bin/node") as Buffer;
  const inNode = nodeComponents({ version, versions: process.versions, executable, license, texts });
  const compiler = execFileSync(`${TRIPLES[architecture]}-gcc`, ["-dumpfullversion"], { encoding: "utf8" }).trim();
  const berthctl: Component[] = [
    ...npmComponents(root, readMetafile(join(root, "dist"))),
    parserInUndici(inNode),
    ...inNode,
    {
      ...{ type: "data", name: "Mozilla's CA certificates in Node.js", version },
      ...{ license: "MPL-2.0", text: texts.common("MPL-2.0") },
    },
  ];
  const everywhere = [...berthctl, debianComponent("musl-dev", architecture, texts), compilerRuntime(compiler, texts)];
  const withPackages = (names: readonly string[]) => [
    ...everywhere,
    ...names.map((name) => debianComponent(name, architecture, texts)),
  ];
  const ofSite = site.packages.map((path) => npmComponent(join(root, path)));
  return { image: withPackages(IMAGE_PACKAGES), tarball: [...withPackages(TARBALL_PACKAGES), ...ofSite], berthctl };
}

/** undici contains llhttp, and states neither its version nor its licence. */
function parserInUndici(inNode: readonly Component[]): Component {
  const { license = "", text = "" } = inNode.find(({ name }) => name === "llhttp") ?? {};
  return { type: "library", name: "llhttp", license, text, within: "undici" };
}
