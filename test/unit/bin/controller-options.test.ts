/** Values of the controller's options that are refused. */
import { expect, it } from "vitest";
import { describeController } from "../../../host/bin/controller-options.ts";

it.each<[args: string[], text: RegExp]>([
  [["--listen", "0.0.0.0"], /expected 127\.0\.0\.1:PORT, .* or off, found "0\.0\.0\.0"/],
  [["--lease-duration", "0"], /expected seconds, more than 0 and at most 3600, found "0"/],
  [["--identity", "a b"], /expected 1 to 200 characters without blanks, found "a b"/],
  [["--lease-name", "A"], /expected a Kubernetes name, found "A"/],
  [["--certificate-lifetime", "0"], /expected days, more than 0 and at most 825, found "0"/],
  [["--certificate-secret", "tls"], /expected NAME=DNS,DNS, found "tls"/],
])("%j", (args, text) => {
  const program = describeController()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  expect(() => program.parse(args, { from: "user" })).toThrow(text);
});
