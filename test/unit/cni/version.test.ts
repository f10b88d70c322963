import { expect, it } from "vitest";
import { CniError, ErrorCode } from "../../../host/cni/error.ts";
import { decodeCniVersion, SUPPORTED_VERSIONS } from "../../../host/cni/version.ts";

it.each(SUPPORTED_VERSIONS)("%s is spoken", (version) => expect(decodeCniVersion(version)).toBe(version));

const LIST = "0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0";
const missing = `CNI version "0.1.0", which a missing "cniVersion" stands for, is not supported; supported are ${LIST}`;
const refused: [value: unknown, code: number, message: string][] = [
  [undefined, ErrorCode.IncompatibleVersion, missing],
  [null, ErrorCode.IncompatibleVersion, missing],
  ["", ErrorCode.IncompatibleVersion, missing],
  ["0.1.0", ErrorCode.IncompatibleVersion, `CNI version "0.1.0" is not supported; supported are ${LIST}`],
  ["1.0", ErrorCode.IncompatibleVersion, `CNI version "1.0" is not supported; supported are ${LIST}`],
  [1, ErrorCode.DecodeFailure, 'Field "cniVersion" is not text; expected a version such as "1.0.0"'],
  [["1.0.0"], ErrorCode.DecodeFailure, 'Field "cniVersion" is not text; expected a version such as "1.0.0"'],
];

it.each(refused)("%j is refused", (value, code, message) => {
  expect(() => decodeCniVersion(value)).toThrow(expect.objectContaining({ code, message }));
  expect(() => decodeCniVersion(value)).toThrow(CniError);
});
