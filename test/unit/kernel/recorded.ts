/**
 * The kernel's answers to `ip` and `nft`, as recorded/<family>.txt has them: `$ command`, then type, flags and payload
 * of each message. They are of Linux 6.18; `kinds`, links that many kernels lack, are of 6.1.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../../../host/kernel/netlink/message.ts";

/** The bytes of each family's messages before their attributes. */
export const FIXED_BYTES = {
  ...{ link: 16, kinds: 16, address: 8, route: 12, rule: 12 },
  ...{ neighbour: 12, netconf: 4, nftables: 4 },
};

export type Family = keyof typeof FIXED_BYTES;

/** Returns the answers to the command, or to all of the family. */
export function answersTo(family: Family, command?: string): Message[] {
  const text = readFileSync(join(import.meta.dirname, "recorded", `${family}.txt`), "utf8");
  const rows = text.split(/^\$ /m).filter((row) => command === undefined || row.startsWith(`${command}\n`));
  return rows.flatMap((row) =>
    [...row.matchAll(/^< (\d+) (\w+) (\w+)$/gm)].map(([, type, flags, payload = ""]) => ({
      ...{ type: Number(type), flags: Number(flags), sequence: 0, payload: Uint8Array.fromHex(payload) },
    })),
  );
}
