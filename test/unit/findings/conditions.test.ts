/** A fault in conditions is a finding with the same id; healthy, passing and other components' conditions are none. */
import { expect, it } from "vitest";
import { findInConditions } from "../../../host/findings/conditions.ts";
import type { Condition } from "../../../host/resources/status.ts";
import { cases } from "../../world/rows.ts";

it.each(cases<string[]>`
  all is well ${["Ready True Ready -", "Overlap False NoOverlap -", "Supplied True Supplied has 5"]} => nothing
  it is being deleted ${["Ready False Terminating it goes"]} => nothing
  the controller of others ${["Synced False Failed no"]} => nothing
  pods get no address ${["Supplied False SubnetFull it is full"]} => error SubnetFull IPPool blue: it is full
  a Subnet lacks addresses ${["Full True PoolsWait two wait"]} => error PoolsWait IPPool blue: two wait
  service networks are unknown ${["Ready False NetworksUnknown of none"]} => warning NetworksUnknown IPPool blue: of none
  its addresses are shared ${["Overlap True SharedAddresses by two"]} => warning SharedAddresses IPPool blue: by two
  agents refuse it, which three conditions say ${["Ready False Refused why", "Stalled True Refused why", "Overlap True SubnetsOverlap why"]}
    => error Refused IPPool blue: why
  two things are wrong ${["Overlap True SharedAddresses by two", "OtherMask True PodsWithOtherMask of /24"]}
    => warning SharedAddresses IPPool blue: by two, warning PodsWithOtherMask IPPool blue: of /24
`)("%s", (_, said, wanted) => {
  const conditions = said.map((text) => {
    const [type = "", status = "", reason = "", ...words] = text.split(" ");
    return { type, status, reason, message: words.join(" "), lastTransitionTime: "" } as Condition;
  });
  const found = findInConditions("IPPool blue", conditions);
  const lines = found.map(({ level, kind, object, text }) => `${level} ${kind} ${object}: ${text}`);
  expect(lines.join(", ") || "nothing").toBe(wanted);
});
