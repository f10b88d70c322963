import { expect, it } from "vitest";
import { formatErrno } from "../../../host/kernel/errno.ts";

it.each([
  [2, "no such file or directory (ENOENT)"],
  [19, "no such device (ENODEV)"],
  [74, "EBADMSG"],
  [95, "operation not supported (EOPNOTSUPP)"],
  [9_999, "errno 9999"],
])("errno %i reads %j", (number, text) => expect(formatErrno(number)).toBe(text));
