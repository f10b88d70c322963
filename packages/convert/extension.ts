/** `berthctl adopt`, and `convert`. */
import type { Extension } from "../../host/extension.ts";

export default {
  addCommands: async (cli) => {
    (await import("./adopt-command.ts")).addAdopt(cli);
    (await import("./command.ts")).addConvert(cli);
  },
} satisfies Extension;
