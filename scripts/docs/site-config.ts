/** The site of the documentation: the repository's Markdown files, at any address. */
import { relative } from "node:path";
import { defineConfig, type MarkdownRenderer, type UserConfig } from "vitepress";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";
import { anchorOf } from "./anchor.ts";
import { linkOf, NO_PAGES, pageOf, readGroups } from "./site-pages.ts";

/** Makes links of the repository those of the site, and names images as files beside the page. */
function followFiles(md: MarkdownRenderer): void {
  md.core.ruler.push("repository_links", ({ tokens, env }) => {
    const from = relative(root, env.realPath ?? env.path);
    for (const token of tokens.flatMap((token) => [token, ...(token.children ?? [])])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href !== null) token.attrSet("href", linkOf(href, from));
      if (token.type.startsWith("html_"))
        token.content = token.content.replace(/(src|srcset)="(?=\w[^:"]*")/g, '$1="./');
    }
  });
}

/** Pages for users are found first. Called by the browser, from this function's text. */
const boostDocument = (page: string): number =>
  /\/(?:decisions|develop|project|test|embeddings)\//.test(page) ? 0.3 : 1;

/** Writes packages.json beside the pages: the folders of the npm packages whose code is in the site. */
function listPackages(): NonNullable<NonNullable<UserConfig["vite"]>["plugins"]>[number] {
  return {
    name: "packages",
    generateBundle(_options, bundle) {
      if (this.environment.name !== "client") return;
      const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
      const folders = modules.flatMap((id) => /node_modules\/(?:@[^/]+\/)?[^/]+(?!.*node_modules)/.exec(id) ?? []);
      const source = JSON.stringify([...new Set(folders)].sort());
      this.emitFile({ type: "asset", fileName: "packages.json", source });
    },
  };
}

export default defineConfig({
  title: "Berth",
  description: manifest.description,
  lang: "en",
  base: "./",
  head: [["link", { rel: "icon", href: "data:," }]],
  srcDir: root,
  srcExclude: NO_PAGES,
  rewrites: pageOf,
  ignoreDeadLinks: "localhostLinks",
  markdown: { anchor: { slugify: anchorOf }, config: followFiles },
  // The index of the search.
  vite: { plugins: [listPackages()], build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    siteTitle: `Berth ${manifest.version}`,
    sidebar: readGroups().map(({ text, items }) => ({ text, items: [...items], collapsed: text === "For developers" })),
    outline: [2, 3],
    search: { provider: "local", options: { miniSearch: { searchOptions: { boostDocument } } } },
  },
});
