import { expect, it } from "vitest";
import { parseSubject } from "../../../host/cli/arguments.ts";

it.each([
  ["10.6.0.7", "10.6.0.7"],
  ["FD00::7", "fd00::7"],
  ["fd00:0:0:0:0:0:0:7", "fd00::7"],
  ["shop/web-0", "shop/web-0"],
])("%s is looked for as %s", (subject, wanted) => expect(parseSubject(subject)).toBe(wanted));
