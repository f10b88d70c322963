/** `berthctl convert`. */
import type { Extension } from "../../host/extension.ts";
import { addConvert } from "./command.ts";

export default { addCommands: addConvert } satisfies Extension;
