/**
 * Expected answers of `ip route get` in a pod and on its node, derived from the pod's configuration and not from the
 * coordinator's plan.
 */
import { expect } from "vitest";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { askIp } from "./coordinator-snapshot.ts";
import type { PodFacts } from "./coordinator-walker.ts";
import { addressOf, type Names, type Nic, NODE_IPS, OVERLAY_END } from "./coordinator-world.ts";

type Family = 4 | 6;

const FAMILIES = [4, 6] as const;
/** Somewhere behind a router. */
const FAR = { 4: "203.0.113.9", 6: "2001:db8::9" } as const;

const familyOf = (text: string): Family => (text.includes(":") ? 6 : 4);

/** An address inside the network, of those of the walk. */
function memberOf(network: string): string {
  return network.endsWith("/16")
    ? "10.96.1.1"
    : network.endsWith("/112")
      ? "fd00:96::11"
      : (network.split("/")[0] ?? "");
}

/** Question for `ip route get` → the device in its answer. */
type Expectation = readonly [question: string, device: string];

function deviceToNode({ kind }: PodFacts): string {
  return kind === "underlay" ? "veth0" : "eth0";
}

function ofPod(facts: PodFacts): Expectation[] {
  const { nics, defaultNic, overNode, kind, reached } = facts;
  // a NIC that the coordinator does not know now has left its family to the others
  const hasFamily = (list: readonly Nic[], family: Family): boolean =>
    list.some((nic) => nic.families.includes(family));
  const first = nics.filter(({ name }) => name === "eth0");
  const canReachNode = (family: Family): boolean =>
    hasFamily(reached, family) && (kind === "underlay" || hasFamily(first, family));
  const byNode = FAMILIES.filter(canReachNode);
  const sources = (family: Family): Nic[] => nics.filter(({ families }) => families.includes(family));
  const isTuned = facts.tuned && nics.length > 1;
  return FAMILIES.flatMap((family): Expectation[] => {
    const dev = deviceToNode(facts);
    const ours = sources(family);
    const targets = byNode.includes(family)
      ? [NODE_IPS[family], ...overNode.filter((network) => familyOf(network) === family).map(memberOf)]
      : [];
    const main = defaultNic?.[family];
    return [
      ...(main === undefined ? [] : [[FAR[family], main] as const]),
      ...ours
        .filter(({ gateway }) => gateway && isTuned)
        .map((nic): Expectation => [`${FAR[family]} from ${addressOf(nic, family)}`, nic.name]),
      ...ours.map((nic): Expectation => [`${addressOf(nic, family, 77)} from ${addressOf(nic, family)}`, nic.name]),
      ...targets.map((target): Expectation => [target, dev]),
      ...(isTuned ? ours : []).flatMap((nic) =>
        targets.map((target): Expectation => [`${target} from ${addressOf(nic, family)}`, dev]),
      ),
      ...(kind === "underlay" && byNode.includes(family) ? [[`${FAR[family]} mark 0x1000000`, "veth0"] as const] : []),
    ];
  });
}

function ofNode({ kind, containerId, reached }: PodFacts): Expectation[] {
  const end = kind === "underlay" ? nameVeth(containerId).host.name : OVERLAY_END[kind];
  return reached.flatMap((nic) => nic.families.map((family): Expectation => [addressOf(nic, family), end]));
}

interface Answer {
  readonly dev?: string;
}

function isAnswers(value: unknown): value is Answer[] {
  return Array.isArray(value);
}

async function expectDevices(netns: string, expected: readonly Expectation[]): Promise<void> {
  const lines = expected.map(([question]) => `route get ${question}`);
  const answers = lines.length === 0 ? [] : await askIp(netns, [], lines);
  const found = answers.map((answer) => (isAnswers(answer) ? answer[0]?.dev : undefined));
  expect(Object.fromEntries(expected.map(([question], at) => [question, found[at]]))).toEqual(
    Object.fromEntries(expected),
  );
}

/** Default NIC, reply NIC of each source address, what is led over the node, and the node's way to the pod. */
export async function expectRoutes(names: Names, facts: PodFacts): Promise<void> {
  await Promise.all([expectDevices(names.pod, ofPod(facts)), expectDevices(names.node, ofNode(facts))]);
}
