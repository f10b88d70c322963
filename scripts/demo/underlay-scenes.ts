/**
 * Shows the purpose of the coordinator: pods on the data-centre's network, their node, services, clients from
 * outside, several NICs. Told after the scenes in which pods get their addresses; what is said is shown by traffic.
 */
import { outsideAddress, segmentAddress } from "../../test/lab/addressing.ts";
import { type Capture, openCapture } from "../../test/lab/capture.ts";
import type { Frame } from "../../test/lab/frame.ts";
import type { Netns } from "../../test/lab/netns.ts";
import { serviceStandIn } from "../../test/lab/service.ts";
import { type Answer, ask, serve } from "../../test/lab/traffic.ts";
import { claimNic, requirePod, type Scene } from "./acts.ts";
import { pools } from "./manifests.ts";
import type { Narrator } from "./narrator.ts";
import { ping, requireAddress } from "./observe.ts";
import type { Stage } from "./stage.ts";

const PORT = 8080;
const NODE_PORT = 30_080;
const SERVICE = { address: "10.96.0.10", port: 80 };
const SERVICE_V6 = { address: "fd00:96::10", port: 80 };
const NODE = segmentAddress(0, 11, 4);
const NODE_V6 = segmentAddress(0, 11, 6);
const OTHER_NODE = segmentAddress(0, 12, 4);
const OTHER_NODE_V6 = segmentAddress(0, 12, 6);
const CLIENT = outsideAddress(4);

const BOTH_FAMILIES = { "ipam.vendor.io/ippool": '{"ipv4":["lan-v4"],"ipv6":["lan-v6"]}' };
const LAN_AND_STORAGE = {
  "ipam.vendor.io/ippools": '[{"interface":"eth0","ipv4":["lan-v4"]},{"interface":"net1","ipv4":["storage"]}]',
};

/** Servers of that name on {@link PORT}, until the stack ends. */
async function openServers(stack: AsyncDisposableStack, places: Readonly<Record<string, Netns>>): Promise<void> {
  for (const [name, netns] of Object.entries(places)) {
    const server = await serve(netns, PORT, { name });
    stack.defer(() => server.close());
  }
}

/** Sends what is for `place` on to the backend's {@link PORT}, until the stack ends: what kube-proxy's rules do. */
async function openService(
  stack: AsyncDisposableStack,
  node: Netns,
  place: { address: string; port: number },
  backend: string,
): Promise<void> {
  const service = await serviceStandIn(node, { ...place, backends: [{ address: backend, port: PORT }] });
  stack.defer(() => service.delete());
}

/** Claims that the server answered, and saw the asking one as `peer`. */
function claimAnswer(narrator: Narrator, what: string, answer: Answer, wanted: { server: string; peer: string }): void {
  const holds = answer.server === wanted.server && answer.seenPeer === wanted.peer;
  narrator.claim(what, holds, `${answer.server} answers, and saw ${answer.seenPeer} ask`);
}

/** TCP frames that came by the captured link from this address. */
function framesFrom(capture: Capture, address: string): readonly Frame[] {
  return capture.frames().filter(({ direction, protocol, from }) => {
    return direction === "in" && protocol === "tcp" && from === address;
  });
}

async function claimPing(narrator: Narrator, what: string, from: Netns, address: string): Promise<void> {
  const { answered, seen } = await ping(from, address, { count: 1 });
  narrator.claim(what, answered, seen);
}

export const underlayScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A pod and its own node",
    `db-0's NIC is a macvlan on the node's NIC. The kernel keeps such a NIC and its own node apart. So the pod reaches every
     machine of the network but this one, and it is this one that knows what to do with service addresses.`,
  );
  const db0 = requirePod(stage, "db-0");
  await claimPing(narrator, "db-0 reaches another node", db0.netns, OTHER_NODE);
  const own = await ping(db0.netns, NODE, { count: 1, waitS: 0.5 });
  narrator.claim("db-0 does not reach its own node", !own.answered, own.seen);
  narrator.remark(
    "The same network, with Berth's second plugin after macvlan: the coordinator. cart-0 is attached to it:",
  );
  const cart0 = await stage.createPod({ name: "cart-0", uid: "uid-cart-0", annotations: BOTH_FAMILIES });
  await claimNic(narrator, cart0, await stage.attach(cart0, "lan-services", "eth0"), ["lan-v4", "lan-v6"]);
  await claimPing(narrator, "cart-0 reaches its own node", cart0.netns, NODE);
  await claimPing(narrator, "cart-0 reaches it over IPv6", cart0.netns, NODE_V6);
  await using stack = new AsyncDisposableStack();
  const web0 = requirePod(stage, "web-0");
  await openServers(stack, { "cart-0": cart0.netns, "web-0": web0.netns, "the other node": stage.fabric.node2 });
  const probe = await ask(stage.node, requireAddress(cart0, 4), PORT);
  claimAnswer(narrator, "its node can ask whether it is well", probe, { server: "cart-0", peer: NODE });
  narrator.remark(
    `No machine has a service's address. Every node has a rule instead: what is for this address goes to one of the service's
     servers. Rules of this demo's own stand for kube-proxy's; one leads to a pod of this node, one to the other node:`,
  );
  await openService(stack, stage.node, SERVICE, requireAddress(web0, 4));
  const near = await ask(cart0.netns, SERVICE.address, SERVICE.port);
  const seenOnBridge = { server: "web-0", peer: pools.blue.gateway };
  claimAnswer(narrator, `cart-0 reaches service ${SERVICE.address}`, near, seenOnBridge);
  await openService(stack, stage.node, SERVICE_V6, OTHER_NODE_V6);
  const far = await ask(cart0.netns, SERVICE_V6.address, SERVICE_V6.port);
  const seenAsNode = { server: "the other node", peer: NODE_V6 };
  claimAnswer(narrator, `cart-0 reaches service ${SERVICE_V6.address}`, far, seenAsNode);
  narrator.remark(
    `Both servers saw an address of the node. Had they seen the pod's, they would have answered the pod directly, and the pod,
     which asked the service's address, would not know that answer.`,
  );
};

export const outsideScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A client from outside",
    `A client behind a router asks a port of the node, which leads to cart-0 and leaves the sender as it is (in Kubernetes: a
     NodePort with externalTrafficPolicy Local). The answer has to go back over the node: from the pod's own NIC it would reach a
     client that never asked the pod.`,
  );
  const cart0 = requirePod(stage, "cart-0");
  const own = requireAddress(cart0, 4);
  await using stack = new AsyncDisposableStack();
  await openServers(stack, { "cart-0": cart0.netns });
  await openService(stack, stage.node, { address: NODE, port: NODE_PORT }, own);
  using capture = await openCapture(stage.fabric.router, "seg0");
  const byNode = await ask(stage.fabric.outside, NODE, NODE_PORT);
  const wanted = { server: "cart-0", peer: CLIENT };
  claimAnswer(
    narrator,
    `the client reaches cart-0 by ${NODE} port ${NODE_PORT}, and is seen as itself`,
    byNode,
    wanted,
  );
  const [overNode, astray] = [framesFrom(capture, NODE).length, framesFrom(capture, own).length];
  const seen = `the router saw ${overNode} packets from ${NODE}, ${astray} from ${own}`;
  narrator.claim("the answer went back over the node", overNode > 0 && astray === 0, seen);
  const [nic] = await cart0.netns.ipJson<{ address: string }>("link show dev eth0");
  const direct = await ask(stage.fabric.outside, own, PORT);
  claimAnswer(narrator, "the client may ask the pod's own address as well", direct, wanted);
  const macs = new Set(framesFrom(capture, own).map(({ sourceMac }) => sourceMac));
  const isDirect = macs.size === 1 && macs.has(nic?.address ?? "");
  narrator.claim("that answer went the straight way", isDirect, `it came from ${[...macs].join()}, cart-0's own NIC`);
};

export const twoNicsScene: Scene = async (stage, narrator) => {
  narrator.scene(
    "A pod with two NICs",
    `nas-0 has a NIC in the network of pods and one in a network for storage, and one default route, by the first. It answers by the
     NIC that was asked all the same: a firewall that saw only one half of a conversation would end it.`,
  );
  const nas0 = await stage.createPod({ name: "nas-0", uid: "uid-nas-0", annotations: LAN_AND_STORAGE });
  await claimNic(narrator, nas0, await stage.attach(nas0, "lan-services", "eth0"), ["lan-v4"]);
  await claimNic(narrator, nas0, await stage.attach(nas0, "storage", "net1"), ["storage"]);
  await using stack = new AsyncDisposableStack();
  await openServers(stack, { "nas-0": nas0.netns });
  for (const ifName of ["eth0", "net1"]) await claimWay(stage, narrator, requireAddress(nas0, 4, ifName), ifName);
};

/** The router's link on which the answers of nas-0 arrive is that of the NIC's network. */
async function claimWay(stage: Stage, narrator: Narrator, address: string, ifName: string): Promise<void> {
  using lan = await openCapture(stage.fabric.router, "seg0");
  using storage = await openCapture(stage.fabric.router, "seg1");
  const { server, seenPeer } = await ask(stage.fabric.outside, address, PORT);
  const [byLan, byStorage] = [framesFrom(lan, address).length, framesFrom(storage, address).length];
  const [own, other] = ifName === "eth0" ? [byLan, byStorage] : [byStorage, byLan];
  narrator.claim(
    `asked at ${address}, nas-0 answers by ${ifName}`,
    server === "nas-0" && seenPeer === CLIENT && own > 0 && other === 0,
    `the router got ${byLan} packets of it from the network of pods, ${byStorage} from the one for storage`,
  );
}
