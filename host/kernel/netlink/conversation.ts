/** Requests and dumps over a netlink socket: sequence numbers, multipart answers, acknowledgements, repetition. */
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
  encodeMessages,
  type Message,
} from "./message.ts";
import type { Datagrams } from "./socket.ts";

/** Number of times that a dump is repeated because its table changed while it was read. */
export const DUMP_ATTEMPTS = 16;

export interface Request {
  /** For errors: `get link "eth0"`. A function if the text costs more than the request. */
  readonly operation: string | (() => string);
  /** RTM_*; the decoder of the family checks the type of each answer. */
  readonly type: number;
  /** Besides the flags of every request. */
  readonly flags?: number;
  readonly payload: Uint8Array;
}

/** A refused request. Not an error yet: often it only means that an object is absent, and a stack trace costs. */
export class Refusal {
  readonly errno: number;
  readonly #request: Request;
  readonly #acknowledgement: Acknowledgement;

  constructor(request: Request, acknowledgement: Acknowledgement) {
    this.errno = acknowledgement.errno;
    this.#request = request;
    this.#acknowledgement = acknowledgement;
  }

  toError(): NetlinkError {
    return refusal(this.#request, this.#acknowledgement);
  }
}

/** The messages before the acknowledgement, or the refusal. */
export type Outcome = Message[] | Refusal;

/**
 * A conversation with the kernel, one request at a time: each answer is read to its end before the next request. Throws
 * {@link NetlinkError} if the kernel refuses.
 */
export interface Conversation {
  /** Returns the messages before the acknowledgement. */
  request(request: Request): Message[];
  /** As `request`, while a thread of the pool waits for the kernel. No other request may be sent meanwhile. */
  requestAside(request: Request): Promise<Message[]>;
  /**
   * Sends the requests as one datagram. The kernel executes each by itself, in order, also those behind a refused one.
   * Returns for each the messages before its acknowledgement, or the refusal.
   */
  pipeline(requests: readonly Request[]): Outcome[];
  /** Returns the whole table at one moment. */
  dump(request: Request): Message[];
  /** Yields the table in the kernel's parts. It may change meanwhile. No other request may be sent before the end. */
  stream(request: Request): Generator<Message[]>;
  /** Sends the requests as one datagram, the start of the batch first and its end last; all take effect, or none. */
  batch(requests: readonly Request[]): void;
}

interface Answer {
  readonly messages: Message[];
  readonly acknowledgement: Acknowledgement;
  readonly interrupted: boolean;
}

/**
 * Reads up to the acknowledgement or the end of the dump, and ignores messages with another sequence number, which
 * belong to an abandoned request. Returns undefined if the answer is longer than `most` messages; the kernel then
 * continues to send it and takes no other request.
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

function textOf({ operation }: Pick<Request, "operation">): string {
  return typeof operation === "string" ? operation : operation();
}

function refusal(request: Request, acknowledgement: Acknowledgement): NetlinkError {
  return new NetlinkError({ operation: textOf(request), ...acknowledgement });
}

function requireSuccess(request: Request, ending: Answer | undefined, most: number): Message[] {
  if (ending === undefined)
    throw new NetlinkError({ operation: textOf(request), errno: EMSGSIZE, message: `more than ${most} entries` });
  const { messages, acknowledgement } = ending;
  if (acknowledgement.errno !== 0) throw refusal(request, acknowledgement);
  return messages;
}

/** Returns "dropped" if the kernel had to drop parts of the answer. */
function readDump(datagrams: Datagrams, sequence: number, most: number): Answer | undefined | "dropped" {
  try {
    return readToEnd(datagrams, sequence, most);
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === ENOBUFS) return "dropped";
    throw error;
  }
}

/** Reads up to the acknowledgement of the last request. Throws for the first request that the kernel refused. */
function readBatch(datagrams: Datagrams, requests: readonly Request[], firstSequence: number, last: number): void {
  for (;;) {
    for (const message of decodeMessages(datagrams.receive())) {
      const index = (message.sequence - firstSequence) >>> 0;
      const request = requests[index];
      if (request === undefined || message.type !== NLMSG_ERROR) continue;
      const acknowledgement = decodeAcknowledgement(message);
      if (acknowledgement.errno !== 0) throw refusal(request, acknowledgement);
      if (index === last) return;
    }
  }
}

/**
 * Reads up to the acknowledgement of the last request, the only one that asks for it: the kernel answers in order, and
 * always reports errors (net/netlink/af_netlink.c, netlink_rcv_skb). A dropped answer fails the reading: ENOBUFS.
 */
function readPipeline(datagrams: Datagrams, requests: readonly Request[], firstSequence: number): Outcome[] {
  const outcomes: Outcome[] = requests.map(() => []);
  for (;;) {
    for (const message of decodeMessages(datagrams.receive())) {
      const index = (message.sequence - firstSequence) >>> 0;
      const request = requests[index];
      const outcome = outcomes[index];
      if (request === undefined || !Array.isArray(outcome) || message.type === NLMSG_NOOP) continue;
      if (message.type !== NLMSG_ERROR) {
        outcome.push(message);
        continue;
      }
      const acknowledgement = decodeAcknowledgement(message);
      if (acknowledgement.errno !== 0) outcomes[index] = new Refusal(request, acknowledgement);
      if (index === requests.length - 1) return outcomes;
    }
  }
}

/**
 * Creates a conversation over the socket. `most` limits the number of messages in an answer, because a pod's owner
 * decides the number of objects in its namespace. A longer answer throws EMSGSIZE and leaves the conversation unusable.
 */
export function createConversation(datagrams: Datagrams, most = Number.POSITIVE_INFINITY): Conversation {
  let sequence = 0;
  const encodeNext = ({ type, flags = 0, payload }: Request, more: number): Uint8Array => {
    sequence = (sequence + 1) >>> 0;
    return encodeMessages([{ type, flags: NLM_F_REQUEST | flags | more, sequence, payload }]);
  };
  const ask = (request: Request, more: number): number => {
    datagrams.send(encodeNext(request, more));
    return sequence;
  };
  /** Sends the requests as one datagram; asks for acknowledgements where `isAcknowledged`. Returns the first number. */
  const sendTogether = (requests: readonly Request[], isAcknowledged: (index: number) => boolean): number => {
    const first = (sequence + 1) >>> 0;
    const messages = requests.map(({ type, flags = 0, payload }, index) => {
      sequence = (sequence + 1) >>> 0;
      const more = isAcknowledged(index) ? NLM_F_ACK : 0;
      return { type, flags: NLM_F_REQUEST | flags | more, sequence, payload };
    });
    datagrams.send(encodeMessages(messages));
    return first;
  };
  return {
    batch: (requests) => {
      const last = requests.length - 2; // older kernels do not acknowledge the end of the batch
      const first = sendTogether(requests, (index) => index === last);
      readBatch(datagrams, requests, first, last);
    },
    pipeline: (requests) =>
      requests.length === 0
        ? []
        : readPipeline(
            datagrams,
            requests,
            sendTogether(requests, (index) => index === requests.length - 1),
          ),
    request: (request) => requireSuccess(request, readToEnd(datagrams, ask(request, NLM_F_ACK), most), most),
    requestAside: async (request) => {
      await datagrams.sendAside(encodeNext(request, NLM_F_ACK));
      return requireSuccess(request, readToEnd(datagrams, sequence, most), most);
    },
    dump: (request) => {
      for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
        const ending = readDump(datagrams, ask(request, NLM_F_DUMP), most);
        if (ending !== "dropped" && ending?.interrupted !== true) return requireSuccess(request, ending, most);
      }
      const message = `the table changed during each of ${DUMP_ATTEMPTS} dumps`;
      throw new NetlinkError({ operation: textOf(request), errno: EINTR, message });
    },
    *stream(request) {
      const own = ask(request, NLM_F_DUMP);
      for (;;) {
        const messages = decodeMessages(datagrams.receive()).filter((message) => message.sequence === own);
        const last = messages.at(-1);
        const isEnd = last?.type === NLMSG_DONE || last?.type === NLMSG_ERROR;
        yield isEnd ? messages.slice(0, -1) : messages;
        if (!isEnd) continue;
        const acknowledgement = decodeAcknowledgement(last);
        if (acknowledgement.errno !== 0) throw refusal(request, acknowledgement);
        return;
      }
    },
  };
}
