import { describe, expect, it } from "vitest";
import { MAX_ANSWER_BYTES } from "../../../host/kubernetes/http/endpoint.ts";
import { LIST_PAGE, listPages } from "../../../host/kubernetes/list.ts";
import { type Stub, sendJson, startStub } from "./stub-server.ts";

/** A server with so many objects, each of so many bytes, which gives as many on a page as it is asked for. */
async function serve(count: number, lengthBytes: number): Promise<Stub> {
  const config = "x".repeat(lengthBytes);
  return startStub((response, { url }) => {
    const { searchParams } = new URL(url, "http://stub");
    const first = Number(searchParams.get("continue") ?? 0);
    const end = Math.min(first + Number(searchParams.get("limit")), count);
    const items = Array.from({ length: end - first }, (_, at) => ({ metadata: { name: `n${first + at}` }, config }));
    sendJson(response, 200, { metadata: { resourceVersion: "7", continue: end < count ? String(end) : "" }, items });
  });
}

async function countObjects(stub: Stub): Promise<number> {
  let count = 0;
  for await (const { items } of listPages(stub.client, { path: "/things" })) count += items.length;
  return count;
}

const limitsOf = ({ requests }: Stub) =>
  requests.map(({ url }) => Number(new URL(url, "http://stub").searchParams.get("limit")));

describe("a list", () => {
  it("begins with a small page, and the pages grow", async () => {
    const stub = await serve(1_200, 10);
    expect(await countObjects(stub)).toBe(1_200);
    expect(limitsOf(stub)).toEqual([100, 400, LIST_PAGE, LIST_PAGE]);
  });

  it("has no more on a page than takes a mebibyte", async () => {
    const stub = await serve(160, 100_000);
    expect(await countObjects(stub)).toBe(160);
    expect(limitsOf(stub)[0]).toBe(100);
    expect(Math.max(...limitsOf(stub).slice(1))).toBeLessThanOrEqual(13);
  });

  it("of objects of the largest size that the API server accepts is read one by one", async () => {
    const stub = await serve(9, 3 * 1024 * 1024);
    expect(await countObjects(stub)).toBe(9);
    expect(limitsOf(stub)).toEqual([100, 13, 2, ...Array(9).fill(1)]);
  });

  it("with an object that is larger than any answer may be fails", async () => {
    const stub = await serve(1, MAX_ANSWER_BYTES);
    await expect(countObjects(stub)).rejects.toThrow("GET /things failed after 1 attempt");
    expect(limitsOf(stub)).toEqual([100, 13, 2, 1]);
  });
});
