/**
 * The ifacer with what it holds: the node's namespace.
 * Called by agent.ts.
 * Effects: descriptors.
 */
import { openNamespace } from "../../kernel/open-namespace.ts";
import type { Plugin } from "../plugin.ts";
import type { IfacerTools } from "./attach.ts";
import { createIfacerPlugin } from "./plugin.ts";

export interface OpenIfacer extends Disposable {
  readonly plugin: Plugin;
}

/** The namespace that the agent runs in: the node's. */
const OWN_NETNS = "/proc/thread-self/ns/net";

/** Throws NetlinkError when the kernel refuses a socket. */
export function openIfacer({ faults, log }: Omit<IfacerTools, "host">): OpenIfacer {
  const host = openNamespace(OWN_NETNS);
  return { plugin: createIfacerPlugin({ host, faults, log }), [Symbol.dispose]: () => host[Symbol.dispose]() };
}
