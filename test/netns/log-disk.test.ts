/** The coordinator's log on a small disk of its own. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openPluginLogs } from "../../host/agent/coordinator/plugin-logs.ts";
import { requireCommand } from "../lab/command.ts";
import { recordLog, until } from "../world/recorded-log.ts";

const LOST = "warn Writing the coordinator's log file failed; lines are lost";
const BACK = "info Writing the coordinator's log file works again";

it("a full disk costs lines, no call; every whole line is JSON", async () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-log-disk-"));
  await requireCommand(["mount", "-t", "tmpfs", "-o", "size=64k", "berth-test", directory]);
  const { log, lines } = recordLog();
  const logs = openPluginLogs({ directory, isAdministrators: () => true, log, nowMs: () => 0 });
  const write = (text: string) => logs.for({ logFile: "/var/log/vendor/a.log", logLevel: "debug" }).info(text);
  const [path, filler] = [join(directory, "a.log"), join(directory, "filler")];
  try {
    write("one");
    await until(() => readFileSync(path, "utf8").endsWith("\n"));
    await requireCommand(["sh", "-c", `cat /dev/zero > ${filler} || true`]);
    for (let n = 0; n < 20; n++) write(`number ${n} ${"y".repeat(900)}`);
    await until(() => lines.length === 1);
    expect(lines).toEqual([LOST]);
    rmSync(filler);
    write("last");
    await until(() => lines.length === 2);
    expect(lines).toEqual([LOST, BACK]);
    const texts = readFileSync(path, "utf8").split("\n").slice(0, -1);
    const whole = texts.flatMap((text) => (text.endsWith("}") ? [String(JSON.parse(text).msg)] : []));
    expect([whole.at(0), whole.at(-2), whole.at(-1)]).toEqual([
      "one",
      "At most 20 lines before this one are missing",
      "last",
    ]);
    expect(texts.length - whole.length).toBeLessThanOrEqual(1);
  } finally {
    await logs.close();
    await requireCommand(["umount", directory]);
    rmSync(directory, { recursive: true });
  }
});
