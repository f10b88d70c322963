import { expect, it } from "vitest";
import { memberOf } from "../../../cli/blocks/hub.ts";
import { memberOf as member, rangeOf } from "../blocks/range-object.ts";

const own = member("a", []);
const forger = member("b", [], { cluster: own.status.cluster });
const find = (members: readonly ReturnType<typeof member>[], given?: string) =>
  memberOf({ range: rangeOf({ subnet: "10.6.0.0/24" }), members }, own.status.cluster, given).spec.member;

it("a cluster is the member with its UID, or of the name that is given where another one forges the UID", () => {
  expect([find([own]), find([own, forger], "a")]).toEqual(["a", "a"]);
  expect(() => find([own, forger])).toThrow(/UID for "a", "b": give its own name/);
});

it.each<[string, readonly ReturnType<typeof member>[], string | undefined, RegExp]>([
  ["one that has never written", [], undefined, /does not know this cluster yet/],
  ["one whose member is not there", [], "a", /has no RangeMember "a"/],
  ["one that has another name", [own, member("c", [])], "c", /knows this cluster as "a", not as "c"/],
])("%s is refused", (_, members, given, why) => expect(() => find(members, given)).toThrow(why));
