import { describe, expect, it } from "vitest";
import { parseShimRequest } from "../../../../host/agent/server/spool.ts";

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
  const TWICE = 'Header "cni-path" was given twice';
  it.each([
    { what: "a header twice", lines: ["CNI-Path: /a", "CNI-Path: /a"], refusal: TWICE },
    { what: "a header twice in other letters", lines: ["CNI-Path: /a", "cni-PATH: /a"], refusal: TWICE },
    { what: "a name with a blank", lines: ["CNI-Path : /a"], refusal: '"CNI-Path : /a" is no header' },
    { what: "a line without a colon", lines: ["CNI-Path"], refusal: '"CNI-Path" is no header' },
  ])("with $what is refused", ({ lines, refusal }) => {
    expect(parseShimRequest(Buffer.from(call(...lines)))).toBe(refusal);
  });
});
