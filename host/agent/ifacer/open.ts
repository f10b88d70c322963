/**
 * The ifacer with what it holds: the node's namespace.
 * Effects: descriptors; changes of the node when there is something to take back.
 */
import { OWN_NETNS } from "../../kernel/netns.ts";
import { openNamespace } from "../../kernel/open-namespace.ts";
import type { Plugin } from "../plugin.ts";
import { type IfacerTools, takeBackMoves } from "./attach.ts";
import { MoveRecord } from "./move-record.ts";
import { createIfacerPlugin } from "./plugin.ts";

export interface OpenIfacer extends Disposable {
  readonly plugin: Plugin;
}

export interface OpenIfacerOptions extends Pick<IfacerTools, "faults" | "log" | "permission"> {
  readonly stateDirectory: string;
  readonly bootId: string;
}

/** Takes back what an agent before was doing when it was killed. Throws NetlinkError when the kernel refuses a socket. */
export async function openIfacer({ stateDirectory, bootId, ...rest }: OpenIfacerOptions): Promise<OpenIfacer> {
  const host = openNamespace(OWN_NETNS);
  const tools = { host, moves: new MoveRecord(stateDirectory, bootId), ...rest };
  await takeBackMoves(tools);
  return { plugin: createIfacerPlugin(tools), [Symbol.dispose]: () => host[Symbol.dispose]() };
}
