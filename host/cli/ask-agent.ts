/** One request to the agent on its socket. */
import { request } from "node:http";
import type { z } from "zod";
import { cutText, errnoOf } from "../lib/describe.ts";
import { decode, formatMismatches } from "../lib/schema.ts";

/** The agent refused the request, or no agent answers. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  /** Whether the text is the agent's. */
  readonly isAnswer: boolean;

  constructor(message: string, isAnswer = false) {
    super(message);
    this.isAnswer = isAnswer;
  }
}

/** Longest answer that is read: bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Longest refusal that is shown: UTF-16 units. */
const MAX_REFUSAL = 8_192;

/**
 * Longest time until an answer is complete: milliseconds. A recovery reads files and namespaces of all pods, a check
 * some of it twice.
 */
const PATIENCE_MS = { GET: 10_000, POST: 120_000 };

/** Returns the decoded answer of GET or POST `path`, whatever its status. Rejects with AgentError. */
export async function askAgent(socketPath: string, path: string, method: "GET" | "POST" = "GET"): Promise<unknown> {
  const { status, text } = await ask(socketPath, path, method);
  try {
    return JSON.parse(text);
  } catch {
    throw new AgentError(`The agent on ${socketPath} answered with status ${status} and a body that is not JSON`);
  }
}

/** Returns the text that GET `path` is answered with. Rejects with AgentError when the agent refuses. */
export async function askForText(socketPath: string, path: string): Promise<string> {
  const { status, text } = await ask(socketPath, path, "GET");
  if (status === 200) return text;
  throw new AgentError(`The agent on ${socketPath} refuses GET ${path} with status ${status}`, true);
}

function ask(
  socketPath: string,
  path: string,
  method: "GET" | "POST",
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const fail = (message: string): void => {
      reject(new AgentError(message));
      call.destroy();
    };
    const patienceMs = PATIENCE_MS[path.startsWith("/v1/check") ? "POST" : method];
    const patience = setTimeout(fail, patienceMs, `The agent on ${socketPath} did not answer in time`);
    const call = request({ socketPath, path, method, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      let size = 0;
      answer.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES)
          fail(`The agent on ${socketPath} answers with more than ${MAX_ANSWER_BYTES} bytes`);
        else chunks.push(chunk);
      });
      answer.on("error", (error) => fail(`The agent on ${socketPath} did not complete its answer: ${error.message}`));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    });
    call.on("error", (error) => {
      const remedy = errnoOf(error) === "EACCES" ? "; run it as root" : "";
      fail(`No agent answers on ${socketPath}: ${error.message}${remedy}`);
    });
    call.on("close", () => clearTimeout(patience));
    call.end();
  });
}

/** Returns the record or list that the request is answered with. Rejects with AgentError when the agent refuses. */
export async function askForRecord<S extends z.ZodType>(
  schema: S,
  socketPath: string,
  path: string,
  method: "GET" | "POST" = "GET",
): Promise<z.output<S>> {
  const answer = await askAgent(socketPath, path, method);
  const decoded = decode(schema, answer);
  if (decoded.ok) return decoded.value;
  if (!Array.isArray(answer)) throw refusalOf(socketPath, path, answer, method);
  const mismatches = formatMismatches(decoded.mismatches);
  throw new AgentError(`The agent on ${socketPath} answers in a form that this berthctl does not know: ${mismatches}`);
}

/** Returns the error for an answer of another form; `msg` is the text of a CNI error, `error` of any other. */
export function refusalOf(socketPath: string, path: string, answer: unknown, method = "GET"): AgentError {
  const { msg, error } = (answer ?? {}) as { msg?: unknown; error?: unknown };
  const text = [msg, error].find((each) => typeof each === "string") ?? JSON.stringify(answer);
  const [page] = path.split("?");
  return new AgentError(cutText(`The agent on ${socketPath} refuses ${method} ${page}: ${text}`, MAX_REFUSAL), true);
}
