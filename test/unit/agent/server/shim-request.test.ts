import { describe, expect, it } from "vitest";
import { parseGet } from "../../../../host/agent/server/shim-request.ts";

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
