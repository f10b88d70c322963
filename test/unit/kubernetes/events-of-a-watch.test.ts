import { describe, expect, it } from "vitest";
import { Lines, MAX_EVENT_BYTES } from "../../../host/kubernetes/http/lines.ts";
import { apiErrorOf, decodeEvent, decodeObject } from "../../../host/kubernetes/http/status.ts";

describe("lines", () => {
  const text = '{"a":"größer 地址 🙂"}\n\n{"b":1}\r\n{"half":';
  const bytes = Buffer.from(text);
  const expected = ['{"a":"größer 地址 🙂"}', '{"b":1}\r'];

  it.each(Array.from({ length: bytes.length + 1 }, (_, index) => index))("cut at byte %i", (index) => {
    const lines = new Lines();
    expect([...lines.push(bytes.subarray(0, index)), ...lines.push(bytes.subarray(index))]).toEqual(expected);
    expect(lines.rest()).toBe('{"half":');
    expect(lines.rest()).toBe("");
  });

  it("byte by byte", () => {
    const lines = new Lines();
    expect([...bytes].flatMap((byte) => lines.push(Buffer.from([byte])))).toEqual(expected);
  });

  it("refuse one that does not end", () => {
    const lines = new Lines();
    const piece = Buffer.alloc(MAX_EVENT_BYTES / 4, "x");
    for (let count = 0; count < 4; count++) lines.push(piece);
    expect(() => lines.push(piece)).toThrow("longer than");
  });
});

describe("an event", () => {
  const object = { metadata: { name: "a" } };

  it.each(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])("of type %s", (type) => {
    expect(decodeEvent("WATCH /x", JSON.stringify({ type, object }))).toEqual({ type, object });
  });

  const refused: readonly (readonly [string, string, string])[] = [
    ["no JSON", '{"type":"ADD', "a line that is no JSON object"],
    ["a list", "[]", "a line that is no JSON object"],
    ["no object", '{"type":"ADDED"}', "an event without an object"],
    ["an object that is text", '{"type":"ADDED","object":"x"}', "an event without an object"],
    ["a type of its own", '{"type":"added","object":{}}', "an event of an unknown type"],
  ];
  it.each(refused)("with %s is an error", (_, line, message) => {
    expect(() => decodeEvent("WATCH /x", line)).toThrow(message);
  });

  it("of type ERROR is what it says", () => {
    const status = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version: 1 (2)" };
    const line = JSON.stringify({ type: "ERROR", object: status });
    expect(() => decodeEvent("WATCH /x", line)).toThrow(
      expect.objectContaining({ name: "ApiError", status: 410, reason: "Expired", operation: "WATCH /x" }),
    );
  });

  it("of type ERROR without a Status is a failure of the server", () => {
    expect(() => decodeEvent("WATCH /x", '{"type":"ERROR","object":{}}')).toThrow(
      expect.objectContaining({ name: "ApiError", status: 500 }),
    );
  });
});

describe("an answer", () => {
  it("that is a Status has reason and causes", () => {
    const causes = [{ reason: "FieldValueInvalid", field: "spec.ips[0]", message: "no address" }];
    const status = { kind: "Status", code: 422, reason: "Invalid", message: "pool is invalid", details: { causes } };
    const error = apiErrorOf("POST /x", 422, JSON.stringify(status));
    expect(error).toMatchObject({ status: 422, reason: "Invalid", operation: "POST /x" });
    expect(error.message).toBe("POST /x was answered with 422 Invalid: pool is invalid");
    expect(error.causes).toEqual([{ field: "spec.ips[0]", message: "no address" }]);
  });

  const others: readonly (readonly [string, string, string])[] = [
    ["a proxy's page", "<html>Bad gateway</html>", "GET /x was answered with 502: <html>Bad gateway</html>"],
    ["nothing", "", "GET /x was answered with 502"],
    ["another object", '{"kind":"Pod"}', 'GET /x was answered with 502: {"kind":"Pod"}'],
    ["a Status without fields", '{"kind":"Status"}', "GET /x was answered with 502"],
    ["a long text", "x".repeat(600), `GET /x was answered with 502: ${"x".repeat(500)}…`],
  ];
  it.each(others)("that is %s", (_, body, message) => {
    expect(apiErrorOf("GET /x", 502, body)).toMatchObject({ message, reason: "", causes: [] });
  });

  it.each(["", "ok", "[]", "null", '{"a":'])("of 200 that is no object: %s", (body) => {
    expect(() => decodeObject(body)).toThrow("The answer is no JSON object");
  });
});
