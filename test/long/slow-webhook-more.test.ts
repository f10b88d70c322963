/**
 * An admission webhook of others keeps what else Berth writes: the registry's epoch (a ConfigMap, and an annotation of
 * each Node) while nodes join, and Leases for longer than one can be held.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import { EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { openCandidate } from "../lab/cluster/candidate.ts";
import { NODES, type PodSpec } from "../lab/cluster/objects.ts";
import { openWebhook, type WebhookTerms } from "../lab/cluster/webhook.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";

const EPOCH = `/api/v1/namespaces/kube-system/configmaps/${EPOCH_MAP}`;
const EPOCH_RULES = [{ apiGroups: [""], resources: ["configmaps", "nodes"] }];
const ADDRESS_RULES = [{ apiGroups: ["ipam.vendor.io"], resources: ["ipallocations"] }];
const LEASE_RULES = [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"] }];
/** The lab's own writes are not kept. */
const condition = "request.userInfo.username.startsWith('system:serviceaccount:') || request.name == 'probe'";
const TERMS = { kind: "Validating", failurePolicy: "Fail", timeoutSeconds: 10, condition } as const;
const WRITES = ["CREATE", "UPDATE", "DELETE"];

/** A pool and no node. */
async function open(): Promise<Opened> {
  const world = await openWorld();
  const webhook = await openWebhook(world.client);
  await world.namespace("shop");
  await world.settings({ enableIPv6: false, allocationCooldown: "1s" });
  await world.pool("blue", { subnet: "10.6.0.0/24", default: true });
  return {
    world,
    stop: () => webhook.close(),
    install: async (terms, keepMs, probe = () => world.client.create(MAPS, { metadata: { name: "probe" } })) => {
      webhook.keepMs = keepMs;
      await webhook.install({ ...TERMS, operations: WRITES, ...terms }, probe);
      return webhook.uninstall;
    },
    [Symbol.asyncDispose]: async () => {
      await webhook.uninstall();
      webhook.close();
      await world.stop();
    },
  };
}

interface Opened extends AsyncDisposable {
  readonly world: World;
  /** Returns what uninstalls it. */
  readonly install: (
    terms: Partial<WebhookTerms> & Pick<WebhookTerms, "rules">,
    keepMs: number | undefined,
    probe?: () => Promise<unknown>,
  ) => Promise<() => Promise<void>>;
  /** The webhook is gone, and stays installed. */
  readonly stop: () => void;
}

const MAPS = "/api/v1/namespaces/default/configmaps";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/** The pod's ADD; it is repeated as by the kubelet. */
async function attach(world: World, spec: PodSpec): Promise<string> {
  const pod = await world.createPod(spec);
  const added = () => world.agent(spec.node).add(pod, { containerId: crypto.randomUUID() });
  const { ips } = await added().catch(added);
  await world.endPod(pod);
  return ips.join();
}

const CASES: readonly (readonly [what: string, keepMs: number | undefined, terms: Partial<WebhookTerms>])[] = [
  ["answers after 6 s", 6_000, {}],
  ["answers after 10 s", 10_000, { timeoutSeconds: 30 }],
  ["never answers, and is ignored after 10 s", undefined, { failurePolicy: "Ignore" }],
  ["puts another annotation on them with each write", 0, { kind: "Mutating", operations: ["CREATE", "UPDATE"] }],
];

it.for(CASES)("nodes join a registry whose epoch is kept by a webhook that %s", async ([, keepMs, terms]) => {
  await using opened = await open();
  const { world, install } = opened;
  const uninstall = await install({ rules: EPOCH_RULES, ...terms }, keepMs);
  await world.lead({ epoch: startEpoch });
  for (const name of ["n1", "n2"]) await world.openAgent(name, {}, 120_000);
  await until(
    "the epoch is settled",
    async () => {
      const { epoch, settled } = (await world.client.get(EPOCH)).data ?? {};
      return epoch !== undefined && settled === epoch;
    },
    120_000,
  );
  for (const node of ["n1", "n2"]) expect(await attach(world, { name: `web-${node}`, node })).toMatch(/^10\.6\.0\./);
  if (terms.kind === "Mutating") {
    const { annotations, labels } = (await world.client.get(`${NODES}/n1`)).metadata;
    expect([labels, annotations]).toMatchObject([
      { "policy.example.org/team": "a" },
      { "policy.example.org/seen": /./ },
    ]);
  }
  await uninstall();
});

it("a webhook that keeps Leases for 30 s ends leading, and two never lead; pods come and go", async () => {
  await using opened = await open();
  const { world, install } = opened;
  await world.openAgent("n1");
  const candidates = [await openCandidate(world.plane, "a", "lease")];
  await until("one leads", () => candidates.some(({ election }) => election.isLeading));
  candidates.push(await openCandidate(world.plane, "b", "lease"));
  const terms = { rules: LEASE_RULES, condition: "true", failurePolicy: "Ignore", timeoutSeconds: 30 } as const;
  const probe = () => world.client.create(LEASES, { metadata: { name: "probe" } });
  const uninstall = await install(terms, undefined, probe);
  const startMs = performance.now();
  for (let round = 0; performance.now() - startMs < 70_000; round++) {
    expect(await attach(world, { name: `web-${round}`, node: "n1" })).toMatch(/^10\.6\.0\./);
    await sleep(1_000);
  }
  expect(candidates.map(({ election }) => election.isLeading)).toEqual([false, false]);
  await uninstall();
  await until("one leads again", () => candidates.some(({ election }) => election.isLeading), 60_000);
  await Promise.all(candidates.map(({ close }) => close()));
  const spans = candidates.flatMap(({ spans }) => spans).sort((a, b) => a.fromMs - b.fromMs);
  for (const [index, { fromMs }] of spans.entries()) expect(fromMs).toBeGreaterThan(spans[index - 1]?.toMs ?? 0);
  expect(spans.length).toBeGreaterThan(1);
});

it("a webhook that is gone refuses ADDs in the API server's words", async () => {
  await using opened = await open();
  const { world, install, stop } = opened;
  const { runtime } = await world.addNode("n1");
  await install({ rules: ADDRESS_RULES, condition: "true" }, 0, () => world.allocate("10.6.0.200"));
  stop();
  const pod = await world.createPod({ name: "web", node: "n1" });
  expect((await runtime.attach(pod, { limitMs: 30_000 })).refusal).toContain("failed calling webhook");
});
