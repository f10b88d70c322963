/**
 * An agent that does of a cluster's agent only what none can leave out: for an ADD it creates an object of an
 * allocation's kind and size, and answers when the API server has; for a DEL it answers, and deletes the object after
 * that. It claims, records and checks nothing. Started by create-floor.ts: `node create-agent.ts SOCKET KUBECONFIG
 * SPACE`.
 * Effects: serves the socket until it is killed; objects in the API server.
 */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { connectClient } from "../../test/lab/cluster/in-process.ts";
import { bareObject, barePath, COLLECTION } from "./bare-object.ts";

const [socket = "", kubeconfig = "", space = ""] = process.argv.slice(2);
const result = JSON.stringify({ cniVersion: "1.0.0", ips: [{ address: "10.0.0.2/24" }], dns: {} });
const api = await connectClient(kubeconfig, "bench");

/** `bench-17` is number 17. */
const numberOf = (headers: IncomingHttpHeaders): number => Number(String(headers["cni-containerid"]).split("-").at(-1));

const server = createServer((call, answer) => {
  const reply = (status: number, text: string): unknown =>
    answer
      .writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) })
      .end(text);
  const fail = (error: unknown): unknown => reply(500, JSON.stringify({ code: 999, msg: String(error) }));
  call.resume().on("end", () => {
    const number = numberOf(call.headers);
    if (call.headers["cni-command"] === "ADD") {
      const body = bareObject(space, number);
      api.call({ method: "POST", path: COLLECTION, body, lane: "pod" }).then(() => reply(200, result), fail);
      return;
    }
    reply(200, "{}");
    // Without its answer the round would never end (create-floor.ts).
    void api.call({ method: "DELETE", path: barePath(space, number) });
  });
});
server.listen(socket);
