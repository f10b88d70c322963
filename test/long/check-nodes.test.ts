/**
 * `kubectl berth check` on a real cluster: nothing is found while pods come and go, and each kind of damage that is
 * made by hand is, and nothing else; `release --from-report` releases what leaked.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STEADY_MS } from "../../host/agent/operate/find-damage.ts";
import type { CheckReport } from "../../host/records/check-record.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { applyObject } from "../lab/apply.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { NAMESPACE, pool, type RealCluster, startRealCluster } from "../lab/nodes/cluster.ts";
import type { RealNode } from "../lab/nodes/node.ts";
import { type Observer, observe } from "../lab/nodes/observe.ts";
import { paths, podOf } from "../lab/nodes/workloads.ts";
import { Operator } from "../nodes/operator.ts";

const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";
const RIVAL = "02:00:5e:00:00:66";

/** Pods by the damage that they are going to suffer, with their nodes. */
const VICTIMS = {
  sound: "node1",
  "lost-object": "node1",
  "other-owner": "node1",
  foreign: "node1",
  bare: "node1",
  moved: "node1",
  unrouted: "node1",
  unserved: "node1",
  diverted: "node1",
  rivalled: "node1",
  remote: "node2",
  restarted: "node2",
  leaked: "node2",
  running: "node2",
  "lost-row": "node2",
  "lost-all": "node2",
  alone: "node3",
} as const;
type Victim = keyof typeof VICTIMS;
const UNDAMAGED: readonly Victim[] = ["sound", "moved", "unrouted", "unserved", "diverted", "restarted"];

let operator: Operator;
let cluster: RealCluster;
let seen: Observer;
const pods = new Map<string, KubeObject>();
/** When all of them had their addresses. */
let readyMs: number;

const addressOf = (victim: Victim): string => pods.get(victim)?.status.podIP;
const uidOf = (victim: Victim): string => pods.get(victim)?.metadata.uid;

beforeAll(async () => {
  // Nothing is collected while the test looks.
  const settings = { garbageCollection: { interval: "1h", grace: "1h" } };
  cluster = await startRealCluster({ nodes: 3, settings, isObserved: true });
  seen = observe(cluster);
  operator = new Operator(cluster, ["node1", "node2", "node3"]);
  await applyObject(cluster.client, pool("moved", { ips: ["10.99.40.1-10.99.40.9"] }));
  for (const [name, nodeName] of Object.entries(VICTIMS)) {
    const annotations = name === "moved" ? { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: ["moved"] }) } : {};
    await cluster.client.create(paths.pods(NAMESPACE), podOf({ name, app: "victim", pod: { nodeName }, annotations }));
  }
  for (const pod of await seen.untilReady("victim", Object.keys(VICTIMS).length)) pods.set(pod.metadata.name, pod);
  readyMs = performance.now();
});

afterAll(async () => {
  cluster?.node("node2").signal("kubelet", "SIGCONT");
  await cluster?.stop();
  operator?.[Symbol.dispose]();
});

test("nothing is found while pods come and go", async () => {
  const ending = new AbortController();
  const churn = ["node1", "node2", "node3"].map(async (nodeName) => {
    for (let number = 0; !ending.signal.aborted; number++) {
      const name = `churn-${nodeName}-${number}`;
      await cluster.client.create(paths.pods(NAMESPACE), podOf({ name, app: "churn", pod: { nodeName } }));
      await sleep(1_500);
      await cluster.client.delete(`${paths.pods(NAMESPACE)}/${name}`);
    }
    return 0;
  });
  let checks = 0;
  try {
    do {
      const { exitCode, report } = await operator.check();
      expect(report).toMatchObject({ findings: [], notCompared: [], problems: [] });
      expect(report.nodes.map(({ node }) => node)).toEqual(["node1", "node2", "node3"]);
      expect(exitCode).toBe(0);
      checks++;
      await sleep(1_000);
    } while (performance.now() < readyMs + STEADY_MS);
  } finally {
    ending.abort();
    await Promise.all(churn);
  }
  await seen.untilGone("churn");
  const { report } = await operator.check();
  const attachments = report.nodes.reduce((sum, node) => sum + node.attachments, 0);
  // After STEADY_MS all victims are compared with what the coordinator made.
  expect(attachments).toBe(Object.keys(VICTIMS).length);
  console.log(`${checks} checks under churn found nothing`);
  expect(await cluster.observer?.take()).toEqual([]);
});

/** No agent may create these objects any more. Resolves when the API server refuses that. */
async function forbidCreation(names: readonly string[], like: KubeObject): Promise<void> {
  const kind = "admissionregistration.k8s.io/v1";
  const matchConstraints = {
    resourceRules: [
      { apiGroups: ["ipam.vendor.io"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["ipallocations"] },
    ],
  };
  const list = names.map((name) => `'${name}'`).join(", ");
  const expression = `!(request.name in [${list}] || object.metadata.name in [${list}]) || !request.userInfo.username.startsWith('system:serviceaccount:')`;
  await applyObject(cluster.client, {
    ...{ apiVersion: kind, kind: "ValidatingAdmissionPolicy", metadata: { name: "damage" } },
    spec: {
      ...{ failurePolicy: "Fail", matchConstraints },
      validations: [{ expression }, { expression: `object.metadata.name != '${PROBE}'` }],
    },
  });
  await applyObject(cluster.client, {
    ...{ apiVersion: kind, kind: "ValidatingAdmissionPolicyBinding", metadata: { name: "damage" } },
    spec: { policyName: "damage", validationActions: ["Deny"] },
  });
  const attempt = () => createObject(like, PROBE, {}, "?dryRun=All").then(() => "created", String);
  await expect.poll(attempt, { timeout: 60_000 }).toContain("'damage'");
}

const objectOf = async (address: string): Promise<KubeObject> => cluster.client.get(`${ALLOCATIONS}/${address}`);

/** An allocation as an agent writes it, with other values. */
async function createObject(like: KubeObject, address: string, spec: object, query = ""): Promise<void> {
  const metadata = { name: address, labels: like.metadata.labels };
  const { apiVersion, kind } = like;
  const object = { apiVersion, kind, metadata, spec: { ...like.spec, address, ...spec } };
  await cluster.client.create(`${ALLOCATIONS}${query}`, object);
}

async function dropRows(node: RealNode, victims: readonly Victim[]): Promise<void> {
  await node.agent.kill("SIGKILL");
  const file = new DatabaseSync(join(node.agent.state, "registry.sqlite"), { timeout: 10_000 });
  for (const victim of victims) file.prepare("DELETE FROM allocation WHERE pod = ?").run(victim);
  file.close();
  for (const victim of victims) await forceDelete(cluster.client, addressOf(victim));
  await node.agent.start();
  // Ready is an agent that has compared its objects with its rows; it answers before.
  await expect.poll(async () => (await node.agent.request("/v1/health")).status, { timeout: 60_000 }).toBe(200);
}

const inPod = async (victim: Victim, argv: string): Promise<void> => {
  const { exitCode, stderr } = await cluster.node(VICTIMS[victim]).execInPod(uidOf(victim), argv.split(" "));
  expect(exitCode, `${argv}: ${stderr}`).toBe(0);
};

const FREE = "10.99.31.250";
const STRAY = "10.99.31.251";
const GONE = "10.99.31.252";
const ORPHAN = "10.99.31.253";
/** Address of no allocation: see forbidCreation. */
const PROBE = "10.99.31.254";

describe("damage", () => {
  const file = () => join(operator.home, "report.json");

  test("of each kind is found, and nothing else", async () => {
    const [one, two] = [cluster.node("node1"), cluster.node("node2")];
    const onNode = (argv: string) => one.machine.run(argv.split(" "));
    const like = await objectOf(addressOf("other-owner"));
    await forbidCreation((["lost-object", "other-owner", "lost-row", "lost-all"] as const).map(addressOf), like);

    await forceDelete(cluster.client, addressOf("lost-object"));
    await forceDelete(cluster.client, addressOf("other-owner"));
    const [holder] = like.spec.holders;
    // It names no machine: that of the node before would say that another one has the address.
    const other = { ...holder, machine: undefined, pod: "someone", podUID: "7d1a" };
    await createObject(like, addressOf("other-owner"), { node: "node2", holders: [{ ...other, node: "node2" }] });
    await createObject(like, GONE, { node: "node9", holders: [{ ...other, node: "node9" }] });

    await inPod("foreign", `ip addr add ${addressOf("remote")}/16 dev eth0`);
    await inPod("foreign", `ip addr add ${FREE}/16 dev eth0`);
    await inPod("bare", `ip addr del ${addressOf("bare")}/16 dev eth0`);
    await cluster.client.patch("/apis/ipam.vendor.io/v1/ippools/moved", { spec: { ips: ["10.99.41.1-10.99.41.9"] } });

    await onNode("ip rule del pref 900");
    await onNode(`ip route del ${addressOf("unrouted")} table 500`);
    await inPod("unserved", "ip route del 10.96.0.0/16");
    await onNode(`ip rule add pref 100 from ${addressOf("diverted")} lookup 77`);
    await onNode("ip rule add pref 899 from all lookup 500 proto 98");
    await onNode("ip link add stray type veth peer name strayed");
    await one.machine.run(["ip", "link", "set", "stray", "alias", "berth u9 c9 lan shop/left"]);
    await onNode("ip link set stray up");
    await onNode(`ip route add ${STRAY} dev stray table 500 proto 98`);
    await onNode(`ip neigh replace ${addressOf("rivalled")} lladdr ${RIVAL} dev eth0 nud reachable`);

    two.signal("kubelet", "SIGSTOP");
    await inPod("leaked", "ip link del eth0");
    for (const name of ["leaked", "running"]) {
      await cluster.client.delete(`${paths.pods(NAMESPACE)}/${name}`, { gracePeriodSeconds: 0 });
    }
    await dropRows(two, ["lost-row", "lost-all"]);
    await inPod("lost-all", `ip addr del ${addressOf("lost-all")}/16 dev eth0`);
    await inPod("restarted", "ip route del 10.96.0.0/16");
    // The agent has just compared objects with rows, and does so again after minutes.
    await createObject(like, ORPHAN, { node: "node2", holders: [{ ...other, node: "node2" }] });
    await cluster.node("node3").agent.stop();
    operator.setAgents(["node1", "node2"]);

    const { exitCode, report, found } = await operator.check("--report", file());
    expect(found).toEqual(
      [
        `drift ${addressOf("restarted")} node2 restarted`,
        `drift ${addressOf("unserved")} node1 unserved`,
        `duplicate ${addressOf("other-owner")} node1 other-owner`,
        `duplicate ${addressOf("remote")} node1`,
        `duplicate ${addressOf("rivalled")} node1 rivalled`,
        `leak ${addressOf("leaked")} node2 leaked`,
        `leak ${addressOf("running")} node2 running`,
        "leftover node1",
        "leftover node1",
        "leftover node1",
        "leftover node1",
        "leftover node2",
        "leftover node2",
        `lost-object ${addressOf("lost-object")} node1 lost-object`,
        `lost-record ${addressOf("lost-all")} node2 lost-all`,
        `lost-record ${addressOf("lost-row")} node2`,
        `lost-record ${FREE} node1`,
        `missing-address ${addressOf("bare")} node1 bare`,
        `orphan ${addressOf("alone")} node3 alone`,
        `orphan ${GONE} node9 someone`,
        `orphan ${ORPHAN} node2 someone`,
        `wrong-pool ${addressOf("moved")} node1 moved`,
      ].sort(),
    );
    expect(exitCode).toBe(1);
    expect(report.notCompared).toEqual([{ node: "node3", reason: "no agent runs there, and it has addresses" }]);
    expect(textsOf(report, "leftover", "node1")).toEqual([
      "link stray was made for pod shop/left, which is not on this node",
      `route "${STRAY}/32 dev stray table 500 proto 98 scope link" leads to an address that no pod of this node has`,
      `rule "pref 100 from ${addressOf("diverted")} lookup 77" of other software diverts the traffic of ${addressOf("diverted")}, which a pod of this node has`,
      'rule "pref 899 from all lookup 500 proto 98" has Berth\'s mark, and Berth makes none like it',
    ]);
    // The address is on no NIC any more.
    expect(textsOf(report, "leftover", "node2")).toEqual([
      expect.stringContaining(`neighbour "${addressOf("lost-all")} lladdr `),
      expect.stringContaining(`route "${addressOf("lost-all")}/32 dev veth`),
    ]);
    expect(report.findings.filter(({ isReleasable }) => isReleasable).map(({ pod }) => pod)).toEqual(["leaked"]);
    for (const { remedy } of report.findings) expect(remedy).toMatch(/^[A-Z].*[^.]$/);
    const written = { ...report, findings: expect.arrayContaining(report.findings) };
    expect(JSON.parse(readFileSync(file(), "utf8"))).toEqual(written);
  });

  test("that can be released is, by the report, once; what is in use stays", async () => {
    const release = (...words: string[]) => operator.berth("release", "--from-report", file(), ...words);
    const leaked = addressOf("leaked");
    const rest = "Not for release, see their remedies: ";
    expect(await release()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Give --yes") });
    const planned = await release("--dry-run");
    expect(planned).toMatchObject({ exitCode: 0, stderr: "" });
    expect(planned.stdout).toContain(rest);
    expect(planned.stdout).toContain(
      `node node2: ${leaked}: would be released (leak): Bound to eth0 of pod shop/leaked → Cooling`,
    );
    expect((await objectOf(leaked)).spec.state).toBe("Bound");
    expect((await release("--yes")).stdout).toContain(`node node2: ${leaked}: released (leak): `);
    await expect
      .poll(
        () =>
          objectOf(leaked).then(
            ({ spec }) => spec.state,
            () => "free",
          ),
        { timeout: 30_000 },
      )
      .not.toBe("Bound");
    const again = await release("--yes");
    expect(again).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(`${leaked}: skipped: (?:it is Cooling|this node has no record)`),
    });
    expect((await operator.check()).found).not.toContain(`leak ${leaked} node2 leaked`);
  });

  test("that is drift is repaired by the agents of the nodes, also for an attachment of an earlier agent", async () => {
    const { report, found } = await operator.check("--repair");
    expect(found.filter((line) => line.startsWith("drift"))).toEqual([]);
    const done = report.nodes.flatMap(({ node, repaired = [] }) => repaired.map(({ pod }) => `${node} ${pod}`));
    expect(done).toContain("node1 unserved");
    expect((await operator.check()).found.filter((line) => line.startsWith("drift"))).toEqual([]);
  });

  test.each<[what: string, change: (report: CheckReport) => void, text: RegExp]>([
    [
      "of another cluster",
      (report) => Object.assign(report, { cluster: "another" }),
      /of another cluster: its namespace kube-system has another UID/,
    ],
    [
      "that is old",
      (report) => Object.assign(report, { time: "2026-01-01T00:00:00Z" }),
      /minutes old, and only reports of the last 15 minutes are used/,
    ],
  ])("is not released by a report %s", async (_what, change, text) => {
    const report: CheckReport = JSON.parse(readFileSync(file(), "utf8"));
    change(report);
    writeFileSync(join(operator.home, "changed.json"), JSON.stringify(report));
    const refused = await operator.berth("release", "--from-report", join(operator.home, "changed.json"), "--yes");
    expect(refused).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringMatching(text) });
  });

  test("is not released on another node, nor by a node's agent for another cluster", async () => {
    const report: CheckReport = JSON.parse(readFileSync(file(), "utf8"));
    const changed = join(operator.home, "changed.json");
    const onNode = (node: string) =>
      cluster.run([
        ...[process.execPath, join(root, "dist", "berthctl.mjs"), "--socket", cluster.node(node).agent.socket],
        ...["release", "--from-report", changed, "--yes"],
      ]);
    writeFileSync(changed, JSON.stringify({ ...report, nodes: report.nodes.filter(({ node }) => node === "node2") }));
    expect(await onNode("node1")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("The report is of another node: it compared node2, and this is node1"),
    });
    expect(await onNode("node2")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(": skipped: ") });
    writeFileSync(changed, JSON.stringify({ ...report, cluster: "another" }));
    expect(await onNode("node2")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("The report is of another cluster"),
    });
  });

  test("is what the observer has found, too, and nothing else", async () => {
    const found = (await cluster.observer?.take()) ?? [];
    const lines = [...new Set(found.map(({ kind, address }) => `${kind} ${address}`))];
    console.log(`the observer found ${lines.join(", ")}`);
    const sound = UNDAMAGED.map(addressOf);
    expect(found.filter(({ address }) => sound.includes(address)).map(({ text }) => text)).toEqual([]);
    expect(lines).toContain(`duplicate ${addressOf("remote")}`);
  });
});

function textsOf({ findings }: CheckReport, kind: string, node: string): string[] {
  return findings
    .filter((finding) => finding.kind === kind && finding.node === node)
    .map(({ text }) => text)
    .sort();
}
