/**
 * The test network itself, with plain `ip` and no Berth: who reaches whom, by which link, and that the instruments
 * see it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAMILIES } from "../../../host/net/ip.ts";
import { outsideAddress, podAddress, segmentAddress } from "../../lab/addressing.ts";
import { openCapture } from "../../lab/capture.ts";
import { formatFrame } from "../../lab/frame.ts";
import { type Fabric, makeFabric } from "../../lab/netns/fabric.ts";
import { openNetns } from "../../lab/netns.ts";
import { serviceStandIn } from "../../lab/service.ts";
import { ask, askOften, openSession, ping, type Server, serve } from "../../lab/traffic.ts";

const PORT = 8080;
const SERVICE = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;
/** Packets without an answer: long enough for an answer to come, were there one. */
const SILENCE = { timeoutMs: 400 };

let fabric: Fabric;
const servers: Server[] = [];
let pod1: Awaited<ReturnType<Fabric["addHost"]>>;
let pod2: typeof pod1;
let twoNics: typeof pod1;
let routed1: typeof pod1;
let routed2: typeof pod1;

beforeAll(async () => {
  fabric = await makeFabric("fb");
  pod1 = await fabric.addMacvlanPod(fabric.node1, "pod1", [{ segment: 0, host: 50 }]);
  pod2 = await fabric.addMacvlanPod(fabric.node2, "pod2", [{ segment: 0, host: 51 }]);
  twoNics = await fabric.addMacvlanPod(fabric.node2, "two", [
    { segment: 0, host: 52 },
    { segment: 1, host: 52 },
  ]);
  routed1 = await fabric.addRoutedPod(fabric.node1, "routed1", 5);
  routed2 = await fabric.addRoutedPod(fabric.node2, "routed2", 6);
  for (const place of [fabric.node1, fabric.node2, fabric.outside, pod1, pod2, twoNics, routed2])
    servers.push(await serve(place, PORT));
});

afterAll(async () => {
  for (const server of servers) await server.close();
  await fabric.delete();
});

describe.each(FAMILIES)("in IPv%i", (family) => {
  const at = (host: number, segment = 0) => segmentAddress(segment, host, family);

  it("nodes, pods of two nodes and the client behind the router reach each other, seen as they are", async () => {
    const rows = [
      { from: fabric.node1, seen: at(11), to: at(12), server: fabric.node2 },
      { from: pod1, seen: at(50), to: at(51), server: pod2 },
      { from: fabric.outside, seen: outsideAddress(family), to: at(50), server: pod1 },
      { from: pod1, seen: at(50), to: outsideAddress(family), server: fabric.outside },
      { from: pod1, seen: at(50), to: at(12), server: fabric.node2 },
      { from: fabric.outside, seen: outsideAddress(family), to: at(52, 1), server: twoNics },
      { from: routed1, seen: podAddress(1, 5, family), to: podAddress(2, 6, family), server: routed2 },
    ];
    for (const { from, seen, to, server } of rows) {
      expect(await ask(from, to, PORT)).toMatchObject({ server: server.name, seenPeer: seen, at: to });
    }
  });

  it("UDP is answered, too, and a client's address and port can be chosen", async () => {
    const own = { from: at(50), fromPort: 5353 };
    const answer = await ask(pod1, at(51), PORT, { protocol: "udp", ...own });
    expect(answer).toMatchObject({ server: pod2.name, seenPeer: at(50), seenPort: 5353 });
    expect(await ask(pod1, at(51), PORT, own)).toMatchObject({ seenPeer: at(50), seenPort: 5353 });
  });

  it("a macvlan pod and its own node do not reach each other", async () => {
    expect(await ping(pod1, at(12))).toBe(true);
    expect(await ping(pod1, at(11), { count: 1 })).toBe(false);
    await expect(ask(pod1, at(11), PORT, SILENCE)).rejects.toMatchObject({ code: "ETIMEDOUT" });
    await expect(ask(fabric.node1, at(50), PORT, SILENCE)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  });

  it("the router knows neither the pod network nor services", async () => {
    for (const address of [podAddress(2, 6, family), SERVICE[family]]) {
      await expect(ask(fabric.outside, address, PORT, SILENCE)).rejects.toMatchObject({ name: "NoTraffic" });
      await expect(fabric.router.ip(`route get ${address}`)).rejects.toThrow(/unreachable/);
    }
  });

  it("errors say why: no listener, no such machine, the address is another's", async () => {
    await expect(ask(pod1, at(51), 9)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await expect(ask(pod1, at(51), 9, { protocol: "udp" })).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await expect(ask(pod1, at(99), PORT, SILENCE)).rejects.toMatchObject({ code: "ETIMEDOUT" });
    await expect(ask(pod1, at(51), PORT, { from: at(51) })).rejects.toMatchObject({ code: "EADDRNOTAVAIL" });
    await expect(serve(pod1, PORT)).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  it("a capture on the router's links shows on which segment a reply travels", async () => {
    using first = await openCapture(fabric.router, "seg0");
    using second = await openCapture(fabric.router, "seg1");
    await ask(fabric.outside, at(52, 1), PORT);
    const replies = (capture: typeof first) =>
      capture.frames().filter(({ direction, from }) => direction === "in" && from === at(52, 1));
    const requests = second.frames().filter(({ direction, to }) => direction === "out" && to === at(52, 1));
    expect(requests[0]).toMatchObject({ protocol: "tcp", flags: "S", from: outsideAddress(family), toPort: PORT });
    // The pod has one table, whose default route is by the first NIC: which the coordinator corrects.
    expect(replies(first)[0], first.frames().map(formatFrame).join("\n")).toMatchObject({ flags: "SA" });
    expect(replies(second)).toEqual([]);
    first.clear();
    expect(first.frames()).toEqual([]);
  });

  it("a service stand-in sends each connection to one of its backends", async () => {
    const backends = [
      { address: at(51), port: PORT },
      { address: podAddress(2, 6, family), port: PORT },
    ];
    const service = await serviceStandIn(fabric.node1, { address: SERVICE[family], port: 80, backends });
    const often = await askOften(fabric.node1, SERVICE[family], 80, 10);
    expect(often).toEqual({ [pod2.name]: 5, [routed2.name]: 5 });
    await service.delete();
    await expect(ask(fabric.node1, SERVICE[family], 80, SILENCE)).rejects.toMatchObject({ name: "NoTraffic" });
  });

  it("a service stand-in takes what comes from elsewhere and keeps the client's address", async () => {
    const backends = [{ address: podAddress(2, 6, family), port: PORT }];
    const service = await serviceStandIn(fabric.node1, { address: SERVICE[family], port: 80, backends });
    for (const protocol of ["tcp", "udp"] as const) {
      const answer = await ask(routed1, SERVICE[family], 80, { protocol });
      expect(answer).toMatchObject({ server: routed2.name, seenPeer: podAddress(1, 5, family) });
    }
    await service.delete();
  });

  it("a session notices that its server is gone", async () => {
    const server = await serve(pod2, 9090, { name: "short", protocols: ["tcp"] });
    const session = openSession(pod1, at(51), 9090);
    expect([await session.ask(), await session.ask()]).toMatchObject([{ server: "short" }, { server: "short" }]);
    expect(server.requests).toBe(2);
    await server.close();
    await expect(session.ask()).rejects.toMatchObject({ name: "NoTraffic" });
    const startMs = performance.now();
    await expect(session.ask()).rejects.toMatchObject({ name: "NoTraffic" });
    expect(performance.now() - startMs).toBeLessThan(1_000);
    session.close();
  });
});

it("a fabric of one family has no addresses of the other, and deleting leaves no namespace", async () => {
  const six = await makeFabric("fb6", { families: [6] });
  const pod = await six.addMacvlanPod(six.node1, "pod", [{ segment: 0, host: 50 }]);
  const host = await six.addHost("host", 5);
  expect(await ping(host, segmentAddress(0, 50, 6))).toBe(true);
  expect(await pod.ip("-4 addr show dev eth0")).toBe("");
  await six.delete();
  await six.delete();
  for (const { name } of [six.switch, six.node1, six.node2, six.router, six.outside, pod, host])
    await expect(openNetns(name).ip("link show")).rejects.toThrow(/No such file/);
});

it("a fabric whose name is taken is refused and leaves nothing", async () => {
  await expect(makeFabric("fb")).rejects.toThrow(/File exists/);
  expect(await ping(fabric.node1, segmentAddress(0, 12, 4))).toBe(true);
});
