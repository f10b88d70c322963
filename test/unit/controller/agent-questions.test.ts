/**
 * Questions to agents go to no program without the controller's certificate, and an agent that does not answer is
 * named.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openAgentQuestions } from "../../../host/controller/agent-questions.ts";
import type { KubeApi, KubeCall, KubeObject } from "../../../host/kubernetes/kube-api.ts";

const directory = mkdtempSync(join(tmpdir(), "berth-questions-"));
afterAll(() => rmSync(directory, { recursive: true }));

function makeCertificate(name: string) {
  const files = { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", files.keyFile];
  execFileSync("openssl", ["req", "-x509", ...key, "-out", files.certFile, "-subj", "/CN=berth"], { stdio: "ignore" });
  return files;
}

/**
 * With the authority's certificate behind the own one, as cert-manager writes a Secret whose authority is not public.
 */
function issueCertificate(authority: { readonly certFile: string; readonly keyFile: string }, name: string) {
  const files = { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", files.keyFile];
  const by = ["-CA", authority.certFile, "-CAkey", authority.keyFile];
  const words = ["req", "-x509", ...key, ...by, "-out", files.certFile, "-subj", `/CN=${name}`];
  execFileSync("openssl", [...words, "-addext", "basicConstraints=critical,CA:FALSE"], { stdio: "ignore" });
  return files;
}

const own = makeCertificate("own");
const others = makeCertificate("others");
const tokenFile = join(directory, "token");
writeFileSync(tokenFile, "secret\n");
const ADDRESS = { family: 4, value: 0x0a060015n } as const;

const line = (time: string, audit: string) => ({
  ...{ time, level: "info", audit, plugin: "berth", node: "n1", namespace: "shop", pod: "web-0", uid: "u" },
  ...{ interface: "eth0", network: "lan", addresses: ["10.6.0.21"], pools: [], sources: [], rule: "", container: "c" },
  ...{ code: 0, ms: 1 },
});

/** A cluster of one node at 127.0.0.1. */
const api = {
  call: async ({ path }: KubeCall): Promise<KubeObject> => {
    const node = { metadata: { name: "n1" }, status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }] } };
    if (path === "/api/v1/nodes") return { kind: "NodeList", metadata: { resourceVersion: "1" }, items: [node] };
    return path === "/api/v1/nodes/n1" ? node : { spec: { nodeName: "n1" } };
  },
} as unknown as KubeApi;

async function withAgent(
  { certFile, keyFile }: typeof own,
  answer: object,
  test: (questions: ReturnType<typeof openAgentQuestions>, tokens: readonly string[]) => Promise<void>,
  controller = own,
): Promise<void> {
  const tokens: string[] = [];
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
    tokens.push(request.headers.authorization ?? "");
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await test(openAgentQuestions(api, { certFile: controller.certFile, tokenFile, port }), tokens);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe("an agent", () => {
  it("with the controller's certificate gets the token, and its lines come in order", () => {
    const lines = [line("2026-01-01T00:00:02Z", "DEL"), line("2026-01-01T00:00:01Z", "ADD")];
    const start = { ...line("2026-01-01T00:00:00Z", "START"), addresses: [] };
    const page = { node: "n1", lines: [start, ...lines], missing: 2, next: { since: "2026-01-02T00:00:00Z", skip: 0 } };
    return withAgent(own, page, async (questions, tokens) => {
      const history = await questions.history(ADDRESS);
      expect([history.lines.map(({ audit }) => audit), tokens]).toEqual([["ADD", "DEL"], ["Bearer secret"]]);
      expect(history.problems).toEqual([
        'Node n1 has more lines, from 2026-01-02T00:00:00Z on; "berthctl history" shows them.',
        "At most 2 lines of node n1's audit log are missing.",
      ]);
    });
  });

  it("with another certificate gets no token", () =>
    withAgent(others, {}, async (questions, tokens) => {
      const { problems } = await questions.history(ADDRESS);
      expect([problems, tokens]).toEqual([[expect.stringMatching(/^The agent of node n1 does not answer: /)], []]);
      const { succeeds, lines } = await questions.explain({ namespace: "shop", name: "web-0" });
      expect([succeeds, lines.length, tokens]).toEqual([false, 1, []]);
    }));

  it.each([
    [true, "with"],
    [true, "without"],
    [false, "with"],
  ] as const)(
    "whose certificate has an authority gets it only if it is the controller's: %s, %s the authority's in the file",
    async (isOwn, withChain) => {
      const authority = makeCertificate("authority");
      const [one, other] = [issueCertificate(authority, "one"), issueCertificate(authority, "other")];
      const chain = join(directory, "chain.crt");
      writeFileSync(chain, readFileSync(one.certFile, "utf8"));
      if (withChain === "with") appendFileSync(chain, readFileSync(authority.certFile, "utf8"));
      const ask = async (questions: ReturnType<typeof openAgentQuestions>, tokens: readonly string[]) => {
        const { problems } = await questions.history(ADDRESS);
        const refused = "The agent of node n1 does not answer: its certificate is not the controller's";
        expect([problems, tokens]).toEqual(isOwn ? [[], ["Bearer secret"]] : [[refused], []]);
      };
      await withAgent(isOwn ? one : other, { node: "n1", lines: [], missing: 0 }, ask, { ...one, certFile: chain });
    },
  );

  it("that refuses an ADD is quoted", () =>
    withAgent(own, { code: 101, msg: "No address is free", details: "a\nb" }, async (questions) => {
      const { succeeds, lines } = await questions.explain({ namespace: "shop", name: "web-0" });
      expect([succeeds, lines]).toEqual([false, ["No address is free", "a", "b"]]);
    }));
});
