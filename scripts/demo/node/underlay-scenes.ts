/** The purpose of the coordinator: pods on the data-centre's network, their node, services, clients, several NICs. */
import { outsideAddress, segmentAddress } from "../../../test/lab/addressing.ts";
import { type Capture, openCapture } from "../../../test/lab/capture.ts";
import type { Netns } from "../../../test/lab/netns.ts";
import { serviceStandIn } from "../../../test/lab/service.ts";
import type { Place as SocketPlace } from "../../../test/lab/sockets.ts";
import { type Answer, ask, serve } from "../../../test/lab/traffic.ts";
import { type Narrator, ping, type Scene } from "../engine.ts";
import { createPod, type Place, podOf, pools } from "./place.ts";

const PORT = 8080;
const NODE_PORT = 30_080;
const SERVICE = { address: "10.96.0.10", port: 80 };
const SERVICE_V6 = { address: "fd00:96::10", port: 80 };
const [NODE, NODE_V6] = [segmentAddress(0, 11, 4), segmentAddress(0, 11, 6)];
const [OTHER_NODE, OTHER_NODE_V6] = [segmentAddress(0, 12, 4), segmentAddress(0, 12, 6)];
const CLIENT = outsideAddress(4);

/** Servers of that name on {@link PORT}, until the stack ends. */
async function openServers(stack: AsyncDisposableStack, places: Readonly<Record<string, Netns>>): Promise<void> {
  for (const [name, netns] of Object.entries(places)) {
    const server = await serve(netns, PORT, { name });
    stack.defer(() => server.close());
  }
}

/** Forwards packets for the place to the backend's {@link PORT}, until the stack ends, as kube-proxy's rules do. */
async function openService(stack: AsyncDisposableStack, node: Netns, place: SocketPlace, address: string) {
  const service = await serviceStandIn(node, { ...place, backends: [{ address, port: PORT }] });
  stack.defer(() => service.delete());
}

/** Claims that the server answered, and saw the asking one as `peer`: `web-0 10.10.0.1`. */
function claimAnswer(narrator: Narrator, what: string, { server, seenPeer }: Answer, wanted: string): void {
  narrator.claim(what, `${server} ${seenPeer}` === wanted, `${server} answers, and saw ${seenPeer} ask`);
}

/** TCP frames that came by the captured link from this address. */
const framesFrom = (capture: Capture, address: string) =>
  capture
    .frames()
    .filter(({ direction, protocol, from }) => direction === "in" && protocol === "tcp" && from === address);

export const underlayScene: Scene<Place> = {
  title: "A pod and its own node",
  text: `db-0's NIC is a macvlan on the node's NIC. The kernel keeps such a NIC and its own node apart. So the pod reaches every machine
    of the network but this one, and it is this one that knows what to do with service addresses.`,
  act: async (place, narrator) => {
    const [db0, web0] = [podOf(place, "db-0"), podOf(place, "web-0")];
    await narrator.reaches("db-0 reaches another node", db0.netns, OTHER_NODE);
    const own = await ping(db0.netns, NODE, 0.5);
    narrator.claim("db-0 does not reach its own node", !own.answered, own.seen);
    narrator.remark(
      "The same network, with Berth's second plugin after macvlan: the coordinator. cart-0 is attached to it:",
    );
    const cart0 = await createPod(place, "cart-0", { ippool: { ipv4: ["lan-v4"], ipv6: ["lan-v6"] } });
    await cart0.attach(narrator, "lan-services");
    await narrator.reaches("cart-0 reaches its own node", cart0.netns, NODE);
    await narrator.reaches("cart-0 reaches it over IPv6", cart0.netns, NODE_V6);
    await using stack = new AsyncDisposableStack();
    await openServers(stack, { "cart-0": cart0.netns, "web-0": web0.netns, "the other node": place.fabric.node2 });
    const probe = await ask(place.node, cart0.lab.address(4), PORT);
    claimAnswer(narrator, "its node can ask whether it is well", probe, `cart-0 ${NODE}`);
    narrator.remark(
      `No machine has a service's address. Every node has a rule instead: what is for this address goes to one of the service's servers.
       Rules of this demo's own stand for kube-proxy's; one leads to a pod of this node, one to the other node:`,
    );
    await openService(stack, place.node, SERVICE, web0.lab.address(4));
    const near = await ask(cart0.netns, SERVICE.address, SERVICE.port);
    claimAnswer(narrator, `cart-0 reaches service ${SERVICE.address}`, near, `web-0 ${pools.blue.gateway}`);
    await openService(stack, place.node, SERVICE_V6, OTHER_NODE_V6);
    const far = await ask(cart0.netns, SERVICE_V6.address, SERVICE_V6.port);
    claimAnswer(narrator, `cart-0 reaches service ${SERVICE_V6.address}`, far, `the other node ${NODE_V6}`);
    narrator.remark(
      `Both servers saw an address of the node. Had they seen the pod's, they would have answered the pod directly, and the pod, which
       asked the service's address, would not know that answer.`,
    );
  },
};

export const outsideScene: Scene<Place> = {
  title: "A client from outside",
  text: `A client behind a router asks a port of the node, which leads to cart-0 and leaves the sender as it is (in Kubernetes: a NodePort
    with externalTrafficPolicy Local). The answer has to go back over the node: from the pod's own NIC it would reach a client that
    never asked the pod.`,
  act: async (place, narrator) => {
    const { lab, netns } = podOf(place, "cart-0");
    const { outside, router } = place.fabric;
    const own = lab.address(4);
    const wanted = `cart-0 ${CLIENT}`;
    await using stack = new AsyncDisposableStack();
    await openServers(stack, { "cart-0": netns });
    await openService(stack, place.node, { address: NODE, port: NODE_PORT }, own);
    using capture = await openCapture(router, "seg0");
    const byNode = await ask(outside, NODE, NODE_PORT);
    const what = `the client reaches cart-0 by ${NODE} port ${NODE_PORT}, and is seen as itself`;
    claimAnswer(narrator, what, byNode, wanted);
    const [overNode, astray] = [framesFrom(capture, NODE).length, framesFrom(capture, own).length];
    const seen = `the router saw ${overNode} packets from ${NODE}, ${astray} from ${own}`;
    narrator.claim("the answer went back over the node", overNode > 0 && astray === 0, seen);
    const direct = await ask(outside, own, PORT);
    claimAnswer(narrator, "the client may ask the pod's own address as well", direct, wanted);
    const macs = [...new Set(framesFrom(capture, own).map(({ sourceMac }) => sourceMac))];
    const isDirect = macs.join() === (await lab.mac());
    narrator.claim("that answer went the straight way", isDirect, `it came from ${macs.join()}, cart-0's own NIC`);
  },
};

export const twoNicsScene: Scene<Place> = {
  title: "A pod with two NICs",
  text: `nas-0 has a NIC in the network of pods and one in a network for storage, and one default route, by the first. It answers by the NIC
    that was asked all the same: a firewall that saw only one half of a conversation would end it.`,
  act: async (place, narrator) => {
    const nics = { eth0: ["lan-services", "lan-v4", "seg0"], net1: ["storage", "storage", "seg1"] } as const;
    const ippools = Object.entries(nics).map(([name, [, pool]]) => ({ interface: name, ipv4: [pool] }));
    const nas0 = await createPod(place, "nas-0", { ippools });
    for (const [ifName, [network]] of Object.entries(nics)) await nas0.attach(narrator, network, ifName);
    await using stack = new AsyncDisposableStack();
    await openServers(stack, { "nas-0": nas0.netns });
    for (const [ifName, [, , link]] of Object.entries(nics)) {
      const address = nas0.lab.address(4, ifName);
      using right = await openCapture(place.fabric.router, link);
      using wrong = await openCapture(place.fabric.router, link === "seg0" ? "seg1" : "seg0");
      const { server, seenPeer } = await ask(place.fabric.outside, address, PORT);
      const [own, other] = [framesFrom(right, address).length, framesFrom(wrong, address).length];
      const isRight = server === "nas-0" && seenPeer === CLIENT && own > 0 && other === 0;
      const seen = `the router got ${own} packets of it from the NIC's network, ${other} from the other`;
      narrator.claim(`asked at ${address}, nas-0 answers by ${ifName}`, isRight, seen);
    }
  },
};
