/** `kubectl berth test`, and `support-bundle`. */
import type { Extension } from "../../host/extension.ts";

export default {
  addCommands: async (cli) => {
    (await import("./test-command.ts")).addTest(cli);
    (await import("./bundle-command.ts")).addSupportBundle(cli);
  },
} satisfies Extension;
