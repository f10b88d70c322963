import { describe, expect, it } from "vitest";
import { parseGet, parseShimRequest } from "../../../../host/agent/server/shim-request.ts";

const HEAD = "GET /v1/pools?a=1 HTTP/1.1\r\nHost: b\r\n";

describe("a question", () => {
  it.each([
    { what: "complete", text: `${HEAD}\r\n`, url: "/v1/pools?a=1" },
    { what: "with further headers", text: `${HEAD}Accept: */*\r\n\r\n`, url: "/v1/pools?a=1" },
    { what: "without its end", text: HEAD, url: undefined },
    { what: "with something behind it", text: `${HEAD}\r\nGET`, url: undefined },
    { what: "with another one behind it", text: `${HEAD}\r\n${HEAD}\r\n`, url: undefined },
    { what: "with a body to come", text: `${HEAD}content-length: 2\r\n\r\n`, url: undefined },
    { what: "with a body in pieces", text: `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, url: undefined },
    { what: "for another protocol", text: `${HEAD}Upgrade: websocket\r\n\r\n`, url: undefined },
    { what: "with bytes beyond ASCII", text: `${HEAD}X: ü\r\n\r\n`, url: undefined },
    { what: "to change something", text: "POST /v1/recover HTTP/1.1\r\nHost: b\r\n\r\n", url: undefined },
    { what: "of an old version", text: "GET / HTTP/1.0\r\n\r\n", url: undefined },
    { what: "without a path", text: "GET b:1 HTTP/1.1\r\n\r\n", url: undefined },
  ])("$what: $url", ({ text, url }) => {
    expect(parseGet(Buffer.from(text))).toBe(url);
  });
});

describe("a call", () => {
  const call = (...lines: string[]): string =>
    ["POST /v1/cni/berth HTTP/1.1", ...lines, "Content-Length: 2", "", "{}"].join("\r\n");
  it.each([
    { what: "as the shim writes it", lines: ["CNI-ContainerID: abc", "CNI-Args: "] },
    { what: "in other letters", lines: ["cni-containerid: abc", "CNI-ARGS: "] },
    { what: "with more or fewer blanks", lines: ["CNI-ContainerID:  abc ", "CNI-Args:"] },
    { what: "with a line break of its own at the end of a value", lines: ["CNI-ContainerID: abc\n", "CNI-Args: \n"] },
  ])("$what has the same headers", ({ lines }) => {
    const headers = { "cni-containerid": "abc", "cni-args": "", "content-length": "2" };
    expect(parseShimRequest(Buffer.from(call(...lines)))).toEqual({ plugin: "berth", headers, body: "{}" });
  });
  it.each([
    { what: "a header twice", lines: ["CNI-Path: /a", "CNI-Path: /a"], refusal: 'Header "cni-path" was given twice' },
    {
      what: "a header twice in other letters",
      lines: ["CNI-Path: /a", "cni-PATH: /a"],
      refusal: 'Header "cni-path" was given twice',
    },
    { what: "a name with a blank", lines: ["CNI-Path : /a"], refusal: '"CNI-Path : /a" is no header' },
    { what: "a line without a colon", lines: ["CNI-Path"], refusal: '"CNI-Path" is no header' },
  ])("with $what is refused", ({ lines, refusal }) => {
    expect(parseShimRequest(Buffer.from(call(...lines)))).toBe(refusal);
  });
});
