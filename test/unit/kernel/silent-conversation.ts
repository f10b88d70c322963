/** A conversation with a kernel that says nothing: a test replaces its own part of it. */
import type { Conversation } from "../../../host/kernel/netlink/conversation.ts";

export const SILENT: Conversation = {
  request: () => [],
  requestAside: async () => [],
  dump: () => [],
  *stream() {},
  pipeline: () => [],
  batch: () => {},
};
