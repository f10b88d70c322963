/**
 * The programs of the test's pods, for any Node.js: a server that says that it is there, and probes of targets, which
 * need no rights and no other program.
 */

/** Port of the pods' servers. */
export const SERVER_PORT = 8080;

/** A target of the program, whose first argument is a list of these as JSON; the second is {@link PROBE_MS}. */
export interface ProbeTarget {
  readonly id: number;
  readonly family: 4 | 6;
  /**
   * `gateway`: the default route's next hop, which has to answer ARP or NDP. `machine`: any answer of TCP counts, also
   * a refusal. `server`: a pod's server has to answer; `service`: the same, and if it does not, the answer says whether
   * a kube-proxy runs beside.
   */
  readonly kind: "gateway" | "machine" | "server" | "service";
  /** "" of a gateway. */
  readonly host: string;
  readonly port: number;
}

/** Port on which a kube-proxy, or a substitute such as Cilium, tells of its health. */
const PROXY_PORT = 10256;

/** The program prints a list of these as JSON. */
export interface ProbeAnswer {
  readonly id: number;
  /** Absent if there is nothing to probe, such as no gateway. */
  readonly isWell?: boolean | undefined;
  readonly text: string;
}

export const SERVER_SCRIPT = `
require("net").createServer((s) => { s.on("error", () => {}); s.on("data", () => s.end("berth-test\\n")); }).listen(${SERVER_PORT});
process.on("SIGTERM", () => process.exit(0));
`;

export const WAIT_SCRIPT = `
process.on("SIGTERM", () => process.exit(0));
setInterval(() => {}, 1e6);
`;

/** A target that fails is tried again until this is over: rules of services follow their pods. */
export const PROBE_MS = 15_000;

export const PROBE_SCRIPT = `
const net = require("net"), fs = require("fs");
const LIMIT_MS = 4000, END = Date.now() + Number(process.argv[2]);
function lines(path) {
  if (!fs.existsSync(path)) return [];
  const fd = fs.openSync(path);
  try { return fs.readFileSync(fd, "utf8").split("\\n"); } finally { fs.closeSync(fd); }
}
function gateway(family) {
  if (family === 4) {
    for (const line of lines("/proc/net/route").slice(1)) {
      const [, to, via, , , , , mask] = line.split(/\\s+/);
      if (to === "00000000" && mask === "00000000" && via !== "00000000")
        return via.match(/../g).reverse().map((byte) => parseInt(byte, 16)).join(".");
    }
    return undefined;
  }
  for (const line of lines("/proc/net/ipv6_route")) {
    const [to, bits, , , via, , , , , dev] = line.trim().split(/\\s+/);
    if (/^0{32}$/.test(to) && bits === "00" && !/^0{32}$/.test(via))
      return via.match(/.{4}/g).join(":") + (via.startsWith("fe8") ? "%" + dev : "");
  }
}
function once({ kind, host, port }) {
  return new Promise((resolve) => {
    let answer = "";
    const asks = kind === "server" || kind === "service";
    const socket = net.connect({ host, port });
    const end = (isWell, text) => { clearTimeout(timer); socket.destroy(); resolve({ isWell, text }); };
    const timer = setTimeout(() => end(kind === "gateway", "no answer within " + LIMIT_MS / 1000 + " s"), LIMIT_MS);
    socket.on("connect", () => (asks ? socket.write("?\\n") : end(true, "")));
    socket.on("data", (data) => { answer += data; });
    socket.on("end", () => end(answer.startsWith("berth-test"), "something else answers"));
    socket.on("error", ({ code }) => end(code === "ECONNREFUSED" && !asks, code));
  });
}
async function proxy() {
  const { text } = await once({ kind: "machine", host: "127.0.0.1", port: ${PROXY_PORT} });
  return text === "" ? "" : "; no kube-proxy answers on port ${PROXY_PORT} of the node, so no Service is reached";
}
async function probe({ id, family, kind, host, port }) {
  const target = kind === "gateway" ? gateway(family) : host;
  if (target === undefined) return { id, text: "no default gateway" };
  for (;;) {
    const { isWell, text } = await once({ kind, host: target, port });
    if (isWell) return { id, isWell, text: target };
    if (Date.now() > END) return { id, isWell, text: target + ": " + text + (kind === "service" ? await proxy() : "") };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
Promise.all(JSON.parse(process.argv[1]).map(probe)).then((answers) => console.log(JSON.stringify(answers)));
`;
