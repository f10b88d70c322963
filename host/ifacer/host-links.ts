/**
 * Refusals of the planners: what is on the node is not what the definition needs.
 * Thrown by the files beside it before anything is done.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { findClosest } from "../lib/closest.ts";
import type { LinkState, NamespaceState } from "../plan/state.ts";

export function refuse(text: string): never {
  throw new CniError(ErrorCode.InterfaceRefused, text);
}

export function findLink({ links }: NamespaceState, name: string): LinkState | undefined {
  return links.find((link) => link.name === name);
}

/** An interface that the definition names. */
export function requireInterface(host: NamespaceState, name: string): LinkState {
  const link = findLink(host, name);
  if (link !== undefined) return link;
  const names = host.links.filter(({ loopback }) => !loopback).map((each) => each.name);
  const closest = findClosest(name, names);
  const hint = closest === undefined ? "" : `; did you mean "${closest}"?`;
  return refuse(`Interface "${name}" of "interfaces" is not on this node${hint}`);
}

/** The kind for people. */
export function kindOf({ kind, loopback }: LinkState): string {
  if (kind !== "") return `of kind ${kind}`;
  return loopback ? "the loopback" : "a device of the machine";
}
