/** The pages for a checkout, in mounts and namespaces of their own. */
import { expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { runCommand } from "../../lab/command.ts";
import { executePart, partsAt } from "./script.ts";

it.each(partsAt("checkout"))("%s", async (_, part) => {
  const path = [`${root}/node_modules/.bin`, `${root}/dist`, process.env.PATH].join(":");
  const own = 'mount -t tmpfs run /run/netns; exec "$@"';
  const { stdout } = await executePart(part, (argv) =>
    runCommand(
      ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", own, "sh", ...argv],
      {
        cwd: root,
        env: { PATH: path },
        timeoutMs: 100_000,
      },
    ),
  );
  expect(stdout).not.toBe("");
});
