import { describe, expect, it } from "vitest";
import { formatIp } from "../../../host/net/ip.ts";
import { OccupiedIps } from "../../../host/resources/occupied-ips.ts";
import { ip, range } from "../../world/values.ts";

const of = (...texts: string[]) => new OccupiedIps(texts.map((text, at) => ({ ip: ip(text), why: `reason ${at}` })));
const texts = (found: readonly { ip: ReturnType<typeof ip> }[]) => found.map((each) => formatIp(each.ip));

describe("occupied addresses", () => {
  const all = of("10.0.0.9", "fd00::1", "10.0.0.2", "10.0.0.9", "10.0.0.20");

  it.each([
    ["10.0.0.2-10.0.0.9", ["10.0.0.2", "10.0.0.9"]],
    ["10.0.0.3-10.0.0.8", []],
    ["10.0.0.10-10.255.255.255", ["10.0.0.20"]],
    ["fd00::-fd00::ffff", ["fd00::1"]],
    ["0.0.0.0-10.0.0.1", []],
  ])("within %s are in order, each once", (text, wanted) => expect(texts(all.within(range(text)))).toEqual(wanted));

  it("are found with the first reason", () => {
    expect(all.find(ip("10.0.0.9"))?.why).toBe("reason 0");
    expect(all.find(ip("10.0.0.8"))).toBeUndefined();
  });

  it("differ by what only one has", () => {
    const other = of("10.0.0.2", "10.0.0.3", "fd00::1", "10.0.0.20");
    expect(all.differenceTo(other).map(formatIp).sort()).toEqual(["10.0.0.3", "10.0.0.9"]);
    expect(all.differenceTo(all)).toEqual([]);
  });
});
