import { describe, expect, it } from "vitest";
import { answerError, answerJson, isBug, toCniError } from "../../../../host/agent/server/answer.ts";
import { CniError, ErrorCode } from "../../../../host/cni/error.ts";
import { ConfigError } from "../../../../host/config/config-error.ts";
import { NetlinkError } from "../../../../host/kernel/netlink/error.ts";
import { NetnsError } from "../../../../host/kernel/netns.ts";
import { ApiUnavailable } from "../../../../host/kubernetes/kube-api.ts";
import { invariant } from "../../../../host/lib/invariant.ts";
import { RegistryError } from "../../../../host/registry/registry.ts";

function thrownBy(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

const mismatch = { path: "ipv4", got: "nothing", wanted: "a list" };
const netlink = Object.assign(Object.create(NetlinkError.prototype) as NetlinkError, { message: "no such device" });

const emfile = Object.assign(new Error("EMFILE: too many open files, open 'x'"), { code: "EMFILE", errno: -24 });

const LIMIT = /^The agent has reached its limit .*RLIMIT_NOFILE.* raise LimitNOFILE .*: EMFILE: too /;

const rows: [what: string, error: unknown, code: number, text: RegExp, bug: boolean][] = [
  ["a refusal stays what it is", new CniError(ErrorCode.PoolExhausted, "Full"), 101, /^Full$/, false],
  ["an annotation is named", new ConfigError('annotation "a"', [mismatch]), 102, /^Annotation "a": /, false],
  ["other configuration is code 7", new ConfigError("CNI configuration, ipam", [mismatch]), 7, /^CNI conf/, false],
  ["the registry", new RegistryError("disk I/O error"), 107, /read or record the address: disk I\/O error$/, false],
  ["a full disk", new RegistryError("full", { full: true }), 107, /; free disk space in the state directory$/, false],
  ["no API server", new ApiUnavailable("GET pods", "refused"), 11, /^The API server does not answer: refu/, false],
  ["the namespace", new NetnsError("open", "/run/netns/x", 2), 8, /\/run\/netns\/x/, false],
  ["the kernel", netlink, 108, /no such device/, false],
  ["too many open files", emfile, 11, LIMIT, false],
  ["the same in a namespace", new NetnsError("open", "/run/netns/x", 24), 11, /RLIMIT_NOFILE.*\/run\/netns\/x/, false],
  ["the same as a cause", new Error("read", { cause: emfile }), 11, /RLIMIT_NOFILE.*: read/, false],
  ["too many of the node", new NetnsError("open", "/run/netns/x", 23), 11, /^The node has .*fs\.file-max/, false],
  ["a broken invariant", thrownBy(() => invariant(false, "x is y")), 11, /Internal error: .*x is y/, true],
  ["what is no error at all", "text", 11, /Internal error: .*text/, true],
];

describe("every failure as CNI error", () => {
  it.each(rows)("%s", (_what, error, code, text, bug) => {
    const refusal = toCniError(error);
    expect(refusal.code).toBe(code);
    expect(refusal.message).toMatch(text);
    expect(isBug(error)).toBe(bug);
  });

  it.each<[body: string, version: string]>([
    ['{"cniVersion":"0.3.1"}', "0.3.1"],
    ['{"cniVersion":7}', "1.1.0"],
    ['{"cniVersion":""}', "1.1.0"],
    ["{", "1.1.0"],
    ["null", "1.1.0"],
    ["[".repeat(200_000), "1.1.0"],
  ])("%.30s is answered in a version", (body, version) => {
    const answer = answerError(new CniError(ErrorCode.InvalidEnvironment, "No", { details: "why" }), body);
    expect(answer.status).toBe(422);
    expect(JSON.parse(answer.body)).toEqual({ cniVersion: version, code: 4, msg: "No", details: "why" });
  });

  it("is cut to a few thousand characters, and says how many are left out", () => {
    const long = "x".repeat(1_000_000);
    const error = new CniError(ErrorCode.NoPoolMatches, long, { details: long, forLog: long });
    const { message, details, forLog } = toCniError(error);
    for (const text of [message, details, forLog]) {
      expect(text).toMatch(/^x+… \(99\d{4} more characters\)$/);
      expect(text?.length).toBeLessThan(5_000);
    }
    expect(answerError(error, "").body.length).toBeLessThan(10_000);
  });

  it("a call that may be possible later has status 503", () => {
    for (const code of [ErrorCode.TryAgainLater, ErrorCode.PluginNotAvailable])
      expect(answerError(new CniError(code, "Later"), "").status).toBe(503);
  });

  it("JSON is one line", () => expect(answerJson({ a: [1] })).toEqual({ status: 200, body: '{"a":[1]}\n' }));
});
