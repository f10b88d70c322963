/** A netlink socket whose answers the test writes: the seam of host/kernel/netlink/socket.ts. */
import { EAGAIN } from "../../../host/kernel/errno.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import type { Datagrams } from "../../../host/kernel/netlink/socket.ts";
import type { Vector } from "./vectors.ts";

/** Next result of `receive`: bytes, or an errno to fail with. */
export type Step = Uint8Array | number;

export interface ScriptedDatagrams extends Datagrams {
  readonly sent: Uint8Array[];
}

/** A request with sequence number n gets the steps of answers[n - 1]; then there is nothing more to receive. */
export function scriptDatagrams(answers: readonly (readonly Step[])[]): ScriptedDatagrams {
  const sent: Uint8Array[] = [];
  let steps: Step[] = [];
  const send = (datagram: Uint8Array): void => {
    steps = [...(answers[sent.length] ?? [])];
    sent.push(datagram);
  };
  return {
    sent,
    send,
    sendAside: async (datagram) => send(datagram),
    receive() {
      const step = steps.shift() ?? EAGAIN;
      if (typeof step === "number") throw new NetlinkError({ operation: "receive from the kernel", errno: step });
      return step;
    },
    [Symbol.dispose]() {},
  };
}

/** The same bytes with another sequence number (and more flags) in every message. */
export function restamp(datagram: Uint8Array, sequence: number, moreFlags = 0): Uint8Array {
  const bytes = datagram.slice();
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += (view.getUint32(at, true) + 3) & ~3) {
    view.setUint32(at + 8, sequence, true);
    view.setUint16(at + 6, view.getUint16(at + 6, true) | moreFlags, true);
  }
  return bytes;
}

/** The vector's answers as those to request number `sequence`. */
export function answersOf(vector: Vector, sequence = 1): Uint8Array[] {
  return vector.answers.map((datagram) => restamp(datagram, sequence));
}
