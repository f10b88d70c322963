/**
 * Acts of an agent instead of an answer: each a script, and a word of the shim's explanation.
 * Effects: none but those of the scripts on their connections.
 */
import { answer, type Script, sending } from "./scripted-agent.ts";

const RESULT = '{"cniVersion":"1.0.0","ips":[]}';
export const ERROR = '{"cniVersion":"1.0.0","code":101,"msg":"Pool is exhausted"}';

/** Sends `byte` over and over, too slowly to end in time. */
function trickling(start: string | Uint8Array, byte: string): Script {
  return (connection) => {
    connection.write(start);
    const timer = setInterval(() => connection.write(byte), 5);
    connection.on("close", () => clearInterval(timer));
  };
}

const holding =
  (bytes: string | Uint8Array): Script =>
  (connection) =>
    connection.write(bytes);

const head = (...lines: string[]) => `${["HTTP/1.1 200 OK", ...lines, "", ""].join("\r\n")}`;
const deep = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

/** Each is no complete answer, whatever the verb. `hint` is a word of the explanation. */
export const hostileAnswers: readonly { name: string; script: Script; hint: string }[] = [
  { name: "says nothing", script: () => {}, hint: "time limit" },
  { name: "closes without a word", script: (c) => c.end(), hint: "closed" },
  { name: "destroys the connection", script: (c) => c.destroy(), hint: "connection" },
  { name: "sends half a status line", script: sending("HTTP/1.1 2"), hint: "closed" },
  { name: "holds half a status line", script: holding("HTTP/1.1 2"), hint: "time limit" },
  { name: "sends half a header", script: sending("HTTP/1.1 200 OK\r\nContent-Le"), hint: "closed" },
  {
    name: "sends headers without their end",
    script: sending("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
    hint: "closed",
  },
  { name: "sends half a body", script: sending(answer(200, RESULT).subarray(0, -5)), hint: "closed" },
  { name: "holds half a body", script: holding(answer(200, RESULT).subarray(0, -5)), hint: "time limit" },
  {
    name: "sends garbage",
    script: sending(Buffer.from(Array.from({ length: 999 }, (_, i) => (i * 7919) & 255))),
    hint: "closed",
  },
  { name: "sends garbage with an empty line", script: sending("\0\xff\r\n\r\n{}"), hint: "HTTP/1.1" },
  { name: "speaks HTTP/2", script: sending("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), hint: "HTTP/1.1" },
  { name: "speaks HTTP/0.9", script: sending(RESULT), hint: "closed" },
  {
    name: "has a status of two digits",
    script: sending("HTTP/1.1 20\r\nContent-Length: 2\r\n\r\n{}"),
    hint: "HTTP/1.1",
  },
  {
    name: "has a status of four digits",
    script: sending("HTTP/1.1 2000\r\nContent-Length: 2\r\n\r\n{}"),
    hint: "HTTP/1.1",
  },
  { name: "ends lines with LF alone", script: sending("HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"), hint: "closed" },
  {
    name: "has a header without a colon",
    script: sending(`${head("Content-Length: 2", "nonsense")}{}`),
    hint: "malformed",
  },
  { name: "has a blank before the colon", script: sending(`${head("Content-Length : 2")}{}`), hint: "malformed" },
  { name: "folds a header", script: sending(`${head("Content-Length: 2", " folded: x")}{}`), hint: "malformed" },
  { name: "gives no length", script: sending(`${head("Server: x")}{}`), hint: "no Content-Length" },
  { name: "gives an empty length", script: sending(`${head("Content-Length:")}{}`), hint: "Content-Length" },
  { name: "gives a negative length", script: sending(`${head("Content-Length: -2")}{}`), hint: "Content-Length" },
  { name: "gives a hexadecimal length", script: sending(`${head("Content-Length: 0x2")}{}`), hint: "Content-Length" },
  { name: "gives two lengths", script: sending(`${head("Content-Length: 2", "content-length: 2")}{}`), hint: "two" },
  {
    name: "gives a length of 1 MiB + 1",
    script: sending(`${head("Content-Length: 1048577")}{}`),
    hint: "Content-Length",
  },
  {
    name: "gives a length beyond 64 bits",
    script: sending(`${head(`Content-Length: ${"9".repeat(40)}`)}{}`),
    hint: "Content-Length",
  },
  { name: "gives too great a length", script: sending(`${head("Content-Length: 99")}${RESULT}`), hint: "closed" },
  {
    name: "gives too small a length",
    script: sending(`${head("Content-Length: 9")}${RESULT}`),
    hint: "not a JSON object",
  },
  {
    name: "sends in chunks",
    script: sending(`${head("Transfer-Encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`),
    hint: "chunked",
  },
  {
    name: "sends in chunks, with a length",
    script: sending(`${head("Content-Length: 2", "transfer-encoding: chunked")}{}`),
    hint: "chunked",
  },
  {
    name: "sends 16 KiB of headers",
    script: sending(head("Content-Length: 0", `X: ${"x".repeat(16_384)}`)),
    hint: "16384",
  },
  { name: "sends headers for ever", script: trickling("HTTP/1.1 200 OK\r\n", "A: b\r\n"), hint: "time limit" },
  { name: "sends a header line for ever", script: trickling("HTTP/1.1 200 OK\r\nA: ", "b"), hint: "time limit" },
  { name: "sends a body for ever", script: trickling(head("Content-Length: 1048576"), " "), hint: "time limit" },
  { name: "floods headers", script: sending(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(500_000)}`), hint: "16384" },
  {
    name: "floods the body",
    script: sending(head("Content-Length: 1048576") + "[".repeat(2_000_000)),
    hint: "not a JSON object",
  },
  { name: "has a body that is text", script: sending(answer(200, "ok")), hint: "not a JSON object" },
  { name: "has a body that is a blank", script: sending(answer(200, " ")), hint: "not a JSON object" },
  { name: "has a body that is an array", script: sending(answer(200, "[{}]")), hint: "not a JSON object" },
  { name: "has a body that is null", script: sending(answer(200, "null")), hint: "not a JSON object" },
  { name: "has a body of two objects", script: sending(answer(200, "{}{}")), hint: "not a JSON object" },
  { name: "has a body with a NUL", script: sending(answer(200, '{"a":"\0"}')), hint: "not a JSON object" },
  {
    name: "has a body with a byte order mark",
    script: sending(answer(200, `\uFEFF${RESULT}`)),
    hint: "not a JSON object",
  },
  { name: "has a body nested 65 deep", script: sending(answer(200, deep(65))), hint: "not a JSON object" },
  { name: "has a body nested 500,000 deep", script: sending(answer(200, deep(500_000))), hint: "not a JSON object" },
  {
    name: "has a body in Latin-1",
    script: sending(answer(200, Buffer.from('{"a":"\xe9"}', "latin1"))),
    hint: "not a JSON object",
  },
  {
    name: "has a body with a surrogate in UTF-8",
    script: sending(answer(200, Buffer.from('{"a":"\xed\xa0\x80"}', "latin1"))),
    hint: "not a JSON object",
  },
  {
    name: "has a body cut inside a character",
    script: sending(answer(200, Buffer.from('{"a":"\xe2\x82', "latin1"))),
    hint: "not a JSON object",
  },
  { name: "sends 200 with an error", script: sending(answer(200, ERROR)), hint: "error with status 200" },
  { name: "sends 500 with garbage", script: sending(answer(500, "<html>oops</html>")), hint: "without CNI error" },
  { name: "sends 500 without a body", script: sending(answer(500, "")), hint: "without CNI error" },
  { name: "sends 500 with a result", script: sending(answer(500, RESULT)), hint: "without CNI error" },
  { name: "sends an error without msg", script: sending(answer(500, '{"code":5}')), hint: "without CNI error" },
  { name: "sends an error without code", script: sending(answer(500, '{"msg":"x"}')), hint: "without CNI error" },
  {
    name: "sends a code that is text",
    script: sending(answer(500, '{"code":"5","msg":"x"}')),
    hint: "without CNI error",
  },
  { name: "sends a code below zero", script: sending(answer(500, '{"code":-5,"msg":"x"}')), hint: "without CNI error" },
  {
    name: "sends a code with a fraction",
    script: sending(answer(500, '{"code":5.0,"msg":"x"}')),
    hint: "without CNI error",
  },
  {
    name: "sends a code beyond 32 bits",
    script: sending(answer(500, '{"code":5000000000,"msg":"x"}')),
    hint: "without CNI error",
  },
  {
    name: "sends a msg that is an object",
    script: sending(answer(500, '{"code":5,"msg":{}}')),
    hint: "without CNI error",
  },
  {
    name: "sends two codes",
    script: sending(answer(500, '{"code":"5","code":5,"msg":"x"}')),
    hint: "without CNI error",
  },
  {
    name: "sends details that are no text",
    script: sending(answer(500, '{"code":5,"msg":"x","details":{}}')),
    hint: "without CNI error",
  },
  {
    name: "sends a cniVersion that is no text",
    script: sending(answer(500, '{"code":5,"msg":"x","cniVersion":1}')),
    hint: "without CNI error",
  },
  { name: "redirects", script: sending(answer(302, RESULT, { Location: "/" })), hint: "status" },
  { name: "creates", script: sending(answer(201, RESULT)), hint: "status" },
  { name: "asks for more", script: sending("HTTP/1.1 100 Continue\r\n\r\n"), hint: "no Content-Length" },
  { name: "has a status above 599", script: sending(answer(600, ERROR)), hint: "status" },
];
