/**
 * The npm packages: installed by `npm ci` when node_modules differs from package-lock.json. npm lists the installed
 * ones in node_modules/.package-lock.json; the two are compared package by package.
 * Effects: replaces node_modules.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { run, SetupError } from "./command.mjs";
import { root } from "./paths.mjs";

function packagesOf(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).packages : {};
}

/**
 * npm leaves out optional packages that are made for another machine, and those that only they need.
 * So an optional package is missed only when it is made for a kind of machine, and that kind is this one.
 */
function isMissed(entry) {
  if (entry.optional !== true) return true;
  const allows = (list, value) => list === undefined || [list].flat().includes(value);
  const isForSome = entry.os !== undefined || entry.cpu !== undefined;
  return (
    isForSome && allows(entry.os, process.platform) && allows(entry.cpu, process.arch) && allows(entry.libc, "glibc")
  );
}

/** Whether the packages `installed` are those that the lock file wants; both are npm's "packages" objects, by path. */
export function meetsLock(wanted, installed) {
  const isMet = ([path, entry]) =>
    path === "" || (installed[path] === undefined ? !isMissed(entry) : installed[path].version === entry.version);
  return Object.entries(wanted).every(isMet) && Object.keys(installed).every((path) => path in wanted);
}

function isInstalled() {
  const wanted = packagesOf(join(root, "package-lock.json"));
  const installed = packagesOf(join(root, "node_modules", ".package-lock.json"));
  return meetsLock(wanted, installed) && existsSync(join(root, "node_modules", ".bin", "node"));
}

export function npmStep() {
  return {
    name: "npm packages",
    isCurrent: isInstalled,
    run: () => {
      const { npm_execpath: npm, npm_node_execpath: node } = process.env;
      if (npm === undefined || node === undefined) run("npm", ["ci"]);
      else run(node, [npm, "ci"]);
      if (isInstalled()) return;
      throw new SetupError(
        "npm ci left something out",
        "node_modules differs from package-lock.json",
        "npm ci --verbose",
      );
    },
  };
}
