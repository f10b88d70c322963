/** A conversation with a kernel that says nothing: what a test is about replaces a part of it. */
import type { Conversation } from "../../../host/kernel/netlink/conversation.ts";

export const SILENT: Conversation = {
  request: () => [],
  requestAside: async () => [],
  dump: () => [],
  *stream() {},
  pipeline: () => [],
  batch: () => {},
};
