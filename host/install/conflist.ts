/** The network list that makes Berth's chain a host's default network. Replaces and removes only marked lists. */

import { basename, join } from "node:path";
import { decodeNetworkList } from "../config/network-definition.ts";
import { tryOr } from "../lib/try-or.ts";
import { findContent, listNames, makeDirectory, removeFile, writeFile } from "./files.ts";
import { InstallError, type Step } from "./step.ts";

/** A key of the list that runtimes ignore. */
const MARK_KEY = "installedBy";
const MARK = "berth-agent install";

interface ConflistOptions {
  readonly directory: string;
  /** The wanted list, by its file name; undefined for no list. */
  readonly wanted: { readonly name: string; readonly text: string } | undefined;
}

/**
 * Plans that exactly this list of Berth's exists. Throws InstallError if the file belongs to another program,
 * ConfigError for a list that no runtime could read.
 */
export function planConflist({ directory, wanted }: ConflistOptions): Step[] {
  const target = wanted && join(directory, basename(wanted.name));
  const old = listMarked(directory).filter((path) => path !== target);
  return [
    ...(target === undefined ? [] : planWrite(directory, target, wanted?.text ?? "")),
    ...old.flatMap(removeFile),
  ];
}

function planWrite(directory: string, target: string, text: string): Step[] {
  decodeNetworkList(text, target);
  const marked: object = { ...JSON.parse(text), [MARK_KEY]: MARK };
  const content = Buffer.from(`${JSON.stringify(marked, null, 2)}\n`);
  const current = findContent(target);
  if (current?.equals(content)) return [];
  if (current !== undefined && !isMarked(current.toString())) {
    throw new InstallError(`File ${target} was not written by Berth and is not replaced; choose another file name`);
  }
  return [...makeDirectory(directory), writeFile(target, content, 0o644)];
}

/** Returns the paths of the lists that Berth wrote. */
export function listMarked(directory: string): string[] {
  const paths = listNames(directory).filter((name) => name.endsWith(".conflist"));
  return paths.map((name) => join(directory, name)).filter((path) => isMarked(readText(path)));
}

/** Without a text for a dangling link. */
function readText(path: string): string {
  return tryOr(() => findContent(path)?.toString() ?? "", "");
}

function isMarked(text: string): boolean {
  return tryOr(() => Object(JSON.parse(text))[MARK_KEY] === MARK, false);
}
