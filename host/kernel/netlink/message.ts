/**
 * The header of every message, and the acknowledgement that ends a request.
 *
 *      0        4      6       8          12     16            length
 *      ├ length ┼ type ┼ flags ┼ sequence ┼ port ┼ payload …   ┤ padding to a multiple of 4
 *      (linux/netlink.h, struct nlmsghdr)
 */
import { align, decodeAttributes, decodeString, decodeUint32, findValue } from "./attribute.ts";
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS } from "./constants.ts";
import { malformed } from "./error.ts";
import { int32At, putUint16, putUint32, uint16At, uint32At } from "./numbers.ts";

const HEADER_BYTES = 16;
const ERRNO_BYTES = 4;

export interface Message {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly payload: Uint8Array;
}

export interface ReceivedMessage extends Message {
  /** The socket whose request caused the message, often the program's process ID; 0 for the kernel itself. */
  readonly port: number;
}

/** Decodes one datagram. The payloads are views into it. Throws NetlinkError for a false length. */
export function decodeMessages(datagram: Uint8Array): ReceivedMessage[] {
  const messages: ReceivedMessage[] = [];
  for (let at = 0; at < datagram.length; ) {
    const left = datagram.length - at;
    if (left < HEADER_BYTES) throw malformed("message", at, `${left} bytes`, "a header of 16");
    const length = uint32At(datagram, at);
    if (length < HEADER_BYTES || length > left) throw malformed("message", at, `length ${length}`, `16 to ${left}`);
    messages.push({
      type: uint16At(datagram, at + 4),
      flags: uint16At(datagram, at + 6),
      sequence: uint32At(datagram, at + 8),
      port: uint32At(datagram, at + 12),
      payload: datagram.subarray(at + HEADER_BYTES, at + length),
    });
    at += align(length);
  }
  return messages;
}

/** Encodes the messages, each padded to a multiple of 4, as one datagram with port 0: the kernel fills in its own. */
export function encodeMessages(messages: readonly Message[]): Uint8Array {
  const bytes = new Uint8Array(
    messages.reduce((total, { payload }) => total + align(HEADER_BYTES + payload.length), 0),
  );
  let at = 0;
  for (const { type, flags, sequence, payload } of messages) {
    const length = HEADER_BYTES + payload.length;
    putUint32(bytes, at, length);
    putUint16(bytes, at + 4, type);
    putUint16(bytes, at + 6, flags);
    putUint32(bytes, at + 8, sequence);
    bytes.set(payload, at + HEADER_BYTES);
    at += align(length);
  }
  return bytes;
}

/** The end of a request or a dump: `errno` is 0 on success. `message` and `offset`: the extended acknowledgement. */
export interface Acknowledgement {
  readonly errno: number;
  readonly message: string | undefined;
  readonly offset: number | undefined;
}

/**
 * Decodes NLMSG_ERROR and NLMSG_DONE:
 *
 *      0        4
 *      ├ -errno ┼ the request (NLMSG_ERROR only; its header only when capped) ┼ attributes when NLM_F_ACK_TLVS ┤
 */
export function decodeAcknowledgement({ type, flags, payload }: Message): Acknowledgement {
  if (payload.length < ERRNO_BYTES) throw malformed("acknowledgement", 0, `${payload.length} bytes`, "4 or more");
  const errno = 0 - int32At(payload, 0);
  if ((flags & NLM_F_ACK_TLVS) === 0) return { errno, message: undefined, offset: undefined };
  const attributes = decodeAttributes(payload, type === NLMSG_DONE ? ERRNO_BYTES : endOfRequest(payload, flags));
  const message = findValue(attributes, NLMSGERR_ATTR_MSG);
  const offset = findValue(attributes, NLMSGERR_ATTR_OFFS);
  return {
    errno,
    message: message && decodeString(message),
    offset: offset && decodeUint32(offset),
  };
}

function endOfRequest(payload: Uint8Array, flags: number): number {
  const left = payload.length - ERRNO_BYTES;
  if (left < HEADER_BYTES) throw malformed("acknowledgement", ERRNO_BYTES, `${left} bytes`, "a header of 16");
  if ((flags & NLM_F_CAPPED) !== 0) return ERRNO_BYTES + HEADER_BYTES;
  const length = uint32At(payload, ERRNO_BYTES);
  if (length < HEADER_BYTES || length > left) {
    throw malformed("acknowledgement", ERRNO_BYTES, `length ${length}`, `16 to ${left}`);
  }
  return ERRNO_BYTES + align(length);
}
