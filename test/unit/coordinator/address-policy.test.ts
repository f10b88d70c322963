/** Number of addresses that a pod may have. */
import { describe, expect, it } from "vitest";
import { MAX_POD_ADDRESSES } from "../../../host/coordinator/plan/address-policy.ts";
import { applyStatement, NOTHING } from "./plan-model.ts";
import { answerRequest, readRequest } from "./plan-request.ts";
import { readStatement } from "./plan-words.ts";

const addressesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => `10.6.${1 + Math.floor(at / 100)}.${1 + (at % 100)}`);

/** `onLinks`: each with its link. */
function add(onLinks: readonly string[], addresses: readonly string[]): unknown {
  const lines = [
    "link eth0 macvlan address 02:00:00:06:00:21",
    "link net1 macvlan",
    ...onLinks.map((each) => `addr ${each}`),
  ];
  const observed = lines.map((line) => readStatement(`pod: ${line}`)).reduce(applyStatement, NOTHING);
  return answerRequest(readRequest("ADD", { addresses }), observed).mode?.mode;
}

const LINK_LOCAL = Array.from({ length: 10 }, (_, at) => `fe80::${at + 1}/64 dev eth0 scope link`);

describe("a pod", () => {
  const most = addressesOf(MAX_POD_ADDRESSES);
  const tooMany = addressesOf(MAX_POD_ADDRESSES + 1);
  const refusal = `has ${MAX_POD_ADDRESSES + 1} addresses, each of which needs a route on the node; a pod may have at most ${MAX_POD_ADDRESSES}`;

  it("may have as many addresses as the limit says, and link-local ones besides", () =>
    expect(add([...most.map((each) => `${each}/16 dev eth0`), ...LINK_LOCAL], most)).toBe("underlay"));

  it.each(["eth0", "net1"])("is refused with one more on %s", (link) => {
    const [first = "", ...others] = tooMany;
    const onLinks = [`${first}/16 dev eth0`, ...others.map((each) => `${each}/16 dev ${link}`)];
    expect(() => add(onLinks, [first])).toThrow(refusal);
  });

  it("is refused with one more in the main plugin's result", () => expect(() => add([], tooMany)).toThrow(refusal));
});
