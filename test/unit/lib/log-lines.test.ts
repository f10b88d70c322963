import { expect, it } from "vitest";
import { formatLine, openLog } from "../../../host/lib/log.ts";

function printed(format: "json" | "text", work: (log: ReturnType<typeof openLog>) => void): string {
  let text = "";
  const log = openLog("berth-agent", "info", {
    format,
    send: (bytes) => {
      text += Buffer.from(bytes).toString();
      return bytes.length;
    },
  });
  work(log);
  return text.replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, "NOW");
}

it("a line of JSON has the name of its program", () => {
  expect(JSON.parse(printed("json", (log) => log.info("Started")))).toMatchObject({
    ...{ level: "info", name: "berth-agent", msg: "Started", time: "NOW" },
  });
});

it("a line of text has time, level, message and fields", () => {
  expect(
    printed("text", (log) => log.child({ part: "usage" }).warn({ n: 2, of: "a b", ips: ["10.6.0.1"] }, "It is so")),
  ).toBe('NOW WARN  It is so part=usage n=2 of="a b" ips=["10.6.0.1"]\n');
  expect(printed("text", (log) => log.debug("no"))).toBe("");
});

it("an error has its stack on lines of its own", () => {
  const stack = "TypeError: no disk\n    at a\n    at b";
  const error = Object.assign(new TypeError("no disk"), { code: "EIO", stack });
  expect(printed("text", (log) => log.error({ err: error }, "Cannot write"))).toBe(
    'NOW ERROR Cannot write err="no disk" code=EIO\n    at a\n    at b\n',
  );
});

it("a tenant's text stays on its line", () => {
  const line = JSON.stringify({ time: "T", level: "info", msg: "a\u001b[2J\nb", pod: "\u2028" });
  expect(formatLine(line)).toBe('T INFO  a\\u{1b}[2J\\u{a}b pod="\\u{2028}"\n');
});
