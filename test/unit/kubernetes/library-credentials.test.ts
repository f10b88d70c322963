import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Connection } from "../../../host/kubernetes/kubeconfig.ts";
import { LibraryCredentials } from "../../../host/kubernetes/library-credentials.ts";

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "berth-question-"));
  execFileSync("mkfifo", [join(directory, "go-on")]);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A plugin that answers when a test writes into the pipe `go-on`. */
function hangingConnection(): { connection: Connection; library: KubeConfig; runs: () => number } {
  const command = join(directory, "plugin");
  writeFileSync(`${command}.runs`, "");
  const status = '{\\"status\\": {\\"token\\": \\"late\\"}}';
  writeFileSync(command, `#!/bin/sh\necho run >> ${command}.runs\nread word < ${directory}/go-on\necho "${status}"\n`);
  chmodSync(command, 0o755);
  const cluster = { name: "c", server: "https://127.0.0.1:1", skipTLSVerify: true };
  const user = { name: "u", exec: { command } };
  const library = new KubeConfig();
  library.loadFromClusterAndUser(cluster, user);
  const runs = () => readFileSync(`${command}.runs`, "utf8").trim().split("\n").length;
  return { connection: { source: "kubeconfig", cluster, user, files: [] }, library, runs };
}

it("an exec plugin that hangs is given up in time, waited for again, and never started twice", async () => {
  const { connection, library, runs } = hangingConnection();
  const question = new LibraryCredentials(100);
  const tooLong = "a program that has not ended, want an answer within 0.1 s";
  await expect(question.read(library, connection)).rejects.toThrow(tooLong);
  await expect(question.read(library, connection)).rejects.toThrow(tooLong);
  expect(runs()).toBe(1);
  writeFileSync(join(directory, "go-on"), "now\n");
  await expect(question.read(library, connection)).resolves.toMatchObject({
    headers: { authorization: "Bearer late" },
  });
  expect(runs()).toBe(1);
});
