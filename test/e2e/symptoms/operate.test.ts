/** Symptoms that an operator meets in `berthctl` and in the agent's log. */
import { join } from "node:path";
import { startAgent } from "../../lab/agent.ts";
import { requireCommand } from "../../lab/command.ts";
import { ipPool, manifest } from "../../lab/manifests.ts";
import { eventually } from "../../lab/waiting.ts";
import { berthctl, withNode } from "./node.ts";
import { symptom } from "./page.ts";

const BLUE = { "blue.yaml": ipPool("blue", "10.6.0.0/30", { default: true, gateway: "10.6.0.1" }) };

symptom("berthctl cannot reach the agent", () => berthctl("/run/berth/nowhere.sock", "pools"));
symptom("The agent ends at once: another agent", () =>
  withNode(BLUE, async ({ agent }) => {
    const args = ["--socket", agent.socket, "--lock-wait", "0.3"];
    return startAgent({ config: {}, args }).then(
      () => "",
      (error: Error) => error.message,
    );
  }),
);
symptom("A pool that was changed keeps its old values", () =>
  withNode(BLUE, async ({ agent, berthctl }) => {
    await agent.write("blue.yaml", BLUE["blue.yaml"].replace("10.6.0.0/30", "10.6.0.0/33"));
    return eventually(
      () => berthctl("check"),
      (text) => text.includes("blue.yaml"),
    );
  }),
);
symptom("A Coordinator has no effect", () =>
  withNode({ "lan.yaml": manifest("Coordinator", "lan", { mode: "underlay" }) }, ({ berthctl }) => berthctl("check")),
);
symptom("A pool has no free addresses although few pods run", () =>
  withNode(BLUE, async ({ attach, detach, berthctl }) => {
    await detach(await attach("web-0"));
    return berthctl("pools");
  }),
);
symptom("No space left on device", () =>
  withNode(BLUE, async ({ agent, refusal, berthctl }) => {
    await agent.stop();
    await requireCommand(["mount", "-t", "tmpfs", "-o", "size=6m", "berth-test", agent.state]);
    try {
      await agent.start();
      await requireCommand(["sh", "-c", `cat /dev/zero > ${agent.state}/filler || true`]);
      const checked = await eventually(
        () => berthctl("check"),
        (text) => text.includes("not-ready"),
        20_000,
      );
      return `${checked}${await refusal("web-0")}`;
    } finally {
      await agent.stop();
      await requireCommand(["umount", agent.state]);
    }
  }),
);
symptom("has lost rows", () =>
  withNode(BLUE, async ({ agent, attach, berthctl }) => {
    await attach("web-0");
    await agent.stop();
    await requireCommand(["sh", "-c", `rm ${join(agent.state, "registry.sqlite")}*`]);
    await agent.start();
    return berthctl("check");
  }),
);
