/**
 * Many watches of a real API server, as many agents have them: HTTP/2 streams over few connections, whose bytes are
 * counted and dropped.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { requireToken } from "../../lab/cluster/plane-parts.ts";
import type { ControlPlane } from "../../lab/control-plane.ts";
import { inParallel } from "../../lab/parallel.ts";

/** Below the API server's limit for one connection. */
const STREAMS = 90;
const OPEN_AT_ONCE = 32;

export class Watchers implements AsyncDisposable {
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #streams: ClientHttp2Stream[] = [];
  readonly #plane: ControlPlane;
  readonly #token: string;
  readonly #ca: string;
  bytes = 0;

  static async open(plane: ControlPlane): Promise<Watchers> {
    const pair = await plane.pair();
    return new Watchers(plane, pair.cert);
  }

  private constructor(plane: ControlPlane, ca: string) {
    this.#plane = plane;
    this.#token = requireToken(plane.parts, undefined);
    this.#ca = ca;
  }

  get count(): number {
    return this.#streams.length;
  }

  /** Opens more of them, from now on. `onBytes` hears of each piece that watch number `index` receives. */
  async add(
    count: number,
    pathOf: (index: number) => string,
    onBytes: (index: number, piece: Buffer) => void = () => {},
  ): Promise<void> {
    const first = this.#streams.length;
    const sessions = Math.ceil((first + count) / STREAMS);
    while (this.#sessions.length < sessions) {
      const session = connect(this.#plane.url, { ca: this.#ca });
      session.on("error", () => {});
      this.#sessions.push(session);
    }
    const numbers = Array.from({ length: count }, (_, index) => first + index);
    await inParallel(numbers, OPEN_AT_ONCE, (index) => this.#open(index, pathOf(index), onBytes));
  }

  #open(index: number, path: string, onBytes: (index: number, piece: Buffer) => void): Promise<void> {
    const session = this.#sessions[Math.floor(index / STREAMS)] as ClientHttp2Session;
    const stream = session.request({
      [constants.HTTP2_HEADER_PATH]: `${path}${path.includes("?") ? "&" : "?"}watch=true&timeoutSeconds=3000`,
      authorization: `Bearer ${this.#token}`,
      accept: "application/json",
    });
    this.#streams.push(stream);
    stream.on("error", () => {});
    stream.on("data", (piece: Buffer) => {
      this.bytes += piece.length;
      onBytes(index, piece);
    });
    return new Promise((resolve, reject) => {
      stream.on("response", ({ ":status": status }) =>
        status === 200 ? resolve() : reject(new Error(`A watch of ${path} was answered with ${status}`)),
      );
      stream.on("close", () => reject(new Error(`A watch of ${path} was closed`)));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of this.#streams) stream.close(constants.NGHTTP2_CANCEL);
    for (const session of this.#sessions) session.destroy();
    this.#streams.length = 0;
    this.#sessions.length = 0;
  }
}
