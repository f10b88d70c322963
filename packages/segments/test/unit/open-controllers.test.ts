/** Refused options of the controller, and the parts that accepted ones open. */
import { Command } from "commander";
import { expect, it } from "vitest";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import { openControllers } from "../../open-controllers.ts";
import { addSegmentOptions, type SegmentFlags } from "../../options.ts";

function open(...args: readonly string[]) {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addSegmentOptions(program);
  const flags = program.parse(args, { from: "user" }).opts<SegmentFlags>();
  return openControllers({ ...flags, configNamespace: "kube-system" }, (text) => {
    throw new Error(text);
  });
}

const SERVER = "--records-server nautobot --records-url https://ipam --records-token-file /t --records-cluster east";

it.each([
  ["--hub-member east", "belong together"],
  ["--hub-kubeconfig /k", "belong together"],
  ["--hub-kubeconfig /k --hub-member East", 'expected a Kubernetes name, found "East"'],
  ["--records-server netbox --records-url https://ipam", "needs --records-url, --records-token-file and"],
  ["--records-addresses", "--records-addresses needs --records-server"],
  [SERVER.replace("https:", "ftp:"), "https"],
  [`${SERVER} --records-space blue`, "expected SPACE=NAME"],
  [`${SERVER} --records-space a=X --records-space b=X`, "each name once"],
])("%s is refused: %s", (line, text) => expect(() => open(...line.split(" "))).toThrow(text));

it.each([
  ["", ["blocks"]],
  [`--hub-kubeconfig /k --hub-member east ${SERVER} --records-addresses`, ["blocks", "records"]],
])("%j opens the controllers %j, and asks nothing", async (line, wanted) => {
  const opened = open(...line.split(" ").filter(Boolean));
  expect([Object.keys(opened.controllers), opened.problem]).toEqual([wanted, undefined]);
  await opened.close?.();
});

it("a hub is asked only for a cluster: 2", async () =>
  expect(await runBerthctl("check", "--hub-kubeconfig", "/k")).toMatchObject({
    ...{ code: 2, error: expect.stringContaining("--hub-kubeconfig needs a cluster: give --kubeconfig or --context") },
  }));
