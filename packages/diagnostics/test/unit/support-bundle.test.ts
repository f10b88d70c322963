/** A support bundle has no secrets, is bounded, and is an archive that tar reads. */

import { spawnSync } from "node:child_process";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { BerthPod } from "../../../../host/cli/berth-pods.ts";
import { answeringAgent, LINE, pageOf } from "../../../../test/lab/answering-agent.ts";
import { costRatio } from "../../../../test/world/cpu-time.ts";
import { LEFT_OUT, MAX_BUNDLE, MAX_BUNDLE_FILE, packBundle, unpackBundle } from "../../bundle/archive.ts";
import { chooseAgents, MAX_BUNDLE_NODES } from "../../bundle/choose-agents.ts";
import { collectHostFiles } from "../../bundle/host-files.ts";
import { isKubeconfig, redact } from "../../bundle/redact.ts";

const JWT = `eyJhbGciOiJSUzI1NiJ9.${"a".repeat(40)}.${"b".repeat(40)}`;
const KEY = `${"QUJD".repeat(16)}\n${"QUJD".repeat(9)}`;
const containerWith = (value: string) => `{"env":[{"name":"DB_PASSWORD","value":"${value}"},{"name":"A","value":"b"}]}`;
const inner = (token: string) => String.raw`{"body":"{\"token\":\"${token}\",\"a\":1}"`;
const PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----";

it.each([
  ["a token", `token: ${JWT}`, 'token: "[redacted]"'],
  ["a token in JSON", `{"token":"s3cret-value","a":1}`, `{"token":"[redacted]","a":1}`],
  ["a token in JSON on several lines", `{\n"token":"s3cret"}\n`, `{\n  "token": "[redacted]"\n}\n`],
  ["a token in a line of JSON", `x\n{"msg":"a","token":"s3cret-value"}\n`, `x\n{"msg":"a","token":"[redacted]"}\n`],
  ["a value below a secret key", `{"credentials":{"value":["s3cret"]}}`, `{"credentials":{"value":["[redacted]"]}}`],
  ["JSON inside JSON", inner("s3cret"), inner("[redacted]")],
  ["a variable of a container", containerWith("hunter2"), containerWith("[redacted]")],
  ["a variable in YAML", "- name: DB_PASSWORD\n  value: hunter2\n", '- name: DB_PASSWORD\n  value: "[redacted]"\n'],
  ["a password with blanks in YAML", "password: horse battery staple\na: b", 'password: "[redacted]"\na: b'],
  ["a YAML block of a list", "- token: |\n    hunter2\n  a: b\n", '- token: "[redacted]"\n  a: b\n'],
  ["a list in YAML", "secrets:\n- hunter2\n- hunter3\na: b", 'secrets: "[redacted]"\na: b'],
  [
    "YAML in JSON",
    '{"conf":"a:\\n  psk-token: |-\\n    hunter2"}',
    String.raw`{"conf":"a:\n  psk-token: \"[redacted]\""}`,
  ],
  ["a key of a cloud", "aws_secret_access_key = abc/def", 'aws_secret_access_key = "[redacted]"'],
  ["short words", "DB_PASS=a pwd=b psk=c bypass=d", 'DB_PASS="[redacted]" pwd="[redacted]" psk="[redacted]" bypass=d'],
  ["a user's option", "curl -u bob:hunter2 --user=amy:x y", "curl -u [redacted] --user=[redacted] y"],
  ["an option", "run --token s3cret --token-file /t", "run --token [redacted] --token-file /t"],
  ["a password in a URL", "at https://bob:hunter2@example.org/x", "at https://[redacted]@example.org/x"],
  ["a password alone in a URL", "redis://:hunter2@example.org", "redis://[redacted]@example.org"],
  ["a bootstrap token", "join abcdef.0123456789abcdef", "join [redacted]"],
  ["a key", `key: |\n${PEM}\nend`, "key: |\n[redacted]\nend"],
  ["a key in JSON", JSON.stringify({ key: PEM }), '{"key":"[redacted]"}'],
  ["a key whose beginning was cut off", `${KEY}\n-----END PRIVATE KEY-----\nend`, "[redacted]\nend"],
  ["a key whose end was cut off", `a\n-----BEGIN PRIVATE KEY-----\n${KEY}`, "a\n[redacted]"],
  ["a kubeconfig", "client-key-data: TUlJ\nuser: a", 'client-key-data: "[redacted]"\nuser: a'],
  ["a header", "Authorization: Bearer abcdefghijkl", 'Authorization: "[redacted]"'],
  ["an assigned header", "authorization=Bearer abcdefghijkl a=b", 'authorization="[redacted]" a=b'],
  ["a token of a header in a log line", "got Bearer abcdefghijkl from x", "got Bearer [redacted] from x"],
  ["no name of a file", "tokenFile: /var/run/token", "tokenFile: /var/run/token"],
  ["no name of a file in JSON", '{"tokenFile":"/t","secretName":"x"}', '{"tokenFile":"/t","secretName":"x"}'],
  ["no address", "10.6.0.7 of pool blue", "10.6.0.7 of pool blue"],
  ["no metric", 'berth_claims_total{outcome="bound"} 3', 'berth_claims_total{outcome="bound"} 3'],
])("redacts %s", (_what, text, wanted) => expect(redact(text)).toBe(wanted));

it.each([
  ["a kubeconfig", "apiVersion: v1\nkind: Config\nusers:\n- name: a\n", true],
  ["one in JSON", '{\n"kind": "Config",\n"users": []}', true],
  ["a network definition", '{"name":"lan","plugins":[]}', false],
])("knows %s by its content", (_what, text, wanted) => expect(isKubeconfig(text)).toBe(wanted));

it.each([
  ["", "a"],
  ["", `${"QUJD".repeat(16)} `],
  ["", "-----BEGIN A-----"],
  ["", '{"'],
  ["", "token:["],
  ["", "\n"],
  ["", "-eyJ"],
  ["a://", "b:"],
  ["name:", "token"],
  ["name: token", " "],
])("redacts %j and many of %j in time that grows with the length only", (start, part) => {
  const redacted = (length: number) => {
    const text = start + part.repeat(length / part.length);
    return () => redact(text);
  };
  expect(costRatio(redacted(10_000), redacted(40_000))).toBeLessThan(4 * 2.5);
  const harmless = "a ".repeat(20_000);
  expect(costRatio(() => redact(harmless), redacted(40_000), 2)).toBeLessThan(60);
});

const FOLDER = { folder: "b", timeS: 1_800_000_000 };

it("is read by tar; a long file keeps its end, and files without room are listed", async () => {
  const long = `${"a".repeat(MAX_BUNDLE_FILE)}end`;
  const many = Array.from({ length: MAX_BUNDLE / MAX_BUNDLE_FILE }, (_, index) => ({ path: `m${index}`, text: long }));
  // Longer than the name in a header may be.
  const name = `nodes/${"n".repeat(80)}/${"agent".repeat(60)}.json`;
  const { archive, notes } = await packBundle(
    [{ path: "agent/health.json", text: "{}" }, ...many, { path: "small", text: "x" }, { path: name, text: "y" }],
    FOLDER,
  );
  expect(gunzipSync(archive).length).toBeLessThan(MAX_BUNDLE + 100_000);
  const tar = (...words: string[]) =>
    spawnSync("tar", words, { input: archive, encoding: "utf8", maxBuffer: 2 * MAX_BUNDLE_FILE }).stdout;
  expect(tar("-xzO", "-f", "-", "b/agent/health.json")).toBe("{}");
  expect(tar("-xzO", "-f", "-", "b/m0").endsWith("aend")).toBe(true);
  expect(tar("-xzO", "-f", "-", "b/LEFT-OUT")).toBe(`${notes.join("\n")}\n`);
  expect(notes).toContain(`m11: left out, ${long.length} bytes`);
  expect(tar("-xzO", "-f", "-", "b/small")).toBe("x");
  expect(tar("-xzO", "-f", "-", `b/${name}`)).toBe("y");
  const long0 = await unpackBundle(archive, 2 * MAX_BUNDLE);
  expect(long0.map(({ path }) => path)).toContain(name);
  expect(long0.find(({ path }) => path === "small")?.text).toBe("x");
});

it("from an agent is read only within its share, and without ways out of its folder", async () => {
  const files = [{ path: "../../etc/passwd", text: "x".repeat(1_000) }];
  const { archive } = await packBundle(files, FOLDER);
  await expect(unpackBundle(archive, 1_024)).rejects.toThrow();
  expect((await unpackBundle(archive, 10_000)).map(({ path }) => path)).toEqual(["etc/passwd", LEFT_OUT]);
  await expect(unpackBundle(Buffer.from("error: unknown command"), 10_000)).rejects.toThrow();
});

/** Returns the archive whose first header has another length, under a right checksum. */
function withLength(tar: Buffer, length: string): Buffer {
  const damaged = Buffer.from(tar).fill(0, 124, 136).fill(" ", 148, 156);
  damaged.write(length, 124);
  const sum = damaged.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  damaged.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return damaged;
}

it.each<[string, (tar: Buffer) => Buffer]>([
  ["first file has a negative length", (tar) => withLength(tar, "-1000")],
  ["first file is longer than the archive", (tar) => withLength(tar, "77777777")],
  ["header has a wrong checksum", (tar) => Buffer.from(tar).fill("0", 148, 154)],
  ["first file is cut off", (tar) => tar.subarray(0, 513)],
])("from an agent, a damaged one is refused, whose %s", async (_, damage) => {
  const { archive } = await packBundle([{ path: "a", text: "x" }], FOLDER);
  const tar = damage(gunzipSync(archive));
  await expect(unpackBundle(gzipSync(tar), 10_000)).rejects.toThrow(/[Ii]nvalid|Unexpected end/);
});

const { answer, socket } = answeringAgent();

it("of a host has all pages of addresses", async () => {
  const two = { ...LINE, address: "10.0.0.2", cursor: "10.0.0.2" };
  answer({ ...pageOf(two), ...pageOf(LINE), "/v1/allocations?after=10.0.0.1": [two] });
  const none = "/nowhere";
  const paths = { confDirectory: none, binDirectory: none, stateDirectory: none, hostRoot: none, logDirectory: none };
  const files = await collectHostFiles({ socket, ...paths }, "1");
  const { text = "" } = files.find(({ path }) => path === "agent/allocations.json") ?? {};
  expect(JSON.parse(text)).toMatchObject([LINE, two]);
});

describe("of thousands of nodes", () => {
  const agent = (index: number, more: Partial<BerthPod> = {}): BerthPod => ({
    ...{ namespace: "kube-system", name: `a${index}`, node: `n${index}`, phase: "Running", isReady: true, restarts: 0 },
    ...{
      component: "agent",
      image: "berth:1",
      startedAt: `2026-01-01T00:00:${String(index % 60).padStart(2, "0")}Z`,
      ...more,
    },
  });
  const all = Array.from({ length: 5_000 }, (_, index) => agent(index));

  it("asks the unhealthy first, then those that restarted, then the newest", () => {
    const some = [agent(1), agent(2), agent(3, { restarts: 2 }), agent(4, { isReady: false })];
    expect(chooseAgents(some, undefined).chosen.map(({ node }) => node)).toEqual(["n4", "n3", "n2", "n1"]);
  });

  it("asks a few", () => {
    const { chosen, others } = chooseAgents([...all, agent(9_999, { isReady: false })], undefined);
    expect(chosen).toHaveLength(MAX_BUNDLE_NODES);
    expect(chosen[0]?.node).toBe("n9999");
    expect(others).toHaveLength(5_001 - MAX_BUNDLE_NODES);
  });

  it("asks the named one alone", () => {
    expect(chooseAgents(all, "n77").chosen.map(({ node }) => node)).toEqual(["n77"]);
    expect(chooseAgents(all, "none").chosen).toEqual([]);
  });
});
