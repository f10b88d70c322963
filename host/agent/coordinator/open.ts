/**
 * The coordinator with what it holds: the node's namespace, the thread that deletes links, its logs.
 * Effects: descriptors, a thread, files of logs.
 */
import { openLinkRemover } from "../../kernel/link-remover.ts";
import { OWN_NETNS } from "../../kernel/netns.ts";
import { openNamespace } from "../../kernel/open-namespace.ts";
import type { QuarantineProber } from "../detection/quarantine-prober.ts";
import type { VerifiedAttachments } from "../detection/verified-attachments.ts";
import type { NicTools } from "../nic-definition.ts";
import type { Plugin } from "../plugin.ts";
import { CoordinatedAttachments } from "./attachments.ts";
import type { CoordinatorTools } from "./gather.ts";
import { openPluginLogs } from "./log-file.ts";
import { createCoordinatorPlugin, type WithdrawnAttachment } from "./plugin.ts";
import { refuseConflict } from "./refuse-conflict.ts";

export interface OpenCoordinator {
  readonly plugin: Plugin;
  readonly attachments: CoordinatedAttachments;
  /** Takes away what was made for the attachment, as its DEL would. */
  withdraw(attachment: WithdrawnAttachment): Promise<void>;
  close(): Promise<void>;
}

export interface OpenCoordinatorOptions extends Omit<CoordinatorTools, "host" | "remover"> {
  readonly keeper: QuarantineProber;
  readonly verified: VerifiedAttachments;
  readonly settingsFor: NicTools["settingsFor"];
  readonly nowMs: () => number;
  /** Where `/var/log/vendor/` of network definitions is on this machine. */
  readonly logDirectory: string;
}

/** Throws NetlinkError when the kernel refuses a socket. */
export function openCoordinator(options: OpenCoordinatorOptions): OpenCoordinator {
  const { log, nowMs, verified, logDirectory: directory } = options;
  const host = openNamespace(OWN_NETNS);
  const remover = openLinkRemover(host.entrance);
  const logs = openPluginLogs({ directory, log, nowMs });
  const attachments = new CoordinatedAttachments();
  const plugin = createCoordinatorPlugin({
    ...options,
    attachments,
    host,
    remover,
    pluginLog: (wanted) => logs.for(wanted),
    isVerified: (attachment, ip) => verified.has(attachment, ip),
    isShared: (attachment, ip) => verified.isShared(attachment, ip),
    refuseConflict: (...about) => refuseConflict(options, ...about),
  });
  return {
    plugin,
    attachments,
    withdraw: (attachment) => plugin.withdraw(attachment, options.settingsFor({ ...attachment, pod: undefined })),
    close: async () => {
      plugin[Symbol.dispose]();
      await remover.close();
      await logs.close();
      host[Symbol.dispose]();
    },
  };
}
