import { describe, expect, it } from "vitest";
import { attribute, encodeUint32 } from "../../../host/kernel/netlink/attribute.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeNeighbourMessage, encodeNeighbourMessage } from "../../../host/kernel/netlink/families.ts";
import {
  NDA_CACHEINFO,
  NDA_IFINDEX,
  NTF_PROXY,
  NUD_PERMANENT,
  RTM_GETNEIGH,
} from "../../../host/kernel/netlink/neighbour/constants.ts";
import { confirmedAgoMs, neighbourOf } from "../../../host/kernel/netlink/neighbour/neighbour.ts";
import {
  deleteNeighbour,
  findNeighbour,
  listNeighbours,
  putNeighbour,
} from "../../../host/kernel/netlink/neighbour/requests.ts";
import { ip, mac } from "../../world/values.ts";
import { type Ask, answersTo, itSends } from "./recorded.ts";

const known = { mac: mac("02:00:00:00:00:09"), link: 7, state: NUD_PERMANENT, flags: 0 };
const v4 = { ...known, ip: ip("10.6.0.9") };
const v6 = { ...known, ip: ip("fd00::9") };
const proxy = { ip: ip("10.6.0.77"), link: 7, state: NUD_PERMANENT, flags: NTF_PROXY };
const proxiesOfV0 = { family: 0, flags: NTF_PROXY, attributes: [attribute(NDA_IFINDEX, encodeUint32(7))] };

const rows: Record<string, Ask> = {
  "ip neigh replace 10.6.0.9 lladdr 02:00:00:00:00:09 nud permanent dev v0": (to) => putNeighbour(to, v4),
  "ip neigh replace fd00::9 lladdr 02:00:00:00:00:09 nud permanent dev v0": (to) => putNeighbour(to, v6),
  "ip neigh replace proxy 10.6.0.77 dev v0": (to) => putNeighbour(to, proxy),
  "ip neigh get 10.6.0.9 dev v0": (to) => expect(findNeighbour(to, 7, v4.ip)).toMatchObject({ index: 7, state: 0x80 }),
  "ip neigh get 10.6.0.10 dev v0": (to) => expect(findNeighbour(to, 7, ip("10.6.0.10"))).toBeUndefined(),
  "ip neigh show dev v0": (to) => listNeighbours(to, 7),
  "ip neigh show proxy dev v0": (to) =>
    to.dump({ operation: "list proxies", type: RTM_GETNEIGH, payload: encodeNeighbourMessage(proxiesOfV0) }),
  "ip neigh del 10.6.0.9 dev v0": (to) => expect(deleteNeighbour(to, v4)).toBe(true),
  "ip neigh del 10.6.0.10 dev v0": (to) => expect(deleteNeighbour(to, { ...v4, ip: ip("10.6.0.10") })).toBe(false),
};

describe("neighbour requests", () => {
  itSends("neighbour", {}, () => {}, rows);

  it("say when the neighbour last proved to have its MAC address", () => {
    // struct nda_cacheinfo: confirmed, used, updated in hundredths of a second; references.
    const cacheInfo = attribute(NDA_CACHEINFO, Uint8Array.of(0x2c, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0));
    const message = { family: 2, index: 7, state: 2, flags: 0, type: 1, attributes: [cacheInfo] };
    expect(confirmedAgoMs(message)).toBe(3_000);
    expect(confirmedAgoMs({ ...message, attributes: [] })).toBeUndefined();
  });
});

describe("neighbours", () => {
  const messages = answersTo("neighbour", "ip neigh show dev v0").map(decodeNeighbourMessage);

  it("are read from the kernel's messages", () => {
    const values = messages.map(neighbourOf);
    expect(values).toContainEqual(v4);
    expect(values).toContainEqual(v6);
    const proxies = answersTo("neighbour", "ip neigh show proxy dev v0").map(decodeNeighbourMessage).map(neighbourOf);
    expect(proxies).toMatchObject([{ ip: proxy.ip, link: 7, flags: NTF_PROXY, mac: undefined }]);
  });

  it("that are no IP neighbours are none", () => {
    const [message = expect.unreachable()] = messages;
    expect(neighbourOf({ ...message, family: 7 })).toBeUndefined();
    expect(neighbourOf({ ...message, attributes: [] })).toBeUndefined();
  });

  it("of the wrong family are refused", () => {
    const [message = expect.unreachable()] = messages;
    const attributes = [attribute(1, new Uint8Array(message.family === 2 ? 16 : 4))];
    expect(() => neighbourOf({ ...message, attributes })).toThrow(NetlinkError);
  });
});
