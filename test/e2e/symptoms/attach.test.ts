/** Pods that do not start on a node, whatever the cluster. */
import { afterAll, beforeAll } from "vitest";
import { ipPool, macvlan, manifest, podManifest, vendorConf } from "../../lab/manifests.ts";
import { openNode, type SymptomNode, withNode } from "./node.ts";
import { symptom } from "./page.ts";

/** One address for pods: 10.6.0.2. */
const BLUE = ipPool("blue", "10.6.0.0/30", { gateway: "10.6.0.1" });
const pools = (...names: string[]) => ({ ippool: { ipv4: names } });

const PODS: Readonly<Record<string, Record<string, unknown>>> = {
  holder: pools("blue"),
  late: pools("blue"),
  typo: pools("bleu"),
  reserved: pools("reserved"),
  elsewhere: pools("elsewhere"),
  disabled: pools("disabled"),
};

let node: SymptomNode;

beforeAll(async () => {
  node = await openNode({
    "blue.yaml": BLUE,
    "reserved.yaml": ipPool("reserved", "10.7.0.0/24", { gateway: "10.7.0.1", ips: ["10.7.0.1-10.7.0.9"] }),
    "reservedip.yaml": manifest("ReservedIP", "printers", { ips: ["10.7.0.2-10.7.0.9"] }),
    "elsewhere.yaml": ipPool("elsewhere", "10.8.0.0/24", { nodeName: ["node7"] }),
    "disabled.yaml": ipPool("disabled", "10.9.0.0/24", { disable: true }),
    "pods.yaml": Object.entries(PODS)
      .map(([name, annotations]) => podManifest("shop", name, annotations))
      .join("---\n"),
  });
  await node.attach("holder");
});
afterAll(() => node?.delete());

const refused = (title: string, pod: string, plugins?: readonly object[]) =>
  symptom(title, () => node.refusal(pod, plugins));

refused("No pool is selected for interface", "plain");
refused("pool does not exist", "typo");
refused("has no free address", "late");
refused("has no address that may be handed out", "reserved");
refused("is for other nodes", "elsewhere");
refused("is disabled", "disabled");
refused("failed to find plugin in path", "web-2", [{ ...macvlan("eth1"), type: "berth-macvlan" }]);
refused("Link not found", "web-3", [macvlan("eth7")]);
refused("ADD needs prevResult", "web-4", [{ type: "coordinator" }]);
refused("Cannot create link of kind vlan or bond: operation not supported", "web-5", [
  { type: "ifacer", vlanID: 7, interfaces: ["eth1"] },
  macvlan("eth1.7"),
]);
symptom("field ipv6 is required because enableIPv6 is true", () =>
  withNode({ "conf.yaml": vendorConf({}), "pod.yaml": podManifest("shop", "web-0", pools("blue")) }, ({ refusal }) =>
    refusal("web-0"),
  ),
);
symptom("Agent cannot be reached", () =>
  withNode({}, async ({ agent, refusal }) => {
    await agent.stop();
    return refusal("web-0");
  }),
);
