/** The packages beside the house. One whose folder is not there is left out, also of what is built. */
import type { Extension } from "../extension.ts";

/** To the compiler a path is any text: the folder may be missing. */
const PACKAGES = [() => import("../../packages/convert/extension.ts" as string).catch(unlessAbsent)];

/** What a package that is there does not find is no reason to leave it out. */
function unlessAbsent(error: unknown): undefined {
  const { code, message } = Object(error);
  if (code !== "ERR_MODULE_NOT_FOUND" || !/\/extension\.ts' imported from /.test(message)) throw error;
}

/** Those of berthctl and kubectl berth. */
export async function readMoreCommands(): Promise<readonly NonNullable<Extension["addCommands"]>[]> {
  const found: readonly ({ readonly default: Extension } | undefined)[] = await Promise.all(
    PACKAGES.map((get) => get()),
  );
  return found.flatMap((each) => each?.default.addCommands ?? []);
}
