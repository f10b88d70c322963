/**
 * `npm run docs`: writes the site of the documentation into dist/site, or into the folder that is given. It needs no
 * network.
 */
import { join } from "node:path";
import { build } from "vitepress";
import { root } from "../setup/paths.mjs";

const [outDir = join(root, "dist", "site")] = process.argv.slice(2);
await build(join(root, "scripts", "docs"), { outDir });
