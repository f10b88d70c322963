import { describe, expect, it } from "vitest";
import { commandTail } from "../../../host/cli/command-tail.ts";

describe("the output of a command", () => {
  const run = (script: string, maxBytes = 1_000, timeoutMs = 20_000) =>
    commandTail(["sh", "-c", script], { maxBytes, timeoutMs });

  it("is kept from its end, however long it is", async () => {
    const { content, wholeBytes, failure } = await run("seq 1 100000; echo end");
    expect([content.length, wholeBytes, failure]).toEqual([1_000, 588_899, undefined]);
    expect(content.toString()).toMatch(/100000\nend\n$/);
  });

  it("is kept when the command fails, with the reason", async () => {
    expect(await run("echo some; echo why >&2; exit 3")).toEqual({
      ...{ content: Buffer.from("some\n"), wholeBytes: 5, failure: "sh ended with 3: why" },
    });
    const { failure } = await commandTail(["/no/such"], { maxBytes: 10, timeoutMs: 1_000 });
    expect(failure).toMatch(/^Cannot execute \/no\/such: /);
  });

  it("is not waited for longer than allowed", async () => {
    const { content, failure } = await run("echo first; sleep 600", 1_000, 2_000);
    expect([content.toString(), failure]).toEqual(["first\n", "No answer within 2 s"]);
  });
});
