/** The exit codes of berthctl, and the errors that they stand for. docs/berthctl.md lists them for scripts. */
import { ConfigError } from "../config/config-error.ts";
import { AgentError } from "./ask-agent.ts";

export const ExitCode = {
  /** The question was answered, and all is well. */
  Success: 0,
  /** The question was answered, and the answer is bad news: a problem, a refusal, or no such object. */
  Problem: 1,
  /** The command line, or a file that it names, is wrong. */
  Usage: 2,
  /** The question was not answered: no agent or API server, no permission, or the output cannot be written. */
  NoAnswer: 3,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** Bad news that ends a command: the text names the object and the remedy. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
}

/** A combination of arguments that makes no sense. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** An error that is none of these, such as one of the API server, leaves the question unanswered. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ProblemError) return ExitCode.Problem;
  if (error instanceof AgentError) return error.isAnswer ? ExitCode.Problem : ExitCode.NoAnswer;
  if (error instanceof UsageError || error instanceof ConfigError) return ExitCode.Usage;
  return ExitCode.NoAnswer;
}
