import { join } from "node:path";
import { expect, it } from "vitest";
import { formatErrno } from "../../../host/kernel/errno.ts";
import { loadNative } from "../../../host/kernel/native.ts";

const root = join(import.meta.dirname, "../../..");

it("an addon that is missing is named", () => {
  expect(() => loadNative("/nonexistent/berth.node")).toThrow(/\/nonexistent\/berth\.node/);
});

it("a module that is no addon of ours is refused", () => {
  const other = join(root, "package.json");
  expect(() => loadNative(other)).toThrow(/is older than this program: run native\/build.sh addon/);
});

it.each([
  [2, "no such file or directory (ENOENT)"],
  [19, "no such device (ENODEV)"],
  [74, "EBADMSG"],
  [95, "operation not supported (EOPNOTSUPP)"],
  [9_999, "errno 9999"],
])("errno %i reads %j", (number, text) => expect(formatErrno(number)).toBe(text));
