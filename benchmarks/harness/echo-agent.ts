/**
 * The same as echo-agent.c in Node.js: what remains of a call's time when the agent does nothing but HTTP.
 * Started by ipam/floor.ts: `node echo-agent.ts SOCKET`.
 * Effects: serves the socket until it is killed.
 */
import { createServer } from "node:http";

const body = JSON.stringify({ cniVersion: "1.0.0", ips: [{ address: "10.0.0.2/24" }], dns: {} });

const server = createServer((call, answer) => {
  call.resume().on("end", () => {
    answer.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length }).end(body);
  });
});
server.listen(process.argv[2]);
