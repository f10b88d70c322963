import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { AUDIT_FILE, AuditLog } from "../../../../host/agent/log/audit-log.ts";
import { openLog } from "../../../../host/lib/log.ts";
import { rowOf } from "../../../world/search.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

it("a start writes rows of earlier ADDs only, and each before the DEL that comes meanwhile", async () => {
  const directory = temporaryDirectory("berth-audit-", onTestFinished);
  const audit = new AuditLog({ directory, node: "n1", log: openLog("test", "silent"), nowMs: () => 10 });
  const rows = [9, 9, 10].map((sinceMs, at) => rowOf(`10.6.0.${at}`, { containerId: `c${at}`, sinceMs }));
  setImmediate(() => audit.record({ audit: "DEL", allocations: rows.slice(1, 2) }));
  await audit.started({ list: async () => rows });
  await audit.close();
  const lines = readFileSync(join(directory, AUDIT_FILE), "utf8").trim().split("\n");
  const told = lines.map((line) => JSON.parse(line)).map((line) => [line.audit, ...line.addresses].join(" "));
  expect(told).toEqual(["START", "HELD 10.6.0.0", "HELD 10.6.0.1", "DEL 10.6.0.1"]);
});
