/**
 * Which Markdown files of the repository are pages of the site, and under which names: those of docs at the top, with
 * docs/README.md as the first page; those at the repository's top in project; others at their place.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import manifest from "../../package.json" with { type: "json" };
import { root } from "../setup/paths.mjs";

/** Patterns of Markdown files that are no pages. */
export const NO_PAGES = ["scripts/**", "**/{target,build,node_modules,__pycache__}/**"];

/** Returns the page's name, `runbooks.md`, of a file of the repository, `docs/runbooks.md`. */
export function pageOf(file: string): string {
  // Apart: names of docs differ from some of these in capitals alone.
  if (!file.includes("/")) return `project/${file.toLowerCase()}`;
  return file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

/**
 * Returns a link of the site for one in the file `from` of the repository: to a page, with a slash in front, or to the
 * file at the project's home.
 */
export function linkOf(href: string, from: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const target = join(dirname(from), path).replace(/\/$/, "");
  const readme = join(target, "README.md");
  const file = existsSync(join(root, readme)) ? readme : target;
  const isPage = file.endsWith(".md") && !file.startsWith("scripts/");
  const place = isPage ? `/${pageOf(file)}` : `${manifest.homepage}/${target}`;
  return anchor === undefined ? place : `${place}#${anchor}`;
}

export interface Group {
  readonly text: string;
  readonly items: readonly { readonly text: string; readonly link: string }[];
}

/** Returns the groups of docs/README.md: its sections with the pages that they name, by these pages' titles. */
export function readGroups(): Group[] {
  const index = "docs/README.md";
  const sections = readFileSync(join(root, index), "utf8").split(/^## /m).slice(1);
  return sections.map((section) => {
    const links = [...section.matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, path = ""]) => path);
    const items = [...new Set(links)].map((link) => {
      const file = join(dirname(index), link);
      return { text: titleOf(readFileSync(join(root, file), "utf8")), link: linkOf(link, index) };
    });
    return { text: section.split("\n")[0] ?? "", items };
  });
}

function titleOf(text: string): string {
  return (/^# (.*)$/m.exec(text)?.[1] ?? "").replaceAll("`", "");
}
