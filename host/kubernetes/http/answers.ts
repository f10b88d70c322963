/** Answers of the API server: bytes of a watch to lines, and unknown JSON to objects, ApiError and WatchEvent. */

import * as z from "zod";
import { ApiError, type KubeObject, type WatchEvent } from "../kube-api.ts";

/** Longest text of the server that an error repeats: characters. */
const MAX_SHOWN_ANSWER = 500;

/** Longest answer to a refused watch that is read: characters. Those to calls have the limit of their connections. */
const MAX_REFUSAL = 65_536;

const cause = z.object({ field: z.string().catch(""), message: z.string().catch("") });
/** meta/v1 Status, any field of which may be missing. */
const statusSchema = z.object({
  kind: z.literal("Status"),
  message: z.string().catch(""),
  reason: z.string().catch(""),
  code: z.number().int().optional().catch(undefined),
  details: z
    .object({ causes: z.array(cause).catch([]) })
    .nullish()
    .catch(undefined),
});

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Returns the text of a refusal, or of a long one the beginning. Leaving the loop ends the stream. */
export async function readRefusal(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > MAX_REFUSAL) break;
  }
  return text;
}

/** `body` is the answer's text; a proxy's page or an empty body is possible. */
export function apiErrorOf(operation: string, status: number, body: string): ApiError {
  const decoded = statusSchema.safeParse(parseObject(body));
  if (!decoded.success) return build(operation, { status, reason: "", text: body, causes: [] });
  const { reason, message, details } = decoded.data;
  return build(operation, { status, reason, text: message, causes: details?.causes ?? [] });
}

interface Parts {
  readonly status: number;
  readonly reason: string;
  readonly text: string;
  readonly causes: ApiError["causes"];
}

function build(operation: string, { status, reason, text, causes }: Parts): ApiError {
  const cut = text.length > MAX_SHOWN_ANSWER ? `${text.slice(0, MAX_SHOWN_ANSWER)}…` : text;
  const end = cut.trim() === "" ? "" : `: ${cut.trim()}`;
  const message = `${operation} was answered with ${status}${reason === "" ? "" : ` ${reason}`}${end}`;
  return new ApiError({ status, reason, operation, message, causes });
}

/** Returns undefined for what is no JSON object. */
function parseObject(text: string): KubeObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An answer or an event that violates the protocol. */
export class MalformedError extends Error {
  override readonly name = "MalformedError";
}

/** Decodes the body of a 2xx. Throws MalformedError. */
export function decodeObject(text: string): KubeObject {
  const value = parseObject(text);
  if (value === undefined)
    throw new MalformedError(`The answer is no JSON object: ${JSON.stringify(text.slice(0, 80))}`);
  return value;
}

/** Decodes one line of a watch. Throws ApiError for an event of type ERROR, MalformedError for an invalid event. */
export function decodeEvent(operation: string, line: string): WatchEvent {
  const value = parseObject(line);
  const malformed = (what: string) => new MalformedError(`${what}: ${JSON.stringify(line.slice(0, 80))}`);
  if (value === undefined) throw malformed("The watch sent a line that is no JSON object");
  const { type, object } = value;
  if (!isObject(object)) throw malformed("The watch sent an event without an object");
  if (type === "ERROR") {
    const code = statusSchema.safeParse(object).data?.code;
    throw apiErrorOf(operation, code ?? 500, JSON.stringify(object));
  }
  if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED" && type !== "BOOKMARK")
    throw malformed("The watch sent an event of an unknown type");
  return { type, object };
}

function isObject(value: unknown): value is KubeObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Longest line of a watch, which is one object: bytes. etcd takes objects of 1.5 MB. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;
const BLANK = 0x20;

/** Splits at newlines only, which are never part of another character in UTF-8. */
export class Lines {
  #parts: Uint8Array[] = [];
  #lengthBytes = 0;

  /** Returns the lines that this piece completes, without blank ones. Throws MalformedError for a line too long. */
  push(piece: Uint8Array): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#keep(piece.subarray(start, end));
      const line = this.#take();
      if (!isBlank(line)) lines.push(line);
      start = end + 1;
    }
    this.#keep(piece.subarray(start));
    return lines;
  }

  /** Returns the rest after the last newline. */
  rest(): Buffer {
    return this.#take();
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#lengthBytes += part.length;
    if (this.#lengthBytes > MAX_EVENT_BYTES) throw new MalformedError(`A line is longer than ${MAX_EVENT_BYTES} bytes`);
    this.#parts.push(part);
  }

  #take(): Buffer {
    const line = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#lengthBytes = 0;
    return line;
  }
}

/** Returns whether there is nothing but blanks. */
export function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte <= BLANK);
}
