/** Which lines a search of the audit log's files finds, from either end, and when it is not carried out. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { AUDIT_FILE } from "../../../../host/agent/log/audit-log.ts";
import { History } from "../../../../host/agent/log/history.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

const directory = temporaryDirectory("berth-history-");

const line = (number: number, audit = "ADD") => ({
  time: new Date(number * 1_000).toISOString(),
  ...{ level: "info", audit, plugin: "berth", node: "n1", namespace: "shop", pod: `p${number}`, uid: "u" },
  ...{ interface: "eth0", network: "lan", addresses: ["10.6.0.21"], pools: [], sources: [], rule: "", container: "c" },
  ...{ code: 0, ms: 1 },
});

/** Three files with 400 lines each; the newest has no number. */
beforeAll(() => {
  for (let file = 0; file < 3; file++) {
    const lines = Array.from({ length: 400 }, (_, index) =>
      line((2 - file) * 400 + index, index === 0 ? "START" : "ADD"),
    );
    const path = join(directory, file === 0 ? AUDIT_FILE : `${AUDIT_FILE}.${file}`);
    writeFileSync(path, lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
  }
});

const ADDRESS = { address: "10.6.0.21", skip: 0 };
const podsOf = (found: Awaited<ReturnType<History["find"]>>) =>
  found === "busy" ? [] : found.lines.map(({ pod }) => Number(pod.slice(1)));

it("begins with the oldest line, and says where the next page does", async () => {
  const found = await new History(directory, "n1").find(ADDRESS);
  expect(podsOf(found)).toHaveLength(500);
  expect([podsOf(found)[0], podsOf(found).at(-1)]).toEqual([1, 500]);
  expect(found).toMatchObject({ next: { since: line(500).time, skip: 1 } });
});

it("finds the newest lines of the newest files, without starts", async () => {
  const found = await new History(directory, "n1").find({ ...ADDRESS, isNewest: true });
  const pods = podsOf(found);
  expect([pods.length, pods[0], pods.at(-1)]).toEqual([500, 699, 1_199]);
  // The oldest file was not read.
  expect(found).toMatchObject({ hasOlder: true, from: line(400, "START").time });
  const pod = { namespace: "shop", name: "p7" };
  const one = await new History(directory, "n1").find({ pod, skip: 0, isNewest: true });
  expect([podsOf(one), one]).toEqual([[7], expect.objectContaining({ hasOlder: false })]);
});

it("of many searches some are refused, and those of callers that have left end", async () => {
  const history = new History(directory, "n1");
  const left = new AbortController();
  const searches = Array.from({ length: 10 }, () =>
    history.find(ADDRESS, left.signal).catch((error: Error) => error.message),
  );
  left.abort(new Error("left"));
  expect(await Promise.all(searches)).toEqual([...Array.from({ length: 8 }, () => "left"), "busy", "busy"]);
  expect(podsOf(await history.find(ADDRESS))).toHaveLength(500);
});
