/** Pods that run and do not reach, or are not reached. */
import { afterAll, beforeAll } from "vitest";
import { runCommand } from "../../lab/command.ts";
import { ipPool, macvlan, manifest, vendorConf } from "../../lab/manifests.ts";
import type { LabPod } from "../../lab/netns/world.ts";
import type { Netns } from "../../lab/netns.ts";
import { eventually } from "../../lab/waiting.ts";
import { openNode, type SymptomNode, withNode } from "./node.ts";
import { symptom } from "./page.ts";

const BLUE = ipPool("blue", "10.6.0.0/24", {
  ...{ default: true, gateway: "10.6.0.1", selection: "ascending", ips: ["10.6.0.20-10.6.0.40"] },
});
const DETECT = manifest("Coordinator", "default", { detectIPConflict: true, detectGateway: true });
const COORDINATOR = { type: "coordinator", serviceCIDR: ["10.96.0.0/16"] };

let node: SymptomNode;
let coordinated: LabPod;
/** Without a coordinator. */
let plain: LabPod;

beforeAll(async () => {
  node = await openNode({ "blue.yaml": BLUE });
  await node.rival.ip("addr add 10.6.0.1/24 dev eth1");
  await node.netns.ip("addr add 10.6.0.2/24 dev eth1");
  coordinated = await node.attach("web-0", [macvlan("eth1"), COORDINATOR]);
  plain = await node.attach("web-1");
});
afterAll(() => node?.delete());

async function run(netns: Netns, ...argv: string[]): Promise<string> {
  const { stdout, stderr } = await runCommand(netns.enter(argv));
  return stdout + stderr;
}
const ping = (netns: Netns, ...args: string[]) => run(netns, "ping", "-c", "2", "-i", "0.2", "-W", "1", ...args);

symptom("A pod cannot ping its own node", () => ping(plain.netns, "10.6.0.2"));
symptom("A pod does not reach the cluster IP of a service", () => run(plain.netns, "ip", "route", "get", "10.96.0.10"));
symptom("ip rule in a pod lists unknown rules", async () => {
  return run(coordinated.netns, "ip", "rule");
});
symptom("ip rule on the node", () => run(node.netns, "ip", "rule"));
symptom("Large packets get no answer", async () => {
  await node.rival.ip("link set eth1 mtu 1400");
  try {
    return (
      (await ping(plain.netns, "-s", "56", "10.6.0.1")) +
      (await ping(plain.netns, "-M", "do", "-s", "1472", "10.6.0.1"))
    );
  } finally {
    await node.rival.ip("link set eth1 mtu 1500");
  }
});
symptom("Two machines answer for one address", async () => {
  const [address] = [plain.address(4)];
  await node.rival.ip(`addr add ${address}/24 dev eth1`);
  try {
    return await run(node.netns, "arping", "-D", "-c", "2", "-I", "eth1", address);
  } finally {
    await node.rival.ip(`addr del ${address}/24 dev eth1`);
  }
});
symptom("is in use by another machine", () =>
  withNode({ "blue.yaml": BLUE, "coordinator.yaml": DETECT }, async ({ rival, refusal }) => {
    await rival.ip("addr add 10.6.0.20/24 dev eth1");
    return refusal("web-0");
  }),
);
symptom("Gateway does not answer", () =>
  withNode({ "blue.yaml": BLUE, "coordinator.yaml": DETECT }, ({ refusal }) =>
    refusal("web-0", [macvlan("eth1"), COORDINATOR]),
  ),
);
symptom("An IPv6 address is dadfailed", () =>
  withNode(
    {
      "conf.yaml": vendorConf({ enableIPv4: false }),
      "six.yaml": ipPool("six", "fd00:6::/64", { default: true, ips: ["fd00:6::20"] }),
    },
    async ({ rival, attach }) => {
      await rival.ip("addr add fd00:6::20/64 dev eth1 nodad");
      const { netns } = await attach("web-0");
      await run(netns, "ip", "addr", "flush", "dev", "eth0");
      await run(netns, "sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=1");
      await run(netns, "ip", "addr", "add", "fd00:6::20/64", "dev", "eth0");
      return eventually(
        () => run(netns, "ip", "-6", "addr", "show", "dev", "eth0"),
        (text) => text.includes("dadfailed"),
      );
    },
  ),
);
