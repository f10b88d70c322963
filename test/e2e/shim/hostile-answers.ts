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
export const hostileAnswers: readonly (readonly [name: string, script: Script, hint: string])[] = [
  ["says nothing", () => {}, "time limit"],
  ["closes without a word", (c) => c.end(), "closed"],
  ["destroys the connection", (c) => c.destroy(), "connection"],
  ["sends half a status line", sending("HTTP/1.1 2"), "closed"],
  ["holds half a status line", holding("HTTP/1.1 2"), "time limit"],
  ["sends half a header", sending("HTTP/1.1 200 OK\r\nContent-Le"), "closed"],
  ["sends headers without their end", sending("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), "closed"],
  ["sends half a body", sending(answer(200, RESULT).subarray(0, -5)), "closed"],
  ["holds half a body", holding(answer(200, RESULT).subarray(0, -5)), "time limit"],
  ["sends garbage", sending(Buffer.from(Array.from({ length: 999 }, (_, i) => (i * 7919) & 255))), "closed"],
  ["sends garbage with an empty line", sending("\0\xff\r\n\r\n{}"), "HTTP/1.1"],
  ["speaks HTTP/2", sending("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1"],
  ["speaks HTTP/0.9", sending(RESULT), "closed"],
  ["has a status of two digits", sending("HTTP/1.1 20\r\nContent-Length: 2\r\n\r\n{}"), "HTTP/1.1"],
  ["has a status of four digits", sending("HTTP/1.1 2000\r\nContent-Length: 2\r\n\r\n{}"), "HTTP/1.1"],
  ["ends lines with LF alone", sending("HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"), "closed"],
  ["has a header without a colon", sending(`${head("Content-Length: 2", "nonsense")}{}`), "malformed"],
  ["has a blank before the colon", sending(`${head("Content-Length : 2")}{}`), "malformed"],
  ["folds a header", sending(`${head("Content-Length: 2", " folded: x")}{}`), "malformed"],
  ["gives no length", sending(`${head("Server: x")}{}`), "no Content-Length"],
  ["gives an empty length", sending(`${head("Content-Length:")}{}`), "Content-Length"],
  ["gives a negative length", sending(`${head("Content-Length: -2")}{}`), "Content-Length"],
  ["gives a hexadecimal length", sending(`${head("Content-Length: 0x2")}{}`), "Content-Length"],
  ["gives two lengths", sending(`${head("Content-Length: 2", "content-length: 2")}{}`), "two"],
  ["gives a length of 1 MiB + 1", sending(`${head("Content-Length: 1048577")}{}`), "Content-Length"],
  ["gives a length beyond 64 bits", sending(`${head(`Content-Length: ${"9".repeat(40)}`)}{}`), "Content-Length"],
  ["gives too great a length", sending(`${head("Content-Length: 99")}${RESULT}`), "closed"],
  ["gives too small a length", sending(`${head("Content-Length: 9")}${RESULT}`), "not a JSON object"],
  ["sends in chunks", sending(`${head("Transfer-Encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`), "chunked"],
  [
    "sends in chunks, with a length",
    sending(`${head("Content-Length: 2", "transfer-encoding: chunked")}{}`),
    "chunked",
  ],
  ["sends 16 KiB of headers", sending(head("Content-Length: 0", `X: ${"x".repeat(16_384)}`)), "16384"],
  ["sends headers for ever", trickling("HTTP/1.1 200 OK\r\n", "A: b\r\n"), "time limit"],
  ["sends a header line for ever", trickling("HTTP/1.1 200 OK\r\nA: ", "b"), "time limit"],
  ["sends a body for ever", trickling(head("Content-Length: 1048576"), " "), "time limit"],
  ["floods headers", sending(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(500_000)}`), "16384"],
  ["floods the body", sending(head("Content-Length: 1048576") + "[".repeat(2_000_000)), "not a JSON object"],
  ["has a body that is text", sending(answer(200, "ok")), "not a JSON object"],
  ["has a body that is a blank", sending(answer(200, " ")), "not a JSON object"],
  ["has a body that is an array", sending(answer(200, "[{}]")), "not a JSON object"],
  ["has a body that is null", sending(answer(200, "null")), "not a JSON object"],
  ["has a body of two objects", sending(answer(200, "{}{}")), "not a JSON object"],
  ["has a body with a NUL", sending(answer(200, '{"a":"\0"}')), "not a JSON object"],
  ["has a body with a byte order mark", sending(answer(200, `\uFEFF${RESULT}`)), "not a JSON object"],
  ["has a body nested 65 deep", sending(answer(200, deep(65))), "not a JSON object"],
  ["has a body nested 500,000 deep", sending(answer(200, deep(500_000))), "not a JSON object"],
  ["has a body in Latin-1", sending(answer(200, Buffer.from('{"a":"\xe9"}', "latin1"))), "not a JSON object"],
  [
    "has a body with a surrogate in UTF-8",
    sending(answer(200, Buffer.from('{"a":"\xed\xa0\x80"}', "latin1"))),
    "not a JSON object",
  ],
  [
    "has a body cut inside a character",
    sending(answer(200, Buffer.from('{"a":"\xe2\x82', "latin1"))),
    "not a JSON object",
  ],
  ["sends 200 with an error", sending(answer(200, ERROR)), "error with status 200"],
  ["sends 500 with garbage", sending(answer(500, "<html>oops</html>")), "without CNI error"],
  ["sends 500 without a body", sending(answer(500, "")), "without CNI error"],
  ["sends 500 with a result", sending(answer(500, RESULT)), "without CNI error"],
  ["sends an error without msg", sending(answer(500, '{"code":5}')), "without CNI error"],
  ["sends an error without code", sending(answer(500, '{"msg":"x"}')), "without CNI error"],
  ["sends a code that is text", sending(answer(500, '{"code":"5","msg":"x"}')), "without CNI error"],
  ["sends a code below zero", sending(answer(500, '{"code":-5,"msg":"x"}')), "without CNI error"],
  ["sends a code with a fraction", sending(answer(500, '{"code":5.0,"msg":"x"}')), "without CNI error"],
  ["sends a code beyond 32 bits", sending(answer(500, '{"code":5000000000,"msg":"x"}')), "without CNI error"],
  ["sends a msg that is an object", sending(answer(500, '{"code":5,"msg":{}}')), "without CNI error"],
  ["sends two codes", sending(answer(500, '{"code":"5","code":5,"msg":"x"}')), "without CNI error"],
  ["sends details that are no text", sending(answer(500, '{"code":5,"msg":"x","details":{}}')), "without CNI error"],
  [
    "sends a cniVersion that is no text",
    sending(answer(500, '{"code":5,"msg":"x","cniVersion":1}')),
    "without CNI error",
  ],
  ["redirects", sending(answer(302, RESULT, { Location: "/" })), "status"],
  ["creates", sending(answer(201, RESULT)), "status"],
  ["asks for more", sending("HTTP/1.1 100 Continue\r\n\r\n"), "no Content-Length"],
  ["has a status above 599", sending(answer(600, ERROR)), "status"],
];
