/** Sends an Event of the ConfigMap `vendor-conf` when it cannot be used: whoever applied it was told "configured". */
import * as z from "zod";
import type { Change } from "../kubernetes/mirror.ts";
import { describeObject } from "../kubernetes/object-key.ts";
import { CONFIG_MAPS, collectionPath } from "../kubernetes/paths.ts";
import { messageOf } from "../lib/describe.ts";
import { decodeVendorConfMap } from "../resources/vendor-conf-map.ts";
import { followObjects } from "./follow-objects.ts";
import type { StartController } from "./types.ts";

const map = z.object({ metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }) });

interface Seen extends z.output<typeof map> {
  /** Why it cannot be used. */
  readonly fault?: string;
}

export const startSettings: StartController = (deps) => {
  const { vendorConf, configNamespace } = deps.caches;
  const tell = ({ metadata, fault }: Seen): void => {
    if (fault === undefined) return;
    deps.events.emit({
      regarding: { kind: "ConfigMap", apiVersion: "v1", ...metadata },
      ...{ reason: "InvalidSettings", type: "Warning", action: "Check" },
      note: `${fault}. What was valid last stays in force`,
    });
  };
  const onChange = (change?: Change<Seen>): void => {
    if (change?.kind === "set") tell(change.value);
  };
  return followObjects<Seen>(deps, onChange, {
    name: "vendor-conf for its Events",
    path: collectionPath(CONFIG_MAPS, configNamespace),
    fieldSelector: "metadata.name=vendor-conf",
    decode: (object) => {
      const { metadata } = map.parse(object);
      try {
        decodeVendorConfMap(object, describeObject(object), [...vendorConf.items.values()][0]);
        return { metadata };
      } catch (error) {
        return { metadata, fault: messageOf(error) };
      }
    },
  });
};
