/** Whole command lines against an agent that gives fixed answers: their output and exit codes. */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { answeringAgent, HEALTH, LINE, POOL, pageOf } from "../../lab/answering-agent.ts";
import { runBerthctl } from "../../lab/berthctl.ts";

const EXPLAIN = "/v1/explain?pod=web-0&namespace=default&interface=&network=";

const { answer, answers, jsonOf, linesOf, run, socket } = answeringAgent();
const containing = (error: string) => expect.stringContaining(error);

describe("help and usage", () => {
  it("no words: help on stdout, and success", async () => {
    expect(await runBerthctl()).toEqual({ code: 0, out: expect.stringMatching(/^Usage: berthctl /), error: "" });
  });

  it.each([
    ["an unknown command", ["no-such"], /unknown command 'no-such'/],
    ["an unknown option", ["pools", "--no-such"], /unknown option '--no-such'/],
    ["an unknown format", ["pools", "-o", "xml"], /Allowed choices are wide, name, json, yaml/],
    ["an unknown state", ["allocations", "--state", "lost"], /Allowed choices are bound, cooling/],
    ["a missing argument", ["explain"], /missing required argument/],
    ["arguments that contradict each other", ["--socket", "/s", "--kubeconfig", "/k", "pools"], /give one of them/],
    ["a missing kubeconfig", ["--kubeconfig", "/no/k", "pools"], /"\/no\/k": found a file that cannot be read/],
    ["a history of what is neither address nor pod", ["history", "a/b/c"], /Expected a pod as namespace/],
    ["a history of an address with its prefix", ["history", "10.0.0.1/24"], /Expected an address .*"10.0.0.1\/24"/],
    ["the socket of nothing", ["--socket", "", "pools"], /Option --socket, or BERTH_SOCKET: found "", want a path/],
    ["a pod of another namespace than -n", ["explain", "shop/web-0", "-n", "lab"], /is in namespace shop/],
    ["a time that does not exist", ["history", "10.6.0.7", "--at", "25:00"], /Time: found "25:00"/],
    ["the --timeout of nothing", ["--context", "c", "--timeout", "0", "recover"], /Option --timeout: found "0"/],
    ["a --timeout that is no duration", ["--timeout", "soon", "pools"], /--timeout: found "soon", want a duration/],
    ["a list with blanks", ["network", "--type", "macvlan", "--master", "eth0", "eth1", "lan"], /too many arguments/],
    ["flags that make no network", ["network", "lan", "--type", "macvlan"], /Option --master: found nothing/],
  ])("%s is a usage error: 2", async (_, words, error) => {
    expect(await runBerthctl(...words)).toMatchObject({ code: 2, error: expect.stringMatching(error) });
  });

  it.each([
    ["any pod", "KUBERNETES_SERVICE_HOST", "for a cluster: kubectl berth, or --kubeconfig FILE"],
    ["its own, in which kubectl berth asks it", "BERTH_HOST_ROOT", "see the log of its pod"],
  ])("no agent in %s: where the answer or the reason is", async (_, name, remedy) => {
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv(name, "10.96.0.1");
    const error = `berthctl: No agent answers on /nowhere/s: connect ENOENT /nowhere/s; ${remedy}\n`;
    expect(await runBerthctl("--socket", "/nowhere/s", "pools")).toMatchObject({ code: 3, error });
  });

  it("options that choose the agent may stand before the command, too", async () => {
    answer({ "/v1/pools": [] });
    expect((await runBerthctl("--socket", socket, "pools")).code).toBe(0);
  });
});

it("a file of reservations without a line is a usage error", async () => {
  const file = join(dirname(socket), "machines.csv");
  writeFileSync(file, "\ufeffAddress;Owner\r\n# none yet\r\n");
  const error = `berthctl: ${file}: found no line, want address and owner on each\n`;
  expect(await runBerthctl("reserve", "--file", file)).toEqual({ code: 2, out: "", error });
});

it("a report that cannot be written is shown", async () => {
  const [code, out, error] = [2, containing("not-compared: "), containing("Option --report: ENOENT")];
  expect(await runBerthctl("check", "--report", "/no/x", "--socket", "/no/s")).toEqual({ code, out, error });
});

describe("no answer", () => {
  it("an answer that is none is said to be none: 3", async () => {
    answer({ "/v1/pools": "<html>", [EXPLAIN]: "7" });
    const error = containing("answered with status 200 and a body that is not JSON");
    expect(await run("pools")).toMatchObject({ code: 3, error });
    expect(await run("explain", "web-0")).toMatchObject({ code: 3 });
  });

  it("a record of an unknown form is an error, not a blank: 3", async () => {
    answer({ "/v1/pools": [{ ...POOL, total: -6 }] });
    expect(await run("pools")).toMatchObject({ code: 3, error: containing('field "[0].total": found -6, want text') });
  });
});

describe("health, a name of check for one more release", () => {
  const error =
    "berthctl health is deprecated and goes with the next release; use berthctl check, and as a probe berth --probe live or ready\n";

  it("is success when all is well, and says that it is deprecated", async () => {
    answer({});
    expect(await run("health")).toEqual({ code: 0, out: "berth-agent 1: ready\n", error });
    expect((await runBerthctl()).out).not.toMatch(/ (health|doctor) /);
  });

  it.each<[status: string, live: number, ready: number]>([
    ["ready", 0, 0],
    ["not ready", 0, 1],
  ])("--probe: an agent that is %s is live: %s, ready: %s, whatever its problems are", async (status, live, ready) => {
    answer({ "/v1/health": { ...HEALTH, status, problems: ["x"], spool: { waiting: 0, rejected: 1 } } });
    expect((await run("health", "--probe", "live")).code).toBe(live);
    expect((await run("health", "--probe", "ready")).code).toBe(ready);
  });
});

describe("pools", () => {
  const large = { name: "large", subnet: "fd00::/64", total: `${2n ** 64n}`, used: "3", free: `${2n ** 64n - 3n}` };
  answers({
    "/v1/pools": [POOL, { ...POOL, ...large, states: {} }, { name: "old", gone: true, states: { Bound: 1 } }],
  });

  it("numbers are aligned on the right, and large ones are powers of two", async () => {
    expect(await linesOf("pools")).toEqual([
      "POOL   SUBNET       TOTAL  USED    FREE  USED%  COOLING  QUARANTINED  NOTES",
      "large  fd00::/64     2^64     3  2^64-3    <1%        0            0  -",
      "old    -                -     -       -      -        0            0  deleted",
      "p      10.0.0.0/29      6     2       4    33%        0            2  -",
      "",
    ]);
  });

  it("of another node's cluster says that this is one node", async () => {
    answer({ "/v1/health": { ...HEALTH, mode: "cluster", node: "n1" }, "/v1/pools": [] });
    expect((await run("pools")).out).toMatch(/^THIS NODE ONLY \(n1\);/);
    expect((await run("pools", "--no-headers")).out).toBe("");
    expect((await run("pools", "-o", "json")).out).toBe("[]\n");
  });

  it("by name, without a question that only a table needs; one that does not exist: 1, also of a watch", async () => {
    answer({ "/v1/pools": [POOL], "/v1/health": 7 });
    expect(await run("pools", "p", "-o", "name")).toEqual({ code: 0, out: "p\n", error: "" });
    const error = 'berthctl: There is no pool "q"\n';
    expect(await run("pools", "p", "q", "-o", "name")).toEqual({ code: 1, out: "p\n", error });
    expect(await run("pools", "p", "q", "-w", "-o", "json")).toMatchObject({ code: 1, error });
  });
});

describe("allocations", () => {
  it("continues to the last page", async () => {
    answer(pageOf({ ...LINE, cursor: "10.0.0.1/lab", namespace: "", pod: "" }));
    expect(await linesOf("allocations")).toEqual([
      "ADDRESS   POOL  STATE  POD  INTERFACE  CONTAINER",
      "10.0.0.1  p     Bound  -    eth0       c",
      "",
    ]);
  });

  it("shows quarantined addresses, and the machine that answered", async () => {
    const line = { ...LINE, state: "Quarantined", namespace: "", pod: "", interface: "", containerId: "" };
    const machines = [
      { mac: "02:11:22:33:44:55", parent: "uplink" },
      { parent: "" },
      { reason: "NodeLost", parent: "" },
    ];
    answer(pageOf(...machines.map((quarantine, at) => ({ ...line, address: `10.0.0.${at + 1}`, quarantine }))));
    expect(await linesOf("allocations", "--no-headers")).toEqual([
      "10.0.0.1  p  Quarantined  (02:11:22:33:44:55 behind uplink)  -",
      "10.0.0.2  p  Quarantined  (unknown MAC)                      -",
      "10.0.0.3  p  Quarantined  (node lost)                        -",
      "",
    ]);
  });

  it("--node selects, and another node than the agent's is refused", async () => {
    const elsewhere = { ...LINE, address: "10.0.0.3", cursor: "10.0.0.3", node: "n2" };
    answer(pageOf(LINE, elsewhere));
    expect((await run("allocations", "--node", "n2", "-o", "name")).out).toBe("10.0.0.3\n");
    answer({ ...pageOf(LINE), "/v1/health": { ...HEALTH, node: "n1" } });
    const error = /^berthctl: --node is n2, and the agent on .* is of node n1; for a cluster/;
    expect(await run("allocations", "--node", "n2")).toMatchObject({ code: 2, error: expect.stringMatching(error) });
    expect((await run("allocations", "--node", "n1", "-o", "name")).out).toBe("10.0.0.1\n");
  });

  it("names with control characters do not reach the terminal", async () => {
    answer(pageOf({ ...LINE, pod: "\u001b[2Jweb\u0007\u202e\u009b31m" }));
    for (const words of [[], ["-o", "wide"], ["-o", "json"], ["-o", "yaml"]]) {
      const { out } = await run("allocations", ...words);
      expect(out).not.toMatch(/[[\p{Cc}\p{Cf}]--\n]/v);
      expect(out).toContain("web");
    }
    expect((await jsonOf("allocations"))[0].pod).toContain("\u001b[2Jweb");
  });

  it.each([
    [["--pool", "bleu"], 1, 'berthctl: There is no pool "bleu"\n'],
    [["--pool", "p", "-n", "nope"], 0, "No address is in use with namespace nope, pool p\n"],
    [[], 0, ""],
  ])("%j say why the table is empty", async (words, code, error) => {
    answer({ ...pageOf(LINE), "/v1/pools": [POOL] });
    expect(await run("allocations", ...words)).toMatchObject({ code, error });
  });
});

it("a refusal of the agent is its words: 1", async () => {
  const refusal = { cniVersion: "1.1.0", code: 107, msg: "The registry could not \u001b[31mrecord the address" };
  answer({ "/v1/health": refusal, "/v1/pools": refusal, "/v1/allocations": { error: "no" }, [EXPLAIN]: refusal });
  const words = "The registry could not \\u{1b}[31mrecord the address\n";
  for (const command of ["health", "pools"]) {
    const { code, error } = await run(command);
    expect([code, /refuses GET \/v1\/\w+: (.*\n)$/.exec(error)?.[1]]).toEqual([1, words]);
  }
  expect((await run("allocations")).error).toMatch(/refuses GET \/v1\/allocations: no\n$/);
  expect(await run("explain", "web-0")).toMatchObject({ code: 1, out: words });
});

it.each([["web-0", "-n", "shop"], ["shop/web-0"], ["pod", "shop/web-0"]])(
  "explain %j asks about pod shop/web-0",
  async (...words) => {
    answer({ [EXPLAIN.replace("default", "shop")]: { succeeds: true, lines: ["told"], nics: [] } });
    expect(await run("explain", ...words)).toEqual({ code: 0, out: "told\n", error: "" });
  },
);

it("explain: a question that an agent could not answer is no verdict: 3", async () => {
  answer({ [EXPLAIN]: { error: "What pod default/web-0 would get is unknown" } });
  const error = "berthctl: What pod default/web-0 would get is unknown\n";
  expect(await run("explain", "web-0")).toEqual({ code: 3, out: "", error });
});

it.each([["10.0.0.7"], ["shop/web-0"], ["web-0", "-n", "shop"]])("history takes %j", async (...words) => {
  const query = words[0] === "10.0.0.7" ? "address=10.0.0.7" : "pod=shop%2Fweb-0";
  answer({ [`/v1/history?${query}`]: { node: "n1", missing: 0, lines: [] } });
  expect(await run("history", ...words)).toMatchObject({ code: 1, out: containing("No line about"), error: "" });
});

it("allocations -A wins over -n", async () => {
  answer(pageOf(LINE));
  expect((await run("allocations", "-n", "lab", "-A", "-o", "name")).out).toBe("10.0.0.1\n");
});

it("explain pool: its words, or why there are none", async () => {
  const refusal = { cniVersion: "1.1.0", code: 100, msg: 'There is no IPPool "b"' };
  const told = { succeeds: true, lines: ["pool a"], nics: [] };
  answer({ "/v1/explain?pool=a": told, "/v1/explain?pool=b": refusal });
  expect(await run("explain", "pool", "a")).toEqual({ code: 0, out: "pool a\n", error: "" });
  expect(await run("explain", "pool", "b")).toMatchObject({ code: 1, out: 'There is no IPPool "b"\n' });
  expect((await run("explain", "a", "b")).error).toMatch(/expected "pool" or "pod" before "b"/);
});

describe("network", () => {
  const network = (...words: string[]) => runBerthctl("network", "lan", "--type", "macvlan", ...words);

  it.each([
    ["eth0,eth1", "--master", "eth0,eth1"],
    ["a flag twice", "--master", "eth0", "--master", "eth1"],
  ])("takes several masters as %s", async (_, ...words) => {
    const { code, out } = await network("--conflist", "--ipv4-pool=a,b", ...words);
    expect(code).toBe(0);
    const [ifacer, macvlan] = JSON.parse(out).plugins;
    const both = [ifacer.interfaces, macvlan.ipam.default_ipv4_ippool];
    expect(both.map((each) => each.join())).toEqual(["eth0,eth1", "a,b"]);
  });

  it("knows the coordinator's mode by two names, and says which is whose", async () => {
    for (const flag of ["--coordinator-mode", "--mode"]) {
      const { out } = await network("--conflist", "--master=eth0", "--mtu=9000", flag, "underlay");
      expect(JSON.parse(out).plugins).toMatchObject([{ mode: "bridge", mtu: 9000 }, { mode: "underlay" }]);
    }
    const error = containing('Option --coordinator-mode: found "bridge", want one of "auto"');
    expect(await network("--master=eth0", "--mode", "bridge")).toMatchObject({ code: 2, error });
  });

  it.each(["eth0,", ",eth0"])("refuses an empty word in %j", async (master) => {
    expect(await network("--master", master)).toMatchObject({ code: 2, error: containing("Option --master: found") });
  });
});

describe("ip and pod", () => {
  const place = { pool: "p", addressSpace: "", subnet: "10.0.0.0/29" };
  const of = (address: string, places: object[], allocations: object[] = []) => ({
    [`/v1/address?address=${address}`]: { address, places, allocations },
  });
  answers({ ...of("10.0.0.1", [place], [LINE]), ...pageOf(LINE) });

  it("ip shows the record and the pools", async () => {
    expect(await linesOf("ip", "10.0.0.1")).toEqual([
      "10.0.0.1: Bound",
      "  pod         shop/web-0",
      "  interface   eth0",
      "  pool        p",
      "  container   c",
      "10.0.0.1: belongs to pool p (10.0.0.0/29)",
      "",
    ]);
    expect(await jsonOf("ip", "10.0.0.1")).toMatchObject({ places: [place] });
    expect((await run("ip", "10.0.0.1/24")).out).toMatch(/^10.0.0.1\/24: no pool of address space "24" has it/);
  });

  it.each([
    ["web-0", "No address of pod default/web-0; web-0 of namespace shop has some\n"],
    ["shop/web-1", "No address of pod shop/web-1\n"],
  ])("pod %s names the namespace that has a pod of the name", async (pod, error) => {
    expect((await run("pod", pod)).error).toBe(error);
  });
});

it("version shows berthctl's own without an agent", async () => {
  const out = "berthctl  1.2.3  -\n";
  expect((await runBerthctl("version", "--client", "--no-headers")).out).toBe(out);
  const ending = { code: 3, out, error: containing("No agent answers") };
  expect(await runBerthctl("version", "--no-headers", "--socket", "/nowhere/s")).toEqual(ending);
});

const step = { address: "10.0.0.1", what: "Bound to eth0 of pod shop/web-0 → Cooling" };
answers({
  "/v1/release?pod=shop%2Fnone&dryRun=": { steps: [], isDone: false },
  "/v1/quarantine?address=10.0.0.1%2Flab&seconds=3600&dryRun=": { steps: [step], isDone: false },
  "/v1/quarantine?address=10.0.0.1%2Flab&seconds=3600": { steps: [step], isDone: true },
  "/v1/quarantine?address=10.0.0.1&seconds=120&remove=&dryRun=": { steps: [step], isDone: false },
  "/v1/quarantine?address=10.0.0.1&seconds=120&remove=": { steps: [step], isDone: true },
});
const line = `10.0.0.1: ${step.what}\n`;

it.each<[words: string[], code: number, out: string, error?: RegExp]>([
  [["release", "shop/none", "--dry-run"], 1, "The pod has no address on this node\n"],
  [["release", "10.0.0.300/x/y", "-y"], 2, "", /Expected a pod/],
  [["quarantine", "10.0.0.1/lab", "-y"], 0, `${line}Done\n`],
  [["quarantine", "10.0.0.1", "-y", "--for", "2", "--remove"], 0, `${line}Done\n`],
  [["quarantine", "10.0.0.1", "-y", "--for", "2m", "--remove"], 0, `${line}Done\n`],
  [["release", "none", "-n", "shop", "--dry-run"], 1, "The pod has no address on this node\n"],
  [["quarantine", "10.0.0.1", "-y", "--for", "soon"], 2, "", /Option --for/],
  [["quarantine", "shop/web-0", "-y"], 2, "", /Expected an address/],
])("release and quarantine: %j ends with %i", async (words, code, out, error = /^$/) => {
  expect(await run(...words)).toEqual({ code, out, error: expect.stringMatching(error) });
});
