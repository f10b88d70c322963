/** The links that planners find on the node, and their refusals, which are thrown before anything is changed. */
import { refuseInterface } from "../cni/error.ts";
import { findClosest } from "../lib/closest.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";

export function refuse(text: string): never {
  refuseInterface(text);
}

export function findLink({ links }: NamespaceState, name: string): LinkState | undefined {
  return links.find((link) => link.name === name);
}

/** Returns an interface that the definition names. Throws CniError 106 if the node has no interface of that name. */
export function requireInterface(host: NamespaceState, name: string): LinkState {
  const link = findLink(host, name);
  if (link !== undefined) return link;
  const names = host.links.filter(({ loopback }) => !loopback).map((each) => each.name);
  const closest = findClosest(name, names);
  const hint = closest === undefined ? "" : `; did you mean "${closest}"?`;
  return refuse(`Interface "${name}" of "interfaces" does not exist on this node${hint}`);
}

/** Describes the kind of a link. */
export function kindOf({ kind, loopback }: LinkState): string {
  if (kind !== "") return `of kind ${kind}`;
  return loopback ? "the loopback" : "a physical device";
}
