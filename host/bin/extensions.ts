/** The packages that extend the other programs. */
import type { Extension } from "../extension.ts";
import { fail, readAll } from "./read-packages.ts";

export const readExtensions = (): Promise<readonly Extension[]> =>
  readAll<Extension>({
    convert: () => import("../../packages/convert/extension.ts" as string).catch(fail),
    diagnostics: () => import("../../packages/diagnostics/extension.ts" as string).catch(fail),
    gates: () => import("../../packages/gates/extension.ts" as string).catch(fail),
    "load-balancers": () => import("../../packages/load-balancers/extension.ts" as string).catch(fail),
    map: () => import("../../packages/map/extension.ts" as string).catch(fail),
    "network-services": () => import("../../packages/network-services/extension.ts" as string).catch(fail),
    segments: () => import("../../packages/segments/extension.ts" as string).catch(fail),
  });

/** The extensions of berthctl and kubectl berth. */
export const readMoreCommands = async (): Promise<readonly NonNullable<Extension["addCommands"]>[]> =>
  (await readExtensions()).flatMap(({ addCommands }) => addCommands ?? []);
