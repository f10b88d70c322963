/**
 * Requests and dumps over a netlink socket: sequence numbers, parts, acknowledgements, dumps that a change interrupted.
 * Effects: those of the socket that it is given.
 */
import { EINTR, EMSGSIZE, ENOBUFS } from "../errno.ts";
import {
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
} from "./constants.ts";
import { NetlinkError } from "./error.ts";
import {
  type Acknowledgement,
  decodeAcknowledgement,
  decodeMessages,
  encodeMessage,
  joinAligned,
  type Message,
} from "./message.ts";
import type { Datagrams } from "./socket.ts";

/** Dumps of a table that changes meanwhile are repeated; one that changes during each of so many is changing without end. @limit */
export const DUMP_ATTEMPTS = 16;

export interface Request {
  /** For errors: `get link "eth0"`. */
  readonly operation: string;
  /** RTM_*; every answer is of a type that the family's decoder checks. */
  readonly type: number;
  /** Besides those that every request has. */
  readonly flags?: number;
  /** The fixed part and the attributes. */
  readonly payload: Uint8Array;
}

/** One at a time: an answer is read to its end before the next question. Throws {@link NetlinkError} when the kernel refuses. */
export interface Conversation {
  /** Returns what came before the acknowledgement. */
  request(request: Request): Message[];
  /** Returns the whole table as it was at one moment. */
  dump(request: Request): Message[];
  /** Sends the requests as one datagram, from the first, which begins the batch, to the last, which ends it: all or nothing. */
  batch(requests: readonly Request[]): void;
}

interface Answer {
  readonly messages: Message[];
  readonly acknowledgement: Acknowledgement;
  readonly interrupted: boolean;
}

/**
 * Reads to the acknowledgement or the end of the dump. What carries another number is left from a question given up.
 * Undefined when it is longer than `most` messages; the kernel goes on with it and takes no other question.
 */
function readToEnd(datagrams: Datagrams, sequence: number, most: number): Answer | undefined {
  const messages: Message[] = [];
  let interrupted = false;
  for (;;) {
    for (const message of decodeMessages(datagrams.receive())) {
      if (message.sequence !== sequence || message.type === NLMSG_NOOP) continue;
      interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
      if (message.type === NLMSG_DONE || message.type === NLMSG_ERROR) {
        return { messages, acknowledgement: decodeAcknowledgement(message), interrupted };
      }
      messages.push(message);
    }
    if (messages.length > most) return undefined;
  }
}

function requireSuccess(operation: string, ending: Answer | undefined, most: number): Message[] {
  if (ending === undefined)
    throw new NetlinkError({ operation, errno: EMSGSIZE, message: `more than ${most} entries` });
  const { messages, acknowledgement } = ending;
  if (acknowledgement.errno !== 0) throw new NetlinkError({ operation, ...acknowledgement });
  return messages;
}

/** `dropped` when the kernel had to drop parts of the answer. */
function readDump(datagrams: Datagrams, sequence: number, most: number): Answer | undefined | "dropped" {
  try {
    return readToEnd(datagrams, sequence, most);
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === ENOBUFS) return "dropped";
    throw error;
  }
}

/** Reads to the acknowledgement of the last request; throws for the first that the kernel refused. */
function readBatch(datagrams: Datagrams, requests: readonly Request[], firstSequence: number, last: number): void {
  for (;;) {
    for (const message of decodeMessages(datagrams.receive())) {
      const index = (message.sequence - firstSequence) >>> 0;
      const request = requests[index];
      if (request === undefined || message.type !== NLMSG_ERROR) continue;
      const acknowledgement = decodeAcknowledgement(message);
      if (acknowledgement.errno !== 0) throw new NetlinkError({ operation: request.operation, ...acknowledgement });
      if (index === last) return;
    }
  }
}

/**
 * `most` is how long an answer may be: who owns a namespace decides how much is in it. A longer one is EMSGSIZE, and ends the conversation.
 */
export function createConversation(datagrams: Datagrams, most = Number.POSITIVE_INFINITY): Conversation {
  let sequence = 0;
  const ask = ({ type, flags = 0, payload }: Request, more: number): number => {
    sequence = (sequence + 1) >>> 0;
    datagrams.send(encodeMessage({ type, flags: NLM_F_REQUEST | flags | more, sequence, payload }));
    return sequence;
  };
  const sendBatch = (requests: readonly Request[]): void => {
    const first = (sequence + 1) >>> 0;
    const last = requests.length - 2; // the end itself is not acknowledged by older kernels
    const parts = requests.map(({ type, flags = 0, payload }, index) => {
      sequence = (sequence + 1) >>> 0;
      const more = index === last ? NLM_F_ACK : 0;
      return encodeMessage({ type, flags: NLM_F_REQUEST | flags | more, sequence, payload });
    });
    datagrams.send(joinAligned(parts));
    readBatch(datagrams, requests, first, last);
  };
  return {
    batch: sendBatch,
    request: (request) => requireSuccess(request.operation, readToEnd(datagrams, ask(request, NLM_F_ACK), most), most),
    dump: (request) => {
      const { operation } = request;
      for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
        const ending = readDump(datagrams, ask(request, NLM_F_DUMP), most);
        if (ending !== "dropped" && ending?.interrupted !== true) return requireSuccess(operation, ending, most);
      }
      const message = `the table changed during each of ${DUMP_ATTEMPTS} dumps`;
      throw new NetlinkError({ operation, errno: EINTR, message });
    },
  };
}
