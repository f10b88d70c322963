/** Environment of Node.js and the C library where Berth runs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";

/**
 * Returns `Environment=` of deploy/host/systemd/berth-agent.service by name; without values that are paths of the host.
 */
export function serviceEnvironment(): Readonly<Record<string, string>> {
  const unit = readFileSync(join(root, "deploy", "host", "systemd", "berth-agent.service"), "utf8");
  const lines = unit.matchAll(/^Environment=("?)(?<name>\w+)=(?<value>.*)\1$/gm);
  const variables = [...lines].map(({ groups }): [string, string] => [groups?.name ?? "", groups?.value ?? ""]);
  return Object.fromEntries(variables.filter(([, value]) => !value.startsWith("/")));
}

/** Returns the options of Node.js with which deploy/controller.yaml starts the controller. */
export function controllerOptions(): string[] {
  const manifests = readFileSync(join(root, "deploy", "controller.yaml"), "utf8");
  const [, options = ""] = /command: \[\/usr\/bin\/node, (.*), \/usr\/bin\/berth-controller\]/.exec(manifests) ?? [];
  return options.split(", ");
}
