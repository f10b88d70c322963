/** The agent's answers on the socket, and the one place where any error becomes CNI error JSON. */
import { constants } from "node:os";
import { CniError, ErrorCode, formatCniError } from "../../cni/error.ts";
import { LATEST_VERSION } from "../../cni/version.ts";
import { ConfigError } from "../../config/config-error.ts";
import { DetectionError, UNPROBED_KIND_REMEDY } from "../../coordinator/detection-error.ts";
import { ApplyError } from "../../kernel/apply.ts";
import { LinkRemovalError } from "../../kernel/link-remover.ts";
import { NetlinkError } from "../../kernel/netlink/error.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { PacketError } from "../../kernel/packet/socket.ts";
import { SysctlError } from "../../kernel/sysctl.ts";
import { ApiUnavailable } from "../../kubernetes/kube-api.ts";
import { cutText, messageOf } from "../../lib/describe.ts";
import { RegistryError } from "../../registry/registry.ts";

/**
 * Longest message of an error that leaves the agent, to a runtime, an event or the log: UTF-16 units. A tenant may be
 * its cause as often as it likes.
 */
const MAX_ERROR_MESSAGE = 2_048;

/** Longest details of such an error, and longest message with all names in the log: UTF-16 units. */
const MAX_ERROR_DETAILS = 4_096;

/** `notice` is a line for people, shown on the plugin's stderr. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly notice?: string;
  /** Code of the CNI error; absent in any other answer. */
  readonly code?: ErrorCode;
  /** Default: `application/json`. */
  readonly contentType?: string;
}

export function answerJson(value: unknown): Answer {
  return { status: 200, body: `${JSON.stringify(value)}\n` };
}

export function answerRefusal(status: number, error: string): Answer {
  return { status, body: `${JSON.stringify({ error })}\n` };
}

/** Failures of the kernel, and of undoing. */
const KERNEL_ERRORS = [NetlinkError, SysctlError, ApplyError, LinkRemovalError, PacketError];

/** Returns any error as CNI error JSON in the caller's version. */
export function answerError(error: unknown, requestBody: string): Answer {
  const refusal = toCniError(error);
  const body = JSON.stringify(formatCniError(refusal, findVersion(requestBody)));
  return { status: TRANSIENT.includes(refusal.code) ? 503 : 422, body: `${body}\n`, code: refusal.code };
}

const TRANSIENT: readonly ErrorCode[] = [
  ErrorCode.TryAgainLater,
  ErrorCode.PluginNotAvailable,
  ErrorCode.LimitedConnectivity,
];

/** Every failure as the one error that a runtime sees, of bounded length. */
export function toCniError(error: unknown): CniError {
  return cut(classify(error));
}

function cut(error: CniError): CniError {
  const { code, message, details, forLog } = error;
  const isShort =
    message.length <= MAX_ERROR_MESSAGE && [details, forLog].every((text) => (text?.length ?? 0) <= MAX_ERROR_DETAILS);
  if (isShort) return error;
  return new CniError(code, cutText(message, MAX_ERROR_MESSAGE), {
    details: details && cutText(details, MAX_ERROR_DETAILS),
    forLog: forLog && cutText(forLog, MAX_ERROR_DETAILS),
    cause: error.cause,
  });
}

function classify(error: unknown): CniError {
  if (error instanceof CniError) return error;
  const cause = { cause: error };
  const shortage = findShortage(error);
  if (shortage !== undefined) {
    return new CniError(ErrorCode.TryAgainLater, `${shortage}: ${messageOf(error)}`, cause);
  }
  if (error instanceof ConfigError) {
    const code = /annotation /i.test(error.source) ? ErrorCode.InvalidAnnotation : ErrorCode.InvalidNetworkConfig;
    return new CniError(code, error.message.charAt(0).toUpperCase() + error.message.slice(1), cause);
  }
  if (error instanceof RegistryError) {
    const advice = error.full ? "; free disk space in the state directory" : "";
    return new CniError(
      ErrorCode.RegistryUnavailable,
      `The registry could not read or record the address: ${error.message}${advice}`,
      cause,
    );
  }
  if (error instanceof NetnsError) return new CniError(ErrorCode.InvalidNetns, error.message, cause);
  if (error instanceof ApiUnavailable) {
    return new CniError(ErrorCode.TryAgainLater, `The API server does not answer: ${error.message}`, cause);
  }
  if (error instanceof DetectionError)
    return error.reason === "kind"
      ? new CniError(ErrorCode.InterfaceRefused, `${error.message}; ${UNPROBED_KIND_REMEDY}`, cause)
      : new CniError(ErrorCode.TryAgainLater, error.message, cause);
  const isKernel = KERNEL_ERRORS.some((kind) => error instanceof kind);
  if (isKernel && error instanceof Error) return new CniError(ErrorCode.KernelRefused, error.message, cause);
  const text = messageOf(error);
  return new CniError(ErrorCode.TryAgainLater, `Internal error: ${text}`, cause);
}

/** Returns whether the error is a bug rather than a refusal: bugs are logged with their stack. */
export function isBug(error: unknown): boolean {
  const known = [CniError, ConfigError, RegistryError, NetnsError, ApiUnavailable, DetectionError, ...KERNEL_ERRORS];
  return !known.some((kind) => error instanceof kind) && findShortage(error) === undefined;
}

/** By errno: the limit of open files that is reached, and the remedy. */
const SHORTAGES: Readonly<Record<number, string>> = {
  [constants.errno.EMFILE]:
    "The agent has reached its limit of open files and sockets (RLIMIT_NOFILE); raise LimitNOFILE of its service",
  [constants.errno.ENFILE]: "The node has reached its limit of open files; raise its sysctl fs.file-max",
};

/** Returns which limit is reached if the error, or one of its causes, is that no file can be opened. */
function findShortage(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    const number = "errno" in each && typeof each.errno === "number" ? Math.abs(each.errno) : 0;
    if (Object.hasOwn(SHORTAGES, number)) return SHORTAGES[number];
  }
  return undefined;
}

/** A configuration may be too broken, or too large, to be decoded for its version. */
function findVersion(requestBody: string): string {
  const [, version = ""] = /"cniVersion"\s*:\s*"([^"\\]*)"/.exec(requestBody) ?? [];
  return version === "" ? LATEST_VERSION : version;
}

/** An abort ends a search whose caller has left. */
export type StatusApi = (method: string, url: string, signal?: AbortSignal) => Promise<Answer>;
