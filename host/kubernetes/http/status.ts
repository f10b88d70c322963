/** Answers other than 2xx, and the lines of a watch: unknown JSON to ApiError and WatchEvent. */
import * as z from "zod";
import { ApiError, type KubeObject, type WatchEvent } from "../kube-api.ts";

/** Longest text of the server that an error repeats: characters. */
const MAX_SHOWN_ANSWER = 500;

const cause = z.object({ field: z.string().catch(""), message: z.string().catch("") });
/** meta/v1 Status, of which every field may be missing. */
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

/** `body` is the answer's text; a proxy's page or an empty body is possible. */
export function apiErrorOf(operation: string, status: number, body: string): ApiError {
  const decoded = statusSchema.safeParse(parseOrNothing(body));
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

function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
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
  const value = parseOrNothing(text);
  if (!isObject(value)) throw new MalformedError(`The answer is no JSON object: ${JSON.stringify(text.slice(0, 80))}`);
  return value;
}

/** Decodes one line of a watch. Throws ApiError for an event of type ERROR, MalformedError for an invalid event. */
export function decodeEvent(operation: string, line: string): WatchEvent {
  const value = parseOrNothing(line);
  const malformed = (what: string) => new MalformedError(`${what}: ${JSON.stringify(line.slice(0, 80))}`);
  if (!isObject(value)) throw malformed("The watch sent a line that is no JSON object");
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
