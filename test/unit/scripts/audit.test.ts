/** The audit of a cluster and the ledger of its pods: what they find. */
import { expect, it } from "vitest";
import { type AuditFacts, audit } from "../../lab/cluster/audit.ts";
import { type Attachment, Ledger } from "../../lab/cluster/ledger.ts";
import type { KubeObject } from "../../lab/kube-client.ts";
import { cases } from "../../world/rows.ts";

const A = { namespace: "shop", name: "a", uid: "aaaaaaaa-1", node: "n1" };
const B = { namespace: "shop", name: "b", uid: "bbbbbbbb-1", node: "n2" };

const nic = (pod: typeof A, ...addresses: string[]): Attachment => ({
  pod,
  ifName: "eth0",
  containerId: `c-${pod.name}`,
  addresses,
});

function bound(address: string, pod: typeof A | undefined, spec: object = {}): KubeObject {
  const holder = pod && { namespace: pod.namespace, pod: pod.name, podUID: pod.uid, interface: "eth0", node: pod.node };
  return { metadata: { name: address }, spec: { address, state: "Bound", holders: holder ? [holder] : [], ...spec } };
}

const object = ({ name, uid, node }: typeof A, phase = "Running"): KubeObject => ({
  metadata: { name, uid },
  spec: { nodeName: node },
  status: { phase },
});

const clean: AuditFacts = {
  allocations: [bound("10.0.0.1", A), bound("10.0.0.2", B)],
  pods: [object(A), object(B)],
  live: [nic(A, "10.0.0.1"), nic(B, "10.0.0.2")],
  breaches: [],
};

it.each(cases<Partial<AuditFacts>>`
  does not allow a live address to cool by a journal ${{ allocations: [bound("10.0.0.1", B), bound("10.0.0.2", B)], cooling: new Set(["10.0.0.1"]) }}
    => 10.0.0.1 is live at shop/a (aaaaaaaa, eth0) on n1 and its object belongs to shop/b (bbbbbbbb, eth0) on n2
  an address without an object ${{ allocations: [bound("10.0.0.1", A)] }}
    => 10.0.0.2 is live at shop/b (bbbbbbbb, eth0) on n2 and has no object
  a live address of another pod ${{ allocations: [bound("10.0.0.1", A), bound("10.0.0.2", A)], live: [nic(B, "10.0.0.2")] }}
    => 10.0.0.2 is live at shop/b (bbbbbbbb, eth0) on n2 and its object belongs to shop/a (aaaaaaaa, eth0) on n1
  an address at two pods ${{ live: [nic(A, "10.0.0.1"), nic(B, "10.0.0.2", "10.0.0.1")], allocations: [bound("10.0.0.1", A)] }}
    => 10.0.0.1 is live at shop/a (aaaaaaaa, eth0) on n1 and at shop/b (bbbbbbbb, eth0) on n2 & 10.0.0.2 is live at shop/b (bbbbbbbb, eth0) on n2 and has no object & 10.0.0.1 is live at shop/b (bbbbbbbb, eth0) on n2 and at shop/a (aaaaaaaa, eth0) on n1 & 10.0.0.1 is live at shop/b (bbbbbbbb, eth0) on n2 and its object belongs to shop/a (aaaaaaaa, eth0) on n1
  an object of a pod that is gone ${{ pods: [object(A)], live: [nic(A, "10.0.0.1")] }}
    => 10.0.0.2 is Bound to shop/b (bbbbbbbb, eth0) on n2, which is gone
  an object that names another node ${{ pods: [object(A), object({ ...B, node: "n3" })] }}
    => 10.0.0.2 is Bound to shop/b (bbbbbbbb, eth0) on n2, which is on n3
  a second address of one NIC ${{ allocations: [...clean.allocations, bound("10.0.0.9", A)] }}
    => 10.0.0.9 is Bound to shop/a (aaaaaaaa, eth0) on n1, which has 10.0.0.1 instead
  objects that say nothing ${{ live: [], allocations: [bound("10.0.0.1", undefined), bound("10.0.0.2", undefined, { state: "Kept" }), bound("10.0.0.3", undefined, { state: "Quarantined" }), { ...bound("10.0.0.4", A), metadata: { name: "10.0.0.5" } }] }}
    => 10.0.0.1 is Bound without a holder & 10.0.0.2 is Kept without a workload & 10.0.0.3 is Quarantined without a reason & The object 10.0.0.5 is for the address 10.0.0.4
`)("the audit %s", (_, change, expected) => expect(audit({ ...clean, ...change })).toEqual(expected.split(" & ")));

it("the ledger writes down an address that is given out while it is live, and not after its DEL", () => {
  const ledger = new Ledger();
  ledger.hold(nic(A, "10.0.0.1", "10.0.0.2"));
  ledger.drop(nic(A, "10.0.0.1"));
  expect(ledger.live()).toHaveLength(1);
  const attachment = ledger.find(A, "eth0");
  expect(attachment?.addresses).toEqual(["10.0.0.1", "10.0.0.2"]);
  ledger.hold(nic(B, "10.0.0.2"));
  expect(ledger.breaches).toEqual([
    "10.0.0.2 was given to shop/b (bbbbbbbb, eth0) on n2 while it is live at shop/a (aaaaaaaa, eth0) on n1",
  ]);
  for (const each of ledger.live()) ledger.drop(each);
  ledger.hold(nic(A, "10.0.0.2"));
  expect(ledger.breaches).toHaveLength(1);
});
