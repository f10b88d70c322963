/**
 * Datagrams between this code and a real kernel (Linux 6.18, x86_64), captured in a namespace that these commands had
 * made; recorded/datagrams.txt has each request behind `>`, each answer behind `<`, and the command that asks the same:
 *
 *     ip link add v0 index 7 address 02:00:00:00:00:01 type veth peer name v1 index 8 address 02:00:00:00:00:02
 *     ip link set v0 up
 *     ip link set v1 up
 *     ip addr add 10.6.0.21/24 dev v0
 *     ip addr add 192.0.2.1 peer 192.0.2.2/31 dev v0
 *     ip addr add fd00::21/64 dev v0 nodad
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Vector {
  readonly request: Uint8Array;
  /** Datagrams in their order. */
  readonly answers: readonly Uint8Array[];
}

const text = readFileSync(join(import.meta.dirname, "recorded", "datagrams.txt"), "utf8");

function vectorOf(command: string): Vector {
  const [, messages = ""] = text.split(`$ ${command}\n`);
  const [request = new Uint8Array(), ...answers] =
    messages.split(/^\$/m)[0]?.match(/\w+/g)?.map(Uint8Array.fromHex) ?? [];
  return { request, answers };
}

export const linkV0 = vectorOf("ip link show dev v0");
export const linkAbsent = vectorOf("ip link show dev absent");
export const linkNameTooLong = vectorOf("ip link show dev xxxxxxxxxxxxxxxx");
export const addressesV0 = vectorOf("ip addr show dev v0");
export const addressesAbsent = vectorOf("ip addr show dev if99");
