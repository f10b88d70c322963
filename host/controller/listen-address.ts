/**
 * Where a controller may be asked, as the command line has it.
 */
import { formatIp, parseIp } from "../net/ip.ts";

export type ListenAddress =
  | { readonly kind: "off" }
  | { readonly kind: "loopback"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** What {@link parseListenAddress} takes, for errors. */
export const LISTEN_FORMS = "127.0.0.1:PORT, [::1]:PORT, unix:/PATH or off";

const LOOPBACK = /^(?:(?<v4>127(?:\.[0-9]+){3})|\[(?<v6>[0-9a-fA-F:]+)\]):(?<port>[0-9]{1,5})$/;

/** Undefined for anything else: what is told is for this machine. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text === "off") return { kind: "off" };
  if (/^unix:\/./.test(text)) return { kind: "unix", path: text.slice("unix:".length) };
  const { v4, v6, port = "" } = LOOPBACK.exec(text)?.groups ?? {};
  const ip = parseIp(v4 ?? v6 ?? "");
  if (ip === undefined || Number(port) > 65_535 || (ip.family === 6 && ip.value !== 1n)) return undefined;
  return { kind: "loopback", host: formatIp(ip), port: Number(port) };
}
