/**
 * `kubectl berth` and `berthctl --kubeconfig` on a real API server: a whole cluster, as a user with that kubeconfig
 * sees it; the built programs where a process matters.
 */
import { spawn } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { startUsage } from "../../host/controller/usage/usage-controller.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { runKubectlBerth as berth } from "../lab/berthctl.ts";
import { startApiProxy } from "../lab/cluster/api-proxy.ts";
import { ALLOCATIONS, BERTH } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { runCommand } from "../lab/command.ts";
import { until } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { borrowPlane } from "./borrow-plane.ts";

const POOLS = [
  { name: "blue", subnet: "10.6.0.0/24", gateway: "10.6.0.1", excludeIPs: ["10.6.0.9"] },
  { name: "six", subnet: "fd06::/64", default: false },
  { name: "lab", subnet: "10.6.0.0/28", addressSpace: "lab", default: false, disable: true },
];
const SINCE = "2026-11-20T04:00:00Z";
const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "w1", member: "db-0", ifName: "eth0" };

let world: World;
const home = temporaryDirectory("berth-ctl-");
let uid: string;

beforeAll(async () => {
  world = await startWorld({ startPlane: borrowPlane, pools: POOLS });
  const shown = [{ name: "lan" }, { interface: "eth0", mac: "02:00:00:00:00:21", ips: ["10.6.0.21", "FD06:0::21"] }];
  const annotations = { "k8s.v1.cni.cncf.io/network-status": JSON.stringify(shown) };
  const pod = await world.createPod({ name: "web-0", node: "n1", annotations });
  uid = pod.uid;
  const holder = { namespace: "shop", pod: "web-0", podUid: uid, ifName: "eth0", node: "n1" };
  await world.allocate("10.6.0.21", { holders: [holder] });
  await world.allocate("fd06::21", { pool: "six", prefixLength: 64, holders: [holder] });
  await world.allocate("10.6.0.30", { node: "n2", holders: [{ ...holder, pod: "other", podUid: "u2", node: "n2" }] });
  await world.allocate("10.6.0.40", { state: "Cooling", holders: [], since: SINCE });
  await world.allocate("10.6.0.77", { state: "Kept", holders: [], workload: WORKLOAD });
  const lost = { reason: "NodeLost" as const, mac: "", parent: "", holder: { ...holder, pod: "gone", podUid: "u3" } };
  await world.allocate("10.6.0.80", { state: "Quarantined", holders: [], quarantine: lost });
  await world.lead({ usage: startUsage });
  await until("usage is counted", async () => (await world.read("ippoolusages", "blue"))?.status.quarantined === 1);
  await until("usage is counted", async () => (await world.read("ippoolusages", "six"))?.status.bound === 1);
  vi.stubEnv("HOME", home);
  vi.stubEnv("KUBECONFIG", world.plane.kubeconfig);
  vi.stubEnv("BERTH_SOCKET", "/nowhere/agent.sock");
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await world?.clear();
  await world?.stop();
});

async function lines(...words: string[]): Promise<string[]> {
  const { code, out, error } = await berth(...words);
  expect([code, error]).toEqual([0, ""]);
  return out.split("\n").slice(0, -1);
}

it("pools are those of the cluster, with the counts of the controller", async () => {
  expect(await lines("pools")).toEqual([
    "POOL  SUBNET       TOTAL  USED    FREE  USED%  COOLING  QUARANTINED  NOTES",
    "blue  10.6.0.0/24    252     5     247     1%        1            1  default",
    "lab   10.6.0.0/28     14     0      14     0%        0            0  disabled",
    "six   fd06::/64     2^64     1  2^64-1    <1%        0            0  -",
  ]);
});

describe("allocations", () => {
  it("are those of all nodes, in the order of their addresses", async () => {
    expect(await lines("allocations")).toEqual([
      "ADDRESS    POOL  STATE        POD                      INTERFACE  NODE",
      "10.6.0.21  blue  Bound        shop/web-0               eth0       n1",
      "10.6.0.30  blue  Bound        shop/other               eth0       n2",
      "10.6.0.40  blue  Cooling      -                        -          n1",
      "10.6.0.77  blue  Kept         (StatefulSet shop/db-0)  -          n1",
      "10.6.0.80  blue  Quarantined  shop/gone                eth0       n1",
      "fd06::21   six   Bound        shop/web-0               eth0       n1",
    ]);
  });

  it.each([
    [["--node", "n2"], ["10.6.0.30"]],
    [["--state", "kept"], ["10.6.0.77"]],
  ])("%j selects", async (words, wanted) => expect(await lines("allocations", "-o", "name", ...words)).toEqual(wanted));
});

describe("export", () => {
  it("has a row for each address in use, of all nodes", async () => {
    const { out } = await berth("export", "--cluster", "east");
    expect(out.split("\r\n")).toEqual([
      "address,prefixLength,subnet,addressSpace,pool,state,namespace,pod,interface,node,mac,dnsName,retainedFor,cluster,since",
      "10.6.0.21,24,10.6.0.0/24,,blue,Bound,shop,web-0,eth0,n1,02:00:00:00:00:21,web-0.shop,,east,",
      "10.6.0.30,24,10.6.0.0/24,,blue,Bound,shop,other,eth0,n2,,other.shop,,east,",
      "10.6.0.40,24,10.6.0.0/24,,blue,Cooling,,,,n1,,,,east,2026-11-20T04:00:00Z",
      "10.6.0.77,24,10.6.0.0/24,,blue,Kept,,,,n1,,,StatefulSet shop/db-0,east,",
      "10.6.0.80,24,10.6.0.0/24,,blue,Quarantined,shop,gone,eth0,n1,,,,east,",
      "fd06::21,64,fd06::/64,,six,Bound,shop,web-0,eth0,n1,02:00:00:00:00:21,web-0.shop,,east,",
      "",
    ]);
    const { version, addresses } = JSON.parse((await berth("export", "-o", "json", "--state", "kept")).out);
    expect([version, addresses.map(({ address }: { address: string }) => address)]).toEqual([1, ["10.6.0.77"]]);
  });

  it.each([
    ["pods.example", [], ["other.shop.pods.example. 30 A 10.6.0.30", "web-0.shop.pods.example. 30 AAAA fd06::21"]],
    [
      "0.6.10.in-addr.arpa",
      ["--reverse", "10.6.0.0/24"],
      [
        "21.0.6.10.in-addr.arpa. 30 PTR web-0.shop.pods.example.",
        "30.0.6.10.in-addr.arpa. 30 PTR other.shop.pods.example.",
      ],
    ],
  ])("is a zone %s that BIND's parser reads", async (origin, words, wanted) => {
    const file = join(home, "zone");
    await lines("export", "-o", "zone", "--origin", "pods.example.", "--soa", "ns1.example.", "--file", file, ...words);
    const argv = ["named-checkzone", "-q", "-i", "none", "-D", "-o", "-", origin, file];
    const { stdout, exitCode } = await runCommand(argv);
    expect(exitCode).toBe(0);
    const records = stdout.split("\n").map((line) =>
      line
        .split(/\s+/)
        .filter((word) => word !== "IN")
        .join(" "),
    );
    expect(records).toEqual(expect.arrayContaining(wanted));
  });
});

/** A watching plugin and all that it has printed. */
function startWatch(...words: readonly string[]) {
  const child = spawn(process.execPath, [join(root, "dist", "kubectl-berth.mjs"), ...words]);
  const watch = { child, text: "", [Symbol.dispose]: () => void child.kill("SIGKILL") };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      watch.text += chunk.toString();
    });
  return watch;
}

it("allocations --watch prints all, then changes", async () => {
  using watch = startWatch("allocations", "--watch", "-o", "json");
  const records = () => watch.text.split("\n").slice(0, -1);
  await until("the first list", () => records().length === 6);
  await world.allocate("10.6.0.99", { state: "Cooling", holders: [] });
  await until("the new one", () => records().length === 7);
  await world.client.delete(`${ALLOCATIONS}/10.6.0.99`);
  await until("its end", () => records().length === 8);
  const changes = `[${records().slice(6).join()}]`;
  const wanted = ["Cooling", "Free"].map((state) => ({ address: "10.6.0.99", state }));
  expect(JSON.parse(changes)).toMatchObject(wanted);
});

it("pools --watch says that the API server is away, and goes on when it answers again", async () => {
  const proxy = await startApiProxy(world.plane);
  onTestFinished(() => proxy.stop());
  using watch = startWatch("pools", "--watch", "--kubeconfig", proxy.kubeconfig);
  await until("the first list", () => watch.text.includes("blue"));
  proxy.refuse();
  await until("the reason", () => /Cannot follow ippools: .*ECONNREFUSED.*; retrying\n/.test(watch.text), 5_000);
  await proxy.accept();
  await until("it is back", () => watch.text.includes("The API server answers again\n"));
  await world.pool("late", { subnet: "10.66.0.0/24" });
  await until("the change", () => watch.text.includes("late "));
  expect(watch.text.match(/Cannot follow/g)).toHaveLength(1);
  await world.client.delete(`${BERTH}/ippools/late`);
});

it("export --watch with --file replaces the file as a whole; SIGINT ends it", async () => {
  const file = join(home, "pods.zone");
  const origin = ["-o", "zone", "--origin", "pods.example", "--soa", "ns1.example"];
  const serial = (text: string) => Number(/ SOA \S+ \S+ (\d+) /.exec(text)?.[1]);
  using watch = startWatch("export", "--watch", ...origin, "--file", file, "--every", "0.1");
  await until("the first file", () => watch.text.includes(`${file}: 6 addresses\n`));
  const [first, { ino }] = [readFileSync(file, "utf8"), statSync(file)];
  const holder = { namespace: "shop", pod: "web-1", podUid: "u4", ifName: "eth0", node: "n1" };
  await world.allocate("10.6.0.22", { holders: [holder] });
  await until("the second", () => watch.text.includes(`${file}: 7 addresses: 1 added, 0 changed, 0 removed\n`));
  const second = readFileSync(file, "utf8");
  expect(second).toContain("\nweb-1.shop 30 IN A 10.6.0.22\n");
  expect(serial(second)).toBeGreaterThan(serial(first));
  expect(statSync(file).ino).not.toBe(ino);
  watch.child.kill("SIGINT");
  await until("it has ended", () => watch.child.exitCode === 0);
  await world.release("10.6.0.22");
});

describe("ip", () => {
  // A condition about one space's address, and a record whose pool is gone.
  beforeAll(async () => {
    const found = { type: "OtherMask", status: "True", reason: "OtherMask", message: "10.6.0.12" };
    const conditions = [{ ...found, lastTransitionTime: SINCE }];
    await world.client.patch(`${BERTH}/ippools/blue/status`, { status: { conditions } });
    await world.allocate("10.9.9.8", { addressSpace: "old", pool: "gone", state: "Cooling", holders: [] });
  });

  it.each<[address: string, code: number, wanted: RegExp]>([
    ["10.6.0.21", 0, /^10\.6\.0\.21: Bound\n {2}pod {9}shop\/web-0\n {2}interface {3}eth0\n {2}node {8}n1\n/],
    ["10.6.0.77", 0, /workload {4}StatefulSet shop\/db, member db-0\n/],
    ["10.6.0.80", 0, /^10\.6\.0\.80: Quarantined\n(?:.*\n)*.*quarantine {2}NodeLost\n/],
    ["10.6.0.50", 0, /^10\.6\.0\.50: free in pool blue \(10\.6\.0\.0\/24\)\n$/],
    ["FD06:0::21", 0, /^fd06::21: Bound\n/],
    ["10.6.0.12/lab", 0, /^10\.6\.0\.12: free in pool lab \(10\.6\.0\.0\/28, address space lab\)\n$/],
    ["10.9.9.8/old", 0, /^10\.9\.9\.8\/old: Cooling\n/],
    ["10.9.9.9", 1, /^10\.9\.9\.9: no pool has it in its subnet, and it has no record\n$/],
  ])("%s ends with %i", async (address, code, wanted) => {
    expect(await berth("ip", address)).toMatchObject({ code, out: expect.stringMatching(wanted) });
  });
});

describe("pod", () => {
  it("has its addresses", async () => {
    expect(await lines("pod", "shop/web-0")).toEqual([
      `pod shop/web-0: Pending on node n1, UID ${uid}`,
      expect.stringMatching(/^ADDRESS /),
      expect.stringMatching(/^10\.6\.0\.21 /),
      expect.stringMatching(/^fd06::21 /),
    ]);
    expect(await lines("pod", "web-0", "-n", "shop", "-o", "name")).toEqual(["10.6.0.21", "fd06::21"]);
  });

  it("that is away has those that are retained for it", async () => {
    expect(await lines("pod", "shop/db-0", "--no-headers")).toEqual([
      expect.stringMatching(/^10\.6\.0\.77 +blue +Kept/),
    ]);
  });

  it("that does not exist", async () => expect((await berth("pod", "shop/none")).code).toBe(1));
});

it("Tab offers pods that have addresses, and pods that wait, to each command that takes a pod", async () => {
  await world.createPod({ name: "waits", node: "n1" });
  for (const command of ["explain", "pod", "history", "release"])
    expect((await berth("__complete", command, "shop/w")).out, command).toBe("shop/waits\nshop/web-0\n:4\n");
});

it("a user who may not read gets the server's words: 3", async () => {
  const text = `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"${world.plane.url}","insecure-skip-tls-verify":true}}],"users":[{"name":"a","user":{"token":"none"}}]}`;
  const file = join(home, "nobody");
  writeFileSync(file, text);
  expect(await berth("--kubeconfig", file, "pools")).toMatchObject({ code: 3, error: expect.stringContaining("401") });
});
