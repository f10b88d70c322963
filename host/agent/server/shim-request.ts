/** The shim's requests as bytes (docs/shim-protocol.md), from its spool. */
import type { RawRequest } from "./dispatcher.ts";

const REQUEST_LINE = /^POST \/v1\/cni\/([a-z]+) HTTP\/1\.1$/;
/** Bytes that no line of the shim has. */
const FOREIGN = /[^\x20-\x7e\r\n]/;
const NAME = /^[\w-]+$/;

const BLANK = 0x20;

/** The lower-case names of the headers as the shim writes them: looking one up costs less than a name of its own for each request. */
const SHIM_HEADERS: ReadonlyMap<string, string> = new Map(
  [
    ...["Host", "Connection", "Content-Type", "Content-Length", "Traceparent"],
    ...["CNI-Command", "CNI-ContainerID", "CNI-Netns", "CNI-IfName", "CNI-Args", "CNI-Path", "CNI-Netns-Override"],
  ].map((name) => [name, name.toLowerCase()]),
);

/** Returns the request; a sentence if the bytes are not exactly one that the shim sends. */
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
