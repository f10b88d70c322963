import { constants } from "node:os";
import { expect, it } from "vitest";
import * as errno from "../../../host/kernel/errno.ts";

it.each([
  [2, "no such file or directory (ENOENT)"],
  [19, "no such device (ENODEV)"],
  [74, "EBADMSG"],
  [95, "operation not supported (EOPNOTSUPP)"],
  [9_999, "errno 9999"],
])("errno %i reads %j", (number, text) => {
  expect(errno.formatErrno(number)).toBe(text);
});

it("the numbers asked for are this machine's", () => {
  const asked = Object.entries(errno).filter(([, value]) => typeof value === "number");
  expect(asked).not.toEqual([]);
  for (const [name, value] of asked) expect(Reflect.get(constants.errno, name), name).toBe(value);
});
