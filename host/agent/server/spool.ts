/**
 * DELs that the shim wrote down because no agent answered: replayed before anything is attached
 * (docs/develop/shim-protocol.md, "Spool"). A file that cannot be read is renamed, so that nothing is lost.
 */

import { lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CniError, ErrorCode } from "../../cni/error.ts";
import { DirectoryNotices } from "../../kernel/directory-notices.ts";
import { isMissing, messageOf } from "../../lib/describe.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import { readRegular, UnreadableFile } from "../../lib/regular-file.ts";
import { insteadOf, tryOr } from "../../lib/try-or.ts";
import type { RawRequest } from "../request/driver.ts";
import type { Dispatcher } from "./dispatcher.ts";

const SPOOLED = /\.del$/;
const REJECTED = ".rejected";
/** A retry cannot succeed after codes up to this one: version, environment, JSON, configuration. */
const LAST_UNREADABLE = ErrorCode.InvalidNetworkConfig;

type SpoolDispatcher = Pick<Dispatcher, "dispatch" | "translate">;

export class Spool {
  readonly #directory: string;
  readonly #dispatcher: SpoolDispatcher;
  readonly #faults: Faults;
  readonly #log: Log;
  readonly #notices: DirectoryNotices;
  #draining: Promise<void> | undefined;
  /** At the last look. */
  #isEmpty = false;

  constructor(directory: string, dispatcher: SpoolDispatcher, faults: Faults, log: Log) {
    this.#directory = directory;
    this.#dispatcher = dispatcher;
    this.#faults = faults;
    this.#log = log;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#notices = new DirectoryNotices(directory);
  }

  /** Returns the number of requests that wait, and of those that could not be read. */
  count(): { readonly waiting: number; readonly rejected: number } {
    const names = this.#names();
    return {
      waiting: names.filter((name) => SPOOLED.test(name)).length,
      rejected: names.filter((name) => name.endsWith(REJECTED)).length,
    };
  }

  /** Replays all DELs that were spooled before this call, oldest first. Requests that fail stay for the next time. */
  async drain(): Promise<void> {
    // A replay under way does not see files that were spooled since it began; a later one does.
    await this.#draining;
    await (this.#draining ?? this.#begin());
  }

  /**
   * Precedes an ADD: drains. Throws CniError with code 11 if a DEL of the attachment is still there: its replay would
   * take the address of the new attachment.
   */
  async clear({ "cni-containerid": containerId, "cni-ifname": ifName }: RawRequest["headers"]): Promise<void> {
    await this.drain();
    if (this.#isEmpty || !this.#spooled().some((name) => this.#isOf(name, containerId, ifName))) return;
    const text = `The DEL of the earlier interface ${ifName} of container ${containerId} is still in the spool`;
    const advice = "the agent's log says why it failed; it is tried again every two seconds, and so may this ADD be";
    throw new CniError(ErrorCode.TryAgainLater, `${text}: ${advice}`);
  }

  async #begin(): Promise<void> {
    if (!this.#notices.mayHaveChanged() && this.#isEmpty) return;
    const names = this.#spooled();
    this.#isEmpty = names.length === 0;
    if (this.#isEmpty) return;
    this.#draining = this.#drainAll(names).finally(() => {
      this.#draining = undefined;
    });
    await this.#draining;
  }

  /** A file that cannot be read names no attachment. */
  #isOf(name: string, containerId: unknown, ifName: unknown): boolean {
    const request = tryOr(() => this.#read(join(this.#directory, name)), "");
    if (typeof request === "string") return false;
    return request.headers["cni-containerid"] === containerId && request.headers["cni-ifname"] === ifName;
  }

  /** Returns the names of the files, oldest first. */
  #spooled(): string[] {
    return this.#names()
      .filter((name) => SPOOLED.test(name))
      .sort();
  }

  #names(): string[] {
    // If the directory was removed, the shim creates it again with its next DEL.
    return insteadOf(isMissing, [], () => readdirSync(this.#directory));
  }

  async #drainAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      try {
        if (!(await this.#replay(join(this.#directory, name)))) return;
      } catch (error) {
        this.#log.warn({ file: name, err: error }, "Replaying a spooled DEL failed; it stays in the spool");
      }
    }
  }

  /** Returns false if the next ones would fail in the same way. */
  async #replay(path: string): Promise<boolean> {
    const request = this.#read(path);
    if (typeof request === "string") {
      this.#reject(path, request);
      return true;
    }
    const { status, body } = await this.#dispatcher.dispatch(request, new AbortController().signal);
    if (status === 200) {
      this.#faults("spool.remove");
      rmSync(path, { force: true });
      return true;
    }
    const { code } = JSON.parse(body) as { code: number };
    if (code <= LAST_UNREADABLE) this.#reject(path, body);
    else this.#log.warn({ file: path, answer: body }, "A spooled DEL was refused; it stays in the spool");
    return code !== ErrorCode.RegistryUnavailable;
  }

  /** Returns the request, or why the file has none. Throws when a later attempt may succeed. */
  #read(path: string): RawRequest | string {
    const bytes = readShimFile(path);
    if (typeof bytes === "string") return bytes;
    try {
      return this.#dispatcher.translate(parseSpooled(bytes));
    } catch (error) {
      return messageOf(error);
    }
  }

  #reject(path: string, reason: string): void {
    this.#log.error({ file: path, reason }, "A spooled request cannot be read; renamed it to *.rejected");
    renameSync(path, `${path}${REJECTED}`);
  }
}

/** Returns the bytes, or why the file is not the shim's, which writes only regular files: no link, pipe or device. */
function readShimFile(path: string): Buffer | string {
  if (!lstatSync(path).isFile()) return "it is not a regular file";
  try {
    return readRegular(path, MAX_HEAD_BYTES + MAX_BODY_BYTES).bytes;
  } catch (error) {
    if (error instanceof UnreadableFile) return error.message;
    throw error;
  }
}

/** Throws when the bytes are not a DEL of the shim. */
export function parseSpooled(bytes: Buffer): RawRequest {
  const request = parseShimRequest(bytes);
  if (typeof request === "string") throw new Error(request);
  const command = request.headers["cni-command"];
  if (command !== "DEL") throw new Error(`Command ${command ?? "(none)"} is not spooled`);
  return request;
}

const REQUEST_LINE = /^POST \/v1\/cni\/([a-z]+) HTTP\/1\.1$/;
/** Bytes that no line of the shim has. */
const FOREIGN = /[^\x20-\x7e\r\n]/;
const NAME = /^[\w-]+$/;

const BLANK = 0x20;

/**
 * The lower-case names of the headers as the shim writes them: looking one up costs less than a name of its own for
 * each request.
 */
const SHIM_HEADERS: ReadonlyMap<string, string> = new Map(
  [
    ...["Host", "Connection", "Content-Type", "Content-Length", "Traceparent"],
    ...["CNI-Command", "CNI-ContainerID", "CNI-Netns", "CNI-IfName", "CNI-Args", "CNI-Path", "CNI-Netns-Override"],
  ].map((name) => [name, name.toLowerCase()]),
);

/** Returns the request; a sentence if the bytes are not exactly one of the shim's requests. */
export function parseShimRequest(bytes: Buffer): RawRequest | string {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return "The head of the request has no end";
  const head = bytes.toString("latin1", 0, end);
  const [first = "", ...lines] = head.split("\r\n");
  const plugin = REQUEST_LINE.exec(first)?.[1];
  if (plugin === undefined) return `"${first}" is not a request line of the shim`;
  if (FOREIGN.test(head)) return "The head of the request has bytes that the shim does not send";
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    const written = line.slice(0, Math.max(0, colon));
    const known = SHIM_HEADERS.get(written);
    const name = known ?? written.toLowerCase();
    if (known === undefined && !NAME.test(name)) return `"${line}" is no header`;
    if (Object.hasOwn(headers, name)) return `Header "${name}" was given twice`;
    const value = line.slice(line.startsWith(" ", colon + 1) ? colon + 2 : colon + 1);
    const isTrimmed = value.charCodeAt(0) > BLANK && value.charCodeAt(value.length - 1) > BLANK;
    headers[name] = isTrimmed ? value : value.trim();
  }
  const length = headers["content-length"];
  const bodyBytes = bytes.length - end - 4;
  if (length !== String(bodyBytes))
    return `The body has ${bodyBytes} bytes, Content-Length says ${length ?? "nothing"}`;
  if (headers["transfer-encoding"] !== undefined) return "The body is encoded";
  return { plugin, headers, body: bytes.toString("utf8", end + 4) };
}

/** Largest request body, as the shim's: bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Largest request head; the shim forwards eight variables of up to 64 KiB: bytes. */
export const MAX_HEAD_BYTES = 768 * 1024;
