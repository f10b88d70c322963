/** A support bundle has no secrets, is bounded, and is an archive that tar reads. */
import { spawnSync } from "node:child_process";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { MAX_BUNDLE, MAX_BUNDLE_FILE, packBundle } from "../../../host/cli/support/archive.ts";
import { redact } from "../../../host/cli/support/redact.ts";

const JWT = `eyJhbGciOiJSUzI1NiJ9.${"a".repeat(40)}.${"b".repeat(40)}`;
const PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----";

it.each([
  ["a token", `token: ${JWT}`, 'token: "[redacted]"'],
  ["a token in a sentence", `the token is ${JWT}.`, "the token is [redacted]."],
  ["a token in JSON", `{"token":"s3cret-value","a":1}`, `{"token":"[redacted]","a":1}`],
  ["a password", "PASSWORD=hunter2 next", 'PASSWORD="[redacted]" next'],
  ["a key", `key: |\n${PEM}\nend`, "key: |\n[redacted]\nend"],
  ["a key in JSON", JSON.stringify({ key: PEM }), '{"key":"[redacted]"}'],
  ["a kubeconfig", "client-key-data: TUlJ\nuser: a", 'client-key-data: "[redacted]"\nuser: a'],
  ["a header", "Authorization: Bearer abcdefghijkl", 'Authorization: "[redacted]" [redacted]'],
  ["no name of a file", "tokenFile: /var/run/token", "tokenFile: /var/run/token"],
  ["no address", "10.6.0.7 of pool blue", "10.6.0.7 of pool blue"],
])("redacts %s", (_what, text, wanted) => {
  expect(redact(text)).toBe(wanted);
});

it("is read by tar; a long file keeps its end, and what does not fit is listed", () => {
  const long = `${"a".repeat(MAX_BUNDLE_FILE)}end`;
  const many = Array.from({ length: MAX_BUNDLE / MAX_BUNDLE_FILE }, (_, index) => ({ path: `m${index}`, text: long }));
  const bundle = packBundle(
    "b",
    [{ path: "agent/health.json", text: "{}" }, ...many, { path: "small", text: "x" }],
    1_800_000_000,
  );
  expect(gunzipSync(bundle).length).toBeLessThan(MAX_BUNDLE + 100_000);
  const tar = (...words: string[]) =>
    spawnSync("tar", words, { input: bundle, encoding: "utf8", maxBuffer: 2 * MAX_BUNDLE_FILE }).stdout;
  expect(tar("-xzO", "-f", "-", "b/agent/health.json")).toBe("{}");
  expect(tar("-xzO", "-f", "-", "b/m0").endsWith("aend")).toBe(true);
  expect(tar("-xzO", "-f", "-", "b/LEFT-OUT")).toContain(`m11: left out, ${long.length} bytes`);
  expect(tar("-xzO", "-f", "-", "b/small")).toBe("x");
});
