/**
 * A server of JSON on loopback, with a token in a file.
 * Effects: the server, and the file below the system's temporary folder, until it is disposed.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Product } from "../../record-server/prefix-server.ts";

export abstract class JsonServer implements AsyncDisposable {
  readonly product: Product;
  url = "";
  tokenFile = "";
  readonly #server = createServer((request, response) => void this.#read(request, response));
  #directory = "";

  constructor(product: Product = "nautobot") {
    this.product = product;
  }

  async listen(): Promise<this> {
    this.#directory = await mkdtemp(join(tmpdir(), "berth-record-server-"));
    this.tokenFile = join(this.#directory, "token");
    await writeFile(this.tokenFile, "0123456789abcdef0123456789abcdef01234567\n");
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), "close");
    await rm(this.#directory, { recursive: true });
  }

  /** `body`: undefined if there is none. Rejects if the connection is to be closed without an answer. */
  protected abstract serve(method: string, url: URL, body: unknown, response: ServerResponse): Promise<void>;

  async #read(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const body = text === "" ? undefined : JSON.parse(text);
      await this.serve(request.method ?? "", new URL(request.url ?? "/", this.url), body, response);
    } catch {
      response.destroy();
    }
  }
}
